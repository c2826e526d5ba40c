package session

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/internal/decision"
	"mcpl.dev/operator/internal/mcpl"
	"mcpl.dev/operator/internal/pair"
)

// Decisions says what is decided, at the moment of sending.
type Decisions interface {
	Record(pair.Key) decision.Record
	// WantsOpen says what the transport should be, which is not always what the record says.
	WantsOpen(pair.Key) bool
}

// Notify tells others what a session has learned. It must not block and must not call the session.
type Notify interface {
	// Channel wakes the owner of a channel.
	Channel(pair.Key)
	// Connector wakes the connector's reconciler.
	Connector(types.NamespacedName)
	// PolicyNotice says that the subscription opened these channels, by their labels.
	PolicyNotice(connector types.NamespacedName, labels []string)
	// Event reports what a person may want to know of a connector. reason is one of the constants here.
	Event(connector types.NamespacedName, reason, message string)
}

// Reasons of the events that a session reports.
const (
	EventChannelsRegistered = "ChannelsRegistered"
	EventChannelsChanged    = "ChannelsChanged"
	EventDescriptorRejected = "DescriptorRejected"
	EventPushKnownChannel   = "PushKnownChannel"
	EventIncomingRejected   = "IncomingRejected"
	EventReconcileSkipped   = "ReconcileSkipped"
	EventOpenSubstituted    = "OpenSubstituted"
	EventReconcileFailed    = "ReconcileFailed"
)

// Session is the live connection to one connector, over all its reconnects.
type Session struct {
	connector types.NamespacedName
	serverID  string
	decisions Decisions
	notify    Notify
	dialer    Dialer
	clock     clock.WithTicker
	timing    Timing
	version   string

	// kick wakes the dial loop: the configuration has changed.
	kick chan struct{}
	// stop ends the session; stopped is closed when nothing of it runs any more.
	stop    func()
	stopped chan struct{}
	// calls are the goroutines that await answers.
	calls sync.WaitGroup

	mu     sync.Mutex
	config Config
	state  v1.ConnectorState
	// disturbedAt is when what was confirmed stopped being so: the start, or the last loss.
	disturbedAt time.Time
	upSince     time.Time
	trouble     Trouble

	// conn is the established connection, nil while there is none; connection numbers it.
	conn       *mcpl.Conn
	connection int64
	grant      mcpl.Grant
	peer       Peer
	// manifestChanged has the manifest of the established connection fetched again.
	manifestChanged chan struct{}

	entries  map[string]*entry
	order    []string // ids of entries, in the order in which they were first registered
	entryIDs uint64
	queues   map[string]*queue
	window   window
	listing  listing
	// removed are channels that were removed since the list was asked for, which may still name them.
	removed map[string]bool
	// refused are channels that the connector offered beyond what it may have.
	refused map[string]bool
}

// Config is what a Connector's spec makes of its session.
type Config struct {
	UID types.UID
	// Target is where to dial; the zero Target while there is nothing to dial.
	Target Target
	// Deny are the capability patterns taken from the grant.
	Deny []string
	// MaxChannels bounds the registered channels.
	MaxChannels int
	// Window is how many requests may be in flight.
	Window int
	// RequestTimeout of general requests, 0 for none.
	RequestTimeout time.Duration
	// Admission stands for all that decides which channels are admitted; when it changes, the
	// declared channels are judged again.
	Admission string
	// DialAt, when it changes, ends the wait before the next dial.
	DialAt string
	// Handshakes is how many there were before this session.
	Handshakes int64
}

// Peer is what the connector said of itself on the present connection, or the last one.
type Peer struct {
	Name, Version string
	Negotiated    string // a reason of the condition Negotiated
	Capabilities  []string
	Unavailable   []string
	Manifest      string // its manifest's digest
	Tools         bool   // it has tools, which the manifest does not say
}

// Trouble is why there is no connection.
type Trouble struct {
	Reason  string // a reason of the condition Connected
	Message string
}

// Snapshot is what is known of a session now.
type Snapshot struct {
	State      v1.ConnectorState
	Lifecycle  bool
	Trouble    Trouble
	Peer       Peer
	Generation int64
	UpSince    time.Time
	// DisturbedAt is when what was confirmed stopped being so: the start, or the last loss.
	DisturbedAt time.Time
	// Registered, Open and Outstanding count channels. Outstanding has work queued or in flight, or
	// waits for its registration to be recorded.
	Registered, Open, Outstanding int
	// TunedOut counts channels that are decided so, Unsettled those not confirmed to be what is decided.
	TunedOut, Unsettled int
	// Refused counts the channels that the connector offered beyond its limit, up to maxRemembered.
	Refused int
}

// maxRemembered bounds what is remembered of channels that are not registered: a connector may name
// new ones without end.
const maxRemembered = 1000

// Channel is what is known of one channel now.
type Channel struct {
	State       v1.ConnectorState
	Lifecycle   bool
	UpSince     time.Time
	DisturbedAt time.Time

	Registered, PushKnown bool
	Descriptor            mcpl.Descriptor
	Transport             v1.TransportState
	Outstanding           int
	InFlight              bool
	Failure               *decision.Outcome
	FailedOpening         bool
	// Registering says that its registration is not recorded and applied yet.
	Registering bool
	// Entering says that its registration is being answered, and nothing may be made of it yet.
	Entering bool
	// Ticket is the channel's place in a registration that waits for its decision to be recorded.
	Ticket *Ticket
}

// Snapshot tells what is known of the session now.
func (s *Session) Snapshot() Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	snap := Snapshot{
		State: s.state, Lifecycle: s.grant.Allows(mcpl.CapChannelsLifecycle), Trouble: s.trouble, Peer: s.peer,
		Generation: s.config.Handshakes + s.connection, UpSince: s.upSince, DisturbedAt: s.disturbedAt,
		Registered: len(s.entries), Refused: len(s.refused),
	}
	for id, e := range s.entries {
		if e.transport == v1.TransportOpen {
			snap.Open++
		}
		if e.batch != nil || s.queues[id] != nil {
			snap.Outstanding++
		}
		record := s.decisions.Record(s.key(id))
		// Nothing is owed to a channel that only a message named, until somebody decides it.
		if s.due(id, e) && (!e.pushKnown || record.Decided()) {
			snap.Unsettled++
		}
		if record.State == v1.StateTunedOut {
			snap.TunedOut++
		}
	}
	return snap
}

// Channel tells what is known of one channel now.
func (s *Session) Channel(channelID string) Channel {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := Channel{
		State: s.state, Lifecycle: s.grant.Allows(mcpl.CapChannelsLifecycle), UpSince: s.upSince, DisturbedAt: s.disturbedAt,
		Transport: v1.TransportUnconfirmed,
	}
	if q := s.queues[channelID]; q != nil {
		c.Outstanding, c.InFlight = len(q.operations), q.operations[0].sent != nil
	}
	if e := s.entries[channelID]; e != nil {
		c.Registered, c.PushKnown, c.Descriptor = true, e.pushKnown, e.descriptor
		c.Transport, c.Failure, c.FailedOpening, c.Ticket = e.transport, e.failure, e.failedOpening, e.ticket
		c.Registering, c.Entering = e.batch != nil || e.entering, e.entering
	}
	return c
}

// Apply queues one operation for a channel: it is to become what is decided when its turn comes.
// history, if above 0, is how many earlier messages an open should bring.
func (s *Session) Apply(channelID string, history int) *Operation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.enqueue(channelID, people, history)
}

// Last is the newest operation of a channel, nil where nothing is outstanding.
func (s *Session) Last(channelID string) *Operation {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.queues[channelID]; q != nil {
		return q.operations[len(q.operations)-1]
	}
	return nil
}

// Serve says whether a Channel object stands for a channel, where only such channels are served.
// It reports whether that is news.
func (s *Session) Serve(channelID string, served bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[channelID]
	if e == nil || e.unserved == !served {
		return false
	}
	e.unserved = !served
	return true
}

// Result tells how an operation ended, and whether it has.
func (s *Session) Result(op *Operation) (outcome decision.Outcome, history History, settled bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return op.outcome, op.fetched, op.settled
}

// configure takes a new configuration.
func (s *Session) configure(c Config) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.config
	c.Handshakes = old.Handshakes
	s.config = c
	s.window.size = c.Window
	if old.Admission != c.Admission {
		s.readmit()
	}
	s.window.pump()
	if old.Target != c.Target || !slices.Equal(old.Deny, c.Deny) || old.DialAt != c.DialAt {
		select {
		case s.kick <- struct{}{}:
		default: // the loop has been woken already, and reads the newest configuration
		}
	}
}

func (s *Session) name() types.NamespacedName { return s.connector }

func (s *Session) key(channelID string) pair.Key {
	return pair.Key{Namespace: s.connector.Namespace, ServerID: s.serverID, ChannelID: channelID}
}

func (s *Session) wakeChannel(channelID string) {
	s.notify.Channel(s.key(channelID))
	s.wakeConnector()
}

func (s *Session) wakeConnector() { s.notify.Connector(s.connector) }

// printable is an id as it may stand in a message: as it is if it is short and plain, else described.
func printable(id string) string {
	if len(id) == 0 || len(id) > 200 {
		return "a channel with an id of unusual length"
	}
	for _, b := range []byte(id) {
		if b <= ' ' || b > '~' {
			return "a channel whose id is not plain text"
		}
	}
	return id
}
