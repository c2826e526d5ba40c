package connector

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Direction is who said something.
type Direction string

const (
	In  Direction = "in"  // the host
	Out Direction = "out" // the connector
)

// Kind is what was said.
type Kind string

const (
	Request      Kind = "request"
	Notification Kind = "notification"
	Response     Kind = "response"
	Raw          Kind = "raw" // a frame that is not a message
	Connect      Kind = "connect"
	Disconnect   Kind = "disconnect"
)

// Entry is one event in a connector's journal.
type Entry struct {
	// Seq counts entries from 1. It goes on over Reset.
	Seq  int64     `json:"seq"`
	Time time.Time `json:"time"`
	// Conn counts connections from 1.
	Conn      int       `json:"conn"`
	Direction Direction `json:"direction"`
	Kind      Kind      `json:"kind"`
	// Method and ChannelID are those of the request in a response, too.
	Method    string `json:"method,omitempty"`
	ChannelID string `json:"channelId,omitempty"`
	// ID is the message's: in an inbound request the host's, in an outbound one
	// the connector's.
	ID     json.RawMessage `json:"id,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  *RPCError       `json:"error,omitempty"`
	// Bytes is how long params or result are; Truncated says that they were too
	// long to be kept.
	Bytes     int  `json:"bytes,omitempty"`
	Truncated bool `json:"truncated,omitempty"`
	// Note says what the other fields cannot: the host of a connect, the cause of
	// a disconnect, the beginning of a raw frame.
	Note string `json:"note,omitempty"`
}

// String is the entry without its params and result.
func (e Entry) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d conn %d %s %s", e.Seq, e.Conn, e.Direction, e.Kind)
	for _, word := range []string{e.Method, e.ChannelID, string(e.ID), e.Note} {
		if word != "" {
			b.WriteString(" " + word)
		}
	}
	if e.Error != nil {
		fmt.Fprintf(&b, " (error %d)", e.Error.Code)
	}
	return b.String()
}

// Filter selects entries. A member that is zero selects all.
type Filter struct {
	Direction Direction `json:"direction,omitempty"`
	Kind      Kind      `json:"kind,omitempty"`
	Method    string    `json:"method,omitempty"`
	ChannelID string    `json:"channelId,omitempty"`
	Conn      int       `json:"conn,omitempty"`
	// After selects entries with a greater Seq.
	After int64 `json:"after,omitempty"`
}

// Asked selects the host's requests of a method, for a channel or ("") for any.
func Asked(method, channelID string) Filter {
	return Filter{Direction: In, Kind: Request, Method: method, ChannelID: channelID}
}

// Answered selects the connector's answers to the host's requests of a method.
func Answered(method, channelID string) Filter {
	return Filter{Direction: Out, Kind: Response, Method: method, ChannelID: channelID}
}

// Since returns the filter for what came after an entry.
func (f Filter) Since(e Entry) Filter {
	f.After = e.Seq
	return f
}

// String names what is selected.
func (f Filter) String() string {
	var words []string
	for _, word := range []string{string(f.Direction), string(f.Kind), f.Method, f.ChannelID} {
		if word != "" {
			words = append(words, word)
		}
	}
	if f.Conn != 0 {
		words = append(words, fmt.Sprintf("of connection %d", f.Conn))
	}
	if f.After != 0 {
		words = append(words, fmt.Sprintf("after entry %d", f.After))
	}
	if words == nil {
		return "any entry"
	}
	return strings.Join(words, " ")
}

func (f Filter) matches(e Entry) bool {
	return (f.Direction == "" || f.Direction == e.Direction) &&
		(f.Kind == "" || f.Kind == e.Kind) &&
		(f.Method == "" || f.Method == e.Method) &&
		(f.ChannelID == "" || f.ChannelID == e.ChannelID) &&
		(f.Conn == 0 || f.Conn == e.Conn) &&
		e.Seq > f.After
}
