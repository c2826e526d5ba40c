package connector

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/coder/websocket"
)

const (
	one = "demo:c1"
	two = "demo:c2"
)

func TestRulesAnswerInsteadOfThePlainAnswer(t *testing.T) {
	tests := map[string]struct {
		rule   Rule
		method string
		result string // JSON; "" for an error
		code   int
		open   []string
	}{
		"an open fails": {
			rule: On("channels/open", one).Failing(-32024, "open failed"), method: "channels/open",
			code: -32024, open: []string{},
		},
		"an open fails after it was carried out": {
			rule: On("channels/open", one).FailingAfterwards(-32603, "late"), method: "channels/open",
			code: -32603, open: []string{one},
		},
		"an open is answered {}": {
			rule: On("channels/open", one).Answering(struct{}{}), method: "channels/open",
			result: `{}`, open: []string{one},
		},
		"an open is answered {opened:true} and not carried out": {
			rule:   On("channels/open", "").Answering(map[string]bool{"opened": true}).NotApplied(),
			method: "channels/open", result: `{"opened":true}`, open: []string{},
		},
		"a close is answered {closed:false}": {
			rule: On("channels/close", one).Answering(json.RawMessage(`{"closed":false}`)), method: "channels/close",
			result: `{"closed":false}`, open: []string{},
		},
		"a publish is answered delivered:false": {
			rule:   On("channels/publish", one).Answering(map[string]bool{"delivered": false}),
			method: "channels/publish", result: `{"delivered":false}`, open: []string{},
		},
		"an acknowledgment fails": {
			rule: On("channels/acknowledge", one).Failing(-32000, "no"), method: "channels/acknowledge",
			code: -32000, open: []string{},
		},
		"a method that is not served": {
			rule: On("tools/call", "").Answering(map[string]string{"said": "yes"}), method: "tools/call",
			result: `{"said":"yes"}`, open: []string{},
		},
		"a rule for another channel": {
			rule: On("channels/close", two).Failing(-32000, "no"), method: "channels/close",
			result: `{"closed":true}`, open: []string{},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := start(t, Options{Channels: Generate("demo", 2)})
			h := connect(t, c)
			c.Once(test.rule)
			m := h.call(test.method, openParamsOf(one))
			if test.code != 0 {
				if m.Error == nil || m.Error.Code != test.code {
					t.Errorf("want error %d, got %s %v", test.code, m.Result, m.Error)
				}
			} else if string(m.Result) != test.result {
				t.Errorf("want %s, got %s %v", test.result, m.Result, m.Error)
			}
			if got := c.OpenChannels(); !slices.Equal(got, test.open) {
				t.Errorf("want open %q, got %q", test.open, got)
			}
		})
	}
}

func TestRulesAreTakenInOrderAndStandingOnesByCloseness(t *testing.T) {
	c := start(t, Options{Channels: Generate("demo", 2)})
	h := connect(t, c)
	c.Always(
		On("", "").Failing(1, "all"),
		On("", one).Failing(2, "channel"),
		On("channels/open", "").Failing(3, "method"),
		On("channels/open", one).Failing(9, "replaced"),
		On("channels/open", one).Failing(4, "both"),
	)
	c.Once(On("channels/open", one).Failing(5, "first"), On("", "").Failing(6, "second"))
	want := []struct {
		method, channel string
		code            int
	}{
		{"channels/open", one, 5},
		{"channels/list", "", 6},
		{"channels/open", one, 4},
		{"channels/open", two, 3},
		{"channels/close", one, 2},
		{"channels/list", "", 1},
	}
	for _, w := range want {
		if unused := c.UnusedRules(); w.code < 5 && len(unused) > 0 {
			t.Errorf("unused: %v", unused)
		}
		m := h.call(w.method, params{"channelId": w.channel})
		if m.Error == nil || m.Error.Code != w.code {
			t.Errorf("%s %s: want error %d, got %v", w.method, w.channel, w.code, m.Error)
		}
	}
	c.ClearRules()
	if m := h.open(one); m.Error != nil {
		t.Error(m.Error)
	}
}

func TestRuleForOpensThatWantHistory(t *testing.T) {
	c := start(t, Options{Channels: Generate("demo", 1)})
	h := connect(t, c)
	c.Always(On("channels/open", one).WantingHistory().Failing(-32603, "no history"))
	p := openParamsOf(one)
	p["history"] = params{"limit": 10}
	if m := h.call("channels/open", p); m.Error == nil || c.IsOpen(one) {
		t.Errorf("an open whose history fails is answered %s, open %t", m.Result, c.IsOpen(one))
	}
	if m := h.open(one); m.Error != nil || !c.IsOpen(one) {
		t.Errorf("an open without history is answered %v, open %t", m.Error, c.IsOpen(one))
	}
}

func TestSubstitution(t *testing.T) {
	for name, test := range map[string]struct {
		rule        Rule
		instead     string
		withChannel bool
	}{
		"by the channel":         {On("channels/open", one).Substituting(two), two, true},
		"by one that is unknown": {On("channels/open", one).Substituting("demo:else"), "demo:else", true},
		"by the history":         {On("channels/open", one).SubstitutingSilently(two), two, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t, Options{Channels: Generate("demo", 2)})
			h := connect(t, c)
			c.Once(test.rule)
			answer := into[struct {
				Channel *Descriptor
				History []Message
			}](t, h.open(one))
			if test.withChannel {
				if answer.Channel == nil || answer.Channel.ID != test.instead {
					t.Errorf("want an answer for %s, got %+v", test.instead, answer.Channel)
				}
			} else if answer.Channel != nil || len(answer.History) == 0 || answer.History[0].ChannelID != test.instead {
				t.Errorf("want a history of %s and no channel, got %+v", test.instead, answer)
			}
			if got := c.OpenChannels(); !slices.Equal(got, []string{test.instead}) {
				t.Errorf("open: %q", got)
			}
		})
	}
}

func TestRequestsAreServedOneAfterAnother(t *testing.T) {
	ctx := testContext(t)
	c := start(t, Options{Channels: Generate("demo", 2)})
	h := connect(t, c)
	c.Once(On("channels/open", one).HeldAt("gate"))
	first := h.begin("channels/open", openParamsOf(one))
	if err := c.WaitHeld(ctx, "gate", 1); err != nil {
		t.Fatal(err)
	}
	second := h.begin("channels/open", openParamsOf(two))
	if _, err := c.Wait(ctx, Asked("channels/open", two), 1); err != nil {
		t.Fatal(err)
	}
	if got := c.OpenChannels(); len(got) > 0 {
		t.Errorf("open while the first one is held: %q", got)
	}
	c.Release("gate")
	h.await(first)
	h.await(second)
	var order []string
	for _, e := range c.Entries(Answered("channels/open", "")) {
		order = append(order, e.ChannelID)
	}
	if !slices.Equal(order, []string{one, two}) {
		t.Errorf("answered in the order %q", order)
	}
}

func TestARequestThatWaitsBesideLetsOthersPass(t *testing.T) {
	ctx := testContext(t)
	c := start(t, Options{Channels: Generate("demo", 2)})
	h := connect(t, c)
	c.Once(On("channels/open", one).HeldAt("gate").Beside())
	first := h.begin("channels/open", openParamsOf(one))
	if m := h.open(two); m.Error != nil {
		t.Fatal(m.Error)
	}
	if err := c.WaitHeld(ctx, "gate", 1); err != nil {
		t.Fatal(err)
	}
	if c.IsOpen(one) {
		t.Error("what is held is open")
	}
	c.Release("gate")
	h.await(first)
	if !c.IsOpen(one) {
		t.Error("what was released is not open")
	}
}

func TestAHeldAnswerIsCarriedOutBefore(t *testing.T) {
	ctx := testContext(t)
	c := start(t, Options{Channels: Generate("demo", 1)})
	h := connect(t, c)
	c.Once(On("channels/open", one).AnswerHeldAt("gate"))
	answer := h.begin("channels/open", openParamsOf(one))
	if err := c.WaitOpen(ctx, one, true); err != nil {
		t.Fatal(err)
	}
	if got := c.Entries(Answered("channels/open", one)); len(got) > 0 {
		t.Errorf("answered while held: %v", got)
	}
	c.Release("gate")
	h.await(answer)

	// The gate is open for good, until it is closed again.
	c.Once(On("channels/close", one).HeldAt("gate"))
	h.close(one)
	c.Rehold("gate")
	c.Once(On("channels/open", one).HeldAt("gate"))
	answer = h.begin("channels/open", openParamsOf(one))
	if err := c.WaitHeld(ctx, "gate", 1); err != nil {
		t.Fatal(err)
	}
	c.Release("gate")
	h.await(answer)
}

func TestDelays(t *testing.T) {
	asked, pass := make(chan time.Duration), make(chan time.Time)
	c := start(t, Options{
		Channels: Generate("demo", 1),
		Behavior: Behavior{Delay: Duration(time.Second)},
		After: func(d time.Duration) <-chan time.Time {
			asked <- d
			return pass
		},
	})
	h := connect(t, c)
	c.Once(On("channels/open", one).Delayed(time.Hour))
	answer := h.begin("channels/open", openParamsOf(one))
	for _, want := range []time.Duration{time.Second, time.Hour} {
		if got := <-asked; got != want {
			t.Errorf("want a delay of %s, got %s", want, got)
		}
		if c.IsOpen(one) {
			t.Error("open before its time")
		}
		pass <- time.Time{}
	}
	if m := h.await(answer); m.Error != nil {
		t.Error(m.Error)
	}
}

func TestAnOpenIsNeverAnswered(t *testing.T) {
	c := start(t, Options{Channels: Generate("demo", 2)})
	h := connect(t, c)
	c.Once(On("channels/open", one).NeverAnswered(), On("channels/open", two).NeverAnswered().NotApplied())
	h.begin("channels/open", openParamsOf(one))
	h.begin("channels/open", openParamsOf(two))
	h.call("channels/list", params{}) // it is served after both
	if got := c.OpenChannels(); !slices.Equal(got, []string{one}) {
		t.Errorf("open: %q", got)
	}
	if got := c.Entries(Answered("channels/open", "")); len(got) > 0 {
		t.Errorf("answered: %v", got)
	}
}

func TestDropsBeforeAndAfterApplying(t *testing.T) {
	for name, test := range map[string]struct {
		rule Rule
		open bool
	}{
		"before": {On("channels/open", one).Dropping().NotApplied(), false},
		"after":  {On("channels/open", one).Dropping(), true},
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t, Options{Channels: Generate("demo", 1)})
			h := connect(t, c)
			c.Once(test.rule)
			h.begin("channels/open", openParamsOf(one))
			if err := h.end(); websocket.CloseStatus(err) != -1 {
				t.Errorf("want no goodbye, got %v", err)
			}
			if c.IsOpen(one) != test.open {
				t.Errorf("open: %t", c.IsOpen(one))
			}
			if got := c.Entries(Answered("channels/open", "")); len(got) > 0 {
				t.Errorf("answered: %v", got)
			}
			// The open set is kept over a reconnect.
			connect(t, c)
			if c.IsOpen(one) != test.open {
				t.Errorf("open after a reconnect: %t", c.IsOpen(one))
			}
		})
	}
}
