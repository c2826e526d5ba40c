package decision

import v1 "mcpl.dev/operator/api/v1alpha1"

// Outcome is how an operation ended.
type Outcome struct {
	// Failure is empty where it ended well.
	Failure v1.Cause
	// Detail is the connector's own word about a failure, already bounded and stripped; it may be empty.
	Detail string
	// Unknown says that no answer came: the connector may have acted.
	Unknown bool
}

// Answer is a decision's answer: the result, for a failure the cause, and the sentence.
type Answer struct {
	Result  v1.Result
	Cause   v1.Cause
	Message string
}

// Settle answers an open or a close whose operation ended (semantics §5.5, §5.6, §8.3), from the
// record that is in force now.
func Settle(kind v1.DecisionKind, success v1.Result, o Outcome, now Situation) Answer {
	if now.Record.State != wanted(kind) {
		return superseded(now.Record)
	}
	if kind == v1.DecisionOpen && now.Held {
		return Answer{Result: v1.ResultFailed, Cause: v1.CauseHeld, Message: heldMeanwhileText()}
	}
	if o.Failure == "" {
		return Answer{Result: success, Message: successText(success)}
	}
	return failed(kind, o, now)
}

// AtOnce answers a request that needs no operation: refused, already so, or out of reach.
func AtOnce(kind v1.DecisionKind, v Verdict, now Situation) Answer {
	switch {
	case v.Refused:
		return Answer{Result: v1.ResultRefused, Cause: v.Cause, Message: refusalText(v.Cause, now.Record)}
	case v.Cause != "":
		return failed(kind, Outcome{Failure: v.Cause}, now)
	}
	return Answer{Result: v.Success, Message: successText(v.Success)}
}

// Resume answers a recorded decision whose operation nobody remembers: a restart interrupted it, or
// it was deleted and applied again. It reads the channel once, and says Opened or Closed only
// where the connector has confirmed it. ok is false while the reading should wait: the connector
// is not up yet or work is under way, and waiting has not lasted too long (final).
func Resume(kind v1.DecisionKind, now Situation, final bool) (a Answer, ok bool) {
	if now.Record.State != wanted(kind) {
		return superseded(now.Record), true
	}
	if kind == v1.DecisionOpen && now.Held {
		return Answer{Result: v1.ResultFailed, Cause: v1.CauseHeld, Message: heldMeanwhileText()}, true
	}
	confirmed := now.Transport == v1.TransportOpen
	if kind == v1.DecisionClose {
		confirmed = now.Transport == v1.TransportClosed
	}
	switch {
	case confirmed && !now.Outstanding:
		success := v1.ResultOpened
		if kind == v1.DecisionClose {
			success = v1.ResultClosed
		}
		return Answer{Result: success, Message: successText(success)}, true
	case !final:
		return Answer{}, false
	}
	cause := now.Obstacle()
	if cause == "" {
		return failed(kind, Outcome{Failure: v1.CauseConnectorFailed, Unknown: true}, now), true
	}
	return failed(kind, Outcome{Failure: cause}, now), true
}

func wanted(kind v1.DecisionKind) v1.State {
	if kind == v1.DecisionOpen {
		return v1.StateOpen
	}
	return v1.StateClosed
}

func superseded(by Record) Answer {
	return Answer{Result: v1.ResultSuperseded, Cause: v1.CauseSuperseded, Message: supersededText(by)}
}

func failed(kind v1.DecisionKind, o Outcome, now Situation) Answer {
	a := Answer{Result: v1.ResultFailed, Cause: o.Failure, Message: failureText(kind, o, now)}
	// A failed open that is still decided says so above all: it may yet open (semantics §5.5).
	if kind == v1.DecisionOpen && o.Failure == v1.CauseConnectorFailed && now.Transport != v1.TransportOpen {
		a.Cause = v1.CauseStaysSelected
	}
	return a
}

// Succeeded reports whether a result says that what was asked for is so.
func Succeeded(r v1.Result) bool {
	switch r {
	case v1.ResultOpened, v1.ResultAlreadyOpen, v1.ResultReconciled, v1.ResultClosed, v1.ResultAlreadyClosed,
		v1.ResultRemainedClosed, v1.ResultDeclined, v1.ResultReplaced:
		return true
	}
	return false
}

// NotStored answers a decision that could not be stored. Where nothing needed to be sent, what was
// asked for is so all the same, and the answer says that the decision is not on record.
func NotStored(v Verdict) Answer {
	if !v.Send && v.Cause == "" {
		return Answer{Result: v.Success, Cause: v1.CauseDecisionNotStored,
			Message: successText(v.Success) + " But this decision could not be stored, so it does not protect that."}
	}
	return Answer{Result: v1.ResultFailed, Cause: v1.CauseStoreFailed,
		Message: failureText(v1.DecisionOpen, Outcome{Failure: v1.CauseStoreFailed}, Situation{})}
}

// NeverAppeared answers a decision about a channel that did not come to exist in time.
func NeverAppeared(now Situation) Answer {
	return failed(v1.DecisionOpen, Outcome{Failure: v1.CauseNotFound}, now)
}

// Predates answers a decision that may have been decided before the history begins.
func Predates() Answer {
	return Answer{Result: v1.ResultSuperseded, Cause: v1.CauseSuperseded,
		Message: "The decision is older than the oldest that the channel's record remembers; newer ones stand."}
}
