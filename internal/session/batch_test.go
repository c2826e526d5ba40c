package session

import (
	"testing"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/test/connector"
)

func TestBatchReleasesInListedOrder(t *testing.T) {
	b := start(t, setup{Options: demo(5), config: func(c *Config) { c.Window = 1 }}).up()
	list := []string{"demo:c1", "demo:c2", "demo:c3", "demo:c4", "demo:c5"}
	for _, i := range []int{4, 2, 0, 3} {
		b.ticket(list[i]).Recorded(i != 2, false)
	}
	b.sent()
	b.same(b.snapshot().Outstanding, 5)
	b.ticket(list[1]).Recorded(true, false)
	b.rest()
	b.sent("close demo:c1", "close demo:c2", "close demo:c4", "close demo:c5")
}

func TestBatchGivesOneNotice(t *testing.T) {
	o := demo(3)
	o.Channels[2].Label = ""
	b := start(t, setup{Options: o}).up()
	b.decide(v1.StateOpen, "demo:c1", "demo:c2", "demo:c3")
	b.ticket("demo:c3").Recorded(true, true)
	b.ticket("demo:c1").Recorded(true, true)
	b.same(len(b.notify.given()), 0)
	b.ticket("demo:c2").Recorded(true, false)
	b.rest()
	b.same(b.notify.given(), []notice{{Labels: []string{"#c1", "demo:c3"}}}) // and no open was answered before it
	_, err := b.c.RegisterAll(b.ctx, connector.AsRequest)
	b.must(err)
	for _, id := range []string{"demo:c1", "demo:c2", "demo:c3"} {
		b.ticket(id).Recorded(true, false)
	}
	b.rest()
	b.same(len(b.notify.given()), 1)
}

func TestNoticeIsNotStale(t *testing.T) {
	b := start(t, setup{Options: demo(3)}).up()
	b.decide(v1.StateOpen, "demo:c1", "demo:c2", "demo:c3")
	b.ticket("demo:c1").Recorded(true, true)
	b.ticket("demo:c2").Recorded(true, true)
	b.settles(b.apply(v1.StateClosed, "demo:c2"), ok) // A15: somebody closes it meanwhile
	b.ticket("demo:c3").Recorded(true, true)
	b.rest()
	b.same(b.notify.given(), []notice{{Labels: []string{"#c1", "#c3"}}})
	b.same(b.c.OpenChannels(), []string{"demo:c1", "demo:c3"})
}

// The record already says that the notice was given, so nothing gives it a second time.
func TestNoticeIsNotLost(t *testing.T) {
	t.Run("when the connection is lost before the batch is complete", func(t *testing.T) {
		b := start(t, setup{Options: demo(2)}).up()
		b.decide(v1.StateOpen, "demo:c1")
		b.ticket("demo:c1").Recorded(true, true)
		b.ticket("demo:c2")
		b.must(b.c.Drop())
		b.until("the notice", func() bool { return len(b.notify.given()) == 1 })
		b.same(b.notify.given()[0].Labels, []string{"#c1"})
	})
	t.Run("when the rules change before the batch is complete", func(t *testing.T) {
		b := start(t, setup{Options: demo(2)}).up()
		b.decide(v1.StateOpen, "demo:c1")
		b.ticket("demo:c1").Recorded(true, true)
		b.ticket("demo:c2")
		b.ensure(otherRules)
		b.same(b.notify.given(), []notice{{Labels: []string{"#c1"}}})
	})
	t.Run("when the channel is registered again before its owner answers", func(t *testing.T) {
		b := start(t, setup{Options: demo(1)}).up()
		b.decide(v1.StateOpen, "demo:c1")
		old := b.ticket("demo:c1")
		_, err := b.c.RegisterAll(b.ctx, connector.AsRequest)
		b.must(err)
		b.flush()
		old.Recorded(true, true)
		b.ticket("demo:c1").Recorded(true, false)
		b.until("the notice", func() bool { return len(b.notify.given()) == 1 })
		b.same(b.notify.given()[0].Labels, []string{"#c1"})
		b.rest()
		b.sent("open demo:c1")
	})
}

func TestTickets(t *testing.T) {
	t.Run("one that is released does not hold the others up", func(t *testing.T) {
		b := start(t, setup{Options: demo(3)}).up()
		b.ticket("demo:c1").Recorded(true, false)
		b.ticket("demo:c3").Recorded(true, false)
		b.ticket("demo:c2").Released()
		b.rest()
		b.sent("close demo:c1", "close demo:c3")
		if c := b.channel("demo:c2"); c.Ticket != nil || c.Transport != v1.TransportUnconfirmed {
			t.Errorf("its owner goes on with %+v", c)
		}
	})
	t.Run("one counts once", func(t *testing.T) {
		b := start(t, setup{Options: demo(2)}).up()
		first := b.ticket("demo:c1")
		first.Released()
		first.Released()
		first.Recorded(true, false)
		b.flush()
		b.sent()
		b.ticket("demo:c2").Recorded(true, false)
		b.rest()
		b.sent("close demo:c2")
	})
	t.Run("a channel that is removed does not hold the others up", func(t *testing.T) {
		b := start(t, setup{Options: demo(2)}).listed()
		old := b.ticket("demo:c1")
		b.ticket("demo:c2").Recorded(true, false)
		_, err := b.c.Remove(b.ctx, connector.AsRequest, "demo:c1")
		b.must(err)
		b.rest()
		old.Recorded(true, false)
		b.sent("close demo:c2")
	})
	t.Run("a channel that is registered again moves to the new batch", func(t *testing.T) {
		b := start(t, setup{Options: demo(2)}).up()
		old := b.ticket("demo:c1")
		b.ticket("demo:c2").Recorded(true, false)
		_, err := b.c.Add(b.ctx, connector.AsRequest, connector.NewDescriptor("demo:c1"))
		b.must(err)
		b.untilIs(v1.TransportClosed, "demo:c2")
		old.Recorded(true, false)
		b.sent("close demo:c2")
		b.ticket("demo:c1").Recorded(true, false)
		b.rest()
		b.sent("close demo:c2", "close demo:c1")
	})
	t.Run("what was recorded of an older entry does not apply to its successor", func(t *testing.T) {
		b := start(t, setup{Options: demo(2)}).listed()
		b.ticket("demo:c1").Recorded(true, false)
		b.ticket("demo:c2")
		_, err := b.c.Add(b.ctx, connector.AsRequest, connector.NewDescriptor("demo:c1"))
		b.must(err)
		b.flush()
		b.ticket("demo:c2").Recorded(true, false)
		b.untilIs(v1.TransportClosed, "demo:c2")
		b.sent("close demo:c2")
		b.ticket("demo:c1").Recorded(false, false)
		b.flush()
		b.sent("close demo:c2")
	})
	t.Run("those of a lost connection are nothing for the next one", func(t *testing.T) {
		b := start(t, setup{Options: demo(2)}).up()
		b.ticket("demo:c1").Recorded(true, false)
		old := b.ticket("demo:c2")
		b.must(b.c.Drop())
		b.until("the next connection's registration", func() bool {
			next := b.channel("demo:c2").Ticket
			return next != nil && next != old
		})
		old.Recorded(true, false)
		b.flush()
		b.sent()
		b.ticket("demo:c1").Recorded(true, false)
		b.ticket("demo:c2").Recorded(true, false)
		b.rest()
		b.sent("close demo:c1", "close demo:c2")
	})
	t.Run("batches do not wait for each other", func(t *testing.T) {
		b := start(t, setup{Options: demo(2)}).up()
		b.ticket("demo:c1")
		_, err := b.c.Add(b.ctx, connector.AsRequest, connector.NewDescriptor("demo:c3"))
		b.must(err)
		b.ticket("demo:c3").Recorded(true, false)
		b.untilIs(v1.TransportClosed, "demo:c3")
		b.sent("close demo:c3")
	})
}

// A connector that registers again and again faster than it answers.
func TestRegistrationsDoNotPileUp(t *testing.T) {
	o := demo(3)
	b := start(t, setup{Options: o, config: func(c *Config) { c.Window = 2 }}).owned(always)
	b.c.Always(connector.On("channels/close", "demo:c1").HeldAt("slow"))
	b.up()
	b.held("slow", 1)
	for range 50 {
		_, err := b.c.RegisterAll(b.ctx, connector.AsRequest)
		b.must(err)
		b.flush()
		b.until("the owners to have recorded it", func() bool {
			return b.channel("demo:c1").Ticket == nil && b.channel("demo:c2").Ticket == nil && b.channel("demo:c3").Ticket == nil
		})
	}
	for _, id := range []string{"demo:c1", "demo:c2", "demo:c3"} {
		if n := b.channel(id).Outstanding; n > 2 {
			t.Errorf("%d operations are queued for %s, want one beside that in flight", n, id)
		}
	}
	s := b.session()
	s.mu.Lock()
	waiting := len(s.window.waiting[people]) + len(s.window.waiting[catchUp])
	s.mu.Unlock()
	if waiting > 10 {
		t.Errorf("%d jobs wait for the window", waiting)
	}
	b.c.Release("slow")
	b.rest()
	b.untilIs(v1.TransportClosed, "demo:c1", "demo:c2", "demo:c3")
}
