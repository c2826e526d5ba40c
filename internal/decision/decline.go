package decision

import (
	v1 "mcpl.dev/operator/api/v1alpha1"
)

// Decline judges a channel_decline (semantics §6.1): it is refused only where the channel is open,
// or another resident's.
func Decline(s Situation) Verdict {
	switch {
	case s.Foreign:
		return refused(v1.CauseNotItsResident)
	case s.Transport == v1.TransportOpen:
		return refused(v1.CauseStillOpen)
	}
	v := Verdict{}
	if w, ok := MayWrite(s.Record, Write{v1.StateClosed, v1.SourceInvitationDeclined}); ok {
		v.Write = &w
	}
	return v
}

// DeclineCloses says whether a decline sends a close, once its acknowledgement is settled: only on
// its own decision, and only where it is not certain that the channel is closed. wanted says that
// the channel had been decided open or tuned out before.
func DeclineCloses(now Situation, wanted bool) bool {
	return now.Record.State == v1.StateClosed && now.Directs() && now.Registered &&
		(now.Transport != v1.TransportClosed || now.Outstanding || wanted)
}

// Reading is the one look at a channel from which a decline is answered, after everything that it
// waited for.
type Reading struct {
	Situation
	// PushKnown says that only a push registered the channel.
	PushKnown bool
	// Close is how the decline's own close failed; nil where it sent none, or it succeeded.
	Close *Outcome
	// CarriedOut says that the outstanding work will carry the decision out: it is not doomed.
	CarriedOut bool
}

// DeclineOutcome answers a decline from one reading (semantics §6.2).
func DeclineOutcome(r Reading) Answer {
	switch {
	case r.Record.WantsOpen():
		return Answer{Result: v1.ResultReplaced, Message: replacedSentence(r)}
	case r.Registered && r.Transport == v1.TransportClosed && !r.Outstanding:
		return Answer{Result: v1.ResultRemainedClosed, Message: "The decline is recorded, and the channel is closed."}
	}
	return Answer{Result: v1.ResultDeclined, Message: declinedSentence(r)}
}

// resultWords are the words of tools for a decline's results.
var resultWords = map[v1.Result]string{
	v1.ResultRemainedClosed: "remained closed",
	v1.ResultDeclined:       "declined",
	v1.ResultReplaced:       "replaced",
	v1.ResultOpened:         "opened",
	v1.ResultReconciled:     "reconciled",
	v1.ResultAlreadyOpen:    "already open",
	v1.ResultClosed:         "closed",
	v1.ResultAlreadyClosed:  "already closed",
}

// ResultWord is the word that tools use for a result, empty for one that tools answer with an error.
func ResultWord(r v1.Result) string { return resultWords[r] }
