package controllers

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/internal/pair"
	"mcpl.dev/operator/internal/session"
)

// connectorPause is how long a Connector's reconciliation waits for more of the same: a hundred
// channels that settle are one change of its counts.
const connectorPause = 200 * time.Millisecond

// wake puts what sessions report onto the queues of the reconcilers. It never blocks.
type wake struct {
	cache    client.Reader
	recorder events.EventRecorder

	mu sync.Mutex
	// early are the channels that were woken before their owner had a queue: sessions begin when
	// Connectors are read, which may be before the records are.
	early      []pair.Key
	channels   workqueue.TypedRateLimitingInterface[pair.Key]
	connectors workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// channelSource hands over the queue of the channels' owner, after first has run: no worker starts
// before its sources have.
func (w *wake) channelSource(first func(context.Context) error) source.TypedSource[pair.Key] {
	return source.TypedFunc[pair.Key](func(ctx context.Context, q workqueue.TypedRateLimitingInterface[pair.Key]) error {
		if err := first(ctx); err != nil {
			return err
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.channels = q
		for _, key := range w.early {
			q.Add(key)
		}
		w.early = nil
		return nil
	})
}

func (w *wake) connectorSource() source.Source {
	return source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.connectors = q
		return nil
	})
}

// Channel implements session.Notify.
func (w *wake) Channel(key pair.Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.channels != nil {
		w.channels.Add(key)
	} else {
		w.early = append(w.early, key)
	}
}

// Connector implements session.Notify.
func (w *wake) Connector(name types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.connectors != nil {
		w.connectors.AddAfter(reconcile.Request{NamespacedName: name}, connectorPause)
	}
}

// maxNamed is how many channels a notice names; further ones are counted.
const maxNamed = 20

// PolicyNotice implements session.Notify.
func (w *wake) PolicyNotice(connector types.NamespacedName, labels []string) {
	text := strings.Join(labels[:min(len(labels), maxNamed)], ", ")
	if more := len(labels) - maxNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	w.Event(connector, "SelectedByPolicy", "the subscription selected for opening: "+text)
}

// Event implements session.Notify.
func (w *wake) Event(connector types.NamespacedName, reason, message string) {
	var object v1.Connector
	if err := w.cache.Get(context.Background(), connector, &object); err != nil {
		return // nobody can look up an event about an object that is gone
	}
	kind := corev1.EventTypeNormal
	switch reason {
	case session.EventOpenSubstituted, session.EventReconcileFailed, session.EventDescriptorRejected, session.EventIncomingRejected:
		kind = corev1.EventTypeWarning
	}
	w.recorder.Eventf(&object, nil, kind, reason, "Session", "%s", message)
}
