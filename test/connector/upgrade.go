package connector

import (
	"context"
	"crypto/subtle"
	"net"
	"net/http"
	"strings"

	"github.com/coder/websocket"
)

// closeTakenOver is the WebSocket code for a host that another one replaces.
const closeTakenOver = 4001

// serveHTTP lets a host in, or not.
func (c *Connector) serveHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != Path {
		http.Error(w, "MCPL is served at "+Path, http.StatusNotFound)
		return
	}
	c.mu.Lock()
	refusal, garble, held := c.behavior.RefuseStatus, c.behavior.GarbleUpgrades, c.holder
	c.mu.Unlock()
	host, presented := r.Header.Get("Mcpl-Host"), r.Header.Get("Mcpl-Term")
	switch {
	case garble:
		garbled(w)
		return
	case refusal != 0:
		http.Error(w, http.StatusText(refusal), refusal)
		return
	case !c.authorised(r):
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "the token is missing or wrong", http.StatusUnauthorized)
		return
	case c.o.Fence && !held.admits(host, presented):
		held.refuse(w)
		return
	}
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		InsecureSkipVerify: true, // the check is about browsers, and hosts are none
		CompressionMode:    websocket.CompressionDisabled,
	})
	if err != nil {
		return // Accept has answered
	}
	ws.SetReadLimit(c.o.MaxMessageBytes)
	n := &hostConn{c: c, ws: ws, socket: socketOf(r), host: host, term: presented}
	c.serve(n)
}

// garbled answers as something that is no HTTP server.
func garbled(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return // the host is gone
	}
	_, _ = conn.Write([]byte("220 mail.example ESMTP\r\n"))
	_ = conn.Close()
}

// authorised compares in constant time, as a real connector should.
func (c *Connector) authorised(r *http.Request) bool {
	if c.o.Token == "" {
		return true
	}
	token, found := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !found {
		token = r.URL.Query().Get("token")
	}
	return subtle.ConstantTimeCompare([]byte(token), []byte(c.o.Token)) == 1
}

// serve runs a connection until it ends.
func (c *Connector) serve(n *hostConn) {
	n.io, n.cut = context.WithCancel(context.Background())
	n.ctx, n.cancel = context.WithCancel(n.io)
	n.writing = make(chan struct{}, 1)
	n.wake = make(chan struct{}, 1)
	n.pending = make(map[int64]*PendingCall)
	n.inHand = make(map[string]int)
	n.ids = make(map[string]bool)

	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		n.abort()
		return
	}
	c.wg.Add(1)
	defer c.wg.Done()
	c.admit(n)
	if c.current == n {
		c.start(n.work)
	}
	c.mu.Unlock()
	c.bell.ring()

	note := n.read()
	c.mu.Lock()
	n.detach(note)
	c.mu.Unlock()
	n.abort()
}

// admit makes a connection the one that is served, if it may be. c.mu is held.
func (c *Connector) admit(n *hostConn) {
	c.conns++
	n.number = c.conns
	connect := Entry{Conn: n.number, Direction: In, Kind: Connect, Note: strings.TrimSpace(n.host + " " + n.term)}
	switch {
	case c.o.Fence && !c.holder.admits(n.host, n.term):
		// Another one came in between the check and the upgrade.
		connect.Note += " (fenced off)"
		c.journal.record(connect)
		n.leave(closeTakenOver, "taken over")
		return
	case c.current != nil && !c.o.Fence && !c.o.ReplaceConnection:
		n.idle = true
		connect.Note += " (never answered: another host is served)"
	case c.current != nil:
		c.current.leave(closeTakenOver, "taken over")
	}
	c.journal.record(connect)
	if n.idle {
		return
	}
	c.current = n
	if c.o.Fence {
		c.holder = holder{host: n.host, term: n.term}
	}
	if c.behavior.ForgetOnConnect {
		clear(c.open)
	}
}

// watchProbes reports connections that come and go without a word: they have
// been seen to end a connector (fact 21). Over TLS the handshake's words count,
// and cannot be told here, so nothing is reported.
func (c *Connector) watchProbes(conn net.Conn, state http.ConnState) {
	s, ok := conn.(*socket)
	if !ok {
		return
	}
	switch state {
	case http.StateActive, http.StateHijacked:
		s.spoke.Store(true)
	case http.StateClosed:
		c.mu.Lock()
		defer c.mu.Unlock()
		if !s.spoke.Load() && !c.closed {
			c.violate(0, Probe, "a TCP connection from "+conn.RemoteAddr().String())
		}
	}
}
