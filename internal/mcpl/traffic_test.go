package mcpl

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestOpenParams(t *testing.T) {
	cases := map[string]struct {
		params OpenParams
		want   string
	}{
		"fact 1 id, type and address": {
			OpenParams{ChannelID: "c", Type: "chat", Address: json.RawMessage(`{"a":1}`)},
			`{"channelId":"c","type":"chat","address":{"a":1}}`,
		},
		"fact 1 what is known": {OpenParams{ChannelID: "c"}, `{"channelId":"c"}`},
		"history": {
			OpenParams{ChannelID: "c", History: &HistoryRequest{Limit: 20}},
			`{"channelId":"c","history":{"limit":20}}`,
		},
		"history with everything": {
			OpenParams{ChannelID: "c", History: &HistoryRequest{Limit: 5, BeforeMessageID: "m", SinceLastSeen: true}},
			`{"channelId":"c","history":{"limit":5,"beforeMessageId":"m","sinceLastSeen":true}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { equal(t, encode(t, tc.params), tc.want) })
	}
}

func TestOpenResults(t *testing.T) {
	cases := map[string]struct {
		raw  string
		want OpenResult
		sub  string // the substituted id, for a request of "c"
	}{
		"fact 3 a full descriptor": {
			raw: `{"channel":{"id":"c","type":"chat","label":"l"}}`,
			want: OpenResult{
				ChannelID: "c", Channel: &Descriptor{ID: "c", Type: "chat", Label: "l"},
			},
		},
		"F18 an empty answer":      {raw: `{}`},
		"F18 opened true":          {raw: `{"opened":true}`},
		"F18 null":                 {raw: `null`},
		"F18 something else":       {raw: `[5]`},
		"a channel without an id":  {raw: `{"channel":{"label":"l"}}`},
		"a channel that is a text": {raw: `{"channel":"d"}`},
		"history, oldest first": {
			raw: `{"history":[{"channelId":"c","messageId":"1","x":1},{"channelId":"c","messageId":"2"},5,{}],"historyTruncated":true}`,
			want: OpenResult{HistoryTruncated: true, History: []HistoryItem{
				{"c", "1", json.RawMessage(`{"channelId":"c","messageId":"1","x":1}`)},
				{"c", "2", json.RawMessage(`{"channelId":"c","messageId":"2"}`)},
				{Raw: json.RawMessage(`{}`)},
			}},
		},
		"F13 another channel": {
			raw:  `{"channel":{"id":"d","type":"chat"}}`,
			want: OpenResult{ChannelID: "d", Channel: &Descriptor{ID: "d", Type: "chat"}},
			sub:  "d",
		},
		"F13 another channel, malformed": {
			raw: `{"channel":{"id":"d\n"}}`, want: OpenResult{ChannelID: "d\n"}, sub: "d\n",
		},
		"F14 foreign history without a channel": {
			raw:  `{"history":[{"channelId":"c"},{"channelId":"d"}]}`,
			want: OpenResult{History: []HistoryItem{{ChannelID: "c", Raw: json.RawMessage(`{"channelId":"c"}`)}, {ChannelID: "d", Raw: json.RawMessage(`{"channelId":"d"}`)}}},
			sub:  "d",
		},
		"foreign history behind the right channel": {
			raw:  `{"channel":{"id":"c"},"history":[{"channelId":"d"}]}`,
			want: OpenResult{ChannelID: "c", Channel: &Descriptor{ID: "c"}, History: []HistoryItem{{ChannelID: "d", Raw: json.RawMessage(`{"channelId":"d"}`)}}},
			sub:  "d",
		},
		"the channel goes before the history": {
			raw:  `{"channel":{"id":"e"},"history":[{"channelId":"d"}]}`,
			want: OpenResult{ChannelID: "e", Channel: &Descriptor{ID: "e"}, History: []HistoryItem{{ChannelID: "d", Raw: json.RawMessage(`{"channelId":"d"}`)}}},
			sub:  "e",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := decode[OpenResult](t, tc.raw)
			equal(t, got, tc.want)
			id, ok := got.Substituted("c")
			equal(t, id, tc.sub)
			equal(t, ok, tc.sub != "")
		})
	}
}

func TestFact06CloseAnswers(t *testing.T) {
	equal(t, encode(t, CloseParams{ChannelID: "c"}), `{"channelId":"c"}`)
	for raw, closed := range map[string]bool{
		`{"closed":true}`: true, `{"closed":false}`: false, `{}`: false, `null`: false, `"ok"`: false, `{"closed":"x"}`: false,
	} {
		equal(t, decode[CloseResult](t, raw), CloseResult{Closed: closed})
	}
}

func TestIncoming(t *testing.T) {
	message := `{"channelId":"c","messageId":"1","threadId":"t","author":{"id":"u","name":"alice"},"timestamp":"2026-01-02T03:04:05Z",` +
		`"content":[{"type":"text","text":"hello"},{"type":"image","data":"x"},5],"metadata":{"isDM":false},"tags":["chat:ambient",5]}`
	p, err := DecodeParams[IncomingParams](json.RawMessage(`{"messages":[` + message + `,5,null,{"messageId":"2"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, p.Messages, []IncomingMessage{
		{
			ChannelID: "c", MessageID: "1", ThreadID: "t", AuthorID: "u", AuthorName: "alice", Timestamp: "2026-01-02T03:04:05Z",
			Content: []Content{{Type: "text", Text: "hello"}, {Type: "image"}},
			Tags:    []string{"chat:ambient"},
			Raw:     json.RawMessage(message),
		},
		{Raw: json.RawMessage(`5`)},
		{Raw: json.RawMessage(`null`)},
		{MessageID: "2", Raw: json.RawMessage(`{"messageId":"2"}`)},
	})
	if _, err := DecodeParams[IncomingParams](json.RawMessage(`{"messages":{}}`)); err == nil {
		t.Error("messages that are no list were taken")
	}
	equal(t, encode(t, IncomingResult{}), `{"results":[]}`)
	equal(t, encode(t, IncomingResult{Results: []MessageVerdict{{MessageID: "1", Accepted: true}, {MessageID: "2", Reason: "no channel"}}}),
		`{"results":[{"messageId":"1","accepted":true},{"messageId":"2","accepted":false,"reason":"no channel"}]}`)
}

func TestFact15PushOrigin(t *testing.T) {
	cases := map[string]struct{ origin, want string }{
		"the MCPL id is preferred": {`{"channelId":"210","mcplChannelId":"chat:1:210"}`, "chat:1:210"},
		"or else the platform's":   {`{"channelId":"210"}`, "210"},
		"an empty one is none":     {`{"channelId":"210","mcplChannelId":""}`, "210"},
		"one of the wrong type":    {`{"channelId":"210","mcplChannelId":5}`, "210"},
		"none":                     {`{"source":"chat"}`, ""},
		"no origin":                {`null`, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, err := DecodeParams[PushParams](json.RawMessage(`{"origin":` + tc.origin + `}`))
			if err != nil {
				t.Fatal(err)
			}
			equal(t, p.Origin.ChannelID(), tc.want)
		})
	}
}

func TestPush(t *testing.T) {
	raw := `{"featureSet":"chat.messaging","eventId":"e1","timestamp":"2026-01-02T03:04:05Z","origin":{"source":"chat","messageId":"m",` +
		`"channelId":"210","mcplChannelId":"chat:1:210","authorId":"u","authorName":"alice"},"tags":["chat:mention"],` +
		`"payload":{"content":[{"type":"text","text":"hey"}]}}`
	equal(t, decode[PushParams](t, raw), PushParams{
		FeatureSet: "chat.messaging", EventID: "e1", Timestamp: "2026-01-02T03:04:05Z",
		Origin: PushOrigin{
			Source: "chat", MessageID: "m", AuthorID: "u", AuthorName: "alice",
			PlatformChannelID: "210", MCPLChannelID: "chat:1:210",
		},
		Content: []Content{{Type: "text", Text: "hey"}}, Tags: []string{"chat:mention"}, Raw: json.RawMessage(raw),
	})
	equal(t, encode(t, PushResult{Accepted: true}), `{"accepted":true}`)
	equal(t, encode(t, PushResult{Reason: "no"}), `{"accepted":false,"reason":"no"}`)
}

func TestPublish(t *testing.T) {
	equal(t, encode(t, PublishParams{ChannelID: "c", Content: []Content{{Type: "text", Text: "<hi>"}}}),
		`{"conversationId":"","channelId":"c","content":[{"type":"text","text":"<hi>"}]}`)
	equal(t, encode(t, PublishParams{ChannelID: "c"}), `{"conversationId":"","channelId":"c","content":[]}`)
	for raw, want := range map[string]PublishResult{
		`{"delivered":true,"messageId":"m"}`: {Delivered: true, MessageID: "m"},
		`{"messageId":"m"}`:                  {Delivered: true, MessageID: "m"}, // missing counts as true
		`{"delivered":null}`:                 {Delivered: true},
		`null`:                               {Delivered: true},
		`{"delivered":false}`:                {}, // fact 16
	} {
		equal(t, decode[PublishResult](t, raw), want)
	}
}

func TestAcknowledge(t *testing.T) {
	equal(t, encode(t, AcknowledgeParams{ChannelID: "c", MessageID: "m", Intent: IntentSeenNotOpening, Value: "👍"}),
		`{"channelId":"c","messageId":"m","intent":"seen-not-opening","value":"👍"}`)
	equal(t, decode[AcknowledgeResult](t, `{"acknowledged":true,"representation":"👀\u001b"}`),
		AcknowledgeResult{Acknowledged: true, Representation: "👀"})
	equal(t, decode[AcknowledgeResult](t, `{"acknowledged":false,"reason":"Unexpected\nend"}`),
		AcknowledgeResult{Reason: "Unexpectedend"})
	equal(t, decode[AcknowledgeResult](t, `null`), AcknowledgeResult{})
}

func TestSanitize(t *testing.T) {
	cases := map[string]struct {
		in   string
		max  int
		want string
	}{
		"plain text stays":                       {"#général 👋🏽 (α)", 100, "#général 👋🏽 (α)"},
		"joiners of emoji stay":                  {"👩\u200d🚀", 100, "👩\u200d🚀"},
		"control characters":                     {"a\x00b\tc\r\nd\x1b[31me\x7ff\u0085g\u009bh", 100, "abcd[31mefgh"},
		"bidirectional controls":                 {"a\u202ab\u202eb\u2066c\u2069d\u200ee\u200ff\u061cg", 100, "abbcdefg"},
		"separators":                             {"a\u2028b\u2029c", 100, "abc"},
		"bytes that are not UTF-8":               {"a\xffb\xc3", 100, "a\uFFFDb\uFFFD"},
		"cut at a rune":                          {"aéé", 4, "aé"},
		"exactly max":                            {"aéé", 5, "aéé"},
		"nothing fits":                           {"é", 1, ""},
		"max 0":                                  {"a", 0, ""},
		"what is dropped is not counted":         {strings.Repeat("\x00", 1000) + "ab", 2, "ab"},
		"it ends at the first that does not fit": {"aéb", 2, "a"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Sanitize(tc.in, tc.max)
			equal(t, got, tc.want)
			if !utf8.ValidString(got) || len(got) > tc.max {
				t.Errorf("not fit: %q", got)
			}
			equal(t, Sanitize(got, tc.max), got)
		})
	}
}
