package controllers

import (
	"context"
	"fmt"
	"net"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/internal/lease"
	"mcpl.dev/operator/internal/ledger"
	"mcpl.dev/operator/internal/session"
)

// Options of the controllers. The zero value is what the manager runs with.
type Options struct {
	// Clock is the time, all of it. Default: the real one.
	Clock clock.WithTicker
	// NewID makes the ids of records. Default: random UUIDs.
	NewID func() string
	// Timing of redials. Default: session.DefaultTiming.
	Timing session.Timing
	// Workers is how many channels are reconciled at once. Default 16.
	Workers int
	// Identity is how the manager presents itself to connectors, see lease.Lease. Required.
	Identity func(context.Context) (session.Identity, error)
	// AllowURLs lets Connectors have a url; AllowedNetworks lets those lead to addresses that are otherwise denied.
	AllowURLs       bool
	AllowedNetworks []*net.IPNet
	// Version is what the manager calls itself.
	Version string
}

// ManagerOptions are those that the controllers rely on: their kinds, a cache that keeps what they
// read, a client that sees its own writes, and leader election by lock, always. Without namespaces
// all are served.
func ManagerOptions(lock resourcelock.Interface, namespaces ...string) ctrl.Options {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1.AddToScheme(scheme))
	options := ctrl.Options{
		Scheme: scheme,
		Cache:  cacheOptions(),
		Client: client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: ptr.To(true)}},

		LeaderElection:                      true,
		LeaderElectionResourceLockInterface: lock,
		LeaderElectionReleaseOnCancel:       true,
		LeaseDuration:                       ptr.To(lease.Duration),
		RenewDeadline:                       ptr.To(lease.RenewDeadline),
		RetryPeriod:                         ptr.To(lease.RetryPeriod),
	}
	for _, namespace := range namespaces {
		if options.Cache.DefaultNamespaces == nil {
			options.Cache.DefaultNamespaces = map[string]cache.Config{}
		}
		options.Cache.DefaultNamespaces[namespace] = cache.Config{}
	}
	return options
}

// cacheOptions says what of the objects is kept in memory: nobody reads who wrote which field, of
// a record only what tells that somebody else wrote it, and of a pod only what says where it is.
func cacheOptions() cache.Options {
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&v1.ChannelRecord{}: {Transform: stripRecord},
			&corev1.Pod{}:       {Transform: stripPod},
		},
	}
}

func stripRecord(o any) (any, error) {
	if record, ok := o.(*v1.ChannelRecord); ok {
		record.ManagedFields, record.History, record.LabelSightings = nil, nil, nil
	}
	return o, nil
}

func stripPod(o any) (any, error) {
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return o, nil
	}
	pod.ManagedFields, pod.Annotations = nil, nil
	containers := make([]corev1.Container, len(pod.Spec.Containers))
	for i, c := range pod.Spec.Containers {
		containers[i] = corev1.Container{Name: c.Name, Ports: c.Ports}
	}
	pod.Spec = corev1.PodSpec{Containers: containers}
	return pod, nil
}

// Setup adds the controllers to a manager, whose options come from ManagerOptions. It returns the
// owner of the channels, which whoever has words for them engages.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) (*ChannelReconciler, error) {
	o = o.withDefaults()
	if err := addIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return nil, fmt.Errorf("adding the cache's indexes: %w", err)
	}
	recorder := mgr.GetEventRecorder("mcpl-operator")
	reads := resolver{cache: mgr.GetCache()}
	w := &wake{cache: mgr.GetCache(), recorder: recorder}
	log := ledger.New(mgr.GetAPIReader(), mgr.GetClient(), o.Clock, o.NewID)
	dialer := &session.NetDialer{
		Secrets: mgr.GetAPIReader(), Identity: o.Identity, AllowURLs: o.AllowURLs, AllowedNetworks: o.AllowedNetworks,
	}
	sessions := session.NewRegistry(log, w, dialer, o.Clock, o.Timing, o.Version)
	if err := mgr.Add(sessions); err != nil {
		return nil, err
	}
	channels := &ChannelReconciler{
		Client: mgr.GetClient(), resolver: reads, ledger: log, sessions: sessions, recorder: recorder, wake: w, clock: o.Clock,
	}
	connectors := &ConnectorReconciler{
		Client: mgr.GetClient(), resolver: reads, sessions: sessions, clock: o.Clock, reported: map[types.NamespacedName]reported{},
		wakeChannels: func(ctx context.Context, c *v1.Connector) {
			for _, key := range channels.ofConnector(ctx, c) {
				w.Channel(key)
			}
		},
	}
	decisions := &DecisionReconciler{Client: mgr.GetClient(), resolver: reads, clock: o.Clock}
	for _, err := range []error{
		channels.setup(mgr, w, o.Workers), connectors.setup(mgr, w, o.Workers), decisions.setup(mgr, o.Workers),
	} {
		if err != nil {
			return nil, err
		}
	}
	return channels, nil
}

func (o Options) withDefaults() Options {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.NewID == nil {
		o.NewID = uuid.NewString
	}
	if o.Timing == (session.Timing{}) {
		o.Timing = session.DefaultTiming()
	}
	if o.Workers == 0 {
		o.Workers = 16
	}
	return o
}
