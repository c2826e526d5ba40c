package connector

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coder/websocket"
)

// phase is how far a connection's handshake has come.
type phase int

const (
	phaseNew   phase = iota // nothing but initialize is expected
	phaseGap                // exactly one message is taken, whatever it is (fact 22)
	phaseReady              // everything is served
)

// hostConn is one connection of a host. One goroutine reads it and one works
// through what was read, in order and one at a time (fact 24).
type hostConn struct {
	c          *Connector
	ws         *websocket.Conn // set by serve; to be read with writing or Connector.mu held
	socket     *socket
	number     int
	host, term string
	idle       bool // accepted, and never answered (fact 19)

	io     context.Context // reading and writing; ends with abort
	cut    context.CancelFunc
	ctx    context.Context // serving; ends with detach
	cancel context.CancelFunc

	writing chan struct{} // held while a frame is written, and until there is a WebSocket
	wake    chan struct{} // rung when queue has grown

	// Connector.mu guards what follows.
	gone       bool
	goodbye    *websocket.CloseError // what leave says
	queue      []message
	phase      phase
	plain      bool // initialize was answered without experimental.mcpl
	grant      grant
	asked      bool // channels/register has been sent
	registered bool // and answered
	nextID     int64
	pending    map[int64]*PendingCall
	inHand     map[string]int // opens and closes not answered yet, by channel
	ids        map[string]bool
}

// rememberedIDs bounds how many request ids are kept to find a repeated one.
const rememberedIDs = 100_000

func newHostConn(c *Connector, s *socket, host, term string) *hostConn {
	n := &hostConn{
		c: c, socket: s, host: host, term: term,
		writing: make(chan struct{}, 1),
		wake:    make(chan struct{}, 1),
		pending: make(map[int64]*PendingCall),
		inHand:  make(map[string]int),
		ids:     make(map[string]bool),
	}
	n.io, n.cut = context.WithCancel(context.Background())
	n.ctx, n.cancel = context.WithCancel(n.io)
	n.writing <- struct{}{}
	return n
}

// serve runs a connection until it ends.
func (n *hostConn) serve(ws *websocket.Conn) {
	c := n.c
	ws.SetReadLimit(c.o.MaxMessageBytes)
	c.mu.Lock()
	n.ws = ws
	<-n.writing
	gone := n.gone
	if c.current == n {
		c.start(n.work)
	}
	c.mu.Unlock()
	if gone { // while it was upgraded
		n.farewell()
		return
	}
	note := n.read()
	c.mu.Lock()
	n.detach(note)
	c.mu.Unlock()
	n.abort()
}

// read takes in frames until the connection ends, and returns why it did.
func (n *hostConn) read() string {
	for {
		_, frame, err := n.ws.Read(n.io)
		if err != nil {
			var bye websocket.CloseError
			if errors.As(err, &bye) {
				return fmt.Sprintf("closed by the host with %d %q", bye.Code, bye.Reason)
			}
			return "the connection ended: " + err.Error()
		}
		for _, line := range lines(frame) {
			n.receive(line)
		}
	}
}

// receive takes in one message. Requests and notifications queue up; answers are
// taken at once, so that a connector that waits for one gets it.
func (n *hostConn) receive(line []byte) {
	m, ok := parse(line)
	e := Entry{
		Conn: n.number, Direction: In, Kind: m.kind(), Method: m.Method, ChannelID: m.about(),
		ID: m.ID, Params: m.Params, Result: m.Result, Error: m.Error,
	}
	c := n.c
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case n.idle:
		e.Note = "not served"
		c.journal.record(e)
	case n.gone:
		// Nothing more of a host that was replaced is served, nor recorded.
	case !ok:
		c.journal.record(Entry{Conn: n.number, Direction: In, Kind: Raw, Note: excerpt(line)})
		c.violate(n.number, NotJSON, excerpt(line))
	case e.Kind == Response:
		n.answered(e)
	default:
		c.journal.record(e)
		n.inspect(m, e)
		n.queue = append(n.queue, m)
		select {
		case n.wake <- struct{}{}:
		default:
		}
	}
}

// inspect looks for violations of a request or notification. c.mu is held.
func (n *hostConn) inspect(m message, e Entry) {
	if e.Kind != Request {
		return
	}
	id := string(m.ID)
	if n.ids[id] {
		n.c.violate(n.number, ReusedID, fmt.Sprintf("%s with id %s", m.Method, id))
	} else if len(n.ids) < rememberedIDs {
		n.ids[id] = true
	}
	if isLifecycle(m.Method) {
		if n.inHand[e.ChannelID] > 0 {
			n.c.violate(n.number, Overlap, fmt.Sprintf("%s %s with id %s", m.Method, e.ChannelID, id))
		}
		n.inHand[e.ChannelID]++
	}
}

func isLifecycle(method string) bool {
	return method == "channels/open" || method == "channels/close"
}

// work serves the queue.
func (n *hostConn) work() {
	for {
		n.c.mu.Lock()
		var m message
		waiting := len(n.queue)
		if waiting > 0 {
			m = n.queue[0]
			n.queue[0] = message{}
			n.queue = n.queue[1:]
		}
		n.c.mu.Unlock()
		if waiting > 0 && n.ctx.Err() == nil {
			n.handle(m)
			continue
		}
		select {
		case <-n.wake:
		case <-n.ctx.Done():
			return
		}
	}
}

// sleep lets time pass; it is false if the connection ended meanwhile.
func (n *hostConn) sleep(d Duration) bool {
	if d <= 0 {
		return n.ctx.Err() == nil
	}
	select {
	case <-n.c.o.After(time.Duration(d)):
		return true
	case <-n.ctx.Done():
		return false
	}
}

// detach ends the serving of a connection, once: what waits is given up, what was
// asked fails. c.mu is held.
func (n *hostConn) detach(note string) {
	if n.gone {
		return
	}
	n.gone = true
	n.cancel()
	c := n.c
	if c.current == n {
		c.current = nil
	}
	for _, call := range n.pending {
		call.settle(nil, ErrDisconnected)
	}
	clear(n.pending)
	c.journal.record(Entry{Conn: n.number, Direction: In, Kind: Disconnect, Note: note})
}

// leave detaches a connection and says goodbye to the host. c.mu is held. The
// goodbye waits for the host's in the background; Close cuts that short.
func (n *hostConn) leave(code websocket.StatusCode, reason string) {
	n.detach(fmt.Sprintf("closed with %d %q", code, reason))
	n.goodbye = &websocket.CloseError{Code: code, Reason: reason}
	if n.ws != nil {
		n.c.start(n.farewell)
	}
}

// drop detaches a connection and cuts it without a word. c.mu is held.
func (n *hostConn) drop(note string) {
	n.detach(note)
	n.c.start(n.abort)
}

// farewell ends a connection that was detached.
func (n *hostConn) farewell() {
	n.c.mu.Lock()
	ws, goodbye := n.ws, n.goodbye
	n.c.mu.Unlock()
	if goodbye != nil {
		_ = ws.Close(goodbye.Code, goodbye.Reason) // the host may be gone
	}
	n.abort()
}

// abort takes the connection away. The socket goes first: the library would wait
// for the peer.
func (n *hostConn) abort() {
	_ = n.socket.Close() // it may be closed already
	n.cut()
	n.c.mu.Lock()
	ws := n.ws
	n.c.mu.Unlock()
	if ws != nil {
		_ = ws.CloseNow() // to end what the library runs
	}
}

// excerpt is the beginning of a frame, for a note.
func excerpt(line []byte) string {
	const most = 80
	if len(line) > most {
		return fmt.Sprintf("%q… (%d bytes)", line[:most], len(line))
	}
	return fmt.Sprintf("%q", line)
}
