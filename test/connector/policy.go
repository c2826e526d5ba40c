package connector

import (
	"encoding/json"
	"fmt"
)

// grant is what the host's last policy lets the connector do.
type grant struct {
	known   bool // there was a policy that could be read
	refused bool // and it was refused, so that only plain MCP is left
	paths   map[string]bool
}

// allows tells whether a host may ask for what needs a capability.
func (g grant) allows(path string) bool {
	return path == "" || g.refused && path == "tools" || !g.refused && g.paths[path]
}

// readPolicy reads a policy's params. `enabled` and `disabled` are about feature
// sets, of which this connector has none that can be switched.
func readPolicy(params json.RawMessage) (grant, *RPCError) {
	var p struct {
		Effective []string `json:"effectiveCapabilities"`
		Denied    []string `json:"deniedCapabilities"`
	}
	malformed := func(why string) (grant, *RPCError) {
		return grant{}, &RPCError{Code: CodeInvalidParams, Message: "malformed featureSets/update: " + why}
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return malformed(err.Error())
	}
	g := grant{known: true, paths: make(map[string]bool, len(p.Effective))}
	for _, path := range p.Effective {
		g.paths[path] = true
	}
	for _, path := range p.Denied {
		if g.paths[path] {
			return malformed("a path is both effective and denied: " + path)
		}
	}
	return g, nil
}

// policy answers featureSets/update. In a notification a policy counts for the
// dialect 0.5 and is ignored by 0.4 (fact 11).
func (n *hostConn) policy(m message) {
	c := n.c
	c.mu.Lock()
	if n.plain {
		c.mu.Unlock()
		n.request(m)
		return
	}
	answer, when := c.behavior.Policy, c.behavior.Register
	c.mu.Unlock()
	if m.kind() == Notification {
		if c.o.Dialect == Dialect05 {
			c.mu.Lock()
			n.grant, _ = readPolicy(m.Params) // there is nobody to tell an error
			c.mu.Unlock()
			c.bell.ring()
		}
		return
	}
	if when == RegisterBeforePolicy {
		n.register()
	}
	c.mu.Lock()
	r := c.rules.take(m.Method, "", false)
	c.mu.Unlock()
	switch answer.Kind {
	case PolicyNever:
		r.Silent = true
	case PolicyResult:
		r.Result = answer.Result
	}
	accepted, hadTools := false, n.hasTools()
	answered := n.perform(m, r, 0, func(r Rule) (any, *RPCError) {
		if r.Unapplied {
			return map[string]any{"accepted": true}, nil
		}
		result, failure := n.takePolicy(m, answer)
		accepted = failure == nil && !n.grant.refused
		return result, failure
	})
	if answered && c.o.Dialect == Dialect05 && hadTools != n.hasTools() {
		_ = n.notify(n.ctx, "notifications/tools/list_changed", map[string]any{}) // the host may be gone
	}
	if answered && accepted && when == RegisterAfterPolicy {
		n.register()
	}
}

func (n *hostConn) hasTools() bool {
	n.c.mu.Lock()
	defer n.c.mu.Unlock()
	return n.grant.allows("tools")
}

// takePolicy makes a policy the one in force. c.mu is held.
func (n *hostConn) takePolicy(m message, answer PolicyAnswer) (any, *RPCError) {
	var failure *RPCError
	if n.grant, failure = readPolicy(m.Params); failure != nil {
		return nil, failure
	}
	if answer.Kind == PolicyMCPOnly || answer.Kind == PolicyClose {
		n.grant = grant{known: true, refused: true}
		return map[string]any{"accepted": false, "fallback": string(answer.Kind)}, nil
	}
	if n.c.o.Dialect == Dialect04 && answer.Kind == PolicyAccept {
		return map[string]any{"accepted": true}, nil
	}
	unavailable := answer.Unavailable
	if unavailable == nil {
		unavailable = n.c.manifest.unavailable(n.grant.paths)
	}
	mode := "full"
	if len(unavailable) > 0 || answer.Kind == PolicyDegraded {
		mode = "degraded"
	}
	return map[string]any{
		"accepted":            true,
		"mode":                mode,
		"unavailableFeatures": unavailable,
		"notes":               append([]string{}, answer.Notes...),
	}, nil
}

// denied is the error of a request that the grant does not cover, nil if it does.
// c.mu is held. The dialect 0.4 enforces nothing (fact 12).
func (n *hostConn) denied(capability string) *RPCError {
	if n.plain || n.c.o.Dialect == Dialect04 || n.grant.allows(capability) {
		return nil
	}
	text := "capability denied: " + capability
	if !n.grant.known {
		text += " (no policy received yet)"
	}
	data, err := json.Marshal(map[string]string{"capability": capability})
	if err != nil {
		panic(fmt.Sprintf("write a capability as JSON: %v", err)) // it is a constant
	}
	return &RPCError{Code: CodeNotGranted, Message: text, Data: data}
}
