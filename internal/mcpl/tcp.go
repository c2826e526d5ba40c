package mcpl

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// tcpKeepAlive finds a peer that is gone without a word in half a minute, as the
// pings of a WebSocket do.
var tcpKeepAlive = net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 4}

// TCPOptions say where and how to dial.
type TCPOptions struct {
	// Address is host:port.
	Address string
	// DialContext makes the connection; nil means a plain net.Dialer that tries
	// one address after another. A connection without CloseWrite is closed
	// without the half-close.
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error)
	// MaxMessageBytes bounds one inbound line, its end not counted. Default: 4 MiB.
	MaxMessageBytes int64
	// CloseTimeout bounds the half-close. Default: 3 s.
	CloseTimeout time.Duration
}

// DialTCP connects to a connector that speaks lines over TCP (semantics §12.1).
// ctx bounds the dial, not the connection. It fails with a *DialError of class
// Unreachable or DialTimeout, or with context.Canceled: who listens there shows
// only in the handshake. A connection must not be closed before something was
// written to it: that has been seen to end a connector's process (fact 21).
func DialTCP(ctx context.Context, o TCPOptions) (Transport, error) {
	if _, port, err := net.SplitHostPort(o.Address); err != nil || port == "" {
		return nil, &DialError{Class: Unreachable, Detail: "the address is not host:port"}
	}
	if o.MaxMessageBytes <= 0 {
		o.MaxMessageBytes = defaultMaxMessageBytes
	}
	if o.CloseTimeout <= 0 {
		o.CloseTimeout = defaultCloseTimeout
	}
	if o.DialContext == nil {
		// No fast fallback: it dials two addresses at once and drops one of the
		// connections without a word, which is what fact 21 forbids.
		o.DialContext = (&net.Dialer{FallbackDelay: -1}).DialContext
	}
	d := &dialing{ctx: ctx, o: DialOptions{DialContext: o.DialContext}}
	conn, err := d.dial("tcp", o.Address)
	switch {
	case err == nil:
		return newTCP(conn, o), nil
	case errors.Is(ctx.Err(), context.Canceled):
		return nil, context.Canceled
	default:
		return nil, d.failure(ctx, err)
	}
}

func newTCP(conn net.Conn, o TCPOptions) *tcp {
	if c, ok := conn.(interface {
		SetKeepAliveConfig(config net.KeepAliveConfig) error
	}); ok {
		_ = c.SetKeepAliveConfig(tcpKeepAlive) // without it, a dead peer shows at the next request
	}
	return &tcp{conn: conn, lines: newLineReader(conn, o.MaxMessageBytes), closeTimeout: o.CloseTimeout}
}

// tcp is a Transport over a stream, one message a line. A connector may end its
// process over a line that is no message, over a reset, and over a connection
// without a word (fact 21), so it sends nothing that it was not given, and it
// never resets.
type tcp struct {
	conn         net.Conn
	closeTimeout time.Duration

	reading sync.Mutex // held while reading
	lines   *lineReader
	readErr error // of the first Read that failed

	writing sync.Mutex // held while writing
	ended   atomic.Bool
	closing sync.Once
	closed  error
}

// past is a deadline that has passed.
var past = time.Unix(1, 0)

// Read implements Transport. The end of ctx ends the connection.
func (t *tcp) Read(ctx context.Context) ([]byte, error) {
	t.reading.Lock()
	defer t.reading.Unlock()
	if t.readErr != nil {
		return nil, t.readErr
	}
	stop := context.AfterFunc(ctx, func() { _ = t.conn.SetReadDeadline(past) })
	defer stop()
	line, err := t.lines.next()
	if err != nil {
		t.readEnded(err)
		return nil, t.readErr
	}
	return line, nil
}

// readEnded notes why nothing more will be read; nil and io.EOF stand for the
// end of the stream, the only goodbye there is. The first reason counts.
func (t *tcp) readEnded(err error) {
	t.ended.Store(true)
	switch {
	case t.readErr != nil:
	case err == nil, errors.Is(err, io.EOF):
		t.readErr = &PeerClosedError{}
	default:
		t.readErr = err
	}
}

// Write implements Transport.
func (t *tcp) Write(ctx context.Context, line []byte) error {
	t.writing.Lock()
	defer t.writing.Unlock()
	err := ctx.Err()
	if err == nil {
		stop := context.AfterFunc(ctx, func() { _ = t.conn.SetWriteDeadline(past) })
		message := net.Buffers{line, {'\n'}}
		_, err = message.WriteTo(t.conn)
		if !stop() && err == nil {
			err = ctx.Err() // the deadline stands, or will
		}
	}
	if err != nil {
		t.ended.Store(true)
	}
	return err
}

// Ping implements Transport. There is nothing that could be sent (fact 21); TCP
// keep-alive finds out what a ping would.
func (t *tcp) Ping(ctx context.Context) error {
	if t.ended.Load() {
		return net.ErrClosed
	}
	return ctx.Err()
}

// Close implements Transport. It lets a Write that is under way finish, says
// that nothing more will come, and takes in whatever the peer still sends until
// the peer closes as well: a socket that is closed with unread bytes is reset.
// A peer that has not closed after CloseTimeout is left. The reason has no place
// on this wire.
func (t *tcp) Close(string) error {
	t.closing.Do(func() {
		t.ended.Store(true)
		t.closed = t.close()
	})
	return t.closed
}

func (t *tcp) close() error {
	half, ok := t.conn.(interface{ CloseWrite() error })
	if ok {
		_ = t.conn.SetDeadline(time.Now().Add(t.closeTimeout))
		var wrote sync.WaitGroup
		wrote.Go(func() {
			t.writing.Lock()
			defer t.writing.Unlock()
			_ = half.CloseWrite() // fails if the connection is gone, which the drain sees too
		})
		t.drain() // at the same time: a peer that waits to write reads nothing
		wrote.Wait()
	}
	err := t.conn.Close()
	t.reading.Lock()
	defer t.reading.Unlock()
	t.readEnded(net.ErrClosed)
	return err
}

// drain reads until the stream ends or the deadline passes. A Read that goes on
// meanwhile takes part.
func (t *tcp) drain() {
	t.reading.Lock()
	defer t.reading.Unlock()
	if t.readErr == nil || errors.Is(t.readErr, ErrMessageTooBig) {
		t.readEnded(t.lines.discard())
	}
}
