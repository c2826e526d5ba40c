package mcpl

import "encoding/json"

// OpenParams are the params of channels/open. Id, type and address are sent
// together as far as they are known (fact 1).
type OpenParams struct {
	ChannelID string          `json:"channelId"`
	Type      string          `json:"type,omitempty"`
	Address   json.RawMessage `json:"address,omitempty"`
	History   *HistoryRequest `json:"history,omitempty"`
}

// HistoryRequest asks for messages along with an open.
type HistoryRequest struct {
	Limit           int    `json:"limit"`
	BeforeMessageID string `json:"beforeMessageId,omitempty"`
	SinceLastSeen   bool   `json:"sinceLastSeen,omitempty"`
}

// OpenResult is a connector's answer to channels/open. Every answer that is no
// error reads as one: {}, {opened:true}, even null (fact 3).
type OpenResult struct {
	// Channel is the channel it opened; nil if it does not say, or says it
	// malformed. ChannelID then still has the id, if there was one.
	Channel   *Descriptor
	ChannelID string
	// History is oldest to newest.
	History          []HistoryItem
	HistoryTruncated bool
}

// HistoryItem is a message of an open's history.
type HistoryItem struct {
	ChannelID string
	MessageID string
	// Raw is the whole message as sent.
	Raw json.RawMessage
}

// UnmarshalJSON implements json.Unmarshaler.
func (r *OpenResult) UnmarshalJSON(raw []byte) error {
	m := members(raw)
	*r = OpenResult{HistoryTruncated: isTrue(m["historyTruncated"])}
	if channel := m["channel"]; isObject(channel) {
		s := parseDescriptor(channel)
		r.ChannelID = s.ID
		if s.Reason == "" {
			r.Channel = &s.Descriptor
		}
	}
	for _, item := range items(m["history"]) {
		if isObject(item) {
			h := members(item)
			r.History = append(r.History, HistoryItem{ChannelID: text(h["channelId"]), MessageID: text(h["messageId"]), Raw: item})
		}
	}
	return nil
}

// Substituted reports whether the connector opened another channel than the
// requested one, and which: its answer names another, or else an item of the
// history does (semantics §8.6, fact 2). An answer that names none is accepted.
// The id is the connector's, unbounded and not sanitised.
func (r OpenResult) Substituted(requested string) (id string, ok bool) {
	if r.ChannelID != "" && r.ChannelID != requested {
		return r.ChannelID, true
	}
	for _, item := range r.History {
		if item.ChannelID != "" && item.ChannelID != requested {
			return item.ChannelID, true
		}
	}
	return "", false
}

// CloseParams are the params of channels/close.
type CloseParams struct {
	ChannelID string `json:"channelId"`
}

// CloseResult is a connector's answer to channels/close. Any answer that is no
// error confirms the close, whatever Closed says (fact 6).
type CloseResult struct {
	Closed bool
}

// UnmarshalJSON implements json.Unmarshaler.
func (r *CloseResult) UnmarshalJSON(raw []byte) error {
	*r = CloseResult{Closed: isTrue(members(raw)["closed"])}
	return nil
}
