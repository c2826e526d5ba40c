package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
		return l.Record(key), err
	}
	err = l.attempt(ctx, key, base, now, e)
	if l.end(key) && err == nil {
		// The news of that write was taken for the append's own, so nobody else will look. What
		// can't be read now stays stale.
		_ = l.Refresh(ctx, key)
	}
	return l.Record(key), err
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

// end takes the reservation back. It reports whether somebody else's write followed the append.
func (l *Ledger) end(key pair.Key) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.at(key)
	e.writing = false
	followed := e.seen != "" && newer(e.seen, e.version())
	e.stale = e.stale || followed
	return followed && !e.gone // a deletion has woken the owner already
}

// attempt writes once, and finds out what became of it.
func (l *Ledger) attempt(ctx context.Context, key pair.Key, base *v1.ChannelRecord, now decision.Record, e Entry) error {
	if base != nil && base.Revision != now.Revision || base == nil && now.Revision != 0 {
		return ErrChanged
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
		l.keep(key, next)
		return nil
	case refusedOutright(err), base == nil && apierrors.IsNotFound(err):
		return err
	}
	// Somebody was faster, or the answer is lost, or both: a client that makes a request again by
	// itself collides with its own. Only a look can tell.
	look, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookupTimeout)
	defer cancel()
	found, lookErr := l.read(look, key)
	switch {
	case lookErr != nil:
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	case holds(found, id):
		return nil
	case version(found) != version(base), apierrors.IsAlreadyExists(err):
		return ErrChanged
	}
	return err
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
	l.mu.Lock()
	e := l.entries[key]
	if e == nil || !e.stale {
		l.mu.Unlock()
		return nil
	}
	before := e.record()
	e.seen, e.gone = "", false // what comes from here on may be newer than what is read
	l.mu.Unlock()

	object, err := l.read(ctx, key)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if e = l.at(key); object == nil {
		e.object, e.stale = nil, e.seen != ""
	}
	if e.record() != before {
		return ErrChanged
	}
	return nil
}

// read looks at the record on the API server and remembers it. One that is not there is nil, and
// is for Refresh to drop: the channel's owner has to notice.
func (l *Ledger) read(ctx context.Context, key pair.Key) (*v1.ChannelRecord, error) {
	object := &v1.ChannelRecord{}
	if err := l.live.Get(ctx, objectName(key), object); err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.at(key).stale = true
		return nil, client.IgnoreNotFound(err)
	}
	l.keep(key, object)
	return object, nil
}

// keep remembers an object that the API server has accepted or shown.
func (l *Ledger) keep(key pair.Key, object *v1.ChannelRecord) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at(key).keep(object)
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
		apierrors.IsTooManyRequests(err) || apierrors.IsUnauthorized(err) ||
		apierrors.IsRequestEntityTooLargeError(err)
}
