package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/internal/decision"
	"mcpl.dev/operator/internal/mcpl"
)

// lifecycleTimeout is the deadline of opens and closes, and of the list between them, where requests
// have no general one: speech waits behind them (semantics §8.8).
const lifecycleTimeout = 60 * time.Second

// queue is one channel's operations, oldest first; the first may be in flight. It stands beside
// the channel's entry, not in it: a registration replaces entries and leaves the work.
type queue struct {
	operations []*Operation
	// turn counts the head's places in the window; only the job with the newest number is valid,
	// so that a head may be moved to a better class and its old place goes stale.
	turn int
}

// enqueue adds an operation for a channel. s.mu is held.
func (s *Session) enqueue(channelID string, c class, history int) *Operation {
	op := &Operation{class: c, history: history}
	q := s.queues[channelID]
	if q == nil {
		q = &queue{}
		s.queues[channelID] = q
	}
	before := q.class()
	q.operations = append(q.operations, op)
	if head := q.operations[0]; head == op || (head.sent == nil && c < before) {
		s.awaitTurn(channelID, q)
	}
	s.window.pump()
	return op
}

// class is that of the most urgent operation: what stands before one that somebody waits for must
// not wait behind the work of other channels.
func (q *queue) class() class {
	c := catchUp
	for _, op := range q.operations {
		c = min(c, op.class)
	}
	return c
}

// willSend reports whether an operation of the queue has not begun: it carries out whatever is
// decided when its turn comes.
func (q *queue) willSend() bool {
	return q != nil && q.operations[len(q.operations)-1].attempts == 0
}

// awaitTurn gives the head of a queue a place in the window.
func (s *Session) awaitTurn(channelID string, q *queue) {
	s.window.add(q.class(), s.turn(channelID, q))
}

// turn is the job that gives the head of a queue its turn.
func (s *Session) turn(channelID string, q *queue) job {
	q.turn++
	valid := q.turn
	return func() bool { return q.turn == valid && s.send(channelID, q) }
}

// send has the head of a queue send what is decided now. An operation that can't send settles, and
// its successor has the turn. It reports whether a request went out.
func (s *Session) send(channelID string, q *queue) bool {
	for len(q.operations) > 0 {
		op := q.operations[0]
		now := s.footing(channelID)
		if cause := obstacle(op.attempts, now); cause != "" {
			s.settle(channelID, q, decision.Outcome{Failure: cause})
			continue
		}
		op.attempts++
		op.sent = &request{footing: now, open: s.decisions.WantsOpen(s.key(channelID))}
		s.await(channelID, q, op, s.start(channelID, op))
		return true
	}
	return false
}

// start writes the request of an operation.
func (s *Session) start(channelID string, op *Operation) *mcpl.Call {
	if !op.sent.open {
		return s.conn.Start(mcpl.MethodChannelsClose, mcpl.CloseParams{ChannelID: channelID}, s.timeout())
	}
	// Connectors want the id; the protocol wants type and address (semantics §13.1).
	params := mcpl.OpenParams{ChannelID: channelID, Type: op.sent.descriptor.Type, Address: op.sent.descriptor.Address}
	if op.history > 0 {
		params.History = &mcpl.HistoryRequest{Limit: op.history}
	}
	return s.conn.Start(mcpl.MethodChannelsOpen, params, s.timeout())
}

// timeout is the deadline of what takes up a place in the window. There always is one: what is never
// answered must not keep its place for ever.
func (s *Session) timeout() time.Duration {
	if s.config.RequestTimeout == 0 {
		return lifecycleTimeout
	}
	return s.config.RequestTimeout
}

// await takes the answer of a call when it comes.
func (s *Session) await(channelID string, q *queue, op *Operation, call *mcpl.Call) {
	connection := s.connection
	s.calls.Go(func() {
		<-call.Done()
		result, err := call.Result()
		s.mu.Lock()
		defer s.mu.Unlock()
		if connection == s.connection && s.conn != nil {
			s.window.inFlight-- // the window of a connection that is gone has been cleared
		}
		s.answered(channelID, q, op, result, err)
		s.window.pump()
	})
}

// answered carries an operation on from the answer to its request.
func (s *Session) answered(channelID string, q *queue, op *Operation, result json.RawMessage, err error) {
	sent := *op.sent
	op.sent = nil
	r := receipt{err: err}
	var fetched History
	if err == nil && sent.open {
		var opened mcpl.OpenResult
		if err := json.Unmarshal(result, &opened); err != nil {
			r.err = err
		} else if other, is := opened.Substituted(channelID); is {
			r.substituted = true
			s.substituted(channelID, other)
		} else if op.history > 0 {
			fetched = History{Count: len(opened.History), Truncated: opened.HistoryTruncated}
		}
	}
	transport, next := receive(sent, r, s.footing(channelID), s.decisions.WantsOpen(s.key(channelID)))
	e := s.entries[channelID]
	if e != nil && transport != "" {
		e.confirm(transport)
	}
	op.fetched = History{}
	if transport == v1.TransportOpen {
		op.fetched = fetched // nothing of a stale or foreign answer is used
	}
	switch next {
	case finished:
		s.settle(channelID, q, decision.Outcome{})
	case failed:
		outcome := outcomeOf(r)
		if e != nil && e.id == sent.entry {
			e.failure, e.failedOpening = &outcome, sent.open
		}
		s.settle(channelID, q, outcome)
	case again:
		s.wakeChannel(channelID)
	}
	switch {
	case len(q.operations) == 0:
	case s.conn == nil:
		s.send(channelID, q) // whatever waits settles: there is no connection
	case next == again:
		s.window.again(q.class(), s.turn(channelID, q))
	default:
		s.awaitTurn(channelID, q)
	}
}

// substituted reports that the connector opened another channel than it was asked to, and has that
// one closed if it is decided closed (semantics §8.6). A close can't be substituted in turn.
func (s *Session) substituted(asked, opened string) {
	s.notify.Event(s.connector, EventOpenSubstituted, "asked to open "+printable(asked)+
		", the connector opened "+printable(opened)+"; nothing of its answer was used")
	key := s.key(opened)
	if s.entries[opened] != nil && s.decisions.Record(key).Decided() && !s.decisions.WantsOpen(key) {
		s.enqueue(opened, catchUp, 0)
		s.wakeChannel(opened)
	}
}

// settle ends the head of a queue and wakes the channel's owner. An empty queue is forgotten.
func (s *Session) settle(channelID string, q *queue, outcome decision.Outcome) {
	op := q.operations[0]
	q.operations = q.operations[1:]
	op.settled, op.outcome = true, outcome
	if len(q.operations) == 0 {
		delete(s.queues, channelID)
	}
	if e := s.entries[channelID]; e != nil && outcome.Failure == v1.CauseDidNotConverge {
		e.failure, e.failedOpening = &outcome, s.decisions.WantsOpen(s.key(channelID))
		s.notify.Event(s.connector, EventReconcileFailed, fmt.Sprintf(
			"%s was given up after %d requests: its address or its decision kept changing", printable(channelID), maxAttempts))
	}
	s.wakeChannel(channelID)
}

// outcomeOf says how a request failed.
func outcomeOf(r receipt) decision.Outcome {
	if r.substituted {
		return decision.Outcome{Failure: v1.CauseSubstituted}
	}
	var call *mcpl.CallError
	switch {
	case !errors.As(r.err, &call):
		return decision.Outcome{Failure: v1.CauseConnectorFailed, Detail: "its answer could not be read"}
	case call.Outcome == mcpl.NotSent:
		return decision.Outcome{Failure: v1.CauseConnectorMissing}
	case call.Outcome == mcpl.NoResponse:
		return decision.Outcome{Failure: v1.CauseConnectorFailed, Unknown: true}
	}
	return decision.Outcome{Failure: v1.CauseConnectorFailed, Detail: fmt.Sprintf("%s (%d)", call.Message, call.Code)}
}

// footing is what an operation for the channel would stand on now.
func (s *Session) footing(channelID string) footing {
	f := footing{lifecycle: s.grant.Allows(mcpl.CapChannelsLifecycle)}
	if s.conn != nil {
		f.connection = s.connection
	}
	if e := s.entries[channelID]; e != nil {
		f.entry, f.descriptor = e.id, e.descriptor
	}
	return f
}
