package session

import (
	"testing"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/test/connector"
)

// otherRules are others than at first, for all that a session knows.
func otherRules(c *Config) { c.Admission = "auto" }

func TestAdmissionChange(t *testing.T) {
	t.Run("declared channels are judged again, and only what is due is sent", func(t *testing.T) {
		b := start(t, setup{Options: demo(4)}).owned(func(id string, _ Channel) (bool, bool) { return true, id == "demo:c3" })
		b.decide(v1.StateOpen, "demo:c1")
		b.registered()
		push(b, "demo:dm")
		b.sent("open demo:c1", "close demo:c2", "close demo:c3", "close demo:c4")
		b.c.Reset()
		notices := len(b.notify.given())
		b.decide(v1.StateOpen, "demo:c3", "demo:c2") // as the owners would by the new rules
		b.ensure(otherRules)
		b.rest()
		b.sent("open demo:c2", "open demo:c3")
		b.same(b.notify.given()[notices:], []notice{{Labels: []string{"#c3"}}})
		b.same(b.channel("demo:dm").Ticket, (*Ticket)(nil))
		b.same(b.c.Count("channels/list", ""), 0)
	})
	t.Run("the same rules are no change", func(t *testing.T) {
		b := start(t, setup{Options: demo(1)}).owned(always).registered()
		before := b.notify.wakesOf("demo:c1")
		b.ensure(func(c *Config) { c.Window = 2 })
		b.same(b.notify.wakesOf("demo:c1"), before)
	})
	t.Run("what is unconfirmed is due", func(t *testing.T) {
		b := start(t, setup{Options: demo(1)}).owned(always)
		b.decide(v1.StateOpen, "demo:c1")
		b.registered()
		_, err := b.c.Update(b.ctx, connector.AsRequest, connector.NewDescriptor("demo:c1").At("demo", map[string]any{"channelId": "new"}))
		b.must(err)
		b.ensure(otherRules)
		b.untilIs(v1.TransportOpen, "demo:c1")
	})
	t.Run("§5.4 what has work under way is due", func(t *testing.T) {
		b := start(t, setup{Options: demo(2)}).owned(always)
		b.decide(v1.StateOpen, "demo:c1")
		b.registered()
		b.c.Once(connector.On("channels/open", "demo:c1").HeldAt("once more"))
		b.session().Apply("demo:c1", 0)
		b.held("once more", 1)
		b.same(b.snapshot().Unsettled, 1)
		b.ensure(otherRules)
		b.until("it to be judged", func() bool { return b.channel("demo:c1").Ticket == nil && b.channel("demo:c2").Ticket == nil })
		b.same(b.channel("demo:c1").Outstanding, 2)
		b.c.Release("once more")
		b.rest()
		b.sent("open demo:c1", "close demo:c2", "open demo:c1", "open demo:c1")
	})
	t.Run("it takes over from a registration that is under way", func(t *testing.T) {
		b := start(t, setup{Options: demo(2)}).up()
		old := b.ticket("demo:c1")
		b.ticket("demo:c2").Recorded(true, false)
		b.ensure(otherRules) // what was recorded before is applied
		old.Recorded(true, false)
		b.same(b.channel("demo:c1").Outstanding, 0)
		b.ticket("demo:c1").Recorded(true, false)
		b.same(b.channel("demo:c2").Ticket != nil, true)
		b.ticket("demo:c2").Recorded(true, false)
		b.rest()
		b.untilIs(v1.TransportClosed, "demo:c1", "demo:c2")
	})
	t.Run("§5.4 before the connector has registered, there is nothing to judge", func(t *testing.T) {
		b := start(t, setup{Options: demo(2)}).owned(always).registered()
		b.c.Change(func(how *connector.Behavior) { how.Register = connector.RegisterNever })
		generation := b.snapshot().Generation
		b.must(b.c.Drop())
		b.until("the next connection", func() bool { s := b.snapshot(); return s.Generation > generation && s.State == v1.ConnectorUp })
		b.c.Reset()
		b.ensure(otherRules)
		b.rest()
		b.sent()
		_, err := b.c.RegisterAll(b.ctx, connector.AsRequest)
		b.must(err)
		b.untilIs(v1.TransportClosed, "demo:c1", "demo:c2")
	})
	t.Run("nor while there is no connection", func(t *testing.T) {
		b := start(t, setup{Options: demo(1)}).owned(always).registered()
		b.must(b.c.Pause())
		b.must(b.c.Drop())
		b.until("the connection to be lost", func() bool { return b.snapshot().State == v1.ConnectorReconnecting })
		b.ensure(otherRules)
		b.same(b.channel("demo:c1").Ticket, (*Ticket)(nil))
		b.must(b.c.Resume(b.ctx))
		b.untilIs(v1.TransportClosed, "demo:c1")
	})
}
