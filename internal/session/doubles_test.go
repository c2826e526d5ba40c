package session

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/internal/decision"
	"mcpl.dev/operator/internal/pair"
	"mcpl.dev/operator/test/connector"
)

// bell wakes everybody who waits for news.
type bell struct {
	mu   sync.Mutex
	next chan struct{}
}

func (b *bell) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next == nil {
		b.next = make(chan struct{})
	}
	return b.next
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next != nil {
		close(b.next)
		b.next = nil
	}
}

// decisions stands for the ledger.
type decisions struct {
	mu      sync.Mutex
	records map[string]decision.Record
}

func (d *decisions) Record(k pair.Key) decision.Record {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.records[k.ChannelID]
}

func (d *decisions) WantsOpen(k pair.Key) bool { return d.Record(k).WantsOpen() }

// decide has channels decided. No operation follows by itself.
func (b *bench) decide(state v1.State, ids ...string) {
	b.decisions.mu.Lock()
	defer b.decisions.mu.Unlock()
	for _, id := range ids {
		b.decisions.records[id] = decision.Record{State: state, Source: v1.SourceAgentTool, Revision: 1}
	}
}

// apply decides a channel and has that carried out.
func (b *bench) apply(state v1.State, id string) *Operation {
	b.Helper()
	b.decide(state, id)
	return b.session().Apply(id, 0)
}

// event is one that was reported.
type event struct{ Reason, Message string }

// notice is one of the policy, and how many opens the connector had answered before it.
type notice struct {
	Labels   []string
	Answered int
}

// recorder is a Notify that remembers. Like the real one it never calls the session.
type recorder struct {
	c    *connector.Connector
	bell bell

	mu      sync.Mutex
	woken   []pair.Key // channels whose owner has not looked yet
	wakes   map[string]int
	notices []notice
	events  []event
}

func (r *recorder) Channel(k pair.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.wakes == nil {
		r.wakes = map[string]int{}
	}
	r.wakes[k.ChannelID]++
	r.woken = append(r.woken, k)
	r.bell.ring()
}

func (r *recorder) Connector(types.NamespacedName) { r.bell.ring() }

func (r *recorder) PolicyNotice(_ types.NamespacedName, labels []string) {
	answered := len(r.c.Entries(connector.Answered("channels/open", "")))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notices = append(r.notices, notice{Labels: append([]string(nil), labels...), Answered: answered})
	r.bell.ring()
}

func (r *recorder) Event(_ types.NamespacedName, reason, message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, event{reason, message})
	r.bell.ring()
}

// told are the events with a reason, all if none is given.
func (r *recorder) told(reasons ...string) []event {
	r.mu.Lock()
	defer r.mu.Unlock()
	var events []event
	for _, e := range r.events {
		if len(reasons) == 0 || e.Reason == reasons[0] {
			events = append(events, e)
		}
	}
	return events
}

func (r *recorder) given() []notice {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]notice(nil), r.notices...)
}

func (r *recorder) wakesOf(id string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.wakes[id]
}

// take returns the keys that were woken since.
func (r *recorder) take() []pair.Key {
	r.mu.Lock()
	defer r.mu.Unlock()
	keys := r.woken
	r.woken = nil
	return keys
}

// judge is what a channel's owner makes of a registration.
type judge func(id string, c Channel) (apply, notice bool)

// always has every registered channel applied.
func always(string, Channel) (apply, notice bool) { return true, false }

// owned plays the channels' owners: each settles its ticket when it is woken.
func (b *bench) owned(by judge) *bench {
	ctx, cancel := context.WithCancel(context.Background())
	var owners sync.WaitGroup
	owners.Go(func() {
		for {
			news := b.notify.bell.wait()
			for _, k := range b.notify.take() {
				if c := b.registry.Channel(k); c.Ticket != nil {
					c.Ticket.Recorded(by(k.ChannelID, c))
					b.notify.bell.ring() // the test may wait for this
				}
			}
			select {
			case <-news:
			case <-ctx.Done():
				return
			}
		}
	})
	b.Cleanup(func() { cancel(); owners.Wait() })
	return b
}

// ticket waits for a channel's place in a registration.
func (b *bench) ticket(id string) *Ticket {
	b.Helper()
	b.until("a ticket for "+id, func() bool { return b.channel(id).Ticket != nil })
	return b.channel(id).Ticket
}

// steppedClock moves only when it is told to, and knows which timers and tickers were made.
type steppedClock struct {
	*clocktesting.FakeClock
	bell bell

	mu     sync.Mutex
	timers []time.Duration
}

func newClock() *steppedClock {
	return &steppedClock{FakeClock: clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))}
}

func (c *steppedClock) NewTimer(d time.Duration) clock.Timer {
	t := c.FakeClock.NewTimer(d)
	c.note(d)
	return &steppedTimer{t, c}
}

// steppedTimer tells when it is stopped.
type steppedTimer struct {
	clock.Timer
	c *steppedClock
}

func (t *steppedTimer) Stop() bool {
	defer t.c.bell.ring()
	return t.Timer.Stop()
}

func (c *steppedClock) NewTicker(d time.Duration) clock.Ticker {
	t := c.FakeClock.NewTicker(d)
	c.note(d)
	return t
}

func (c *steppedClock) After(d time.Duration) <-chan time.Time {
	after := c.FakeClock.After(d)
	c.note(d)
	return after
}

func (c *steppedClock) note(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timers = append(c.timers, d)
	c.bell.ring()
}

func (c *steppedClock) made(fits func(time.Duration) bool) []time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	var made []time.Duration
	for _, d := range c.timers {
		if fits(d) {
			made = append(made, d)
		}
	}
	return made
}

func exactly(d time.Duration) func(time.Duration) bool {
	return func(other time.Duration) bool { return other == d }
}

// onlyTicks waits until nothing but a ticker waits for the clock: all that was written is done with.
func (b *bench) onlyTicks(c *steppedClock) {
	b.Helper()
	for {
		news := c.bell.wait()
		if c.Waiters() == 1 {
			return
		}
		select {
		case <-news:
		case <-b.ctx.Done():
			b.Fatalf("%d timers are left", c.Waiters())
		}
	}
}

// timer waits until n timers that fit were made, and returns the last of them.
func (b *bench) timer(c *steppedClock, n int, fits func(time.Duration) bool) time.Duration {
	b.Helper()
	for {
		news := c.bell.wait()
		if made := c.made(fits); len(made) >= n {
			return made[n-1]
		}
		select {
		case <-news:
		case <-b.ctx.Done():
			b.Fatalf("waited in vain for %d timers, saw %v\njournal:\n%s", n, c.made(func(time.Duration) bool { return true }), b.journal())
		}
	}
}

// ok is how an operation ends well.
var ok = decision.Outcome{}
