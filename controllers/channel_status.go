package controllers

import (
	"context"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/internal/decision"
)

// outageGrace is how long an outage goes unmentioned on a Channel: what was confirmed before is
// mostly confirmed again, and an outage of a connector is one write on the Connector, not one on
// each of its channels.
const outageGrace = 30 * time.Second

// report writes the status of the Channel that stands for the pair, and of those that do not.
func (r *ChannelReconciler) report(ctx context.Context, s *scope) error {
	s.live = r.sessions.Channel(s.key)
	for i := range s.rivals {
		rival := &s.rivals[i]
		if s.channel == nil || untouched(rival) {
			continue // one of them is being deleted, which is news to come
		}
		f := r.facts(s, rival)
		f.DuplicateOf = s.channel.Name
		if err := r.reportOn(ctx, s, rival, f); err != nil {
			return err
		}
	}
	for i := range s.orphans {
		f := decision.ChannelFacts{ConnectorName: s.orphans[i].Spec.ConnectorRef.Name}
		if err := r.reportOn(ctx, s, &s.orphans[i], f); err != nil {
			return err
		}
	}
	if s.channel == nil {
		return nil
	}
	return r.reportOn(ctx, s, s.channel, r.facts(s, s.channel))
}

// facts is what a Channel's status is made of.
func (r *ChannelReconciler) facts(s *scope, c *v1.Channel) decision.ChannelFacts {
	f := decision.ChannelFacts{
		Situation:       s.situation(),
		ConnectorExists: s.connector != nil,
		ConnectorName:   c.Spec.ConnectorRef.Name,
		PushKnown:       s.live.PushKnown,
		InFlight:        s.live.InFlight,
		LastConfirmed:   c.Status.Transport,
		Failed:          s.live.Failure,
		FailedOpening:   s.live.FailedOpening,
	}
	if hold := s.hold(); hold != nil {
		f.HoldReason = hold.Reason
	}
	f.Suspended = c.Spec.Suspend
	if s.connector != nil {
		f.ConnectorSuspended = s.connector.Spec.Suspend
		f.DuplicateServerID = s.connector.Name != c.Spec.ConnectorRef.Name && r.connectorThere(c)
		if !f.DuplicateServerID {
			f.ConnectorName = s.connector.Name // a rename: another Connector has taken over the serverID
		}
		f.MissingFor = r.missingFor(s, c)
	}
	return f
}

// missingFor is how long a channel has been missing on its connected connector. A manager that
// starts has it from the written status.
func (r *ChannelReconciler) missingFor(s *scope, c *v1.Channel) time.Duration {
	if s.live.State != v1.ConnectorUp || s.live.Registered {
		s.memory.missingSince = time.Time{}
		return 0
	}
	if s.memory.missingSince.IsZero() {
		s.memory.missingSince = r.clock.Now()
		written := meta.FindStatusCondition(c.Status.Conditions, v1.ConditionRegistered)
		if written != nil && written.Status == metav1.ConditionFalse && written.Reason == v1.ReasonNotRegistered {
			s.memory.missingSince = written.LastTransitionTime.Time
		}
	}
	return r.clock.Since(s.memory.missingSince)
}

// connectorThere reports whether the Connector that a Channel names is there, though it may not serve.
func (r *ChannelReconciler) connectorThere(c *v1.Channel) bool {
	var named v1.Connector
	key := client.ObjectKey{Namespace: c.Namespace, Name: c.Spec.ConnectorRef.Name}
	return r.cache.Get(context.Background(), key, &named) == nil
}

// reportOn writes one Channel's status if it says something new, and not before that has lasted.
func (r *ChannelReconciler) reportOn(ctx context.Context, s *scope, c *v1.Channel, f decision.ChannelFacts) error {
	report := decision.ReportChannel(f)
	s.again(report.Recheck)
	now := r.clock.Now()
	next := c.DeepCopy()
	r.fill(s, c, next, f, report)
	setConditions(&next.Status.Conditions, c.Generation, metav1.NewTime(now), report.Conditions...)
	if c == s.channel && report.Settled() {
		s.memory.settledAt = now
	}
	if equality.Semantic.DeepEqual(c.Status, next.Status) {
		if c == s.channel {
			s.memory.differs = ""
		}
		return nil
	}
	if c == s.channel && !report.Final {
		if left := r.patience(s, c, &next.Status, now); left > 0 {
			s.again(left)
			return nil
		}
	}
	if c != s.channel {
		return client.IgnoreNotFound(r.patchChannel(ctx, c, next))
	}
	r.memories.writing(s.memory, c)
	version := ""
	err := r.patchChannel(ctx, c, next)
	if err == nil {
		s.memory.differs, version = "", next.ResourceVersion
	}
	if r.memories.written(s.memory, version) {
		s.again(time.Millisecond)
	}
	return client.IgnoreNotFound(err)
}

func (r *ChannelReconciler) patchChannel(ctx context.Context, c, next *v1.Channel) error {
	return r.Status().Patch(ctx, next, client.MergeFromWithOptions(c, client.MergeFromWithOptimisticLock{}))
}

// fill puts a report into a status.
func (r *ChannelReconciler) fill(s *scope, c, next *v1.Channel, f decision.ChannelFacts, report decision.Report) {
	status := &next.Status
	status.ObservedGeneration = c.Generation
	if f.ConnectorExists && status.ServerID == "" {
		status.ServerID = s.key.ServerID
	}
	if d := s.live.Descriptor; s.live.Registered && f.ConnectorExists {
		status.Label, status.Type, status.Direction = d.Label, d.Type, d.Direction
	}
	status.Desired, status.Registration, status.Transport = report.Desired, report.Registration, report.Transport
	status.OutstandingWork = int32(s.live.Outstanding)
	if s.memory.handled != "" && c == s.channel {
		status.LastHandledReconcileAt = s.memory.handled
	}
	status.Decision = nil
	if s.record.Decided() && status.ServerID != "" {
		status.Decision = &v1.DecisionInForce{State: s.record.State, Source: s.record.Source, Revision: s.record.Revision}
		if object := r.ledger.Object(s.key); object != nil {
			at := object.Record.At
			status.Decision.DecidedBy, status.Decision.DecidedAt, status.Decision.DecisionRef = object.Record.DecidedBy, &at, object.Record.DecisionRef
		}
	}
}

// patience is how long a status that is not final may still wait: until its state is old enough,
// and, after a disturbance that changed nothing that is decided, until it is clear that what was
// confirmed before is not confirmed again.
func (r *ChannelReconciler) patience(s *scope, c *v1.Channel, next *v1.ChannelStatus, now time.Time) time.Duration {
	state := signature(next)
	if s.memory.differs != state {
		s.memory.differs, s.memory.differsSince = state, now
	}
	left := settling - now.Sub(s.memory.differsSince)
	disturbedAt := s.live.DisturbedAt
	if disturbedAt.IsZero() {
		disturbedAt = r.startedAt // its session has not even begun
	}
	if sameDecision(c, next) && !s.memory.settledAt.After(disturbedAt) {
		left = max(left, outageGrace-now.Sub(disturbedAt))
	}
	return left
}

// sameDecision reports whether the written status is about the same decision and spec as the next.
func sameDecision(c *v1.Channel, next *v1.ChannelStatus) bool {
	if c.Status.ObservedGeneration != c.Generation || c.Status.Desired != next.Desired {
		return false
	}
	a, b := c.Status.Decision, next.Decision
	return b == nil || b.Revision == 0 || (a != nil && a.Revision == b.Revision)
}

// signature tells states apart that a person would call different.
func signature(status *v1.ChannelStatus) string {
	parts := []string{status.Desired, string(status.Registration), string(status.Transport)}
	for _, c := range status.Conditions {
		parts = append(parts, c.Type, string(c.Status), c.Reason)
	}
	return strings.Join(parts, "|")
}
