package controllers

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/internal/decision"
	"mcpl.dev/operator/internal/ledger"
)

// leavingTime is how long a Channel that closes on deletion may stay, whatever its connector does.
const leavingTime = 60 * time.Second

// finalize keeps the finalizer of a Channel in line with its deletionPolicy, and closes the channel
// of one that is going.
func (r *ChannelReconciler) finalize(ctx context.Context, s *scope) error {
	if s.channel != nil {
		closes := s.channel.Spec.DeletionPolicy == v1.DeletionClose
		if closes != controllerutil.ContainsFinalizer(s.channel, v1.CloseFinalizer) {
			if err := r.setFinalizer(ctx, s.channel, closes); err != nil {
				return err
			}
		}
	}
	for i := range s.leaving {
		if err := r.leave(ctx, s, &s.leaving[i]); err != nil {
			return err
		}
	}
	return nil
}

// leave closes a channel as by a machine with a lease, and lets its object go once that is
// confirmed, or its time is over: the record carries the close out later.
func (r *ChannelReconciler) leave(ctx context.Context, s *scope, c *v1.Channel) error {
	left := leavingTime - r.clock.Since(c.DeletionTimestamp.Time)
	w := s.memory.leaving[c.UID]
	if w == nil && left > 0 {
		var err error
		if w, err = r.beginLeaving(ctx, s); err != nil {
			return err
		}
		if s.memory.leaving == nil {
			s.memory.leaving = map[types.UID]*work{}
		}
		s.memory.leaving[c.UID] = w
	}
	if left > 0 && w.operation != nil {
		if _, _, settled := w.session.Result(w.operation); !settled {
			s.again(left)
			return nil
		}
	}
	if err := r.setFinalizer(ctx, c, false); err != nil {
		return err
	}
	delete(s.memory.leaving, c.UID)
	return nil
}

// beginLeaving records the close where there is a record, and sends it. It makes no object: the
// namespace may be going, too.
func (r *ChannelReconciler) beginLeaving(ctx context.Context, s *scope) (*work, error) {
	w := &work{}
	if s.channel != nil {
		return w, nil // another object stands for the channel: it goes on
	}
	now := s.situation()
	verdict := decision.Close(now, v1.SourceHousekeeping, true)
	if verdict.Write != nil && s.record.Revision > 0 {
		if err := r.append(ctx, s, ledger.Entry{Write: verdict.Write}); err != nil {
			return nil, err
		}
	}
	if verdict.Send && !s.record.WantsOpen() && !s.suspended() {
		r.apply(s, w)
	}
	return w, nil
}

// setFinalizer adds or removes our finalizer, on exactly the version that was judged.
func (r *ChannelReconciler) setFinalizer(ctx context.Context, c *v1.Channel, present bool) error {
	next := c.DeepCopy()
	if present {
		controllerutil.AddFinalizer(next, v1.CloseFinalizer)
	} else {
		controllerutil.RemoveFinalizer(next, v1.CloseFinalizer)
	}
	err := r.Patch(ctx, next, client.MergeFromWithOptions(c, client.MergeFromWithOptimisticLock{}))
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	*c = *next
	return nil
}

// resend sends the decided operation again where somebody asks for it, once for each asking.
func (r *ChannelReconciler) resend(_ context.Context, s *scope) error {
	if s.channel == nil {
		return nil
	}
	asked := s.channel.Annotations[v1.ReconcileAtAnnotation]
	if asked == "" || asked == s.channel.Status.LastHandledReconcileAt || asked == s.memory.handled {
		return nil
	}
	if s.situation().Obstacle() == "" && !s.suspended() {
		s.session.Apply(s.key.ChannelID, 0)
		s.live = r.sessions.Channel(s.key)
	}
	s.memory.handled = asked
	return nil
}
