package controllers

import (
	"context"
	"encoding/json"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/internal/decision"
	"mcpl.dev/operator/internal/ledger"
)

// admit records what a registration makes of the channel, and lets its batch go on.
func (r *ChannelReconciler) admit(ctx context.Context, s *scope) error {
	if s.connector == nil || s.session == nil {
		return nil
	}
	ticket := s.live.Ticket
	if s.live.Entering {
		return nil // its ticket wakes this owner once the connector has its answer
	}
	if s.unserved() {
		if ticket != nil {
			ticket.Recorded(s.situation().Directs(), false)
		}
		return nil
	}
	declared := s.live.Registered && !s.live.PushKnown
	// A channel is judged in its registration; without one, when it still owes a judgement, or when
	// its record was deleted.
	if ticket == nil && !s.memory.owed && (s.record.Decided() || !declared) {
		return nil
	}
	admission := decision.Register(s.record, r.announcement(s), s.situation().Directs())
	notice := false
	if admission.Write != nil {
		notice = admission.PolicyNotice && !r.noticeGiven(s)
		if err := r.append(ctx, s, ledger.Entry{Write: admission.Write, PolicyNotice: notice}); err != nil {
			s.memory.owed = true
			if ticket != nil {
				ticket.Released()
			}
			return err
		}
	}
	s.memory.owed = false
	s.live = r.sessions.Channel(s.key)
	switch {
	case ticket != nil:
		ticket.Recorded(admission.Apply && !s.suspended(), notice)
	case admission.Apply && s.live.Registered && !s.suspended() && r.due(s):
		s.session.Apply(s.key.ChannelID, 0)
	}
	s.live = r.sessions.Channel(s.key)
	return nil
}

// announcement is what the connector, the subscription and the channel's own rule say of it now.
func (r *ChannelReconciler) announcement(s *scope) decision.Announcement {
	own := v1.State("")
	if s.channel != nil {
		own = s.channel.Spec.Admission
	}
	subscribed := decision.Admits(s.connector.Spec.Subscription, s.key.ChannelID, platformID(s.live.Descriptor.Address))
	return decision.Announce(s.live.Descriptor.InitiallyOpen, subscribed, own, s.hold() != nil)
}

// platformID is the platform's own id of a channel, empty where its address has none.
func platformID(address json.RawMessage) string {
	var a struct {
		ChannelID string `json:"channelId"`
	}
	if json.Unmarshal(address, &a) != nil {
		return ""
	}
	return a.ChannelID
}

func (r *ChannelReconciler) noticeGiven(s *scope) bool {
	object := r.ledger.Object(s.key)
	return object != nil && object.PolicyNoticeGiven
}

// due reports whether the transport is not, or not certainly, what is decided.
func (r *ChannelReconciler) due(s *scope) bool {
	want := v1.TransportClosed
	if r.ledger.WantsOpen(s.key) {
		want = v1.TransportOpen
	}
	return s.live.Transport != want || s.live.Outstanding > 0
}

// append stores an entry over the record that was judged, and takes the result for the record in
// force. That nobody decided is not stored while nothing precedes it (semantics §14).
func (r *ChannelReconciler) append(ctx context.Context, s *scope, e ledger.Entry) error {
	if e.Write != nil && e.Write.Source == v1.SourceDefaultClosed && s.record.Revision == 0 && !e.Named {
		r.ledger.MarkUndecided(s.key)
		s.record = r.ledger.Record(s.key)
		return nil
	}
	e.Label = s.live.Descriptor.Label
	e.HistoryLimit = historyLimit(s.channel)
	e.Exists = s.exists
	record, err := r.ledger.Append(ctx, s.key, s.record, e)
	if err != nil {
		return err
	}
	s.record = record
	return nil
}

// exists reports whether the object that asked for a decision is still there.
func (s *scope) exists(ref v1.DecisionReference) bool {
	for i := range s.decisions {
		if s.decisions[i].UID == ref.UID {
			return true
		}
	}
	return false
}

const defaultHistoryLimit = 10

func historyLimit(c *v1.Channel) int {
	if c == nil || c.Spec.DecisionHistoryLimit == nil {
		return defaultHistoryLimit
	}
	return int(*c.Spec.DecisionHistoryLimit)
}
