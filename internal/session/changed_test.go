package session

import (
	"fmt"
	"testing"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/test/connector"
)

func TestChanged(t *testing.T) {
	c3 := connector.NewDescriptor("demo:c3")
	t.Run("A16 removed unknown, updated unknown, added", func(t *testing.T) {
		b := start(t, setup{Options: demo(2)}).owned(always).registered()
		verdicts, err := b.c.Changed(b.ctx, connector.AsRequest, connector.Changes{
			Removed: []string{"demo:x"}, Updated: []connector.Descriptor{connector.NewDescriptor("demo:y")}, Added: []connector.Descriptor{c3},
		})
		b.must(err)
		b.same(verdicts, []connector.Verdict{
			{ID: "demo:x", Reason: "unknown channel"}, {ID: "demo:y", Reason: "unknown channel"}, {ID: "demo:c3", Accepted: true},
		})
		b.untilIs(v1.TransportClosed, "demo:c3")
		b.same(b.snapshot().Registered, 3)
		b.same(b.notify.told(EventChannelsChanged), []event{{EventChannelsChanged, "the connector added 1 channels"}})
	})
	t.Run("removed, then updated, then added", func(t *testing.T) {
		b := start(t, setup{Options: demo(2)}).owned(always).registered()
		c1 := connector.NewDescriptor("demo:c1").Labelled("#again")
		verdicts, err := b.c.Changed(b.ctx, connector.AsRequest, connector.Changes{
			Removed: []string{"demo:c1"}, Updated: []connector.Descriptor{c1}, Added: []connector.Descriptor{c1},
		})
		b.must(err)
		b.same(verdicts, []connector.Verdict{{ID: "demo:c1", Accepted: true}, {ID: "demo:c1", Reason: "unknown channel"}, {ID: "demo:c1", Accepted: true}})
		b.untilIs(v1.TransportClosed, "demo:c1")
		b.same(b.channel("demo:c1").Descriptor.Label, "#again")
		b.same(b.wire("demo:c1"), []string{"close demo:c1", "close demo:c1"})
	})
	t.Run("F03 removed and added in one breath, with an open in flight: it goes on", func(t *testing.T) {
		b := start(t, setup{Options: demo(1)}).owned(always).registered()
		for i := range 20 {
			gate := fmt.Sprint("open", i)
			b.c.Once(connector.On("channels/open", "demo:c1").AnswerHeldAt(gate))
			op := b.apply(v1.StateOpen, "demo:c1")
			b.held(gate, 1)
			_, err := b.c.Changed(b.ctx, connector.AsRequest, connector.Changes{Removed: []string{"demo:c1"}, Added: []connector.Descriptor{elsewhere("demo:c1", i)}})
			b.must(err)
			b.c.Release(gate)
			b.settles(op, ok)
			b.rest()
		}
		b.same(b.channel("demo:c1").Transport, v1.TransportOpen)
	})
	t.Run("fact 14 as a notification", func(t *testing.T) {
		b := start(t, setup{Options: demo(2)}).owned(always).registered()
		_, err := b.c.Changed(b.ctx, connector.AsNotification, connector.Changes{Removed: []string{"demo:c1", "demo:x"}, Added: []connector.Descriptor{c3}})
		b.must(err)
		b.untilIs(v1.TransportClosed, "demo:c3")
		b.rest()
		if b.channel("demo:c1").Registered {
			t.Error("a removed channel is registered")
		}
		b.same(b.wire("demo:c1"), []string{"close demo:c1"}) // nothing is sent for a removal
	})
	t.Run("a removed channel wakes its owner", func(t *testing.T) {
		b := start(t, setup{Options: demo(1)}).owned(always).registered()
		before := b.notify.wakesOf("demo:c1")
		_, err := b.c.Remove(b.ctx, connector.AsRequest, "demo:c1")
		b.must(err)
		if b.notify.wakesOf("demo:c1") == before {
			t.Error("nobody was told")
		}
		if c := b.channel("demo:c1"); c.Registered || c.Transport != v1.TransportUnconfirmed || c.State != v1.ConnectorUp {
			t.Errorf("it is %+v", c)
		}
	})
}

func TestUpdated(t *testing.T) {
	c1 := connector.NewDescriptor("demo:c1")
	for name, test := range map[string]struct {
		update connector.Descriptor
		keeps  bool
	}{
		"another label":                 {c1.Labelled("#renamed"), true},
		"another wish for its start":    {c1.Initially(true), true},
		"another address":               {c1.At("demo", map[string]any{"channelId": "elsewhere"}), false},
		"another type":                  {c1.At("chat", c1.Address), false},
		"no address":                    {c1.At("demo", nil), false},
		"the same address with another": {c1.At("demo", map[string]any{"channelId": "c1", "thread": 1}), false},
	} {
		t.Run("§5.2 "+name, func(t *testing.T) {
			b := start(t, setup{Options: demo(1)}).owned(always)
			b.decide(v1.StateOpen, "demo:c1")
			b.registered()
			before := b.notify.wakesOf("demo:c1")
			verdicts, err := b.c.Update(b.ctx, connector.AsRequest, test.update)
			b.must(err)
			b.same(verdicts, []connector.Verdict{{ID: "demo:c1", Accepted: true}})
			b.rest()
			want := v1.TransportUnconfirmed
			if test.keeps {
				want = v1.TransportOpen
			}
			c := b.channel("demo:c1")
			b.same(c.Transport, want)
			b.same(c.Descriptor.Label, test.update.Label)
			b.same(c.Descriptor.InitiallyOpen, test.update.InitiallyOpen)
			b.sent("open demo:c1") // an update sends nothing
			if b.notify.wakesOf("demo:c1") == before {
				t.Error("nobody was told")
			}
		})
	}
}

// P19: thousands of pieces of news in a moment.
func TestStormOfNews(t *testing.T) {
	b := start(t, setup{Options: demo(3)}).owned(always)
	b.decide(v1.StateOpen, "demo:c1")
	b.registered()
	for i := range 2_000 {
		change := connector.Changes{Added: []connector.Descriptor{connector.NewDescriptor("demo:c1")}}
		if i%3 == 0 {
			change = connector.Changes{Removed: []string{"demo:c2"}, Added: []connector.Descriptor{connector.NewDescriptor("demo:c2")}}
		}
		_, err := b.c.Changed(b.ctx, connector.AsNotification, change)
		b.must(err)
		if i%100 == 0 {
			for _, id := range []string{"demo:c1", "demo:c2"} {
				if n := b.channel(id).Outstanding; n > 2 {
					t.Fatalf("%d operations are queued for %s", n, id)
				}
			}
		}
	}
	b.rest()
	b.untilIs(v1.TransportOpen, "demo:c1")
	b.untilIs(v1.TransportClosed, "demo:c2", "demo:c3")
	b.same(b.c.OpenChannels(), []string{"demo:c1"})
}
