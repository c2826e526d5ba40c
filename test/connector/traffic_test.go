package connector

import (
	"encoding/json"
	"slices"
	"testing"
)

func TestSaying(t *testing.T) {
	ctx := testContext(t)
	c := start(t, Options{Channels: Generate("demo", 2)})
	h := connect(t, c)
	h.open(one)
	c.SetMuted(two, true)
	tests := map[string]struct {
		spoken Spoken
		via    string
	}{
		"an ambient message in an open channel":   {Spoken{ChannelID: one, Text: "hi"}, "channels/incoming"},
		"a mention in an open channel":            {Spoken{ChannelID: one, Text: "hi", Mention: true}, "channels/incoming"},
		"a mention in a muted channel":            {Spoken{ChannelID: two, Text: "hi", Mention: true}, ""},
		"an ambient message in a closed channel":  {Spoken{ChannelID: "demo:c9", Text: "hi"}, ""},
		"a DM in a channel that is not served":    {Spoken{ChannelID: "demo:c9", Text: "hi", DM: true}, "push/event"},
		"a reply in a channel that is not served": {Spoken{ChannelID: "demo:c9", Text: "hi", Reply: true}, "push/event"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d, err := c.Say(ctx, test.spoken)
			if err != nil {
				t.Fatal(err)
			}
			if d.Via != test.via || d.Verdict.Accepted != (test.via != "") {
				t.Errorf("delivered %+v", d)
			}
		})
	}
	push, err := c.Wait(ctx, Filter{Direction: Out, Kind: Request, Method: "push/event", ChannelID: "demo:c9"}, 1)
	if err != nil {
		t.Fatal(err)
	}
	var p Push
	if err := json.Unmarshal(push[0].Params, &p); err != nil {
		t.Fatal(err)
	}
	if p.Origin["channelId"] != "c9" || p.Origin["mcplChannelId"] != "demo:c9" || !slices.Contains(p.Tags, "chat:addressed") {
		t.Errorf("pushed %s", push[0].Params)
	}
	h.open(two)
	if c.IsMuted(two) {
		t.Error("an open does not clear the mute")
	}
}

func TestHistory(t *testing.T) {
	ctx := testContext(t)
	c := start(t, Options{Channels: Generate("demo", 1)})
	h := connect(t, c)
	say := func(id string) {
		t.Helper()
		if _, err := c.Say(ctx, Spoken{ChannelID: one, MessageID: id}); err != nil {
			t.Fatal(err)
		}
	}
	say("a")
	h.open(one)
	say("b")
	h.close(one)
	say("c")
	say("d")
	for name, test := range map[string]struct {
		history   params
		want      []string
		truncated bool
	}{
		"all":                 {params{"limit": 10}, []string{"a", "b", "c", "d"}, false},
		"the last":            {params{"limit": 2}, []string{"c", "d"}, true},
		"before one":          {params{"limit": 1, "beforeMessageId": "c"}, []string{"b"}, true},
		"since the last seen": {params{"limit": 10, "sinceLastSeen": true}, []string{"c", "d"}, false},
		"none":                {params{"limit": 0}, []string{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := openParamsOf(one)
			p["history"] = test.history
			m := h.call("channels/open", p)
			answer := into[struct {
				Channel          *Descriptor
				History          []Message
				HistoryTruncated bool
			}](t, m)
			got := []string{}
			for _, item := range answer.History {
				got = append(got, item.MessageID)
			}
			if !slices.Equal(got, test.want) || answer.HistoryTruncated != test.truncated || answer.Channel == nil {
				t.Errorf("want %q, truncated %t, got %s", test.want, test.truncated, m.Result)
			}
			if answer.History == nil {
				t.Errorf("an empty history is not [] in %s", m.Result)
			}
		})
	}
	c.SetHistory(one)
	p := openParamsOf(one)
	p["history"] = params{"limit": 5}
	if m := h.call("channels/open", p); into[struct{ History []Message }](t, m).History == nil {
		t.Errorf("an empty history is not [] in %s", m.Result)
	}
}

func TestRawFramesAndManifests(t *testing.T) {
	ctx := testContext(t)
	c := start(t, Options{Dialect: Dialect04})
	h := connect(t, c)
	h.next() // channels/register
	if err := c.SendRaw(ctx, "[demo] connected to the gateway"); err != nil {
		t.Fatal(err)
	}
	if m := h.next(); string(m.Params) != "[demo] connected to the gateway" {
		t.Errorf("sent %q", m.Params)
	}
	if m := h.call("mcpl/manifest", params{}); m.Error == nil || m.Error.Code != CodeMethodNotFound {
		t.Errorf("the manifest is answered %s", m.Result)
	}
	c.Change(func(b *Behavior) { b.ServeManifest, b.Noise = true, true })
	c.SetManifest(Manifest{"version": "0.5", "channels": Leaves("register")})
	if err := c.ManifestChanged(ctx); err != nil {
		t.Fatal(err)
	}
	if m := h.next(); m.Method != "mcpl/manifestChanged" || m.kind() != Notification || m.Params != nil {
		t.Errorf("sent %+v", m)
	}
	if m := h.call("mcpl/manifest", params{}); string(m.Result) != `{"channels":{"register":true},"version":"0.5"}` {
		t.Errorf("the manifest is answered %s", m.Result)
	}
	if m := h.next(); string(m.Params) != "[demo-mcpl] answering mcpl/manifest" {
		t.Errorf("noise: %q", m.Params)
	}
}
