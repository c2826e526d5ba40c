package connector

import "slices"

// ViolationKind is something a host must not do.
type ViolationKind string

const (
	// FirstMessage: the first message was not initialize (fact 22).
	FirstMessage ViolationKind = "firstMessage"
	// Interjection: something else came before notifications/initialized (fact 22).
	Interjection ViolationKind = "interjection"
	// InitializedTwice: a second initialize on one connection (fact 19).
	InitializedTwice ViolationKind = "initializedTwice"
	// NotJSON: a frame that is not a JSON-RPC message (fact 21).
	NotJSON ViolationKind = "notJSON"
	// ReusedID: a request id used twice within a connection (semantics §12.1).
	ReusedID ViolationKind = "reusedID"
	// UnknownAnswer: an answer to a request the connector has not made.
	UnknownAnswer ViolationKind = "unknownAnswer"
	// Overlap: an open or close while another one of its channel was unanswered
	// (semantics §8.1). Expected where a test lets one time out while it is held.
	Overlap ViolationKind = "overlap"
	// Probe: a TCP connection that was closed without a word (fact 21).
	Probe ViolationKind = "probe"
)

// Violation is something a host did and must not do.
type Violation struct {
	Kind   ViolationKind `json:"kind"`
	Conn   int           `json:"conn,omitempty"`
	Detail string        `json:"detail,omitempty"`
}

// Violations returns what hosts did wrong since the last Reset, so that every test
// can end with a look at it. At most 1,000 are kept.
func (c *Connector) Violations() []Violation {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.violations)
}

// violate notes a violation. c.mu is held.
func (c *Connector) violate(conn int, kind ViolationKind, detail string) {
	if len(c.violations) < 1000 {
		c.violations = append(c.violations, Violation{Kind: kind, Conn: conn, Detail: detail})
	}
	c.bell.ring()
}
