package connector

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Incoming sends messages in channels/incoming, whatever is open, and returns the
// host's verdicts.
func (c *Connector) Incoming(ctx context.Context, messages ...Message) ([]Verdict, error) {
	result, err := c.Call(ctx, "channels/incoming", map[string]any{"messages": messages})
	return verdictsIn(result), err
}

// Push is the params of push/event.
type Push struct {
	FeatureSet string         `json:"featureSet"`
	EventID    string         `json:"eventId"`
	Timestamp  time.Time      `json:"timestamp"`
	Origin     map[string]any `json:"origin,omitempty"`
	Tags       []string       `json:"tags,omitempty"`
	Payload    Payload        `json:"payload"`
}

// Payload is what a push carries.
type Payload struct {
	Content []Content `json:"content"`
}

// PushEvent sends push/event and returns the host's verdict.
func (c *Connector) PushEvent(ctx context.Context, p Push) (Verdict, error) {
	var v Verdict
	result, err := c.Call(ctx, "push/event", p)
	if err == nil {
		err = json.Unmarshal(result, &v)
	}
	return v, err
}

// Spoken is a message on the platform.
type Spoken struct {
	ChannelID string `json:"channelId"`
	Text      string `json:"text"`
	// MessageID defaults to a new one.
	MessageID string `json:"messageId,omitempty"`
	// Author is a name. Default: alice.
	Author string `json:"author,omitempty"`
	// Mention, Reply and DM say how it is addressed; without them it is ambient.
	Mention bool `json:"mention,omitempty"`
	Reply   bool `json:"reply,omitempty"`
	DM      bool `json:"dm,omitempty"`
	// Bot says that the author is one.
	Bot bool `json:"bot,omitempty"`
	// Tags are added to those that follow from the rest.
	Tags []string `json:"tags,omitempty"`
}

func (s Spoken) addressed() bool { return s.Mention || s.Reply || s.DM }

func (s Spoken) tags() []string {
	var tags []string
	add := func(is bool, names ...string) {
		if is {
			tags = append(tags, names...)
		}
	}
	add(s.Mention, "chat:mention")
	add(s.Reply, "chat:reply")
	add(s.DM, "chat:dm", "chat:private")
	add(s.addressed(), "chat:addressed")
	add(!s.addressed(), "chat:ambient")
	add(s.Bot, "chat:from-bot")
	add(!s.Bot, "chat:from-human")
	return append(tags, s.Tags...)
}

// Delivery is what became of a message on the platform.
type Delivery struct {
	MessageID string `json:"messageId"`
	// Via is channels/incoming, push/event, or "" if the host heard nothing of it.
	Via string `json:"via,omitempty"`
	// Verdict is the host's.
	Verdict Verdict `json:"verdict"`
}

// Say is somebody saying something on the platform (fact 15). An open channel
// delivers it in channels/incoming; a closed one in push/event if it is addressed,
// else not at all; a muted one not at all. It is in the channel's history in any
// case. The channel need not be served.
func (c *Connector) Say(ctx context.Context, s Spoken) (Delivery, error) {
	c.mu.Lock()
	m := c.newMessage(s)
	open := c.open[s.ChannelID]
	origin := map[string]any{
		"source": c.o.ServerName, "messageId": m.MessageID,
		"channelId":     s.ChannelID[strings.LastIndex(s.ChannelID, ":")+1:],
		"mcplChannelId": s.ChannelID,
		"authorId":      m.Author.ID, "authorName": m.Author.Name,
		"isMention": s.Mention, "isReplyToBot": s.Reply, "isBot": s.Bot, "isDM": s.DM,
	}
	muted := false
	if ch := c.channel(s.ChannelID); ch != nil {
		ch.history = append(ch.history, m)
		muted = ch.muted
		if raw, ok := ch.Address["channelId"]; ok {
			origin["channelId"] = raw
		}
		if open && !muted {
			ch.lastSeen = m.MessageID
		}
	}
	c.mu.Unlock()

	d := Delivery{MessageID: m.MessageID}
	switch {
	case muted || !open && !s.addressed():
		return d, nil
	case open:
		d.Via = "channels/incoming"
		verdicts, err := c.Incoming(ctx, m)
		if err == nil && len(verdicts) > 0 {
			d.Verdict = verdicts[0]
		}
		return d, err
	default:
		var err error
		d.Via = "push/event"
		d.Verdict, err = c.PushEvent(ctx, Push{
			FeatureSet: c.o.ServerName + ".messaging",
			EventID:    c.o.ServerName + "_msg_" + m.MessageID,
			Timestamp:  m.Timestamp,
			Origin:     origin,
			Tags:       m.Tags,
			Payload:    Payload{Content: m.Content},
		})
		return d, err
	}
}

// newMessage is a message as the connector sends it. c.mu is held.
func (c *Connector) newMessage(s Spoken) Message {
	if s.MessageID == "" {
		s.MessageID = c.newID()
	}
	if s.Author == "" {
		s.Author = "alice"
	}
	return Message{
		ChannelID: s.ChannelID,
		MessageID: s.MessageID,
		Author:    Author{ID: "u-" + s.Author, Name: s.Author},
		Timestamp: c.o.Now().UTC(),
		Content:   Text(s.Text),
		Metadata:  map[string]any{"isMention": s.Mention, "isReplyToBot": s.Reply, "isBot": s.Bot, "isDM": s.DM},
		Tags:      s.tags(),
	}
}

// NewMessage is a message as Say would deliver it, for Incoming.
func (c *Connector) NewMessage(s Spoken) Message {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.newMessage(s)
}

// newID is a message id. c.mu is held.
func (c *Connector) newID() string {
	c.messages++
	return fmt.Sprintf("m%d", c.messages)
}

// SetHistory replaces the history of a served channel, oldest first.
func (c *Connector) SetHistory(channelID string, messages ...Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ch := c.channel(channelID); ch != nil {
		ch.history = slices.Clone(messages)
	}
}

// SetMuted makes a served channel deliver nothing until it is opened (fact 5).
func (c *Connector) SetMuted(channelID string, muted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ch := c.channel(channelID); ch != nil {
		ch.muted = muted
	}
}

// IsMuted tells whether a served channel is muted.
func (c *Connector) IsMuted(channelID string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	ch := c.channel(channelID)
	return ch != nil && ch.muted
}
