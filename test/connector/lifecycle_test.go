package connector

import (
	"slices"
	"testing"
)

func TestOpenAndClose(t *testing.T) {
	c := start(t, Options{Channels: Generate("demo", 3)})
	h := connect(t, c)
	answer := into[struct{ Channel Descriptor }](t, h.open("demo:c2"))
	if answer.Channel.ID != "demo:c2" || answer.Channel.Address["channelId"] != "c2" {
		t.Errorf("opened %+v", answer.Channel)
	}
	if got := c.OpenChannels(); !slices.Equal(got, []string{"demo:c2"}) {
		t.Errorf("open: %q", got)
	}
	for range 2 {
		if closed := into[struct{ Closed bool }](t, h.close("demo:c2")); !closed.Closed {
			t.Error("a known channel's close is not {closed:true}")
		}
	}
	if closed := into[struct{ Closed bool }](t, h.close("demo:nope")); closed.Closed {
		t.Error("an unknown channel's close is not {closed:false}")
	}
	if m := h.close(""); m.Error == nil {
		t.Error("a close without an id is no error")
	}
	if got := c.OpenChannels(); len(got) > 0 {
		t.Errorf("open: %q", got)
	}
}

func TestOpenAddressing(t *testing.T) {
	const anError = ""
	channels := []Descriptor{
		NewDescriptor("chat:a").At("chat", params{"channelId": "a", "guildId": "g"}),
		NewDescriptor("chat:b").At("chat", params{"channelId": "b", "guildId": "g"}),
	}
	for name, test := range map[string]struct {
		open     params
		in05     string
		in04     string
		codeIn04 int
	}{
		"an exact id": {
			open: params{"channelId": "chat:b", "type": "chat", "address": params{}}, in05: "chat:b", in04: "chat:b",
		},
		"an id alone": {
			open: params{"channelId": "chat:b"}, in05: "chat:b", in04: "chat:b",
		},
		"a part of the address": {
			open: params{"type": "chat", "address": params{"channelId": "b"}}, in05: "chat:b", in04: "chat:b",
		},
		"an unknown id with another's address": {
			open: params{"channelId": "chat:x", "type": "chat", "address": params{"channelId": "b"}}, in05: anError, in04: "chat:b",
		},
		"an unknown id of a known type": {
			open: params{"channelId": "chat:x", "type": "chat", "address": params{}}, in05: anError, in04: "chat:a",
		},
		"an address with a member too much": {
			open: params{"type": "chat", "address": params{"channelId": "b", "thread": 1}}, in05: anError, in04: "chat:a",
		},
		"an unknown id without a type": {
			open: params{"channelId": "chat:x"}, in05: anError, in04: anError,
		},
		"a type no channel has": {
			open: params{"channelId": "chat:x", "type": "mail", "address": params{"channelId": "b"}}, in05: anError, in04: anError,
		},
	} {
		for dialect, want := range map[Dialect]string{Dialect05: test.in05, Dialect04: test.in04} {
			t.Run(name+" in "+string(dialect), func(t *testing.T) {
				c := start(t, Options{Dialect: dialect, Channels: channels})
				m := connect(t, c).call("channels/open", test.open)
				if want == anError {
					if m.Error == nil || len(c.OpenChannels()) > 0 {
						t.Errorf("answered %s, open %q", m.Result, c.OpenChannels())
					}
					return
				}
				if got := into[struct{ Channel Descriptor }](t, m).Channel.ID; got != want || !c.IsOpen(want) {
					t.Errorf("want %s, got %s, open %q", want, got, c.OpenChannels())
				}
			})
		}
	}
}

func TestPublishAcknowledgeAndUnservedMethods(t *testing.T) {
	c := start(t, Options{Channels: Generate("demo", 1)})
	h := connect(t, c)
	publish := func(id string, text string) message {
		return h.call("channels/publish", params{"conversationId": "", "channelId": id, "content": Text(text)})
	}
	if m := publish(one, "hello"); string(m.Result) != `{"delivered":true,"messageId":"m1"}` {
		t.Errorf("into a closed channel: %s %v", m.Result, m.Error)
	}
	if m := publish(one, ""); string(m.Result) != `{"delivered":false}` {
		t.Errorf("nothing: %s %v", m.Result, m.Error)
	}
	if m := publish("not an id", "hello"); m.Error == nil {
		t.Errorf("to a malformed id: %s", m.Result)
	}
	for value, want := range map[string]string{"": "👀", "👍": "👍"} {
		m := h.call("channels/acknowledge", params{"channelId": one, "messageId": "7", "intent": "seen-not-opening", "value": value})
		if got := into[struct {
			Acknowledged   bool
			Representation string
		}](t, m); !got.Acknowledged || got.Representation != want {
			t.Errorf("acknowledged with %q: %s", value, m.Result)
		}
	}
	if tools := into[struct{ Tools []Tool }](t, h.call("tools/list", params{})); len(tools.Tools) != 2 {
		t.Errorf("tools: %v", tools)
	}
	for _, method := range []string{"ping", "mcpl/manifest", "tools/call", "model/info"} {
		if m := h.call(method, params{}); m.Error == nil || m.Error.Code != CodeMethodNotFound {
			t.Errorf("%s: %s %v", method, m.Result, m.Error)
		}
	}
	if m := h.open(one); m.Error != nil {
		t.Errorf("not served after an unknown method: %v", m.Error)
	}
}

func TestFramesMayHoldSeveralLines(t *testing.T) {
	c := start(t, Options{})
	h := dial(t, c)
	h.send("\n{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"initialize\"}\r\n\n" +
		"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n" +
		"{\"jsonrpc\":\"2.0\",\"id\":\"y\",\"method\":\"tools/call\"}")
	answers, err := c.Wait(testContext(t), Answered("", ""), 2)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(answers[0].ID) + string(answers[1].ID); got != `"x""y"` {
		t.Errorf("answered %s", got)
	}
	if vs := c.Violations(); len(vs) > 0 {
		t.Errorf("violations: %v", vs)
	}
}
