package session

import (
	"encoding/json"
	"testing"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/internal/decision"
	"mcpl.dev/operator/test/connector"
)

// said gives a channel a history of n messages.
func (b *bench) said(id string, n int) {
	var messages []connector.Message
	for range n {
		messages = append(messages, b.c.NewMessage(connector.Spoken{ChannelID: id, Text: "earlier"}))
	}
	b.c.SetHistory(id, messages...)
}

func TestAnswersThatConfirm(t *testing.T) {
	for name, test := range map[string]struct {
		state  v1.State
		answer any
		want   v1.TransportState
	}{
		"F18 an open's {}":               {v1.StateOpen, map[string]any{}, v1.TransportOpen},
		"F18 an open's {opened:true}":    {v1.StateOpen, map[string]any{"opened": true}, v1.TransportOpen},
		"an open's null":                 {v1.StateOpen, nil, v1.TransportOpen},
		"an open's text":                 {v1.StateOpen, "fine", v1.TransportOpen},
		"an open's channel without id":   {v1.StateOpen, map[string]any{"channel": map[string]any{"label": "#c1"}}, v1.TransportOpen},
		"F18 a close's {closed:false}":   {v1.StateClosed, map[string]any{"closed": false}, v1.TransportClosed},
		"a close's {}":                   {v1.StateClosed, map[string]any{}, v1.TransportClosed},
		"a close that names another one": {v1.StateClosed, map[string]any{"channel": map[string]any{"id": "demo:c2"}}, v1.TransportClosed},
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t, setup{Options: demo(1)}).owned(func(string, Channel) (bool, bool) { return false, false }).registered()
			b.c.Always(connector.On("", "demo:c1").Answering(test.answer))
			b.settles(b.apply(test.state, "demo:c1"), ok)
			b.same(b.channel("demo:c1").Transport, test.want)
		})
	}
}

func TestHistory(t *testing.T) {
	b := start(t, setup{Options: demo(1)}).owned(always).registered()
	b.said("demo:c1", 5)
	for _, test := range []struct {
		limit int
		want  History
	}{
		{3, History{Count: 3, Truncated: true}}, {5, History{Count: 5}}, {500, History{Count: 5}}, {0, History{}},
	} {
		b.decide(v1.StateOpen, "demo:c1")
		outcome, history := b.result(b.session().Apply("demo:c1", test.limit))
		b.same(outcome, ok)
		b.same(history, test.want)
		opens := b.c.Requests("channels/open", "demo:c1")
		var p struct{ History *struct{ Limit int } }
		b.must(json.Unmarshal(opens[len(opens)-1].Params, &p))
		if asked := p.History != nil; asked != (test.limit > 0) || asked && p.History.Limit != test.limit {
			t.Errorf("with a limit of %d it asks for %+v", test.limit, p.History)
		}
	}
	b.decide(v1.StateClosed, "demo:c1")
	outcome, history := b.result(b.session().Apply("demo:c1", 3))
	b.same(outcome, ok)
	b.same(history, History{}) // a close brings none
}

func TestSubstitutedAnswers(t *testing.T) {
	substituted := decision.Outcome{Failure: v1.CauseSubstituted}
	for name, rule := range map[string]connector.Rule{
		"F13 the answer names another channel":        connector.On("channels/open", "demo:c1").Substituting("demo:c2"),
		"F14 only the history is of another channel":  connector.On("channels/open", "demo:c1").SubstitutingSilently("demo:c2"),
		"the channel is right and the history is not": connector.On("channels/open", "demo:c1").Answering(map[string]any{"channel": map[string]any{"id": "demo:c1"}, "history": []any{map[string]any{"channelId": "demo:c2"}}}),
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t, setup{Options: demo(2)}).owned(always).registered()
			b.said("demo:c2", 4)
			b.c.Once(rule)
			b.decide(v1.StateOpen, "demo:c1")
			outcome, history := b.result(b.session().Apply("demo:c1", 10))
			b.same(outcome, substituted)
			b.same(history, History{})
			b.same(b.channel("demo:c1").Transport, v1.TransportUnconfirmed)
			b.same(b.channel("demo:c2").Transport, v1.TransportClosed)
			b.same(*b.channel("demo:c1").Failure, substituted)
			b.same(b.notify.told(EventOpenSubstituted), []event{{EventOpenSubstituted,
				"asked to open demo:c1, the connector opened demo:c2; nothing of its answer was used"}})
			b.same(b.c.Count("channels/open", "demo:c1"), 1)
		})
	}
	t.Run("an odd id is described", func(t *testing.T) {
		b := start(t, setup{Options: demo(1)}).owned(always).registered()
		b.c.Once(connector.On("channels/open", "demo:c1").Answering(map[string]any{"channel": map[string]any{"id": "\x1b[2J"}}))
		b.settles(b.apply(v1.StateOpen, "demo:c1"), substituted)
		b.same(b.notify.told(EventOpenSubstituted)[0].Message,
			"asked to open demo:c1, the connector opened a channel whose id is not plain text; nothing of its answer was used")
	})
	t.Run("F17 for another target: reported, and tried again", func(t *testing.T) {
		b := start(t, setup{Options: demo(2)}).owned(always).registered()
		b.said("demo:c2", 4)
		b.c.Once(connector.On("channels/open", "demo:c1").Substituting("demo:c2").AnswerHeldAt("open"))
		b.decide(v1.StateOpen, "demo:c1")
		op := b.session().Apply("demo:c1", 10)
		b.held("open", 1)
		b.retarget(1)
		b.c.Release("open")
		outcome, history := b.result(op)
		b.same(outcome, ok)
		b.same(history, History{})
		b.same(b.channel("demo:c1").Transport, v1.TransportOpen)
		b.same(b.c.Count("channels/open", "demo:c1"), 2)
		b.same(len(b.notify.told(EventOpenSubstituted)), 1)
	})
	t.Run("what came before the substituted answer is not used either", func(t *testing.T) {
		b := start(t, setup{Options: demo(2)}).owned(always).registered()
		b.said("demo:c1", 4)
		b.c.Once(
			connector.On("channels/open", "demo:c1").AnswerHeldAt("open"),
			connector.On("channels/open", "demo:c1").Substituting("demo:c2"),
		)
		b.decide(v1.StateOpen, "demo:c1")
		op := b.session().Apply("demo:c1", 10)
		b.held("open", 1)
		b.retarget(1)
		b.c.Release("open")
		outcome, history := b.result(op)
		b.same(outcome, substituted)
		b.same(history, History{})
	})
	t.Run("nor that of a channel that was removed meanwhile", func(t *testing.T) {
		b := start(t, setup{Options: demo(1)}).owned(always).registered()
		b.said("demo:c1", 4)
		b.c.Once(connector.On("channels/open", "demo:c1").AnswerHeldAt("open"))
		b.decide(v1.StateOpen, "demo:c1")
		op := b.session().Apply("demo:c1", 10)
		b.held("open", 1)
		_, err := b.c.Remove(b.ctx, connector.AsRequest, "demo:c1")
		b.must(err)
		b.c.Release("open")
		outcome, history := b.result(op)
		b.same(outcome, decision.Outcome{Failure: v1.CauseRegistrationGone})
		b.same(history, History{})
	})
	t.Run("fact 1 the id, the type and the address are named", func(t *testing.T) {
		o := demo(2)
		o.Dialect = connector.Dialect04 // which opens something else where it does not know the id
		b := start(t, setup{Options: o}).owned(always).registered()
		b.settles(b.apply(v1.StateOpen, "demo:c2"), ok)
		b.same(string(b.asked("channels/open", "demo:c2").Params), `{"channelId":"demo:c2","type":"demo","address":{"channelId":"c2"}}`)
		_, err := b.c.Remove(b.ctx, connector.Untold, "demo:c2")
		b.must(err)
		b.settles(b.apply(v1.StateOpen, "demo:c2"), substituted)
		b.same(b.channel("demo:c2").Transport, v1.TransportUnconfirmed)
	})
}
