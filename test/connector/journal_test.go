package connector

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func TestTheJournalIsBounded(t *testing.T) {
	c := start(t, Options{JournalKeep: 8, JournalBytes: 10})
	h := connect(t, c)
	for range 20 {
		h.call("channels/list", params{"long": "longer than ten bytes"})
	}
	entries := c.Entries(Filter{})
	if len(entries) < 8 || len(entries) > 10 {
		t.Errorf("kept %d entries", len(entries))
	}
	for i, e := range entries[1:] {
		if e.Seq != entries[i].Seq+1 {
			t.Errorf("after entry %d comes %d", entries[i].Seq, e.Seq)
		}
	}
	for _, e := range entries {
		if e.Kind == Request && (!e.Truncated || e.Params != nil || e.Bytes == 0) {
			t.Errorf("kept %+v", e)
		}
	}
	if got := c.Count("channels/list", ""); got != 20 {
		t.Errorf("counted %d", got)
	}
	if c.DroppedEntries() == 0 {
		t.Error("nothing was dropped")
	}
	c.Reset()
	if got := c.Entries(Filter{}); len(got) > 0 || c.Count("channels/list", "") > 0 || c.DroppedEntries() > 0 {
		t.Errorf("after a reset: %v", got)
	}
}

func TestCountsOnly(t *testing.T) {
	ctx := testContext(t)
	c := start(t, Options{JournalKeep: -1, Channels: Generate("demo", 2)})
	h := connect(t, c)
	h.open(one)
	c.Once(On("channels/open", one).Failing(-32000, "no"))
	h.open(one)
	h.send(`{"jsonrpc":"2.0","method":"channels/typing","params":{"channelId":"demo:c1","op":"start"}}`)
	if err := c.WaitCount(ctx, "channels/open", one, 2); err != nil {
		t.Error(err)
	}
	h.call("channels/list", params{})
	want := map[string]Count{
		"channels/open":     {Direction: In, Method: "channels/open", ChannelID: one, Requests: 2, Results: 1, Errors: 1},
		"channels/typing":   {Direction: In, Method: "channels/typing", ChannelID: one, Notifications: 1},
		"channels/register": {Direction: Out, Method: "channels/register", Requests: 1, Results: 1},
	}
	for _, got := range c.Counts() {
		if w, ok := want[got.Method]; ok && got != w {
			t.Errorf("want %+v, got %+v", w, got)
		}
		delete(want, got.Method)
	}
	if len(want) > 0 {
		t.Errorf("not counted: %v", want)
	}
	if got := c.Entries(Filter{}); len(got) > 0 {
		t.Errorf("kept %v", got)
	}
	if _, err := c.Wait(ctx, Asked("channels/open", ""), 1); !errors.Is(err, ErrCountsOnly) {
		t.Errorf("a wait for an entry: %v", err)
	}
	if _, err := c.WaitFor(ctx, func(Entry) bool { return true }); !errors.Is(err, ErrCountsOnly) {
		t.Errorf("a wait for an entry: %v", err)
	}
}

func TestWaiting(t *testing.T) {
	ctx := testContext(t)
	c := start(t, Options{Channels: Generate("demo", 2)})
	h := connect(t, c)
	waited := make(chan error, 1)
	go func() {
		_, err := c.WaitFor(ctx, func(e Entry) bool { return e.Method == "channels/open" && e.Kind == Response })
		waited <- err
	}()
	h.open(one)
	if err := <-waited; err != nil {
		t.Error(err)
	}
	first, err := c.Wait(ctx, Asked("channels/open", ""), 1)
	if err != nil {
		t.Fatal(err)
	}
	h.open(two)
	later, err := c.Wait(ctx, Asked("channels/open", "").Since(first[0]), 1)
	if err != nil || later[0].ChannelID != two {
		t.Errorf("after the first: %v, %v", later, err)
	}
	over, cancel := context.WithCancel(ctx)
	cancel()
	_, err = c.Wait(over, Asked("channels/close", one), 1)
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("want the context's error, got %v", err)
	}
	for _, part := range []string{"1 of in request channels/close demo:c1, saw 0", "out response channels/open demo:c2"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not say %q: %v", part, err)
		}
	}
}
