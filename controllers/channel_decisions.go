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
	// storePatience is how long a decision that can't be stored is tried again, and storeRetry how often.
	storePatience = 60 * time.Second
	storeRetry    = 5 * time.Second
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

// follow brings a recorded decision forward, and answers it once its operation has ended.
func (r *ChannelReconciler) follow(ctx context.Context, s *scope, d *v1.ChannelDecision, w *work) error {
	if w.decline != nil {
		return r.followDecline(ctx, s, d, w)
	}
	if w.operation == nil {
		switch now := s.situation(); {
		case s.suspended():
			return r.tellSuspended(ctx, s, d, w)
		case now.Obstacle() != "":
			answer := decision.Settle(d.Spec.Decision, w.success, decision.Outcome{Failure: now.Obstacle()}, now)
			return r.conclude(ctx, s, d, conclusion{Answer: answer, changed: w.changed, revision: w.revision})
		}
		r.apply(s, w)
	}
	outcome, history, settled := w.session.Result(w.operation)
	if !settled {
		return r.tellWaiting(ctx, s, d, w)
	}
	s.live = r.sessions.Channel(s.key)
	answer := decision.Settle(d.Spec.Decision, w.success, outcome, s.situation())
	return r.conclude(ctx, s, d, conclusion{Answer: answer, changed: w.changed, revision: w.revision, history: &history})
}

// apply queues the operation that a decision waits for.
func (r *ChannelReconciler) apply(s *scope, w *work) {
	w.session, w.operation = s.session, s.session.Apply(s.key.ChannelID, w.history)
	s.live = r.sessions.Channel(s.key)
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
		return r.conclude(ctx, s, d, conclusion{Answer: decision.Predates(), predates: true, revision: s.record.Revision})
	case s.absent():
		return r.wait(ctx, s, d)
	}
	return r.judge(ctx, s, d)
}

// judge records a decision and starts what it asks for.
func (r *ChannelReconciler) judge(ctx context.Context, s *scope, d *v1.ChannelDecision) error {
	s.live = r.sessions.Channel(s.key)
	now := s.situation()
	now.Foreign = resident(d.Spec.Source) && d.Spec.DecidedBy != s.connector.Spec.ResidentRef.Name
	if s.suspended() {
		now = now.Resumed() // it is carried out some other time, whatever is in the way now
	}
	verdict, history := verdictOn(d, now)
	wanted := s.record.WantsOpen()
	// An acknowledgement is posted only by whoever made the entry that says so, so there must be one.
	noted := verdict.Write == nil && !verdict.Refused && d.Spec.Acknowledge != nil
	if verdict.Write != nil || noted {
		if err := r.append(ctx, s, entryOf(d, verdict.Write)); err != nil {
			return r.storeFailed(ctx, s, d, verdict, err)
		}
		s.memory.storeFailedSince = time.Time{}
	}
	now.Record = s.record
	w := &work{
		history: history, success: verdict.Success, changed: verdict.Write != nil, revision: s.record.Revision, since: r.clock.Now(),
	}
	switch {
	case d.Spec.Decision == v1.DecisionDecline && !verdict.Refused:
		w.decline = r.beginDecline(s, d, wanted, noted)
	case !verdict.Send:
		return r.conclude(ctx, s, d, conclusion{Answer: decision.AtOnce(d.Spec.Decision, verdict, now), changed: w.changed, revision: w.revision})
	}
	s.memory.work[d.UID] = w
	return r.follow(ctx, s, d, w)
}

// verdictOn judges a decision, and says how many earlier messages it asks for.
func verdictOn(d *v1.ChannelDecision, now decision.Situation) (decision.Verdict, int) {
	switch d.Spec.Decision {
	case v1.DecisionOpen:
		history := 0
		if d.Spec.History != nil {
			history = int(d.Spec.History.Limit)
		}
		return decision.Open(now, history > 0), history
	case v1.DecisionDecline:
		return decision.Decline(now), 0
	}
	return decision.Close(now, d.Spec.Source, d.Spec.Lease == v1.LeaseClaimed), 0
}

// resident reports whether a source is the resident itself.
func resident(s v1.Source) bool { return s == v1.SourceAgentTool || s == v1.SourceInvitationDeclined }

// errStoring ends a reconciliation because a decision could not be stored: it is tried again soon,
// and no later decision may overtake it meanwhile.
var errStoring = errors.New("a decision could not be stored")

// storeFailed tries a decision that could not be stored again for a while, and then answers it.
// Nothing was sent for it.
func (r *ChannelReconciler) storeFailed(ctx context.Context, s *scope, d *v1.ChannelDecision, v decision.Verdict, err error) error {
	now := r.clock.Now()
	switch since := s.memory.storeFailedSince; {
	case unsure(err):
		return err // it may be stored, or another one is: the record is read before anything is said
	case since.IsZero():
		s.memory.storeFailedSince = now
	case now.Sub(since) >= storePatience:
		s.memory.storeFailedSince = time.Time{}
		return r.conclude(ctx, s, d, conclusion{Answer: decision.NotStored(v), noted: true, revision: s.record.Revision})
	}
	next := d.DeepCopy()
	r.identify(s, next)
	setDecisionConditions(&next.Status, d.Generation, metav1.NewTime(now),
		metav1.Condition{Type: v1.ConditionRecorded, Status: metav1.ConditionFalse, Reason: v1.ReasonStoreFailed,
			Message: "The decision could not be stored yet and is tried again. Nothing was sent."},
		waitingConditions(v1.ReasonWaiting, "The decision is not recorded yet.")...)
	return errors.Join(errStoring, r.patchDecision(ctx, d, next))
}

// resume answers a decision that is recorded and that nobody is carrying out: a restart interrupted
// it, or its object was deleted and applied again.
func (r *ChannelReconciler) resume(ctx context.Context, s *scope, d *v1.ChannelDecision, entry v1.HistoryEntry) error {
	left := r.startedAt.Add(restartGrace).Sub(r.clock.Now())
	settled := s.live.State == v1.ConnectorUp && s.live.Registered && !s.live.Registering && s.live.Outstanding == 0
	final := left <= 0 || settled
	c := conclusion{changed: entry.Changed == nil || *entry.Changed, revision: entry.Revision, recordedAt: &entry.At, noted: true}
	ok := final
	if d.Spec.Decision == v1.DecisionDecline {
		c.Answer = decision.DeclineOutcome(s.reading(nil))
		if d.Spec.Acknowledge != nil {
			c.acknowledgement = &v1.Acknowledgement{State: v1.AcknowledgementInterrupted, Message: "interrupted: it may or may not have been posted"}
		}
	} else {
		c.Answer, ok = decision.Resume(d.Spec.Decision, s.situation(), final)
	}
	switch {
	case ok:
		return r.conclude(ctx, s, d, c)
	case s.suspended():
		return r.tellSuspended(ctx, s, d, &work{changed: c.changed, revision: c.revision, since: entry.At.Time})
	}
	s.again(left)
	return nil
}

// wait leaves a decision alone until its channel is there, and fails it when its deadline has passed.
func (r *ChannelReconciler) wait(ctx context.Context, s *scope, d *v1.ChannelDecision) error {
	waited, deadline := r.clock.Since(d.CreationTimestamp.Time), deadlineOf(d)
	switch {
	case waited < min(settling, deadline):
		s.again(min(settling, deadline) - waited)
		return nil
	case waited < deadline:
		s.again(deadline - waited)
		return tellAbsent(ctx, r.Client, r.clock, d)
	}
	return r.conclude(ctx, s, d, conclusion{Answer: decision.NeverAppeared(s.situation())})
}

// tellWaiting says that a decision is recorded and under way, once that has lasted a while.
func (r *ChannelReconciler) tellWaiting(ctx context.Context, s *scope, d *v1.ChannelDecision, w *work) error {
	if left := settling - r.clock.Since(w.since); left > 0 {
		s.again(left)
		return nil
	}
	return r.tell(ctx, s, d, w, v1.ReasonWaiting, "The decision is recorded; the connector has not confirmed it yet.")
}

// tellSuspended says that a decision is recorded and that nothing is sent for it.
func (r *ChannelReconciler) tellSuspended(ctx context.Context, s *scope, d *v1.ChannelDecision, w *work) error {
	return r.tell(ctx, s, d, w, v1.ReasonSuspended,
		"The decision is recorded. Nothing is sent while spec.suspend of the Channel is set; it is carried out when that is lifted.")
}

// tell writes that a decision is recorded and not answered yet, once for each reason.
func (r *ChannelReconciler) tell(ctx context.Context, s *scope, d *v1.ChannelDecision, w *work, reason, message string) error {
	if w.told == reason {
		return nil
	}
	next := d.DeepCopy()
	r.identify(s, next)
	next.Status.Revision = w.revision
	next.Status.RecordedAt = &metav1.Time{Time: w.since}
	setDecisionConditions(&next.Status, d.Generation, metav1.NewTime(r.clock.Now()),
		recordedCondition(w.changed), waitingConditions(reason, message)...)
	if err := r.patchDecision(ctx, d, next); err != nil {
		return err
	}
	w.told = reason
	return nil
}

// conclude writes a decision's answer. One with a name of its own that changed nothing is noted in
// the record first: by that name it is recognized when it is applied again.
func (r *ChannelReconciler) conclude(ctx context.Context, s *scope, d *v1.ChannelDecision, c conclusion) error {
	if d.GenerateName == "" && !c.changed && !c.noted && decision.Succeeded(c.Result) {
		if err := r.append(ctx, s, entryOf(d, nil)); err != nil {
			return r.storeFailed(ctx, s, d, decision.Verdict{Success: c.Result}, err)
		}
		c.revision = s.record.Revision
		s.memory.storeFailedSince = time.Time{}
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
