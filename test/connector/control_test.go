package connector

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// noControl are the methods that make sense in the same process only.
var noControl = []string{
	"Addr", "URL", "ControlURL", "Ready", "Close", // whoever started the process knows
	"Begin", "WaitFor", "WaitUntil", // they take or return what is no JSON
	"Channel", "Held", "IsMuted", "IsOpen", "DroppedEntries", "NewMessage", // read otherwise
}

func TestControlDoesWhatTheConnectorDoes(t *testing.T) {
	var missing []string
	control := reflect.TypeFor[*Control]()
	for m := range reflect.TypeFor[*Connector]().Methods() {
		if _, ok := control.MethodByName(m.Name); !ok && !slices.Contains(noControl, m.Name) {
			missing = append(missing, m.Name)
		}
	}
	if missing != nil {
		t.Errorf("Control has no %s", strings.Join(missing, ", "))
	}
}

func controlled(t *testing.T, o Options) (*Connector, *Control) {
	t.Helper()
	o.Control = "127.0.0.1:0"
	c := start(t, o)
	return c, NewControl(c.ControlURL())
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func result[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		must(t, err)
		return v
	}
}

func TestControlChannelsAndTraffic(t *testing.T) {
	ctx := testContext(t)
	c, ctl := controlled(t, Options{Channels: Generate("demo", 2)})
	h := connect(t, c)
	must(t, ctl.WaitRegistered(ctx))
	if s := result(ctl.Status(ctx))(t); !s.Registered || s.Conn != 1 {
		t.Errorf("status %+v", s)
	}
	h.open(one)
	must(t, ctl.WaitOpen(ctx, one, true), ctl.WaitCount(ctx, "channels/open", one, 1))
	if got := result(ctl.OpenChannels(ctx))(t); !slices.Equal(got, []string{one}) {
		t.Errorf("open: %q", got)
	}
	if d := result(ctl.Say(ctx, Spoken{ChannelID: one, Text: "hi"}))(t); d.Via != "channels/incoming" || !d.Verdict.Accepted {
		t.Errorf("delivered %+v", d)
	}
	if v := result(ctl.Incoming(ctx, c.NewMessage(Spoken{ChannelID: one})))(t); len(v) != 1 || !v[0].Accepted {
		t.Errorf("verdicts %v", v)
	}
	if v := result(ctl.PushEvent(ctx, Push{FeatureSet: "demo.messaging", EventID: "e"}))(t); !v.Accepted {
		t.Errorf("verdict %v", v)
	}
	if v := result(ctl.Add(ctx, AsRequest, NewDescriptor("demo:c3")))(t); len(v) != 1 || v[0].ID != "demo:c3" {
		t.Errorf("verdicts %v", v)
	}
	result(ctl.Update(ctx, AsNotification, NewDescriptor("demo:c3").Labelled("three")))(t)
	result(ctl.Announce(ctx, AsNotification, "demo:c3", true))(t)
	result(ctl.Remove(ctx, Untold, two))(t)
	must(t, ctl.SetListOnly(ctx, true, one), ctl.SetMuted(ctx, one, true), ctl.SetHistory(ctx, one))
	if v := result(ctl.RegisterAll(ctx, AsRequest))(t); len(v) != 1 || v[0].ID != "demo:c3" {
		t.Errorf("verdicts %v", v)
	}
	if v := result(ctl.Verdicts(ctx))(t); len(v) != 1 {
		t.Errorf("verdicts %v", v)
	}
	if got := result(ctl.Channels(ctx))(t); !slices.Equal(ids(got), []string{one, "demo:c3"}) || got[1].Label != "#c3" && got[1].Label != "three" {
		t.Errorf("channels %v", got)
	}
	if !c.IsMuted(one) {
		t.Error("not muted")
	}
	result(ctl.Call(ctx, "host/command", params{"x": 1}))(t)
	must(t, ctl.Notify(ctx, "news", nil), ctl.SendRaw(ctx, "noise"))
	h.answerWith(func(m message) *message {
		return &message{ID: m.ID, Error: &RPCError{Code: -32023, Message: "unknown"}}
	})
	_, err := ctl.Call(ctx, "host/command", nil)
	if rpc := (*RPCError)(nil); !errors.As(err, &rpc) || rpc.Code != -32023 {
		t.Errorf("the host's error came as %v", err)
	}
}

func TestControlRulesGatesAndJournal(t *testing.T) {
	ctx := testContext(t)
	c, ctl := controlled(t, Options{Channels: Generate("demo", 2)})
	h := connect(t, c)
	must(t,
		ctl.Once(ctx, On("channels/open", one).HeldAt("gate").Delayed(time.Nanosecond), On("channels/close", two)),
		ctl.Always(ctx, On("channels/open", two).Answering(struct{}{})),
	)
	answer := h.begin("channels/open", openParamsOf(one))
	must(t, ctl.WaitHeld(ctx, "gate", 1), ctl.Release(ctx, "gate"))
	h.await(answer)
	must(t, ctl.Rehold(ctx, "gate"))
	if m := h.open(two); string(m.Result) != `{}` {
		t.Errorf("answered %s", m.Result)
	}
	if got := result(ctl.UnusedRules(ctx))(t); len(got) != 1 || got[0].ChannelID != two {
		t.Errorf("unused %v", got)
	}
	must(t, ctl.ClearRules(ctx))
	entries := result(ctl.Wait(ctx, Asked("channels/open", ""), 2))(t)
	if len(entries) != 2 || entries[0].ChannelID != one {
		t.Errorf("entries %v", entries)
	}
	if got := result(ctl.Requests(ctx, "channels/open", two))(t); len(got) != 1 {
		t.Errorf("requests %v", got)
	}
	if got := result(ctl.Count(ctx, "channels/open", ""))(t); got != 2 {
		t.Errorf("counted %d", got)
	}
	if got := result(ctl.Counts(ctx))(t); len(got) == 0 {
		t.Error("no counts")
	}
	if got := result(ctl.Violations(ctx))(t); len(got) > 0 {
		t.Errorf("violations %v", got)
	}
	must(t, ctl.Reset(ctx))
	if got := result(ctl.Entries(ctx, Filter{}))(t); len(got) > 0 {
		t.Errorf("entries %v", got)
	}
}

func TestControlBehaviorAndFaults(t *testing.T) {
	ctx := testContext(t)
	c, ctl := controlled(t, Options{Channels: Generate("demo", 1)})
	want := Behavior{Delay: Duration(time.Nanosecond), Policy: PolicyAnswer{Kind: PolicyDegraded}, RegisterForm: AsNotification}
	must(t, ctl.SetBehavior(ctx, want), ctl.Change(ctx, func(b *Behavior) { b.Noise = true }))
	want.Noise = true
	if got := result(ctl.Behavior(ctx))(t); !reflect.DeepEqual(got, want) || !reflect.DeepEqual(c.Behavior(), want) {
		t.Errorf("behaviour %+v", got)
	}
	must(t, ctl.SetManifest(ctx, Manifest{"version": "0.5"}))
	if m := result(ctl.Manifest(ctx))(t); len(m) != 1 {
		t.Errorf("manifest %v", m)
	}
	if err := ctl.Drop(ctx); !errors.Is(err, ErrNotConnected) {
		t.Errorf("a drop of nobody: %v", err)
	}
	for _, fault := range []func() error{
		func() error { return ctl.Drop(ctx) },
		func() error { return ctl.DropMidFrame(ctx) },
		func() error { return ctl.Disconnect(ctx, 1001, "bye") },
		func() error { return ctl.Restart(ctx) },
	} {
		h := connect(t, c)
		must(t, ctl.ManifestChanged(ctx), fault())
		_ = h.end()
	}
	must(t, ctl.Pause(ctx))
	if _, _, err := dialWith(t, c.URL(), nil); err == nil {
		t.Error("let in while paused")
	}
	must(t, ctl.Resume(ctx), ctl.Freeze(ctx), ctl.Thaw(ctx))
	connect(t, c)
}

func TestControlSaysWhatIsWrong(t *testing.T) {
	ctx := testContext(t)
	c, ctl := controlled(t, Options{JournalKeep: -1})
	if _, err := ctl.Wait(ctx, Filter{}, 1); !errors.Is(err, ErrCountsOnly) {
		t.Errorf("a wait without a journal: %v", err)
	}
	err := ctl.invoke(ctx, "once", params{"rule": 1}, nil)
	if err == nil || !strings.Contains(err.Error(), `unknown field "rule"`) {
		t.Errorf("an unknown argument: %v", err)
	}
	if err := ctl.invoke(ctx, "nothing", nil, nil); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("an unknown operation: %v", err)
	}
	over, cancel := context.WithCancel(ctx)
	cancel()
	if err := ctl.WaitRegistered(over); !errors.Is(err, context.Canceled) {
		t.Errorf("a wait given up: %v", err)
	}
	var operations []string
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.ControlURL()+"/", nil)
	must(t, err)
	resp, err := ctl.client.Do(r)
	must(t, err)
	defer func() { _ = resp.Body.Close() }()
	must(t, json.NewDecoder(resp.Body).Decode(&operations))
	if !slices.Contains(operations, "waitHeld") {
		t.Errorf("operations: %q", operations)
	}
}
