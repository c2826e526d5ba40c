package session

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/internal/pair"
)

// Registry holds the sessions. It is the only one that starts or ends them.
type Registry struct {
	decisions Decisions
	notify    Notify
	dialer    Dialer
	clock     clock.WithTicker
	timing    Timing
	version   string

	// running are all sessions, also those that are ending.
	running sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	sessions map[serverKey]*Session
	// ending is what still ends of each server: its next session waits for that.
	ending map[serverKey]*Session
}

// serverKey is a connector as records know it: two Connectors with one serverID are one server.
type serverKey struct{ namespace, serverID string }

// NewRegistry makes a Registry without sessions. version is what the host calls itself.
func NewRegistry(decisions Decisions, notify Notify, dialer Dialer, clk clock.WithTicker, timing Timing, version string) *Registry {
	return &Registry{
		decisions: decisions, notify: notify, dialer: dialer, clock: clk, timing: timing, version: version,
		sessions: map[serverKey]*Session{}, ending: map[serverKey]*Session{},
	}
}

// Start implements manager.Runnable: it ends all sessions when ctx ends, and returns when they have.
func (r *Registry) Start(ctx context.Context) error {
	<-ctx.Done()
	r.mu.Lock()
	r.closed = true
	sessions := r.sessions
	r.sessions = map[serverKey]*Session{}
	r.mu.Unlock()
	for _, s := range sessions {
		s.stop()
	}
	r.running.Wait()
	return nil
}

// Ensure has a session with this configuration. A Connector that was made anew gets a new session:
// nothing of the old one's connection or credentials is used.
func (r *Registry) Ensure(connector types.NamespacedName, serverID string, c Config) {
	key := serverKey{connector.Namespace, serverID}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	s := r.sessions[key]
	if s != nil && (s.connector != connector || s.configuration().UID != c.UID) {
		r.end(key, s)
		s = nil
	}
	if s == nil {
		r.sessions[key] = r.begin(connector, serverID, c)
		return
	}
	s.configure(c)
}

// begin starts a session. r.mu is held.
func (r *Registry) begin(connector types.NamespacedName, serverID string, c Config) *Session {
	key := serverKey{connector.Namespace, serverID}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Session{
		connector: connector, serverID: serverID, config: c,
		decisions: r.decisions, notify: r.notify, dialer: r.dialer, clock: r.clock, timing: r.timing, version: r.version,
		kick: make(chan struct{}, 1), stop: cancel, stopped: make(chan struct{}),
		state: v1.ConnectorConnecting, disturbedAt: r.clock.Now(),
		entries: map[string]*entry{}, queues: map[string]*queue{}, refused: map[string]bool{}, window: window{size: c.Window},
	}
	before := r.ending[key]
	r.running.Go(func() {
		if before != nil {
			<-before.stopped // a connector serves one host at a time, and may never answer a second one
		}
		s.run(ctx)
		r.ended(key, s)
	})
	return s
}

// ended forgets a session that has ended.
func (r *Registry) ended(key serverKey, s *Session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ending[key] == s {
		delete(r.ending, key)
	}
}

// Remove ends the session of a Connector that is gone or no longer serves. It does not wait.
func (r *Registry) Remove(connector types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, s := range r.sessions {
		if s.connector == connector {
			r.end(key, s)
		}
	}
}

// end takes a session away and tells the owners of its channels. r.mu is held.
func (r *Registry) end(key serverKey, s *Session) {
	delete(r.sessions, key)
	r.ending[key] = s
	s.stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range s.order {
		r.notify.Channel(s.key(id))
	}
}

// Session is the session of a server, nil where there is none.
func (r *Registry) Session(namespace, serverID string) *Session {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sessions[serverKey{namespace, serverID}]
}

// Channel is what is known of a channel now. Without a session its connector is Gone.
func (r *Registry) Channel(key pair.Key) Channel {
	if s := r.Session(key.Namespace, key.ServerID); s != nil {
		return s.Channel(key.ChannelID)
	}
	return Channel{State: v1.ConnectorGone, Transport: v1.TransportUnconfirmed}
}
