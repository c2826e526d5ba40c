package session

import (
	"testing"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/test/connector"
)

func TestListAfterRegister(t *testing.T) {
	t.Run("fact 25 what only the list names is added", func(t *testing.T) {
		b := start(t, setup{Options: demo(4)}).owned(always)
		b.decide(v1.StateOpen, "demo:c3")
		b.c.SetListOnly(true, "demo:c2", "demo:c3")
		b.registered()
		b.untilIs(v1.TransportOpen, "demo:c3")
		b.untilIs(v1.TransportClosed, "demo:c1", "demo:c2", "demo:c4")
		b.same(b.c.Count("channels/list", ""), 1)
		b.same(len(b.wire()), 4) // what was registered is not applied a second time
		b.same(b.snapshot().Registered, 4)
	})
	t.Run("it is asked after each register, and after nothing else", func(t *testing.T) {
		b := start(t, setup{Options: demo(1)}).owned(always).registered()
		_, err := b.c.Add(b.ctx, connector.AsRequest, connector.NewDescriptor("demo:c2"))
		b.must(err)
		_, err = b.c.RegisterAll(b.ctx, connector.AsRequest)
		b.must(err)
		b.must(b.c.WaitCount(b.ctx, "channels/list", "", 2))
		b.must(b.c.Notify(b.ctx, "channels/register", map[string]any{"channels": b.c.Channels()}))
		b.must(b.c.WaitCount(b.ctx, "channels/list", "", 3))
		b.rest()
		b.same(b.c.Count("channels/list", ""), 3)
	})
	for name, rule := range map[string]connector.Rule{
		"it fails":            connector.On("channels/list", "").Failing(-32601, "what?"),
		"it is no list":       connector.On("channels/list", "").Answering(map[string]any{"channels": "none"}),
		"it is nothing":       connector.On("channels/list", "").Answering(nil),
		"it names nothing":    connector.On("channels/list", "").Answering(map[string]any{}),
		"it names odd things": connector.On("channels/list", "").Answering(map[string]any{"channels": []any{1, nil, map[string]any{}, "x"}}),
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t, setup{Options: demo(2), config: func(c *Config) { c.Window = 1 }})
			b.c.Always(rule)
			b.owned(always).registered()
			b.untilIs(v1.TransportClosed, "demo:c1", "demo:c2")
			b.same(b.snapshot().Registered, 2)
			b.settles(b.apply(v1.StateOpen, "demo:c1"), ok) // the window is free
		})
	}
}

// The answer was made before the removal, and comes, or is taken in, after it.
func TestListAndRemoval(t *testing.T) {
	b := start(t, setup{Options: demo(4)}).owned(always)
	b.c.SetListOnly(true, "demo:c3", "demo:c4")
	b.c.Once(connector.On("channels/list", "").AnswerHeldAt("list"))
	b.up()
	b.held("list", 1)
	_, err := b.c.Remove(b.ctx, connector.AsRequest, "demo:c1", "demo:c2", "demo:c3")
	b.must(err)
	_, err = b.c.Add(b.ctx, connector.AsRequest, connector.NewDescriptor("demo:c2"))
	b.must(err)
	b.c.Release("list")
	b.idle()
	b.untilIs(v1.TransportClosed, "demo:c2", "demo:c4")
	b.same([]bool{b.channel("demo:c1").Registered, b.channel("demo:c3").Registered}, []bool{false, false})
	_, err = b.c.Add(b.ctx, connector.Untold, connector.NewDescriptor("demo:c3"))
	b.must(err)
	_, err = b.c.RegisterAll(b.ctx, connector.AsRequest) // and the next list counts again
	b.must(err)
	b.untilIs(v1.TransportClosed, "demo:c3")
}

func TestListAfterReconnect(t *testing.T) {
	b := start(t, setup{Options: demo(4)}).owned(always)
	b.decide(v1.StateOpen, "demo:c2", "demo:c4")
	b.registered()
	push(b, "demo:stranger")
	// Two direct messages are named by the list alone from now on, and one channel by nobody.
	b.c.SetListOnly(true, "demo:c1", "demo:c2")
	_, err := b.c.Remove(b.ctx, connector.Untold, "demo:c3")
	b.must(err)
	b.reconnects(b.c.Drop)
	b.until("the third channel to be dropped", func() bool { return !b.channel("demo:c3").Registered })
	b.until("the pushed channel to be dropped", func() bool { return !b.channel("demo:stranger").Registered })
	b.untilIs(v1.TransportOpen, "demo:c2", "demo:c4")
	b.untilIs(v1.TransportClosed, "demo:c1")
	b.same(b.snapshot().Registered, 3)
	b.same(b.c.Count("channels/close", "demo:c3"), 1)
	b.same(b.c.Count("channels/close", "demo:c1"), 2)
}

// A list that can't be had says nothing: what was known before stays known.
func TestListMissingAfterReconnect(t *testing.T) {
	b := start(t, setup{Options: demo(2)}).owned(always).registered()
	b.c.SetListOnly(true, "demo:c2")
	b.c.Always(connector.On("channels/list", "").Failing(-32603, "busy"))
	b.reconnects(b.c.Drop)
	b.untilIs(v1.TransportClosed, "demo:c1")
	b.idle()
	if c := b.channel("demo:c2"); !c.Registered || c.Transport != v1.TransportUnconfirmed {
		t.Errorf("it is %+v", c)
	}
}

// A list that is never answered holds its own place in the window, and not for ever.
func TestListThatIsNeverAnswered(t *testing.T) {
	clk := newClock()
	b := start(t, setup{Options: demo(2), clock: clk, config: func(c *Config) { c.Window, c.RequestTimeout = 1, 0 }}).owned(always)
	b.c.Always(connector.On("channels/list", "").NeverAnswered())
	b.up()
	b.asked("channels/list", "")
	b.timer(clk, 1, exactly(lifecycleTimeout))
	b.sent()
	clk.Step(lifecycleTimeout)
	b.untilIs(v1.TransportClosed, "demo:c1", "demo:c2")
}
