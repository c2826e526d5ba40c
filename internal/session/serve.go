package session

import (
	"context"
	"encoding/json"
	"fmt"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/internal/mcpl"
)

// noResident is the verdict on messages while nobody can hear them. They count as evidence all the same.
const noResident = "no resident"

// ServeRequest answers one request of the connector. Requests are served one at a time, in the
// order of their arrival, and judged by the grant as it is now.
func (s *Session) ServeRequest(_ context.Context, method string, params json.RawMessage) mcpl.Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	capability, served := mcpl.InboundCapability(method)
	switch {
	case !served:
		return mcpl.Answer{Err: mcpl.MethodNotFound()}
	case capability != "" && !s.grant.Allows(capability):
		return mcpl.Answer{Err: mcpl.NotPermitted(capability)}
	}
	switch method {
	case mcpl.MethodChannelsRegister:
		return s.serveRegister(params)
	case mcpl.MethodChannelsChanged:
		return s.serveChanged(params)
	case mcpl.MethodChannelsList:
		return mcpl.Answer{Result: mcpl.ListAnswer{Channels: s.descriptors()}}
	case mcpl.MethodChannelsIncoming:
		return s.serveIncoming(params)
	case mcpl.MethodPushEvent:
		return s.servePush(params)
	}
	return mcpl.Answer{} // ping
}

// ServeNotification takes one notification. Some connectors register by one (semantics §13.26).
func (s *Session) ServeNotification(ctx context.Context, method string, params json.RawMessage) {
	switch method {
	case mcpl.MethodManifestChanged:
		s.mu.Lock()
		defer s.mu.Unlock()
		select {
		case s.manifestChanged <- struct{}{}:
		default: // a fetch is due already, and will bring this change, too
		}
	case mcpl.MethodChannelsRegister, mcpl.MethodChannelsChanged:
		if answer := s.ServeRequest(ctx, method, params); answer.Then != nil {
			answer.Then()
		}
	}
}

// serveRegister makes entries, and answers before anything is made of them: a connector that waits
// for its answer can't serve an open (semantics §5.1).
func (s *Session) serveRegister(params json.RawMessage) mcpl.Answer {
	p, bad := mcpl.DecodeParams[mcpl.RegisterParams](params)
	if bad != nil {
		return mcpl.Answer{Err: bad}
	}
	clear(s.refused)
	accepted, verdicts := s.check(p.Channels)
	s.tellRejected(p.Channels, verdicts)
	ids := s.enter(accepted)
	return mcpl.Answer{Result: mcpl.NewRegisterResult(verdicts), Then: func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.conn == nil {
			return
		}
		s.notify.Event(s.connector, EventChannelsRegistered, fmt.Sprintf("the connector registered %d channels", len(ids)))
		s.admit(ids, false)
		s.list()
	}}
}

// serveChanged takes what was removed, updated and added, in this order (semantics §12.4). The
// same goes for its notification form, whose answer nobody sees.
func (s *Session) serveChanged(params json.RawMessage) mcpl.Answer {
	p, bad := mcpl.DecodeParams[mcpl.ChangedParams](params)
	if bad != nil {
		return mcpl.Answer{Err: bad}
	}
	var verdicts []mcpl.Verdict
	for _, id := range p.Removed {
		verdicts = append(verdicts, verdict(id, s.remove(id)))
	}
	for _, d := range p.Updated {
		verdicts = append(verdicts, verdict(d.ID, d.Reason == "" && s.update(d.Descriptor)))
	}
	accepted, added := s.check(p.Added)
	s.tellRejected(p.Added, added)
	ids := s.enter(accepted)
	if len(ids) > 0 {
		s.notify.Event(s.connector, EventChannelsChanged, fmt.Sprintf("the connector added %d channels", len(ids)))
	}
	return mcpl.Answer{Result: mcpl.ChangedResult{Results: append(verdicts, added...)}, Then: func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.conn != nil && len(ids) > 0 {
			s.admit(ids, false)
		}
	}}
}

func verdict(id string, known bool) mcpl.Verdict {
	if known {
		return mcpl.Verdict{ID: id, Accepted: true}
	}
	return mcpl.Verdict{ID: id, Reason: "unknown channel"}
}

// declaredChannels are those that a connector has declared on the present connection, as the check
// of descriptors wants them.
type declaredChannels struct{ s *Session }

func (c declaredChannels) Has(id string) bool {
	e := c.s.entries[id]
	return e != nil && c.s.declared(e)
}

func (c declaredChannels) Len() int {
	n := 0
	for _, e := range c.s.entries {
		if c.s.declared(e) {
			n++
		}
	}
	return n
}

// check judges descriptors one by one, and keeps those that may be registered.
func (s *Session) check(list mcpl.DescriptorList) ([]mcpl.Descriptor, []mcpl.Verdict) {
	verdicts := mcpl.CheckDescriptors(list, s.config.MaxChannels, declaredChannels{s})
	accepted := make([]mcpl.Descriptor, 0, len(list))
	before := len(s.refused)
	for i, v := range verdicts {
		switch {
		case v.Accepted:
			accepted = append(accepted, list[i].Descriptor)
			delete(s.refused, v.ID)
		case !malformed(list[i], v) && len(s.refused) < maxRemembered:
			s.refused[v.ID] = true
		}
	}
	if len(s.refused) != before {
		s.wakeConnector()
	}
	return accepted, verdicts
}

// malformed reports whether a descriptor was refused for what it is. All others are too many.
func malformed(d mcpl.Submitted, v mcpl.Verdict) bool {
	return d.Reason != "" || v.Reason == mcpl.ReasonRepeated
}

// tellRejected reports the descriptors that were refused, if there are any.
func (s *Session) tellRejected(list mcpl.DescriptorList, verdicts []mcpl.Verdict) {
	beyond, unusable := 0, 0
	for i, v := range verdicts {
		switch {
		case v.Accepted:
		case malformed(list[i], v):
			unusable++
		default:
			beyond++
		}
	}
	if beyond+unusable > 0 {
		s.notify.Event(s.connector, EventDescriptorRejected, fmt.Sprintf(
			"%d of %d channels were refused: %d beyond spec.maxChannels, %d without a usable id", beyond+unusable, len(list), beyond, unusable))
	}
}

// serveIncoming takes messages of open channels. A message of a declared channel is evidence that
// the connector has it open, even though nobody hears it (semantics §5.10).
func (s *Session) serveIncoming(params json.RawMessage) mcpl.Answer {
	p, bad := mcpl.DecodeParams[mcpl.IncomingParams](params)
	if bad != nil {
		return mcpl.Answer{Err: bad}
	}
	results := make([]mcpl.MessageVerdict, 0, len(p.Messages))
	rejected := 0
	for _, m := range p.Messages {
		v := mcpl.MessageVerdict{MessageID: m.MessageID, Reason: noResident}
		switch e := s.entries[m.ChannelID]; {
		case e == nil || e.pushKnown:
			v.Reason = "unknown channel"
			rejected++
		case e.unserved:
			v.Reason = "no Channel object stands for it"
			rejected++
		case e.transport != v1.TransportOpen:
			e.confirm(v1.TransportOpen)
			s.wakeChannel(m.ChannelID)
		}
		results = append(results, v)
	}
	if rejected > 0 {
		s.notify.Event(s.connector, EventIncomingRejected, fmt.Sprintf("%d messages came for channels that are not served", rejected))
	}
	return mcpl.Answer{Result: mcpl.IncomingResult{Results: results}}
}

// servePush takes a message that addresses the resident in a closed channel. It says nothing about
// the transport; a channel that nobody declared becomes known by it, and can be written to.
func (s *Session) servePush(params json.RawMessage) mcpl.Answer {
	p, bad := mcpl.DecodeParams[mcpl.PushParams](params)
	if bad != nil {
		return mcpl.Answer{Err: bad}
	}
	id := p.Origin.ChannelID()
	if id != "" && s.entries[id] == nil && len(s.entries) < s.config.MaxChannels && mcpl.ValidID(id) {
		e := s.newEntry(mcpl.Descriptor{ID: id})
		e.pushKnown = true
		s.entries[id] = e
		s.order = append(s.order, id)
		s.notify.Event(s.connector, EventPushKnownChannel, "a message named "+printable(id)+", which the connector does not declare")
		s.wakeChannel(id)
	}
	return mcpl.Answer{Result: mcpl.PushResult{Reason: noResident}}
}

func (s *Session) descriptors() []mcpl.Descriptor {
	list := make([]mcpl.Descriptor, 0, len(s.order))
	for _, id := range s.order {
		if e := s.entries[id]; !e.pushKnown {
			list = append(list, e.descriptor)
		}
	}
	return list
}
