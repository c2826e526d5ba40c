package admission

import (
	"maps"
	"testing"
)

const channel = `
apiVersion: mcpl.dev/v1alpha1
kind: Channel
spec:
  connectorRef: {name: discord}
  channelID: "discord:111:222"
`

// sources and states are the closed vocabularies of a record.
var (
	sources = []any{
		"AgentTool", "InvitationDeclined", "ModuleTool", "SubscriptionGC", "Housekeeping", "DefaultClosed",
		"ServerBootstrap", "SubscriptionPolicy", "OpenedByDelivery", "OpenedByReply", "Subconscious", "Duration",
		"TuneOutMaxWakes", "LegacyRecipeMigration", "Unknown",
	}
	states = []any{"Open", "Closed", "TunedOut"}
)

// controls are ids with a character that a terminal would obey.
var controls = []any{"a\x1b[31m", "a\nb", "a\tb", "\x7f", "\u0000"}

func TestChannelRules(t *testing.T) {
	decided := set("status.decision.state", "Open", "status.decision.source", "AgentTool", "status.decision.revision", 1)
	without := func(field string) rule {
		return rule{
			covers:  "status.decision." + field + " required",
			step:    onStatus,
			admits:  one(decided),
			refuses: one(unset("status.decision." + field)),
		}
	}
	rules := map[string]rule{
		"a name has at most 63 characters": {
			covers:  "metadata.name must have at most 63 characters",
			admits:  each("metadata.name", "a", letters(63)),
			refuses: each("metadata.name", letters(64)),
		},
		"a spec is there": {
			covers:  "spec required",
			admits:  one(edits{}),
			refuses: one(unset("spec")),
		},
		"a connector is named": {
			covers:  "spec.connectorRef required",
			admits:  one(edits{}),
			refuses: one(unset("spec.connectorRef")),
		},
		"the connector has a name": {
			covers:  "spec.connectorRef.name required",
			admits:  one(edits{}),
			refuses: each("spec.connectorRef", map[string]any{}),
		},
		"the connector's name is not empty": {
			covers:  "spec.connectorRef.name minLength",
			admits:  each("spec.connectorRef.name", "a"),
			refuses: each("spec.connectorRef.name", ""),
		},
		"the connector's name is an object's": {
			covers:  "spec.connectorRef.name maxLength",
			admits:  each("spec.connectorRef.name", letters(253)),
			refuses: each("spec.connectorRef.name", letters(254)),
		},
		"the connector stays": {
			covers:  "spec.connectorRef can not be changed: make another Channel",
			step:    onUpdate,
			admits:  one(edits{}, set("metadata.labels", map[string]any{"a": "b"})),
			refuses: each("spec.connectorRef.name", "slack"),
		},
		"a channelID is there": {
			covers:  "spec.channelID required",
			admits:  one(edits{}),
			refuses: one(unset("spec.channelID")),
		},
		"a channelID is not empty": {
			covers:  "spec.channelID minLength",
			admits:  each("spec.channelID", "a"),
			refuses: each("spec.channelID", ""),
		},
		"a channelID has at most 2,048 characters": {
			covers:  "spec.channelID maxLength",
			admits:  each("spec.channelID", letters(2048)),
			refuses: each("spec.channelID", letters(2049)),
		},
		"a channelID has no control characters": {
			covers:  "spec.channelID pattern",
			admits:  each("spec.channelID", "discord:111:222", `a b,c=d\e`, "zulip:Küche/👀"),
			refuses: each("spec.channelID", controls...),
		},
		"the channelID stays": {
			covers:  "spec.channelID can not be changed: make another Channel",
			step:    onUpdate,
			admits:  each("spec.decisionHistoryLimit", 3),
			refuses: each("spec.channelID", "discord:111:223"),
		},
		"a history of nothing": {
			covers:  "spec.decisionHistoryLimit minimum",
			admits:  each("spec.decisionHistoryLimit", 0),
			refuses: each("spec.decisionHistoryLimit", -1),
		},
		"a history of at most 100": {
			covers:  "spec.decisionHistoryLimit maximum",
			admits:  each("spec.decisionHistoryLimit", 100),
			refuses: each("spec.decisionHistoryLimit", 101),
		},
		"an undecided channel is admitted or it is not": {
			covers:  "spec.admission enum",
			admits:  each("spec.admission", "Open", "Closed"),
			refuses: each("spec.admission", "TunedOut", "", "closed"),
		},
		"publishing is allowed or forbidden": {
			covers:  "spec.publishing enum",
			admits:  each("spec.publishing", "Allowed", "Forbidden"),
			refuses: each("spec.publishing", "Denied", ""),
		},
		"a deletion retains or closes": {
			covers:  "spec.deletionPolicy enum",
			admits:  each("spec.deletionPolicy", "Retain", "Close"),
			refuses: each("spec.deletionPolicy", "Delete", ""),
		},
		"a registration is one of three": {
			covers:  "status.registration enum",
			step:    onStatus,
			admits:  each("status.registration", "Declared", "PushKnown", "NotRegistered"),
			refuses: each("status.registration", "Gone"),
		},
		"a transport is one of three": {
			covers:  "status.transport enum",
			step:    onStatus,
			admits:  each("status.transport", "Open", "Closed", "Unconfirmed"),
			refuses: each("status.transport", "TunedOut"),
		},
		"a decision's state is one of three": {
			covers:  "status.decision.state enum",
			step:    onStatus,
			admits:  append(one(decided), each("status.decision.state", states...)...),
			refuses: each("status.decision.state", "Unconfirmed"),
		},
		"a decision's source is in the vocabulary": {
			covers:  "status.decision.source enum",
			step:    onStatus,
			admits:  append(one(decided), each("status.decision.source", sources...)...),
			refuses: each("status.decision.source", "Agent"),
		},
		"a decision has a state":    without("state"),
		"a decision has a source":   without("source"),
		"a decision has a revision": without("revision"),
	}
	maps.Copy(rules, referenceRules("status.decision.decisionRef", onStatus, decided))
	maps.Copy(rules, holdRules())
	check(t, "channels", channel, rules)
}

// holdRules are those of a hold, on a Channel or on a Connector.
func holdRules() map[string]rule {
	return map[string]rule{
		"a hold has a state": {
			covers:  "spec.hold.state required",
			admits:  each("spec.hold.state", "Closed"),
			refuses: each("spec.hold", map[string]any{}, map[string]any{"reason": "incident 4711"}),
		},
		"a hold keeps closed, and nothing else": {
			covers:  "spec.hold.state enum",
			admits:  each("spec.hold.state", "Closed"),
			refuses: each("spec.hold.state", "Open", "TunedOut", ""),
		},
		"a hold's reason has at most 256 characters": {
			covers:  "spec.hold.reason maxLength",
			start:   set("spec.hold.state", "Closed"),
			admits:  each("spec.hold.reason", letters(256), ""),
			refuses: each("spec.hold.reason", letters(257)),
		},
	}
}

// referenceRules are those of a reference to the object that asked for a decision. start makes
// what is around it valid.
func referenceRules(path string, at step, start edits) map[string]rule {
	whole := join(start, set(path+".kind", "ChannelDecision", path+".name", "a", path+".uid", "1"))
	rules := map[string]rule{}
	for field, bound := range map[string]int{"kind": 64, "name": 253, "uid": 64} {
		rules[path+" has a "+field] = rule{
			covers:  path + "." + field + " required",
			step:    at,
			admits:  one(whole),
			refuses: one(join(whole, unset(path+"."+field))),
		}
		rules[path+" has a "+field+" of bounded length"] = rule{
			covers:  path + "." + field + " maxLength",
			step:    at,
			admits:  one(join(whole, set(path+"."+field, letters(bound)))),
			refuses: one(join(whole, set(path+"."+field, letters(bound+1)))),
		}
	}
	return rules
}
