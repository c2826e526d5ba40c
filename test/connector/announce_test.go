package connector

import (
	"errors"
	"slices"
	"testing"
)

func ids(ds []Descriptor) []string {
	out := make([]string, 0, len(ds))
	for _, d := range ds {
		out = append(out, d.ID)
	}
	return out
}

func TestChanges(t *testing.T) {
	ctx := testContext(t)
	c := start(t, Options{Dialect: Dialect04, Channels: Generate("demo", 2)})
	h := connect(t, c)
	if m := h.next(); m.Method != "channels/register" {
		t.Fatalf("sent %s", m.Method)
	}
	h.open(one)
	h.open(two)
	steps := []struct {
		name   string
		do     func() ([]Verdict, error)
		kind   Kind
		params string
		open   []string
	}{
		{
			name: "a label",
			do: func() ([]Verdict, error) {
				return c.Update(ctx, AsNotification, Descriptor{ID: one, Type: "demo", Label: "x", Address: NewDescriptor(one).Address})
			},
			kind:   Notification,
			params: `{"updated":[{"id":"demo:c1","type":"demo","label":"x","address":{"channelId":"c1"},"initiallyOpen":false}]}`,
			open:   []string{one, two},
		},
		{
			name:   "a target: it is not open at the new one",
			do:     func() ([]Verdict, error) { return c.Update(ctx, AsRequest, Descriptor{ID: one, Type: "demo"}) },
			kind:   Request,
			params: `{"updated":[{"id":"demo:c1","type":"demo","initiallyOpen":false}]}`,
			open:   []string{two},
		},
		{
			name:   "an open channel goes",
			do:     func() ([]Verdict, error) { return c.Remove(ctx, AsNotification, two) },
			kind:   Notification,
			params: `{"removed":["demo:c2"]}`,
			open:   []string{},
		},
		{
			name:   "one comes",
			do:     func() ([]Verdict, error) { return c.Add(ctx, AsRequest, Descriptor{ID: "demo:c3"}) },
			kind:   Request,
			params: `{"added":[{"id":"demo:c3","initiallyOpen":false}]}`,
			open:   []string{},
		},
		{
			name:   "it is announced again",
			do:     func() ([]Verdict, error) { return c.Announce(ctx, AsRequest, "demo:c3", true) },
			kind:   Request,
			params: `{"added":[{"id":"demo:c3","initiallyOpen":true}]}`,
			open:   []string{},
		},
	}
	for _, step := range steps {
		verdicts, err := step.do()
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		m := h.next()
		if m.Method != "channels/changed" || m.kind() != step.kind || string(m.Params) != step.params {
			t.Errorf("%s: sent the %s %s %s", step.name, m.kind(), m.Method, m.Params)
		}
		if got := c.OpenChannels(); !slices.Equal(got, step.open) {
			t.Errorf("%s: open %q", step.name, got)
		}
		if step.name == "one comes" && (len(verdicts) != 1 || !verdicts[0].Accepted) {
			t.Errorf("%s: verdicts %v", step.name, verdicts)
		}
	}
	if _, err := c.Remove(ctx, Untold, "demo:c3"); err != nil {
		t.Fatal(err)
	}
	list := into[struct{ Channels []Descriptor }](t, h.call("channels/list", params{}))
	if got := ids(list.Channels); !slices.Equal(got, []string{one}) {
		t.Errorf("listed: %q", got)
	}
}

func TestAnnouncingKeepsAnOpenChannelOpenAndAddingDoesNot(t *testing.T) {
	ctx := testContext(t)
	c := start(t, Options{Channels: Generate("demo", 1)})
	h := connect(t, c)
	h.open(one)
	if _, err := c.Announce(ctx, AsNotification, one, true); err != nil || !c.IsOpen(one) {
		t.Errorf("open %t after an announcement: %v", c.IsOpen(one), err)
	}
	if _, err := c.Add(ctx, AsNotification, NewDescriptor(one)); err != nil || c.IsOpen(one) {
		t.Errorf("open %t after it was added anew: %v", c.IsOpen(one), err)
	}
}

func TestAChangeWhileNobodyIsConnectedIsMade(t *testing.T) {
	c := start(t, Options{})
	if _, err := c.Add(testContext(t), AsRequest, NewDescriptor(one)); !errors.Is(err, ErrNotConnected) {
		t.Errorf("want ErrNotConnected, got %v", err)
	}
	if _, ok := c.Channel(one); !ok {
		t.Error("not served")
	}
}

func TestTheHostsErrorsAndSilence(t *testing.T) {
	ctx := testContext(t)
	c := start(t, Options{})
	h := connect(t, c)
	h.answerWith(func(m message) *message {
		if m.Method == "silence" {
			return nil
		}
		return &message{ID: m.ID, Error: &RPCError{Code: CodeNotGranted, Message: "not granted"}}
	})
	_, err := c.Add(ctx, AsRequest, NewDescriptor(one))
	if rpc := (*RPCError)(nil); !errors.As(err, &rpc) || rpc.Code != CodeNotGranted {
		t.Errorf("want the host's error, got %v", err)
	}
	if _, err := c.Begin(ctx, "silence", nil); err != nil {
		t.Fatal(err)
	}
	if got := c.Status().Unanswered; got != 1 {
		t.Errorf("unanswered: %d", got)
	}
}

func TestRegistration(t *testing.T) {
	ctx := testContext(t)
	t.Run("as a notification, and again", func(t *testing.T) {
		c := start(t, Options{Channels: Generate("demo", 2), Behavior: Behavior{RegisterForm: AsNotification}})
		h := connect(t, c)
		got := c.Entries(Filter{Direction: Out, Kind: Notification, Method: "channels/register"})
		if len(got) != 1 {
			t.Fatalf("notified %v", got)
		}
		c.SetListOnly(true, two)
		verdicts, err := c.RegisterAll(ctx, AsRequest)
		if err != nil || len(verdicts) != 1 || verdicts[0].ID != one {
			t.Errorf("registered %v: %v", verdicts, err)
		}
		list := into[struct{ Channels []Descriptor }](t, h.call("channels/list", params{}))
		if got := ids(list.Channels); !slices.Equal(got, []string{one, two}) {
			t.Errorf("listed: %q", got)
		}
	})
	t.Run("right after notifications/initialized", func(t *testing.T) {
		c := start(t, Options{Channels: Generate("demo", 1), Behavior: Behavior{Register: RegisterAfterInitialized}})
		h := dial(t, c)
		h.greet()
		if err := c.WaitRegistered(ctx); err != nil {
			t.Fatal(err)
		}
		h.grant(everything...)
		h.call("channels/list", params{})
		if got := c.Entries(Filter{Direction: Out, Method: "channels/register", Kind: Request}); len(got) != 1 {
			t.Errorf("registered %d times", len(got))
		}
	})
	t.Run("never", func(t *testing.T) {
		c := start(t, Options{Behavior: Behavior{Register: RegisterNever}})
		h := dial(t, c)
		h.handshake()
		h.call("channels/list", params{})
		if got := c.Entries(Filter{Direction: Out, Method: "channels/register"}); len(got) > 0 {
			t.Errorf("registered: %v", got)
		}
	})
	t.Run("blocks until it is answered", func(t *testing.T) {
		c := start(t, Options{Channels: Generate("demo", 1), Behavior: Behavior{BlockOnRegister: true}})
		h := dial(t, c)
		h.answerWith(func(message) *message { return nil })
		h.handshake()
		answer := h.begin("channels/open", openParamsOf(one))
		if _, err := c.Wait(ctx, Asked("channels/open", one), 1); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Wait(ctx, Filter{Direction: Out, Method: "channels/register"}, 1); err != nil {
			t.Fatal(err)
		}
		if got := c.Entries(Answered("channels/open", "")); len(got) > 0 {
			t.Errorf("answered: %v", got)
		}
		h.send(`{"jsonrpc":"2.0","id":1,"result":{"results":[]}}`)
		h.await(answer)
	})
	t.Run("drops what is not accepted", func(t *testing.T) {
		c := start(t, Options{Channels: Generate("demo", 2), Behavior: Behavior{DropUnaccepted: true}})
		h := dial(t, c)
		h.answerWith(func(m message) *message {
			return &message{ID: m.ID, Result: []byte(`{"results":[{"id":"demo:c1","accepted":false},{"id":"demo:c2","accepted":true}]}`)}
		})
		h.handshake()
		if err := c.WaitRegistered(ctx); err != nil {
			t.Fatal(err)
		}
		if got := ids(c.Channels()); !slices.Equal(got, []string{two}) {
			t.Errorf("served: %q", got)
		}
	})
	t.Run("with descriptors no host accepts", func(t *testing.T) {
		c := start(t, Options{Channels: []Descriptor{{Label: "no id"}, NewDescriptor(one), NewDescriptor(one)}})
		h := connect(t, c)
		if m := h.next(); m.Method == "channels/register" {
			t.Fatal("news of the tools comes first")
		}
		if m := h.next(); !slices.Equal(ids(into[struct{ Channels []Descriptor }](t, message{Result: m.Params}).Channels), []string{"", one, one}) {
			t.Errorf("registered %s", m.Params)
		}
	})
}
