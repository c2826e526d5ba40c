package mcpl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// peer is the connector's end of an in-memory connection, and the Transport of
// the host's. It lives in a synctest bubble: settle waits until every goroutine
// of the connection has nothing left to do.
type peer struct {
	t      *testing.T
	frames chan []byte // to the host
	gate   chan struct{}

	mu       sync.Mutex
	written  []string // what the host wrote, in order
	farewell []string // reasons of Close
	readErr  error
	mute     bool // does not answer pings
	pings    int
	inWrite  int // writes that wait for the gate

	closed chan struct{} // by the host
	gone   chan struct{} // by the connector
}

func newPeer(t *testing.T) *peer {
	return &peer{
		t:      t,
		frames: make(chan []byte, 1<<14),
		closed: make(chan struct{}),
		gone:   make(chan struct{}),
	}
}

func (p *peer) Read(ctx context.Context) ([]byte, error) {
	select {
	case f := <-p.frames: // what was sent before the end is read before it
		return f, nil
	default:
	}
	select {
	case f := <-p.frames:
		return f, nil
	case <-p.gone:
		p.mu.Lock()
		defer p.mu.Unlock()
		return nil, p.readErr
	case <-p.closed:
		return nil, io.ErrClosedPipe
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *peer) Write(ctx context.Context, line []byte) error {
	p.mu.Lock()
	gate := p.gate
	p.inWrite++
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.inWrite--
	}()
	if gate != nil {
		select {
		case <-gate:
		case <-p.closed:
			return io.ErrClosedPipe
		case <-p.gone:
			return io.ErrClosedPipe
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.written = append(p.written, string(line))
	return nil
}

func (p *peer) Ping(ctx context.Context) error {
	p.mu.Lock()
	p.pings++
	mute := p.mute
	p.mu.Unlock()
	if !mute {
		return nil
	}
	select {
	case <-p.closed:
		return io.ErrClosedPipe
	case <-p.gone:
		return io.ErrClosedPipe
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *peer) Close(reason string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.farewell = append(p.farewell, reason)
	if len(p.farewell) == 1 {
		close(p.closed)
	}
	return nil
}

// send gives the host one frame.
func (p *peer) send(frame string) {
	p.t.Helper()
	select {
	case p.frames <- []byte(frame):
	default:
		p.t.Fatal("the test's transport is full")
	}
}

// hangUp ends the connection from the connector's side.
func (p *peer) hangUp(err error) {
	p.mu.Lock()
	p.readErr = err
	p.mu.Unlock()
	close(p.gone)
}

// stopReading makes the host's writes wait; resume lets one after another pass.
func (p *peer) stopReading() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gate = make(chan struct{})
}

func (p *peer) resume() {
	p.mu.Lock()
	gate := p.gate
	p.gate = nil
	p.mu.Unlock()
	close(gate)
}

// letOne lets the one write that waits pass.
func (p *peer) letOne() { p.gate <- struct{}{} }

// lines returns what the host wrote since the last call.
func (p *peer) lines() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	lines := p.written
	p.written = nil
	return lines
}

// bench is a connection under test.
type bench struct {
	*testing.T
	conn  *Conn
	peer  *peer
	clock *clocktesting.FakeClock
	h     *recorder
}

// start is the time at which every test begins.
var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// onWire runs a test over an in-memory connection that has been released.
func onWire(t *testing.T, o Options, test func(b *bench)) {
	t.Helper()
	onHeldWire(t, o, func(b *bench) {
		b.conn.Release()
		test(b)
	})
}

// onHeldWire is onWire without the Release.
func onHeldWire(t *testing.T, o Options, test func(b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		clk := clocktesting.NewFakeClock(start)
		o.Clock = clk
		b := &bench{T: t, peer: newPeer(t), clock: clk, h: &recorder{}}
		b.conn = NewConn(b.peer, b.h, o)
		defer func() {
			b.conn.Close("end of test")
			b.h.letGo()
			<-b.conn.Done()
		}()
		test(b)
	})
}

// settle waits until nothing moves any more.
func (b *bench) settle() { synctest.Wait() }

// pass lets time go by.
func (b *bench) pass(d time.Duration) {
	b.settle()
	b.clock.Step(d)
	b.settle()
}

// send gives the host one frame and waits until it is dealt with.
func (b *bench) send(frame string) {
	b.Helper()
	b.peer.send(frame)
	b.settle()
}

// wrote checks what the host wrote since the last look.
func (b *bench) wrote(want ...string) {
	b.Helper()
	b.settle()
	equal(b, b.peer.lines(), want)
}

// heard checks what reached the handler since the last look.
func (b *bench) heard(want ...string) {
	b.Helper()
	b.settle()
	equal(b, b.h.heard(), want)
}

// failed checks that a call has failed.
func (b *bench) failed(call *Call, outcome Outcome) *CallError {
	b.Helper()
	b.settle()
	select {
	case <-call.Done():
	default:
		b.Fatalf("the call has no outcome, want %s", outcome)
	}
	_, err := call.Result()
	var callErr *CallError
	if !errors.As(err, &callErr) {
		b.Fatalf("the call ended with %v, want a CallError %s", err, outcome)
	}
	if callErr.Outcome != outcome {
		b.Fatalf("outcome %s (%v), want %s", callErr.Outcome, err, outcome)
	}
	return callErr
}

// pending checks that a call has no outcome yet.
func (b *bench) pending(call *Call) {
	b.Helper()
	b.settle()
	select {
	case <-call.Done():
		_, err := call.Result()
		b.Fatalf("the call has ended (%v), want it pending", err)
	default:
	}
}

// succeeded checks a call's result.
func (b *bench) succeeded(call *Call, want string) {
	b.Helper()
	b.settle()
	select {
	case <-call.Done():
	default:
		b.Fatal("the call has no outcome")
	}
	got, err := call.Result()
	if err != nil {
		b.Fatalf("the call failed: %v", err)
	}
	equal(b, string(got), want)
}

// ended checks that the connection has ended for a cause.
func (b *bench) ended(cause Cause) *ConnError {
	b.Helper()
	b.settle()
	var err *ConnError
	if !errors.As(b.conn.Err(), &err) {
		b.Fatalf("the connection lives, want %s", cause)
	}
	if err.Cause != cause {
		b.Fatalf("the connection ended with %s, want %s", err.Cause, cause)
	}
	return err
}

// lives checks that the connection has not ended.
func (b *bench) lives() {
	b.Helper()
	b.settle()
	if err := b.conn.Err(); err != nil {
		b.Fatalf("the connection ended: %v", err)
	}
}

// recorder is a Handler that notes what it is given. Unless told otherwise it
// answers {}.
type recorder struct {
	mu       sync.Mutex
	calls    []string
	block    chan struct{} // waits here, if set
	request  func(ctx context.Context, method string, params json.RawMessage) Answer
	inFlight int
	overlap  bool
}

func (h *recorder) ServeRequest(ctx context.Context, method string, params json.RawMessage) Answer {
	h.note("request", method, params)
	h.mu.Lock()
	f := h.request
	h.mu.Unlock()
	if f != nil {
		return f(ctx, method, params)
	}
	return Answer{}
}

func (h *recorder) ServeNotification(_ context.Context, method string, params json.RawMessage) {
	h.note("notification", method, params)
}

func (h *recorder) note(kind, method string, params json.RawMessage) {
	h.mu.Lock()
	h.calls = append(h.calls, fmt.Sprintf("%s %s %s", kind, method, params))
	h.inFlight++
	h.overlap = h.overlap || h.inFlight > 1
	block := h.block
	h.mu.Unlock()
	if block != nil {
		<-block
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.inFlight--
}

// hold makes the handler wait until letGo.
func (h *recorder) hold() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.block = make(chan struct{})
}

func (h *recorder) letGo() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.block != nil {
		close(h.block)
		h.block = nil
	}
}

func (h *recorder) heard() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	calls := h.calls
	h.calls = nil
	return calls
}

func (h *recorder) onRequest(f func(ctx context.Context, method string, params json.RawMessage) Answer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.request = f
}

func equal(t testing.TB, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got  %+v\nwant %+v", got, want)
	}
}
