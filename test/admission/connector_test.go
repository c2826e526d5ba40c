package admission

import (
	"maps"
	"testing"
)

const connector = `
apiVersion: mcpl.dev/v1alpha1
kind: Connector
spec:
  residentRef: {name: scout}
  podSelector: {matchLabels: {app: discord-mcpl}}
  transport: {insecure: true}
`

// byURL turns the connector into one outside the cluster.
func byURL(url string) edits { return set("spec.url", url, "spec.podSelector", absent) }

// exists is an expression that selects by a label's presence.
var exists = map[string]any{"key": "mcpl", "operator": "Exists"}

// selecting is a selector of the two, each of which may be absent.
func selecting(labels map[string]any, expressions []any) map[string]any {
	selector := map[string]any{}
	if labels != nil {
		selector["matchLabels"] = labels
	}
	if expressions != nil {
		selector["matchExpressions"] = expressions
	}
	return selector
}

// join makes one set of edits of several.
func join(all ...edits) edits {
	joined := edits{}
	for _, e := range all {
		for path, value := range e {
			joined[path] = value
		}
	}
	return joined
}

func TestConnectorRules(t *testing.T) {
	const oneEndpoint = "exactly one of spec.podSelector and spec.url must be set"
	const encrypted = "spec.transport.tls is not set: set it, use a wss:// url, or set spec.transport.insecure to true to accept an unencrypted connection"
	secure := set("spec.transport.insecure", false)
	rules := map[string]rule{
		"a name is a DNS label of at most 45 characters": {
			covers:  "metadata.name must be a DNS label of at most 45 characters",
			admits:  each("metadata.name", "a", "discord-2", letters(45)),
			refuses: each("metadata.name", letters(46), "discord.example"),
		},
		"the effective serverID stays": {
			covers: "spec.serverID (metadata.name where it is absent) can not be changed: to rename, make a new Connector with the old serverID",
			step:   onUpdate,
			start:  set("metadata.name", "stays"),
			admits: one(
				set("spec.serverID", "stays"),
				set("spec.serverID", absent),
				set("spec.window", 5),
			),
			refuses: one(set("spec.serverID", "moves")),
		},
		"a spec is there": {
			covers:  "spec required",
			admits:  one(edits{}),
			refuses: one(unset("spec")),
		},
		"a resident is named": {
			covers:  "spec.residentRef required",
			admits:  one(edits{}),
			refuses: one(unset("spec.residentRef")),
		},
		"the resident has a name": {
			covers:  "spec.residentRef.name required",
			admits:  one(edits{}),
			refuses: one(set("spec.residentRef", map[string]any{})),
		},
		"the resident's name is not empty": {
			covers:  "spec.residentRef.name minLength",
			admits:  each("spec.residentRef.name", "a"),
			refuses: each("spec.residentRef.name", ""),
		},
		"the resident's name is an object's": {
			covers:  "spec.residentRef.name maxLength",
			admits:  each("spec.residentRef.name", letters(253)),
			refuses: each("spec.residentRef.name", letters(254)),
		},
		"a connector is at one place": {
			covers:  oneEndpoint,
			admits:  one(edits{}, byURL("ws://discord.example")),
			refuses: one(set("spec.url", "ws://discord.example"), unset("spec.podSelector")),
		},
		"a pod is selected by something": {
			covers: "spec.podSelector must not be empty: it would select every pod of the namespace",
			admits: each("spec.podSelector",
				selecting(map[string]any{"app": "discord-mcpl"}, nil), selecting(nil, []any{exists}),
				selecting(map[string]any{"app": "discord-mcpl"}, []any{exists}),
				selecting(map[string]any{}, []any{exists}), selecting(map[string]any{"app": ""}, []any{}),
			),
			refuses: each("spec.podSelector",
				selecting(nil, nil), selecting(map[string]any{}, nil), selecting(nil, []any{}), selecting(map[string]any{}, []any{}),
			),
		},
		"a connection is encrypted unless somebody accepts that it is not": {
			covers: encrypted,
			admits: one(
				set("spec.transport.insecure", true),
				join(secure, set("spec.transport.tls.serverName", "discord-mcpl")),
				join(secure, byURL("wss://discord.example")),
				join(byURL("wss://discord.example"), unset("spec.transport")),
				byURL("ws://discord.example"),
			),
			refuses: one(
				secure,
				unset("spec.transport"),
				unset("spec.transport.insecure"),
				join(secure, byURL("ws://discord.example")),
			),
		},
		"a pod's certificate bears a name": {
			covers: "spec.transport.tls.serverName must be set for a pod: the address of a pod is no name that a certificate bears",
			start:  set("spec.transport.tls.caSecretRef.name", "discord-ca"),
			admits: one(
				set("spec.transport.tls.serverName", "discord-mcpl"),
				byURL("wss://discord.example"),
				unset("spec.transport.tls"),
			),
			refuses: one(edits{}, unset("spec.transport.insecure"), set("spec.transport.tls", map[string]any{})),
		},
		"tls is for a url that speaks it": {
			covers:  "spec.transport.tls needs a wss:// url",
			start:   set("spec.transport.tls", map[string]any{"serverName": "discord.example"}),
			admits:  one(byURL("wss://discord.example"), edits{}),
			refuses: one(byURL("ws://discord.example")),
		},
		"a serverID is not empty": {
			covers:  "spec.serverID minLength",
			admits:  each("spec.serverID", "a"),
			refuses: each("spec.serverID", ""),
		},
		"a serverID has at most 45 characters": {
			covers:  "spec.serverID maxLength",
			admits:  each("spec.serverID", letters(45)),
			refuses: each("spec.serverID", letters(46)),
		},
		"a serverID is a DNS label": {
			covers:  "spec.serverID pattern",
			admits:  each("spec.serverID", "discord", "0", "a-9"),
			refuses: each("spec.serverID", "Discord", "-a", "a-", "a.b", "a:b", "a/b", "a\n"),
		},
		"a url is not empty": {
			covers:  "spec.url minLength",
			admits:  one(byURL("ws://a")),
			refuses: one(byURL("")),
		},
		"a url has at most 2,048 characters": {
			covers:  "spec.url maxLength",
			admits:  one(byURL("ws://" + letters(2043))),
			refuses: one(byURL("ws://" + letters(2044))),
		},
		"a url is that of a WebSocket, with no user and no fragment in it": {
			covers: "spec.url pattern",
			admits: one(byURL("ws://discord.example:8080/mcpl?a=b"), byURL("wss://[::1]/")),
			refuses: one(
				byURL("http://discord.example"), byURL("ws://"), byURL("ws:///mcpl"), byURL("WS://a"),
				byURL("wss://scout:secret@discord.example"), byURL("ws://a/#b"), byURL("ws://a b"), byURL("file:///a"),
			),
		},
		"the channels are discovered or declared": {
			covers:  "spec.channels enum",
			admits:  each("spec.channels", "Discover", "Declared"),
			refuses: each("spec.channels", "", "discover"),
		},
		"at least one channel": {
			covers:  "spec.maxChannels minimum",
			admits:  each("spec.maxChannels", 1),
			refuses: each("spec.maxChannels", 0, -1),
		},
		"at most 20,000 channels": {
			covers:  "spec.maxChannels maximum",
			admits:  each("spec.maxChannels", 20000),
			refuses: each("spec.maxChannels", 20001),
		},
		"a window of at least 1": {
			covers:  "spec.window minimum",
			admits:  each("spec.window", 1),
			refuses: each("spec.window", 0),
		},
		"a window of at most 64": {
			covers:  "spec.window maximum",
			admits:  each("spec.window", 64),
			refuses: each("spec.window", 65),
		},
		"a timeout of 0 is none": {
			covers:  "spec.requestTimeoutSeconds minimum",
			admits:  each("spec.requestTimeoutSeconds", 0),
			refuses: each("spec.requestTimeoutSeconds", -1),
		},
		"a timeout of at most an hour": {
			covers:  "spec.requestTimeoutSeconds maximum",
			admits:  each("spec.requestTimeoutSeconds", 3600),
			refuses: each("spec.requestTimeoutSeconds", 3601),
		},
		"the state is one of four": {
			covers:  "status.state enum",
			step:    onStatus,
			admits:  each("status.state", "Connecting", "Up", "Reconnecting", "Gone"),
			refuses: each("status.state", "Down"),
		},
		"the pod has a name": {
			covers:  "status.pod.name required",
			step:    onStatus,
			admits:  one(set("status.pod.name", "a", "status.pod.uid", "1")),
			refuses: one(set("status.pod", map[string]any{"uid": "1"})),
		},
		"the pod has a uid": {
			covers:  "status.pod.uid required",
			step:    onStatus,
			admits:  one(set("status.pod.name", "a", "status.pod.uid", "1")),
			refuses: one(set("status.pod", map[string]any{"name": "a"})),
		},
		"registered channels are counted": countRule("registered"),
		"open channels are counted":       countRule("open"),
		"tuned out channels are counted":  countRule("tunedOut"),
		"unsettled channels are counted":  countRule("unsettled"),
	}
	maps.Copy(rules, transportRules())
	maps.Copy(rules, policyRules())
	maps.Copy(rules, holdRules())
	check(t, "connectors", connector, rules)
}

// countRule shows that the counts of channels come together.
func countRule(name string) rule {
	return rule{
		covers: "status.channels." + name + " required",
		step:   onStatus,
		admits: one(set(
			"status.channels.registered", 4, "status.channels.open", 3,
			"status.channels.tunedOut", 2, "status.channels.unsettled", 1,
		)),
		refuses: one(unset("status.channels." + name)),
	}
}
