package connector

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// listener hands out sockets that the connector can freeze and cut.
type listener struct {
	net.Listener
	c *Connector
}

// Accept implements net.Listener.
func (l listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	s := &socket{Conn: conn, c: l.c, closed: make(chan struct{})}
	l.c.mu.Lock()
	closed := l.c.closed
	l.c.sockets[s] = struct{}{}
	l.c.mu.Unlock()
	if closed {
		_ = s.Close()
		return nil, net.ErrClosed
	}
	return s, nil
}

// socket is a host's TCP connection.
type socket struct {
	net.Conn
	c      *Connector
	once   sync.Once
	spoke  atomic.Bool // a request has begun
	closed chan struct{}
}

// Read implements net.Conn. Nothing is seen of what arrives while frozen.
func (s *socket) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	s.c.frozen.wait(s.closed)
	return n, err
}

// Write implements net.Conn.
func (s *socket) Write(b []byte) (int, error) {
	s.c.frozen.wait(s.closed)
	return s.Conn.Write(b)
}

// Close implements net.Conn.
func (s *socket) Close() error {
	s.once.Do(func() { close(s.closed) })
	s.c.mu.Lock()
	delete(s.c.sockets, s)
	s.c.mu.Unlock()
	return s.Conn.Close()
}

type socketKey struct{}

// withSocket lets a request's handler find its socket.
func withSocket(ctx context.Context, conn net.Conn) context.Context {
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	return context.WithValue(ctx, socketKey{}, conn)
}

func socketOf(r *http.Request) *socket {
	s, _ := r.Context().Value(socketKey{}).(*socket)
	return s
}

// freezer stops all sockets of a connector.
type freezer struct {
	mu   sync.Mutex
	thaw chan struct{} // closed while nothing is frozen
}

func newFreezer() *freezer {
	f := &freezer{thaw: make(chan struct{})}
	close(f.thaw)
	return f
}

// wait returns when nothing is frozen, or the socket is closed.
func (f *freezer) wait(closed <-chan struct{}) {
	f.mu.Lock()
	thaw := f.thaw
	f.mu.Unlock()
	select {
	case <-thaw:
	case <-closed:
	}
}

func (f *freezer) set(frozen bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-f.thaw:
		if frozen {
			f.thaw = make(chan struct{})
		}
	default:
		if !frozen {
			close(f.thaw)
		}
	}
}

func (c *Connector) wrap(l net.Listener) net.Listener {
	wrapped := net.Listener(listener{Listener: l, c: c})
	if c.tls == nil {
		return wrapped
	}
	config := c.tls.Clone()
	config.NextProtos = []string{"http/1.1"} // a WebSocket upgrade is HTTP/1.1
	return tls.NewListener(wrapped, config)
}
