package connector

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/coder/websocket"
)

var (
	// ErrNotConnected is the error of saying something to nobody.
	ErrNotConnected = errors.New("no host is connected: wait with WaitRegistered, or WaitUntil and Status")
	// ErrDisconnected is the error of a request whose connection ended before the
	// host's answer.
	ErrDisconnected = errors.New("the connection ended before the host answered")
)

// PendingCall is a request to the host that is waiting for its answer.
type PendingCall struct {
	// ID is the request's, as in the journal. A connection's ids count from 1.
	ID int64

	method, channelID string
	onAnswer          func(e Entry) // with Connector.mu held; may be nil
	done              chan struct{}
	result            json.RawMessage
	err               error
}

// settle ends the call. Connector.mu is held, and it is no longer pending.
func (p *PendingCall) settle(result json.RawMessage, err error) {
	p.result, p.err = result, err
	close(p.done)
}

// Wait returns the host's result. An error the host answered is an *RPCError.
func (p *PendingCall) Wait(ctx context.Context) (json.RawMessage, error) {
	select {
	case <-p.done:
		return p.result, p.err
	case <-ctx.Done():
		return nil, fmt.Errorf("the host's answer to %s (id %d): %w", p.method, p.ID, ctx.Err())
	}
}

// Call sends a request to the host and waits for its result. An error the host
// answered is an *RPCError. params is written as JSON; nil sends none.
func (c *Connector) Call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	p, err := c.Begin(ctx, method, params)
	if err != nil {
		return nil, err
	}
	return p.Wait(ctx)
}

// Begin sends a request to the host without waiting.
func (c *Connector) Begin(ctx context.Context, method string, params any) (*PendingCall, error) {
	n, err := c.served()
	if err != nil {
		return nil, err
	}
	return n.call(ctx, method, params, nil)
}

// Notify sends a notification to the host.
func (c *Connector) Notify(ctx context.Context, method string, params any) error {
	n, err := c.served()
	if err != nil {
		return err
	}
	return n.notify(ctx, method, params)
}

// SendRaw sends a text frame as it is.
func (c *Connector) SendRaw(ctx context.Context, frame string) error {
	n, err := c.served()
	if err != nil {
		return err
	}
	return n.writeRaw(ctx, frame)
}

func (c *Connector) served() (*hostConn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current == nil {
		return nil, ErrNotConnected
	}
	return c.current, nil
}

// call sends a request. Its id is taken while nothing else is written, so that
// ids go up on the wire. onAnswer sees the answer before anybody else.
func (n *hostConn) call(ctx context.Context, method string, params any, onAnswer func(Entry)) (*PendingCall, error) {
	body, err := raw(params)
	if err != nil {
		return nil, fmt.Errorf("write the params of %s as JSON: %w", method, err)
	}
	m := message{Method: method, Params: body}
	p := &PendingCall{method: method, channelID: m.about(), onAnswer: onAnswer, done: make(chan struct{})}
	return p, n.write(ctx, func() (Entry, message, error) {
		n.c.mu.Lock()
		defer n.c.mu.Unlock()
		if n.gone {
			return Entry{}, message{}, ErrDisconnected
		}
		n.nextID++
		p.ID = n.nextID
		n.pending[p.ID] = p
		m.ID = json.RawMessage(strconv.FormatInt(p.ID, 10))
		return Entry{Kind: Request, Method: method, ChannelID: p.channelID, ID: m.ID, Params: body}, m, nil
	})
}

func (n *hostConn) notify(ctx context.Context, method string, params any) error {
	body, err := raw(params)
	if err != nil {
		return fmt.Errorf("write the params of %s as JSON: %w", method, err)
	}
	m := message{Method: method, Params: body}
	return n.write(ctx, func() (Entry, message, error) {
		return Entry{Kind: Notification, Method: method, ChannelID: m.about(), Params: body}, m, nil
	})
}

func (n *hostConn) writeRaw(ctx context.Context, frame string) error {
	if err := n.lockWriting(ctx); err != nil {
		return err
	}
	defer func() { <-n.writing }()
	n.c.journal.record(Entry{Conn: n.number, Direction: Out, Kind: Raw, Note: excerpt([]byte(frame))})
	return n.ws.Write(n.io, websocket.MessageText, []byte(frame))
}

// write records and writes a message. It is recorded first: the host's reaction
// must not come to stand before it. ctx ends the wait for one's turn and not the
// write, which would end the connection.
func (n *hostConn) write(ctx context.Context, compose func() (Entry, message, error)) error {
	if err := n.lockWriting(ctx); err != nil {
		return err
	}
	defer func() { <-n.writing }()
	e, m, err := compose()
	if err != nil {
		return err
	}
	m.JSONRPC = "2.0"
	frame, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("write %s as JSON: %w", m.Method, err)
	}
	e.Conn, e.Direction = n.number, Out
	n.c.journal.record(e)
	if err := n.ws.Write(n.io, websocket.MessageText, frame); err != nil {
		return fmt.Errorf("%w: %w", ErrDisconnected, err)
	}
	return nil
}

func (n *hostConn) lockWriting(ctx context.Context) error {
	select {
	case n.writing <- struct{}{}:
	case <-n.ctx.Done():
		return ErrDisconnected
	case <-ctx.Done():
		return ctx.Err()
	}
	if n.ctx.Err() != nil {
		<-n.writing
		return ErrDisconnected
	}
	return nil
}

// answered takes in the host's answer. c.mu is held.
func (n *hostConn) answered(e Entry) {
	id, err := strconv.ParseInt(string(e.ID), 10, 64)
	p := n.pending[id]
	if err != nil || p == nil {
		n.c.journal.record(e)
		n.c.violate(n.number, UnknownAnswer, "id "+string(e.ID))
		return
	}
	delete(n.pending, id)
	e.Method, e.ChannelID = p.method, p.channelID
	if p.onAnswer != nil {
		p.onAnswer(e)
	}
	n.c.journal.record(e)
	if e.Error != nil {
		p.settle(nil, e.Error)
		return
	}
	p.settle(e.Result, nil)
}
