package admission

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Who may decide as whom.
func TestDecisionNames(t *testing.T) {
	namespace, elsewhere := newNamespace(t), newNamespace(t)
	create := right{"create", "channeldecisions", ""}
	speakfor := func(resident string) right { return right{"speakfor", "residents", resident} }
	longName := letters(512)
	// An answer has at most 5 KiB, and of these names the two together are longer.
	manyBytes, hugeUser := strings.Repeat("👀", 512), strings.Repeat("👀", 800)
	for user, rights := range map[string][]right{
		"scout-agent":  {speakfor("scout"), create},
		"iris-agent":   {speakfor("iris"), create},
		"speaks-all":   {speakfor(""), create},
		"collector":    {create},
		"gateway":      {{"attribute", "channeldecisions", ""}, create},
		"reads-scout":  {{"get", "residents", "scout"}, create},
		"away":         {create},
		"scout":        {create},
		longName:       {create},
		"a \"b\" \\ c": {create},
		hugeUser:       {speakfor("scout"), create},
	} {
		grant(t, namespace, user, rights...)
	}
	grant(t, elsewhere, "away", speakfor("scout"), right{"attribute", "channeldecisions", ""})

	mayNotSpeak := func(user, resident string) string {
		return fmt.Sprintf("spec.decidedBy is %q, a resident for which user %q may not speak: ask for the verb speakfor"+
			" on residents.mcpl.dev %q in namespace %q.", resident, user, resident, namespace)
	}
	notTheUser := func(user, name string) string {
		return fmt.Sprintf("spec.decidedBy is %q and the user is %q: set it to the name of the user, or ask for the verb"+
			" attribute on channeldecisions.mcpl.dev in namespace %q.", name, user, namespace)
	}
	notRequested := func(user, name string) string {
		return fmt.Sprintf("spec.requestedBy is %q and the user is %q: set it to the name of the user, or leave it out.", name, user)
	}
	as := func(source, decidedBy string) edits {
		return join(from("Close", source), set("spec.decidedBy", decidedBy))
	}
	decline := func(decidedBy string) edits { return join(declined, set("spec.decidedBy", decidedBy)) }
	requestedBy := func(name string) edits { return set("spec.requestedBy", name) }

	for name, tc := range map[string]struct {
		user   string
		object edits
		// refused is the sentence that the user reads; empty where the decision is admitted.
		refused string
	}{
		"a resident's agent decides as the resident": {"scout-agent", as("AgentTool", "scout"), ""},
		"it opens, too":                                {"scout-agent", from("Open", "AgentTool"), ""},
		"not as another resident":                      {"scout-agent", as("AgentTool", "iris"), mayNotSpeak("scout-agent", "iris")},
		"another resident's agent does not":            {"iris-agent", as("AgentTool", "scout"), mayNotSpeak("iris-agent", "scout")},
		"whoever speaks for all decides as any":        {"speaks-all", as("AgentTool", "iris"), ""},
		"who may only create decides as no resident":   {"collector", as("AgentTool", "scout"), mayNotSpeak("collector", "scout")},
		"reading a resident is not speaking for it":    {"reads-scout", as("AgentTool", "scout"), mayNotSpeak("reads-scout", "scout")},
		"a user of the resident's name is not it":      {"scout", as("AgentTool", "scout"), mayNotSpeak("scout", "scout")},
		"to speak in one namespace is not in another":  {"away", as("AgentTool", "scout"), mayNotSpeak("away", "scout")},
		"attribute does not speak for a resident":      {"gateway", as("AgentTool", "scout"), mayNotSpeak("gateway", "scout")},
		"a resident's name is not a pattern":           {"scout-agent", as("AgentTool", "*"), mayNotSpeak("scout-agent", "*")},
		"the administrator decides as any":             {adminName, as("AgentTool", "scout"), ""},
		"a machine closes under its own name":          {"collector", as("SubscriptionGC", "collector"), ""},
		"a module does":                                {"collector", as("ModuleTool", "collector"), ""},
		"a housekeeper does":                           {"collector", as("Housekeeping", "collector"), ""},
		"a machine does not use another name":          {"collector", as("SubscriptionGC", "gateway"), notTheUser("collector", "gateway")},
		"a module does not use a resident's name":      {"collector", as("ModuleTool", "scout"), notTheUser("collector", "scout")},
		"a housekeeper does not use another name":      {"collector", as("Housekeeping", "Collector"), notTheUser("collector", "Collector")},
		"to speak for a resident is not to attribute":  {"scout-agent", as("ModuleTool", "scout"), notTheUser("scout-agent", "scout")},
		"to attribute in one namespace is not another": {"away", as("ModuleTool", "x"), notTheUser("away", "x")},
		"whoever attributes uses any name":             {"gateway", as("ModuleTool", "jane@example.org"), ""},
		"the administrator uses any name":              {adminName, as("Housekeeping", "jane@example.org"), ""},
		"a resident's agent declines as the resident":  {"scout-agent", join(decline("scout"), acknowledged), ""},
		"whoever speaks for all declines as any":       {"speaks-all", decline("iris"), ""},
		"the administrator declines as any":            {adminName, decline("iris"), ""},
		"nobody declines as another resident":          {"scout-agent", decline("iris"), mayNotSpeak("scout-agent", "iris")},
		"who may only create declines as no resident":  {"collector", decline("scout"), mayNotSpeak("collector", "scout")},
		"nor under its own name":                       {"collector", decline("collector"), mayNotSpeak("collector", "collector")},
		"attribute does not decline for a resident":    {"gateway", decline("scout"), mayNotSpeak("gateway", "scout")},
		"to decline in one namespace is not another":   {"away", decline("scout"), mayNotSpeak("away", "scout")},
		"a decline that is asked for under another's name": {
			"scout-agent", join(decline("scout"), requestedBy("jane@example.org")), notRequested("scout-agent", "jane@example.org"),
		},
		"a request under the user's name": {
			"scout-agent", join(as("AgentTool", "scout"), requestedBy("scout-agent")), "",
		},
		"a request under another name": {
			"scout-agent", join(as("AgentTool", "scout"), requestedBy("jane@example.org")), notRequested("scout-agent", "jane@example.org"),
		},
		"a request under the resident's name": {
			"scout-agent", join(as("AgentTool", "scout"), requestedBy("scout")), notRequested("scout-agent", "scout"),
		},
		"whoever attributes signs with his own name": {
			"gateway", join(as("ModuleTool", "x"), requestedBy("x")), notRequested("gateway", "x"),
		},
		"not even the administrator signs for another": {
			adminName, join(as("AgentTool", "scout"), requestedBy("jane@example.org")), notRequested(adminName, "jane@example.org"),
		},
		"the longest name": {
			longName, join(as("ModuleTool", longName), requestedBy(longName)), "",
		},
		"a name that needs quoting": {
			`a "b" \ c`, join(as("ModuleTool", `a "b" \ c`), requestedBy(`a "b" \ c`)), "",
		},
		"names that are too long for an answer get the plain sentence": {
			hugeUser, as("AgentTool", manyBytes),
			"spec.decidedBy names a resident for which the user may not speak: ask for the verb speakfor on residents.mcpl.dev of that name in this namespace.",
		},
		"so do a machine's": {
			hugeUser, as("ModuleTool", manyBytes),
			"spec.decidedBy is not the name of the user: set it to that name, or ask for the verb attribute on channeldecisions.mcpl.dev in this namespace.",
		},
		"so do a request's": {
			hugeUser, join(as("AgentTool", "scout"), requestedBy(manyBytes)),
			"spec.requestedBy is not the name of the user: set it to that name, or leave it out.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := object(decision).with(set("metadata.namespace", namespace), tc.object)
			wantAnswer(t, userClient(t, tc.user).Create(t.Context(), o.Unstructured, client.DryRunAll), tc.refused)
		})
	}
}

// wantAnswer asks that a policy refused with the sentence, or, where it is empty, that nothing did.
func wantAnswer(t *testing.T, err error, refused string) {
	t.Helper()
	switch {
	case refused == "" && err != nil:
		t.Errorf("refused: %v", err)
	case refused != "" && !apierrors.IsForbidden(err):
		t.Errorf("want forbidden, got %v", err)
	case refused != "" && !strings.HasSuffix(err.Error(), "denied request: "+refused):
		t.Errorf("the sentence is %q,\nwant %q", err, refused)
	}
}

// A decision is checked when it is made. Whoever labels it later need not be who decided.
func TestDecisionNamesAreCheckedOnce(t *testing.T) {
	namespace := newNamespace(t)
	made := object(decision).with(set("metadata.namespace", namespace, "spec.requestedBy", adminName))
	if err := admin.Create(t.Context(), made.Unstructured); err != nil {
		t.Fatal(err)
	}
	grant(t, namespace, "librarian", right{"update", "channeldecisions", ""})
	labelled := made.with(set("metadata.labels", map[string]any{"a": "b"}))
	if err := userClient(t, "librarian").Update(t.Context(), labelled.Unstructured); err != nil {
		t.Error(err)
	}
}
