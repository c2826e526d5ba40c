package connector

import (
	"encoding/json"
	"slices"
	"strings"
)

// channel is one that is served. Connector.mu guards it.
type channel struct {
	Descriptor
	listOnly bool // missing from channels/register (fact 25)
	muted    bool // delivers nothing until it is opened (facts 5 and 15)
	history  []Message
	lastSeen string // the last message delivered to the host
}

// openParams are those of channels/open.
type openParams struct {
	ChannelID string         `json:"channelId"`
	Type      string         `json:"type"`
	Address   map[string]any `json:"address"`
	History   *historyParams `json:"history"`
}

type historyParams struct {
	Limit           int    `json:"limit"`
	BeforeMessageID string `json:"beforeMessageId"`
	SinceLastSeen   bool   `json:"sinceLastSeen"`
}

func wantsHistory(m message) bool {
	var p openParams
	return m.Method == "channels/open" && json.Unmarshal(m.Params, &p) == nil && p.History != nil
}

// actOpen serves channels/open. c.mu is held.
func (c *Connector) actOpen(params json.RawMessage, r Rule) (any, *RPCError) {
	var p openParams
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, &RPCError{Code: CodeInvalidParams, Message: err.Error()}
	}
	ch := c.resolve(p)
	if r.Instead != "" {
		if ch = c.channel(r.Instead); ch == nil {
			ch = &channel{Descriptor: NewDescriptor(r.Instead)}
		}
	}
	if ch == nil {
		return nil, c.unknownChannel()
	}
	result := map[string]any{"channel": ch.Descriptor}
	if p.History != nil || r.OnlyHistory {
		items, truncated := ch.backscroll(p.History)
		result["history"], result["historyTruncated"] = items, truncated
		if r.OnlyHistory {
			delete(result, "channel")
			if len(items) == 0 {
				result["history"] = []Message{c.newMessage(Spoken{ChannelID: ch.ID, Text: "an older message"})}
			}
		}
	}
	if !r.Unapplied {
		c.open[ch.ID] = true
		ch.muted = false
	}
	return result, nil
}

// resolve finds the channel an open is for. c.mu is held.
func (c *Connector) resolve(p openParams) *channel {
	if ch := c.channel(p.ChannelID); ch != nil {
		return ch
	}
	if p.ChannelID != "" && c.o.Dialect != Dialect04 {
		return nil
	}
	for _, ch := range c.channels {
		if ch.isAt(p.Type, p.Address) {
			return ch
		}
	}
	if c.o.Dialect != Dialect04 {
		return nil
	}
	for _, ch := range c.channels { // facts 1 and 2
		if p.Type != "" && ch.Type == p.Type {
			return ch
		}
	}
	return nil
}

func (c *Connector) unknownChannel() *RPCError {
	if c.o.Dialect == Dialect04 {
		return &RPCError{Code: CodeInternal, Message: "no channel matches"}
	}
	return &RPCError{Code: CodeGeneric, Message: "unknown channel"}
}

// channel is the first one served under an id, nil if there is none. c.mu is held.
func (c *Connector) channel(id string) *channel {
	i := slices.IndexFunc(c.channels, func(ch *channel) bool { return ch.ID == id })
	if id == "" || i < 0 {
		return nil
	}
	return c.channels[i]
}

// backscroll is what an open's history asks for, oldest first, and whether there
// is more.
func (ch *channel) backscroll(p *historyParams) (items []Message, truncated bool) {
	if p == nil {
		p = &historyParams{Limit: 1}
	}
	items = ch.history
	position := func(id string) int {
		return slices.IndexFunc(items, func(m Message) bool { return m.MessageID == id })
	}
	if i := position(p.BeforeMessageID); i >= 0 {
		items = items[:i]
	}
	if i := position(ch.lastSeen); p.SinceLastSeen && i >= 0 {
		items = items[i+1:]
	}
	over := max(0, len(items)-max(0, p.Limit))
	return append([]Message{}, items[over:]...), over > 0
}

// actClose serves channels/close (fact 6). c.mu is held.
func (c *Connector) actClose(params json.RawMessage, r Rule) (any, *RPCError) {
	var p openParams
	if err := json.Unmarshal(params, &p); err != nil || p.ChannelID == "" {
		return nil, &RPCError{Code: CodeInvalidParams, Message: "channels/close needs a channelId"}
	}
	known := c.open[p.ChannelID] || c.channel(p.ChannelID) != nil
	if !r.Unapplied {
		delete(c.open, p.ChannelID)
	}
	return map[string]any{"closed": known}, nil
}

// actList serves channels/list: all channels, and nothing about what is open
// (fact 25). c.mu is held.
func (c *Connector) actList(json.RawMessage, Rule) (any, *RPCError) {
	return map[string]any{"channels": c.descriptors(true)}, nil
}

// actPublish serves channels/publish, for closed channels and such that are not
// served, too (fact 16). c.mu is held.
func (c *Connector) actPublish(params json.RawMessage, _ Rule) (any, *RPCError) {
	var p struct {
		ChannelID string    `json:"channelId"`
		Content   []Content `json:"content"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, &RPCError{Code: CodeInvalidParams, Message: err.Error()}
	}
	if p.ChannelID == "" || strings.ContainsFunc(p.ChannelID, isSpaceOrControl) {
		return nil, &RPCError{Code: CodeInternal, Message: "invalid channel id"}
	}
	if !slices.ContainsFunc(p.Content, func(b Content) bool { return b.Text != "" || b.Type != "text" }) {
		return map[string]any{"delivered": false}, nil
	}
	return map[string]any{"delivered": true, "messageId": c.newID()}, nil
}

func isSpaceOrControl(r rune) bool {
	return r <= ' ' || r == 0x7f
}

// actAcknowledge serves channels/acknowledge: the representation is the value, or
// a pair of eyes. c.mu is held.
func (c *Connector) actAcknowledge(params json.RawMessage, _ Rule) (any, *RPCError) {
	var p struct {
		MessageID string `json:"messageId"`
		Value     string `json:"value"`
	}
	if err := json.Unmarshal(params, &p); err != nil || p.MessageID == "" {
		return nil, &RPCError{Code: CodeInvalidParams, Message: "channels/acknowledge needs a messageId"}
	}
	if p.Value == "" {
		p.Value = "👀"
	}
	return map[string]any{"acknowledged": true, "representation": p.Value}, nil
}

// IsOpen tells whether a channel is really open.
func (c *Connector) IsOpen(channelID string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open[channelID]
}

// OpenChannels returns the ids of what is really open, sorted.
func (c *Connector) OpenChannels() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	ids := make([]string, 0, len(c.open))
	for id := range c.open {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}
