package session

import (
	"errors"
	"fmt"
	"testing"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/internal/decision"
	"mcpl.dev/operator/test/connector"
)

// push has a message that addresses the resident come for a channel.
func push(b *bench, id string) connector.Verdict {
	b.Helper()
	v, err := b.c.PushEvent(b.ctx, connector.Push{Origin: map[string]any{"mcplChannelId": id, "channelId": "raw"}})
	b.must(err)
	return v
}

func incoming(b *bench, ids ...string) []connector.Verdict {
	b.Helper()
	var messages []connector.Message
	for _, id := range ids {
		messages = append(messages, b.c.NewMessage(connector.Spoken{ChannelID: id, MessageID: "to " + id, Text: "hello"}))
	}
	verdicts, err := b.c.Incoming(b.ctx, messages...)
	b.must(err)
	return verdicts
}

func TestIncoming(t *testing.T) {
	t.Run("F19 it shows that a channel is open, though nobody hears it", func(t *testing.T) {
		b := start(t, setup{Options: demo(2)}).up()
		b.ticket("demo:c1")
		before := b.notify.wakesOf("demo:c1")
		b.same(incoming(b, "demo:c1"), []connector.Verdict{{MessageID: "to demo:c1", Reason: "no resident"}})
		b.same(b.channel("demo:c1").Transport, v1.TransportOpen)
		b.same(b.channel("demo:c2").Transport, v1.TransportUnconfirmed)
		b.same(b.decisions.Record(key("demo:c1")), decision.Record{})
		if b.notify.wakesOf("demo:c1") == before {
			t.Error("its owner was not told")
		}
		before = b.notify.wakesOf("demo:c1")
		incoming(b, "demo:c1")
		b.same(b.notify.wakesOf("demo:c1"), before) // no news
	})
	t.Run("§5.10 it shows a closed one open", func(t *testing.T) {
		b := start(t, setup{Options: demo(1)}).owned(always).registered()
		b.same(b.channel("demo:c1").Transport, v1.TransportClosed)
		incoming(b, "demo:c1")
		b.same(b.channel("demo:c1").Transport, v1.TransportOpen)
		b.rest()
		b.sent("close demo:c1")
		b.same(b.snapshot().Unsettled, 1)
	})
	t.Run("A18 unregistered, only pushed, or without an id: rejected one by one", func(t *testing.T) {
		b := start(t, setup{Options: demo(1)}).owned(always).registered()
		push(b, "demo:dm")
		b.same(incoming(b, "demo:x", "demo:c1", "demo:dm", ""), []connector.Verdict{
			{MessageID: "to demo:x", Reason: "unknown channel"}, {MessageID: "to demo:c1", Reason: "no resident"},
			{MessageID: "to demo:dm", Reason: "unknown channel"}, {MessageID: "to ", Reason: "unknown channel"},
		})
		if b.channel("demo:x").Registered || b.channel("demo:dm").Transport != v1.TransportUnconfirmed {
			t.Error("a message registered or confirmed something")
		}
		b.same(b.notify.told(EventIncomingRejected), []event{{EventIncomingRejected, "3 messages came for channels that are not served"}})
	})
	t.Run("not granted", func(t *testing.T) {
		b := start(t, setup{Options: demo(1), config: func(c *Config) { c.Deny = []string{"channels.incoming", "pushEvents"} }}).owned(always).registered()
		for _, method := range []string{"channels/incoming", "push/event"} {
			_, err := b.c.Call(b.ctx, method, map[string]any{})
			b.same(codeOf(err), -32002)
		}
	})
}

func codeOf(err error) int {
	var e *connector.RPCError
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

func TestPush(t *testing.T) {
	t.Run("A17 it makes an unregistered channel known, and no more", func(t *testing.T) {
		b := start(t, setup{Options: demo(1)}).owned(always).registered()
		b.same(push(b, "demo:dm"), connector.Verdict{Reason: "no resident"})
		c := b.channel("demo:dm")
		if !c.Registered || !c.PushKnown || c.Transport != v1.TransportUnconfirmed || c.Ticket != nil || c.Descriptor.ID != "demo:dm" {
			t.Errorf("it is %+v", c)
		}
		b.rest()
		b.sent("close demo:c1")
		b.same(b.decisions.Record(key("demo:dm")), decision.Record{})
		b.same(b.notify.wakesOf("demo:dm"), 1)
		b.same(b.notify.told(EventPushKnownChannel), []event{{EventPushKnownChannel, "a message named demo:dm, which the connector does not declare"}})
		b.same(b.snapshot().Unsettled, 0) // nothing is decided of it, and nothing is owed to it
		push(b, "demo:dm")
		b.same(len(b.notify.told(EventPushKnownChannel)), 1)
	})
	t.Run("§5.10 it says nothing about a declared channel's transport", func(t *testing.T) {
		b := start(t, setup{Options: demo(1)}).owned(always).registered()
		push(b, "demo:c1")
		if c := b.channel("demo:c1"); c.PushKnown || c.Transport != v1.TransportClosed {
			t.Errorf("it is %+v", c)
		}
	})
	t.Run("fact 15 the platform's id where there is no other", func(t *testing.T) {
		b := start(t, setup{}).up()
		_, err := b.c.PushEvent(b.ctx, connector.Push{Origin: map[string]any{"channelId": "4711"}})
		b.must(err)
		b.same(b.channel("4711").PushKnown, true)
	})
	t.Run("names that can't be, and more than fit", func(t *testing.T) {
		b := start(t, setup{config: func(c *Config) { c.MaxChannels = 2 }}).up()
		for _, id := range []string{"", "demo\nx", "demo:1", "demo:2", "demo:3"} {
			_, err := b.c.PushEvent(b.ctx, connector.Push{Origin: map[string]any{"mcplChannelId": id}})
			b.must(err)
		}
		b.same(b.snapshot().Registered, 2)
		b.same(b.channel("demo:3").Registered, false)
	})
	t.Run("it can be opened by what is known of it", func(t *testing.T) {
		b := start(t, setup{Options: connector.Options{Channels: []connector.Descriptor{connector.NewDescriptor("demo:dm")}, Behavior: connector.Behavior{Register: connector.RegisterNever}}}).up()
		push(b, "demo:dm")
		b.settles(b.apply(v1.StateOpen, "demo:dm"), ok)
		b.same(string(b.asked("channels/open", "demo:dm").Params), `{"channelId":"demo:dm"}`)
		b.same(b.channel("demo:dm").Transport, v1.TransportOpen)
	})
	t.Run("registering it declares it", func(t *testing.T) {
		b := start(t, setup{Options: demo(1)}).owned(always).registered()
		push(b, "demo:dm")
		_, err := b.c.Add(b.ctx, connector.AsNotification, connector.NewDescriptor("demo:dm"))
		b.must(err)
		b.untilIs(v1.TransportClosed, "demo:dm")
		b.same(b.channel("demo:dm").PushKnown, false)
		b.same(b.snapshot().Registered, 2)
	})
	t.Run("the list declares it, too", func(t *testing.T) {
		b := start(t, setup{Options: demo(1)}).owned(always).registered()
		push(b, "demo:dm")
		_, err := b.c.Add(b.ctx, connector.Untold, connector.NewDescriptor("demo:dm"))
		b.must(err)
		b.c.SetListOnly(true, "demo:dm")
		_, err = b.c.RegisterAll(b.ctx, connector.AsRequest)
		b.must(err)
		b.untilIs(v1.TransportClosed, "demo:dm")
		b.same(b.channel("demo:dm").PushKnown, false)
	})
}

func TestUnserved(t *testing.T) {
	b := start(t, setup{Options: demo(2)}).owned(always).registered()
	s := b.session()
	for i, test := range []struct {
		id           string
		served, news bool
	}{
		{"demo:c1", true, false}, {"demo:c1", false, true}, {"demo:c1", false, false}, {"demo:x", false, false},
	} {
		b.same(fmt.Sprint(i, s.Serve(test.id, test.served)), fmt.Sprint(i, test.news))
	}
	b.same(incoming(b, "demo:c1", "demo:c2"), []connector.Verdict{
		{MessageID: "to demo:c1", Reason: "no Channel object stands for it"}, {MessageID: "to demo:c2", Reason: "no resident"},
	})
	b.same(b.channel("demo:c1").Transport, v1.TransportClosed) // what is not admitted is no evidence
	_, err := b.c.RegisterAll(b.ctx, connector.AsRequest)
	b.must(err)
	b.rest()
	b.same(incoming(b, "demo:c1")[0].Reason, "no Channel object stands for it") // as before the registration
	b.same(s.Serve("demo:c1", true), true)
	b.same(incoming(b, "demo:c1")[0].Reason, "no resident")
}
