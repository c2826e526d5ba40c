package connector

import (
	"encoding/json"
	"fmt"
	"time"
)

// Rule says how requests are answered instead of plainly. Rules are made with On
// and the methods of Rule, and given with Once and Always. A request takes the
// first of the rules given with Once that matches, else the closest one given
// with Always: that for its method and channel before that for its method before
// that for its channel before that for all.
//
// What happens, in this order: Delay passes; the gate Hold is passed; the request
// is carried out unless Unapplied; the gate HoldAnswer is passed; it is answered
// with Error or Result if there is one, else plainly, unless Silent or Drop.
type Rule struct {
	// Method is the request's, with "" for all but those of the handshake. Methods
	// that are not served can be answered, too.
	Method string `json:"method,omitempty"`
	// ChannelID is the request's channel, "" for all.
	ChannelID string `json:"channelId,omitempty"`
	// WithHistory restricts the rule to opens that ask for a history.
	WithHistory bool `json:"withHistory,omitempty"`

	Delay Duration `json:"delay,omitempty"`
	// Hold and HoldAnswer name gates, which Release opens.
	Hold       string `json:"hold,omitempty"`
	HoldAnswer string `json:"holdAnswer,omitempty"`
	// Aside lets the connector go on with the next requests meanwhile.
	Aside bool `json:"aside,omitempty"`
	// Unapplied leaves the connector's state as it is.
	Unapplied bool `json:"unapplied,omitempty"`
	// Instead is the channel an open opens, and answers for. It need not be served.
	Instead string `json:"instead,omitempty"`
	// OnlyHistory makes an answer that names its channel only in its history.
	OnlyHistory bool            `json:"onlyHistory,omitempty"`
	Error       *RPCError       `json:"error,omitempty"`
	Result      json.RawMessage `json:"result,omitempty"`
	// Silent answers nothing; Drop cuts the connection instead.
	Silent bool `json:"silent,omitempty"`
	Drop   bool `json:"drop,omitempty"`
}

// On begins a rule for the requests of a method (all if "") for a channel (all if
// ""). By itself it answers plainly.
func On(method, channelID string) Rule {
	return Rule{Method: method, ChannelID: channelID}
}

// WantingHistory restricts the rule to opens that ask for a history (fact 4).
func (r Rule) WantingHistory() Rule {
	r.WithHistory = true
	return r
}

// Delayed lets time pass first.
func (r Rule) Delayed(d time.Duration) Rule {
	r.Delay = Duration(d)
	return r
}

// HeldAt waits first until Release(gate).
func (r Rule) HeldAt(gate string) Rule {
	r.Hold = gate
	return r
}

// AnswerHeldAt carries the request out and waits with the answer until
// Release(gate).
func (r Rule) AnswerHeldAt(gate string) Rule {
	r.HoldAnswer = gate
	return r
}

// Beside lets the connector serve other requests while this one waits. Without
// it they queue up behind, as with real connectors (fact 24).
func (r Rule) Beside() Rule {
	r.Aside = true
	return r
}

// NotApplied leaves the connector's state as it is.
func (r Rule) NotApplied() Rule {
	r.Unapplied = true
	return r
}

// Failing answers an error and does nothing.
func (r Rule) Failing(code int, text string) Rule {
	r.Error = &RPCError{Code: code, Message: text}
	r.Unapplied = true
	return r
}

// FailingAfterwards does what was asked and answers an error nevertheless.
func (r Rule) FailingAfterwards(code int, text string) Rule {
	r.Error = &RPCError{Code: code, Message: text}
	return r
}

// Answering does what was asked and answers this result: a value to be written
// as JSON, or JSON as a json.RawMessage. It panics on what is no JSON.
func (r Rule) Answering(result any) Rule {
	b, err := json.Marshal(result)
	if err != nil {
		panic(fmt.Sprintf("connector.Rule.Answering takes what encoding/json can write: %v", err))
	}
	r.Result = b
	return r
}

// Substituting opens another channel instead and answers for that one (fact 2).
func (r Rule) Substituting(channelID string) Rule {
	r.Instead = channelID
	return r
}

// SubstitutingSilently opens another channel instead and names it only in the
// items of the history.
func (r Rule) SubstitutingSilently(channelID string) Rule {
	r.Instead = channelID
	r.OnlyHistory = true
	return r
}

// NeverAnswered does what was asked and does not answer.
func (r Rule) NeverAnswered() Rule {
	r.Silent = true
	return r
}

// Dropping does what was asked (unless NotApplied) and drops the connection
// instead of answering.
func (r Rule) Dropping() Rule {
	r.Drop = true
	return r
}
