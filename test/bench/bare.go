package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/internal/pair"
)

// Bare is how long the writes take that nobody can do without, made by plain clients: what it takes
// to declare Channels, without an operator.
type Bare struct {
	// Create, Append and Patch are the times for all objects: the Channels made, their records made,
	// and their statuses written, one after the other.
	Create, Append, Patch time.Duration
}

// Total is the time for all of it.
func (b Bare) Total() time.Duration { return b.Create + b.Append + b.Patch }

// Plus adds another measurement to this one.
func (b Bare) Plus(o Bare) Bare {
	return Bare{Create: b.Create + o.Create, Append: b.Append + o.Append, Patch: b.Patch + o.Patch}
}

// Bare makes n Channels of the fleet's shape in a namespace that no manager serves, with a record
// each if the fleet's subscription opens channels, and writes their statuses, as many at once as the
// operator does and as the same users.
func (f *Fleet) Bare(ctx context.Context, namespace string, n int) (b Bare, err error) {
	if err := f.lab.namespace(ctx, namespace); err != nil {
		return b, err
	}
	channels := make([]*v1.Channel, n)
	b.Create, err = inParallel(ctx, Parallelism, n, func(ctx context.Context, i int) error {
		channels[i] = f.newChannel(namespace, i)
		return f.lab.admin.Create(ctx, channels[i])
	})
	if err != nil {
		return b, err
	}
	opens := f.mode == v1.SubscriptionAuto
	if opens {
		b.Append, err = inParallel(ctx, Parallelism, n, func(ctx context.Context, i int) error {
			return f.lab.asManager.Create(ctx, firstRecord(channels[i]))
		})
		if err != nil {
			return b, err
		}
	}
	b.Patch, err = inParallel(ctx, Parallelism, n, func(ctx context.Context, i int) error {
		next := channels[i].DeepCopy()
		next.Status = settledStatus(next, opens)
		return f.lab.asManager.Status().Patch(ctx, next, client.MergeFromWithOptions(channels[i], client.MergeFromWithOptimisticLock{}))
	})
	return b, err
}

// firstRecord is the record of a channel that a subscription opened.
func firstRecord(c *v1.Channel) *v1.ChannelRecord {
	key := pair.Key{Namespace: c.Namespace, ServerID: c.Spec.ConnectorRef.Name, ChannelID: c.Spec.ChannelID}
	record := &v1.ChannelRecord{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: key.RecordName()},
		ServerID:   key.ServerID, ChannelID: key.ChannelID,
	}
	appendTo(record, v1.StateOpen, v1.SourceSubscriptionPolicy, "", nil)
	return record
}

// appendTo makes a decision the newest of a record, as the operator does.
func appendTo(r *v1.ChannelRecord, state v1.State, source v1.Source, by string, ref *v1.DecisionReference) {
	changed := true
	r.Revision++
	r.Record = v1.Record{ID: uuid.NewString(), State: state, Source: source, DecidedBy: by, DecisionRef: ref, At: metav1.Now()}
	r.History = append([]v1.HistoryEntry{{Revision: r.Revision, Changed: &changed, Record: r.Record}}, r.History...)
	r.LabelSightings = &v1.LabelSightings{Last: "#c1", Seen: []string{"#c1"}}
}

// settledStatus is as large as what the operator writes about a channel that has settled.
func settledStatus(c *v1.Channel, open bool) v1.ChannelStatus {
	state, source, transport := v1.StateClosed, v1.SourceDefaultClosed, v1.TransportClosed
	s := v1.ChannelStatus{
		ObservedGeneration: c.Generation, ServerID: c.Spec.ConnectorRef.Name,
		Label: "#c1", Type: "connector", Direction: "bidirectional", Registration: v1.RegistrationDeclared,
		Decision: &v1.DecisionInForce{},
	}
	if open {
		now := metav1.Now()
		state, source, transport = v1.StateOpen, v1.SourceSubscriptionPolicy, v1.TransportOpen
		s.Decision.Revision, s.Decision.DecidedAt = 1, &now
	}
	s.Desired, s.Transport, s.Decision.State, s.Decision.Source = string(state), transport, state, source
	for _, kind := range []string{v1.ConditionRegistered, v1.ConditionSettled, v1.ConditionReady} {
		s.Conditions = append(s.Conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, ObservedGeneration: c.Generation, LastTransitionTime: metav1.Now(),
			Reason: string(state), Message: fmt.Sprintf("The connector has confirmed that the channel is %s.", state),
		})
	}
	return s
}
