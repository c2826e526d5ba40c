package session

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/internal/decision"
	"mcpl.dev/operator/internal/mcpl"
	"mcpl.dev/operator/internal/pair"
	"mcpl.dev/operator/test/connector"
)

var (
	noAnswer = decision.Outcome{Failure: v1.CauseConnectorFailed, Unknown: true}
	missing  = decision.Outcome{Failure: v1.CauseConnectorMissing}
)

func TestTransportLost(t *testing.T) {
	t.Run("I03 with an open pending and others waiting", func(t *testing.T) {
		b := start(t, setup{Options: demo(3), config: func(c *Config) { c.Window = 1 }}).owned(always)
		b.decide(v1.StateOpen, "demo:c2")
		b.registered()
		b.must(b.c.Pause()) // nobody comes back before the test has looked
		b.c.Once(connector.On("channels/open", "demo:c1").HeldAt("pending"))
		pending := b.apply(v1.StateOpen, "demo:c1")
		b.held("pending", 1)
		behind := b.session().Apply("demo:c1", 0)
		waiting := b.apply(v1.StateClosed, "demo:c2")
		b.must(b.c.Drop())
		b.settles(pending, noAnswer)
		b.settles(behind, missing)
		b.settles(waiting, missing)
		snap := b.snapshot()
		b.same(snap.State, v1.ConnectorReconnecting)
		b.same(snap.Lifecycle, false)
		b.same([]int{snap.Registered, snap.Open, snap.Outstanding, snap.Unsettled}, []int{3, 0, 0, 3})
		for _, id := range []string{"demo:c1", "demo:c2", "demo:c3"} {
			c := b.channel(id)
			if !c.Registered || c.Transport != v1.TransportUnconfirmed || c.State != v1.ConnectorReconnecting || c.Lifecycle || c.Ticket != nil {
				t.Errorf("%s is %+v", id, c)
			}
		}
		b.same(b.decisions.Record(key("demo:c1")).State, v1.StateOpen)
		b.settles(b.session().Apply("demo:c3", 0), missing)
		b.same(snap.Generation, int64(1))

		b.must(b.c.Resume(b.ctx))
		b.untilIs(v1.TransportOpen, "demo:c1")
		b.untilIs(v1.TransportClosed, "demo:c2", "demo:c3")
		b.same(b.snapshot().Generation, int64(2))
		b.same(b.snapshot().Trouble, Trouble{})
	})
	t.Run("I03 the grant is empty before the request fails", func(t *testing.T) {
		b := start(t, setup{Options: demo(1)}).owned(always).registered()
		b.must(b.c.Pause())
		b.c.Once(connector.On("channels/open", "demo:c1").HeldAt("pending"))
		pending := b.apply(v1.StateOpen, "demo:c1")
		b.held("pending", 1)
		var order []string
		s := b.session()
		s.mu.Lock() // every change wakes somebody, with this held
		s.notify = watching{s.notify, func() {
			order = append(order, map[bool]string{true: "granted", false: "empty"}[s.grant.Allows(mcpl.CapChannelsLifecycle)]+
				map[bool]string{true: ", settled", false: ", pending"}[pending.settled])
		}}
		s.mu.Unlock()
		b.must(b.c.Drop())
		b.result(pending)
		s.mu.Lock()
		defer s.mu.Unlock()
		if strings.Contains(strings.Join(order, "|"), "granted, settled") || order[0] != "empty, pending" {
			t.Errorf("in this order: %q", order)
		}
	})
	t.Run("F11 what was asked of the old connection says nothing about the new one", func(t *testing.T) {
		b := start(t, setup{Options: demo(1)}).owned(always)
		b.decide(v1.StateOpen, "demo:c1")
		b.registered()
		b.c.Once(connector.On("channels/close", "demo:c1").NeverAnswered())
		op := b.apply(v1.StateClosed, "demo:c1")
		b.asked("channels/close", "demo:c1")
		b.decide(v1.StateOpen, "demo:c1")
		b.reconnects(b.c.Drop)
		b.settles(op, noAnswer)
		b.untilIs(v1.TransportOpen, "demo:c1")
		b.same(b.c.OpenChannels(), []string{"demo:c1"})
	})
	t.Run("P18 a connector that starts over is told everything again, once", func(t *testing.T) {
		b := start(t, setup{Options: demo(20)}).owned(always)
		b.decide(v1.StateOpen, "demo:c3", "demo:c7", "demo:c20")
		b.registered()
		first := b.wire()
		b.c.Reset()
		b.reconnects(func() error { b.c.Restart(); return nil })
		b.same(b.snapshot().Open, 0)
		b.untilIs(v1.TransportOpen, "demo:c3", "demo:c7", "demo:c20")
		b.rest()
		b.sent(first...)
		b.same(b.c.OpenChannels(), []string{"demo:c20", "demo:c3", "demo:c7"})
	})
}

// watching tells of every wake-up.
type watching struct {
	Notify
	woken func()
}

func (w watching) Channel(k pair.Key) {
	w.woken()
	w.Notify.Channel(k)
}

func TestWaysToLoseIt(t *testing.T) {
	for name, test := range map[string]struct {
		lose    func(*bench) error
		message string
	}{
		"cut":                              {func(b *bench) error { return b.c.Drop() }, "connection lost"},
		"a goodbye":                        {func(b *bench) error { return b.c.Disconnect(4000, "going home") }, "connection closed by the connector with code 4000: going home"},
		"taken over":                       {func(b *bench) error { return b.c.Disconnect(4001, "taken over") }, "connection closed by the connector with code 4001: taken over"},
		"P16 cut in the middle of a frame": {func(b *bench) error { return b.c.DropMidFrame(b.ctx) }, "connection lost"},
		"P16 a message that is far too big": {func(b *bench) error {
			return b.c.SendRaw(b.ctx, `{"jsonrpc":"2.0","method":"x","params":"`+strings.Repeat("x", 10<<20)+`"}`)
		}, "connection closed: message over the size limit"},
	} {
		t.Run(name, func(t *testing.T) {
			clk := newClock()
			b := start(t, setup{Options: demo(1), clock: clk, timing: hour}).owned(always).registered()
			_ = test.lose(b) // a frame that is cut off is an error of the connector's, too
			b.same(b.untilTrouble(v1.ReasonConnectionLost), test.message)
			b.same(b.snapshot().State, v1.ConnectorReconnecting)
			b.same(b.snapshot().DisturbedAt.Equal(clk.Now()), true)
		})
	}
	t.Run("P16 half open: nothing comes, not even the answer to a ping", func(t *testing.T) {
		clk := newClock()
		b := start(t, setup{Options: demo(1), clock: clk, timing: hour, pings: true}).owned(always).registered()
		b.timer(clk, 1, exactly(10*time.Second))
		b.onlyTicks(clk)
		made := len(clk.made(exactly(30 * time.Second)))
		b.c.Freeze()
		clk.Step(10 * time.Second)
		b.timer(clk, made+1, exactly(30*time.Second))
		b.same(b.snapshot().State, v1.ConnectorUp)
		clk.Step(30 * time.Second)
		b.same(b.untilTrouble(v1.ReasonConnectionLost), "connection closed: the connector stopped answering pings")
		b.same(b.snapshot().State, v1.ConnectorReconnecting)
		b.c.Thaw()
	})
	t.Run("noise does not end it", func(t *testing.T) {
		o := demo(1)
		o.Behavior.Noise = true
		b := start(t, setup{Options: o}).owned(always).registered()
		for _, frame := range []string{"no JSON", "[1,2]", "{}", `{"jsonrpc":"2.0","id":77,"result":{}}`, `{"jsonrpc":"2.0","method":7}`, "\x00"} {
			b.must(b.c.SendRaw(b.ctx, frame))
		}
		b.settles(b.apply(v1.StateOpen, "demo:c1"), ok)
		b.same(b.snapshot().Generation, int64(1))
	})
}

// cutAfterPolicy makes connections that are lost at the moment their policy is answered.
type cutAfterPolicy struct {
	Dialer
	left    chan struct{} // one for each connection that is cut
	dialled func()
}

func (d cutAfterPolicy) Dial(ctx context.Context, t Target) (mcpl.Transport, error) {
	d.dialled()
	select {
	case <-d.left:
	default:
		return nil, &Failure{Reason: v1.ReasonDialFailed, Err: errors.New("no more")}
	}
	transport, err := d.Dialer.Dial(ctx, t)
	if err != nil {
		return nil, err
	}
	return &cutTransport{Transport: transport}, nil
}

type cutTransport struct {
	mcpl.Transport
	answered bool
}

func (c *cutTransport) Read(ctx context.Context) ([]byte, error) {
	if c.answered {
		return nil, io.ErrUnexpectedEOF
	}
	frame, err := c.Transport.Read(ctx)
	c.answered = strings.Contains(string(frame), `"accepted"`)
	return frame, err
}

// The loss may be noticed before or after the connection is made the one that counts.
func TestLostWhileItIsEstablished(t *testing.T) {
	left := make(chan struct{}, 50)
	for range cap(left) {
		left <- struct{}{}
	}
	var b *bench
	dialled := func() { // there is no connection now
		if snap := b.snapshot(); snap.State == v1.ConnectorUp || snap.Lifecycle {
			t.Errorf("without a connection it is %s", snap.State)
		}
	}
	b = start(t, setup{dialer: func(d *NetDialer) Dialer { return cutAfterPolicy{d, left, dialled} }, mayViolate: true})
	b.ensure()
	b.same(b.untilTrouble(v1.ReasonDialFailed), "no more")
	b.settles(b.session().Apply("demo:c1", 0), decision.Outcome{Failure: v1.CauseRegistrationGone})
}
