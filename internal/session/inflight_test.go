package session

import (
	"fmt"
	"slices"
	"testing"
	"time"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/internal/decision"
	"mcpl.dev/operator/test/connector"
)

// mostInFlight is how many requests of the session were unanswered at once.
func mostInFlight(entries []connector.Entry) int {
	most, open := 0, map[string]bool{}
	for _, e := range entries {
		id := fmt.Sprint(e.Conn, string(e.ID))
		switch {
		case e.Method == "initialize" || e.Method == "featureSets/update":
		case e.Kind == connector.Request && e.Direction == connector.In:
			open[id] = true
		case e.Kind == connector.Response && e.Direction == connector.Out:
			delete(open, id)
		case e.Kind == connector.Disconnect:
			clear(open)
		}
		most = max(most, len(open))
	}
	return most
}

func TestWindowOnTheWire(t *testing.T) {
	for _, window := range []int{1, 3} {
		t.Run(fmt.Sprintf("at most %d in flight, in listed order", window), func(t *testing.T) {
			b := start(t, setup{Options: demo(20), config: func(c *Config) { c.Window = window }}).owned(always)
			b.c.Once(connector.On("channels/close", "demo:c1").HeldAt("first"))
			b.up()
			b.held("first", 1)
			b.until("the rest to wait", func() bool { return b.snapshot().Outstanding == 20 && b.channel("demo:c20").Ticket == nil })
			b.flushUntil(func(s *Session) bool { return s.listing == notListing })
			b.flush() // the list's place is taken by now, too
			b.c.Release("first")
			b.rest()
			var want []string
			for i := range 20 {
				want = append(want, fmt.Sprint("close demo:c", i+1))
			}
			b.sent(want...)
			if most := mostInFlight(b.c.Entries(connector.Filter{})); most != window {
				t.Errorf("%d were in flight", most)
			}
		})
	}
	t.Run("it grows and shrinks while requests are in flight", func(t *testing.T) {
		b := start(t, setup{Options: demo(6), config: func(c *Config) { c.Window = 1 }}).owned(always).registered()
		b.c.Always(connector.On("channels/close", "").HeldAt("busy").Beside())
		for i := range 6 {
			b.session().Apply(fmt.Sprint("demo:c", i+1), 0)
		}
		b.held("busy", 1)
		b.ensure(func(c *Config) { c.Window = 4 })
		b.held("busy", 4)
		b.ensure(func(c *Config) { c.Window = 2 })
		b.c.Release("busy")
		b.rest()
		if most := mostInFlight(b.c.Entries(connector.Filter{})); most != 4 {
			t.Errorf("%d were in flight", most)
		}
	})
	t.Run("F06 a channel that does not answer holds its own place only", func(t *testing.T) {
		b := start(t, setup{Options: demo(4), config: func(c *Config) { c.Window = 2 }}).owned(always)
		b.c.Always(connector.On("channels/close", "demo:c1").HeldAt("for ever").Beside())
		b.decide(v1.StateOpen, "demo:c3")
		b.up()
		b.held("for ever", 1)
		b.untilIs(v1.TransportOpen, "demo:c3")
		b.untilIs(v1.TransportClosed, "demo:c2", "demo:c4")
		_, err := b.c.Add(b.ctx, connector.AsRequest, connector.NewDescriptor("demo:y")) // another batch
		b.must(err)
		b.untilIs(v1.TransportClosed, "demo:y")
		b.settles(b.apply(v1.StateOpen, "demo:y"), ok)
		b.same(b.channel("demo:c1").InFlight, true)
	})
}

func TestPeopleGoFirst(t *testing.T) {
	busy := func(t *testing.T, n int) *bench {
		b := start(t, setup{Options: demo(n), config: func(c *Config) { c.Window = 1 }}).owned(always)
		b.c.Once(connector.On("channels/close", "demo:c1").HeldAt("busy"))
		b.up()
		b.held("busy", 1)
		b.until("the rest to wait", func() bool {
			return !slices.ContainsFunc(b.c.Channels(), func(d connector.Descriptor) bool {
				c := b.channel(d.ID)
				return c.Ticket != nil || c.Outstanding == 0
			})
		})
		return b
	}
	t.Run("before what a registration has to catch up with", func(t *testing.T) {
		b := busy(t, 3)
		push(b, "demo:new")
		b.apply(v1.StateOpen, "demo:new")
		b.c.Always(connector.On("channels/open", "demo:new").Answering(map[string]any{}))
		b.c.Release("busy")
		b.rest()
		b.sent("close demo:c1", "open demo:new", "close demo:c2", "close demo:c3")
	})
	t.Run("and what stands before them in their channel's queue goes with them", func(t *testing.T) {
		b := busy(t, 4)
		b.session().Apply("demo:c4", 0)
		b.session().Apply("demo:c4", 0)
		b.session().Apply("demo:c3", 0)
		b.c.Release("busy")
		b.rest()
		b.sent("close demo:c1", "close demo:c4", "close demo:c3", "close demo:c4", "close demo:c3", "close demo:c4", "close demo:c2")
	})
	t.Run("and leaves its former place void", func(t *testing.T) {
		b := start(t, setup{Options: demo(4), config: func(c *Config) { c.Window = 2 }}).owned(always)
		for i := range 3 {
			b.c.Once(connector.On("channels/close", fmt.Sprint("demo:c", i+1)).HeldAt(fmt.Sprint("busy", i+1)).Beside())
		}
		b.listed()
		b.held("busy1", 1)
		b.held("busy2", 1)
		b.until("the rest to wait", func() bool { return b.channel("demo:c4").Outstanding == 1 })
		b.session().Apply("demo:c3", 0)
		b.c.Release("busy1")
		b.held("busy3", 1)
		b.c.Release("busy2") // the former place of the third comes up before the fourth's
		b.untilIs(v1.TransportClosed, "demo:c4")
		b.same(b.c.Count("channels/close", "demo:c3"), 1)
		b.c.Release("busy3")
		b.rest()
		b.same(b.c.Count("channels/close", "demo:c3"), 2)
	})
	t.Run("also where the first of the queue is in flight", func(t *testing.T) {
		b := busy(t, 3)
		_, err := b.c.Add(b.ctx, connector.AsRequest, connector.NewDescriptor("demo:c1"))
		b.must(err)
		b.until("a second operation to be queued", func() bool { return b.channel("demo:c1").Outstanding == 2 })
		b.session().Apply("demo:c1", 0)
		b.c.Release("busy")
		b.rest()
		// In flight, again for the new entry, the new entry's own, and the person's.
		b.sent("close demo:c1", "close demo:c1", "close demo:c1", "close demo:c1", "close demo:c2", "close demo:c3")
	})
	t.Run("what takes another turn takes it before its class", func(t *testing.T) {
		b := start(t, setup{Options: demo(3), config: func(c *Config) { c.Window = 1 }}).owned(always).registered()
		b.c.Reset()
		b.c.Once(connector.On("channels/open", "demo:c1").HeldAt("open"))
		b.apply(v1.StateOpen, "demo:c1")
		b.held("open", 1)
		b.session().Apply("demo:c2", 0)
		b.session().Apply("demo:c3", 0)
		b.decide(v1.StateClosed, "demo:c1")
		b.c.Release("open")
		b.rest()
		b.sent("open demo:c1", "close demo:c1", "close demo:c2", "close demo:c3")
	})
}

// An operation whose request was answered may have to wait before it sends the next one.
func TestAnotherTurn(t *testing.T) {
	// waiting has the catch-up of the first channel wait for its second turn, behind what somebody
	// wants of the second channel.
	waiting := func(t *testing.T) (b *bench, behind *Operation) {
		b = start(t, setup{Options: demo(2), config: func(c *Config) { c.Window = 1 }}).owned(always).registered()
		b.c.Reset()
		b.c.Once(connector.On("channels/close", "demo:c1").HeldAt("first"), connector.On("channels/close", "demo:c2").HeldAt("second"))
		_, err := b.c.Add(b.ctx, connector.AsRequest, connector.NewDescriptor("demo:c1"))
		b.must(err)
		b.held("first", 1)
		behind = b.session().Apply("demo:c2", 0)
		b.decide(v1.StateOpen, "demo:c1")
		b.c.Release("first")
		b.held("second", 1)
		if c := b.channel("demo:c1"); c.InFlight || c.Outstanding != 1 || c.Transport != v1.TransportClosed {
			t.Errorf("it waits as %+v", c)
		}
		return b, behind
	}
	t.Run("it comes", func(t *testing.T) {
		b, behind := waiting(t)
		b.c.Release("second")
		b.settles(behind, ok)
		b.untilIs(v1.TransportOpen, "demo:c1")
		b.sent("close demo:c1", "close demo:c2", "open demo:c1")
	})
	t.Run("it never comes when the connection is lost", func(t *testing.T) {
		b, behind := waiting(t)
		b.must(b.c.Pause())
		b.must(b.c.Drop())
		b.settles(behind, noAnswer)
		b.untilIs(v1.TransportUnconfirmed, "demo:c1")
		b.same(b.snapshot().Outstanding, 0)
	})
	t.Run("it comes first when somebody wants something of that channel", func(t *testing.T) {
		b, _ := waiting(t)
		b.session().Apply("demo:c2", 0)
		b.session().Apply("demo:c1", 0)
		b.c.Release("second")
		b.rest()
		b.sent("close demo:c1", "close demo:c2", "open demo:c1", "close demo:c2", "open demo:c1")
	})
	t.Run("nor does it go behind others when somebody waits behind it", func(t *testing.T) {
		b := start(t, setup{Options: demo(2), config: func(c *Config) { c.Window = 1 }}).owned(always).registered()
		b.c.Reset()
		b.c.Once(connector.On("channels/close", "demo:c1").HeldAt("first"))
		_, err := b.c.Add(b.ctx, connector.AsRequest, connector.NewDescriptor("demo:c1"))
		b.must(err)
		b.held("first", 1)
		b.session().Apply("demo:c2", 0)
		b.apply(v1.StateOpen, "demo:c1")
		b.c.Release("first")
		b.rest()
		b.sent("close demo:c1", "open demo:c1", "close demo:c2", "open demo:c1")
	})
	t.Run("what it has left of its attempts is not enough for a registration", func(t *testing.T) {
		b, _ := waiting(t)
		_, err := b.c.Add(b.ctx, connector.AsRequest, connector.NewDescriptor("demo:c1"))
		b.must(err)
		b.flush()
		b.until("the registration to be recorded", func() bool { return b.channel("demo:c1").Ticket == nil })
		b.same(b.channel("demo:c1").Outstanding, 2)
		b.c.Release("second")
		b.rest()
	})
	t.Run("the channel's owner is told of what the answer confirmed", func(t *testing.T) {
		b := start(t, setup{Options: demo(1)}).owned(always).registered()
		b.c.Once(connector.On("channels/close", "demo:c1").HeldAt("first"), connector.On("channels/open", "demo:c1").HeldAt("second"))
		b.apply(v1.StateClosed, "demo:c1")
		b.held("first", 1)
		b.decide(v1.StateOpen, "demo:c1")
		before := b.notify.wakesOf("demo:c1")
		b.c.Release("first")
		b.held("second", 1)
		if b.notify.wakesOf("demo:c1") == before {
			t.Error("nobody was told")
		}
		b.c.Release("second")
		b.rest()
	})
}

// registering is a deadline for what comes before the requests that a test is about, whose timers
// are then not mistaken for theirs.
func registering(c *Config) { c.RequestTimeout = 33 * time.Second }

func TestTimeouts(t *testing.T) {
	unknown := decision.Outcome{Failure: v1.CauseConnectorFailed, Unknown: true}
	for name, test := range map[string]struct{ configured, want time.Duration }{
		"E19 60 s for opens and closes where requests have none": {0, time.Minute},
		"as configured":              {7 * time.Second, 7 * time.Second},
		"as configured, also longer": {5 * time.Minute, 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			clk := newClock()
			b := start(t, setup{Options: demo(2), clock: clk, config: registering}).owned(always)
			b.decide(v1.StateOpen, "demo:c1")
			b.registered()
			b.c.Always(connector.On("", "").NeverAnswered())
			b.ensure(func(c *Config) { c.RequestTimeout = test.configured })
			first, second := b.apply(v1.StateClosed, "demo:c1"), b.apply(v1.StateOpen, "demo:c2")
			b.timer(clk, 2, exactly(test.want))
			clk.Step(test.want - time.Second)
			b.flush()
			b.same(b.channel("demo:c1").InFlight, true)
			clk.Step(time.Second)
			b.settles(first, unknown)
			b.settles(second, unknown)
			// The outcome is unknown, and on the same connection nothing else is: T stays.
			b.same(b.channel("demo:c1").Transport, v1.TransportOpen)
			b.same(b.channel("demo:c2").Transport, v1.TransportClosed)
		})
	}
	t.Run("a late answer is nobody's", func(t *testing.T) {
		clk := newClock()
		b := start(t, setup{Options: demo(1), clock: clk, mayViolate: true, config: registering}).owned(always).registered()
		b.c.Once(connector.On("channels/open", "demo:c1").HeldAt("late"))
		b.ensure(func(c *Config) { c.RequestTimeout = time.Minute })
		op := b.apply(v1.StateOpen, "demo:c1")
		b.held("late", 1)
		b.timer(clk, 1, exactly(time.Minute))
		clk.Step(time.Minute)
		b.settles(op, unknown)
		b.c.Release("late")
		b.must(b.c.WaitOpen(b.ctx, "demo:c1", true))
		b.flush()
		b.same(b.channel("demo:c1").Transport, v1.TransportClosed)
		b.settles(b.session().Apply("demo:c1", 0), ok)
	})
	t.Run("fact 24 they count from the write: a hundred channels that take long", func(t *testing.T) {
		clk := newClock()
		o := demo(100)
		o.After = clk.After
		b := start(t, setup{Options: o, clock: clk, config: registering})
		b.c.Always(connector.On("channels/open", "").Delayed(11 * time.Second))
		for i := range 100 {
			b.decide(v1.StateOpen, fmt.Sprint("demo:c", i+1))
		}
		b.listed()
		b.ensure(func(c *Config) { c.RequestTimeout = 45 * time.Second })
		b.owned(always)
		for i := range 100 {
			b.timer(clk, i+1, exactly(11*time.Second))           // the connector is at it
			b.timer(clk, min(i+4, 100), exactly(45*time.Second)) // all that fit are written
			if i > 0 {
				b.untilIs(v1.TransportOpen, fmt.Sprint("demo:c", i))
			}
			clk.Step(11 * time.Second)
		}
		b.rest()
		snap := b.snapshot()
		b.same([]int{snap.Open, snap.Unsettled}, []int{100, 0})
		b.same(b.c.Count("channels/open", ""), 100)
	})
}
