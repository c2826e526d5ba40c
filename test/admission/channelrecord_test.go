package admission

import (
	"maps"
	"testing"
)

const record = `
apiVersion: mcpl.dev/v1alpha1
kind: ChannelRecord
serverID: discord
channelID: "discord:111:222"
revision: 3
record: {id: "3", state: Closed, source: AgentTool, decidedBy: scout, at: "2026-01-01T00:00:03Z"}
history:
- {revision: 3, id: "3", state: Closed, source: AgentTool, decidedBy: scout, at: "2026-01-01T00:00:03Z"}
`

// tunedOut is a record of a tune-out under way.
var tunedOut = set(
	"record.state", "TunedOut",
	"tuneOut", map[string]any{
		"epochID":    "e",
		"startedAt":  "2026-01-01T00:00:03Z",
		"parameters": map[string]any{"cadenceSeconds": int64(1800), "backlogCap": int64(200), "maxWakes": int64(5)},
	},
)

func TestChannelRecordGuards(t *testing.T) {
	next := func(revision int) edits {
		return set("revision", revision, "record.id", "next", "record.state", "Open", "tuneOut", absent)
	}
	rules := map[string]rule{
		"the pair stays": {
			covers:  "serverID and channelID can not be changed: a record is about one channel",
			step:    onUpdate,
			admits:  one(edits{}, next(4)),
			refuses: one(set("serverID", "slack"), set("channelID", "discord:111:223"), join(next(5), set("channelID", "a"))),
		},
		"the log only grows": {
			covers:  "revision can not go back: the log only grows",
			step:    onUpdate,
			admits:  one(next(4), join(next(5), set("record.id", "5"))),
			refuses: one(next(4), join(next(4), set("record.id", "5")), next(1)),
		},
		"the same revision is the same record": {
			covers: "record can not be changed without a new revision",
			step:   onUpdate,
			start:  tunedOut,
			// What decides nothing leaves the revision alone.
			admits: one(
				set("tuneOut.wakes", 1),
				set("tuneOut.parameters.maxWakes", 7),
				set("policyNoticeGiven", true, "labelSightings.last", "general"),
				set("metadata.labels", map[string]any{"mcpl.dev/orphaned": "true"}),
			),
			refuses: one(
				set("record.id", "other"),
				set("record.source", "Housekeeping"),
				set("record.decidedBy", "iris"),
				set("record.at", "2026-01-01T00:00:04Z"),
				set("record.state", "Open", "tuneOut", absent),
				set("record.decisionRef", map[string]any{"kind": "ChannelDecision", "name": "a", "uid": "1"}),
			),
		},
		"a tune-out is remembered while it lasts": {
			covers: "tuneOut must be set while record.state is TunedOut, and only then",
			admits: one(edits{}, tunedOut),
			refuses: one(
				set("record.state", "TunedOut"),
				join(tunedOut, set("record.state", "Closed")),
				join(tunedOut, set("record.state", "Open")),
			),
		},
		"a tune-out is forgotten with its record": {
			covers:  "tuneOut must be set while record.state is TunedOut, and only then",
			step:    onUpdate,
			start:   tunedOut,
			admits:  one(next(4)),
			refuses: one(set("revision", 5, "record.state", "TunedOut")),
		},
		"a serverID is there":  required("serverID"),
		"a channelID is there": required("channelID"),
		"a revision is there":  required("revision"),
		"a record is there":    required("record"),
		"a serverID is not empty": {
			covers: "serverID minLength", admits: each("serverID", "a"), refuses: each("serverID", ""),
		},
		"a serverID has at most 45 characters": {
			covers: "serverID maxLength", admits: each("serverID", letters(45)), refuses: each("serverID", letters(46)),
		},
		"a channelID is not empty": {
			covers: "channelID minLength", admits: each("channelID", "a"), refuses: each("channelID", ""),
		},
		"a channelID has at most 2,048 characters": {
			covers: "channelID maxLength", admits: each("channelID", letters(2048)), refuses: each("channelID", letters(2049)),
		},
		"revisions begin with 1": {
			covers: "revision minimum", admits: each("revision", 1), refuses: each("revision", 0, -1),
		},
		"at most 200 entries": {
			covers: "history maxItems", admits: each("history", entries(200), []any{}), refuses: each("history", entries(201)),
		},
		"an entry has a revision": required("history[].revision"),
		"an entry's revision is that of a record": {
			covers: "history[].revision minimum", admits: each("history[].revision", 1), refuses: each("history[].revision", 0),
		},
		"a label has at most 512 characters": {
			covers:  "labelSightings.last maxLength",
			admits:  each("labelSightings.last", letters(512)),
			refuses: each("labelSightings.last", letters(513)),
		},
		"at most 16 labels": {
			covers:  "labelSightings.seen maxItems",
			admits:  each("labelSightings.seen", many(16, "a")),
			refuses: each("labelSightings.seen", many(17, "a")),
		},
		"a seen label has at most 512 characters": {
			covers:  "labelSightings.seen[] maxLength",
			admits:  each("labelSightings.seen[]", letters(512)),
			refuses: each("labelSightings.seen[]", letters(513)),
		},
	}
	maps.Copy(rules, recordRules("record"))
	maps.Copy(rules, recordRules("history[]"))
	maps.Copy(rules, referenceRules("record.decisionRef", onCreate, nil))
	maps.Copy(rules, referenceRules("history[].decisionRef", onCreate, nil))
	maps.Copy(rules, tuneOutRules())
	check(t, "channelrecords", record, rules)
}

// entries is a history of n.
func entries(n int) []any {
	list := make([]any, n)
	for i := range list {
		list[i] = map[string]any{
			"revision": int64(n - i), "id": letters(64), "state": "Closed", "source": "AgentTool",
			"decidedBy": letters(512), "at": "2026-01-01T00:00:03Z", "named": true,
		}
	}
	return list
}

// recordRules are those of a record, in force or in the history.
func recordRules(path string) map[string]rule {
	rules := map[string]rule{
		path + ": an id is not empty": {
			covers: path + ".id minLength", admits: each(path+".id", "a"), refuses: each(path+".id", ""),
		},
		path + ": an id has at most 64 characters": {
			covers: path + ".id maxLength", admits: each(path+".id", letters(64)), refuses: each(path+".id", letters(65)),
		},
		path + ": a source is in the vocabulary": {
			covers: path + ".source enum", admits: each(path+".source", sources...), refuses: each(path+".source", "Agent", ""),
		},
		path + ": decidedBy has at most 512 characters": {
			covers:  path + ".decidedBy maxLength",
			admits:  each(path+".decidedBy", letters(512)),
			refuses: each(path+".decidedBy", letters(513)),
		},
		path + ": a state is one of three": {
			covers:  path + ".state enum",
			admits:  append(each(path+".state", "Open", "Closed"), join(tunedOut, set(path+".state", "TunedOut"))),
			refuses: each(path+".state", "Unconfirmed", ""),
		},
	}
	for _, field := range []string{"id", "state", "source", "at"} {
		rules[path+": "+field+" is there"] = required(path + "." + field)
	}
	return rules
}

// tuneOutRules are those of the memory of a tune-out.
func tuneOutRules() map[string]rule {
	rules := map[string]rule{}
	within := func(name, covers string, admits, refuses edits) {
		rules["tuneOut: "+name] = rule{covers: "tuneOut." + covers, start: tunedOut, admits: one(admits), refuses: one(refuses)}
	}
	for _, field := range []string{"epochID", "parameters", "startedAt", "parameters.cadenceSeconds", "parameters.backlogCap", "parameters.maxWakes"} {
		within(field+" is there", field+" required", edits{}, unset("tuneOut."+field))
	}
	floor := func(field string, least int) {
		within(field+" has a floor", field+" minimum", set("tuneOut."+field, least), set("tuneOut."+field, least-1))
	}
	floor("parameters.cadenceSeconds", 30)
	floor("parameters.backlogCap", 0)
	floor("parameters.maxWakes", 1)
	floor("parameters.durationSeconds", 60)
	floor("wakes", 0)
	within("epochID is not empty", "epochID minLength", set("tuneOut.epochID", "a"), set("tuneOut.epochID", ""))
	within("epochID has at most 64 characters", "epochID maxLength", set("tuneOut.epochID", letters(64)), set("tuneOut.epochID", letters(65)))
	maps.Copy(rules, referenceRules("tuneOut.ref", onCreate, tunedOut))
	return rules
}
