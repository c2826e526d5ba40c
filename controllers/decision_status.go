package controllers

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/internal/decision"
	"mcpl.dev/operator/internal/session"
)

// deadlineOf is how long a decision waits for a channel that does not exist yet.
func deadlineOf(d *v1.ChannelDecision) time.Duration {
	if d.Spec.DeadlineSeconds == nil {
		return time.Hour
	}
	return time.Duration(*d.Spec.DeadlineSeconds) * time.Second
}

// tellAbsent says that a decision waits for its channel, once that has lasted a while. It keeps
// the decision's place among those that wait.
func tellAbsent(ctx context.Context, c client.Client, clk clock.PassiveClock, d *v1.ChannelDecision) error {
	next := d.DeepCopy()
	next.Status.ObservedGeneration = d.Generation
	if next.Status.SeenAt == "" {
		next.Status.SeenAt = d.ResourceVersion
	}
	setDecisionConditions(&next.Status, d.Generation, metav1.NewTime(clk.Now()),
		metav1.Condition{Type: v1.ConditionRecorded, Status: metav1.ConditionFalse, Reason: v1.ReasonWaiting,
			Message: "Nothing is recorded while the channel does not exist."},
		waitingConditions(v1.ReasonWaiting, "The channel, or its Connector, does not exist yet. The decision is taken when it does, and fails with NotFound when spec.deadlineSeconds are over.")...)
	return patchDecisionStatus(ctx, c, d, next)
}

// conclusion is a decision's answer and what is to be written with it.
type conclusion struct {
	decision.Answer
	changed    bool
	noted      bool // the history knows it, or can't be told
	predates   bool // it is older than the history
	revision   int64
	recordedAt *metav1.Time
	history    *session.History
	// acknowledgement is what became of a decline's, nil where none was asked for.
	acknowledgement *v1.Acknowledgement
}

// write puts the answer into a decision's status.
func (c conclusion) write(d, next *v1.ChannelDecision, at time.Time) {
	now := metav1.NewTime(at)
	status := &next.Status
	status.ObservedGeneration = d.Generation
	status.Revision = c.revision
	status.Result, status.Cause, status.Message = c.Result, c.Cause, c.Message
	status.CompletedAt = &now
	recorded := decisionRecorded(c)
	if recorded.Status == metav1.ConditionTrue && status.RecordedAt == nil {
		if status.RecordedAt = c.recordedAt; status.RecordedAt == nil {
			status.RecordedAt = &now
		}
	}
	status.Acknowledgement = c.acknowledgement
	if d.Spec.History != nil && c.history != nil && decision.Succeeded(c.Result) {
		status.History = &v1.HistoryResult{Count: int32(c.history.Count), Truncated: c.history.Truncated}
	}
	setDecisionConditions(status, d.Generation, now, recorded, answerConditions(c.Answer)...)
}

// patchDecisionStatus writes a decision's status, once, and only if it says something new.
func patchDecisionStatus(ctx context.Context, c client.Client, d, next *v1.ChannelDecision) error {
	if equality.Semantic.DeepEqual(d.Status, next.Status) {
		return nil
	}
	err := c.Status().Patch(ctx, next, client.MergeFromWithOptions(d, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsNotFound(err) {
		return nil // nobody waits for the answer any more
	}
	return err
}

// setDecisionConditions sets Recorded and what goes with it.
func setDecisionConditions(status *v1.ChannelDecisionStatus, generation int64, now metav1.Time, recorded metav1.Condition, others ...metav1.Condition) {
	setConditions(&status.Conditions, generation, now, append([]metav1.Condition{recorded}, others...)...)
}

func recordedCondition(changed bool) metav1.Condition {
	c := metav1.Condition{Type: v1.ConditionRecorded, Status: metav1.ConditionTrue, Reason: v1.ReasonAppended,
		Message: "The decision stands in the channel's record."}
	if !changed {
		c.Reason, c.Message = v1.ReasonUnchanged, "What it asks for was already decided."
	}
	return c
}

// decisionRecorded says whether an answered decision was recorded.
func decisionRecorded(c conclusion) metav1.Condition {
	no := func(reason, message string) metav1.Condition {
		return metav1.Condition{Type: v1.ConditionRecorded, Status: metav1.ConditionFalse, Reason: reason, Message: message}
	}
	switch {
	case c.Result == v1.ResultRefused:
		return no(v1.ReasonRefused, "It was refused, and nothing changed.")
	case c.Cause == v1.CauseStoreFailed, c.Cause == v1.CauseDecisionNotStored:
		return no(v1.ReasonStoreFailed, "It could not be stored, and nothing changed.")
	case c.Cause == v1.CauseNotFound:
		return no(v1.ReasonFailed, "It failed before it was recorded, and nothing changed.")
	case c.predates:
		return no(v1.ReasonFailed, "It is older than what the record remembers, and changed nothing.")
	}
	return recordedCondition(c.changed)
}

// waitingConditions are those of an answer that is not there yet: Complete, Ready and Reconciling.
func waitingConditions(reason, message string) []metav1.Condition {
	return []metav1.Condition{
		{Type: v1.ConditionComplete, Status: metav1.ConditionUnknown, Reason: reason, Message: message},
		{Type: v1.ConditionReady, Status: metav1.ConditionUnknown, Reason: reason, Message: message},
		{Type: v1.ConditionReconciling, Status: metav1.ConditionTrue, Reason: reason, Message: message},
	}
}

// answerConditions are Complete, Ready and, for a failure, Stalled.
func answerConditions(a decision.Answer) []metav1.Condition {
	conditions := []metav1.Condition{
		{Type: v1.ConditionComplete, Status: metav1.ConditionTrue, Reason: string(a.Result), Message: a.Message},
		{Type: v1.ConditionReady, Status: metav1.ConditionTrue, Reason: string(a.Result), Message: a.Message},
	}
	if a.Result == v1.ResultFailed {
		conditions[1].Status, conditions[1].Reason = metav1.ConditionFalse, string(a.Cause)
		conditions = append(conditions, metav1.Condition{
			Type: v1.ConditionStalled, Status: metav1.ConditionTrue, Reason: string(a.Cause), Message: a.Message})
	}
	return conditions
}
