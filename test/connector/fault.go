package connector

import (
	"context"
	"errors"
	"net"

	"github.com/coder/websocket"
)

// Drop cuts the host's connection without a word.
func (c *Connector) Drop() error {
	return c.onServed(func(n *hostConn) { n.drop("dropped") })
}

// Disconnect closes the host's connection with a WebSocket code and reason.
func (c *Connector) Disconnect(code int, reason string) error {
	return c.onServed(func(n *hostConn) { n.leave(websocket.StatusCode(code), reason) })
}

// DropMidFrame writes the beginning of a frame and cuts the host's connection.
func (c *Connector) DropMidFrame(ctx context.Context) error {
	n, err := c.served()
	if err != nil {
		return err
	}
	if c.tls != nil {
		return errors.New("a frame can be cut only where there is no TLS")
	}
	if err := n.lockWriting(ctx); err != nil {
		return err
	}
	// A final text frame of 100 bytes (RFC 6455 §5.2), of which 10 come.
	_, err = n.socket.Write(append([]byte{0x81, 100}, `{"jsonrpc"`...))
	<-n.writing
	return errors.Join(err, c.Drop())
}

// Restart is the end of the connector's process and the begin of a new one: the
// connection is cut, and nothing is open, muted or remembered of hosts any more.
// Channels, rules and the journal stay, as a test's tools and not the connector's.
func (c *Connector) Restart() {
	c.mu.Lock()
	if c.current != nil {
		c.current.drop("restarted")
	}
	clear(c.open)
	c.holder = holder{}
	for _, ch := range c.channels {
		ch.muted, ch.lastSeen = false, ""
	}
	c.mu.Unlock()
	c.bell.ring()
}

// Pause refuses new connections until Resume; the present one stays.
func (c *Connector) Pause() error {
	c.mu.Lock()
	l := c.listener
	c.listener = nil
	c.mu.Unlock()
	if l == nil {
		return nil
	}
	return l.Close()
}

// Resume accepts connections again, at the same address.
func (c *Connector) Resume(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	if c.listener != nil {
		return nil
	}
	l, err := listenOn(ctx, c.addr)
	if err != nil {
		return err
	}
	c.listener = l
	c.start(func() { c.accept(l) })
	return nil
}

// Freeze makes the connector deaf and dumb until Thaw, as a host sees it whose
// peer has gone without a trace: connections stand, new ones are accepted, and
// nothing is read or written, not even the answer to a ping.
func (c *Connector) Freeze() { c.frozen.set(true) }

// Thaw ends Freeze. What arrived meanwhile is served.
func (c *Connector) Thaw() { c.frozen.set(false) }

func (c *Connector) onServed(f func(*hostConn)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current == nil {
		return ErrNotConnected
	}
	f(c.current)
	return nil
}

// accept serves HTTP until the listener is closed.
func (c *Connector) accept(l net.Listener) {
	_ = c.server.Serve(c.wrap(l)) // it ends when Pause or Close closes the listener
}
