package session

import (
	"encoding/json"
	"errors"
	"strings"

	"mcpl.dev/operator/internal/mcpl"
)

// Acknowledgement is a message's acknowledgement on its way. It is posted once at the most.
type Acknowledgement struct {
	settled        bool
	acknowledged   bool
	representation string
	failure        string
}

// maxRepresentation bounds, in bytes, what a connector says of how it shows an acknowledgement.
const maxRepresentation = 64

// Acknowledge has a connector show value, with an intent of mcpl, at a message.
func (s *Session) Acknowledge(channelID, messageID, intent, value string) *Acknowledgement {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := &Acknowledgement{}
	s.window.add(people, func() bool {
		switch {
		case s.conn == nil:
			a.settle(false, "", "the connector is not connected")
		case !s.grant.Allows(mcpl.CapChannelsAcknowledge):
			a.settle(false, "", "channels.acknowledge is not granted on the connector")
		default:
			s.sendAcknowledgement(a, channelID, mcpl.AcknowledgeParams{ChannelID: channelID, MessageID: messageID, Intent: intent, Value: value})
			return true
		}
		s.wakeChannel(channelID)
		return false
	})
	s.window.pump()
	return a
}

func (s *Session) sendAcknowledgement(a *Acknowledgement, channelID string, params mcpl.AcknowledgeParams) {
	connection := s.connection
	call := s.conn.Start(mcpl.MethodChannelsAcknowledge, params, s.timeout())
	s.calls.Go(func() {
		<-call.Done()
		result, err := call.Result()
		s.mu.Lock()
		defer s.mu.Unlock()
		if connection == s.connection && s.conn != nil {
			s.window.inFlight--
		}
		a.answered(result, err)
		s.wakeChannel(channelID)
		s.window.pump()
	})
}

// answered takes the connector's answer.
func (a *Acknowledgement) answered(result json.RawMessage, err error) {
	var failed *mcpl.CallError
	switch {
	case errors.As(err, &failed) && failed.Outcome == mcpl.ErrorResponse:
		a.settle(false, "", "the connector answered with an error: "+failed.Message)
		return
	case errors.As(err, &failed) && failed.Outcome == mcpl.NotSent:
		a.settle(false, "", "the connector is not connected")
		return
	case err != nil:
		a.settle(false, "", "the connector did not answer: it may or may not have been posted")
		return
	}
	var answer mcpl.AcknowledgeResult
	if err := json.Unmarshal(result, &answer); err != nil || !answer.Acknowledged {
		a.settle(false, "", strings.TrimSuffix("the connector did not acknowledge it: "+answer.Reason, ": "))
		return
	}
	a.settle(true, mcpl.Sanitize(answer.Representation, maxRepresentation), "")
}

func (a *Acknowledgement) settle(acknowledged bool, representation, failure string) {
	a.settled, a.acknowledged, a.representation, a.failure = true, acknowledged, representation, failure
}

// Acknowledged tells what became of an acknowledgement, and whether that is known.
func (s *Session) Acknowledged(a *Acknowledgement) (acknowledged bool, representation, failure string, settled bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return a.acknowledged, a.representation, a.failure, a.settled
}
