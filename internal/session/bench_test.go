package session

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/internal/decision"
	"mcpl.dev/operator/internal/mcpl"
	"mcpl.dev/operator/internal/pair"
	"mcpl.dev/operator/test/connector"
)

// serverID is what the tests' one server is called, and name its Connector.
const serverID = "discord"

var name = types.NamespacedName{Namespace: "residents", Name: "discord"}

func key(channelID string) pair.Key {
	return pair.Key{Namespace: name.Namespace, ServerID: serverID, ChannelID: channelID}
}

// setup is what a test begins with. The zero value is a connector without channels, and a window of 4.
type setup struct {
	connector.Options
	secrets []client.Object
	// clock is the session's; the real one if it is nil.
	clock *steppedClock
	// timing of redials; a few milliseconds if it is zero.
	timing Timing
	config func(*Config)
	// dialer changes how is dialled.
	dialer func(*NetDialer) Dialer
	// pings says that the session's pings count although its clock is stepped.
	pings bool
	// mayViolate says that the test makes the session break the connector's rules.
	mayViolate bool
}

// bench is a session against the programmable connector.
type bench struct {
	*testing.T
	ctx       context.Context // far longer than anything takes
	c         *connector.Connector
	decisions *decisions
	notify    *recorder
	secrets   client.Client
	registry  *Registry
	config    Config
	stop      func() // ends the registry, and returns when it has ended
}

// start prepares everything and dials nothing yet. Like behind a bridge, a host that comes again
// takes the place of its own older connection.
func start(t *testing.T, s setup) *bench {
	t.Helper()
	s.Fence = true
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	c, err := connector.Start(ctx, s.Options)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{
		T: t, ctx: ctx, c: c, decisions: &decisions{records: map[string]decision.Record{}}, notify: &recorder{c: c},
		secrets: fake.NewClientBuilder().WithObjects(s.secrets...).Build(),
		config:  Config{UID: "1", Target: podTarget(c), MaxChannels: 200, Window: 4, RequestTimeout: time.Minute},
	}
	if s.config != nil {
		s.config(&b.config)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil && !errors.Is(err, net.ErrClosed) { // as it may be after Pause
			t.Errorf("close the connector: %v", err)
		}
	})
	b.begin(s)
	t.Cleanup(func() { // before the registry is stopped, which may cut a dial short
		if v := c.Violations(); len(v) > 0 && !s.mayViolate {
			t.Errorf("the session broke rules: %+v", v)
		}
	})
	return b
}

// begin runs a registry until the test ends, or stop is called.
func (b *bench) begin(s setup) {
	var clk clock.WithTicker = clock.RealClock{}
	ws := &NetDialer{Secrets: b.secrets, Identity: identity("7.0", "manager-0")}
	dialer := Dialer(ws)
	if s.dialer != nil {
		dialer = s.dialer(ws)
	}
	if s.clock != nil {
		clk = s.clock
		if !s.pings {
			dialer = steady{dialer}
		}
	}
	if s.timing == (Timing{}) {
		s.timing = Timing{RedialBase: time.Millisecond, RedialMax: 4 * time.Millisecond}
	}
	b.registry = NewRegistry(b.decisions, b.notify, dialer, clk, s.timing, "1.2.3")
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := b.registry.Start(ctx); err != nil {
			b.Errorf("the registry: %v", err)
		}
	}()
	b.stop = func() {
		cancel()
		select {
		case <-ended:
		case <-time.After(30 * time.Second):
			b.Error("the registry did not end")
		}
	}
	b.Cleanup(b.stop)
}

func identity(term, host string) func(context.Context) (Identity, error) {
	return func(context.Context) (Identity, error) { return Identity{Term: term, Host: host}, nil }
}

// podTarget leads to a connector as if it were a pod.
func podTarget(c *connector.Connector) Target {
	return Target{
		Namespace: name.Namespace, Address: c.Addr(), PodUID: "pod-1", Path: connector.Path,
		TLS: strings.HasPrefix(c.URL(), "wss"),
	}
}

// steady is a dialer of connections that never miss a ping: a clock that jumps would.
type steady struct{ Dialer }

func (s steady) Dial(ctx context.Context, t Target) (mcpl.Transport, error) {
	transport, err := s.Dialer.Dial(ctx, t)
	if err != nil {
		return nil, err
	}
	return steadyTransport{transport}, nil
}

type steadyTransport struct{ mcpl.Transport }

func (steadyTransport) Ping(context.Context) error { return nil }

// ensure has a session with the bench's configuration, after a change of it.
func (b *bench) ensure(changes ...func(*Config)) {
	for _, change := range changes {
		change(&b.config)
	}
	b.registry.Ensure(name, serverID, b.config)
}

// up connects, and waits until that is done.
func (b *bench) up() *bench {
	b.Helper()
	b.ensure()
	b.until("the connector to be up", func() bool { return b.snapshot().State == v1.ConnectorUp })
	return b
}

// listed connects and waits until the channels are registered and listed.
func (b *bench) listed() *bench {
	b.Helper()
	b.up()
	b.must(b.c.WaitRegistered(b.ctx))
	b.must(b.c.WaitCount(b.ctx, "channels/list", "", 1))
	b.flushUntil(func(s *Session) bool { return s.listing == notListing })
	return b
}

// registered connects and waits until the channels are registered, listed, and settled by their owners.
func (b *bench) registered() *bench {
	b.Helper()
	b.listed()
	b.idle()
	return b
}

// rest waits until the session has dealt with all that was said, and nothing is under way.
func (b *bench) rest() {
	b.Helper()
	b.flush()
	b.until("nothing to be under way", func() bool {
		s := b.session()
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, e := range s.entries {
			if e.ticket != nil {
				return false
			}
		}
		return len(s.queues) == 0
	})
}

// flush returns when the session has dealt with all that the connector said before.
func (b *bench) flush() {
	b.Helper()
	if _, err := b.c.Call(b.ctx, "ping", nil); err != nil {
		b.Fatal(err)
	}
}

// until waits for something that the session tells about: it looks again only when it is told.
func (b *bench) until(what string, condition func() bool) {
	b.Helper()
	for {
		news := b.notify.bell.wait()
		if condition() {
			return
		}
		select {
		case <-news:
		case <-b.ctx.Done():
			b.Fatalf("waited in vain for %s\nsession: %+v\nevents: %v\njournal:\n%s", what, b.snapshot(), b.notify.told(), b.journal())
		}
	}
}

// untilTrouble waits until a dial has failed for a reason, and returns what is said of it.
func (b *bench) untilTrouble(reason string) string {
	b.Helper()
	b.until("trouble "+reason, func() bool { return b.snapshot().Trouble.Reason == reason })
	return b.snapshot().Trouble.Message
}

// untilIs waits until a channel's transport is so and nothing is under way for it.
func (b *bench) untilIs(t v1.TransportState, ids ...string) {
	b.Helper()
	for _, id := range ids {
		b.until(id+" to be "+string(t), func() bool {
			c := b.channel(id)
			return c.Transport == t && c.Outstanding == 0 && c.Ticket == nil
		})
	}
}

// idle is rest, and waits for the list, too.
func (b *bench) idle() {
	b.Helper()
	b.rest()
	b.flushUntil(func(s *Session) bool { return s.window.inFlight == 0 && s.listing == notListing })
}

// flushUntil waits for what the session tells nobody of, such as a list that brings nothing.
func (b *bench) flushUntil(condition func(*Session) bool) {
	b.Helper()
	s := b.session()
	for {
		b.flush()
		s.mu.Lock()
		holds := condition(s)
		s.mu.Unlock()
		if holds {
			return
		}
	}
}

func (b *bench) session() *Session {
	b.Helper()
	s := b.registry.Session(name.Namespace, serverID)
	if s == nil {
		b.Fatal("there is no session")
	}
	return s
}

func (b *bench) snapshot() Snapshot {
	if s := b.registry.Session(name.Namespace, serverID); s != nil {
		return s.Snapshot()
	}
	return Snapshot{}
}

func (b *bench) channel(id string) Channel { return b.registry.Channel(key(id)) }

// result waits until an operation has settled.
func (b *bench) result(op *Operation) (decision.Outcome, History) {
	b.Helper()
	var outcome decision.Outcome
	var history History
	b.until("an operation to settle", func() (settled bool) {
		outcome, history, settled = b.session().Result(op)
		return settled
	})
	return outcome, history
}

// settles checks how an operation ends.
func (b *bench) settles(op *Operation, want decision.Outcome) {
	b.Helper()
	got, _ := b.result(op)
	b.same(got, want)
}

// same compares. Empty and absent lists are the same.
func (b *bench) same(got, want any) {
	b.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		b.Errorf("not what was wanted (-want +got):\n%s\njournal:\n%s", diff, b.journal())
	}
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// held waits until requests of the session wait at a gate of the connector.
func (b *bench) held(gate string, n int) {
	b.Helper()
	b.must(b.c.WaitHeld(b.ctx, gate, n))
}

// asked waits until the connector was asked, and returns the first such request.
func (b *bench) asked(method, id string) connector.Entry {
	b.Helper()
	entries, err := b.c.Wait(b.ctx, connector.Asked(method, id), 1)
	b.must(err)
	return entries[0]
}

// wire is what the session asked for, in order: "open demo:c1", "close demo:c2".
func (b *bench) wire(ids ...string) []string {
	var lines []string
	for _, e := range b.c.Entries(connector.Filter{Direction: connector.In, Kind: connector.Request}) {
		verb, isLifecycle := strings.CutPrefix(e.Method, "channels/")
		if !isLifecycle || verb == "list" || (len(ids) > 0 && e.ChannelID != ids[0]) {
			continue
		}
		lines = append(lines, verb+" "+e.ChannelID)
	}
	return lines
}

// sent checks what the session has opened and closed so far.
func (b *bench) sent(want ...string) {
	b.Helper()
	b.same(b.wire(), want)
}

// reconnects breaks the connection, and waits for the next one.
func (b *bench) reconnects(how func() error) {
	b.Helper()
	generation := b.snapshot().Generation
	b.must(how())
	b.until("the next connection", func() bool {
		s := b.snapshot()
		return s.Generation > generation && s.State == v1.ConnectorUp
	})
}

func (b *bench) journal() string {
	entries := b.c.Entries(connector.Filter{})
	var lines strings.Builder
	for _, e := range entries[max(0, len(entries)-40):] {
		lines.WriteString("\t" + e.String() + "\n")
	}
	return lines.String()
}

// network is a network in CIDR notation.
func network(cidr string) *net.IPNet {
	_, n, err := net.ParseCIDR(cidr)
	if err != nil {
		panic(err)
	}
	return n
}
