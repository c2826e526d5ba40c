package session

import (
	"context"
	"net"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/internal/decision"
	"mcpl.dev/operator/internal/mcpl"
	"mcpl.dev/operator/internal/pair"
	"mcpl.dev/operator/test/connector"
)

// ended waits until nothing of a session runs any more.
func (b *bench) ended(s *Session) {
	b.Helper()
	select {
	case <-s.stopped:
	case <-b.ctx.Done():
		b.Fatal("the session did not end")
	}
}

func TestRemove(t *testing.T) {
	t.Run("with requests in flight and others waiting", func(t *testing.T) {
		b := start(t, setup{Options: demo(2), config: func(c *Config) { c.Window = 1 }}).owned(always).registered()
		b.c.Once(connector.On("channels/open", "demo:c1").HeldAt("pending"))
		pending := b.apply(v1.StateOpen, "demo:c1")
		b.held("pending", 1)
		waiting := b.session().Apply("demo:c2", 0)
		s, wakes := b.session(), b.notify.wakesOf("demo:c2")
		b.registry.Remove(name)
		b.same(b.registry.Channel(key("demo:c1")), Channel{State: v1.ConnectorGone, Transport: v1.TransportUnconfirmed})
		if b.registry.Session(name.Namespace, serverID) != nil || b.notify.wakesOf("demo:c2") == wakes {
			t.Error("it is still there, or nobody was told")
		}
		b.ended(s)
		for op, want := range map[*Operation]decision.Outcome{pending: noAnswer, waiting: missing} {
			got, _, settled := s.Result(op)
			b.same(got, want)
			b.same(settled, true)
		}
		got, _, settled := s.Result(s.Apply("demo:c1", 0)) // whoever still holds the session
		b.same(got, missing)
		b.same(settled, true)
		b.must(b.c.WaitUntil(b.ctx, func() bool { return !b.c.Status().Connected }))
	})
	t.Run("F20 and made again: the old work is cancelled, the registration's own applies", func(t *testing.T) {
		b := start(t, setup{Options: demo(2), config: func(c *Config) { c.Window = 1 }}).owned(always).registered()
		b.c.Once(connector.On("channels/open", "demo:c1").HeldAt("pending"))
		b.apply(v1.StateOpen, "demo:c1")
		b.held("pending", 1)
		old, waiting := b.session(), b.apply(v1.StateOpen, "demo:c2")
		b.registry.Remove(name)
		b.c.Reset()
		b.decide(v1.StateClosed, "demo:c2")
		b.ensure()
		b.untilIs(v1.TransportOpen, "demo:c1")
		b.untilIs(v1.TransportClosed, "demo:c2")
		got, _, settled := old.Result(waiting)
		b.same(got, missing)
		b.same(settled, true)
		b.sent("open demo:c1", "close demo:c2")
	})
	t.Run("while a dial waits", func(t *testing.T) {
		b := start(t, setup{timing: Timing{time.Hour, time.Hour}})
		b.must(b.c.Pause())
		b.ensure()
		b.untilTrouble(v1.ReasonDialFailed)
		s := b.session()
		b.registry.Remove(name)
		b.ended(s)
	})
	t.Run("while there is nothing to dial", func(t *testing.T) {
		b := start(t, setup{config: func(c *Config) { c.Target = Target{} }})
		b.ensure()
		s := b.session()
		b.registry.Remove(types.NamespacedName{Namespace: name.Namespace, Name: "another"})
		b.same(b.session() == s, true)
		b.registry.Remove(name)
		b.ended(s)
	})
}

// blackhole accepts connections and never says a word.
func blackhole(t *testing.T) (address string, accepted <-chan struct{}) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	came, done := make(chan struct{}, 9), make(chan struct{})
	go func() {
		defer close(done)
		var conns []net.Conn
		for {
			c, err := l.Accept()
			if err != nil {
				break
			}
			conns = append(conns, c)
			came <- struct{}{}
		}
		for _, c := range conns {
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return l.Addr().String(), came
}

// The registry's end is the end of everything: TestMain looks for what is left.
func TestStop(t *testing.T) {
	t.Run("with requests in flight", func(t *testing.T) {
		b := start(t, setup{Options: demo(8)}).owned(always)
		b.c.Always(connector.On("", "").HeldAt("busy").Beside())
		b.up()
		b.held("busy", 4)
		s := b.session()
		b.stop()
		b.ended(s)
		b.ensure() // too late
		b.same(b.registry.Session(name.Namespace, serverID) == nil, true)
		b.same(b.snapshot(), Snapshot{})
	})
	t.Run("P16 while a server that accepts never answers", func(t *testing.T) {
		b := start(t, setup{})
		address, accepted := blackhole(t)
		b.ensure(func(c *Config) { c.Target.Address = address })
		<-accepted
		b.stop()
	})
	t.Run("P16 while TLS is not answered", func(t *testing.T) {
		b := start(t, setup{})
		address, accepted := blackhole(t)
		b.ensure(func(c *Config) { c.Target.Address, c.Target.TLS = address, true })
		<-accepted
		b.stop()
	})
	t.Run("during the handshake", func(t *testing.T) {
		o := demo(1)
		o.Behavior.Initialize.Kind = connector.InitializeNever
		b := start(t, setup{Options: o})
		b.ensure()
		b.asked("initialize", "")
		b.stop()
	})
	t.Run("while the policy is not answered", func(t *testing.T) {
		o := demo(1)
		o.Behavior.Policy.Kind = connector.PolicyNever
		b := start(t, setup{Options: o})
		b.ensure()
		b.asked("featureSets/update", "")
		b.stop()
	})
	t.Run("P16 of a connector that is frozen, with removed sessions, too", func(t *testing.T) {
		b := start(t, setup{Options: demo(2)}).owned(always).registered()
		b.c.Freeze()
		s := b.session()
		s.Apply("demo:c1", 0)
		b.registry.Remove(name)
		b.stop()
		select {
		case <-s.stopped:
		default:
			t.Error("the registry ended before a session of its own")
		}
		b.c.Thaw()
	})
	t.Run("without any", func(t *testing.T) {
		start(t, setup{}).stop()
	})
}

func TestConnectorMadeAnew(t *testing.T) {
	t.Run("nothing of the old one is used", func(t *testing.T) {
		clk := newClock()
		o := demo(1)
		o.Token = canary
		b := start(t, setup{Options: o, clock: clk, timing: hour, config: withToken, secrets: []client.Object{secret("token", map[string]string{"token": canary})}})
		b.owned(always).registered()
		b.settles(b.apply(v1.StateOpen, "demo:c1"), ok)
		old := b.session()
		b.ensure(func(c *Config) { c.UID, c.Target.TokenSecret, c.Handshakes = "2", "", 7 })
		b.same(b.session() != old, true)
		b.same(b.channel("demo:c1"), Channel{State: v1.ConnectorConnecting, DisturbedAt: clk.Now(), Transport: v1.TransportUnconfirmed})
		b.ended(old)
		b.untilTrouble(v1.ReasonTokenRefused)
		b.ensure(func(c *Config) { c.Target.TokenSecret = "token" })
		b.until("it to be up", func() bool { return b.snapshot().State == v1.ConnectorUp })
		b.same(b.snapshot().Generation, int64(8))
	})
	t.Run("it waits until nothing of the old one runs", func(t *testing.T) {
		var sessions []*Session // all before the present one
		dialled := func() {
			for _, s := range sessions {
				select {
				case <-s.stopped:
				default:
					t.Error("it dials while an older session runs")
				}
			}
		}
		b := start(t, setup{Options: demo(1), dialer: func(d *NetDialer) Dialer { return tellingDialer{d, dialled} }, mayViolate: true})
		b.owned(always).registered()
		for _, uid := range []types.UID{"2", "3", "4", "5"} {
			b.c.Freeze() // it says no goodbye for some time
			sessions = append(sessions, b.session())
			if uid == "4" {
				b.registry.Remove(name)
			}
			b.ensure(func(c *Config) { c.UID = uid })
			if uid != "2" { // whose successor comes before it has begun
				b.c.Thaw()
				b.up()
			}
		}
		b.untilIs(v1.TransportClosed, "demo:c1")
	})
	t.Run("another Connector of the same server", func(t *testing.T) {
		b := start(t, setup{Options: demo(1)}).owned(always).registered()
		old := b.session()
		b.registry.Ensure(types.NamespacedName{Namespace: name.Namespace, Name: "discord-2"}, serverID, b.config)
		b.same(b.session() != old, true)
		b.ended(old)
		b.until("it to be up", func() bool { return b.snapshot().State == v1.ConnectorUp })
		b.registry.Remove(name) // which has none any more
		b.same(b.session().connector.Name, "discord-2")
	})
	t.Run("what ended is forgotten", func(t *testing.T) {
		b := start(t, setup{}).up()
		s := b.session()
		b.registry.Remove(name)
		b.ended(s)
		b.stop()
		b.same(len(b.registry.ending), 0)
	})
}

// tellingDialer tells of each dial.
type tellingDialer struct {
	Dialer
	dialled func()
}

func (d tellingDialer) Dial(ctx context.Context, t Target) (mcpl.Transport, error) {
	d.dialled()
	return d.Dialer.Dial(ctx, t)
}

// P17: one connector that hangs delays no other.
func TestConnectorsAreApart(t *testing.T) {
	b := start(t, setup{Options: demo(2)}).owned(always).registered()
	other, err := connector.Start(b.ctx, demo(3))
	b.must(err)
	t.Cleanup(func() { _ = other.Close() })
	b.c.Always(connector.On("", "").HeldAt("slow"))
	for range 5 {
		b.session().Apply("demo:c1", 0)
		b.session().Apply("demo:c2", 0)
	}
	b.held("slow", 1)
	c := b.config
	c.UID, c.Target = "slack", podTarget(other)
	b.registry.Ensure(types.NamespacedName{Namespace: name.Namespace, Name: "slack"}, "slack", c)
	for _, id := range []string{"demo:c1", "demo:c2", "demo:c3"} {
		k := pair.Key{Namespace: name.Namespace, ServerID: "slack", ChannelID: id}
		b.until(id+" of the other to be closed", func() bool { return b.registry.Channel(k).Transport == v1.TransportClosed })
	}
	b.same(b.snapshot().Outstanding, 2)
	b.c.Release("slow")
	b.rest()
}
