package controllers

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/internal/decision"
	"mcpl.dev/operator/internal/ledger"
)

const (
	// restartGrace is how long a decision that a restart interrupted waits for its connector.
	restartGrace = 60 * time.Second
	// storePatience is how long a decision that can't be stored is tried again.
	storePatience = 60 * time.Second
	// settling is how old a state must be to be written, unless it is final: a channel or a
	// decision that settles in that time costs one write.
	settling = 2 * time.Second
)

// decide takes the decisions about the channel in their order: those under way are answered once
// their operation has ended, new ones are judged, recorded and carried out.
func (r *ChannelReconciler) decide(ctx context.Context, s *scope) error {
	if s.memory.work == nil {
		s.memory.work = map[types.UID]*work{}
	}
	for i := range s.decisions {
		d := &s.decisions[i]
		if d.Status.CompletedAt != nil {
			continue
		}
		// A cache may not show yet what this owner has answered.
		if err := r.Get(ctx, nameOf(d), d); apierrors.IsNotFound(err) || d.Status.CompletedAt != nil {
			delete(s.memory.work, d.UID)
			continue
		} else if err != nil {
			return err
		}
		var err error
		if w := s.memory.work[d.UID]; w != nil {
			err = r.follow(ctx, s, d, w)
		} else {
			err = r.take(ctx, s, d)
		}
		if err != nil {
			return err // a later decision must not overtake this one
		}
	}
	return nil
}

// follow answers a decision whose operation has ended.
func (r *ChannelReconciler) follow(ctx context.Context, s *scope, d *v1.ChannelDecision, w *work) error {
	outcome, history, settled := w.session.Result(w.operation)
	if !settled {
		return r.tellWaiting(ctx, s, d, w)
	}
	s.live = r.sessions.Channel(s.key)
	answer := decision.Settle(d.Spec.Decision, w.success, outcome, s.situation())
	return r.conclude(ctx, s, d, conclusion{Answer: answer, changed: w.changed, revision: w.revision, history: &history})
}

// take judges a decision that nothing is under way for.
func (r *ChannelReconciler) take(ctx context.Context, s *scope, d *v1.ChannelDecision) error {
	var history []v1.HistoryEntry
	if object := r.ledger.Object(s.key); object != nil {
		history = object.History
	}
	named := d.GenerateName == ""
	entry, found := decision.FindDecision(history, d.Name, d.UID, named)
	switch {
	case found:
		return r.resume(ctx, s, d, entry)
	case named && decision.PredatesHistory(history, d.CreationTimestamp.Unix()):
		return r.conclude(ctx, s, d, conclusion{Answer: decision.Predates(), revision: s.record.Revision})
	case s.absent():
		return r.wait(ctx, s, d)
	}
	return r.judge(ctx, s, d, named)
}

// judge records a decision and starts what it asks for.
func (r *ChannelReconciler) judge(ctx context.Context, s *scope, d *v1.ChannelDecision, named bool) error {
	now := s.situation()
	now.Foreign = d.Spec.Source == v1.SourceAgentTool && d.Spec.DecidedBy != s.connector.Spec.ResidentRef.Name
	history := 0
	var verdict decision.Verdict
	if d.Spec.Decision == v1.DecisionOpen {
		if d.Spec.History != nil {
			history = int(d.Spec.History.Limit)
		}
		verdict = decision.Open(now, history > 0)
	} else {
		verdict = decision.Close(now, d.Spec.Source, d.Spec.Lease == v1.LeaseClaimed)
	}
	if verdict.Write != nil {
		if err := r.append(ctx, s, entryOf(d, verdict.Write)); err != nil {
			return r.storeFailed(ctx, s, d, verdict, err)
		}
		s.memory.storeFailedSince = time.Time{}
	}
	now.Record = s.record
	changed := verdict.Write != nil
	if !verdict.Send {
		return r.conclude(ctx, s, d, conclusion{Answer: decision.AtOnce(d.Spec.Decision, verdict, now), changed: changed, revision: s.record.Revision})
	}
	w := &work{
		session: s.session, operation: s.session.Apply(s.key.ChannelID, history),
		success: verdict.Success, changed: changed, revision: s.record.Revision, since: r.clock.Now(),
	}
	s.memory.work[d.UID] = w
	s.live = r.sessions.Channel(s.key)
	return r.follow(ctx, s, d, w)
}

// storeFailed tries a decision that could not be stored again for a while, and then answers it.
// Nothing was sent for it.
func (r *ChannelReconciler) storeFailed(ctx context.Context, s *scope, d *v1.ChannelDecision, v decision.Verdict, err error) error {
	if errors.Is(err, ledger.ErrChanged) || errors.Is(err, ledger.ErrUnknown) {
		return err // it may be stored, or another one is: the record is read before anything is said
	}
	now := r.clock.Now()
	if s.memory.storeFailedSince.IsZero() {
		s.memory.storeFailedSince = now
	}
	if now.Sub(s.memory.storeFailedSince) < storePatience {
		next := d.DeepCopy()
		r.identify(s, next)
		setDecisionConditions(&next.Status, d.Generation, metav1.NewTime(now),
			metav1.Condition{Type: v1.ConditionRecorded, Status: metav1.ConditionFalse, Reason: v1.ReasonStoreFailed,
				Message: "The decision could not be stored yet and is tried again. Nothing was sent."},
			waitingCondition("The decision is not recorded yet."))
		return errors.Join(err, r.patchDecision(ctx, d, next))
	}
	s.memory.storeFailedSince = time.Time{}
	return r.conclude(ctx, s, d, conclusion{Answer: decision.NotStored(v), revision: s.record.Revision})
}

// resume answers a decision that is recorded and that nobody is carrying out: a restart interrupted
// it, or its object was deleted and applied again.
func (r *ChannelReconciler) resume(ctx context.Context, s *scope, d *v1.ChannelDecision, entry v1.HistoryEntry) error {
	left := r.startedAt.Add(restartGrace).Sub(r.clock.Now())
	settled := s.live.State == v1.ConnectorUp && s.live.Registered && s.live.Ticket == nil && s.live.Outstanding == 0
	answer, ok := decision.Resume(d.Spec.Decision, s.situation(), left <= 0 || settled)
	if !ok {
		s.again(left)
		return nil
	}
	return r.conclude(ctx, s, d, conclusion{
		Answer: answer, changed: entry.Changed == nil || *entry.Changed, revision: entry.Revision, recordedAt: &entry.At, noted: true,
	})
}

// wait leaves a decision alone until its channel is there, and fails it after an hour.
func (r *ChannelReconciler) wait(ctx context.Context, s *scope, d *v1.ChannelDecision) error {
	waited := r.clock.Since(d.CreationTimestamp.Time)
	switch {
	case waited < settling:
		s.again(settling - waited)
		return nil
	case waited < waitingTime:
		s.again(waitingTime - waited)
		return tellAbsent(ctx, r.Client, r.clock, d)
	}
	return r.conclude(ctx, s, d, conclusion{Answer: decision.NeverAppeared(s.situation())})
}

// tellWaiting says that a decision is recorded and under way, once that has lasted a while.
func (r *ChannelReconciler) tellWaiting(ctx context.Context, s *scope, d *v1.ChannelDecision, w *work) error {
	if w.told {
		return nil
	}
	if left := settling - r.clock.Since(w.since); left > 0 {
		s.again(left)
		return nil
	}
	next := d.DeepCopy()
	r.identify(s, next)
	next.Status.Revision = w.revision
	next.Status.RecordedAt = &metav1.Time{Time: w.since}
	setDecisionConditions(&next.Status, d.Generation, metav1.NewTime(r.clock.Now()),
		recordedCondition(w.changed), waitingCondition("The decision is recorded; the connector has not confirmed it yet."))
	if err := r.patchDecision(ctx, d, next); err != nil {
		return err
	}
	w.told = true
	return nil
}

// conclude writes a decision's answer. One with a name of its own that changed nothing is noted in
// the record first: by that name it is recognized when it is applied again.
func (r *ChannelReconciler) conclude(ctx context.Context, s *scope, d *v1.ChannelDecision, c conclusion) error {
	if d.GenerateName == "" && !c.changed && !c.noted && decision.Succeeded(c.Result) {
		if err := r.append(ctx, s, entryOf(d, nil)); err != nil {
			return err
		}
		c.revision = s.record.Revision
	}
	next := d.DeepCopy()
	r.identify(s, next)
	c.write(d, next, r.clock.Now())
	if err := r.patchDecision(ctx, d, next); err != nil {
		return err
	}
	delete(s.memory.work, d.UID)
	return nil
}

// identify notes which channel a decision is about: it is resolved once and kept.
func (r *ChannelReconciler) identify(s *scope, d *v1.ChannelDecision) {
	d.Status.ServerID, d.Status.ChannelID = s.key.ServerID, s.key.ChannelID
	d.Status.ObservedGeneration = d.Generation
}

func (r *ChannelReconciler) patchDecision(ctx context.Context, d, next *v1.ChannelDecision) error {
	return patchDecisionStatus(ctx, r.Client, d, next)
}

func entryOf(d *v1.ChannelDecision, w *decision.Write) ledger.Entry {
	return ledger.Entry{
		Write: w, DecidedBy: d.Spec.DecidedBy, Named: d.GenerateName == "",
		Ref: &v1.DecisionReference{Kind: "ChannelDecision", Name: d.Name, UID: d.UID, Generation: d.Generation},
	}
}
