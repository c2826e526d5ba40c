package ledger

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/internal/decision"
	"mcpl.dev/operator/internal/pair"
)

// Ledger holds the record in force of every channel. One owner writes each channel's record;
// anybody may read.
type Ledger struct {
	// live reads the API server itself: a cache may hold a record that was replaced long ago.
	live  client.Reader
	write client.Writer
	clock clock.PassiveClock
	newID func() string

	mu      sync.RWMutex
	entries map[pair.Key]*entry
}

// entry is what is remembered of one channel.
type entry struct {
	// object is the ChannelRecord as it was last accepted or read; nil where there is none. It is
	// never changed in place.
	object *v1.ChannelRecord
	// undecided says that a first pass found nobody to have decided: the channel reads as
	// Closed/DefaultClosed, which is not stored.
	undecided bool
	// shut says that the channel is to be closed whatever is decided.
	shut bool
	// stale says that object may not be what the API server has: it is read before the next use.
	stale bool
	// seen and gone are what a watch brought since the last reading began: the newest resource
	// version, and a deletion. What is read or accepted may be older than they are.
	seen string
	gone bool
	// writing says that an append is out, so that what the watch brings may be its own.
	writing bool
}

// New makes a Ledger that reads from live, which must not be a cache, and writes with write.
// newID makes the ids of records; they must be unique.
func New(live client.Reader, write client.Writer, clk clock.PassiveClock, newID func() string) *Ledger {
	return &Ledger{live: live, write: write, clock: clk, newID: newID, entries: map[pair.Key]*entry{}}
}

// Load reads every record. It is called once, before anybody reads or appends: a manager that
// starts must know what is decided before any connector registers.
func (l *Ledger) Load(ctx context.Context) error {
	var list v1.ChannelRecordList
	for {
		if err := l.live.List(ctx, &list, client.Limit(500), client.Continue(list.Continue)); err != nil {
			return err
		}
		l.mu.Lock()
		for i := range list.Items {
			object := list.Items[i].DeepCopy()
			l.at(keyOf(object)).keep(object)
		}
		l.mu.Unlock()
		if list.Continue == "" {
			return nil
		}
	}
}

// Record is the record in force, the zero Record where there is none.
func (l *Ledger) Record(key pair.Key) decision.Record {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.entries[key].record()
}

// WantsOpen says what the transport of a channel should be. It is read at the moment of sending.
func (l *Ledger) WantsOpen(key pair.Key) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	e := l.entries[key]
	return e.record().WantsOpen() && !e.shut
}

// Object is the ChannelRecord as it was last accepted or read, nil where there is none. The caller
// must not change it.
func (l *Ledger) Object(key pair.Key) *v1.ChannelRecord {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if e := l.entries[key]; e != nil {
		return e.object
	}
	return nil
}

// MarkUndecided notes that nobody has decided the channel, so that it reads as Closed/DefaultClosed.
func (l *Ledger) MarkUndecided(key pair.Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.at(key)
	e.undecided = e.object == nil
}

// Shut has a channel closed whatever is decided of it, or ends that. It writes no record, and
// reports whether it changed anything.
func (l *Ledger) Shut(key pair.Key, shut bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.entries[key]; e == nil && !shut {
		return false
	}
	e := l.at(key)
	changed := e.shut != shut
	e.shut = shut
	return changed
}

// Observe takes what a watch brought of a record. It reports whether somebody else wrote it, so
// that the channel's owner must look.
func (l *Ledger) Observe(key pair.Key, resourceVersion string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.at(key)
	e.seen = resourceVersion
	if e.writing || !newer(resourceVersion, e.version()) {
		return false
	}
	e.stale = true
	return true
}

// ObserveDeletion takes the news that a record is gone. It reports whether that was not known.
func (l *Ledger) ObserveDeletion(key pair.Key) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[key]
	if e == nil || (e.object == nil && !e.writing) {
		return false
	}
	e.stale, e.gone = true, true
	return true
}

// Forget drops what is remembered of a channel that has no record.
func (l *Ledger) Forget(key pair.Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.entries[key]; e != nil && e.object == nil && !e.writing {
		delete(l.entries, key)
	}
}

// at is the entry of a channel, made where there is none. l.mu is held.
func (l *Ledger) at(key pair.Key) *entry {
	e := l.entries[key]
	if e == nil {
		e = &entry{}
		l.entries[key] = e
	}
	return e
}

// record is the record in force. A nil entry has none.
func (e *entry) record() decision.Record {
	switch {
	case e == nil:
		return decision.Record{}
	case e.object != nil:
		return decision.Record{State: e.object.Record.State, Source: e.object.Record.Source, Revision: e.object.Revision}
	case e.undecided:
		return decision.Record{State: v1.StateClosed, Source: v1.SourceDefaultClosed}
	}
	return decision.Record{}
}

func (e *entry) version() string { return version(e.object) }

// version is an object's resource version, empty for none.
func version(object *v1.ChannelRecord) string {
	if object == nil {
		return ""
	}
	return object.ResourceVersion
}

// keep remembers an object that the API server has accepted or shown.
func (e *entry) keep(object *v1.ChannelRecord) {
	// Nobody reads who wrote which field, and it is the larger half of a small object.
	object.ManagedFields = nil
	e.object, e.undecided = object, false
	e.stale = e.gone || (e.seen != "" && newer(e.seen, object.ResourceVersion))
}

// newer reports whether resource version a is newer than b; any is newer than none.
func newer(a, b string) bool {
	if b == "" {
		return true
	}
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err != nil || order > 0
}

func keyOf(object *v1.ChannelRecord) pair.Key {
	return pair.Key{Namespace: object.Namespace, ServerID: object.ServerID, ChannelID: object.ChannelID}
}

func objectName(key pair.Key) types.NamespacedName {
	return types.NamespacedName{Namespace: key.Namespace, Name: key.RecordName()}
}
