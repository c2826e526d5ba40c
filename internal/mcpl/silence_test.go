package mcpl

import (
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// A connector that is there and says nothing, or is not there and says nothing.

// waitForTimers waits until as many timers run on the clock.
func waitForTimers(clock *clocktesting.FakeClock, n int) {
	for clock.Waiters() != n {
		runtime.Gosched()
	}
}

func frozen(f *farEnd) { <-f.over }

func TestP16AConnectorThatNeverReads(t *testing.T) {
	overBoth(t, Options{PingEvery: never}, frozen, func(h *host) {
		before := heapInUse()
		inWrite := h.Start("big", strings.Repeat("x", 32<<20), time.Minute)
		waiting := h.Start("small", nil, time.Minute)
		waitForTimers(h.clock, 2) // the pinger's and the write's
		h.clock.Step(30*time.Second - 1)
		equal(h, h.Err(), nil)
		h.clock.Step(1)
		h.hasEnded("connection closed: the connector stopped reading")
		for call, want := range map[*Call]Outcome{inWrite: NoResponse, waiting: NotSent} {
			_, err := call.Result()
			var callErr *CallError
			if !errors.As(err, &callErr) || callErr.Outcome != want {
				h.Errorf("got %v, want %s", err, want)
			}
		}
		heapIsBounded(h.T, before)
	})
}

// abruptPeer is a transport that is lost, for the reader too, when a write is
// given up, as a WebSocket is.
type abruptPeer struct {
	*peer
	err  error           // of the write
	lost <-chan struct{} // the connection has noticed
}

func (p *abruptPeer) Write(ctx context.Context, line []byte) error {
	if p.peer.Write(ctx, line) == nil {
		return nil
	}
	if p.err != nil {
		p.hangUp(io.ErrUnexpectedEOF)
		<-p.lost
	}
	return p.err
}

func TestTheReasonOfAWriteTimeoutIsStable(t *testing.T) {
	for name, err := range map[string]error{
		"the reader is first":        io.ErrUnexpectedEOF,
		"written at the last moment": nil,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clock, lost := clocktesting.NewFakeClock(start), make(chan struct{})
				p := &abruptPeer{peer: newPeer(t), err: err, lost: lost}
				p.stopReading()
				c := NewConn(p, &recorder{}, Options{Clock: clock, OnClosing: func(err *ConnError) {
					if err.Cause != WriteTimedOut {
						t.Errorf("got %s", err.Cause)
					}
					close(lost)
				}})
				call := c.Start("m", nil, 0)
				synctest.Wait()
				clock.Step(30 * time.Second)
				synctest.Wait()
				if c.Err() == nil {
					c.Close("end of test")
				}
				<-c.Done()
				equal(t, c.Err().Error(), "connection closed: the connector stopped reading")
				_, err := call.Result()
				equal(t, err.Error(), "no response: connection closed: the connector stopped reading")
			})
		})
	}
}

func TestAConnectorThatNeverReadsCanBeLeft(t *testing.T) {
	overBoth(t, hostOptions(), frozen, func(h *host) {
		call := h.Start("big", strings.Repeat("x", 32<<20), 0)
		waitForTimers(h.clock, 2)
		h.Close("enough")
		<-call.Done()
		h.hasEnded("connection closed: enough")
	})
}

// TestP16AFrozenConnector: a WebSocket's pings find out. TCP must not send any
// (fact 21), so its connection stays and requests fail one by one.
func TestP16AFrozenConnector(t *testing.T) {
	overBoth(t, Options{WriteTimeout: never}, frozen, func(h *host) {
		call := h.Start("m", nil, time.Minute)
		if strings.HasSuffix(h.Name(), "WebSocket") {
			h.until(10*time.Second, h.Done())
			h.hasEnded("connection closed: the connector stopped answering pings")
			return
		}
		h.until(10*time.Second, call.Done())
		_, err := call.Result()
		if !errors.Is(err, context.DeadlineExceeded) {
			h.Errorf("got %v", err)
		}
		h.clock.Step(time.Hour)
		equal(h, h.Err(), nil)
	})
}

// deadPeer is a connection on which keep-alive finds out, when told.
type deadPeer struct {
	net.Conn
	found chan struct{}
	once  sync.Once
}

func (c *deadPeer) Read([]byte) (int, error) {
	<-c.found
	return 0, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ETIMEDOUT}
}

func (c *deadPeer) Write(b []byte) (int, error) { return len(b), nil }

func (c *deadPeer) Close() error {
	c.once.Do(func() { close(c.found) })
	return c.Conn.Close()
}

func TestKeepAliveEndsATCPConnection(t *testing.T) {
	end, other := net.Pipe()
	defer func() { _ = other.Close() }()
	dead := &deadPeer{Conn: end, found: make(chan struct{})}
	c := NewConn(inMemory(t, dead, TCPOptions{}), &recorder{}, Options{Clock: clocktesting.NewFakeClock(start)})
	call := c.Start("m", nil, time.Minute)
	dead.once.Do(func() { close(dead.found) })
	<-c.Done()
	equal(t, c.Err().Error(), "connection lost")
	if _, err := call.Result(); err == nil {
		t.Error("the call succeeded")
	}
}

func TestWaysATCPConnectorLeaves(t *testing.T) {
	cases := map[string]struct {
		leave func(conn *net.TCPConn)
		want  string
	}{
		"it closes":   {func(*net.TCPConn) {}, "connection closed by the connector"},
		"half of it":  {func(conn *net.TCPConn) { _ = conn.CloseWrite(); _, _ = io.Copy(io.Discard, conn) }, "connection closed by the connector"},
		"by a reset":  {func(conn *net.TCPConn) { _ = conn.SetLinger(0); _ = conn.Close() }, "connection lost"},
		"in the line": {func(conn *net.TCPConn) { _, _ = io.WriteString(conn, `{"id":1,"res`) }, "connection lost"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tr := dialTCP(t, TCPOptions{Address: serveTCP(t, func(conn *net.TCPConn) {
				buffer := make([]byte, 1<<10)
				_, _ = conn.Read(buffer) // the whole request
				tc.leave(conn)
			})})
			c := NewConn(tr, &recorder{}, Options{Clock: clocktesting.NewFakeClock(start)})
			call := c.Start("m", nil, 0)
			<-c.Done()
			equal(t, c.Err().Error(), tc.want)
			_, err := call.Result()
			equal(t, err.Error(), "no response: "+tc.want)
		})
	}
}
