package decision

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "mcpl.dev/operator/api/v1alpha1"
)

// StalledAfter is how long a channel may be missing on a connected connector before its Channel is Stalled.
const StalledAfter = 5 * time.Minute

// ChannelFacts is what was gathered of a channel for its status.
type ChannelFacts struct {
	Situation
	// ConnectorExists says that there is a Connector with this serverID.
	ConnectorExists bool
	// ConnectorName is its name, for messages.
	ConnectorName string
	// PushKnown says that only a push registered the channel.
	PushKnown bool
	// InFlight says that a request for the channel is with the connector and not answered.
	InFlight bool
	// LastConfirmed is the transport that the written status last knew, empty where it knew none.
	LastConfirmed v1.TransportState
	// Failed is how the last operation ended, if it ended badly and nothing has been confirmed since.
	Failed *Outcome
	// FailedOpening says that it was an open that failed.
	FailedOpening bool
	// MissingFor is how long the connector has been Up without registering the channel.
	MissingFor time.Duration
	// HoldReason is why the platform holds the channel, if it says so.
	HoldReason string
	// Suspended says that spec.suspend of the Channel is set, ConnectorSuspended that of its Connector is.
	Suspended, ConnectorSuspended bool
	// DuplicateOf is the name of the older Channel that stands for the same channel, empty for this one.
	DuplicateOf string
	// DuplicateServerID says that the Channel's Connector does not serve: an older one has its serverID.
	DuplicateServerID bool
}

// Report is what a status says, apart from what was merely copied into it.
type Report struct {
	Desired      string
	Registration v1.Registration
	Transport    v1.TransportState
	// Conditions have no times and no observedGeneration yet.
	Conditions []metav1.Condition
	// Final says that nothing more is to be expected of the present state, so that it is worth writing at once.
	Final bool
	// Recheck is when the report changes by the mere passing of time; 0 for never.
	Recheck time.Duration
}

// Settled reports whether the transport is confirmed to be what is wanted.
func (r Report) Settled() bool {
	for _, c := range r.Conditions {
		if c.Type == v1.ConditionSettled {
			return c.Status == metav1.ConditionTrue
		}
	}
	return false
}

// ReportChannel says what a Channel's status should be.
func ReportChannel(f ChannelFacts) Report {
	f.Situation.ConnectorName = f.ConnectorName
	r := Report{
		Desired:      string(v1.StateClosed),
		Registration: registration(f),
		Transport:    f.Transport,
	}
	switch {
	case f.Held:
		r.Desired = "Closed (held)"
	case f.Record.Decided():
		r.Desired = string(f.Record.State)
	}
	if f.Connector != v1.ConnectorUp {
		r.Transport = f.LastConfirmed // nothing newer is known, and the message says so
	}
	if r.Transport == "" {
		r.Transport = v1.TransportUnconfirmed
	}
	registered, settled := registeredCondition(f), settledCondition(f)
	ready := readyCondition(f, registered, settled)
	r.Conditions = []metav1.Condition{registered, settled, ready}
	if f.Held {
		r.Conditions = append(r.Conditions, condition(v1.ConditionHeld, metav1.ConditionTrue, v1.ReasonHold, heldText(f)))
	}
	r.Final = settled.Status != metav1.ConditionUnknown || f.DuplicateOf != "" || f.DuplicateServerID

	missing := f.Connector == v1.ConnectorUp && !f.Registered
	switch {
	case f.DuplicateOf != "", f.DuplicateServerID, settled.Reason == v1.ReasonDidNotConverge,
		missing && f.MissingFor >= StalledAfter:
		r.Conditions = append(r.Conditions, condition(v1.ConditionStalled, metav1.ConditionTrue, ready.Reason, ready.Message))
	case ready.Status != metav1.ConditionTrue:
		r.Conditions = append(r.Conditions, condition(v1.ConditionReconciling, metav1.ConditionTrue, ready.Reason, ready.Message))
		if missing {
			r.Recheck = StalledAfter - f.MissingFor
		}
	}
	return r
}

func registration(f ChannelFacts) v1.Registration {
	switch {
	case !f.Registered:
		return v1.RegistrationNotRegistered
	case f.PushKnown:
		return v1.RegistrationPushKnown
	}
	return v1.RegistrationDeclared
}

func registeredCondition(f ChannelFacts) metav1.Condition {
	c := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return condition(v1.ConditionRegistered, status, reason, message)
	}
	switch {
	case f.DuplicateServerID:
		return c(metav1.ConditionUnknown, v1.ReasonNotRegistered, duplicateServerID(f))
	case !f.ConnectorExists:
		return c(metav1.ConditionFalse, v1.ReasonConnectorGone, connectorGone(f))
	case f.ConnectorSuspended:
		return c(metav1.ConditionUnknown, v1.ReasonNotRegistered, connectorSuspended(f))
	case f.PushKnown:
		return c(metav1.ConditionFalse, v1.ReasonPushKnown,
			"A message named the channel, but the connector does not declare it: it can be written to and hears nothing.")
	case f.Registered:
		return c(metav1.ConditionTrue, v1.ReasonDeclared, "The connector declares the channel.")
	case f.Connector != v1.ConnectorUp:
		return c(metav1.ConditionUnknown, v1.ReasonNotRegistered, connectorDown(f))
	}
	return c(metav1.ConditionFalse, v1.ReasonNotRegistered, notRegistered(f))
}

// settledCondition says whether the transport is confirmed to be what is wanted; the first reason
// that holds wins, the widest first: without a connector nothing else matters.
func settledCondition(f ChannelFacts) metav1.Condition {
	c := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return condition(v1.ConditionSettled, status, reason, message)
	}
	open := f.Record.WantsOpen() && !f.Held
	word := operationWord(open)
	switch {
	case f.DuplicateServerID:
		return c(metav1.ConditionUnknown, v1.ReasonConnectorDown, duplicateServerID(f))
	case !f.ConnectorExists:
		return c(metav1.ConditionUnknown, v1.ReasonConnectorGone, connectorGone(f))
	case f.ConnectorSuspended:
		return c(metav1.ConditionUnknown, v1.ReasonSuspended, connectorSuspended(f))
	case f.Suspended:
		return c(metav1.ConditionUnknown, v1.ReasonSuspended,
			"Nothing is sent while spec.suspend is set; what is decided is recorded, and applied when it is lifted.")
	case f.Connector != v1.ConnectorUp:
		return c(metav1.ConditionUnknown, v1.ReasonConnectorDown, connectorDown(f))
	case !f.Registered:
		return c(metav1.ConditionUnknown, v1.ReasonRegistrationGone, notRegistered(f))
	case f.Outstanding && f.InFlight:
		return c(metav1.ConditionUnknown, v1.ReasonWorkOutstanding, "The "+word+" is with the connector, which has not answered yet.")
	case f.Outstanding:
		return c(metav1.ConditionUnknown, v1.ReasonWorkOutstanding, "The "+word+" waits for its turn: the connector is busy with other channels.")
	case open && f.Transport == v1.TransportOpen:
		reason, message := v1.ReasonOpen, "Decided open, and the connector confirmed it."
		if f.Record.State == v1.StateTunedOut {
			reason, message = v1.ReasonTunedOut, "Tuned out: the connector confirmed that the channel is open, and its messages are held."
		}
		return c(metav1.ConditionTrue, reason, message)
	case !open && f.Transport == v1.TransportClosed:
		return c(metav1.ConditionTrue, v1.ReasonClosed, closedText(f))
	case !f.Lifecycle:
		return c(metav1.ConditionFalse, v1.ReasonNotPermitted, capitalize(failureClause(word, Outcome{Failure: v1.CauseNotPermitted}, f.Situation))+
			". "+retryText(word, false, v1.CauseNotPermitted))
	case f.Failed != nil:
		failedWord := operationWord(f.FailedOpening)
		return c(metav1.ConditionFalse, failedReason(f), capitalize(failureClause(failedWord, *f.Failed, f.Situation))+
			". "+stillText(f)+retryText(word, false, v1.CauseConnectorFailed))
	}
	if f.Transport == v1.TransportOpen && !open {
		return c(metav1.ConditionUnknown, v1.ReasonUnconfirmed,
			"The channel is not to be open, but the connector was last seen to have it open. "+retryText(word, false, v1.CauseConnectorFailed))
	}
	return c(metav1.ConditionUnknown, v1.ReasonUnconfirmed,
		"Nothing valid says whether the connector has the channel open or closed. "+retryText(word, false, v1.CauseConnectorFailed))
}

// closedText says why a channel is closed, in the one look that it gets.
func closedText(f ChannelFacts) string {
	switch {
	case f.Held:
		return heldText(f) + " The connector confirmed that it is closed."
	case f.Record.Undecided():
		return "Closed because nobody has opened it; the connector confirmed it."
	}
	return "Decided closed (" + string(f.Record.Source) + "), and the connector confirmed it."
}

// heldText says that a hold is on, and what it covers up.
func heldText(f ChannelFacts) string {
	text := "A hold (spec.hold) keeps the channel closed"
	if f.HoldReason != "" {
		text += ": " + f.HoldReason
	}
	if f.Record.WantsOpen() {
		return text + ". It is decided " + string(f.Record.State) + " (" + string(f.Record.Source) + "), which is applied when the hold is lifted."
	}
	return text + "."
}

func failedReason(f ChannelFacts) string {
	switch f.Failed.Failure {
	case v1.CauseSubstituted:
		return v1.ReasonSubstituted
	case v1.CauseDidNotConverge:
		return v1.ReasonDidNotConverge
	case v1.CauseNotPermitted:
		return v1.ReasonNotPermitted
	}
	if f.FailedOpening {
		return v1.ReasonOpenFailed
	}
	return v1.ReasonCloseFailed
}

func readyCondition(f ChannelFacts, registered, settled metav1.Condition) metav1.Condition {
	c := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return condition(v1.ConditionReady, status, reason, message)
	}
	switch {
	case f.DuplicateOf != "":
		return c(metav1.ConditionFalse, v1.ReasonDuplicateChannel,
			"Channel "+f.DuplicateOf+" stands for the same channel and is older; this one has no effect. Delete this one.")
	case f.DuplicateServerID:
		return c(metav1.ConditionFalse, v1.ReasonDuplicateServerID, duplicateServerID(f))
	case settled.Status == metav1.ConditionTrue && registered.Status == metav1.ConditionTrue:
		return c(metav1.ConditionTrue, v1.ReasonSettled, settled.Message)
	case settled.Status == metav1.ConditionTrue, registered.Reason == v1.ReasonNotRegistered && registered.Status == metav1.ConditionFalse:
		return c(registered.Status, registered.Reason, registered.Message)
	}
	return c(settled.Status, settled.Reason, settled.Message)
}

// stillText says how the channel is all the same, where that is known.
func stillText(f ChannelFacts) string {
	switch f.Transport {
	case v1.TransportOpen:
		return "The channel is open. "
	case v1.TransportClosed:
		return "The channel is closed. "
	}
	return ""
}

func duplicateServerID(f ChannelFacts) string {
	return "Connector " + f.ConnectorName + " does not serve: an older Connector has the same serverID. Delete this Channel, or that Connector."
}

func connectorSuspended(f ChannelFacts) string {
	return "Connector " + f.ConnectorName + " is suspended: nothing is sent, and what is decided is recorded and applied when spec.suspend is lifted there."
}

func connectorGone(f ChannelFacts) string {
	return "There is no Connector " + f.ConnectorName + " in this namespace. What is decided stands, and is applied once it is there and registers the channel."
}

func connectorDown(f ChannelFacts) string {
	text := "Connector " + f.ConnectorName + " is not connected (" + string(stateOrGone(f.Connector)) + "): see its condition Connected."
	if f.LastConfirmed == v1.TransportOpen || f.LastConfirmed == v1.TransportClosed {
		text += " The transport shown is what was last confirmed."
	}
	return text + " What is decided stands, and is applied when the connector registers the channel."
}

func notRegistered(f ChannelFacts) string {
	return "Connector " + f.ConnectorName + " is connected and does not register the channel: check spec.channelID, and whether the platform still lets it see the channel. What is decided is applied when it does."
}

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}
