package controllers

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/internal/decision"
	"mcpl.dev/operator/internal/ledger"
	"mcpl.dev/operator/internal/pair"
	"mcpl.dev/operator/internal/session"
)

// engagement is an incidental open under way: words went, or are to go, into a channel, and may
// open it (semantics §7).
type engagement struct {
	source v1.Source
	// done receives the end, once.
	done chan decision.Engagement
	end  decision.Engagement

	session   *session.Session
	operation *session.Operation
	// waiting says that the operation is not its own: speech waits for work that was there before.
	waiting bool
	// replaced is what is put back if the open fails, and mine the revision that the engagement made.
	replaced decision.Write
	mine     int64
}

// Engage says that words go into a channel: a delivery of speech (OpenedByDelivery), before which
// the channel is opened, or a reply (OpenedByReply), which went out already. The end comes once,
// within the deadlines of the requests that it takes; the words are published whatever it says.
func (r *ChannelReconciler) Engage(key pair.Key, source v1.Source) <-chan decision.Engagement {
	e := &engagement{source: source, done: make(chan decision.Engagement, 1)}
	r.memories.post(key, e)
	r.wake.Channel(key)
	return e.done
}

// engage brings the channel's incidental opens forward, in the order in which they came.
func (r *ChannelReconciler) engage(ctx context.Context, s *scope) error {
	remaining := s.memory.engagements[:0]
	var failure error
	for _, e := range s.memory.engagements {
		ended := false
		if failure == nil {
			ended, failure = r.stepEngagement(ctx, s, e)
		}
		if ended {
			r.tellEngagement(s, e.end)
			e.done <- e.end
			continue
		}
		remaining = append(remaining, e)
	}
	s.memory.engagements = remaining
	return failure
}

// tellEngagement reports what words made of their channel; residents are told by whoever had the words.
func (r *ChannelReconciler) tellEngagement(s *scope, end decision.Engagement) {
	switch {
	case s.channel == nil:
	case end.Opened:
		r.recorder.Eventf(s.channel, nil, corev1.EventTypeNormal, "OpenedBySend", "Engage", "words that went into the channel opened it")
	case end.Failure != "":
		text := "words went into the channel, and it could not be opened: " + string(end.Failure)
		if end.Selected != "" {
			text += "; it may be opened all the same: " + string(end.Selected)
		}
		r.recorder.Eventf(s.channel, nil, corev1.EventTypeWarning, "OpenFailed", "Engage", "%s", text)
	}
}

func (r *ChannelReconciler) stepEngagement(ctx context.Context, s *scope, e *engagement) (ended bool, err error) {
	if e.operation == nil {
		return r.beginEngagement(ctx, s, e)
	}
	outcome, _, settled := e.session.Result(e.operation)
	if !settled {
		return false, nil
	}
	s.live = r.sessions.Channel(s.key)
	switch {
	case e.waiting:
		e.end.Failure = decision.Waited(s.situation(), outcome)
	case outcome.Failure == "":
		e.end.Opened = e.end.Opening && s.record.WantsOpen() && s.hold() == nil
	case !e.end.Opening:
		e.end.Failure = outcome.Failure
	default:
		return r.putBack(ctx, s, e, outcome)
	}
	return true, nil
}

// beginEngagement decides whether the words open the channel, and starts that.
func (r *ChannelReconciler) beginEngagement(ctx context.Context, s *scope, e *engagement) (ended bool, err error) {
	s.live = r.sessions.Channel(s.key)
	now := s.situation()
	e.end.Directed = now.Directs()
	if e.source == v1.SourceOpenedByDelivery && now.Outstanding {
		if last := s.session.Last(s.key.ChannelID); last != nil {
			e.session, e.operation, e.waiting = s.session, last, true
			return false, nil
		}
	}
	if !now.Registered || s.suspended() || !decision.SpeechOpens(now) {
		if !now.Registered {
			e.end.Failure = v1.CauseRegistrationGone
		}
		return true, nil
	}
	if !s.record.WantsOpen() {
		e.replaced = decision.Replaced(s.record)
		switch err := r.append(ctx, s, ledger.Entry{Write: &decision.Write{State: v1.StateOpen, Source: e.source}}); {
		case unsure(err):
			return false, err
		case err != nil:
			e.end.Failure = v1.CauseStoreFailed
			return true, nil
		}
		e.end.Opening, e.mine = true, s.record.Revision
	}
	e.session, e.operation = s.session, s.session.Apply(s.key.ChannelID, 0)
	s.live = r.sessions.Channel(s.key)
	return false, nil
}

// putBack restores the record that a failed engagement replaced, unless somebody has decided since,
// and has the channel match it (semantics §7.1 P5).
func (r *ChannelReconciler) putBack(ctx context.Context, s *scope, e *engagement, outcome decision.Outcome) (ended bool, err error) {
	if s.record.Revision != e.mine {
		e.end.Failure = v1.CauseOvertaken
		return true, nil
	}
	e.end.Failure = outcome.Failure
	switch err := r.append(ctx, s, ledger.Entry{Write: &e.replaced}); {
	case unsure(err):
		return false, err
	case err != nil:
		e.end.Failure, e.end.Selected = v1.CauseStaysSelected, decision.Unrecorded
		return true, nil
	}
	if e.replaced.Source == v1.SourceDefaultClosed && s.connector != nil && s.live.Registered && !s.live.PushKnown {
		if lift, ok := decision.Lift(s.record, r.announcement(s)); ok {
			switch err := r.append(ctx, s, ledger.Entry{Write: &lift}); {
			case unsure(err):
				s.memory.owed = true // it is stored or not: the channel is judged again once that is known
				return true, err
			case err == nil:
				e.end.Failure, e.end.Selected = v1.CauseSelectedAgain, decision.Selection(lift.Source)
			}
		}
	}
	// Read after the record was restored: work that is still outstanding now reads it at its end.
	s.live = r.sessions.Channel(s.key)
	if s.live.Outstanding == 0 && s.situation().Obstacle() == "" && !s.suspended() {
		s.session.Apply(s.key.ChannelID, 0)
		s.live = r.sessions.Channel(s.key)
	}
	return true, nil
}

// unsure reports whether an append may have taken place, or was judged by a record that is not in force.
func unsure(err error) bool {
	return errors.Is(err, ledger.ErrChanged) || errors.Is(err, ledger.ErrUnknown)
}

// engaged reports whether incidental opens are under way.
func (m *memory) engaged() bool { return len(m.engagements) > 0 }

// post lays an engagement down for the channel's owner.
func (m *memories) post(key pair.Key, e *engagement) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mail == nil {
		m.mail = map[pair.Key][]*engagement{}
	}
	m.mail[key] = append(m.mail[key], e)
}

// collect hands over what was laid down for a channel.
func (m *memories) collect(key pair.Key) []*engagement {
	m.mu.Lock()
	defer m.mu.Unlock()
	mail := m.mail[key]
	delete(m.mail, key)
	return mail
}
