// Package lease is the leader election's Lease, as this process holds it. Its term goes out with
// every dial: a connector lets a host with a later term take over from one with an earlier.
package lease

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"mcpl.dev/operator/internal/session"
)

// The times of the election: how long a Lease holds, how long its holder tries to renew it, and
// how often.
const (
	Duration      = 15 * time.Second
	RenewDeadline = 10 * time.Second
	RetryPeriod   = 2 * time.Second
)

// Lease is the Lease that the managers of one installation compete for.
type Lease struct {
	namespace, name string
	identity        string
	leases          coordinationv1.CoordinationV1Interface
	lock            resourcelock.Interface
}

// New makes a Lease with an identity of this process's own. Its client is no other's, so that no
// queue of theirs delays a renewal.
func New(config *rest.Config, namespace, name string) (*Lease, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("finding this host's name for the leader election: %w", err)
	}
	config = rest.AddUserAgent(config, "leader-election")
	config.QPS = -1
	config.Timeout = RenewDeadline / 2
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	l := &Lease{namespace: namespace, name: name, identity: host + "_" + uuid.NewString(), leases: clients.CoordinationV1()}
	l.lock, err = resourcelock.New(resourcelock.LeasesResourceLock, namespace, name, clients.CoreV1(), l.leases,
		resourcelock.ResourceLockConfig{Identity: l.identity})
	return l, err
}

// Lock is the lock for the leader election.
func (l *Lease) Lock() resourcelock.Interface { return l.lock }

// ErrNotHeld says that another process holds the Lease: this one must not speak to connectors.
var ErrNotHeld = errors.New("this manager does not hold the leader election's Lease")

// Identity is how this process presents itself to a connector. It reads the Lease itself: a
// process that was overtaken without noticing must not appear with the new holder's term.
func (l *Lease) Identity(ctx context.Context) (session.Identity, error) {
	lease, err := l.leases.Leases(l.namespace).Get(ctx, l.name, metav1.GetOptions{})
	if err != nil {
		return session.Identity{}, errors.New("the leader election's Lease can not be read")
	}
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity != l.identity {
		return session.Identity{}, ErrNotHeld
	}
	transitions := int32(0)
	if lease.Spec.LeaseTransitions != nil {
		transitions = *lease.Spec.LeaseTransitions
	}
	return session.Identity{
		Term: fmt.Sprintf("%d.%d", lease.CreationTimestamp.Unix(), transitions),
		Host: l.identity,
	}, nil
}
