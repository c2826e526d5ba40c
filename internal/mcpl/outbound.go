package mcpl

import (
	"errors"
	"slices"
)

// maxNotifications bounds the notifications that wait for the writer,
// maxAnswers and maxAnswerBytes the answers: with as many unwritten the
// dispatcher waits before it takes the next request, so that a peer which sends
// without reading is not answered into memory.
const (
	maxNotifications = 256
	maxAnswers       = 16
	maxAnswerBytes   = 1 << 20
)

// ErrOutboundFull is returned by Notify when too many notifications wait to be
// written.
var ErrOutboundFull = errors.New("not sent: too many notifications wait to be written")

// outFrame is a message for the writer: a request if call is set, an answer if
// answer is, else a notification.
type outFrame struct {
	line   []byte
	call   *Call
	answer bool
}

// outbound is the writer's queue: one, in order, for everything, because an
// answer must leave before what it lets start.
type outbound struct {
	frames        []outFrame
	answers       int // unwritten, the one being written included
	answerBytes   int
	notifications int // waiting
}

func (q *outbound) push(f outFrame) {
	q.frames = append(q.frames, f)
	switch {
	case f.answer:
		q.answers++
		q.answerBytes += len(f.line)
	case f.call == nil:
		q.notifications++
	}
}

func (q *outbound) pop() outFrame {
	f := q.frames[0]
	q.frames[0] = outFrame{}
	q.frames = q.frames[1:]
	if f.call == nil && !f.answer {
		q.notifications--
	}
	return f
}

// written takes an answer off the count of unwritten ones.
func (q *outbound) written(f outFrame) {
	if f.answer {
		q.answers--
		q.answerBytes -= len(f.line)
	}
}

// drop removes a call that waits.
func (q *outbound) drop(call *Call) {
	q.frames = slices.DeleteFunc(q.frames, func(f outFrame) bool { return f.call == call })
}

func (q *outbound) answersFull() bool {
	return q.answers >= maxAnswers || q.answerBytes >= maxAnswerBytes
}

// Notify sends a notification. It never blocks: it fails with ErrOutboundFull
// when too many wait, and with the *ConnError when the connection has ended.
// params nil sends none.
func (c *Conn) Notify(method string, params any) error {
	encoded, err := encodeParams(params)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return c.err
	}
	if c.out.notifications >= maxNotifications {
		return ErrOutboundFull
	}
	c.out.push(outFrame{line: encodeNotification(method, encoded)})
	c.changed.Broadcast()
	return nil
}

// write is the writer: it hands queued messages to the transport, one at a time.
func (c *Conn) write() {
	for {
		f, ok := c.nextOutbound()
		if !ok {
			return
		}
		ctx, timedOut, stop := c.withTimeout(c.o.WriteTimeout, WriteTimedOut)
		err := c.t.Write(ctx, f.line)
		switch {
		case timedOut(): // even without an error it may have cost the connection
			c.fail(&ConnError{Cause: WriteTimedOut})
		case err != nil:
			c.fail(&ConnError{Cause: ConnectionLost})
		}
		stop()
		if err != nil {
			return
		}
		c.wrote(f)
	}
}

// nextOutbound waits for a message to write. From here on a request counts as
// handed to the transport, so an answer to it is accepted even before the write
// has returned, and an answer to one that still waits is not.
func (c *Conn) nextOutbound() (outFrame, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.closing && len(c.out.frames) == 0 {
		c.changed.Wait()
	}
	if c.closing {
		return outFrame{}, false
	}
	f := c.out.pop()
	if f.call != nil {
		f.call.state = callHanded
		c.awaited[f.call.id] = f.call
	}
	return f, true
}

// wrote notes that a message was written; the deadline of a request starts now.
func (c *Conn) wrote(f outFrame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out.written(f)
	c.changed.Broadcast()
	if f.call != nil && f.call.state == callHanded && f.call.timeout > 0 {
		c.goroutines.Go(func() { c.expire(f.call) })
	}
}
