package connector

import (
	"crypto/subtle"
	"net"
	"net/http"
	"strings"

	"github.com/coder/websocket"
)

// closeTakenOver is the WebSocket code for a host that another one replaces.
const closeTakenOver = 4001

// serveHTTP lets a host in, or not. Whoever is replaced is so before the new host
// hears that it is in: nothing of the older one is served after that.
func (c *Connector) serveHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != Path {
		http.Error(w, "MCPL is served at "+Path, http.StatusNotFound)
		return
	}
	b := c.Behavior()
	switch {
	case b.GarbleUpgrades:
		garbled(w)
		return
	case b.RefuseStatus != 0:
		http.Error(w, http.StatusText(b.RefuseStatus), b.RefuseStatus)
		return
	case !c.authorised(r):
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "the token is missing or wrong", http.StatusUnauthorized)
		return
	case !strings.EqualFold(r.Header.Get("Upgrade"), "websocket"):
		http.Error(w, "MCPL is served over a WebSocket", http.StatusUpgradeRequired)
		return
	}
	n := newHostConn(c, socketOf(r), r.Header.Get("Mcpl-Host"), r.Header.Get("Mcpl-Term"))
	c.mu.Lock()
	if held := c.holder; c.o.Fence && !held.admits(n.host, n.term) {
		c.mu.Unlock()
		held.refuse(w)
		return
	}
	if c.closed {
		c.mu.Unlock()
		return // the server is about to cut the request
	}
	c.wg.Add(1)
	defer c.wg.Done()
	c.admit(n)
	c.mu.Unlock()
	c.bell.ring()

	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		InsecureSkipVerify: true, // the check is about browsers, and hosts are none
		CompressionMode:    websocket.CompressionDisabled,
	})
	if err != nil {
		c.mu.Lock()
		n.detach("the upgrade failed: " + err.Error()) // Accept has answered
		c.mu.Unlock()
		return
	}
	n.serve(ws)
}

// admit makes a connection the one that is served, or one that is never answered.
// c.mu is held.
func (c *Connector) admit(n *hostConn) {
	c.conns++
	n.number = c.conns
	connect := Entry{Conn: n.number, Direction: In, Kind: Connect, Note: strings.TrimSpace(n.host + " " + n.term)}
	if c.current != nil && !c.o.Fence && !c.o.ReplaceConnection {
		n.idle = true
		connect.Note += " (never answered: another host is served)"
		c.journal.record(connect)
		return
	}
	if c.current != nil {
		c.current.leave(closeTakenOver, "taken over")
	}
	c.journal.record(connect)
	c.current = n
	if c.o.Fence {
		c.holder = holder{host: n.host, term: n.term}
	}
	if c.behavior.ForgetOnConnect {
		clear(c.open)
	}
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
