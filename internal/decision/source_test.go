package decision

import (
	"slices"
	"testing"

	v1 "mcpl.dev/operator/api/v1alpha1"
)

func TestEverySourceHasItsRow(t *testing.T) {
	// The words of semantics §3.3.
	words := map[v1.Source]string{
		"AgentTool":             "agent-tool",
		"InvitationDeclined":    "invitation-declined",
		"ModuleTool":            "module-tool",
		"SubscriptionGC":        "subscription-gc",
		"Housekeeping":          "housekeeping",
		"DefaultClosed":         "default-closed",
		"ServerBootstrap":       "server-bootstrap",
		"SubscriptionPolicy":    "subscription-policy",
		"OpenedByDelivery":      "opened-by-delivery",
		"OpenedByReply":         "opened-by-reply",
		"Subconscious":          "subconscious",
		"Duration":              "duration",
		"TuneOutMaxWakes":       "tune-out-max-wakes",
		"LegacyRecipeMigration": "legacy-recipe-migration",
		"Unknown":               "unknown",
	}
	got := map[v1.Source]string{}
	for source, rules := range sources {
		got[source] = rules.word
	}
	same(t, words, got)
	for _, source := range vocabulary {
		if _, ok := words[source]; !ok {
			t.Errorf("%s is no word of the vocabulary", source)
		}
	}
	same(t, len(words), len(vocabulary))
}

func TestClassesOfSources(t *testing.T) {
	for _, source := range append(slices.Clone(vocabulary), "", "Nonsense") {
		same(t, slices.Contains(deliberateSources, source), Deliberate(source))
		same(t, slices.Contains(machineSources, source), Machine(source))
	}
}

func TestExplicitOpen(t *testing.T) {
	for _, record := range everyRecord() {
		want := record == openBy(v1.SourceAgentTool) || record == tunedOut()
		if got := ExplicitOpen(record); got != want {
			t.Errorf("ExplicitOpen(%v) = %v", record, got)
		}
	}
}
