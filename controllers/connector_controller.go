package controllers

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/internal/session"
)

// ConnectorReconciler gives every Connector its session and reports what becomes of it.
type ConnectorReconciler struct {
	client.Client
	resolver
	sessions *session.Registry
	clock    clock.PassiveClock
	// wakeChannels wakes the owners of the channels of a Connector.
	wakeChannels func(context.Context, *v1.Connector)

	mu sync.Mutex
	// reported is what is remembered of each Connector's reports.
	reported map[types.NamespacedName]reported
}

// reported is what a Connector's reconciler remembers between two reports.
type reported struct {
	state       v1.ConnectorState
	countsAt    time.Time // when the counts were written last
	differs     string    // a state that is not written yet, and since when
	differsFrom time.Time
	written     string // the resource version of the last write
}

// notOwn reports whether a version of a Connector is not the one that this reconciler wrote last.
func (r *ConnectorReconciler) notOwn(o client.Object) bool {
	return r.remembered(nameOf(o)).written != o.GetResourceVersion()
}

// +kubebuilder:rbac:groups=mcpl.dev,resources=connectors,verbs=get;list;watch
// +kubebuilder:rbac:groups=mcpl.dev,resources=connectors/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch

func (r *ConnectorReconciler) setup(mgr ctrl.Manager, w *wake, workers int) error {
	return builder.ControllerManagedBy(mgr).
		Named("connector").
		For(&v1.Connector{}, builder.WithPredicates(predicate.NewPredicateFuncs(r.notOwn))).
		Watches(&v1.Connector{}, handler.EnqueueRequestsFromMapFunc(r.sharingServerID), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(r.selecting)).
		WatchesRawSource(w.connectorSource()).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(r)
}

// Reconcile brings one Connector's session in line with its spec, and reports.
func (r *ConnectorReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var c v1.Connector
	err := r.Get(ctx, req.NamespacedName, &c)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	}
	if err != nil || !c.DeletionTimestamp.IsZero() {
		r.sessions.Remove(req.NamespacedName)
		r.forget(req.NamespacedName)
		return reconcile.Result{}, nil
	}
	serves, err := r.server(ctx, c.Namespace, c.EffectiveServerID())
	if err != nil {
		return reconcile.Result{}, err
	}
	if serves != nil && serves.UID != c.UID {
		r.sessions.Remove(req.NamespacedName)
		return r.report(ctx, &c, duplicate(serves.Name))
	}
	if c.Spec.Suspend {
		r.sessions.Remove(req.NamespacedName)
		if r.stateChanged(req.NamespacedName, v1.ConnectorGone) {
			r.wakeChannels(ctx, &c)
		}
		return r.report(ctx, &c, facts{suspended: true, snapshot: session.Snapshot{State: v1.ConnectorGone}})
	}
	e, err := r.endpoint(ctx, &c)
	if err != nil {
		return reconcile.Result{}, err
	}
	r.sessions.Ensure(req.NamespacedName, c.EffectiveServerID(), configOf(&c, e.target))
	live := r.sessions.Session(c.Namespace, c.EffectiveServerID())
	if live == nil {
		return reconcile.Result{}, nil // the manager is stopping
	}
	snapshot := live.Snapshot()
	if r.stateChanged(req.NamespacedName, snapshot.State) {
		r.wakeChannels(ctx, &c)
	}
	return r.report(ctx, &c, facts{endpoint: e, snapshot: snapshot})
}

// endpoint finds out where the connector is.
func (r *ConnectorReconciler) endpoint(ctx context.Context, c *v1.Connector) (endpoint, error) {
	if c.Spec.PodSelector == nil {
		return urlEndpoint(c), nil
	}
	selector, err := metav1.LabelSelectorAsSelector(c.Spec.PodSelector)
	if err != nil {
		return endpoint{trouble: session.Trouble{Reason: v1.ReasonNoReadyPod, Message: "spec.podSelector is not valid: " + err.Error()}}, nil
	}
	var pods corev1.PodList
	if err := r.cache.List(ctx, &pods, client.InNamespace(c.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return endpoint{}, err
	}
	return podEndpoint(c, pods.Items), nil
}

// configOf is what a Connector's spec makes of its session.
func configOf(c *v1.Connector, target session.Target) session.Config {
	admission, _ := json.Marshal([]any{c.Spec.Subscription, c.Spec.Channels, c.Spec.Hold != nil}) // plain values always marshal
	config := session.Config{
		UID: c.UID, Target: target, MaxChannels: int(c.Spec.MaxChannels), Window: int(c.Spec.Window),
		Admission: string(admission), DialAt: c.Annotations[v1.ReconcileAtAnnotation], Handshakes: c.Status.SessionGeneration, RequestTimeout: time.Minute,
	}
	if c.Spec.RequestTimeoutSeconds != nil {
		config.RequestTimeout = time.Duration(*c.Spec.RequestTimeoutSeconds) * time.Second
	}
	if c.Spec.Grant != nil {
		config.Deny = c.Spec.Grant.Deny
	}
	return config
}

// selecting finds the Connectors whose selector matches a pod.
func (r *ConnectorReconciler) selecting(ctx context.Context, o client.Object) []reconcile.Request {
	var list v1.ConnectorList
	if err := r.cache.List(ctx, &list, client.InNamespace(o.GetNamespace())); err != nil {
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		c := &list.Items[i]
		if c.Spec.PodSelector == nil {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(c.Spec.PodSelector)
		if err == nil && selector.Matches(labels.Set(o.GetLabels())) {
			requests = append(requests, reconcile.Request{NamespacedName: nameOf(c)})
		}
	}
	return requests
}

// sharingServerID finds the other Connectors with the same serverID: when one goes, another serves.
func (r *ConnectorReconciler) sharingServerID(ctx context.Context, o client.Object) []reconcile.Request {
	var list v1.ConnectorList
	err := r.cache.List(ctx, &list, client.InNamespace(o.GetNamespace()),
		client.MatchingFields{byServerID: o.(*v1.Connector).EffectiveServerID()})
	if err != nil {
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if list.Items[i].Name != o.GetName() {
			requests = append(requests, reconcile.Request{NamespacedName: nameOf(&list.Items[i])})
		}
	}
	return requests
}

// stateChanged reports whether the connection's state is another than at the last look.
func (r *ConnectorReconciler) stateChanged(name types.NamespacedName, state v1.ConnectorState) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	remembered := r.reported[name]
	changed := remembered.state != state
	remembered.state = state
	r.reported[name] = remembered
	return changed
}

func (r *ConnectorReconciler) remembered(name types.NamespacedName) reported {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reported[name]
}

func (r *ConnectorReconciler) remember(name types.NamespacedName, what reported) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reported[name] = what
}

func (r *ConnectorReconciler) forget(name types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.reported, name)
}
