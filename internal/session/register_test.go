package session

import (
	"slices"
	"strings"
	"testing"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/internal/decision"
	"mcpl.dev/operator/test/connector"
)

func demo(n int) connector.Options { return connector.Options{Channels: connector.Generate("demo", n)} }

func TestRegistrationAppliesWhatIsDecided(t *testing.T) {
	for _, dialect := range []connector.Dialect{connector.Dialect05, connector.Dialect04} {
		for _, form := range []connector.Form{connector.AsRequest, connector.AsNotification} {
			t.Run(string(dialect)+" as "+string(form), func(t *testing.T) {
				o := demo(3)
				o.Dialect, o.Behavior.RegisterForm = dialect, form
				b := start(t, setup{Options: o}).owned(always)
				b.decide(v1.StateOpen, "demo:c2")
				b.decide(v1.StateTunedOut, "demo:c3")
				b.registered()
				b.untilIs(v1.TransportClosed, "demo:c1")
				b.untilIs(v1.TransportOpen, "demo:c2", "demo:c3")
				b.sent("close demo:c1", "open demo:c2", "open demo:c3")
				b.same(b.c.OpenChannels(), []string{"demo:c2", "demo:c3"})
				b.same(b.notify.told(EventChannelsRegistered), []event{{EventChannelsRegistered, "the connector registered 3 channels"}})
				snap := b.snapshot()
				b.same([]int{snap.Registered, snap.Open, snap.Outstanding, snap.TunedOut, snap.Unsettled, snap.Refused}, []int{3, 2, 0, 1, 0, 0})
			})
		}
	}
}

func TestVerdicts(t *testing.T) {
	t.Run("A13 a descriptor without an id, and others that can't be", func(t *testing.T) {
		long := strings.Repeat("x", 2049)
		o := connector.Options{Channels: []connector.Descriptor{
			connector.NewDescriptor("demo:c1"), {Label: "no id"}, connector.NewDescriptor("demo:c1"),
			connector.NewDescriptor(long), connector.NewDescriptor("demo\nc2"), connector.NewDescriptor("demo:c3"),
		}}
		b := start(t, setup{Options: o}).owned(always).registered()
		b.same(b.c.Verdicts(), []connector.Verdict{
			{ID: "demo:c1", Accepted: true}, {Reason: "id missing or empty"}, {ID: "demo:c1", Reason: "id repeated"},
			{ID: long, Reason: "id over 2048 bytes"}, {ID: "demo\nc2", Reason: "control characters in id"}, {ID: "demo:c3", Accepted: true},
		})
		b.sent("close demo:c1", "close demo:c3")
		b.same(b.snapshot().Refused, 0)
		b.same(b.notify.told(EventDescriptorRejected)[0].Message, "4 of 6 channels were refused: 0 beyond spec.maxChannels, 4 without a usable id")
	})
	t.Run("the answer names the accepted ones for older connectors, too", func(t *testing.T) {
		b := start(t, setup{Options: connector.Options{Channels: []connector.Descriptor{{}, connector.NewDescriptor("demo:c1")}}}).owned(always).registered()
		answer := b.c.Entries(connector.Filter{Direction: connector.In, Kind: connector.Response, Method: "channels/register"})
		if got := string(answer[0].Result); !strings.Contains(got, `"registered":["demo:c1"]`) {
			t.Errorf("answered %s", got)
		}
	})
	t.Run("params that are none", func(t *testing.T) {
		b := start(t, setup{}).up()
		for _, method := range []string{"channels/register", "channels/changed", "channels/incoming", "push/event"} {
			_, err := b.c.Call(b.ctx, method, []int{1})
			if err == nil || !strings.Contains(err.Error(), "-32602") {
				t.Errorf("%s with a list is answered %v", method, err)
			}
		}
	})
	t.Run("a method that nobody serves", func(t *testing.T) {
		b := start(t, setup{}).up()
		if _, err := b.c.Call(b.ctx, "host/command", nil); err == nil || !strings.Contains(err.Error(), "-32601") {
			t.Errorf("answered %v", err)
		}
		b.must(b.c.Notify(b.ctx, "host/command", nil)) // ignored
		b.flush()
	})
}

func TestMaxChannels(t *testing.T) {
	two := func(c *Config) { c.MaxChannels = 2 }
	refused := connector.Verdict{ID: "demo:c3", Reason: "over the limit of 2 channels"}
	t.Run("what goes beyond is refused, and counted", func(t *testing.T) {
		b := start(t, setup{Options: demo(3), config: two}).owned(always).registered()
		b.same(b.c.Verdicts(), []connector.Verdict{{ID: "demo:c1", Accepted: true}, {ID: "demo:c2", Accepted: true}, refused})
		snap := b.snapshot()
		b.same([]int{snap.Registered, snap.Refused}, []int{2, 1})
		b.same(b.notify.told(EventDescriptorRejected)[0].Message, "1 of 3 channels were refused: 1 beyond spec.maxChannels, 0 without a usable id")
		if b.channel("demo:c3").Registered {
			t.Error("a refused channel is registered")
		}
	})
	t.Run("known ids come again, also where all room is taken", func(t *testing.T) {
		b := start(t, setup{Options: demo(3), config: two}).owned(always).registered()
		verdicts, err := b.c.RegisterAll(b.ctx, connector.AsRequest)
		b.must(err)
		b.same(verdicts, []connector.Verdict{{ID: "demo:c1", Accepted: true}, {ID: "demo:c2", Accepted: true}, refused})
	})
	t.Run("news that offers nothing leaves the count alone", func(t *testing.T) {
		b := start(t, setup{Options: demo(3), config: two}).owned(always).registered()
		_, err := b.c.Update(b.ctx, connector.AsRequest, connector.NewDescriptor("demo:c1").Labelled("#new"))
		b.must(err)
		b.same(b.snapshot().Refused, 1)
	})
	t.Run("added channels are refused, too, and count on top", func(t *testing.T) {
		b := start(t, setup{Options: demo(3), config: two}).owned(always).registered()
		verdicts, err := b.c.Add(b.ctx, connector.AsRequest, connector.NewDescriptor("demo:c4"))
		b.must(err)
		b.same(verdicts, []connector.Verdict{{ID: "demo:c4", Reason: "over the limit of 2 channels"}})
		b.same(b.snapshot().Refused, 2)
		_, err = b.c.Add(b.ctx, connector.AsRequest, connector.NewDescriptor("demo:c4")) // again
		b.must(err)
		b.same(b.snapshot().Refused, 2)
		_, err = b.c.Remove(b.ctx, connector.AsNotification, "demo:c4", "demo:c3")
		b.must(err)
		b.until("none to be refused", func() bool { return b.snapshot().Refused == 0 })
	})
	t.Run("a removed channel makes room", func(t *testing.T) {
		b := start(t, setup{Options: demo(2), config: two}).owned(always).registered()
		verdicts, err := b.c.Changed(b.ctx, connector.AsRequest, connector.Changes{
			Removed: []string{"demo:c1"}, Added: []connector.Descriptor{connector.NewDescriptor("demo:c3")},
		})
		b.must(err)
		b.same(verdicts, []connector.Verdict{{ID: "demo:c1", Accepted: true}, {ID: "demo:c3", Accepted: true}})
		b.same(b.snapshot().Registered, 2)
	})
	t.Run("what an earlier connection registered takes no room", func(t *testing.T) {
		b := start(t, setup{Options: demo(2), config: two}).owned(always).registered()
		_, err := b.c.Changed(b.ctx, connector.Untold, connector.Changes{
			Removed: []string{"demo:c1", "demo:c2"}, Added: []connector.Descriptor{connector.NewDescriptor("demo:c3"), connector.NewDescriptor("demo:c4")},
		})
		b.must(err)
		b.must(b.c.Drop())
		b.untilIs(v1.TransportClosed, "demo:c3", "demo:c4")
		b.until("the old channels to be gone", func() bool { return b.snapshot().Registered == 2 })
		b.same(b.snapshot().Refused, 0)
	})
	t.Run("channels that no list clears up are given up for new ones", func(t *testing.T) {
		b := start(t, setup{Options: demo(2), config: two}).owned(always).registered()
		b.c.Always(connector.On("channels/list", "").Failing(-32601, "what?"))
		for _, id := range []string{"demo:c3", "demo:c4", "demo:c5"} {
			_, err := b.c.Changed(b.ctx, connector.Untold, connector.Changes{Removed: ids(b.c.Channels())})
			b.must(err)
			_, err = b.c.Add(b.ctx, connector.Untold, connector.NewDescriptor(id))
			b.must(err)
			b.must(b.c.Drop())
			b.untilIs(v1.TransportClosed, id)
			if n := b.snapshot().Registered; n > 2 {
				t.Errorf("%d channels are registered", n)
			}
		}
	})
}

func ids(descriptors []connector.Descriptor) []string {
	var list []string
	for _, d := range descriptors {
		list = append(list, d.ID)
	}
	return list
}

func TestAnswerBeforeAnything(t *testing.T) {
	t.Run("A14 a connector that waits for its answer", func(t *testing.T) {
		o := demo(2)
		o.Behavior.BlockOnRegister = true
		b := start(t, setup{Options: o}).owned(always)
		b.decide(v1.StateOpen, "demo:c1", "demo:c2")
		b.c.Always(connector.On("channels/open", "").HeldAt("slow"))
		b.up()
		b.must(b.c.WaitRegistered(b.ctx))
		b.held("slow", 1)
		b.c.Release("slow")
		b.untilIs(v1.TransportOpen, "demo:c1", "demo:c2")
	})
	t.Run("P20 nothing is sent before the answer", func(t *testing.T) {
		b := start(t, setup{Options: demo(3)}).owned(always).registered()
		_, err := b.c.Add(b.ctx, connector.AsRequest, connector.NewDescriptor("demo:c9"))
		b.must(err)
		b.rest()
		for method, id := range map[string]string{"channels/register": "demo:c1", "channels/changed": "demo:c9"} {
			answered := b.c.Entries(connector.Filter{Direction: connector.In, Kind: connector.Response, Method: method})[0]
			for _, e := range b.c.Entries(connector.Asked("channels/close", id)) {
				if e.Seq < answered.Seq {
					t.Errorf("%s is closed before %s is answered", id, method)
				}
			}
		}
	})
}

func TestRegisteringAgain(t *testing.T) {
	b := start(t, setup{Options: demo(2)}).owned(always)
	b.decide(v1.StateOpen, "demo:c1")
	b.registered()
	entry := func(id string) uint64 {
		s := b.session()
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.entries[id].id
	}
	before := entry("demo:c1")
	b.c.Once(connector.On("channels/open", "demo:c1").HeldAt("again"))
	_, err := b.c.RegisterAll(b.ctx, connector.AsRequest)
	b.must(err)
	b.held("again", 1)
	if got := b.channel("demo:c1"); got.Transport != v1.TransportUnconfirmed || !got.InFlight || got.Outstanding != 1 {
		t.Errorf("registered again, it is %+v", got)
	}
	if entry("demo:c1") == before {
		t.Error("no new entry was made")
	}
	b.c.Release("again")
	b.rest()
	b.same(b.wire("demo:c1"), []string{"open demo:c1", "open demo:c1"})
	b.same(b.snapshot().Registered, 2)
	b.same(b.channel("demo:c1").Transport, v1.TransportOpen)
}

// The connector asks for the list of what the host knows of it.
func TestListOfTheHost(t *testing.T) {
	b := start(t, setup{Options: demo(2)}).owned(always).registered()
	push(b, "demo:dm")
	result, err := b.c.Call(b.ctx, "channels/list", nil)
	b.must(err)
	if got := string(result); !strings.Contains(got, `"demo:c1"`) || !strings.Contains(got, `"demo:c2"`) || strings.Contains(got, "demo:dm") {
		t.Errorf("the host lists %s", got)
	}
}

func TestWithoutLifecycle(t *testing.T) {
	b := start(t, setup{Options: demo(2), config: func(c *Config) { c.Deny = []string{"channels.lifecycle"} }}).owned(always)
	b.registered()
	b.same(b.c.Verdicts(), []connector.Verdict{{ID: "demo:c1", Accepted: true}, {ID: "demo:c2", Accepted: true}})
	b.sent()
	b.same(b.notify.told(EventReconcileSkipped), []event{{EventReconcileSkipped,
		"2 channels are registered, but channels.lifecycle is not granted: nothing is opened or closed there"}})
	b.settles(b.apply(v1.StateOpen, "demo:c1"), decision.Outcome{Failure: v1.CauseNotPermitted})
	if b.snapshot().Lifecycle || b.channel("demo:c1").Lifecycle || slices.Contains(b.c.Status().Granted, "channels.lifecycle") {
		t.Error("lifecycle is granted")
	}
	b.sent()
}
