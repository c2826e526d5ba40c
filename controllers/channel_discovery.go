package controllers

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "mcpl.dev/operator/api/v1alpha1"
)

// forgottenAfter is how long a discovered Channel stays after its connector stopped declaring it.
const forgottenAfter = 24 * time.Hour

// discover keeps the Channel objects that the operator makes: one for each registered channel that
// nobody else made one for.
func (r *ChannelReconciler) discover(ctx context.Context, s *scope) error {
	for i := range s.rivals {
		if rival := &s.rivals[i]; untouched(rival) {
			if err := r.deleteChannel(ctx, rival); err != nil {
				return err
			}
		}
	}
	switch {
	case s.connector == nil || s.connector.Spec.Channels != v1.ChannelsDiscover:
		return nil
	case s.channel == nil && s.live.Registered && s.live.State == v1.ConnectorUp:
		return r.createChannel(ctx, s)
	case s.channel != nil && untouched(s.channel) && s.record.Undecided() && !s.live.Registered && s.live.State == v1.ConnectorUp:
		return r.forgetChannel(ctx, s)
	}
	return nil
}

func (r *ChannelReconciler) createChannel(ctx context.Context, s *scope) error {
	c := &v1.Channel{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.key.Namespace,
			Name:      s.key.DiscoveredName(),
			Labels:    map[string]string{v1.DiscoveredLabel: "true"},
		},
		Spec: v1.ChannelSpec{ConnectorRef: v1.NameReference{Name: s.connector.Name}, ChannelID: s.key.ChannelID},
	}
	if err := controllerutil.SetOwnerReference(s.connector, c, r.Scheme()); err != nil {
		return err
	}
	err := r.Create(ctx, c)
	switch {
	case apierrors.IsAlreadyExists(err):
		return nil // the cache does not show it yet; it wakes this owner when it does
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil // a namespace that is going takes no new objects, and needs none
	}
	return err
}

// forgetChannel removes a Channel that its connector has not declared for a day and nobody has decided.
func (r *ChannelReconciler) forgetChannel(ctx context.Context, s *scope) error {
	registered := meta.FindStatusCondition(s.channel.Status.Conditions, v1.ConditionRegistered)
	if registered == nil || registered.Reason != v1.ReasonNotRegistered || registered.Status != metav1.ConditionFalse {
		return nil
	}
	if left := forgottenAfter - r.clock.Since(registered.LastTransitionTime.Time); left > 0 {
		s.again(left)
		return nil
	}
	err := r.deleteChannel(ctx, s.channel)
	s.channel = nil
	return err
}

// deleteChannel deletes exactly the object that was judged.
func (r *ChannelReconciler) deleteChannel(ctx context.Context, c *v1.Channel) error {
	uid, version := c.UID, c.ResourceVersion
	err := r.Delete(ctx, c, client.Preconditions{UID: &uid, ResourceVersion: &version})
	if apierrors.IsConflict(err) {
		return nil // somebody has just touched it: it is looked at again
	}
	return client.IgnoreNotFound(err)
}
