package connector

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/coder/websocket"
)

// protocolVersion is the MCP version every connector has been seen to answer.
const protocolVersion = "2024-11-05"

// handle works through one request or notification.
func (n *hostConn) handle(m message) {
	switch n.phaseNow() {
	case phaseNew:
		n.first(m)
	case phaseGap:
		n.second(m)
	case phaseReady:
		switch {
		case m.Method == "featureSets/update":
			n.policy(m)
		case m.kind() == Request:
			n.request(m)
		}
	}
}

func (n *hostConn) phaseNow() phase {
	n.c.mu.Lock()
	defer n.c.mu.Unlock()
	return n.phase
}

// first expects initialize; anything else closes the socket (fact 22).
func (n *hostConn) first(m message) {
	c := n.c
	c.mu.Lock()
	if m.Method != "initialize" || m.kind() != Request {
		c.violate(n.number, FirstMessage, fmt.Sprintf("%s %s", m.kind(), m.Method))
		n.leave(websocket.StatusPolicyViolation, "the first message was not initialize")
		c.mu.Unlock()
		return
	}
	n.phase = phaseGap
	answer := c.behavior.Initialize
	n.plain = answer.Kind == InitializePlain
	r := c.rules.take(m.Method, "", false)
	c.mu.Unlock()

	switch answer.Kind {
	case InitializeFail:
		r.Error = answer.Error
		if r.Error == nil {
			r.Error = &RPCError{Code: CodeInternal, Message: "not ready"}
		}
	case InitializeNever:
		r.Silent = true
	case InitializeMalformed:
		r.Result = json.RawMessage(`["initialized"]`)
	case InitializeDrop:
		r.Drop = true
	case InitializeGarbage:
		r.Silent = true
		frame := answer.Frame
		if frame == "" {
			frame = `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion`
		}
		defer func() { _ = n.writeRaw(n.ctx, frame) }() // the host may be gone
	}
	n.perform(m, r, 0, func(Rule) (any, *RPCError) { return n.initializeResult(), nil })
}

// initializeResult is the plain answer to initialize. c.mu is held.
func (n *hostConn) initializeResult() any {
	c := n.c
	capabilities := map[string]any{}
	if len(c.o.Tools) > 0 {
		tools := map[string]any{}
		if c.o.Dialect == Dialect05 {
			tools["listChanged"] = true
		}
		capabilities["tools"] = tools
	}
	if !n.plain {
		capabilities["experimental"] = map[string]any{"mcpl": c.manifest}
	}
	return map[string]any{
		"protocolVersion": protocolVersion,
		"capabilities":    capabilities,
		"serverInfo":      map[string]any{"name": c.o.ServerName + "-mcpl", "version": "0.1.0"},
	}
}

// second takes the one message between the answer to initialize and everything
// else, whatever it is, and drops it (fact 22).
func (n *hostConn) second(m message) {
	c := n.c
	c.mu.Lock()
	n.phase = phaseReady
	if m.Method != "notifications/initialized" {
		c.violate(n.number, Interjection, fmt.Sprintf("%s %s", m.kind(), m.Method))
		n.settled(m)
	}
	now := !n.plain && c.behavior.Register == RegisterAfterInitialized
	c.mu.Unlock()
	c.bell.ring()
	if now {
		n.register()
	}
}

// register sends channels/register, once a connection, and waits for its answer
// if it is to block. Errors are not for here: the journal has them.
func (n *hostConn) register() {
	c := n.c
	c.mu.Lock()
	first := !n.asked
	n.asked = true
	form, block := c.behavior.RegisterForm, c.behavior.BlockOnRegister
	c.mu.Unlock()
	if !first {
		return
	}
	if form == AsNotification {
		_ = n.registerAsNotification(n.ctx)
		return
	}
	p, err := n.registerAsRequest(n.ctx)
	if err == nil && block {
		_, _ = p.Wait(n.ctx)
	}
}

func (n *hostConn) registerAsRequest(ctx context.Context) (*PendingCall, error) {
	return n.call(ctx, "channels/register", n.c.registration(), func(e Entry) {
		n.registered = true
		n.c.judged(e)
	})
}

func (n *hostConn) registerAsNotification(ctx context.Context) error {
	err := n.notify(ctx, "channels/register", n.c.registration())
	n.c.mu.Lock()
	n.registered = err == nil
	n.c.mu.Unlock()
	n.c.bell.ring()
	return err
}
