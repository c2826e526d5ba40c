package decision

import v1 "mcpl.dev/operator/api/v1alpha1"

// Record is the decision in force for one channel. The zero value is "no record": nobody decided,
// and no policy has looked at the channel yet.
type Record struct {
	State  v1.State
	Source v1.Source
	// Revision identifies the record: two records with the same state and source are two records.
	// It is 0 for a Closed/DefaultClosed that is not stored.
	Revision int64
}

// Decided reports whether there is a record at all.
func (r Record) Decided() bool { return r.State != "" }

// WantsOpen reports whether the transport should be open. A tuned-out channel wants it open.
func (r Record) WantsOpen() bool { return r.State == v1.StateOpen || r.State == v1.StateTunedOut }

// Undecided reports whether nobody has decided: there is no record, or the one that says so.
// Policy and the connector may lift such a channel, and no other (semantics §4.1).
func (r Record) Undecided() bool {
	return !r.Decided() || (r.State == v1.StateClosed && r.Source == v1.SourceDefaultClosed)
}

// Write is a record that is to be appended.
type Write struct {
	State  v1.State
	Source v1.Source
}

// MayWrite says what an attempted write becomes over the record in force: nothing, itself, or, for
// a machine's close of an undecided channel, a default close (semantics §4.3). The guards of
// opening and closing come before it.
func MayWrite(existing Record, attempt Write) (Write, bool) {
	switch attempt.State {
	case v1.StateOpen:
		return attempt, mayOpen(existing, attempt.Source)
	case v1.StateTunedOut:
		return attempt, existing.State != v1.StateTunedOut
	default:
		return mayClose(existing, attempt)
	}
}

func mayOpen(existing Record, source v1.Source) bool {
	switch existing.State {
	case v1.StateTunedOut:
		// Only its own end ends a tune-out. The resident's cancel is one, too, but looks like a
		// channel_open from here: whoever cancels writes without asking.
		return sources[source].class == tuneOutEnd
	case v1.StateOpen:
		// The resident's word makes any open an explicit one; nobody else's adds anything.
		return source == v1.SourceAgentTool && existing.Source != v1.SourceAgentTool
	default:
		return true
	}
}

func mayClose(existing Record, attempt Write) (Write, bool) {
	switch {
	case Machine(attempt.Source) && !existing.Decided():
		return Write{v1.StateClosed, v1.SourceDefaultClosed}, true
	case attempt.Source == v1.SourceDefaultClosed:
		return attempt, !existing.Decided()
	case existing.State != v1.StateClosed:
		return attempt, true
	default:
		return attempt, Deliberate(attempt.Source) && existing.Source != attempt.Source
	}
}
