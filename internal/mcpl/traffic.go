package mcpl

import "encoding/json"

// Content is one block of a message. Blocks that are not text have their type
// only.
type Content struct {
	Type string `json:"type"`
	Text string `json:"text,omitempty"`
}

func parseContent(raw json.RawMessage) []Content {
	var out []Content
	for _, item := range items(raw) {
		if isObject(item) {
			m := members(item)
			out = append(out, Content{Type: text(m["type"]), Text: text(m["text"])})
		}
	}
	return out
}

// IncomingParams are the params of channels/incoming.
type IncomingParams struct {
	Messages []IncomingMessage `json:"messages"`
}

// IncomingMessage is one message of an open channel. Everything in it is the
// connector's, unsanitised. A malformed one has no ChannelID.
type IncomingMessage struct {
	ChannelID  string
	MessageID  string
	ThreadID   string
	AuthorID   string
	AuthorName string
	Timestamp  string
	Content    []Content
	Tags       []string
	// Raw is the whole message as sent.
	Raw json.RawMessage
}

// UnmarshalJSON implements json.Unmarshaler. It takes anything, so that a
// malformed message does not spoil the others.
func (i *IncomingMessage) UnmarshalJSON(raw []byte) error {
	m := members(raw)
	author := members(m["author"])
	*i = IncomingMessage{
		ChannelID:  text(m["channelId"]),
		MessageID:  text(m["messageId"]),
		ThreadID:   text(m["threadId"]),
		AuthorID:   text(author["id"]),
		AuthorName: text(author["name"]),
		Timestamp:  text(m["timestamp"]),
		Content:    parseContent(m["content"]),
		Tags:       texts(m["tags"]),
		Raw:        append(json.RawMessage(nil), raw...),
	}
	return nil
}

// IncomingResult is the answer to channels/incoming: one verdict per message, in
// order.
type IncomingResult struct {
	Results List[MessageVerdict] `json:"results"`
}

// MessageVerdict is the host's word on one message.
type MessageVerdict struct {
	MessageID string `json:"messageId"` // as submitted
	Accepted  bool   `json:"accepted"`
	Reason    string `json:"reason,omitempty"`
}

// PushParams are the params of push/event: addressed traffic of closed channels.
// Everything in them is the connector's, unsanitised.
type PushParams struct {
	FeatureSet string
	EventID    string
	Timestamp  string
	Origin     PushOrigin
	Content    []Content
	Tags       []string
	// Raw is the whole event as sent.
	Raw json.RawMessage
}

// PushOrigin says where a push comes from.
type PushOrigin struct {
	Source     string
	MessageID  string
	AuthorID   string
	AuthorName string
	// PlatformChannelID is origin.channelId, mostly the raw id of the platform;
	// MCPLChannelID is origin.mcplChannelId (fact 15).
	PlatformChannelID string
	MCPLChannelID     string
}

// ChannelID returns the id of the channel a push belongs to: the MCPL one, or
// else the platform's; "" if it names none (fact 15).
func (o PushOrigin) ChannelID() string {
	if o.MCPLChannelID != "" {
		return o.MCPLChannelID
	}
	return o.PlatformChannelID
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *PushParams) UnmarshalJSON(raw []byte) error {
	m := members(raw)
	origin := members(m["origin"])
	*p = PushParams{
		FeatureSet: text(m["featureSet"]),
		EventID:    text(m["eventId"]),
		Timestamp:  text(m["timestamp"]),
		Origin: PushOrigin{
			Source:            text(origin["source"]),
			MessageID:         text(origin["messageId"]),
			AuthorID:          text(origin["authorId"]),
			AuthorName:        text(origin["authorName"]),
			PlatformChannelID: text(origin["channelId"]),
			MCPLChannelID:     text(origin["mcplChannelId"]),
		},
		Content: parseContent(members(m["payload"])["content"]),
		Tags:    texts(m["tags"]),
		Raw:     append(json.RawMessage(nil), raw...),
	}
	return nil
}

// PushResult is the answer to push/event.
type PushResult struct {
	Accepted    bool   `json:"accepted"`
	InferenceID string `json:"inferenceId,omitempty"`
	Reason      string `json:"reason,omitempty"`
}

// PublishParams are the params of channels/publish.
type PublishParams struct {
	ConversationID string        `json:"conversationId"`
	ChannelID      string        `json:"channelId"`
	Content        List[Content] `json:"content"`
}

// PublishResult is a connector's answer to channels/publish.
type PublishResult struct {
	// Delivered is true unless the connector denies it (semantics §12.4).
	Delivered bool
	MessageID string
}

// UnmarshalJSON implements json.Unmarshaler.
func (r *PublishResult) UnmarshalJSON(raw []byte) error {
	m := members(raw)
	*r = PublishResult{Delivered: !isFalse(m["delivered"]), MessageID: text(m["messageId"])}
	return nil
}

// Intents of an acknowledgment (semantics §12.4).
const (
	IntentSeenNotOpening     = "seen-not-opening"
	IntentSuppressedTunedOut = "suppressed-tuned-out"
)

// AcknowledgeParams are the params of channels/acknowledge.
type AcknowledgeParams struct {
	ChannelID string `json:"channelId"`
	MessageID string `json:"messageId"`
	Intent    string `json:"intent"`
	Value     string `json:"value,omitempty"`
}

// AcknowledgeResult is a connector's answer to channels/acknowledge.
type AcknowledgeResult struct {
	Acknowledged bool
	// Representation is display text, no id (fact 16), Reason says why not:
	// both sanitised, at most 256 bytes.
	Representation string
	Reason         string
}

// UnmarshalJSON implements json.Unmarshaler.
func (r *AcknowledgeResult) UnmarshalJSON(raw []byte) error {
	m := members(raw)
	*r = AcknowledgeResult{
		Acknowledged:   isTrue(m["acknowledged"]),
		Representation: Sanitize(text(m["representation"]), maxErrorMessage),
		Reason:         Sanitize(text(m["reason"]), maxErrorMessage),
	}
	return nil
}

// Operations of channels/typing.
const (
	TypingStart = "start"
	TypingStop  = "stop"
)

// TypingParams are the params of channels/typing, a notification.
type TypingParams struct {
	ChannelID string `json:"channelId"`
	Op        string `json:"op"`
}
