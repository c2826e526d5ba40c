package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/controllers"
	"mcpl.dev/operator/internal/lease"
	"mcpl.dev/operator/test/connector"
)

// Size of a fleet.
type Size struct {
	Connectors, ChannelsEach int
}

// Channels is how many there are in all.
func (s Size) Channels() int { return s.Connectors * s.ChannelsEach }

// Fleet is a namespace with connectors that serve declared channels only, and a manager for it.
type Fleet struct {
	lab       *Lab
	namespace string
	size      Size
	mode      v1.SubscriptionMode
	// Clock of the manager. Default: the real one.
	Clock clock.WithTicker
	// Waiting, if set, is called again and again while the Connectors are waited for: a test moves
	// its clock.
	Waiting func()

	connectors []*connector.Connector
	declared   int // how many Channels there are
	tally      Tally
	stop       func() error // nil while no manager runs
}

// NewFleet starts the connectors and writes their Pods and Connectors. No Channel is declared yet.
func NewFleet(ctx context.Context, lab *Lab, namespace string, size Size, mode v1.SubscriptionMode) (*Fleet, error) {
	f := &Fleet{lab: lab, namespace: namespace, size: size, mode: mode}
	if err := lab.namespace(ctx, namespace); err != nil {
		return nil, err
	}
	for i := range size.Connectors {
		if err := f.connector(ctx, f.connectorName(i)); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return f, nil
}

func (f *Fleet) connectorName(i int) string { return fmt.Sprintf("connector-%02d", i) }

func (f *Fleet) connector(ctx context.Context, name string) error {
	c, err := connector.Start(context.Background(), connector.Options{
		ServerName:  name,
		Channels:    connector.Generate(name, f.size.ChannelsEach),
		Fence:       true, // as the bridge: a new manager takes over from the old one
		JournalKeep: -1,
	})
	if err != nil {
		return err
	}
	f.connectors = append(f.connectors, c)
	labels := map[string]string{"app": name}
	if _, err := f.lab.Cluster.WritePod(ctx, f.namespace, name+"-0", labels, c.Addr()); err != nil {
		return err
	}
	return f.lab.admin.Create(ctx, &v1.Connector{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name},
		Spec: v1.ConnectorSpec{
			ResidentRef:  v1.NameReference{Name: resident},
			PodSelector:  &metav1.LabelSelector{MatchLabels: labels},
			Transport:    v1.ConnectorTransport{Insecure: true},
			Subscription: v1.Subscription{Mode: f.mode},
			Channels:     v1.ChannelsDeclared,
		},
	})
}

// resident is whose channels they are.
const resident = "scout"

// Close ends the manager and the connectors.
func (f *Fleet) Close() error {
	err := f.StopManager()
	for _, c := range f.connectors {
		err = errors.Join(err, c.Close())
	}
	return err
}

// StartManager starts a manager in this process. What it asks of the API server is counted.
func (f *Fleet) StartManager() error {
	election, err := lease.New(f.lab.manager, "mcpl-system", f.namespace)
	if err != nil {
		return err
	}
	config := rest.CopyConfig(f.lab.manager)
	config.Wrap(f.tally.Wrap)
	options := controllers.ManagerOptions(election.Lock(), f.namespace)
	options.Metrics = metricsserver.Options{BindAddress: "0"}
	options.Controller.SkipNameValidation = ptr.To(true) // metrics are the process's, and there is one manager after the other
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	if _, err := controllers.Setup(ctx, mgr, controllers.Options{Identity: election.Identity, Clock: f.Clock}); err != nil {
		cancel()
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	f.stop = func() error {
		cancel()
		return <-ended
	}
	return nil
}

// StopManager stops the manager, if one runs.
func (f *Fleet) StopManager() error {
	if f.stop == nil {
		return nil
	}
	err := f.stop()
	f.stop = nil
	return err
}

// Sample is what has been counted so far.
func (f *Fleet) Sample() (Sample, error) { return sample(&f.tally) }

// Since is what has been counted since a sample.
func (f *Fleet) Since(earlier Sample) (Sample, error) {
	now, err := f.Sample()
	return now.since(earlier), err
}

// AwaitConnected waits until every connector has been asked to open or close each of its channels
// and every Connector says, of its n-th session, that all has come to rest.
func (f *Fleet) AwaitConnected(ctx context.Context, session int64) error {
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, c := range f.connectors {
		if err := c.WaitUntil(waiting, func() bool { return operations(c) >= f.size.ChannelsEach }); err != nil {
			return fmt.Errorf("a connector was asked for %d opens and closes of its %d channels: %w", operations(c), f.size.ChannelsEach, err)
		}
	}
	return f.AwaitConnectors(ctx, session)
}

// operations are the opens and closes that a connector has been asked for.
func operations(c *connector.Connector) int {
	return c.Count("channels/open", "") + c.Count("channels/close", "")
}

// AwaitConnectors waits until every Connector says that what should be open is, and nothing else.
func (f *Fleet) AwaitConnectors(ctx context.Context, session int64) error {
	want := v1.ChannelCounts{Registered: int32(f.size.ChannelsEach)}
	if f.mode == v1.SubscriptionAuto {
		want.Open = int32(f.declared / f.size.Connectors)
	}
	return eventually(ctx, "every Connector is at rest", func(ctx context.Context) (bool, error) {
		if f.Waiting != nil {
			f.Waiting()
		}
		var list v1.ConnectorList
		if err := f.lab.admin.List(ctx, &list, client.InNamespace(f.namespace)); err != nil {
			return false, err
		}
		for i := range list.Items {
			status := &list.Items[i].Status
			if status.SessionGeneration != session || status.Channels == nil || *status.Channels != want ||
				!meta.IsStatusConditionTrue(status.Conditions, v1.ConditionReady) {
				return false, nil
			}
		}
		return len(list.Items) == f.size.Connectors, nil
	})
}

// Subscribe gives all Connectors another subscription.
func (f *Fleet) Subscribe(ctx context.Context, mode v1.SubscriptionMode) error {
	f.mode = mode
	for i := range f.size.Connectors {
		c := &v1.Connector{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: f.connectorName(i)}}
		patch := fmt.Appendf(nil, `{"spec":{"subscription":{"mode":%q}}}`, mode)
		if err := f.lab.admin.Patch(ctx, c, client.RawPatch(types.MergePatchType, patch)); err != nil {
			return err
		}
	}
	return nil
}

// channelName is the name of the i-th Channel, which is one of connector i mod the number of connectors.
func (f *Fleet) channelName(i int) string {
	return fmt.Sprintf("%s-c%d", f.connectorName(i%f.size.Connectors), i/f.size.Connectors+1)
}

// newChannel is the i-th Channel of a fleet, as somebody declares it in a namespace.
func (f *Fleet) newChannel(namespace string, i int) *v1.Channel {
	name := f.connectorName(i % f.size.Connectors)
	return &v1.Channel{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: f.channelName(i)},
		Spec: v1.ChannelSpec{
			ConnectorRef: v1.NameReference{Name: name},
			ChannelID:    fmt.Sprintf("%s:c%d", name, i/f.size.Connectors+1),
		},
	}
}

// Declare creates Channels until there are n, several at once, and waits until all are Ready. It
// tells how long that took.
func (f *Fleet) Declare(ctx context.Context, n int) (time.Duration, error) {
	ready, err := f.watchReady(ctx, n)
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	if _, err := inParallel(ctx, Parallelism, n-f.declared, func(ctx context.Context, i int) error {
		return f.lab.admin.Create(ctx, f.newChannel(f.namespace, f.declared+i))
	}); err != nil {
		return 0, err
	}
	err = ready()
	f.declared = n
	return time.Since(begun), err
}

// watchReady begins to watch the Channels, and returns what waits until n are Ready.
func (f *Fleet) watchReady(ctx context.Context, n int) (await func() error, err error) {
	done := make(chan struct{})
	awaited := map[string]bool{}
	for i := f.declared; i < n; i++ {
		awaited[f.channelName(i)] = true
	}
	stop, err := f.lab.watch(ctx, f.namespace, &v1.ChannelList{}, func(o client.Object) {
		c := o.(*v1.Channel)
		if !awaited[c.Name] || !meta.IsStatusConditionTrue(c.Status.Conditions, v1.ConditionReady) {
			return
		}
		delete(awaited, c.Name)
		if len(awaited) == 0 {
			close(done)
		}
	})
	if err != nil {
		return nil, err
	}
	return func() error {
		defer stop()
		select {
		case <-done:
			return nil
		case <-time.After(patience):
			return fmt.Errorf("after %s not all of %d Channels are Ready", patience, n)
		case <-ctx.Done():
			return ctx.Err()
		}
	}, nil
}

// awaitReady waits until so many Channels are Ready in a state.
func (f *Fleet) awaitReady(ctx context.Context, desired v1.State, n int) error {
	return eventually(ctx, fmt.Sprintf("%d Channels are Ready and %s", n, desired), func(ctx context.Context) (bool, error) {
		var list v1.ChannelList
		if err := f.lab.admin.List(ctx, &list, client.InNamespace(f.namespace)); err != nil {
			return false, err
		}
		ready := 0
		for i := range list.Items {
			status := &list.Items[i].Status
			if status.Desired == string(desired) && meta.IsStatusConditionTrue(status.Conditions, v1.ConditionReady) {
				ready++
			}
		}
		return ready == n, nil
	})
}

// Restart stops the manager and starts another. It waits until every channel is confirmed again,
// and tells how long that took from the start of the new one.
func (f *Fleet) Restart(ctx context.Context, session int64) (time.Duration, error) {
	for _, c := range f.connectors {
		c.Reset()
	}
	if err := f.StopManager(); err != nil {
		return 0, err
	}
	begun := time.Now()
	if err := f.StartManager(); err != nil {
		return 0, err
	}
	err := f.AwaitConnected(ctx, session)
	return time.Since(begun), err
}

// Operations are the fewest and the most opens and closes that any channel has had since the last restart.
func (f *Fleet) Operations() (fewest, most int) {
	fewest = math.MaxInt
	for _, c := range f.connectors {
		for _, d := range c.Channels() {
			n := c.Count("channels/open", d.ID) + c.Count("channels/close", d.ID)
			fewest, most = min(fewest, n), max(most, n)
		}
	}
	return fewest, most
}

// AwaitQuiet waits until nothing has been counted for a while.
func (f *Fleet) AwaitQuiet(ctx context.Context, quiet time.Duration) error {
	last, err := f.Sample()
	since := time.Now()
	if err != nil {
		return err
	}
	return eventually(ctx, "nothing is written or reconciled any more", func(context.Context) (bool, error) {
		d, err := f.Since(last)
		if err != nil {
			return false, err
		}
		if d.Requests.Writes("") > 0 || d.AllReconciles() > 0 {
			since = time.Now()
			last, err = f.Sample()
		}
		return time.Since(since) >= quiet, err
	})
}
