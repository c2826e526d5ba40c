package session

import (
	"context"
	"testing"
	"time"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/internal/mcpl"
	"mcpl.dev/operator/test/connector"
)

// waits checks the n-th wait before a dial, which may be a quarter shorter or longer.
func (b *bench) waits(clk *steppedClock, n int, want time.Duration) time.Duration {
	b.Helper()
	d := b.timer(clk, n, redials)
	if d < want*3/4 || d > want*5/4+1 {
		b.Errorf("wait %d before a dial takes %s, want %s give or take a quarter", n, d, want)
	}
	return d
}

func TestRedialWaits(t *testing.T) {
	t.Run("they grow to a limit, and start over after a handshake", func(t *testing.T) {
		clk := newClock()
		b := start(t, setup{Options: demo(1), clock: clk, timing: hour}).owned(always)
		b.must(b.c.Pause())
		b.ensure()
		for i, hours := range []int{1, 2, 4, 8, 8, 8} {
			d := b.waits(clk, i+1, time.Duration(hours)*time.Hour)
			b.same(b.untilTrouble(v1.ReasonDialFailed), "unreachable: connection refused")
			clk.Step(d - time.Second)
			if i == 5 {
				b.must(b.c.Resume(b.ctx))
			}
			clk.Step(time.Second)
		}
		b.until("it to be up", func() bool { return b.snapshot().State == v1.ConnectorUp })
		b.untilIs(v1.TransportClosed, "demo:c1")
		b.must(b.c.Pause())
		b.must(b.c.Drop())
		clk.Step(b.waits(clk, 7, time.Hour))
		b.waits(clk, 8, 2*time.Hour)
		b.same(b.c.Status().Connections, 1)
	})
	t.Run("by default from 5 s to 300 s", func(t *testing.T) {
		if got := DefaultTiming(); got != (Timing{RedialBase: 5 * time.Second, RedialMax: 300 * time.Second}) {
			t.Errorf("%+v", got)
		}
	})
	t.Run("a new target is dialled at once, and its waits start over", func(t *testing.T) {
		clk := newClock()
		b := start(t, setup{Options: demo(1), clock: clk, timing: hour}).owned(always)
		b.must(b.c.Pause())
		b.ensure()
		for i, hours := range []int{1, 2} {
			clk.Step(b.waits(clk, i+1, time.Duration(hours)*time.Hour))
		}
		b.waits(clk, 3, 4*time.Hour)
		b.ensure(func(c *Config) { c.Target.PodUID = "pod-2" })
		b.waits(clk, 4, time.Hour)
		b.must(b.c.Resume(b.ctx))
		b.ensure(func(c *Config) { c.Target.PodUID = "pod-3" })
		b.until("it to be up", func() bool { return b.snapshot().State == v1.ConnectorUp })
	})
	t.Run("what does not concern the connection does not cut a wait short", func(t *testing.T) {
		clk := newClock()
		b := start(t, setup{Options: demo(1), clock: clk, timing: hour})
		b.must(b.c.Pause())
		b.ensure()
		d := b.waits(clk, 1, time.Hour)
		b.ensure(func(c *Config) { c.Window, c.MaxChannels, c.Admission, c.RequestTimeout = 9, 9, "auto", 0 })
		clk.Step(d)
		b.waits(clk, 2, 2*time.Hour)
		b.same(len(clk.made(redials)), 2)
	})
}

func TestReconfigured(t *testing.T) {
	t.Run("another target", func(t *testing.T) {
		b := start(t, setup{Options: demo(1)}).owned(always)
		b.decide(v1.StateOpen, "demo:c1")
		b.registered()
		next, err := connector.Start(b.ctx, demo(2))
		b.must(err)
		t.Cleanup(func() { _ = next.Close() })
		b.ensure(func(c *Config) { c.Target.Address, c.Target.PodUID = next.Addr(), "pod-2" })
		b.must(next.WaitOpen(b.ctx, "demo:c1", true))
		b.must(b.c.WaitUntil(b.ctx, func() bool { return !b.c.Status().Connected }))
		b.untilIs(v1.TransportClosed, "demo:c2")
		b.same(b.snapshot().Generation, int64(2))
		b.same(b.c.OpenChannels(), []string{"demo:c1"}) // nothing is closed there
	})
	t.Run("another mask", func(t *testing.T) {
		b := start(t, setup{Options: demo(1)}).owned(always).registered()
		b.ensure(func(c *Config) { c.Deny = []string{"channels.lifecycle"} })
		b.until("the next connection", func() bool { s := b.snapshot(); return s.Generation == 2 && s.State == v1.ConnectorUp })
		b.same(b.snapshot().Lifecycle, false)
		b.ensure(func(c *Config) { c.Deny = nil })
		b.until("the next connection", func() bool { return b.snapshot().Generation == 3 })
		b.untilIs(v1.TransportClosed, "demo:c1")
	})
	t.Run("the same, made anew", func(t *testing.T) {
		b := start(t, setup{Options: demo(1), config: func(c *Config) { c.Deny = []string{"tools"} }}).owned(always).registered()
		b.ensure(func(c *Config) { c.Deny = []string{"tools"} })
		b.ensure(func(c *Config) { c.Window, c.Handshakes = 1, 1 }) // as its status tells by now
		b.settles(b.apply(v1.StateOpen, "demo:c1"), ok)
		b.same(b.c.Status().Connections, 1)
		b.same(b.snapshot().Generation, int64(1))
	})
	t.Run("a target that merely vanished keeps the connection", func(t *testing.T) {
		clk := newClock()
		b := start(t, setup{Options: demo(1), clock: clk, timing: hour}).owned(always).registered()
		target := b.config.Target
		b.ensure(func(c *Config) { c.Target = Target{} })
		b.settles(b.apply(v1.StateOpen, "demo:c1"), ok)
		b.same(b.snapshot().Generation, int64(1))
		b.ensure(func(c *Config) { c.Target = target }) // and back
		b.settles(b.apply(v1.StateClosed, "demo:c1"), ok)
		b.same(b.snapshot().Generation, int64(1))

		b.ensure(func(c *Config) { c.Target = Target{} })
		b.must(b.c.Drop())
		b.untilTrouble(v1.ReasonConnectionLost)
		clk.Step(b.waits(clk, 1, time.Hour)) // and then there is nothing to dial
		b.ensure(func(c *Config) { c.Target = target })
		b.until("it to be up", func() bool { return b.snapshot().State == v1.ConnectorUp })
		b.same(b.c.Status().Connections, 2)
	})
	t.Run("nothing to dial at first", func(t *testing.T) {
		b := start(t, setup{Options: demo(1)}).owned(always)
		target := b.config.Target
		b.ensure(func(c *Config) { c.Target = Target{Namespace: name.Namespace} })
		b.same(b.snapshot().State, v1.ConnectorConnecting)
		b.ensure(func(c *Config) { c.Target = target })
		b.registered()
		b.same(b.c.Status().Connections, 1)
	})
	t.Run("while it is dialled", func(t *testing.T) {
		gate := &gatedDialer{dialling: make(chan Target, 4), open: make(chan struct{})}
		b := start(t, setup{Options: demo(1), dialer: func(d *NetDialer) Dialer { gate.Dialer = d; return gate }}).owned(always)
		target := b.config.Target
		b.ensure(func(c *Config) { c.Target.Path = "/nothing" })
		b.same((<-gate.dialling).Path, "/nothing")
		b.ensure(func(c *Config) { c.Target = target })
		close(gate.open)
		b.registered()
		b.same(<-gate.dialling, target)
	})
}

// gatedDialer tells of each dial, and waits.
type gatedDialer struct {
	Dialer
	dialling chan Target
	open     chan struct{}
}

func (d *gatedDialer) Dial(ctx context.Context, t Target) (mcpl.Transport, error) {
	d.dialling <- t
	select {
	case <-d.open:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return d.Dialer.Dial(ctx, t)
}
