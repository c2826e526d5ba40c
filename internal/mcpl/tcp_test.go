package mcpl

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
)

// serveTCP runs a TCP server and returns its address; session is one connection
// of it. None of it outlives the test.
func serveTCP(t *testing.T, session func(conn *net.TCPConn)) string {
	t.Helper()
	return strings.TrimPrefix(serveRaw(t, func(conn net.Conn) { session(conn.(*net.TCPConn)) }), "http://")
}

func dialTCP(t *testing.T, o TCPOptions) Transport {
	t.Helper()
	tr, err := DialTCP(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tr.Close("") })
	return tr
}

func read(t *testing.T, tr Transport) string {
	t.Helper()
	line, err := tr.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return string(line)
}

func write(t *testing.T, tr Transport, line string) {
	t.Helper()
	if err := tr.Write(t.Context(), []byte(line)); err != nil {
		t.Fatal(err)
	}
}

func TestTCPCarriesLines(t *testing.T) {
	tr := dialTCP(t, TCPOptions{Address: serveTCP(t, func(conn *net.TCPConn) { _, _ = io.Copy(conn, conn) })})
	for _, line := range []string{`{"a":1}`, `{"é":"\u2028"}`, "", "\r", strings.Repeat("x", 1<<20)} {
		write(t, tr, line)
		equal(t, read(t, tr), line)
	}
}

func TestTCPLinesAreNoPackets(t *testing.T) {
	step := make(chan bool)
	tr := dialTCP(t, TCPOptions{Address: serveTCP(t, func(conn *net.TCPConn) {
		_, _ = io.WriteString(conn, "one\ntwo\n\nth")
		<-step
		_, _ = io.WriteString(conn, "r")
		_, _ = io.WriteString(conn, "ee\n")
	})})
	equal(t, read(t, tr), "one")
	equal(t, read(t, tr), "two")
	equal(t, read(t, tr), "")
	close(step)
	equal(t, read(t, tr), "three")
}

func TestTCPDialErrors(t *testing.T) {
	gone := serveTCP(t, func(*net.TCPConn) {})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := l.Addr().String()
	_ = l.Close()
	errOurs := errors.New("not allowed")
	cases := map[string]struct {
		o    TCPOptions
		want DialError
		text string
	}{
		"nobody listens":  {TCPOptions{Address: closed}, DialError{Class: Unreachable, Detail: "connection refused"}, "unreachable: connection refused"},
		"an unknown name": {TCPOptions{Address: "connector.invalid:1"}, DialError{Class: Unreachable, Detail: "name not found"}, "unreachable: name not found"},
		"no port":         {TCPOptions{Address: "127.0.0.1"}, DialError{Class: Unreachable, Detail: "the address is not host:port"}, "unreachable: the address is not host:port"},
		"an empty port":   {TCPOptions{Address: "127.0.0.1:"}, DialError{Class: Unreachable, Detail: "the address is not host:port"}, "unreachable: the address is not host:port"},
		"no address":      {TCPOptions{}, DialError{Class: Unreachable, Detail: "the address is not host:port"}, "unreachable: the address is not host:port"},
		"the caller's dial fails": {
			TCPOptions{Address: gone, DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, errOurs }},
			DialError{Class: Unreachable, Detail: "connection failed", cause: errOurs}, "unreachable: connection failed",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := DialTCP(t.Context(), tc.o)
			var dialErr *DialError
			if !errors.As(err, &dialErr) {
				t.Fatalf("got %v", err)
			}
			if tc.want.cause != nil && !errors.Is(err, tc.want.cause) {
				t.Errorf("%v is not %v", err, tc.want.cause)
			}
			got := *dialErr
			got.cause = tc.want.cause
			equal(t, got, tc.want)
			equal(t, err.Error(), tc.text)
		})
	}
}

func TestTCPDialIsBoundedByItsContext(t *testing.T) {
	blackHole := func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	done := make(chan struct{})
	close(done)
	_, err := DialTCP(deadline{t.Context(), done}, TCPOptions{Address: "192.0.2.1:1", DialContext: blackHole})
	var dialErr *DialError
	if !errors.As(err, &dialErr) || dialErr.Class != DialTimeout {
		t.Errorf("got %v", err)
	}
	equal(t, err.Error(), "timed out: no connection")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = DialTCP(ctx, TCPOptions{Address: "192.0.2.1:1", DialContext: blackHole})
	equal(t, err, context.Canceled)
}

func TestTheTCPDialsContextDoesNotBoundTheConnection(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	tr, err := DialTCP(ctx, TCPOptions{Address: serveTCP(t, func(conn *net.TCPConn) { _, _ = io.Copy(conn, conn) })})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tr.Close("") }()
	cancel()
	write(t, tr, "x")
	equal(t, read(t, tr), "x")
}

func TestTCPKeepAlive(t *testing.T) {
	tr := dialTCP(t, TCPOptions{
		Address:     serveTCP(t, func(conn *net.TCPConn) { _, _ = io.Copy(conn, conn) }),
		DialContext: (&net.Dialer{KeepAlive: -1}).DialContext, // off, unless the transport turns it on
	})
	raw, err := tr.(*tcp).conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	on := 0
	if err := raw.Control(func(fd uintptr) {
		on, _ = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_KEEPALIVE)
	}); err != nil {
		t.Fatal(err)
	}
	equal(t, on != 0, true)
}

// TestFact21NothingButMessagesIsSent pings and closes with a reason: the
// connector sees the one line that was written.
func TestFact21NothingButMessagesIsSent(t *testing.T) {
	seen := make(chan string, 1)
	tr := dialTCP(t, TCPOptions{Address: serveTCP(t, func(conn *net.TCPConn) {
		all, _ := io.ReadAll(conn)
		seen <- string(all)
	})})
	for range 3 {
		equal(t, tr.Ping(t.Context()), nil)
	}
	write(t, tr, `{"a":1}`)
	equal(t, tr.Ping(t.Context()), nil)
	equal(t, tr.Close("a reason"), nil)
	equal(t, <-seen, "{\"a\":1}\n")
}

func TestTCPPing(t *testing.T) {
	hangUp := make(chan bool)
	tr := dialTCP(t, TCPOptions{Address: serveTCP(t, func(*net.TCPConn) { <-hangUp })})
	equal(t, tr.Ping(t.Context()), nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	equal(t, tr.Ping(ctx), context.Canceled)
	close(hangUp)
	_, _ = tr.Read(t.Context()) // notices that the peer is gone
	equal(t, tr.Ping(t.Context()), net.ErrClosed)

	tr = dialTCP(t, TCPOptions{Address: serveTCP(t, func(*net.TCPConn) {})})
	equal(t, tr.Close(""), nil)
	equal(t, tr.Ping(t.Context()), net.ErrClosed)
}

func TestTCPEnds(t *testing.T) {
	cases := map[string]struct {
		session func(conn *net.TCPConn)
		want    error
	}{
		"between two lines":  {func(conn *net.TCPConn) { _, _ = io.WriteString(conn, "line\n") }, &PeerClosedError{}},
		"in the middle":      {func(conn *net.TCPConn) { _, _ = io.WriteString(conn, "line\n{\"id\":1}") }, io.ErrUnexpectedEOF},
		"a line too long":    {func(conn *net.TCPConn) { _, _ = io.WriteString(conn, "line\n"+strings.Repeat("x", 101)+"\nmore\n") }, ErrMessageTooBig},
		"one without an end": {func(conn *net.TCPConn) { _, _ = io.Copy(conn, endless{}) }, ErrMessageTooBig},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tr := dialTCP(t, TCPOptions{Address: serveTCP(t, tc.session), MaxMessageBytes: 100, CloseTimeout: 1})
			if name != "one without an end" {
				equal(t, read(t, tr), "line")
			}
			for range 2 { // no Read succeeds after a failed one
				_, err := tr.Read(t.Context())
				equal(t, err, tc.want)
			}
		})
	}
}

// endless is a line that never ends.
type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	return len(b), nil
}

func TestTCPMessageLimit(t *testing.T) {
	for name, tc := range map[string]struct{ max, length int }{
		"as set":       {100, 100},
		"by default":   {0, 4 << 20},
		"over 64 KiB":  {0, 65<<10 + 1},
		"two buffers":  {0, 32 << 10},
		"one buffer":   {0, 16 << 10},
		"almost one":   {0, 16<<10 - 1},
		"nothing left": {1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			line := strings.Repeat("x", tc.length)
			tr := dialTCP(t, TCPOptions{MaxMessageBytes: int64(tc.max), Address: serveTCP(t, func(conn *net.TCPConn) {
				_, _ = io.WriteString(conn, line+"\n")
			})})
			equal(t, read(t, tr) == line, true)
		})
	}
	tr := dialTCP(t, TCPOptions{CloseTimeout: 1, Address: serveTCP(t, func(conn *net.TCPConn) {
		_, _ = conn.Write(append(bytes.Repeat([]byte("x"), 4<<20+1), '\n'))
	})})
	_, err := tr.Read(t.Context())
	equal(t, err, ErrMessageTooBig)
}

func TestATCPConnectionEndsWithTheContextOfAReadOrWrite(t *testing.T) {
	silent := func(conn *net.TCPConn) { _, _ = io.Copy(io.Discard, conn) }
	ended, cancel := context.WithCancel(t.Context())
	cancel()

	tr := dialTCP(t, TCPOptions{Address: serveTCP(t, silent)})
	if _, err := tr.Read(ended); err == nil {
		t.Error("a Read succeeded")
	}
	if _, err := tr.Read(t.Context()); err == nil {
		t.Error("a Read succeeded after a failed one")
	}
	tr = dialTCP(t, TCPOptions{Address: serveTCP(t, silent)})
	equal(t, tr.Write(ended, []byte("x")), context.Canceled)
	equal(t, tr.Ping(t.Context()), net.ErrClosed)
}

func TestATCPWriteEndsInTheMiddleWithItsContext(t *testing.T) {
	taken, hangUp := make(chan bool), make(chan bool)
	tr := dialTCP(t, TCPOptions{CloseTimeout: 1, Address: serveTCP(t, func(conn *net.TCPConn) {
		_, _ = bufio.NewReader(conn).Peek(1)
		close(taken)
		<-hangUp // reads no more
	})})
	defer close(hangUp)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-taken
		cancel()
	}()
	if err := tr.Write(ctx, make([]byte, 64<<20)); err == nil {
		t.Error("64 MiB were written to a peer that does not read")
	}
	equal(t, tr.Ping(t.Context()), net.ErrClosed)
}
