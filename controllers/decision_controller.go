package controllers

import (
	"context"
	"slices"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/internal/decision"
)

// DecisionReconciler takes care of ChannelDecisions that no channel's owner does: those whose
// channel is not there yet, and those that were answered long ago.
type DecisionReconciler struct {
	client.Client
	resolver
	clock clock.PassiveClock
}

// +kubebuilder:rbac:groups=mcpl.dev,resources=channeldecisions,verbs=get;list;watch;delete

func (r *DecisionReconciler) setup(mgr ctrl.Manager, workers int) error {
	return builder.ControllerManagedBy(mgr).
		Named("channeldecision").
		For(&v1.ChannelDecision{}).
		Watches(&v1.Channel{}, handler.EnqueueRequestsFromMapFunc(r.waitingFor)).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(r)
}

// waitingFor finds the decisions that name a Channel and are not answered.
func (r *DecisionReconciler) waitingFor(ctx context.Context, o client.Object) []reconcile.Request {
	var list v1.ChannelDecisionList
	err := r.cache.List(ctx, &list, client.InNamespace(o.GetNamespace()), client.MatchingFields{byChannel: nameSubject(o.GetName())})
	if err != nil {
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if list.Items[i].Status.CompletedAt == nil {
			requests = append(requests, reconcile.Request{NamespacedName: nameOf(&list.Items[i])})
		}
	}
	return requests
}

// Reconcile lets a decision wait for its channel, leaves it to the channel's owner, or removes it.
func (r *DecisionReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var d v1.ChannelDecision
	if err := r.Get(ctx, req.NamespacedName, &d); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	switch {
	case !d.DeletionTimestamp.IsZero():
		return reconcile.Result{}, nil
	case d.Status.CompletedAt != nil:
		return r.expire(ctx, &d)
	}
	if _, ok := r.decision(ctx, &d); ok {
		return reconcile.Result{}, nil // the channel's owner sees it, too
	}
	return r.await(ctx, &d)
}

// await says that a decision waits for its Channel, and ends that when its deadline has passed.
func (r *DecisionReconciler) await(ctx context.Context, d *v1.ChannelDecision) (reconcile.Result, error) {
	waited, deadline := r.clock.Since(d.CreationTimestamp.Time), deadlineOf(d)
	switch {
	case waited < min(settling, deadline):
		return reconcile.Result{RequeueAfter: min(settling, deadline) - waited}, nil
	case waited < deadline:
		if err := tellAbsent(ctx, r.Client, r.clock, d); err != nil {
			return reconcile.Result{}, err
		}
		return reconcile.Result{RequeueAfter: deadline - waited}, nil
	}
	next := d.DeepCopy()
	conclusion{Answer: decision.NeverAppeared(decision.Situation{})}.write(d, next, r.clock.Now())
	return reconcile.Result{}, patchDecisionStatus(ctx, r.Client, d, next)
}

// expire removes a finished decision whose name was generated, once its time is over or newer ones
// have taken its place. One with a name of its own stays: somebody keeps it.
func (r *DecisionReconciler) expire(ctx context.Context, d *v1.ChannelDecision) (reconcile.Result, error) {
	if d.GenerateName == "" {
		return reconcile.Result{}, nil
	}
	finished, limit, err := r.finished(ctx, d)
	if err != nil {
		return reconcile.Result{}, err
	}
	rank := slices.IndexFunc(finished, func(other v1.ChannelDecision) bool { return other.UID == d.UID })
	left := decision.Keep(r.clock.Since(d.Status.CompletedAt.Time), ttl(d), rank, limit)
	if left > 0 {
		return reconcile.Result{RequeueAfter: left}, r.expireOldest(ctx, d, finished, limit)
	}
	return reconcile.Result{}, client.IgnoreNotFound(r.Delete(ctx, d, client.Preconditions{UID: &d.UID}))
}

// expireOldest has the decision that this one has pushed out of the newest few looked at.
func (r *DecisionReconciler) expireOldest(ctx context.Context, d *v1.ChannelDecision, finished []v1.ChannelDecision, limit int) error {
	for i := limit; i < len(finished); i++ {
		old := &finished[i]
		if old.UID != d.UID && decision.Keep(r.clock.Since(old.Status.CompletedAt.Time), ttl(old), i, limit) <= 0 {
			if err := r.Delete(ctx, old, client.Preconditions{UID: &old.UID}); client.IgnoreNotFound(err) != nil {
				return err
			}
		}
	}
	return nil
}

// finished lists the answered decisions of the same channel with generated names, newest first,
// and how many of them are kept.
func (r *DecisionReconciler) finished(ctx context.Context, d *v1.ChannelDecision) ([]v1.ChannelDecision, int, error) {
	var list v1.ChannelDecisionList
	err := r.cache.List(ctx, &list, client.InNamespace(d.Namespace), client.MatchingFields{byChannel: decisionSubject(d)})
	if err != nil {
		return nil, 0, err
	}
	list.Items = slices.DeleteFunc(list.Items, func(o v1.ChannelDecision) bool { return o.Status.CompletedAt == nil || o.GenerateName == "" })
	slices.SortFunc(list.Items, func(a, b v1.ChannelDecision) int {
		if c := b.Status.CompletedAt.Compare(a.Status.CompletedAt.Time); c != 0 {
			return c
		}
		return int(b.Status.Revision - a.Status.Revision)
	})
	var channels v1.ChannelList
	err = r.cache.List(ctx, &channels, client.InNamespace(d.Namespace), client.MatchingFields{byChannelID: d.Status.ChannelID})
	if err != nil {
		return nil, 0, err
	}
	for i := range channels.Items {
		if key, _ := r.channel(ctx, &channels.Items[i]); key.ServerID == d.Status.ServerID {
			return list.Items, historyLimit(&channels.Items[i]), nil
		}
	}
	return list.Items, historyLimit(nil), nil
}

func ttl(d *v1.ChannelDecision) time.Duration {
	if d.Spec.TTLSecondsAfterFinished == nil {
		return 24 * time.Hour
	}
	return time.Duration(*d.Spec.TTLSecondsAfterFinished) * time.Second
}
