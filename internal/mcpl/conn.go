package mcpl

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// Options of a connection. A zero value stands for the default.
type Options struct {
	// Clock measures every timeout. Default: the real one.
	Clock clock.WithTicker

	// InboundMessages and InboundBytes bound what waits for the handler after
	// Release; when either is reached the reader stops reading. One message of
	// any size always fits. Defaults: 64 and 1 MiB.
	InboundMessages int
	InboundBytes    int

	// HeldMessages and HeldBytes bound what is held before Release; beyond
	// them the connection is closed, because the reader must go on reading to
	// find the answer that leads to Release. Defaults: 256 and 8 MiB.
	HeldMessages int
	HeldBytes    int

	// WriteTimeout bounds the writing of one message. Default: 30 s.
	WriteTimeout time.Duration
	// PingEvery is the period of pings, PingTimeout how long the answer to one
	// may take. Defaults: 10 s and 30 s.
	PingEvery   time.Duration
	PingTimeout time.Duration

	// OnClosing, if set, runs once when the connection has ended and before
	// any request fails for it: the place to empty the grant (semantics §12.3,
	// scenario I03). It runs on a goroutine of the connection and must return
	// soon.
	OnClosing func(err *ConnError)
}

func (o Options) withDefaults() Options {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	for _, d := range []struct {
		value *int
		is    int
	}{
		{&o.InboundMessages, 64},
		{&o.InboundBytes, 1 << 20},
		{&o.HeldMessages, 256},
		{&o.HeldBytes, 8 << 20},
	} {
		if *d.value <= 0 {
			*d.value = d.is
		}
	}
	for _, d := range []struct {
		value *time.Duration
		is    time.Duration
	}{
		{&o.WriteTimeout, 30 * time.Second},
		{&o.PingEvery, 10 * time.Second},
		{&o.PingTimeout, 30 * time.Second},
	} {
		if *d.value <= 0 {
			*d.value = d.is
		}
	}
	return o
}

// Conn is one connection to a connector: JSON-RPC in both directions over a
// Transport. All methods may be called from any goroutine, from handlers too.
type Conn struct {
	t Transport
	h Handler
	o Options

	ioCtx      context.Context // ends after the transport was closed
	ioStop     context.CancelFunc
	handlerCtx context.Context // ends as soon as the connection is closing
	handlerEnd context.CancelFunc

	goroutines sync.WaitGroup
	closingC   chan struct{}
	done       chan struct{}

	// changed is broadcast at every change of the fields below it.
	mu       sync.Mutex
	changed  *sync.Cond
	closing  bool
	err      *ConnError
	givingUp Cause // why a loss of the transport would be the host's own doing
	released bool
	in       inbound
	out      outbound
	lastID   uint64
	awaited  map[uint64]*Call // handed to the transport and not settled

	skippedLines   atomic.Uint64
	malformed      atomic.Uint64
	unknownAnswers atomic.Uint64
}

// NewConn starts a connection over t. Inbound requests and notifications are
// held until Release; answers to the host's own requests are not.
func NewConn(t Transport, h Handler, o Options) *Conn {
	c := &Conn{
		t:        t,
		h:        h,
		o:        o.withDefaults(),
		closingC: make(chan struct{}),
		done:     make(chan struct{}),
		awaited:  map[uint64]*Call{},
	}
	c.changed = sync.NewCond(&c.mu)
	c.ioCtx, c.ioStop = context.WithCancel(context.Background())
	c.handlerCtx, c.handlerEnd = context.WithCancel(context.Background())
	for _, run := range []func(){c.read, c.write, c.dispatch, c.ping} {
		c.goroutines.Go(run)
	}
	go c.wind()
	return c
}

// Release lets the held messages go to the handler, and those after them, in
// the order of arrival (semantics §12.2 step 5). Calling it again does nothing.
func (c *Conn) Release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.released = true
	c.changed.Broadcast()
}

// Close ends the connection: requests that were not written fail with NotSent,
// the others with NoResponse. It returns at once and may be called again; Done
// tells when everything has ended. reason goes to the connector.
func (c *Conn) Close(reason string) {
	c.fail(&ConnError{Cause: ClosedByHost, Reason: Sanitize(reason, maxCloseReason)})
}

// Done is closed when the connection and all its goroutines have ended. That
// takes as long as the transport's Close, a few seconds at most, and until a
// running handler has returned.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err returns why the connection ended, a *ConnError, or nil while it lives. It
// is final once Done is closed.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		return nil
	}
	return c.err
}

// Stats counts what a connection has dropped.
type Stats struct {
	// SkippedLines: lines that are no JSON object (fact 13).
	SkippedLines uint64
	// Malformed: JSON objects that are no message.
	Malformed uint64
	// UnknownAnswers: answers to no request, to one that had failed already,
	// or a second time.
	UnknownAnswers uint64
}

// Stats returns the counts up to now.
func (c *Conn) Stats() Stats {
	return Stats{
		SkippedLines:   c.skippedLines.Load(),
		Malformed:      c.malformed.Load(),
		UnknownAnswers: c.unknownAnswers.Load(),
	}
}

// fail ends the connection for a reason; the first one counts.
func (c *Conn) fail(err *ConnError) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failLocked(err)
}

// failLocked is fail for who holds c.mu.
func (c *Conn) failLocked(err *ConnError) {
	if c.closing {
		if err.isMoreSpecific(c.err) {
			c.err = err
		}
		return
	}
	if c.givingUp != "" && err.Cause == ConnectionLost {
		err = &ConnError{Cause: c.givingUp}
	}
	c.closing, c.err = true, err
	close(c.closingC)
	c.changed.Broadcast()
}

// wind waits for the end of the connection and winds it down.
func (c *Conn) wind() {
	<-c.closingC
	c.mu.Lock()
	err := c.err
	c.mu.Unlock()

	// The grant is emptied before pending requests are rejected, so that who
	// sees a request fail also sees that nothing may be sent (semantics §12.3).
	if c.o.OnClosing != nil {
		c.o.OnClosing(err)
	}
	c.handlerEnd()
	c.rejectAll(err)
	_ = c.t.Close(err.farewell()) // what failed is in err; there is nothing left to save
	c.ioStop()
	c.goroutines.Wait()
	close(c.done)
}

// withTimeout returns a context that ends after d on the connection's clock.
// timedOut reports whether it did; stop must be called, after fail if that is.
// What the end of the context does to the transport may show in the reader
// first; cause is the reason all the same.
func (c *Conn) withTimeout(d time.Duration, cause Cause) (ctx context.Context, timedOut func() bool, stop func()) {
	ctx, cancel := context.WithCancelCause(c.ioCtx)
	timer := c.o.Clock.NewTimer(d)
	ended := make(chan struct{})
	giveUp := func(from, to Cause) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.givingUp == from {
			c.givingUp = to
		}
	}
	go func() {
		defer close(ended)
		select {
		case <-timer.C():
			giveUp("", cause)
			cancel(context.DeadlineExceeded)
		case <-ctx.Done():
		}
	}()
	timedOut = func() bool { return errors.Is(context.Cause(ctx), context.DeadlineExceeded) }
	stop = func() {
		timer.Stop()
		cancel(nil)
		<-ended
		giveUp(cause, "")
	}
	return ctx, timedOut, stop
}
