package decision

import (
	"fmt"
	"strings"

	v1 "mcpl.dev/operator/api/v1alpha1"
)

// The sentences of an answer. They hold no times, ids of requests or anything else that differs
// between two runs, and say what stands and what happens next.

func successText(r v1.Result) string {
	switch r {
	case v1.ResultOpened:
		return "The channel is open: the connector confirmed it."
	case v1.ResultReconciled:
		return "The channel was already decided open, and the connector confirmed that it is."
	case v1.ResultAlreadyOpen:
		return "The channel was already open; nothing was sent."
	case v1.ResultClosed:
		return "The channel is closed: the connector confirmed it."
	default:
		return "The channel was already closed; nothing was sent."
	}
}

func refusalText(cause v1.Cause, record Record) string {
	switch cause {
	case v1.CauseNotItsResident:
		return "Refused: the channel's connector belongs to another resident. Nothing changed."
	case v1.CauseHeld:
		return "Refused: spec.hold keeps the channel closed. Ask whoever set it to lift it, and decide again then. Nothing changed."
	case v1.CauseStillOpen:
		return "Refused: the channel is open, so there is no invitation to decline. Close it instead (channel_close). Nothing changed."
	case v1.CauseTunedOut:
		return "Refused: the channel is tuned out. End the tune-out first, which delivers what it held. Nothing changed."
	default:
		what := "opened"
		if record.State == v1.StateTunedOut {
			what = "tuned out"
		}
		return "Refused: the resident itself " + what + " the channel, and no lease was claimed. Stand down. Nothing changed."
	}
}

func heldMeanwhileText() string {
	return "The decision is recorded, but spec.hold has been set meanwhile and keeps the channel closed. It is opened when that is lifted; a close withdraws it."
}

func supersededText(by Record) string {
	if by.Undecided() {
		return "The record of this decision was deleted, so nothing is decided any more."
	}
	return fmt.Sprintf("A newer decision replaced this one and stands: %s (%s).", by.State, by.Source)
}

// failureText says what is decided all the same: the caller's own decision, or, where it had nothing
// to write, somebody's before it.
func failureText(kind v1.DecisionKind, o Outcome, now Situation) string {
	open := kind == v1.DecisionOpen
	word, decided := operationWord(open), "closed"
	if open {
		decided = "open"
	}
	why := failureClause(word, o, now)
	if o.Failure == v1.CauseNotFound || o.Failure == v1.CauseStoreFailed {
		return capitalize(why) + ". Nothing changed, and nothing was sent."
	}
	if open && now.Transport == v1.TransportOpen {
		return "The channel is decided open, and is open, but " + why + "."
	}
	return "The channel is decided " + decided + ", but " + why + ". " +
		retryText(word, open && now.Transport != v1.TransportOpen, o.Failure)
}

// failureClause says in half a sentence why an operation did not succeed. What was in its way may be
// gone by now, and then it says so.
func failureClause(word string, o Outcome, now Situation) string {
	present := ", so no " + word + " can be sent"
	past := " when the " + word + " was to be sent"
	switch o.Failure {
	case v1.CauseNotFound:
		return "no such channel appeared in time"
	case v1.CauseStoreFailed:
		return "the decision could not be stored"
	case v1.CauseConnectorMissing:
		if now.Connector == v1.ConnectorUp {
			return now.connector() + " was not connected" + past
		}
		return now.connector() + " is not connected (" + string(stateOrGone(now.Connector)) + ")" + present
	case v1.CauseNotPermitted:
		if now.Lifecycle {
			return "the capability channels.lifecycle was not granted on " + now.connector() + past
		}
		return "the capability channels.lifecycle is not granted on " + now.connector() + " (it is not offered, or spec.grant.deny takes it away)" + present
	case v1.CauseRegistrationGone:
		if now.Registered {
			return "the connector did not register the channel" + past
		}
		return "the connector does not register the channel now" + present
	case v1.CauseSubstituted:
		return "the connector answered the " + word + " for another channel, and nothing of that answer was used"
	case v1.CauseDidNotConverge:
		return "the channel's address or its decision kept changing, through all the attempts that one " + word + " has"
	}
	switch {
	case o.Unknown:
		return "the connector did not answer the " + word + ", so it may or may not have acted"
	case o.Detail != "":
		return "the connector answered the " + word + " with an error: " + strings.TrimRight(o.Detail, ". ")
	default:
		return "the connector answered the " + word + " with an error"
	}
}

// retryText says what comes next, and for an open that may still happen, how to withdraw it.
func retryText(word string, selected bool, failure v1.Cause) string {
	next := "The " + word + " is sent when the connector next registers the channel"
	switch failure {
	case v1.CauseNotPermitted:
		next += " with that capability granted"
	case v1.CauseConnectorFailed, v1.CauseSubstituted, v1.CauseDidNotConverge:
		next = "It is not retried by itself. The " + word + " is sent when the connector next registers the channel, and at once " +
			"if somebody decides again or sets the annotation mcpl.dev/reconcile-at on the Channel"
	}
	if selected {
		return next + "; a close withdraws it."
	}
	return next + "."
}

// connector is what sentences call the connector.
func (s Situation) connector() string {
	if s.ConnectorName == "" {
		return "the connector"
	}
	return "connector " + s.ConnectorName
}

func operationWord(open bool) string {
	if open {
		return "open"
	}
	return "close"
}

func stateOrGone(s v1.ConnectorState) v1.ConnectorState {
	if s == "" {
		return v1.ConnectorGone
	}
	return s
}

// capitalize makes a clause the beginning of a sentence. A path of a field keeps its case.
func capitalize(s string) string {
	first, _, _ := strings.Cut(s, " ")
	if s == "" || s[0] < 'a' || s[0] > 'z' || strings.ContainsRune(first, '.') {
		return s
	}
	return string(s[0]-'a'+'A') + s[1:]
}
