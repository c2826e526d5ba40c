package controllers

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/internal/decision"
	"mcpl.dev/operator/internal/mcpl"
	"mcpl.dev/operator/internal/session"
)

// declining is a decline under way: its acknowledgement, then perhaps a close, then one look.
type declining struct {
	// wanted says that the channel had been decided open or tuned out before.
	wanted bool
	// noted says that the history has an entry of it though it changed nothing.
	noted bool
	// session and acknowledgement are what was posted; acknowledgement is nil where nothing was.
	session         *session.Session
	acknowledgement *session.Acknowledgement
	// failure says why an acknowledgement that was asked for was not even tried.
	failure string
	// closing says that the decline's own close has been decided upon.
	closing bool
}

// beginDecline posts the acknowledgement of a decline that has just been recorded. Whoever finds
// the record later, and not in this memory, does not post it again.
func (r *ChannelReconciler) beginDecline(s *scope, d *v1.ChannelDecision, wanted, noted bool) *declining {
	dec := &declining{wanted: wanted, noted: noted}
	ask := d.Spec.Acknowledge
	switch {
	case ask == nil:
	case s.channel != nil && s.channel.Spec.Publishing == v1.PublishingForbidden:
		dec.failure = "spec.publishing of the Channel is Forbidden"
	case s.suspended():
		dec.failure = "spec.suspend of the Channel is set"
	case s.session == nil:
		dec.failure = "the connector is gone"
	default:
		dec.session = s.session
		dec.acknowledgement = s.session.Acknowledge(s.key.ChannelID, ask.MessageID, mcpl.IntentSeenNotOpening, ask.Text)
	}
	return dec
}

// followDecline brings a recorded decline forward (semantics §6.1, steps 4 to 7).
func (r *ChannelReconciler) followDecline(ctx context.Context, s *scope, d *v1.ChannelDecision, w *work) error {
	dec := w.decline
	acknowledgement, settled := dec.result(d)
	if !settled {
		return r.tellWaiting(ctx, s, d, w)
	}
	if !dec.closing {
		if s.suspended() {
			return r.tellSuspended(ctx, s, d, w)
		}
		dec.closing = true
		s.live = r.sessions.Channel(s.key)
		if decision.DeclineCloses(s.situation(), dec.wanted) {
			r.apply(s, w)
		}
	}
	var closing *decision.Outcome
	if w.operation != nil {
		outcome, _, settled := w.session.Result(w.operation)
		if !settled {
			return r.tellWaiting(ctx, s, d, w)
		}
		if outcome.Failure != "" {
			closing = &outcome
		}
	}
	s.live = r.sessions.Channel(s.key)
	if acknowledgement != nil && acknowledgement.State == v1.AcknowledgementFailed {
		r.recorder.Eventf(d, nil, corev1.EventTypeWarning, "AcknowledgeFailed", "Acknowledge", "%s", acknowledgement.Message)
	}
	return r.conclude(ctx, s, d, conclusion{
		Answer: decision.DeclineOutcome(s.reading(closing)), changed: w.changed, noted: dec.noted, revision: w.revision, acknowledgement: acknowledgement,
	})
}

// result is what became of the acknowledgement, nil where none was asked for, and whether that is known.
func (dec *declining) result(d *v1.ChannelDecision) (*v1.Acknowledgement, bool) {
	switch {
	case d.Spec.Acknowledge == nil:
		return nil, true
	case dec.acknowledgement == nil:
		return &v1.Acknowledgement{State: v1.AcknowledgementFailed, Message: dec.failure}, true
	}
	acknowledged, representation, failure, settled := dec.session.Acknowledged(dec.acknowledgement)
	if acknowledged {
		return &v1.Acknowledgement{State: v1.Acknowledged, Representation: representation}, settled
	}
	return &v1.Acknowledgement{State: v1.AcknowledgementFailed, Message: failure}, settled
}

// reading is the one look from which a decline is answered.
func (s *scope) reading(closing *decision.Outcome) decision.Reading {
	return decision.Reading{
		Situation: s.situation(), PushKnown: s.live.PushKnown, Close: closing, CarriedOut: s.live.Outstanding > 0,
	}
}
