package session

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/internal/decision"
	"mcpl.dev/operator/test/connector"
)

// elsewhere is the n-th address of a channel.
func elsewhere(id string, n int) connector.Descriptor {
	return connector.NewDescriptor(id).At("demo", map[string]any{"channelId": fmt.Sprint("place", n)})
}

// addressOf is the address that a request named.
func addressOf(t *testing.T, e connector.Entry) string {
	t.Helper()
	var p struct{ Address map[string]string }
	if err := json.Unmarshal(e.Params, &p); err != nil {
		t.Fatal(err)
	}
	return p.Address["channelId"]
}

// retarget moves the first channel to its n-th address, and waits until the session has taken that in.
func (b *bench) retarget(n int) {
	b.Helper()
	_, err := b.c.Update(b.ctx, connector.AsRequest, elsewhere("demo:c1", n))
	b.must(err)
}

func TestNewestDecisionWins(t *testing.T) {
	t.Run("F01 a default close is in flight when open is decided", func(t *testing.T) {
		b := start(t, setup{Options: demo(1)}).owned(always)
		b.c.Once(connector.On("channels/close", "demo:c1").HeldAt("close"))
		b.up()
		b.held("close", 1)
		op := b.apply(v1.StateOpen, "demo:c1")
		b.c.Release("close")
		b.settles(op, ok)
		b.rest()
		b.sent("close demo:c1", "open demo:c1", "open demo:c1")
		b.same(b.channel("demo:c1").Transport, v1.TransportOpen)
		b.same(b.c.OpenChannels(), []string{"demo:c1"})
	})
	for name, states := range map[string][]v1.State{
		"F02 open, then close": {v1.StateOpen, v1.StateClosed}, "F02 close, then open": {v1.StateClosed, v1.StateOpen},
	} {
		for where, rule := range map[string]func(connector.Rule) connector.Rule{
			"before it is carried out": func(r connector.Rule) connector.Rule { return r.HeldAt("first") },
			"after it is carried out":  func(r connector.Rule) connector.Rule { return r.AnswerHeldAt("first") },
		} {
			t.Run(name+" "+where, func(t *testing.T) {
				b := start(t, setup{Options: demo(1)}).owned(always).registered()
				b.c.Once(rule(connector.On("", "demo:c1")))
				first := b.apply(states[0], "demo:c1")
				b.held("first", 1)
				second := b.apply(states[1], "demo:c1")
				b.c.Release("first")
				b.settles(first, ok)
				b.settles(second, ok)
				wants := states[1] == v1.StateOpen
				b.same(b.c.IsOpen("demo:c1"), wants)
				b.same(b.channel("demo:c1").Transport == v1.TransportOpen, wants)
				last := b.wire()[len(b.wire())-1]
				b.same(strings.HasPrefix(last, "open"), wants)
			})
		}
	}
	t.Run("F09 four supersessions, then it stays", func(t *testing.T) {
		b, op := superseding(t, 4)
		b.settles(op, ok)
		b.sent("close demo:c1", "open demo:c1", "close demo:c1", "open demo:c1", "close demo:c1", "open demo:c1")
		c := b.channel("demo:c1")
		if c.Transport != v1.TransportOpen || c.Failure != nil {
			t.Errorf("it is %+v", c)
		}
	})
	t.Run("§8.2 five are too many", func(t *testing.T) {
		b, op := superseding(t, 5)
		b.settles(op, decision.Outcome{Failure: v1.CauseDidNotConverge})
		b.same(len(b.wire()), 6) // the one of the registration, and five
		c := b.channel("demo:c1")
		if c.Transport != v1.TransportOpen || c.Failure == nil || c.Failure.Failure != v1.CauseDidNotConverge || c.FailedOpening {
			t.Errorf("T is what the last receipt made of it; it is %+v", c)
		}
		b.settles(b.apply(v1.StateClosed, "demo:c1"), ok) // F10: a later one has a fresh budget
		b.same(b.channel("demo:c1").Failure, (*decision.Outcome)(nil))
	})
}

// superseding has the decision about a channel change n times, each time while a request is answered.
func superseding(t *testing.T, n int) (*bench, *Operation) {
	b := start(t, setup{Options: demo(1)}).owned(always).registered()
	for i := range n {
		b.c.Once(connector.On("", "demo:c1").AnswerHeldAt(fmt.Sprint("answer", i)))
	}
	op := b.apply(v1.StateOpen, "demo:c1")
	for i := range n {
		b.held(fmt.Sprint("answer", i), 1)
		b.decide([]v1.State{v1.StateClosed, v1.StateOpen}[i%2], "demo:c1")
		b.c.Release(fmt.Sprint("answer", i))
	}
	return b, op
}

func TestRegistrationMeetsWork(t *testing.T) {
	t.Run("F03 removed and added elsewhere while a close is in flight", func(t *testing.T) {
		b := start(t, setup{Options: demo(1)}).owned(always)
		b.c.Once(connector.On("channels/close", "demo:c1").HeldAt("close").Beside())
		b.listed()
		b.held("close", 1)
		op := b.apply(v1.StateOpen, "demo:c1")
		_, err := b.c.Remove(b.ctx, connector.AsRequest, "demo:c1")
		b.must(err)
		_, err = b.c.Add(b.ctx, connector.AsRequest, elsewhere("demo:c1", 1))
		b.must(err)
		b.c.Release("close")
		b.settles(op, ok)
		b.rest()
		b.same(b.channel("demo:c1").Transport, v1.TransportOpen)
		b.same(b.c.IsOpen("demo:c1"), true)
		requests := b.c.Requests("", "demo:c1")
		last := requests[len(requests)-1]
		b.same(last.Method, "channels/open")
		b.same(addressOf(t, last), "place1")
	})
	t.Run("F04 removed while an open waits for its turn", func(t *testing.T) {
		b := start(t, setup{Options: demo(2), config: func(c *Config) { c.Window = 1 }}).owned(always).registered()
		b.c.Once(connector.On("channels/close", "demo:c2").HeldAt("busy"))
		busy := b.session().Apply("demo:c2", 0)
		b.held("busy", 1)
		op := b.apply(v1.StateOpen, "demo:c1")
		_, err := b.c.Remove(b.ctx, connector.AsRequest, "demo:c1")
		b.must(err)
		b.c.Release("busy")
		b.settles(op, decision.Outcome{Failure: v1.CauseRegistrationGone})
		b.settles(busy, ok)
		b.same(b.c.Count("channels/open", ""), 0)
		b.same(b.channel("demo:c1").Registered, false)
		b.same(b.channel("demo:c1").Outstanding, 0)
	})
	t.Run("F04 removed while an open is in flight", func(t *testing.T) {
		b := start(t, setup{Options: demo(1)}).owned(always).registered()
		b.c.Once(connector.On("channels/open", "demo:c1").HeldAt("open"))
		op := b.apply(v1.StateOpen, "demo:c1")
		b.held("open", 1)
		next := b.session().Apply("demo:c1", 0)
		_, err := b.c.Remove(b.ctx, connector.AsRequest, "demo:c1")
		b.must(err)
		b.c.Release("open")
		b.result(op) // the connector may have opened it, or not found it
		b.settles(next, decision.Outcome{Failure: v1.CauseRegistrationGone})
		b.same(b.c.Count("channels/open", "demo:c1"), 1)
		b.same(b.channel("demo:c1").Registered, false)
	})
	t.Run("an operation for a channel that nobody registered", func(t *testing.T) {
		b := start(t, setup{}).up()
		b.settles(b.apply(v1.StateOpen, "demo:x"), decision.Outcome{Failure: v1.CauseRegistrationGone})
		b.sent()
	})
	t.Run("registered again while a failing open is in flight: the new entry has not failed", func(t *testing.T) {
		b := start(t, setup{Options: demo(1)}).owned(func(string, Channel) (bool, bool) { return false, false }).registered()
		b.c.Once(connector.On("channels/open", "demo:c1").HeldAt("open").Failing(-32000, "no"))
		op := b.apply(v1.StateOpen, "demo:c1")
		b.held("open", 1)
		_, err := b.c.Add(b.ctx, connector.AsRequest, connector.NewDescriptor("demo:c1"))
		b.must(err)
		b.c.Release("open")
		b.settles(op, decision.Outcome{Failure: v1.CauseConnectorFailed, Detail: "no (-32000)"})
		b.same(b.channel("demo:c1").Failure, (*decision.Outcome)(nil))
	})
}

func TestTargetChangesInFlight(t *testing.T) {
	t.Run("F07 another address: a second open with that", func(t *testing.T) {
		b := start(t, setup{Options: demo(1)}).owned(always).registered()
		b.c.Once(connector.On("channels/open", "demo:c1").AnswerHeldAt("open"))
		op := b.apply(v1.StateOpen, "demo:c1")
		b.held("open", 1)
		b.retarget(1)
		b.c.Release("open")
		b.settles(op, ok)
		opens := b.c.Requests("channels/open", "demo:c1")
		b.same(len(opens), 2)
		b.same([]string{addressOf(t, opens[0]), addressOf(t, opens[1])}, []string{"c1", "place1"})
		b.same(b.channel("demo:c1").Transport, v1.TransportOpen)
	})
	t.Run("F07 another label: no second open", func(t *testing.T) {
		b := start(t, setup{Options: demo(1)}).owned(always).registered()
		b.c.Once(connector.On("channels/open", "demo:c1").AnswerHeldAt("open"))
		op := b.apply(v1.StateOpen, "demo:c1")
		b.held("open", 1)
		_, err := b.c.Update(b.ctx, connector.AsRequest, connector.NewDescriptor("demo:c1").Labelled("#renamed"))
		b.must(err)
		b.c.Release("open")
		b.settles(op, ok)
		b.same(b.c.Count("channels/open", "demo:c1"), 1)
		b.same(b.channel("demo:c1").Transport, v1.TransportOpen)
	})
	t.Run("F08 another address at every receipt: five requests, and no more", func(t *testing.T) {
		b := start(t, setup{Options: demo(1)}).owned(always).registered()
		for i := range 5 {
			b.c.Once(connector.On("channels/open", "demo:c1").AnswerHeldAt(fmt.Sprint("open", i)))
		}
		op := b.apply(v1.StateOpen, "demo:c1")
		next := b.session().Apply("demo:c1", 0)
		for i := range 5 {
			b.held(fmt.Sprint("open", i), 1)
			b.retarget(i + 1)
			b.c.Once(connector.On("channels/open", "demo:c1")) // what comes next, plainly
			b.c.Release(fmt.Sprint("open", i))
		}
		b.settles(op, decision.Outcome{Failure: v1.CauseDidNotConverge})
		b.settles(next, ok) // the queue is released, and a later operation has a fresh budget
		b.same(b.c.Count("channels/open", "demo:c1"), 6)
		b.same(b.decisions.Record(key("demo:c1")).State, v1.StateOpen)
		b.same(b.channel("demo:c1").Transport, v1.TransportOpen)
	})
	t.Run("F12 the open for the new address fails: the old confirmation is not used again", func(t *testing.T) {
		b := start(t, setup{Options: demo(1)}).owned(always)
		b.decide(v1.StateOpen, "demo:c1")
		b.registered()
		b.retarget(1)
		b.c.Once(connector.On("channels/open", "demo:c1").Failing(-32024, "full"))
		b.settles(b.session().Apply("demo:c1", 0), decision.Outcome{Failure: v1.CauseConnectorFailed, Detail: "full (-32024)"})
		c := b.channel("demo:c1")
		if c.Transport != v1.TransportUnconfirmed || c.Failure == nil || !c.FailedOpening {
			t.Errorf("it is %+v", c)
		}
	})
}

func TestFailures(t *testing.T) {
	t.Run("F05 the successor of a failed operation runs", func(t *testing.T) {
		b := start(t, setup{Options: demo(1)}).owned(always).registered()
		b.c.Once(connector.On("channels/open", "demo:c1").HeldAt("open").Failing(-32000, "no such place"))
		first := b.apply(v1.StateOpen, "demo:c1")
		b.held("open", 1)
		second := b.session().Apply("demo:c1", 0)
		b.c.Release("open")
		b.settles(first, decision.Outcome{Failure: v1.CauseConnectorFailed, Detail: "no such place (-32000)"})
		b.settles(second, ok)
		b.same(b.c.Count("channels/open", "demo:c1"), 2)
		b.same(b.channel("demo:c1").Failure, (*decision.Outcome)(nil))
	})
	t.Run("§8.2 a failed redundant open leaves it open", func(t *testing.T) {
		b := start(t, setup{Options: demo(1)}).owned(always)
		b.decide(v1.StateOpen, "demo:c1")
		b.registered()
		b.c.Once(connector.On("channels/open", "demo:c1").WantingHistory().Failing(-32603, "history"))
		b.settles(b.session().Apply("demo:c1", 10), decision.Outcome{Failure: v1.CauseConnectorFailed, Detail: "history (-32603)"})
		b.same(b.channel("demo:c1").Transport, v1.TransportOpen)
	})
	t.Run("§8.2 a failed close leaves it open, and is not tried again", func(t *testing.T) {
		b := start(t, setup{Options: demo(1)}).owned(always)
		b.decide(v1.StateOpen, "demo:c1")
		b.registered()
		b.c.Once(connector.On("channels/close", "demo:c1").Failing(-32603, "busy"))
		b.settles(b.apply(v1.StateClosed, "demo:c1"), decision.Outcome{Failure: v1.CauseConnectorFailed, Detail: "busy (-32603)"})
		c := b.channel("demo:c1")
		if c.Transport != v1.TransportOpen || c.Failure == nil || c.FailedOpening {
			t.Errorf("it is %+v", c)
		}
		b.same(b.c.Count("channels/close", "demo:c1"), 1)
		b.same(b.snapshot().Unsettled, 1)
		incoming(b, "demo:c1")
		b.same(b.channel("demo:c1").Failure != nil, true) // it is open as it was: no news
	})
	t.Run("a failure is past when something is confirmed", func(t *testing.T) {
		b := start(t, setup{Options: demo(1)}).owned(always)
		b.c.Once(connector.On("channels/open", "demo:c1").Failing(-32000, "no"))
		b.decide(v1.StateOpen, "demo:c1")
		b.registered()
		b.same(b.channel("demo:c1").FailedOpening, true)
		incoming(b, "demo:c1")
		b.same(b.channel("demo:c1").Failure, (*decision.Outcome)(nil))
	})
	t.Run("§8.2 what already is so is sent all the same", func(t *testing.T) {
		b := start(t, setup{Options: demo(1)}).owned(always).registered()
		for range 2 {
			b.settles(b.apply(v1.StateClosed, "demo:c1"), ok)
		}
		for range 2 {
			b.settles(b.apply(v1.StateOpen, "demo:c1"), ok)
		}
		b.sent("close demo:c1", "close demo:c1", "close demo:c1", "open demo:c1", "open demo:c1")
	})
}
