package admission

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// plurals are the resources of the group.
var plurals = []string{"connectors", "channels", "channeldecisions", "channelrecords"}

// The API server refuses a schema whose rules could cost too much, and serves one that it accepted.
func TestTheKindsAreServed(t *testing.T) {
	for _, plural := range plurals {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := admin.Get(t.Context(), client.ObjectKey{Name: plural + ".mcpl.dev"}, crd); err != nil {
			t.Fatal(err)
		}
		is := map[apiextensionsv1.CustomResourceDefinitionConditionType]apiextensionsv1.ConditionStatus{}
		for _, condition := range crd.Status.Conditions {
			is[condition.Type] = condition.Status
		}
		if is[apiextensionsv1.Established] != apiextensionsv1.ConditionTrue || is[apiextensionsv1.NamesAccepted] != apiextensionsv1.ConditionTrue {
			t.Errorf("%s is not served: %v", plural, crd.Status.Conditions)
		}
		if is[apiextensionsv1.NonStructuralSchema] == apiextensionsv1.ConditionTrue {
			t.Errorf("%s has no structural schema: %v", plural, crd.Status.Conditions)
		}
	}
}

// What the bounds permit must not exhaust the budget that rules have on a request: such an object
// could be neither made nor changed.
func TestTheLargestObjectsAreAdmitted(t *testing.T) {
	reference := map[string]any{"kind": letters(64), "name": letters(253), "uid": letters(64), "generation": int64(1)}
	history := entries(200)
	for _, entry := range history {
		entry.(map[string]any)["decisionRef"] = reference
	}
	pair := map[string]any{"serverID": letters(45), "channelID": letters(2048)}
	namespace := newNamespace(t)
	for kind, tc := range map[string]struct {
		manifest      string
		large, change edits
	}{
		"Connector": {connector, set(
			"metadata.name", letters(45),
			"spec.grant.deny", lettered(64),
			"spec.subscription.mode", "AllowList",
			"spec.subscription.allow", many(1000, letters(250)),
			"spec.transport.tls.serverName", letters(253),
			"spec.transport.path", "/"+letters(1023),
			"spec.hold", map[string]any{"state": "Closed", "reason": letters(256)},
		), set("spec.window", 5)},
		"Channel": {channel, set(
			"metadata.name", letters(63), "spec.channelID", letters(2048), "spec.connectorRef.name", letters(253),
			"spec.hold", map[string]any{"state": "Closed", "reason": letters(256)},
		), set("spec.decisionHistoryLimit", 5)},
		"ChannelDecision": {decision, set(
			"metadata.name", letters(253), "spec.channelRef", pair, "spec.decidedBy", letters(512), "spec.history.limit", 500,
		), set("metadata.labels", map[string]any{"a": "b"})},
		"ChannelDecision that declines": {decision, join(declined, set(
			"metadata.name", letters(252), "spec.channelRef", pair, "spec.decidedBy", letters(512),
			"spec.acknowledge", map[string]any{"messageID": letters(256), "text": letters(512)},
		)), set("metadata.labels", map[string]any{"a": "b"})},
		"ChannelRecord": {record, join(tunedOut, set(
			"serverID", letters(45), "channelID", letters(2048), "history", history,
			"record.id", letters(64), "record.decidedBy", letters(512), "record.decisionRef", reference,
			"tuneOut.ref", reference, "labelSightings.seen", many(16, letters(500)),
		)), set("tuneOut.wakes", 1)},
	} {
		t.Run(kind, func(t *testing.T) {
			o := object(tc.manifest).with(set("metadata.namespace", namespace), tc.large)
			if err := admin.Create(t.Context(), o.Unstructured); err != nil {
				t.Fatal(err)
			}
			if err := admin.Update(t.Context(), o.with(tc.change).Unstructured); err != nil {
				t.Error(err)
			}
		})
	}
}
