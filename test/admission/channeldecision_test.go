package admission

import (
	"slices"
	"testing"
)

const decision = `
apiVersion: mcpl.dev/v1alpha1
kind: ChannelDecision
spec:
  channelRef: {name: discord-general}
  decision: Open
  source: AgentTool
  decidedBy: scout
`

// narrowed are the values of an enum that the type admits and another rule refuses.
var narrowed = map[string][]string{"spec.source enum": othersThan(append(closers, "InvitationDeclined")...)}

// closers are the sources that may close.
var closers = []any{"AgentTool", "ModuleTool", "SubscriptionGC", "Housekeeping"}

// othersThan lists the other sources.
func othersThan(some ...any) []string {
	var others []string
	for _, source := range sources {
		if !slices.Contains(some, source) {
			others = append(others, source.(string))
		}
	}
	return others
}

// from is a decision of the kind and source.
func from(kind, source string) edits { return set("spec.decision", kind, "spec.source", source) }

// declined is a decline, and acknowledged is what it shows to whoever wrote the invitation.
var (
	declined     = from("Decline", "InvitationDeclined")
	acknowledged = set("spec.acknowledge", map[string]any{"messageID": "1204", "text": "🙏"})
)

// fromEach is a decision of the kind for each source.
func fromEach(kind string, all ...any) []edits {
	var each []edits
	for _, source := range all {
		each = append(each, from(kind, source.(string)))
	}
	return each
}

func TestChannelDecisionRules(t *testing.T) {
	pair := func(channelID string) edits {
		return set("spec.channelRef", map[string]any{"serverID": "discord", "channelID": channelID})
	}
	server := func(serverID string) edits {
		return set("spec.channelRef", map[string]any{"serverID": serverID, "channelID": "discord:111:222"})
	}
	var notOpeners, notClosers, notDecliners []edits
	for _, source := range sources {
		if source != "AgentTool" {
			notOpeners = append(notOpeners, from("Open", source.(string)))
		}
		if !slices.Contains(closers, source) {
			notClosers = append(notClosers, from("Close", source.(string)))
		}
		if source != "InvitationDeclined" {
			notDecliners = append(notDecliners, from("Decline", source.(string)))
		}
	}
	claimed := set("spec.lease", "Claimed")
	check(t, "channeldecisions", decision, map[string]rule{
		"a spec is there":         required("spec"),
		"a channel is named":      required("spec.channelRef"),
		"a decision is asked for": required("spec.decision"),
		"a source is named":       required("spec.source"),
		"who decides is named":    required("spec.decidedBy"),
		"a history has a limit":   {covers: "spec.history.limit required", admits: each("spec.history.limit", 20), refuses: each("spec.history", map[string]any{})},
		"a decision is an open, a close or a decline": {
			covers:  "spec.decision enum",
			admits:  one(from("Open", "AgentTool"), from("Close", "AgentTool"), declined),
			refuses: each("spec.decision", "Declined", "TuneOut", "open", ""),
		},
		"a decision stays made": {
			covers: "spec can not be changed: a decision that was made stays made; make another ChannelDecision",
			step:   onUpdate,
			admits: one(edits{}, set("metadata.labels", map[string]any{"a": "b"})),
			refuses: one(
				from("Close", "AgentTool"),
				set("spec.decidedBy", "iris"),
				set("spec.requestedBy", "jane@example.org"),
				set("spec.history.limit", 5),
				set("spec.ttlSecondsAfterFinished", 1),
				set("spec.deadlineSeconds", 1),
				declined,
				set("spec.channelRef.name", "discord-dev"),
				pair("discord:111:222"),
			),
		},
		"only the resident opens": {
			covers:  "spec.source of an Open must be AgentTool",
			admits:  fromEach("Open", "AgentTool"),
			refuses: notOpeners,
		},
		"the resident and machines close": {
			covers:  "spec.source of a Close must be AgentTool, ModuleTool, SubscriptionGC or Housekeeping",
			admits:  fromEach("Close", closers...),
			refuses: notClosers,
		},
		"an invitation is declined": {
			covers:  "spec.source of a Decline must be InvitationDeclined",
			admits:  one(declined),
			refuses: notDecliners,
		},
		"a source is in the vocabulary": {
			covers:  "spec.source enum",
			admits:  append(fromEach("Close", closers...), declined),
			refuses: each("spec.source", "Agent", ""),
		},
		"a machine that closes may claim a lease": {
			covers: "spec.lease can be claimed only by a Close whose spec.source is SubscriptionGC or Housekeeping",
			admits: one(join(claimed, from("Close", "SubscriptionGC")), join(claimed, from("Close", "Housekeeping"))),
			refuses: one(
				claimed, join(claimed, from("Close", "AgentTool")), join(claimed, from("Close", "ModuleTool")),
				join(claimed, declined),
			),
		},
		"a lease is claimed or not there": {
			covers:  "spec.lease enum",
			start:   from("Close", "Housekeeping"),
			admits:  each("spec.lease", "Claimed"),
			refuses: each("spec.lease", "", "Granted"),
		},
		"earlier messages come with an open": {
			covers:  "spec.history can be asked for only by an Open",
			start:   set("spec.history.limit", 20),
			admits:  fromEach("Open", "AgentTool"),
			refuses: append(fromEach("Close", closers...), declined),
		},
		"a decline is acknowledged, and nothing else": {
			covers:  "spec.acknowledge can be asked for only by a Decline",
			start:   acknowledged,
			admits:  one(declined),
			refuses: append(fromEach("Close", closers...), from("Open", "AgentTool")),
		},
		"an acknowledgement has a message": {
			covers:  "spec.acknowledge.messageID required",
			start:   join(declined, acknowledged),
			admits:  one(edits{}),
			refuses: one(unset("spec.acknowledge.messageID"), set("spec.acknowledge", map[string]any{})),
		},
		"an acknowledgement's message is not empty": {
			covers:  "spec.acknowledge.messageID minLength",
			start:   join(declined, acknowledged),
			admits:  each("spec.acknowledge.messageID", "1"),
			refuses: each("spec.acknowledge.messageID", ""),
		},
		"an acknowledgement's message has at most 256 characters": {
			covers:  "spec.acknowledge.messageID maxLength",
			start:   join(declined, acknowledged),
			admits:  each("spec.acknowledge.messageID", letters(256)),
			refuses: each("spec.acknowledge.messageID", letters(257)),
		},
		"an acknowledgement has a text": {
			covers:  "spec.acknowledge.text required",
			start:   join(declined, acknowledged),
			admits:  one(edits{}),
			refuses: one(unset("spec.acknowledge.text")),
		},
		"an acknowledgement's text is not empty": {
			covers:  "spec.acknowledge.text minLength",
			start:   join(declined, acknowledged),
			admits:  each("spec.acknowledge.text", "🙏"),
			refuses: each("spec.acknowledge.text", ""),
		},
		"an acknowledgement's text has at most 512 characters": {
			covers:  "spec.acknowledge.text maxLength",
			start:   join(declined, acknowledged),
			admits:  each("spec.acknowledge.text", letters(512)),
			refuses: each("spec.acknowledge.text", letters(513)),
		},
		"at least one earlier message": {
			covers:  "spec.history.limit minimum",
			admits:  each("spec.history.limit", 1),
			refuses: each("spec.history.limit", 0),
		},
		"at most 500 earlier messages": {
			covers:  "spec.history.limit maximum",
			admits:  each("spec.history.limit", 500),
			refuses: each("spec.history.limit", 501),
		},
		"a channel is named in one way": {
			covers: "spec.channelRef takes either name, or serverID and channelID",
			admits: one(edits{}, pair("discord:111:222")),
			refuses: one(
				set("spec.channelRef", map[string]any{}),
				set("spec.channelRef.serverID", "discord"),
				set("spec.channelRef.channelID", "discord:111:222"),
				set("spec.channelRef.serverID", "discord", "spec.channelRef.channelID", "discord:111:222"),
				set("spec.channelRef", map[string]any{"serverID": "discord"}),
				set("spec.channelRef", map[string]any{"channelID": "discord:111:222"}),
			),
		},
		"a channel's name is not empty": {
			covers:  "spec.channelRef.name minLength",
			admits:  each("spec.channelRef.name", "a"),
			refuses: each("spec.channelRef.name", ""),
		},
		"a channel's name has at most 63 characters": {
			covers:  "spec.channelRef.name maxLength",
			admits:  each("spec.channelRef.name", letters(63)),
			refuses: each("spec.channelRef.name", letters(64)),
		},
		"a serverID is not empty": {
			covers:  "spec.channelRef.serverID minLength",
			admits:  one(server("a")),
			refuses: one(server("")),
		},
		"a serverID has at most 45 characters": {
			covers:  "spec.channelRef.serverID maxLength",
			admits:  one(server(letters(45))),
			refuses: one(server(letters(46))),
		},
		"a serverID is a DNS label": {
			covers:  "spec.channelRef.serverID pattern",
			start:   server("a"),
			admits:  each("spec.channelRef.serverID", "discord", "0", "a-9"),
			refuses: each("spec.channelRef.serverID", "Discord", "-a", "a-", "a.b", "a:b", "a/b", "a\n"),
		},
		"a channelID is not empty": {
			covers:  "spec.channelRef.channelID minLength",
			admits:  one(pair("a")),
			refuses: one(pair("")),
		},
		"a channelID has at most 2,048 characters": {
			covers:  "spec.channelRef.channelID maxLength",
			admits:  one(pair(letters(2048))),
			refuses: one(pair(letters(2049))),
		},
		"a channelID has no control characters": {
			covers:  "spec.channelRef.channelID pattern",
			start:   pair("a"),
			admits:  each("spec.channelRef.channelID", `a b,c=d\e`),
			refuses: each("spec.channelRef.channelID", controls...),
		},
		"decidedBy is not empty": {
			covers:  "spec.decidedBy minLength",
			admits:  each("spec.decidedBy", "a"),
			refuses: each("spec.decidedBy", ""),
		},
		"decidedBy has at most 512 characters": {
			covers:  "spec.decidedBy maxLength",
			admits:  each("spec.decidedBy", letters(512)),
			refuses: each("spec.decidedBy", letters(513)),
		},
		"decidedBy has no control characters": {
			covers:  "spec.decidedBy pattern",
			admits:  each("spec.decidedBy", "scout", `system:serviceaccount:a "b" \ c`, "jane@example.org", "Küche/👀"),
			refuses: each("spec.decidedBy", append(controls, "\u0080", "a\u009b31m")...),
		},
		"requestedBy is not empty": {
			covers:  "spec.requestedBy minLength",
			admits:  each("spec.requestedBy", adminName),
			refuses: each("spec.requestedBy", ""),
		},
		"requestedBy has at most 512 characters": {
			covers:  "spec.requestedBy maxLength",
			admits:  each("spec.requestedBy", adminName),
			refuses: each("spec.requestedBy", letters(513)),
		},
		"requestedBy has no control characters": {
			covers:  "spec.requestedBy pattern",
			admits:  each("spec.requestedBy", adminName),
			refuses: each("spec.requestedBy", append(controls, "\u0080", "a\u009b31m")...),
		},
		"a decision may wait no time for its channel": {
			covers:  "spec.deadlineSeconds minimum",
			admits:  each("spec.deadlineSeconds", 0),
			refuses: each("spec.deadlineSeconds", -1),
		},
		"a decision waits at most a week for its channel": {
			covers:  "spec.deadlineSeconds maximum",
			admits:  each("spec.deadlineSeconds", 604800),
			refuses: each("spec.deadlineSeconds", 604801),
		},
		"a finished decision may be kept no time": {
			covers:  "spec.ttlSecondsAfterFinished minimum",
			admits:  each("spec.ttlSecondsAfterFinished", 0),
			refuses: each("spec.ttlSecondsAfterFinished", -1),
		},
		"a result is one word": {
			covers: "status.result enum",
			step:   onStatus,
			admits: each("status.result",
				"Opened", "AlreadyOpen", "Reconciled", "Closed", "AlreadyClosed", "RemainedClosed", "Declined", "Replaced",
				"Refused", "Superseded", "Failed"),
			refuses: each("status.result", "Decline", ""),
		},
		"a cause has at most 64 characters": {
			covers:  "status.cause maxLength",
			step:    onStatus,
			admits:  each("status.cause", letters(64)),
			refuses: each("status.cause", letters(65)),
		},
		"an acknowledgement ends in one of three ways": {
			covers:  "status.acknowledgement.state enum",
			step:    onStatus,
			admits:  each("status.acknowledgement.state", "Acknowledged", "Failed", "Interrupted"),
			refuses: each("status.acknowledgement.state", "Posted", ""),
		},
		"an acknowledgement's end is known": {
			covers: "status.acknowledgement.state required",
			step:   onStatus,
			admits: one(set(
				"status.acknowledgement.state", "Failed",
				"status.acknowledgement.representation", "reaction", "status.acknowledgement.message", "It was late.",
			)),
			refuses: one(unset("status.acknowledgement.state"), set("status.acknowledgement", map[string]any{})),
		},
		"a history's result has a count": {
			covers:  "status.history.count required",
			step:    onStatus,
			admits:  one(set("status.history.count", 0, "status.history.truncated", false)),
			refuses: one(unset("status.history.count")),
		},
		"a history's result says whether there was more": {
			covers:  "status.history.truncated required",
			step:    onStatus,
			admits:  one(set("status.history.count", 0, "status.history.truncated", false)),
			refuses: one(unset("status.history.truncated")),
		},
	})
}

// adminName is who the tests' administrator is: requestedBy must be true.
const adminName = "admin"

// required shows that an object without the field is refused.
func required(path string) rule {
	return rule{covers: path + " required", admits: one(edits{}), refuses: one(unset(path))}
}
