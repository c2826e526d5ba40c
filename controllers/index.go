package controllers

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/internal/pair"
)

// Indexes of the cache.
const (
	// byServerID finds Connectors by their effective serverID.
	byServerID = "serverID"
	// byChannelID and byConnector find Channels.
	byChannelID = "spec.channelID"
	byConnector = "spec.connectorRef.name"
	// byChannel finds ChannelDecisions by what they are about: see decisionSubject.
	byChannel = "channel"
)

func addIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	for _, index := range []struct {
		object client.Object
		field  string
		value  func(client.Object) string
	}{
		{&v1.Connector{}, byServerID, func(o client.Object) string { return o.(*v1.Connector).EffectiveServerID() }},
		{&v1.Channel{}, byChannelID, func(o client.Object) string { return o.(*v1.Channel).Spec.ChannelID }},
		{&v1.Channel{}, byConnector, func(o client.Object) string { return o.(*v1.Channel).Spec.ConnectorRef.Name }},
		{&v1.ChannelDecision{}, byChannel, func(o client.Object) string { return decisionSubject(o.(*v1.ChannelDecision)) }},
	} {
		err := indexer.IndexField(ctx, index.object, index.field, func(o client.Object) []string { return []string{index.value(o)} })
		if err != nil {
			return err
		}
	}
	return nil
}

// decisionSubject is what a ChannelDecision is about: the pair once that is resolved, and until
// then the Channel that it names.
func decisionSubject(d *v1.ChannelDecision) string {
	switch {
	case d.Status.ServerID != "":
		return pairSubject(d.Status.ServerID, d.Status.ChannelID)
	case d.Spec.ChannelRef.Name != "":
		return nameSubject(d.Spec.ChannelRef.Name)
	}
	return pairSubject(d.Spec.ChannelRef.ServerID, d.Spec.ChannelRef.ChannelID)
}

func nameSubject(channel string) string { return "name/" + channel }

func pairSubject(serverID, channelID string) string {
	return strings.Join([]string{"pair", serverID, channelID}, "/")
}

// resolver finds the pair that an object is about. It reads the cache and nothing else.
type resolver struct{ cache client.Reader }

// channel is the pair of a Channel. resolved is false while its Connector has never been there: the
// pair then has the Connector's name for a serverID, so that the Channel has an owner all the same.
func (r resolver) channel(ctx context.Context, c *v1.Channel) (key pair.Key, resolved bool) {
	key = pair.Key{Namespace: c.Namespace, ServerID: c.Spec.ConnectorRef.Name, ChannelID: c.Spec.ChannelID}
	if c.Status.ServerID != "" {
		key.ServerID = c.Status.ServerID
		return key, true
	}
	var connector v1.Connector
	name := types.NamespacedName{Namespace: c.Namespace, Name: c.Spec.ConnectorRef.Name}
	if r.cache.Get(ctx, name, &connector) != nil {
		return key, false
	}
	key.ServerID = connector.EffectiveServerID()
	return key, true
}

// decision is the pair that a ChannelDecision is about, false while it names a Channel that is not
// there or whose Connector is not.
func (r resolver) decision(ctx context.Context, d *v1.ChannelDecision) (pair.Key, bool) {
	switch ref := d.Spec.ChannelRef; {
	case d.Status.ServerID != "":
		return pair.Key{Namespace: d.Namespace, ServerID: d.Status.ServerID, ChannelID: d.Status.ChannelID}, true
	case ref.Name == "":
		return pair.Key{Namespace: d.Namespace, ServerID: ref.ServerID, ChannelID: ref.ChannelID}, true
	default:
		var channel v1.Channel
		if r.cache.Get(ctx, types.NamespacedName{Namespace: d.Namespace, Name: ref.Name}, &channel) != nil {
			return pair.Key{}, false
		}
		return r.channel(ctx, &channel)
	}
}

// server is the Connector that serves a serverID, nil where there is none: of several the oldest,
// and of those of one second the one with the lower uid.
func (r resolver) server(ctx context.Context, namespace, serverID string) (*v1.Connector, error) {
	var list v1.ConnectorList
	if err := r.cache.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{byServerID: serverID}); err != nil {
		return nil, err
	}
	var serves *v1.Connector
	for i := range list.Items {
		c := &list.Items[i]
		if c.DeletionTimestamp.IsZero() && (serves == nil || older(c, serves)) {
			serves = c
		}
	}
	return serves, nil
}

// older reports whether a was made before b; the uid decides between two of the same second.
func older(a, b client.Object) bool {
	at, bt := a.GetCreationTimestamp(), b.GetCreationTimestamp()
	if at.Equal(&bt) {
		return a.GetUID() < b.GetUID()
	}
	return at.Before(&bt)
}
