package mcpl

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
)

func decode[T any](t *testing.T, raw string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(raw), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func encode(t *testing.T, v any) string {
	t.Helper()
	raw, err := marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestDescriptors(t *testing.T) {
	cases := map[string]struct {
		raw  string
		want Submitted
	}{
		"a full one, metadata is not kept": {
			`{"id":"chat:1:2","type":"chat","label":"#general (Alpha)","direction":"bidirectional","address":{ "guildId" : "1",
			"channelId":"2"},"metadata":{"channelType":"text"},"initiallyOpen":true,"capabilities":{"history":{"maxMessages":80,
			"supportsBeforeMessage":true},"acknowledgment":{"kind":"reaction","supportsValue":true}}}`,
			Submitted{Descriptor: Descriptor{
				ID: "chat:1:2", Type: "chat", Label: "#general (Alpha)", Direction: "bidirectional",
				Address: json.RawMessage(`{"guildId":"1","channelId":"2"}`), InitiallyOpen: true,
				Capabilities: ChannelCapabilities{
					History:        &HistoryCapability{MaxMessages: 80, SupportsBeforeMessage: true},
					Acknowledgment: &AcknowledgmentCapability{Kind: "reaction", SupportsValue: true},
				},
			}},
		},
		"an id alone": {`{"id":"c"}`, Submitted{Descriptor: Descriptor{ID: "c"}}},
		"members that only describe are read tolerantly": {
			`{"id":"c","label":5,"direction":[],"address":null,"initiallyOpen":"yes","capabilities":{"history":{"maxMessages":"many"},"acknowledgment":true}}`,
			Submitted{Descriptor: Descriptor{ID: "c", Capabilities: ChannelCapabilities{History: &HistoryCapability{}}}},
		},
		"a negative or broken count": {
			`{"id":"c","capabilities":{"history":{"maxMessages":-1}}}`,
			Submitted{Descriptor: Descriptor{ID: "c", Capabilities: ChannelCapabilities{History: &HistoryCapability{}}}},
		},
		"a label is made fit": {
			`{"id":"c","label":"a\u001b[31m\u202e` + strings.Repeat("x", 600) + `"}`,
			Submitted{Descriptor: Descriptor{ID: "c", Label: "a[31m" + strings.Repeat("x", 507)}},
		},
		"no id":                    {`{"type":"chat"}`, Submitted{Reason: "id missing or empty"}},
		"a null id":                {`{"id":null}`, Submitted{Reason: "id missing or empty"}},
		"an empty id":              {`{"id":""}`, Submitted{Reason: "id missing or empty"}},
		"an id that is a number":   {`{"id":5}`, Submitted{Reason: "id is not a string"}},
		"an id of 2,048 bytes":     {`{"id":"` + strings.Repeat("é", 1024) + `"}`, Submitted{Descriptor: Descriptor{ID: strings.Repeat("é", 1024)}}},
		"an id of 2,049 bytes":     {`{"id":"x` + strings.Repeat("é", 1024) + `"}`, Submitted{Descriptor: Descriptor{ID: "x" + strings.Repeat("é", 1024)}, Reason: "id over 2048 bytes"}},
		"control characters":       {`{"id":"a\u0000b"}`, Submitted{Descriptor: Descriptor{ID: "a\x00b"}, Reason: "control characters in id"}},
		"a line end":               {`{"id":"a\n"}`, Submitted{Descriptor: Descriptor{ID: "a\n"}, Reason: "control characters in id"}},
		"C1 control characters":    {`{"id":"a\u009b"}`, Submitted{Descriptor: Descriptor{ID: "a\u009b"}, Reason: "control characters in id"}},
		"half a surrogate pair":    {`{"id":"a\ud800"}`, Submitted{Descriptor: Descriptor{ID: "a\uFFFD"}, Reason: "id is not valid text"}},
		"a type that is no string": {`{"id":"c","type":5}`, Submitted{Descriptor: Descriptor{ID: "c"}, Reason: "type is not a string"}},
		"a null type":              {`{"id":"c","type":null}`, Submitted{Descriptor: Descriptor{ID: "c"}}},
		"a type beyond measure":    {`{"id":"c","type":"` + strings.Repeat("x", 257) + `"}`, Submitted{Descriptor: Descriptor{ID: "c"}, Reason: "type too long"}},
		"a type of 256 bytes":      {`{"id":"c","type":"` + strings.Repeat("x", 256) + `"}`, Submitted{Descriptor: Descriptor{ID: "c", Type: strings.Repeat("x", 256)}}},
		"an address beyond measure": {
			`{"id":"c","type":"t","address":"` + strings.Repeat("x", 16<<10) + `"}`,
			Submitted{Descriptor: Descriptor{ID: "c"}, Reason: "address too long"},
		},
		"not an object": {`"c"`, Submitted{Reason: "not a descriptor"}},
		"null":          {`null`, Submitted{Reason: "not a descriptor"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			list := decode[DescriptorList](t, `[{"id":"before"},`+tc.raw+`,{"id":"after"}]`)
			equal(t, len(list), 3)
			equal(t, list[1], tc.want)
			equal(t, list[0].ID+list[2].ID, "beforeafter") // the others are not spoilt
			want := 3
			if tc.want.Reason != "" {
				want = 2
			}
			equal(t, len(list.Descriptors()), want)
		})
	}
}

func TestDescriptorListsThatAreNone(t *testing.T) {
	for _, raw := range []string{`{"channels":{}}`, `{"channels":"x"}`, `{"channels":5}`} {
		if _, err := DecodeParams[RegisterParams](json.RawMessage(raw)); err == nil {
			t.Errorf("%s was taken", raw)
		}
	}
	for _, raw := range []string{`{}`, `{"channels":null}`, `{"channels":[]}`} {
		p, err := DecodeParams[RegisterParams](json.RawMessage(raw))
		if err != nil || len(p.Channels) != 0 {
			t.Errorf("%s gave %v, %v", raw, p, err)
		}
	}
}

func TestSameTarget(t *testing.T) {
	cases := map[string]struct {
		a, b string
		want bool
	}{
		"members in another order":         {`{"a":1,"b":{"c":[1,2]}}`, `{"b":{"c":[1,2]},"a":1}`, true},
		"a list in another order":          {`[1,2]`, `[2,1]`, false},
		"a member more":                    {`{"a":1}`, `{"a":1,"b":2}`, false},
		"a member less":                    {`{"a":1,"b":2}`, `{"a":1}`, false},
		"a null member is not an absent":   {`{"a":null}`, `{"b":null}`, false},
		"an element more":                  {`[1]`, `[1,1]`, false},
		"absent and null":                  {``, `null`, true},
		"absent and empty":                 {``, `{}`, false},
		"numbers by value":                 {`[1,10,0.5,-0,100]`, `[1.0,1e1,5e-1,0,1E+2]`, true},
		"numbers beyond a float":           {`9007199254740993`, `9007199254740992`, false},
		"signs":                            {`1`, `-1`, false},
		"powers":                           {`1`, `10`, false},
		"leading zeros of a fraction":      {`0.01`, `0.1`, false},
		"exponents beyond measure":         {`1e99999999999999999999`, `1e99999999999999999998`, false},
		"the same exponent beyond measure": {`1e99999999999999999999`, `1e99999999999999999999`, true},
		"a number and its text":            {`1`, `"1"`, false},
		"strings by value":                 {`"\u0061"`, `"a"`, true},
		"true and false":                   {`true`, `false`, false},
		"an object and a list":             {`{}`, `[]`, false},
		"a number and null":                {`0`, `null`, false},
		"not JSON":                         {`{`, `}`, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a := Descriptor{ID: "1", Type: "chat", Label: "x", Address: json.RawMessage(tc.a)}
			b := Descriptor{ID: "2", Type: "chat", InitiallyOpen: true, Address: json.RawMessage(tc.b)}
			equal(t, a.SameTarget(b), tc.want)
			equal(t, b.SameTarget(a), tc.want)
			equal(t, a.SameTarget(a), true)
			b.Type = "voice"
			equal(t, a.SameTarget(b), false)
		})
	}
}

func TestCheckDescriptors(t *testing.T) {
	cases := map[string]struct {
		list  string
		max   int
		known KnownChannels
		want  []Verdict
	}{
		"nothing submitted": {list: `[]`, want: []Verdict{}},
		"fact 28 one verdict each, in order, ids as submitted": {
			list: `[{"id":"b"},{"id":""},"x",{"id":"a\u0000"},{"id":"b"},{"id":"a"}]`,
			want: []Verdict{
				{ID: "b", Accepted: true},
				{Reason: "id missing or empty"},
				{Reason: "not a descriptor"},
				{ID: "a\x00", Reason: "control characters in id"},
				{ID: "b", Reason: "id repeated"},
				{ID: "a", Accepted: true},
			},
		},
		"the first of a repeated id counts, a malformed one does not": {
			list: `[{"id":"a","type":5},{"id":"a"},{"id":"a"}]`,
			want: []Verdict{{ID: "a", Reason: "type is not a string"}, {ID: "a", Accepted: true}, {ID: "a", Reason: "id repeated"}},
		},
		"beyond max": {
			list: `[{"id":"a"},{"id":"a"},{"id":""},{"id":"b"},{"id":"c"},{"id":"d"}]`, max: 2,
			want: []Verdict{
				{ID: "a", Accepted: true},
				{ID: "a", Reason: "id repeated"},
				{Reason: "id missing or empty"},
				{ID: "b", Accepted: true},
				{ID: "c", Reason: "over the limit of 2 channels"},
				{ID: "d", Reason: "over the limit of 2 channels"},
			},
		},
		"known ones count, and may come again": {
			list: `[{"id":"new"},{"id":"k1"},{"id":"newer"},{"id":"k2"}]`, max: 3, known: sets.New("k1", "k2"),
			want: []Verdict{
				{ID: "new", Accepted: true},
				{ID: "k1", Accepted: true},
				{ID: "newer", Reason: "over the limit of 3 channels"},
				{ID: "k2", Accepted: true},
			},
		},
		"a known one takes no room a second time": {
			list: `[{"id":"k1"},{"id":"new"},{"id":"newer"}]`, max: 3, known: sets.New("k1", "k2"),
			want: []Verdict{
				{ID: "k1", Accepted: true},
				{ID: "new", Accepted: true},
				{ID: "newer", Reason: "over the limit of 3 channels"},
			},
		},
		"known ones beyond a lowered max": {
			list: `[{"id":"k1"},{"id":"new"}]`, max: 1, known: sets.New("k1", "k2"),
			want: []Verdict{{ID: "k1", Accepted: true}, {ID: "new", Reason: "over the limit of 1 channels"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			equal(t, CheckDescriptors(decode[DescriptorList](t, tc.list), tc.max, tc.known), tc.want)
		})
	}
}

func TestValidID(t *testing.T) {
	for id, want := range map[string]bool{
		"chat:1:2": true, "é": true, strings.Repeat("x", MaxChannelIDBytes): true,
		"": false, "a\n": false, "a\xff": false, strings.Repeat("x", MaxChannelIDBytes+1): false,
	} {
		equal(t, ValidID(id), want)
	}
}

func TestFact07TheRegisterAnswerHasBothLists(t *testing.T) {
	verdicts := CheckDescriptors(decode[DescriptorList](t, `[{"id":"a<1>"},{"id":""},{"id":"b"}]`), 0, nil)
	equal(t, encode(t, NewRegisterResult(verdicts)),
		`{"registered":["a<1>","b"],"results":[{"id":"a<1>","accepted":true},{"id":"","accepted":false,"reason":"id missing or empty"},{"id":"b","accepted":true}]}`)
	equal(t, encode(t, NewRegisterResult(nil)), `{"registered":[],"results":[]}`)
}

func TestChangedParams(t *testing.T) {
	p := decode[ChangedParams](t, `{"added":[{"id":"a"},5],"updated":[{"id":"u","type":"t"}],"removed":["r",{"id":"s","type":"t"},7,{},null]}`)
	equal(t, p, ChangedParams{
		Added:   DescriptorList{{Descriptor: Descriptor{ID: "a"}}, {Reason: "not a descriptor"}},
		Updated: DescriptorList{{Descriptor: Descriptor{ID: "u", Type: "t"}}},
		Removed: IDList{"r", "s", "", "", ""},
	})
	equal(t, decode[ChangedParams](t, `{"removed":null}`), ChangedParams{})
	if err := json.Unmarshal([]byte(`{"removed":"r"}`), &p); err == nil {
		t.Error("removed as a string was taken")
	}
	equal(t, encode(t, ChangedResult{}), `{"results":[]}`)
	equal(t, encode(t, ChangedResult{Results: []Verdict{{ID: "r", Accepted: true}}}), `{"results":[{"id":"r","accepted":true}]}`)
}

func TestList(t *testing.T) {
	r := decode[ListResult](t, `{"channels":[{"id":"a"},{},{"id":"b"}]}`)
	equal(t, r.Channels.Descriptors(), []Descriptor{{ID: "a"}, {ID: "b"}})
	equal(t, encode(t, ListAnswer{}), `{"channels":[]}`)
	equal(t, encode(t, ListAnswer{Channels: []Descriptor{{
		ID: "a", Type: "t", Label: "l", Direction: "inbound", Address: json.RawMessage(`{"x":1}`), InitiallyOpen: true,
		Capabilities: ChannelCapabilities{History: &HistoryCapability{MaxMessages: 5}},
	}}}), `{"channels":[{"id":"a","type":"t","label":"l","direction":"inbound","address":{"x":1},"initiallyOpen":true,"capabilities":{"history":{"maxMessages":5}}}]}`)
}
