package connector

import "encoding/json"

// method is a request the connector serves.
type method struct {
	capability string // what a grant must hold for it; "" if nothing
	mcpl       bool   // not there for plain MCP
	// act carries the request out, unless r.Unapplied, and makes the plain
	// answer. Connector.mu is held.
	act func(c *Connector, params json.RawMessage, r Rule) (any, *RPCError)
}

var methods = map[string]method{
	"channels/open":        {capability: "channels.lifecycle", mcpl: true, act: (*Connector).actOpen},
	"channels/close":       {capability: "channels.lifecycle", mcpl: true, act: (*Connector).actClose},
	"channels/list":        {capability: "channels.register", mcpl: true, act: (*Connector).actList},
	"channels/publish":     {capability: "channels.publish", mcpl: true, act: (*Connector).actPublish},
	"channels/acknowledge": {capability: "channels.acknowledge", mcpl: true, act: (*Connector).actAcknowledge},
	"mcpl/manifest":        {mcpl: true, act: (*Connector).actManifest},
	"tools/list":           {capability: "tools", act: (*Connector).actTools},
}

// request serves a request of the host.
func (n *hostConn) request(m message) {
	c := n.c
	served, known := methods[m.Method]
	c.mu.Lock()
	if !known || served.mcpl && n.plain || m.Method == "mcpl/manifest" && !c.behavior.ServeManifest {
		served = method{act: (*Connector).actUnserved}
	}
	if m.Method == "initialize" {
		c.violate(n.number, InitializedTwice, "id "+string(m.ID))
	}
	if denied := n.denied(served.capability); denied != nil {
		c.mu.Unlock()
		n.reply(m, nil, denied)
		return
	}
	r := c.rules.take(m.Method, m.about(), wantsHistory(m))
	delay := c.behavior.Delay
	c.mu.Unlock()

	act := func(r Rule) (any, *RPCError) { return served.act(c, m.Params, r) }
	if !r.Aside {
		n.perform(m, r, delay, act)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.start(func() { n.perform(m, r, delay, act) })
}

// perform answers a request as a rule says, see Rule. It is false if there was no
// answer.
func (n *hostConn) perform(m message, r Rule, delay Duration, act func(Rule) (any, *RPCError)) bool {
	c := n.c
	if !n.sleep(delay) || !n.sleep(r.Delay) || r.Hold != "" && !c.pass(n.ctx, r.Hold) {
		return false
	}
	c.mu.Lock()
	if n.gone {
		c.mu.Unlock()
		return false // nothing more of a replaced host is carried out
	}
	result, failure := act(r)
	c.mu.Unlock()
	c.bell.ring()
	if r.HoldAnswer != "" && !c.pass(n.ctx, r.HoldAnswer) {
		return false
	}
	switch {
	case r.Drop:
		c.mu.Lock()
		defer c.mu.Unlock()
		n.drop("dropped by a rule for " + m.Method)
		return false
	case r.Silent:
		c.mu.Lock()
		defer c.mu.Unlock()
		n.settled(m)
		return false
	case r.Error != nil:
		n.reply(m, nil, r.Error)
	case r.Result != nil:
		n.reply(m, r.Result, nil)
	default:
		n.reply(m, result, failure)
	}
	return true
}

// reply answers a request. That the host may be gone meanwhile is in the journal.
func (n *hostConn) reply(m message, result any, failure *RPCError) {
	c := n.c
	c.mu.Lock()
	noise := c.behavior.Noise
	c.mu.Unlock()
	if noise {
		_ = n.writeRaw(n.ctx, "["+c.o.ServerName+"-mcpl] answering "+m.Method)
	}
	answer := message{ID: m.ID, Error: failure}
	_ = n.write(n.ctx, func() (Entry, message, error) {
		if failure == nil {
			body, err := json.Marshal(result)
			if err != nil {
				return Entry{}, message{}, err
			}
			answer.Result = body
		}
		// From here on the host may know.
		c.mu.Lock()
		n.settled(m)
		c.mu.Unlock()
		return Entry{
			Kind: Response, Method: m.Method, ChannelID: m.about(),
			ID: m.ID, Result: answer.Result, Error: failure,
		}, answer, nil
	})
}

// settled says that a request is not in hand any more. c.mu is held.
func (n *hostConn) settled(m message) {
	if isLifecycle(m.Method) && m.kind() == Request {
		id := m.about()
		if n.inHand[id]--; n.inHand[id] <= 0 {
			delete(n.inHand, id)
		}
	}
}

// actUnserved is the answer to every other method.
func (c *Connector) actUnserved(json.RawMessage, Rule) (any, *RPCError) {
	return nil, &RPCError{Code: CodeMethodNotFound, Message: "method not found"}
}

func (c *Connector) actTools(json.RawMessage, Rule) (any, *RPCError) {
	return map[string]any{"tools": c.o.Tools}, nil
}

func (c *Connector) actManifest(json.RawMessage, Rule) (any, *RPCError) {
	return c.manifest, nil
}
