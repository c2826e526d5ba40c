package mcpl

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
)

const (
	defaultMaxMessageBytes = 4 << 20
	defaultCloseTimeout    = 3 * time.Second
	// maxCloseReason is what fits into a WebSocket close frame (RFC 6455 §5.5).
	maxCloseReason = 123
)

// DialOptions say where and how to dial.
type DialOptions struct {
	// URL has the scheme ws or wss. It may carry ?token=…, so it is in no error.
	URL *url.URL
	// Header is sent with the request: Authorization, Mcpl-Term, Mcpl-Host.
	Header http.Header
	// TLS is used for wss; nil means the system's roots.
	TLS *tls.Config
	// DialContext makes the connection; nil means a plain net.Dialer. No proxy
	// is taken from the environment and no redirect is followed.
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error)
	// MaxMessageBytes bounds one inbound message. Default: 4 MiB.
	MaxMessageBytes int64
	// CloseTimeout bounds the exchange of goodbyes. Default: 3 s.
	CloseTimeout time.Duration
}

// DialWebSocket connects to a connector (semantics §12.1). ctx bounds the dial,
// not the connection. It fails with a *DialError, or with context.Canceled.
func DialWebSocket(ctx context.Context, o DialOptions) (Transport, error) {
	if o.URL == nil || o.URL.Scheme != "ws" && o.URL.Scheme != "wss" {
		return nil, &DialError{Class: Unreachable, Detail: "the URL is neither ws nor wss"}
	}
	if o.MaxMessageBytes <= 0 {
		o.MaxMessageBytes = defaultMaxMessageBytes
	}
	if o.CloseTimeout <= 0 {
		o.CloseTimeout = defaultCloseTimeout
	}
	// The HTTP client may go on with a connection after the request has been
	// given up; this context does not let it.
	dialCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	d := &dialing{ctx: dialCtx, o: o}
	rt := &http.Transport{
		DialContext:            d.dialPlain,
		DialTLSContext:         d.dialTLS,
		DisableKeepAlives:      true,
		DisableCompression:     true,
		MaxResponseHeaderBytes: 64 << 10,
	}
	client := &http.Client{
		Transport:     rt,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	ws, resp, err := websocket.Dial(dialCtx, o.URL.String(), &websocket.DialOptions{
		HTTPClient:      client,
		HTTPHeader:      o.Header,
		CompressionMode: websocket.CompressionDisabled,
	})
	switch {
	case err == nil:
		ws.SetReadLimit(o.MaxMessageBytes)
		return &webSocket{ws: ws, raw: d.raw, closeTimeout: o.CloseTimeout}, nil
	case resp != nil:
		return nil, statusError(resp)
	case errors.Is(ctx.Err(), context.Canceled):
		return nil, context.Canceled
	default:
		return nil, d.failure(ctx, err)
	}
}

// dialing is one dial under way: it keeps the socket and notes how far it came,
// because the client's errors tell it badly and print the URL.
type dialing struct {
	ctx context.Context
	o   DialOptions

	mu        sync.Mutex
	raw       net.Conn
	connected bool
	dialErr   error
	tlsErr    error

	answered atomic.Bool // at least one byte came back
}

// dialPlain and dialTLS are the HTTP client's ways to connect.
func (d *dialing) dialPlain(_ context.Context, network, addr string) (net.Conn, error) {
	conn, err := d.dial(network, addr)
	if err != nil {
		return nil, err
	}
	return &watchedConn{Conn: conn, d: d}, nil
}

func (d *dialing) dial(network, addr string) (net.Conn, error) {
	dial := d.o.DialContext
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	conn, err := dial(d.ctx, network, addr)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.raw, d.dialErr, d.connected = conn, err, err == nil
	return conn, err
}

func (d *dialing) dialTLS(_ context.Context, network, addr string) (net.Conn, error) {
	raw, err := d.dial(network, addr)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{}
	if d.o.TLS != nil {
		config = d.o.TLS.Clone()
	}
	if config.ServerName == "" {
		config.ServerName = d.o.URL.Hostname()
	}
	config.NextProtos = []string{"http/1.1"} // a WebSocket upgrade is HTTP/1.1
	conn := tls.Client(raw, config)
	if err := conn.HandshakeContext(d.ctx); err != nil {
		_ = raw.Close()
		d.mu.Lock()
		defer d.mu.Unlock()
		d.tlsErr = err
		return nil, err
	}
	return &watchedConn{Conn: conn, d: d}, nil
}

// watchedConn notes whether anything came back, which tells a peer that speaks
// something else from one that hangs up.
type watchedConn struct {
	net.Conn
	d *dialing
}

func (c *watchedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.d.answered.Store(true)
	}
	return n, err
}

// webSocket is a Transport over a WebSocket.
type webSocket struct {
	ws           *websocket.Conn
	raw          net.Conn
	closeTimeout time.Duration
}

// Read implements Transport. A binary frame is taken like a text frame.
func (w *webSocket) Read(ctx context.Context) ([]byte, error) {
	_, frame, err := w.ws.Read(ctx)
	var bye websocket.CloseError
	switch {
	case err == nil:
		return frame, nil
	case errors.As(err, &bye):
		return nil, &PeerClosedError{Code: int(bye.Code), Reason: Sanitize(bye.Reason, maxCloseReason)}
	case errors.Is(err, websocket.ErrMessageTooBig):
		return nil, ErrMessageTooBig
	default:
		return nil, err
	}
}

// Write implements Transport.
func (w *webSocket) Write(ctx context.Context, line []byte) error {
	return w.ws.Write(ctx, websocket.MessageText, line)
}

// Ping implements Transport. The library gives a control frame 5 s to get past a
// message that is being written; a longer write is no reason to call the peer
// dead, so the ping is tried again until ctx ends.
func (w *webSocket) Ping(ctx context.Context) error {
	for ctx.Err() == nil {
		err := w.ws.Ping(ctx)
		if err == nil || ctx.Err() == nil && !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
	}
	return ctx.Err()
}

// Close implements Transport. The library waits up to 10 s for the peer, so the
// socket is taken away from it before.
func (w *webSocket) Close(reason string) error {
	cut := time.AfterFunc(w.closeTimeout, func() { _ = w.raw.Close() })
	defer cut.Stop()
	return w.ws.Close(websocket.StatusNormalClosure, Sanitize(reason, maxCloseReason))
}
