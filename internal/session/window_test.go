package session

import (
	"slices"
	"testing"
)

// gang is a window and the jobs that it lets go, by name.
type gang struct {
	window
	sent []string
}

func (g *gang) job(name string) job {
	return func() bool {
		g.sent = append(g.sent, name)
		return true
	}
}

func (g *gang) add(c class, names ...string) {
	for _, name := range names {
		g.window.add(c, g.job(name))
	}
}

// answered has n requests answered.
func (g *gang) answered(n int) {
	g.inFlight -= n
	g.pump()
}

func (g *gang) went(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(g.sent, want) {
		t.Errorf("sent %q, want %q", g.sent, want)
	}
	g.sent = nil
}

func TestWindow(t *testing.T) {
	for name, test := range map[string]func(*testing.T, *gang){
		"at most as many as it holds, in order": func(t *testing.T, g *gang) {
			g.add(catchUp, "a", "b", "c", "d")
			g.pump()
			g.went(t, "a", "b")
			g.pump()
			g.went(t)
			g.answered(1)
			g.went(t, "c")
			g.answered(2)
			g.went(t, "d")
			g.answered(1)
			g.went(t)
		},
		"people first, each class in order": func(t *testing.T, g *gang) {
			g.add(catchUp, "a", "b")
			g.add(people, "p", "q", "r")
			g.pump()
			g.went(t, "p", "q")
			g.add(people, "s")
			g.answered(2)
			g.went(t, "r", "s")
			g.answered(2)
			g.went(t, "a", "b")
		},
		"again goes before its class and behind the better one": func(t *testing.T, g *gang) {
			g.add(catchUp, "a", "b")
			g.again(catchUp, g.job("again"))
			g.add(people, "p")
			g.again(people, g.job("p again"))
			g.pump()
			g.went(t, "p again", "p")
			g.answered(2)
			g.went(t, "again", "a")
		},
		"a job that sends nothing takes no room": func(t *testing.T, g *gang) {
			for range 5 {
				g.window.add(people, func() bool { return false })
			}
			g.add(people, "a", "b", "c")
			g.pump()
			g.went(t, "a", "b")
			if g.inFlight != 2 {
				t.Errorf("%d in flight", g.inFlight)
			}
		},
		"a job may add others": func(t *testing.T, g *gang) {
			g.window.add(people, func() bool { g.add(people, "next"); return false })
			g.pump()
			g.went(t, "next")
		},
		"it grows": func(t *testing.T, g *gang) {
			g.add(people, "a", "b", "c", "d")
			g.pump()
			g.went(t, "a", "b")
			g.size = 4
			g.pump()
			g.went(t, "c", "d")
		},
		"it shrinks below what is in flight": func(t *testing.T, g *gang) {
			g.add(people, "a", "b", "c", "d")
			g.pump()
			g.went(t, "a", "b")
			g.size = 1
			g.answered(1)
			g.went(t)
			g.answered(1)
			g.went(t, "c")
		},
		"drain gives everything that waits its turn, and what that adds": func(t *testing.T, g *gang) {
			g.add(people, "a", "b")
			g.add(catchUp, "c")
			g.pump()
			g.went(t, "a", "b")
			g.window.add(people, func() bool { g.add(catchUp, "d"); return false })
			g.drain()
			g.went(t, "c", "d")
			if g.inFlight != 0 {
				t.Errorf("%d in flight", g.inFlight)
			}
		},
	} {
		t.Run(name, func(t *testing.T) { test(t, &gang{window: window{size: 2}}) })
	}
}
