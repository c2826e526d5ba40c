package mcpl

import (
	"bufio"
	"context"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// leaving is what a connector notices of the host's leaving.
type leaving struct {
	saw  string // what the host sent
	end  error  // how its stream ended; nil for a plain end
	sent error  // of what the connector sent after that
}

// TestFact21LeavingDoesNotReset closes a connection while the connector has sent
// what nobody reads. It must see a plain end, be able to send what it still has
// to say, and never be reset.
func TestFact21LeavingDoesNotReset(t *testing.T) {
	const unread = 300 << 10
	for name, reads := range map[string]bool{"nobody reads": false, "a reader goes on": true} {
		t.Run(name, func(t *testing.T) {
			ready, left := make(chan bool), make(chan leaving, 1)
			tr := dialTCP(t, TCPOptions{CloseTimeout: time.Hour, Address: serveTCP(t, func(conn *net.TCPConn) {
				_ = conn.SetReadBuffer(4 << 10)
				_, _ = io.WriteString(conn, strings.Repeat("{\"id\":1}\n", unread/9))
				close(ready)
				var l leaving
				all, err := io.ReadAll(conn)
				l.saw, l.end = string(all), err
				_, l.sent = io.WriteString(conn, strings.Repeat("late\n", unread/5))
				if err := conn.CloseWrite(); l.sent == nil {
					l.sent = err
				}
				_, err = io.Copy(io.Discard, conn) // a reset would show here
				if l.end == nil {
					l.end = err
				}
				left <- l
			})})
			write(t, tr, "hello")
			<-ready
			readerEnded := make(chan error, 1)
			if reads {
				go func() {
					for {
						if _, err := tr.Read(context.Background()); err != nil {
							readerEnded <- err
							return
						}
					}
				}()
			}
			equal(t, tr.Close("a reason"), nil)
			equal(t, <-left, leaving{saw: "hello\n"})
			if reads {
				equal(t, <-readerEnded, error(&PeerClosedError{}))
			}
			_, err := tr.Read(t.Context())
			equal(t, err, error(&PeerClosedError{}))
		})
	}
}

func TestALineTooLongIsDrained(t *testing.T) {
	left := make(chan leaving, 1)
	tr := dialTCP(t, TCPOptions{MaxMessageBytes: 1000, CloseTimeout: time.Hour, Address: serveTCP(t, func(conn *net.TCPConn) {
		var l leaving
		_, l.sent = io.WriteString(conn, strings.Repeat("x", 10<<20)+"\n")
		all, err := io.ReadAll(conn)
		l.saw, l.end = string(all), err
		left <- l
	})})
	_, err := tr.Read(t.Context())
	equal(t, err, ErrMessageTooBig)
	equal(t, tr.Close(""), nil)
	equal(t, <-left, leaving{})
	_, err = tr.Read(t.Context())
	equal(t, err, ErrMessageTooBig)
}

// TestLeavingLetsAWriteFinish: half a line would be one that is not JSON.
func TestLeavingLetsAWriteFinish(t *testing.T) {
	taken, goOn, saw := make(chan bool), make(chan bool), make(chan int, 1)
	tr := dialTCP(t, TCPOptions{CloseTimeout: time.Hour, Address: serveTCP(t, func(conn *net.TCPConn) {
		r := bufio.NewReader(conn)
		_, _ = r.Peek(1)
		close(taken)
		<-goOn
		line, _ := r.ReadString('\n')
		saw <- len(line)
	})})
	const length = 32 << 20 // more than sockets buffer
	wrote, closed := make(chan error, 1), make(chan error, 1)
	go func() { wrote <- tr.Write(context.Background(), make([]byte, length)) }()
	<-taken
	go func() { closed <- tr.Close("") }()
	for tr.Ping(t.Context()) == nil { // until Close has begun
		runtime.Gosched()
	}
	close(goOn)
	equal(t, <-wrote, nil)
	equal(t, <-closed, nil)
	equal(t, <-saw, length+1)
}

func TestTCPCloseIsBoundedWhateverThePeerDoes(t *testing.T) {
	cases := map[string]func(conn *net.TCPConn, over <-chan bool){
		"is silent": func(_ *net.TCPConn, over <-chan bool) { <-over },
		"floods":    func(conn *net.TCPConn, _ <-chan bool) { _, _ = io.Copy(conn, endless{}) },
		"reads only": func(conn *net.TCPConn, over <-chan bool) {
			_, _ = io.Copy(io.Discard, conn)
			<-over
		},
	}
	for name, session := range cases {
		for _, writes := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				over, wrote := make(chan bool), make(chan error, 1)
				tr := dialTCP(t, TCPOptions{
					CloseTimeout: time.Millisecond, // with real sockets time is real
					Address:      serveTCP(t, func(conn *net.TCPConn) { session(conn, over) }),
				})
				defer close(over)
				if writes {
					go func() { wrote <- tr.Write(context.Background(), make([]byte, 64<<20)) }()
				} else {
					wrote <- nil
				}
				_ = tr.Close("")
				if err := <-wrote; writes && name != "reads only" && err == nil {
					t.Error("64 MiB were written to a peer that does not read")
				}
				if _, err := tr.Read(t.Context()); err == nil {
					t.Error("a Read succeeded after Close")
				}
				_ = tr.Close("") // may be called again
			})
		}
	}
}

// duplex is one end of an in-memory connection that can be closed by half.
type duplex struct {
	net.Conn // in
	out      net.Conn
}

func newDuplex() (host, peer *duplex) {
	hostIn, peerOut := net.Pipe()
	peerIn, hostOut := net.Pipe()
	return &duplex{hostIn, hostOut}, &duplex{peerIn, peerOut}
}

func (d *duplex) Write(b []byte) (int, error) { return d.out.Write(b) }
func (d *duplex) CloseWrite() error           { return d.out.Close() }
func (d *duplex) SetWriteDeadline(t time.Time) error {
	return d.out.SetWriteDeadline(t)
}

func (d *duplex) SetDeadline(t time.Time) error {
	_ = d.SetReadDeadline(t)
	return d.SetWriteDeadline(t)
}

func (d *duplex) Close() error {
	_ = d.out.Close()
	return d.Conn.Close()
}

// inMemory dials a connection that is not a socket.
func inMemory(t *testing.T, conn net.Conn, o TCPOptions) Transport {
	t.Helper()
	o.Address = "connector:1"
	o.DialContext = func(context.Context, string, string) (net.Conn, error) { return conn, nil }
	tr, err := DialTCP(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func TestTCPCloseWaitsAsLongAsItMay(t *testing.T) {
	for name, tc := range map[string]struct{ set, want time.Duration }{
		"as set":     {time.Minute, time.Minute},
		"by default": {0, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // time in here is not real
				host, peer := newDuplex()
				tr := inMemory(t, host, TCPOptions{CloseTimeout: tc.set})
				began := time.Now()
				equal(t, tr.Close(""), nil)
				equal(t, time.Since(began), tc.want)
				_, err := peer.Read(make([]byte, 1))
				equal(t, err, io.EOF)
			})
		})
	}
}

func TestTCPCloseEndsWithThePeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, peer := newDuplex()
		tr := inMemory(t, host, TCPOptions{})
		began := time.Now()
		go func() {
			_, _ = io.Copy(io.Discard, peer)
			_ = peer.Close()
		}()
		equal(t, tr.Close(""), nil)
		equal(t, time.Since(began), time.Duration(0))
	})
}

func TestTCPCloseOfWhatCannotBeClosedByHalf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, peer := net.Pipe()
		tr := inMemory(t, host, TCPOptions{})
		began := time.Now()
		equal(t, tr.Close(""), nil)
		equal(t, time.Since(began), time.Duration(0))
		_, err := peer.Read(make([]byte, 1))
		equal(t, err, io.EOF)
		_, err = tr.Read(t.Context())
		equal(t, err, net.ErrClosed)
	})
}
