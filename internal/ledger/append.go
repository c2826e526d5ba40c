package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/internal/decision"
	"mcpl.dev/operator/internal/pair"
)

// ErrChanged says that the record is not what the caller judged: it has been read again, and the
// rules must be applied again.
var ErrChanged = errors.New("the channel's record changed meanwhile")

// ErrUnknown says that an append was not answered and could not be looked up either: nobody knows
// whether it took place. The record is read before it is used again.
var ErrUnknown = errors.New("the API server did not answer an append, nor say whether it took place")

// lookupTimeout bounds the reading that follows an append without an answer.
const lookupTimeout = 10 * time.Second

// Entry is what is appended.
type Entry struct {
	// Write is the new record; nil notes a decision that was answered without one.
	Write *decision.Write
	// DecidedBy and Ref say who asked.
	DecidedBy string
	Ref       *v1.DecisionReference
	// Named says that Ref had a name of its own.
	Named bool
	// PolicyNotice notes that the policy's notice is given with this record.
	PolicyNotice bool
	// Label is what the connector calls the channel now; empty where it does not say.
	Label string
	// HistoryLimit and Exists say which entries of the history are kept; see decision.TrimHistory.
	HistoryLimit int
	Exists       func(v1.DecisionReference) bool
}

// Append makes an entry the newest of a channel's record, over exactly the record that the caller
// judged (now). It returns the record that is then in force. ErrChanged and ErrUnknown are
// described with them; any other error means that nothing was stored.
func (l *Ledger) Append(ctx context.Context, key pair.Key, now decision.Record, e Entry) (decision.Record, error) {
	base, err := l.begin(ctx, key)
	if err != nil {
		return decision.Record{}, err
	}
	object, err := l.attempt(ctx, key, base, now, e)
	return l.end(key, object), err
}

// begin reserves the entry for a write, and gives the object that the write is to build upon.
func (l *Ledger) begin(ctx context.Context, key pair.Key) (*v1.ChannelRecord, error) {
	if err := l.Refresh(ctx, key); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.at(key)
	e.writing = true
	return e.object, nil
}

// end takes in what a write has left on the API server, nil where that is what was there before.
func (l *Ledger) end(key pair.Key, object *v1.ChannelRecord) decision.Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.at(key)
	e.writing = false
	if object != nil {
		e.keep(object)
	} else if e.seen != "" && newer(e.seen, e.version()) {
		e.stale = true
	}
	return e.record()
}

// attempt writes once. It returns the object as it now is, nil where nothing was learned.
func (l *Ledger) attempt(ctx context.Context, key pair.Key, base *v1.ChannelRecord, now decision.Record, e Entry) (*v1.ChannelRecord, error) {
	if base != nil && base.Revision != now.Revision || base == nil && now.Revision != 0 {
		return nil, ErrChanged
	}
	next, id := l.next(key, base, e)
	var err error
	if base == nil {
		err = l.write.Create(ctx, next)
	} else {
		err = l.write.Update(ctx, next)
	}
	switch {
	case err == nil:
		return next, nil
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err) && base != nil:
		return l.reread(ctx, key, ErrChanged)
	case refusedOutright(err):
		return nil, err
	}
	// The answer is lost or says nothing about the outcome: only a look can tell.
	look, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookupTimeout)
	defer cancel()
	found, lookErr := l.reread(look, key, nil)
	switch {
	case lookErr != nil:
		l.markStale(key)
		return nil, fmt.Errorf("%w: %w", ErrUnknown, err)
	case holds(found, id):
		return found, nil
	}
	return found, err
}

// next is the object with the entry appended, and the id by which the append can be recognized.
func (l *Ledger) next(key pair.Key, base *v1.ChannelRecord, e Entry) (*v1.ChannelRecord, string) {
	var object *v1.ChannelRecord
	if base != nil {
		object = base.DeepCopy()
	} else {
		object = &v1.ChannelRecord{
			ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.RecordName()},
			ServerID:   key.ServerID,
			ChannelID:  key.ChannelID,
		}
	}
	made := v1.Record{ID: l.newID(), DecidedBy: e.DecidedBy, DecisionRef: e.Ref, At: metav1.NewTime(l.clock.Now())}
	changed := e.Write != nil
	switch {
	case changed:
		made.State, made.Source = e.Write.State, e.Write.Source
		object.Revision++
		object.Record = made
		object.TuneOut = nil
	case base == nil:
		// A named decision that changed nothing of an undecided channel: that becomes revision 1.
		object.Revision = 1
		object.Record = v1.Record{ID: l.newID(), State: v1.StateClosed, Source: v1.SourceDefaultClosed, At: made.At}
		made.State, made.Source = object.Record.State, object.Record.Source
	default:
		made.State, made.Source = base.Record.State, base.Record.Source
	}
	entry := v1.HistoryEntry{Revision: object.Revision, Changed: &changed, Named: e.Named, Record: made}
	object.History = decision.TrimHistory(append([]v1.HistoryEntry{entry}, object.History...), e.HistoryLimit, e.Exists)
	object.PolicyNoticeGiven = object.PolicyNoticeGiven || e.PolicyNotice
	object.LabelSightings = decision.SightLabel(object.LabelSightings, e.Label, key.ChannelID)
	return object, made.ID
}

// Refresh reads a record again where it may have changed behind the memory's back. ErrChanged says
// that it has.
func (l *Ledger) Refresh(ctx context.Context, key pair.Key) error {
	l.mu.RLock()
	e := l.entries[key]
	stale, before := e != nil && e.stale, e.record()
	l.mu.RUnlock()
	if !stale {
		return nil
	}
	object, err := l.reread(ctx, key, nil)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if object == nil {
		delete(l.entries, key)
	} else {
		l.at(key).keep(object)
	}
	if l.entries[key].record() != before {
		return ErrChanged
	}
	return nil
}

// reread reads the record from the API server. It returns err if the reading went well, so that a
// caller can say why it read. A record that is not there is nil.
func (l *Ledger) reread(ctx context.Context, key pair.Key, err error) (*v1.ChannelRecord, error) {
	object := &v1.ChannelRecord{}
	switch getErr := l.live.Get(ctx, objectName(key), object); {
	case apierrors.IsNotFound(getErr):
		l.markStale(key)
		return nil, err
	case getErr != nil:
		l.markStale(key)
		return nil, getErr
	}
	return object, err
}

func (l *Ledger) markStale(key pair.Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at(key).stale = true
}

// holds reports whether an append with this id took place.
func holds(object *v1.ChannelRecord, id string) bool {
	if object == nil {
		return false
	}
	if object.Record.ID == id {
		return true
	}
	for _, entry := range object.History {
		if entry.ID == id {
			return true
		}
	}
	return false
}

// refusedOutright reports whether the API server said that it did not store anything.
func refusedOutright(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsNotFound(err) || apierrors.IsTooManyRequests(err) || apierrors.IsUnauthorized(err) ||
		apierrors.IsRequestEntityTooLargeError(err)
}
