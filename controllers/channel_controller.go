package controllers

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/internal/ledger"
	"mcpl.dev/operator/internal/pair"
	"mcpl.dev/operator/internal/session"
)

// ChannelReconciler owns the channels. Its key is a channel's pair, and the work queue's one worker
// for a key is the channel's lock.
type ChannelReconciler struct {
	client.Client
	resolver
	ledger   *ledger.Ledger
	sessions *session.Registry
	recorder events.EventRecorder
	wake     *wake
	clock    clock.PassiveClock
	// startedAt is when this manager began to lead: what was decided before it is found, not made.
	startedAt time.Time

	memories memories
}

// +kubebuilder:rbac:groups=mcpl.dev,resources=channels,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=mcpl.dev,resources=channels/status,verbs=patch
// +kubebuilder:rbac:groups=mcpl.dev,resources=channeldecisions,verbs=get;list;watch
// +kubebuilder:rbac:groups=mcpl.dev,resources=channeldecisions/status,verbs=patch
// +kubebuilder:rbac:groups=mcpl.dev,resources=channelrecords,verbs=get;list;watch;create;update
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

func (r *ChannelReconciler) setup(mgr ctrl.Manager, w *wake, workers int) error {
	return builder.TypedControllerManagedBy[pair.Key](mgr).
		Named("channel").
		Watches(&v1.Channel{}, &handler.TypedFuncs[client.Object, pair.Key]{
			CreateFunc: func(ctx context.Context, e event.CreateEvent, q queueOf) { r.enqueueChannel(ctx, e.Object, q) },
			UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queueOf) { r.enqueueChannel(ctx, e.ObjectNew, q) },
			DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queueOf) { r.enqueueChannel(ctx, e.Object, q) },
		}).
		Watches(&v1.ChannelDecision{}, handler.TypedEnqueueRequestsFromMapFunc(r.ofDecision), builder.WithPredicates(unanswered)).
		Watches(&v1.Connector{}, handler.TypedEnqueueRequestsFromMapFunc(r.ofConnector), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1.ChannelRecord{}, &handler.TypedFuncs[client.Object, pair.Key]{
			CreateFunc: func(_ context.Context, e event.CreateEvent, q queueOf) { r.observeRecord(e.Object, q) },
			UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queueOf) { r.observeRecord(e.ObjectNew, q) },
			DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queueOf) {
				if key := recordKey(e.Object); r.ledger.ObserveDeletion(key) {
					q.Add(key)
				}
			},
		}).
		WatchesRawSource(w.channelSource(r.begin)).
		WithOptions(controller.TypedOptions[pair.Key]{MaxConcurrentReconciles: workers}).
		Complete(r)
}

// begin reads what is decided, before anything is judged or sent.
func (r *ChannelReconciler) begin(ctx context.Context) error {
	r.startedAt = r.clock.Now()
	return r.ledger.Load(ctx)
}

// Reconcile brings one channel forward: gather, decide, act, report.
func (r *ChannelReconciler) Reconcile(ctx context.Context, key pair.Key) (reconcile.Result, error) {
	s, err := r.gather(ctx, key)
	if err != nil {
		return reconcile.Result{}, err
	}
	if !s.known() {
		r.memories.forget(key)
		r.ledger.Forget(key)
		return reconcile.Result{}, nil
	}
	for _, phase := range []func(context.Context, *scope) error{
		r.readRecord, r.overlay, r.admit, r.decide, r.engage, r.resend, r.finalize, r.discover, r.report,
	} {
		err = phase(ctx, s)
		if errors.Is(err, ledger.ErrChanged) {
			// The record is another than the one that was judged: the rules are applied again at once.
			return reconcile.Result{RequeueAfter: time.Millisecond}, nil
		}
		if errors.Is(err, errStoring) {
			return reconcile.Result{RequeueAfter: storeRetry}, nil
		}
		if err != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{RequeueAfter: s.recheck}, nil
}

// enqueueChannel wakes the owner of a Channel, unless the news is what the owner itself wrote.
func (r *ChannelReconciler) enqueueChannel(ctx context.Context, o client.Object, q queueOf) {
	key, _ := r.channel(ctx, o.(*v1.Channel))
	if o.GetDeletionTimestamp().IsZero() && r.memories.wrote(key, o.GetUID(), o.GetResourceVersion()) {
		return
	}
	q.Add(key)
}

func (r *ChannelReconciler) ofDecision(ctx context.Context, o client.Object) []pair.Key {
	if key, ok := r.decision(ctx, o.(*v1.ChannelDecision)); ok {
		return []pair.Key{key}
	}
	return nil
}

// ofConnector finds the channels for which a Connector's coming, going or change may matter.
func (r *ChannelReconciler) ofConnector(ctx context.Context, o client.Object) []pair.Key {
	var keys []pair.Key
	var list v1.ChannelList
	if err := r.cache.List(ctx, &list, client.InNamespace(o.GetNamespace()), client.MatchingFields{byConnector: o.GetName()}); err != nil {
		return nil
	}
	for i := range list.Items {
		key, _ := r.channel(ctx, &list.Items[i])
		keys = append(keys, key)
	}
	var decisions v1.ChannelDecisionList
	if err := r.cache.List(ctx, &decisions, client.InNamespace(o.GetNamespace())); err != nil {
		return keys
	}
	serverID := o.(*v1.Connector).EffectiveServerID()
	for i := range decisions.Items {
		d := &decisions.Items[i]
		if key, ok := r.decision(ctx, d); ok && d.Status.CompletedAt == nil && key.ServerID == serverID {
			keys = append(keys, key)
		}
	}
	return keys
}

func (r *ChannelReconciler) observeRecord(o client.Object, q queueOf) {
	if key := recordKey(o); r.ledger.Observe(key, o.GetResourceVersion()) {
		q.Add(key)
	}
}

func recordKey(o client.Object) pair.Key {
	record := o.(*v1.ChannelRecord)
	return pair.Key{Namespace: record.Namespace, ServerID: record.ServerID, ChannelID: record.ChannelID}
}

// unanswered lets through what may still have to be answered, and deletions: a deleted decision no
// longer keeps its entry in the history.
var unanswered = predicate.NewPredicateFuncs(func(o client.Object) bool {
	return o.(*v1.ChannelDecision).Status.CompletedAt == nil
})

// readRecord makes sure that the record is the one in force.
func (r *ChannelReconciler) readRecord(ctx context.Context, s *scope) error {
	before := r.ledger.Object(s.key)
	err := r.ledger.Refresh(ctx, s.key)
	if before != nil && r.ledger.Object(s.key) == nil && s.channel != nil {
		r.recorder.Eventf(s.channel, nil, "Warning", "RecordDeleted", "Reconcile",
			"somebody deleted ChannelRecord %s: nobody has decided this channel any more", s.key.RecordName())
	}
	if errors.Is(err, ledger.ErrChanged) {
		err = nil // nothing was judged yet
	}
	s.record = r.ledger.Record(s.key)
	return err
}

// overlay notes whether the channel may be open at all: one that is held, or has no object where
// only declared channels are served, is closed whatever is decided. What that changes is applied.
func (r *ChannelReconciler) overlay(_ context.Context, s *scope) error {
	changed := r.ledger.Shut(s.key, s.unserved() || s.hold() != nil)
	if s.session == nil || s.connector == nil {
		return nil
	}
	if s.session.Serve(s.key.ChannelID, !s.unserved()) && !s.unserved() {
		changed = true // an object stands for it now, so it is judged like a new registration
	}
	own := v1.State("")
	if s.channel != nil {
		own = s.channel.Spec.Admission
	}
	if own != s.memory.admission {
		s.memory.admission, changed = own, true
	}
	if suspended := s.suspended(); suspended != s.memory.suspended {
		s.memory.suspended = suspended
		changed = changed || !suspended
	}
	if changed && s.live.Ticket == nil && s.live.Registered && !s.unserved() {
		s.memory.owed = true
	}
	return nil
}

// nameOf is the key of an API object.
func nameOf(o client.Object) types.NamespacedName { return client.ObjectKeyFromObject(o) }
