package admission

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// awkward is an id with all that a field selector gives a meaning to.
const awkward = `a\b,c=d,,\=e!=f==g`

func TestFieldSelectors(t *testing.T) {
	namespace := newNamespace(t)
	store := func(name, manifest string, e edits) {
		t.Helper()
		o := object(manifest).with(set("metadata.namespace", namespace, "metadata.name", name), e)
		if err := admin.Create(t.Context(), o.Unstructured); err != nil {
			t.Fatal(err)
		}
	}
	pair := func(serverID, channelID string) edits {
		return set("spec.channelRef", map[string]any{"serverID": serverID, "channelID": channelID})
	}
	store("plain", channel, set("spec.channelID", "a"))
	store("awkward", channel, set("spec.channelID", awkward))
	store("elsewhere", channel, set("spec.channelID", "a", "spec.connectorRef.name", "slack"))
	store("by-name", decision, set("spec.channelRef.name", "discord-dev"))
	store("by-pair", decision, pair("discord", awkward))
	store("by-other-pair", decision, pair("slack", awkward))

	for name, tc := range map[string]struct {
		kind     string
		selector fields.Set
		want     []string
	}{
		"channels of a connector":       {"Channel", fields.Set{"spec.connectorRef.name": "discord"}, []string{"awkward", "plain"}},
		"the channel of a pair":         {"Channel", fields.Set{"spec.connectorRef.name": "slack", "spec.channelID": "a"}, []string{"elsewhere"}},
		"a channel with an awkward id":  {"Channel", fields.Set{"spec.channelID": awkward}, []string{"awkward"}},
		"no channel by half an id":      {"Channel", fields.Set{"spec.channelID": `a\b`}, nil},
		"decisions about a Channel":     {"ChannelDecision", fields.Set{"spec.channelRef.name": "discord-dev"}, []string{"by-name"}},
		"decisions about a connector":   {"ChannelDecision", fields.Set{"spec.channelRef.serverID": "slack"}, []string{"by-other-pair"}},
		"decisions about an awkward id": {"ChannelDecision", fields.Set{"spec.channelRef.channelID": awkward}, []string{"by-other-pair", "by-pair"}},
		"decisions about a pair": {
			"ChannelDecision",
			fields.Set{"spec.channelRef.serverID": "discord", "spec.channelRef.channelID": awkward},
			[]string{"by-pair"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(schema.GroupVersionKind{Group: "mcpl.dev", Version: "v1alpha1", Kind: tc.kind + "List"})
			selector := client.MatchingFieldsSelector{Selector: tc.selector.AsSelector()}
			if err := admin.List(t.Context(), list, client.InNamespace(namespace), selector); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, o := range list.Items {
				got = append(got, o.GetName())
			}
			slices.Sort(got)
			if !slices.Equal(got, tc.want) {
				t.Errorf("%s selects %v, want %v", tc.selector.AsSelector(), got, tc.want)
			}
		})
	}
}
