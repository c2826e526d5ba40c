package mcpl

import (
	"context"
	"encoding/json"
	"time"
)

// callState is how far a request has come.
type callState int

const (
	callQueued  callState = iota // waits for the writer: provably not sent
	callHanded                   // given to the transport, at least in part
	callSettled                  // has its result or error
)

// Call is a request to the connector.
type Call struct {
	c       *Conn
	id      uint64
	timeout time.Duration
	done    chan struct{}

	// Under c.mu until done is closed.
	state  callState
	result json.RawMessage
	err    *CallError
}

// Start sends a request. It never blocks; requests leave in the order of Start.
// params is marshalled before Start returns; nil sends none. timeout counts from
// the moment the request has been written (fact 24); 0 means none. The caller
// bounds how many calls are in flight.
func (c *Conn) Start(method string, params any, timeout time.Duration) *Call {
	call := &Call{c: c, timeout: timeout, done: make(chan struct{})}
	encoded, err := encodeParams(params)

	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil:
		c.settle(call, nil, &CallError{Outcome: NotSent, Message: "the params cannot be encoded", cause: err})
	case c.closing:
		c.settle(call, nil, &CallError{Outcome: NotSent, Message: c.err.Error(), cause: c.err})
	default:
		c.lastID++
		call.id = c.lastID
		c.out.push(outFrame{line: encodeRequest(call.id, method, encoded), call: call})
		c.changed.Broadcast()
	}
	return call
}

// Done is closed when the call has its result or error.
func (call *Call) Done() <-chan struct{} { return call.done }

// Result returns the connector's result, or a *CallError. Before Done is closed
// it returns neither.
func (call *Call) Result() (json.RawMessage, error) {
	select {
	case <-call.done:
	default:
		return nil, nil
	}
	if call.err != nil {
		return nil, call.err
	}
	return call.result, nil
}

// Wait waits for the result. At the end of ctx it stops waiting and returns
// ctx's error; the call goes on.
func (call *Call) Wait(ctx context.Context) (json.RawMessage, error) {
	select {
	case <-call.done:
		return call.Result()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Cancel gives a call up: with NotSent if it still waited for the writer, and is
// then not sent, else with NoResponse.
func (call *Call) Cancel() {
	c := call.c
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out.drop(call)
	c.abandon(call, "cancelled", context.Canceled)
}

// abandon settles a call without an answer. c.mu is held.
func (c *Conn) abandon(call *Call, message string, cause error) {
	outcome := NoResponse
	if call.state == callQueued {
		outcome = NotSent
	}
	c.settle(call, nil, &CallError{Outcome: outcome, Message: message, cause: cause})
}

// settle gives a call its outcome, once. c.mu is held.
func (c *Conn) settle(call *Call, result json.RawMessage, err *CallError) {
	if call.state == callSettled {
		return
	}
	call.state, call.result, call.err = callSettled, result, err
	delete(c.awaited, call.id)
	close(call.done)
}

// rejectAll fails every call that has no outcome, in the order they were started
// as far as they wait for the writer.
func (c *Conn) rejectAll(err *ConnError) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, call := range c.awaited {
		c.abandon(call, err.Error(), err)
	}
	for _, f := range c.out.frames {
		if f.call != nil {
			c.abandon(f.call, err.Error(), err)
		}
	}
	c.out, c.in = outbound{}, inbound{}
}

// answered takes a response from the reader.
func (c *Conn) answered(m message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id, ok := m.ownID()
	call := c.awaited[id]
	if !ok || call == nil {
		c.unknownAnswers.Add(1)
		return
	}
	if m.error != nil {
		c.settle(call, nil, m.responseError())
		return
	}
	if len(m.result) == 0 {
		m.result = json.RawMessage(`null`) // an answer without a result is still no error
	}
	c.settle(call, m.result, nil)
}

// expire fails a written call when its timeout is over.
func (c *Conn) expire(call *Call) {
	timer := c.o.Clock.NewTimer(call.timeout)
	defer timer.Stop()
	select {
	case <-call.done:
	case <-timer.C():
		c.mu.Lock()
		defer c.mu.Unlock()
		c.abandon(call, "timed out", context.DeadlineExceeded)
	}
}

func encodeParams(params any) ([]byte, error) {
	if params == nil {
		return nil, nil
	}
	return marshal(params)
}
