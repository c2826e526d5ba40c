package admission

import (
	"encoding/json"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// defaulted are objects that say no more than they must, and what the API server makes of them.
// A status' default is tested by TestStatusOfANewObject.
var defaulted = map[string]struct {
	plural, manifest string
	// want by path; every default of the schema is among them.
	want map[string]any
}{
	"a Connector that says nothing": {
		plural: "connectors",
		manifest: `
apiVersion: mcpl.dev/v1alpha1
kind: Connector
spec:
  residentRef: {name: scout}
  url: wss://discord.example
`,
		want: map[string]any{
			"spec.transport":      map[string]any{"type": "WebSocket", "port": "mcpl", "path": "/mcpl", "insecure": false},
			"spec.transport.type": "WebSocket", "spec.transport.port": "mcpl", "spec.transport.path": "/mcpl",
			"spec.transport.insecure": false,
			"spec.subscription":       map[string]any{"mode": "Manual"}, "spec.subscription.mode": "Manual",
			"spec.channels": "Discover", "spec.maxChannels": 2000, "spec.window": 4, "spec.requestTimeoutSeconds": 60,
		},
	},
	"a Connector with a token": {
		plural: "connectors",
		manifest: `
apiVersion: mcpl.dev/v1alpha1
kind: Connector
spec:
  residentRef: {name: scout}
  url: wss://discord.example
  transport: {tokenSecretRef: {name: discord-mcpl}}
`,
		want: map[string]any{"spec.transport.tokenSecretRef.key": "token", "spec.transport.path": "/mcpl"},
	},
	"a Channel that says nothing": {
		plural: "channels", manifest: channel,
		want: map[string]any{
			"spec.decisionHistoryLimit": 10, "spec.publishing": "Allowed", "spec.deletionPolicy": "Retain",
			// What is absent stays so: the subscription decides, and nothing is held.
			"spec.admission": nil, "spec.hold": nil,
		},
	},
	"a ChannelDecision that says nothing": {
		plural: "channeldecisions", manifest: decision,
		want: map[string]any{
			"spec.ttlSecondsAfterFinished": 86400, "spec.deadlineSeconds": 3600, "spec.acknowledge": nil,
		},
	},
	"a ChannelRecord with an entry": {
		plural: "channelrecords", manifest: record,
		want: map[string]any{"history[].changed": true},
	},
}

func TestDefaults(t *testing.T) {
	shown := map[string]map[string]bool{}
	namespace := newNamespace(t)
	for name, tc := range defaulted {
		if shown[tc.plural] == nil {
			shown[tc.plural] = map[string]bool{}
		}
		for path := range tc.want {
			shown[tc.plural][path] = true
		}
		t.Run(name, func(t *testing.T) {
			o := object(tc.manifest).with(set("metadata.namespace", namespace))
			if err := admin.Create(t.Context(), o.Unstructured); err != nil {
				t.Fatal(err)
			}
			for path, want := range tc.want {
				if got := o.at(path); !reflect.DeepEqual(got, plain(want)) {
					t.Errorf("%s is %v, want %v", path, got, want)
				}
			}
		})
	}
	for plural := range shown {
		for path, value := range defaultsOf(t, plural) {
			if path != "status" && !shown[plural][path] {
				t.Errorf("%s: no case shows the default %s of %s", plural, value, path)
			}
		}
	}
}

// plain is the value as it comes from JSON.
func plain(value any) any {
	if n, isInt := value.(int); isInt {
		return int64(n)
	}
	return value
}

// Until a controller has looked at an object, its status must read as in progress (kstatus).
func TestStatusOfANewObject(t *testing.T) {
	namespace := newNamespace(t)
	for kind, manifest := range map[string]string{"Connector": connector, "Channel": channel, "ChannelDecision": decision} {
		t.Run(kind, func(t *testing.T) {
			made := object(manifest).with(set("metadata.namespace", namespace, "status.observedGeneration", 7))
			if err := admin.Create(t.Context(), made.Unstructured); err != nil {
				t.Fatal(err)
			}
			stored := &unstructured.Unstructured{}
			stored.SetGroupVersionKind(made.GroupVersionKind())
			if err := admin.Get(t.Context(), client.ObjectKeyFromObject(made), stored); err != nil {
				t.Fatal(err)
			}
			for when, o := range map[string]*unstructured.Unstructured{"the answer to its creation": made.Unstructured, "what is stored": stored} {
				status, err := json.Marshal(o.Object["status"])
				if err != nil {
					t.Fatal(err)
				}
				if string(status) != `{"observedGeneration":-1}` {
					t.Errorf("status in %s is %s, want observedGeneration -1 and nothing else", when, status)
				}
			}
		})
	}
}
