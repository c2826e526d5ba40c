package mcpl

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"
	clocktesting "k8s.io/utils/clock/testing"
)

// farEnd is the connector's end of a real connection, over either transport. Its
// methods are for the session's goroutine; they fail when the host is gone.
type farEnd struct {
	send func(message string) error
	// half sends half a message; what follows belongs to it.
	half func(message string) error
	recv func() (string, error)
	// over is closed when the test is.
	over <-chan struct{}
}

// drain reads until the host closes.
func (f *farEnd) drain() {
	for {
		if _, err := f.recv(); err != nil {
			return
		}
	}
}

// host is the host's end of the same connection.
type host struct {
	*testing.T
	*Conn
	clock *clocktesting.FakeClock
	h     *recorder
}

// never is a timeout that a test does not reach however often it steps the clock.
const never = 100 * 365 * 24 * time.Hour

// hostOptions are those of a test in which only timeouts of calls pass.
func hostOptions() Options { return Options{WriteTimeout: never, PingEvery: never, PingTimeout: never} }

// overBoth runs a test over a WebSocket and over TCP. When it has ended, so have
// all goroutines of the connection. session is the connector; when it returns,
// the connection is dropped.
func overBoth(t *testing.T, o Options, session func(f *farEnd), test func(h *host)) {
	t.Helper()
	for name, dial := range map[string]func(t *testing.T, over <-chan struct{}, session func(f *farEnd)) Transport{
		"WebSocket": dialFarWebSocket, "TCP": dialFarTCP,
	} {
		t.Run(name, func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			t.Cleanup(func() { goleak.VerifyNone(t, before) }) // after those below
			over := make(chan struct{})
			tr := dial(t, over, session)
			h := &host{T: t, clock: clocktesting.NewFakeClock(start), h: &recorder{}}
			o.Clock = h.clock
			h.Conn = NewConn(tr, h.h, o)
			t.Cleanup(func() {
				h.Close("end of test")
				h.h.letGo()
				close(over)
				<-h.Done()
			})
			test(h)
		})
	}
}

// farLimit is the largest message of these tests; the hosts' close timeout is
// short because with real sockets it is real.
const (
	farLimit        = 1 << 20
	farCloseTimeout = 50 * time.Millisecond
	farBuffer       = 16 << 10
)

// dialNarrow dials with a small send buffer, so that little is enough to fill it.
func dialNarrow(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(farBuffer)
	}
	return conn, err
}

func dialFarWebSocket(t *testing.T, over <-chan struct{}, session func(f *farEnd)) Transport {
	t.Helper()
	s := serve(t, func(ctx context.Context, ws *websocket.Conn) {
		session(&farEnd{
			send: func(m string) error { return ws.Write(ctx, websocket.MessageText, []byte(m)) },
			half: func(m string) error {
				w, err := ws.Writer(ctx, websocket.MessageText)
				if err == nil {
					_, err = io.WriteString(w, m)
				}
				return err
			},
			recv: func() (string, error) {
				_, m, err := ws.Read(ctx)
				return string(m), err
			},
			over: over,
		})
	})
	tr, err := DialWebSocket(t.Context(), DialOptions{
		URL: wsURL(t, s.URL), DialContext: dialNarrow, MaxMessageBytes: farLimit, CloseTimeout: farCloseTimeout,
	})
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func dialFarTCP(t *testing.T, over <-chan struct{}, session func(f *farEnd)) Transport {
	t.Helper()
	address := serveTCP(t, func(conn *net.TCPConn) {
		r := bufio.NewReader(conn)
		session(&farEnd{
			send: func(m string) error {
				_, err := io.WriteString(conn, m+"\n")
				return err
			},
			half: func(m string) error {
				_, err := io.WriteString(conn, m)
				return err
			},
			recv: func() (string, error) {
				m, err := r.ReadString('\n')
				return strings.TrimSuffix(m, "\n"), err
			},
			over: over,
		})
	})
	tr, err := DialTCP(t.Context(), TCPOptions{
		Address: address, DialContext: dialNarrow, MaxMessageBytes: farLimit, CloseTimeout: farCloseTimeout,
	})
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// hasEnded waits for the end of the connection and checks why it came.
func (h *host) hasEnded(want string) {
	h.Helper()
	<-h.Done()
	equal(h, h.Err().Error(), want)
}

// lives checks that requests are still answered, by a connector that answers.
func (h *host) lives(id int) {
	h.Helper()
	got, err := h.Start("still there", nil, 0).Wait(h.Context())
	equal(h, err, nil)
	equal(h, string(got), fmt.Sprintf(`"answer %d"`, id))
}

// answerTo is the answer that lives expects.
func answerTo(id int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":"answer %d"}`, id, id)
}

// until lets time pass, a step after another, until something has happened.
func (h *host) until(step time.Duration, happened <-chan struct{}) {
	for {
		select {
		case <-happened:
			return
		default:
			h.clock.Step(step)
			runtime.Gosched()
		}
	}
}

// await waits until the connection is in a state; not every change is announced.
func (h *host) await(state func() bool) {
	for {
		h.mu.Lock()
		done := state() || h.closing
		h.mu.Unlock()
		if done {
			return
		}
		runtime.Gosched()
	}
}

// heapLimit is how much a connector may make the heap grow.
const heapLimit = 8 << 20

func heapInUse() uint64 {
	runtime.GC()
	runtime.GC() // what finalizers and pools held over the first
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// heapIsBounded checks what is in use now against what was before.
func heapIsBounded(t *testing.T, before uint64) {
	t.Helper()
	if now := heapInUse(); now > before+heapLimit {
		t.Errorf("%d KiB more in use than the %d KiB before", (now-before)>>10, before>>10)
	}
}
