package controllers

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/internal/decision"
	"mcpl.dev/operator/internal/pair"
	"mcpl.dev/operator/internal/session"
)

type queueOf = workqueue.TypedRateLimitingInterface[pair.Key]

// scope is what was gathered of a channel for one reconciliation.
type scope struct {
	key    pair.Key
	memory *memory

	// connector serves the pair, nil where there is none.
	connector *v1.Connector
	session   *session.Session
	live      session.Channel
	record    decision.Record

	// channel stands for the pair, nil where no object does; rivals claim it too, and orphans have
	// a Connector that was never there.
	channel *v1.Channel
	rivals  []v1.Channel
	orphans []v1.Channel
	// leaving are Channels of the pair that are being deleted and have our finalizer.
	leaving []v1.Channel
	// decisions about the pair, in the order in which they are taken.
	decisions []v1.ChannelDecision

	// recheck is when to look again although nothing happens; 0 for never.
	recheck time.Duration
}

// again asks for another look after d at the latest.
func (s *scope) again(d time.Duration) {
	if d > 0 && (s.recheck == 0 || d < s.recheck) {
		s.recheck = d
	}
}

// known reports whether there is anything to own.
func (s *scope) known() bool {
	return s.channel != nil || len(s.rivals)+len(s.orphans)+len(s.leaving)+len(s.decisions) > 0 ||
		s.live.Registered || s.record.Revision > 0 || s.memory.engaged()
}

// unserved reports whether the channel has no object where only channels that have one are served.
func (s *scope) unserved() bool {
	return s.connector != nil && s.connector.Spec.Channels == v1.ChannelsDeclared && s.channel == nil
}

// object is the Channel whose spec counts for the pair, one that is being deleted if there is no
// other: what it says of holds and suspension is so until it is gone.
func (s *scope) object() *v1.Channel {
	if s.channel == nil && len(s.leaving) > 0 {
		return &s.leaving[0]
	}
	return s.channel
}

// hold is what keeps the channel closed whatever is decided, nil where nothing does.
func (s *scope) hold() *v1.Hold {
	switch c := s.object(); {
	case c != nil && c.Spec.Hold != nil:
		return c.Spec.Hold
	case s.connector != nil:
		return s.connector.Spec.Hold
	}
	return nil
}

// suspended reports whether nothing is to be sent for the channel.
func (s *scope) suspended() bool { c := s.object(); return c != nil && c.Spec.Suspend }

// absent reports whether there is no such channel, as far as anybody knows: no Connector serves
// it, or it is neither registered nor declared by an object nor on record.
func (s *scope) absent() bool {
	return s.connector == nil || s.unserved() || (s.channel == nil && !s.live.Registered && s.record.Revision == 0)
}

// situation is what the rules need to know, as it is now.
func (s *scope) situation() decision.Situation {
	name := ""
	if s.connector != nil {
		name = s.connector.Name
	}
	return decision.Situation{
		ConnectorName: name,
		Record:        s.record, Transport: s.live.Transport, Registered: s.live.Registered,
		Connector: s.live.State, Lifecycle: s.live.Lifecycle, Outstanding: s.live.Outstanding > 0,
		Held: s.hold() != nil,
	}
}

// gather reads everything that a reconciliation needs from memory and cache.
func (r *ChannelReconciler) gather(ctx context.Context, key pair.Key) (*scope, error) {
	s := &scope{key: key, memory: r.memories.of(key), live: r.sessions.Channel(key), record: r.ledger.Record(key)}
	s.session = r.sessions.Session(key.Namespace, key.ServerID)
	s.memory.engagements = append(s.memory.engagements, r.memories.collect(key)...)
	var err error
	if s.connector, err = r.server(ctx, key.Namespace, key.ServerID); err != nil {
		return nil, err
	}
	if err := r.gatherChannels(ctx, s); err != nil {
		return nil, err
	}
	return s, r.gatherDecisions(ctx, s)
}

func (r *ChannelReconciler) gatherChannels(ctx context.Context, s *scope) error {
	var list v1.ChannelList
	// The list need not wait for writes to other channels; the one object that is written is read
	// again below, and waits for our own writes to it.
	err := r.cache.List(ctx, &list, client.InNamespace(s.key.Namespace), client.MatchingFields{byChannelID: s.key.ChannelID})
	if err != nil {
		return err
	}
	var claims []v1.Channel
	for _, c := range list.Items {
		switch key, resolved := r.channel(ctx, &c); {
		case key != s.key:
		case !c.DeletionTimestamp.IsZero():
			if controllerutil.ContainsFinalizer(&c, v1.CloseFinalizer) {
				s.leaving = append(s.leaving, c)
			}
		case resolved:
			claims = append(claims, c)
		default:
			s.orphans = append(s.orphans, c)
		}
	}
	if len(claims) == 0 {
		return nil
	}
	slices.SortFunc(claims, func(a, b v1.Channel) int {
		if stands(&a, &b) {
			return -1
		}
		return 1
	})
	s.channel, s.rivals = &v1.Channel{}, claims[1:]
	if err := r.Get(ctx, nameOf(&claims[0]), s.channel); err != nil {
		s.channel = nil
		return client.IgnoreNotFound(err)
	}
	return nil
}

// stands reports whether Channel a stands for a pair before b: one that somebody made before one
// that the operator made and nobody touched, then the older.
func stands(a, b *v1.Channel) bool {
	if u := untouched(a); u != untouched(b) {
		return !u
	}
	return older(a, b)
}

// untouched reports whether the operator made a Channel and nobody has edited its spec since.
func untouched(c *v1.Channel) bool {
	return c.Labels[v1.DiscoveredLabel] == "true" && c.Generation == 1
}

func (r *ChannelReconciler) gatherDecisions(ctx context.Context, s *scope) error {
	subjects := []string{pairSubject(s.key.ServerID, s.key.ChannelID)}
	for _, c := range slices.Concat(s.rivals, s.orphans, s.leaving) {
		subjects = append(subjects, nameSubject(c.Name))
	}
	if s.channel != nil {
		subjects = append(subjects, nameSubject(s.channel.Name))
	}
	for _, subject := range subjects {
		var list v1.ChannelDecisionList
		err := r.cache.List(ctx, &list, client.InNamespace(s.key.Namespace), client.MatchingFields{byChannel: subject})
		if err != nil {
			return err
		}
		for _, d := range list.Items {
			if d.DeletionTimestamp.IsZero() {
				s.decisions = append(s.decisions, d)
			}
		}
	}
	slices.SortFunc(s.decisions, func(a, b v1.ChannelDecision) int {
		order, _ := resourceversion.CompareResourceVersion(place(&a), place(&b))
		return order
	})
	return nil
}

// place is a decision's place among those not recorded: the resource version of its first sight.
func place(d *v1.ChannelDecision) string {
	if d.Status.SeenAt != "" {
		return d.Status.SeenAt
	}
	return d.ResourceVersion
}

// memory is what the owner of a channel remembers between two reconciliations. All of it can be
// lost: a manager that starts has none of it.
type memory struct {
	// owed says that the channel is to be judged like a newly registered one, and applied.
	owed bool
	// admission and suspended are what the Channel's spec said of them at the last look.
	admission v1.State
	suspended bool
	// work is what each decision under way waits for.
	work map[types.UID]*work
	// storeFailedSince is since when the record could not be stored.
	storeFailedSince time.Time
	// differs is what the status should have said and did not yet, and since when.
	differs      string
	differsSince time.Time
	// engagements are the incidental opens under way, oldest first.
	engagements []*engagement
	// leaving is the close that each Channel that goes waits for.
	leaving map[types.UID]*work
	// handled is the reconcile-at of the Channel that was carried out and not reported yet.
	handled string
	// missingSince is since when a connected connector does not register the channel.
	missingSince time.Time
	// settledAt is when the channel was last seen to be as it should.
	settledAt time.Time
	// uid and written are the Channel whose status was written last, and its resource version then.
	uid     types.UID
	written string
	// writing says that a write is out; seen is the version that a watch brought meanwhile, which
	// may be its own.
	writing bool
	seen    string
}

// work is a recorded decision's way to its answer.
type work struct {
	session *session.Session
	// operation is nil while nothing of it is queued: the channel is suspended.
	operation *session.Operation
	history   int
	success   v1.Result
	changed   bool
	revision  int64
	since     time.Time
	told      string // the reason of Complete that was written last, empty for none

	// decline is set for a decline.
	decline *declining
}

// memories are the memories of all channels.
type memories struct {
	mu sync.Mutex
	m  map[pair.Key]*memory
	// mail is what was laid down for owners and not collected yet.
	mail map[pair.Key][]*engagement
}

func (m *memories) of(key pair.Key) *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.m == nil {
		m.m = map[pair.Key]*memory{}
	}
	if m.m[key] == nil {
		m.m[key] = &memory{}
	}
	return m.m[key]
}

func (m *memories) forget(key pair.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.m, key)
}

// wrote reports whether this version of a Channel is the one that its owner wrote last.
func (m *memories) wrote(key pair.Key, uid types.UID, version string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	memory := m.m[key]
	switch {
	case memory == nil || memory.uid != uid:
		return false
	case memory.writing:
		memory.seen = version
		return true
	}
	return memory.written == version
}

// writing notes that the owner of a Channel writes it.
func (m *memories) writing(memory *memory, c *v1.Channel) {
	m.mu.Lock()
	defer m.mu.Unlock()
	memory.uid, memory.writing, memory.seen = c.UID, true, ""
}

// written notes the version that the write has made, if it has. It reports whether somebody else
// wrote meanwhile, so that the owner must look again.
func (m *memories) written(memory *memory, version string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	memory.writing = false
	if version != "" {
		memory.written = version
	}
	return memory.seen != "" && memory.seen != memory.written
}
