package session

import (
	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/internal/decision"
	"mcpl.dev/operator/internal/mcpl"
)

// maxAttempts is how many requests one operation may send before it gives up (semantics §8.2).
const maxAttempts = 5

// Operation is one entry of a channel's queue. It carries no target: it means "make the connector
// match what is decided when my turn comes". Its fields are read by its owner once it has settled.
type Operation struct {
	class    class
	history  int
	attempts int
	sent     *request // nil while nothing of it is in flight

	settled bool
	outcome decision.Outcome
	fetched History
}

// History is what an open's request for earlier messages brought.
type History struct {
	Count     int
	Truncated bool
}

// footing is what an operation stands on. A receipt counts only where it has not moved since the
// request was sent.
type footing struct {
	entry      uint64 // identity of the registration, 0 where the channel is not registered
	connection int64  // identity of the connection, 0 where there is none
	lifecycle  bool
	descriptor mcpl.Descriptor
}

// request is an open or a close that was sent, and the footing it was sent on.
type request struct {
	footing
	open bool
}

// receipt is what came back for a request.
type receipt struct {
	err error
	// substituted says that the connector answered for another channel.
	substituted bool
}

// step is what follows a receipt.
type step int

const (
	finished step = iota
	again         // the operation takes another turn
	failed
)

// obstacle says why an operation whose turn it is can't send, empty where it can.
func obstacle(attempts int, now footing) v1.Cause {
	switch {
	case now.entry == 0:
		return v1.CauseRegistrationGone
	case now.connection == 0:
		return v1.CauseConnectorMissing
	case !now.lifecycle:
		return v1.CauseNotPermitted
	case attempts >= maxAttempts:
		return v1.CauseDidNotConverge
	}
	return ""
}

// receive says what a receipt confirms (empty: nothing changes) and what follows it, given the
// footing and the decision as they are now (semantics §8.2 steps 4 to 6, §8.4).
func receive(sent request, r receipt, now footing, wantsOpen bool) (v1.TransportState, step) {
	sameEntry := now.entry == sent.entry
	moved := now.connection != sent.connection || !now.descriptor.SameTarget(sent.descriptor)
	switch {
	case r.err != nil && sameEntry && moved:
		return v1.TransportUnconfirmed, failed
	case r.err != nil:
		return "", failed // the connector's state is what it was before the request, as far as anybody knows
	case !sameEntry:
		return "", again
	case moved:
		return v1.TransportUnconfirmed, again
	case r.substituted:
		return v1.TransportUnconfirmed, failed
	}
	confirmed := v1.TransportClosed
	if sent.open {
		confirmed = v1.TransportOpen
	}
	if wantsOpen != sent.open {
		return confirmed, again
	}
	return confirmed, finished
}
