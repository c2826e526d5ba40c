package connector

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
	"time"
)

// Descriptor is what a connector says about a channel.
type Descriptor struct {
	ID            string         `json:"id,omitempty"`
	Type          string         `json:"type,omitempty"`
	Label         string         `json:"label,omitempty"`
	Direction     string         `json:"direction,omitempty"`
	Address       map[string]any `json:"address,omitempty"`
	Metadata      map[string]any `json:"metadata,omitempty"`
	InitiallyOpen bool           `json:"initiallyOpen"`
	Capabilities  map[string]any `json:"capabilities,omitempty"`
}

// NewDescriptor describes a bidirectional text channel. The type is what stands
// before the id's first colon (default: demo), the address is {channelId: what
// stands behind its last}, the label # and the same.
func NewDescriptor(id string) Descriptor {
	kind, _, found := strings.Cut(id, ":")
	if !found {
		kind = "demo"
	}
	name := id[strings.LastIndex(id, ":")+1:]
	return Descriptor{
		ID:        id,
		Type:      kind,
		Label:     "#" + name,
		Direction: "bidirectional",
		Address:   map[string]any{"channelId": name},
		Metadata:  map[string]any{"channelType": "text"},
		Capabilities: map[string]any{
			"history":        map[string]any{"maxMessages": 80, "supportsBeforeMessage": true},
			"acknowledgment": map[string]any{"kind": "reaction", "supportsValue": true},
		},
	}
}

// Generate describes n channels: prefix:c1, prefix:c2 …
func Generate(prefix string, n int) []Descriptor {
	ds := make([]Descriptor, n)
	for i := range ds {
		ds[i] = NewDescriptor(fmt.Sprintf("%s:c%d", prefix, i+1))
	}
	return ds
}

// At returns the descriptor with another target.
func (d Descriptor) At(kind string, address map[string]any) Descriptor {
	d.Type, d.Address = kind, address
	return d
}

// Labelled returns the descriptor with another label.
func (d Descriptor) Labelled(label string) Descriptor {
	d.Label = label
	return d
}

// Initially returns the descriptor with another preference for its start.
func (d Descriptor) Initially(open bool) Descriptor {
	d.InitiallyOpen = open
	return d
}

func (d Descriptor) sameTarget(o Descriptor) bool {
	return d.Type == o.Type && (len(d.Address) == 0 && len(o.Address) == 0 || reflect.DeepEqual(d.Address, o.Address))
}

// isAt tells whether the channel is what type and address name: every member
// that is named is the channel's, and one is named at least.
func (d Descriptor) isAt(kind string, address map[string]any) bool {
	if d.Type != kind || len(address) == 0 {
		return false
	}
	merged := maps.Clone(d.Address)
	if merged == nil {
		return false
	}
	maps.Copy(merged, address)
	return reflect.DeepEqual(merged, d.Address)
}

// Message is a message on a channel, in channels/incoming and in histories.
type Message struct {
	ChannelID string         `json:"channelId"`
	MessageID string         `json:"messageId"`
	ThreadID  string         `json:"threadId,omitempty"`
	Author    Author         `json:"author"`
	Timestamp time.Time      `json:"timestamp"`
	Content   []Content      `json:"content"`
	Metadata  map[string]any `json:"metadata,omitempty"`
	Tags      []string       `json:"tags,omitempty"`
}

// Author is who wrote a message.
type Author struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Content is a block of a message.
type Content struct {
	Type string `json:"type"`
	Text string `json:"text,omitempty"`
}

// Text is a message's content of one text.
func Text(text string) []Content {
	return []Content{{Type: "text", Text: text}}
}

// Tool is an entry of tools/list.
type Tool struct {
	Name        string         `json:"name"`
	Description string         `json:"description,omitempty"`
	InputSchema map[string]any `json:"inputSchema"`
}

func defaultTools() []Tool {
	text := map[string]any{"type": "string"}
	return []Tool{
		{
			Name:        "send_message",
			Description: "Sends a message to a channel.",
			InputSchema: map[string]any{
				"type":       "object",
				"properties": map[string]any{"channelId": text, "text": text},
				"required":   []string{"channelId", "text"},
			},
		},
		{
			Name:        "read_history",
			Description: "Reads a channel's last messages.",
			InputSchema: map[string]any{
				"type":       "object",
				"properties": map[string]any{"channelId": text},
				"required":   []string{"channelId"},
			},
		},
	}
}
