package mcpl

import (
	"bytes"
	"errors"
	"runtime/debug"
)

// inbound is the queue between the reader and the dispatcher.
type inbound struct {
	messages []message
	bytes    int
	// pauses counts how often the reader had to stop for lack of room; paused
	// is true while it does.
	pauses int
	paused bool
}

// fits reports whether a message may be added; one always may to an empty queue.
func (q *inbound) fits(size, maxMessages, maxBytes int) bool {
	return len(q.messages) == 0 || len(q.messages) < maxMessages && q.bytes+size <= maxBytes
}

func (q *inbound) push(m message) {
	q.messages = append(q.messages, m)
	q.bytes += m.size
}

func (q *inbound) pop() message {
	m := q.messages[0]
	q.messages[0] = message{}
	q.messages = q.messages[1:]
	q.bytes -= m.size
	return m
}

// read is the reader. While the connection is closing it goes on reading and
// drops what it reads, so that the transport can see the peer's goodbye.
func (c *Conn) read() {
	for {
		frame, err := c.t.Read(c.ioCtx)
		if err != nil {
			c.fail(readError(err))
			return
		}
		for line := range bytes.Lines(frame) {
			c.receive(bytes.TrimSpace(line))
		}
	}
}

func readError(err error) *ConnError {
	var bye *PeerClosedError
	switch {
	case errors.As(err, &bye):
		return &ConnError{Cause: ClosedByConnector, Code: bye.Code, Reason: bye.Reason}
	case errors.Is(err, ErrMessageTooBig):
		return &ConnError{Cause: MessageTooBig}
	default:
		return &ConnError{Cause: ConnectionLost}
	}
}

// receive takes one line. Answers go to their call at once; the rest is queued.
func (c *Conn) receive(line []byte) {
	if len(line) == 0 {
		return
	}
	m := parseMessage(line)
	switch m.kind {
	case kindNoise:
		c.skippedLines.Add(1)
	case kindMalformed:
		c.malformed.Add(1)
	case kindResponse:
		c.answered(m)
	default:
		c.enqueue(m)
	}
}

// enqueue puts a message into the inbound queue. After Release it waits for
// room, which stops the reading; while held it must not, because the answer that
// leads to Release is still to be read (semantics §12.2 step 3).
func (c *Conn) enqueue(m message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.closing && c.released && !c.in.fits(m.size, c.o.InboundMessages, c.o.InboundBytes) {
		if !c.in.paused {
			c.in.paused = true
			c.in.pauses++
		}
		c.changed.Wait()
	}
	c.in.paused = false
	if c.closing {
		return
	}
	if !c.released && !c.in.fits(m.size, c.o.HeldMessages, c.o.HeldBytes) {
		c.failLocked(&ConnError{Cause: HeldOverflow})
		return
	}
	c.in.push(m)
	c.changed.Broadcast()
}

// dispatch is the dispatcher: it calls the handler, one message at a time.
func (c *Conn) dispatch() {
	for {
		m, ok := c.nextInbound()
		if !ok || !c.serve(m) {
			return
		}
	}
}

// nextInbound waits until a message may be dispatched.
func (c *Conn) nextInbound() (message, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.closing && !c.dispatchable() {
		c.changed.Wait()
	}
	if c.closing {
		return message{}, false
	}
	m := c.in.pop()
	c.changed.Broadcast()
	return m, true
}

func (c *Conn) dispatchable() bool {
	if !c.released || len(c.in.messages) == 0 {
		return false
	}
	return c.in.messages[0].kind == kindNotification || !c.out.answersFull()
}

// serve hands one message to the handler and queues the answer. A panic ends
// the connection, not the process; serve then returns false.
func (c *Conn) serve(m message) (ok bool) {
	defer func() {
		if p := recover(); p != nil {
			c.fail(&ConnError{Cause: HandlerPanicked, Panic: p, Stack: debug.Stack()})
			ok = false
		}
	}()
	switch m.kind {
	case kindNotification:
		c.h.ServeNotification(c.handlerCtx, m.method, m.params)
	case kindInvalid:
		c.answer(m, Answer{Err: &Error{Code: CodeInvalidRequest, Message: "malformed request"}})
	default:
		answer := c.h.ServeRequest(c.handlerCtx, m.method, m.params)
		c.answer(m, answer)
		if answer.Then != nil {
			answer.Then()
		}
	}
	return true
}

func (c *Conn) answer(m message, answer Answer) {
	line := encodeAnswer(m.id, answer)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return
	}
	c.out.push(outFrame{line: line, answer: true})
	c.changed.Broadcast()
}
