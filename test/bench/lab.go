package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"mcpl.dev/operator/controllers"
	"mcpl.dev/operator/test/cluster"
)

// Parallelism is how many clients write at once, as many as the manager has workers.
const Parallelism = 16

// poll is how often a state that nothing announces is looked at, and patience how long.
const (
	poll     = 20 * time.Millisecond
	patience = 2 * time.Minute
)

// Lab is a control plane to measure in.
type Lab struct {
	Cluster *cluster.Cluster
	// admin is the client of those who create what the operator acts on.
	admin client.WithWatch
	// manager is the configuration of the operator's user, and asManager a plain client of it.
	manager   *rest.Config
	asManager client.Client
}

// NewLab starts a control plane.
func NewLab(ctx context.Context) (*Lab, error) {
	c, err := cluster.Start(ctx)
	if err != nil {
		return nil, err
	}
	l := &Lab{Cluster: c}
	if err := l.connect(); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return l, nil
}

func (l *Lab) connect() (err error) {
	options := client.Options{Scheme: controllers.ManagerOptions(nil).Scheme}
	if l.admin, err = client.NewWithWatch(l.Cluster.Config, options); err != nil {
		return err
	}
	if l.manager, err = l.Cluster.User(cluster.ManagerUser); err != nil {
		return err
	}
	l.asManager, err = client.New(l.manager, options)
	return err
}

// Close stops the control plane.
func (l *Lab) Close() error { return l.Cluster.Stop() }

func (l *Lab) namespace(ctx context.Context, name string) error {
	return l.admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

// watch has the objects of a list seen whenever they change from now on, until stop. Where the API
// server ends a watch, because a busy machine did not keep up with it, another one follows, which
// begins with all objects as they are.
func (l *Lab) watch(ctx context.Context, namespace string, list client.ObjectList, see func(client.Object)) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	// All that are there already would be sent to begin with, and cost what is to be measured.
	err = l.admin.List(ctx, list, client.InNamespace(namespace), client.Limit(1))
	if err != nil {
		cancel()
		return nil, err
	}
	now := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}}
	watcher, err := l.admin.Watch(ctx, list, client.InNamespace(namespace), now)
	if err != nil {
		cancel()
		return nil, err
	}
	var watching sync.WaitGroup
	watching.Go(func() {
		for err := error(nil); err == nil; watcher, err = l.admin.Watch(ctx, list, client.InNamespace(namespace)) {
			for event := range watcher.ResultChan() {
				if o, ok := event.Object.(client.Object); ok {
					see(o)
				}
			}
			watcher.Stop()
		}
	})
	return func() {
		cancel()
		watching.Wait()
	}, nil
}

// eventually waits until a condition holds.
func eventually(ctx context.Context, what string, holds func(context.Context) (bool, error)) error {
	if err := wait.PollUntilContextTimeout(ctx, poll, patience, true, holds); err != nil {
		return fmt.Errorf("waiting until %s: %w", what, err)
	}
	return nil
}

// inParallel does n things, so many at once, and tells how long that took. It stops at the first error.
func inParallel(ctx context.Context, workers, n int, do func(ctx context.Context, i int) error) (time.Duration, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	begun := time.Now()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				if err := do(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	wg.Wait()
	return time.Since(begun), context.Cause(ctx)
}
