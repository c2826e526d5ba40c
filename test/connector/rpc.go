package connector

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Error codes of the protocol (semantics §12.5).
const (
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
	CodeGeneric        = -32000
	CodeNotGranted     = -32002
)

// RPCError is an error as it stands in an answer. Call and the methods built on
// it return it as their error when the host answers with one.
type RPCError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// Error implements error.
func (e *RPCError) Error() string {
	return fmt.Sprintf("answered with error %d: %s", e.Code, e.Message)
}

// message is one JSON-RPC message.
type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *RPCError       `json:"error,omitempty"`
}

func (m message) kind() Kind {
	switch {
	case m.Method == "":
		return Response
	case len(m.ID) == 0:
		return Notification
	default:
		return Request
	}
}

// about is the channel a message's params are about: that of channels/*, the
// first one of channels/incoming, the origin's of push/event.
func (m message) about() string {
	var p struct {
		ChannelID string `json:"channelId"`
		Messages  []struct {
			ChannelID string `json:"channelId"`
		} `json:"messages"`
		Origin struct {
			ChannelID     string `json:"channelId"`
			MCPLChannelID string `json:"mcplChannelId"`
		} `json:"origin"`
	}
	switch m.Method {
	case "channels/register", "channels/changed", "channels/list", "initialize", "featureSets/update":
		return ""
	}
	// What does not fit these shapes is about no channel.
	_ = json.Unmarshal(m.Params, &p)
	switch {
	case p.ChannelID != "":
		return p.ChannelID
	case len(p.Messages) > 0:
		return p.Messages[0].ChannelID
	case p.Origin.MCPLChannelID != "":
		return p.Origin.MCPLChannelID
	default:
		return p.Origin.ChannelID
	}
}

// lines are the messages of a frame: normally one, but a peer may write several.
func lines(frame []byte) [][]byte {
	var out [][]byte
	for line := range bytes.SplitSeq(frame, []byte("\n")) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			out = append(out, line)
		}
	}
	return out
}

// parse reads one message; ok is false for what is not a JSON-RPC message.
func parse(line []byte) (m message, ok bool) {
	if line[0] != '{' || json.Unmarshal(line, &m) != nil {
		return message{}, false
	}
	if string(m.ID) == "null" {
		m.ID = nil
	}
	return m, m.Method != "" || len(m.ID) > 0
}

// raw is v as JSON; nil stays nil.
func raw(v any) (json.RawMessage, error) {
	if v == nil {
		return nil, nil
	}
	if r, ok := v.(json.RawMessage); ok {
		return r, nil
	}
	return json.Marshal(v)
}
