package admission

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Those who remove what is held without being asked for the verb, and one who is not among them.
const (
	garbageCollector    = "system:serviceaccount:kube-system:generic-garbage-collector"
	namespaceController = "system:serviceaccount:kube-system:namespace-controller"
	lookAlike           = "system:serviceaccount:default:generic-garbage-collector"
)

// held is an object with a hold.
func held(reason string) edits {
	return set("spec.hold", map[string]any{"state": "Closed", "reason": reason})
}

// owned is an object that belongs to another one, whether that exists or not.
func owned(uid string) edits {
	return set("metadata.ownerReferences", []any{
		map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid},
	})
}

// change are all verbs that change objects of the kind.
func change(plural string) []right {
	return []right{
		{"create", plural, ""}, {"update", plural, ""}, {"patch", plural, ""}, {"delete", plural, ""},
		{"deletecollection", plural, ""}, {"patch", plural + "/status", ""},
	}
}

// holdable are the kinds that can be held, each with an edit of its own that has nothing to do with holds.
var holdable = map[string]struct {
	manifest, other string
	edit            edits
}{
	"channels":   {channel, "connectors", set("spec.publishing", "Forbidden", "spec.admission", "Open", "spec.deletionPolicy", "Close")},
	"connectors": {connector, "channels", set("spec.window", 5, "spec.subscription.mode", "Auto", "spec.podSelector.matchLabels.app", "slack")},
}

// holdUsers are the users of the tests of a kind, and what they may do beside changing its objects.
func holdUsers(plural, other string) map[string][]right {
	return map[string][]right{
		"holder":      {{"hold", plural, ""}},
		"editor":      {},
		"holds-new":   {{"hold", plural, "new"}},
		"holds-held":  {{"hold", plural, "held"}},
		"holds-free":  {{"hold", plural, "free"}},
		"holds-other": {{"hold", other, ""}},
		"speaks":      {{"speakfor", "residents", ""}, {"attribute", "channeldecisions", ""}},
		"away":        {},
		lookAlike:     {},
	}
}

// holdSentences are what a user reads who may not hold one object of a kind, or may not change its owners.
func holdSentences(plural, namespace string) (hold, own func(user, name string) string) {
	remedy := func(name string) string {
		return fmt.Sprintf(`ask for the verb hold on %s.mcpl.dev %q in namespace %q.`, plural, name, namespace)
	}
	hold = func(user, name string) string {
		return fmt.Sprintf(`user %q may not set, change or lift spec.hold: `, user) + remedy(name)
	}
	own = func(user, name string) string {
		return fmt.Sprintf(`user %q may not change metadata.ownerReferences of what spec.hold holds: `, user) + remedy(name)
	}
	return hold, own
}

// Who may set, change and lift a hold.
func TestHolds(t *testing.T) {
	for plural, kind := range holdable {
		namespace, elsewhere := newNamespace(t), newNamespace(t)
		for user, rights := range holdUsers(plural, kind.other) {
			grant(t, namespace, user, append(change(plural), rights...)...)
		}
		grant(t, elsewhere, "away", right{"hold", plural, ""})
		for _, user := range []string{garbageCollector, namespaceController} {
			// Their rights are Kubernetes' own, and hold is not among them.
			awaitRight(t, namespace, user, right{"delete", plural, ""})
		}
		grant(t, namespace, namespaceController, right{"update", plural, ""})

		o := store(t, namespace, kind.manifest, map[string]edits{
			"held": held("incident 4711"), "unexplained": set("spec.hold.state", "Closed"), "free": {},
			"held-and-owned": join(held("incident 4711"), owned("1")),
		})
		hold, own := holdSentences(plural, namespace)

		lifted := unset("spec.hold")
		labelled := set("metadata.labels", map[string]any{"a": "b"})
		cases := map[string]struct {
			user    string
			request request
			// refused is the sentence that the user reads; empty where the request is admitted.
			refused string
		}{
			"it is made without one":               {"editor", o.create("new", nil), ""},
			"it is made with one":                  {"holder", o.create("new", held("")), ""},
			"the administrator makes it with one":  {adminName, o.create("new", held("")), ""},
			"nobody else makes it with one":        {"editor", o.create("new", held("")), hold("editor", "new")},
			"nor applies it with one":              {"editor", o.apply("new", held("")), hold("editor", "new")},
			"the holder applies it with one":       {"holder", o.apply("new", held("")), ""},
			"it is made with one by its name":      {"holds-new", o.create("new", held("")), ""},
			"it is applied with one by its name":   {"holds-new", o.apply("new", held("")), ""},
			"another's name makes none with one":   {"holds-held", o.create("new", held("")), hold("holds-held", "new")},
			"the verb on another kind":             {"holds-other", o.create("new", held("")), hold("holds-other", "new")},
			"the verb in another namespace":        {"away", o.create("new", held("")), hold("away", "new")},
			"the other verbs of ours":              {"speaks", o.create("new", held("")), hold("speaks", "new")},
			"one is added":                         {"holder", o.update("free", held("x")), ""},
			"one is added by its name":             {"holds-free", o.update("free", held("x")), ""},
			"nobody else adds one":                 {"editor", o.update("free", held("x")), hold("editor", "free")},
			"nor patches one in":                   {"editor", o.patch("free", `{"spec":{"hold":{"state":"Closed"}}}`), hold("editor", "free")},
			"nor applies one to it":                {"editor", o.apply("free", held("x")), hold("editor", "free")},
			"nor adds one beside another edit":     {"editor", o.update("free", join(held("x"), kind.edit)), hold("editor", "free")},
			"another's name adds none":             {"holds-held", o.update("free", held("x")), hold("holds-held", "free")},
			"its reason is changed":                {"holder", o.update("held", held("over soon")), ""},
			"its reason is changed by its name":    {"holds-held", o.update("held", held("over soon")), ""},
			"nobody else changes its reason":       {"editor", o.update("held", held("over soon")), hold("editor", "held")},
			"nor takes its reason away":            {"editor", o.update("held", unset("spec.hold.reason")), hold("editor", "held")},
			"nor empties its reason":               {"editor", o.update("held", held("")), hold("editor", "held")},
			"nor gives it a reason":                {"editor", o.update("unexplained", held("x")), hold("editor", "unexplained")},
			"another's name changes none":          {"holds-free", o.update("held", held("x")), hold("holds-free", "held")},
			"it is lifted":                         {"holder", o.update("held", lifted), ""},
			"it is lifted by its name":             {"holds-held", o.update("held", lifted), ""},
			"the administrator lifts it":           {adminName, o.update("held", lifted), ""},
			"nobody else lifts it":                 {"editor", o.update("held", lifted), hold("editor", "held")},
			"nor patches it away":                  {"editor", o.patch("held", `{"spec":{"hold":null}}`), hold("editor", "held")},
			"another's name lifts none":            {"holds-free", o.update("held", lifted), hold("holds-free", "held")},
			"nor the verb on another kind":         {"holds-other", o.update("held", lifted), hold("holds-other", "held")},
			"nor the verb in another namespace":    {"away", o.update("held", lifted), hold("away", "held")},
			"nor the other verbs of ours":          {"speaks", o.update("held", lifted), hold("speaks", "held")},
			"nor the garbage collector":            {garbageCollector, o.update("held", lifted), hold(garbageCollector, "held")},
			"nor the namespace controller":         {namespaceController, o.update("held", lifted), hold(namespaceController, "held")},
			"anybody labels what is held":          {"editor", o.update("held", labelled), ""},
			"anybody changes the rest of its spec": {"editor", o.update("held", kind.edit), ""},
			"anybody suspends it":                  {"editor", o.patch("held", `{"spec":{"suspend":true}}`), ""},
			"anybody writes it back as it is":      {"editor", o.update("held", nil), ""},
			"also where no reason is given":        {"editor", o.update("unexplained", labelled), ""},
			"anybody applies what does not say it": {"editor", o.apply("held", labelled), ""},
			"anybody adds a finalizer":             {"editor", o.update("held", set("metadata.finalizers", []any{"mcpl.dev/close"})), ""},
			"a status lifts nothing":               {"editor", o.patchStatus("held", `{"spec":{"hold":null},"status":{"observedGeneration":1}}`), ""},
			"what is free is owned by anything":    {"editor", o.update("free", owned("1")), ""},
			"what is held gets an owner":           {"holder", o.update("held", owned("1")), ""},
			"it gets an owner by its name":         {"holds-held", o.update("held", owned("1")), ""},
			"nobody else gives it an owner":        {"editor", o.update("held", owned("1")), own("editor", "held")},
			"nor another one":                      {"editor", o.update("held-and-owned", owned("2")), own("editor", "held-and-owned")},
			"nor takes its owner away":             {"editor", o.update("held-and-owned", unset("metadata.ownerReferences")), own("editor", "held-and-owned")},
			"anybody labels what is owned":         {"editor", o.update("held-and-owned", labelled), ""},
			"the garbage collector makes orphans":  {garbageCollector, o.update("held-and-owned", unset("metadata.ownerReferences")), ""},
			"what is free is deleted":              {"editor", o.remove("free"), ""},
			"all that is free is deleted":          {"editor", o.removeAll("free"), ""},
			"what is held is deleted":              {"holder", o.remove("held"), ""},
			"what is held is deleted by its name":  {"holds-held", o.remove("held"), ""},
			"the administrator deletes it":         {adminName, o.remove("held"), ""},
			"nobody else deletes it":               {"editor", o.remove("held"), hold("editor", "held")},
			"another's name deletes none":          {"holds-free", o.remove("held"), hold("holds-free", "held")},
			"all that is held is deleted":          {"holder", o.removeAll("held"), ""},
			"all is deleted by its name":           {"holds-held", o.removeAll("held"), ""},
			"nobody else deletes all":              {"editor", o.removeAll("held"), hold("editor", "held")},
			"another's name deletes not all":       {"holds-free", o.removeAll("held"), hold("holds-free", "held")},
			"what belongs to it is collected":      {garbageCollector, o.remove("held"), ""},
			"what is in a namespace is collected":  {namespaceController, o.removeAll("held"), ""},
			"not by whoever has half of its name":  {lookAlike, o.remove("held"), hold(lookAlike, "held")},
		}
		for name, tc := range cases {
			t.Run(plural+": "+name, func(t *testing.T) {
				wantAnswer(t, tc.request(t.Context(), userClient(t, tc.user)), tc.refused)
			})
		}
	}
}

// A hold is set at once on an object whose name the API server makes up.
func TestHoldsUnderGeneratedNames(t *testing.T) {
	for plural, kind := range holdable {
		t.Run(plural, func(t *testing.T) {
			namespace := newNamespace(t)
			grant(t, namespace, "holder", right{"create", plural, ""}, right{"hold", plural, ""})
			grant(t, namespace, "editor", right{"create", plural, ""})
			create := func(user string) error {
				o := object(kind.manifest).with(set("metadata.namespace", namespace), held(""))
				o.SetName("")
				o.SetGenerateName("some-")
				return userClient(t, user).Create(t.Context(), o.Unstructured, client.DryRunAll)
			}
			wantAnswer(t, create("holder"), "")
			err := create("editor")
			if sentence := `may not set, change or lift spec.hold: ask for the verb hold on ` + plural + `.mcpl.dev "some-`; !apierrors.IsForbidden(err) ||
				!strings.Contains(err.Error(), sentence) {
				t.Errorf("the sentence is %v, want one with %q", err, sentence)
			}
		})
	}
}

// Whoever may delete empties a namespace that is going, as its controller does. There is none here,
// so the namespace stays.
func TestHoldsInANamespaceThatGoes(t *testing.T) {
	for plural, kind := range holdable {
		t.Run(plural, func(t *testing.T) {
			namespace := newNamespace(t)
			o := store(t, namespace, kind.manifest, map[string]edits{"held": held("incident 4711")})
			grant(t, namespace, "editor", change(plural)...)
			editor := userClient(t, "editor")
			hold, own := holdSentences(plural, namespace)
			wantAnswer(t, o.remove("held")(t.Context(), editor), hold("editor", "held"))
			if err := admin.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
				t.Fatal(err)
			}
			if err := eventually(t.Context(), func(ctx context.Context) error { return o.remove("held")(ctx, editor) }); err != nil {
				t.Error(err)
			}
			wantAnswer(t, o.removeAll("held")(t.Context(), editor), "")
			wantAnswer(t, o.removeAll("held")(t.Context(), userClient(t, namespaceController)), "")
			// To go is not to be free: until then it is held.
			wantAnswer(t, o.update("held", unset("spec.hold"))(t.Context(), editor), hold("editor", "held"))
			wantAnswer(t, o.update("held", owned("1"))(t.Context(), editor), own("editor", "held"))
		})
	}
}

// An object that waits for a finalizer was asked for when it was deleted, and goes unhindered.
func TestWhatWasHeldGoes(t *testing.T) {
	for plural, kind := range holdable {
		t.Run(plural, func(t *testing.T) {
			namespace := newNamespace(t)
			o := store(t, namespace, kind.manifest, map[string]edits{
				"held": join(held("incident 4711"), set("metadata.finalizers", []any{"mcpl.dev/close"})),
			})
			grant(t, namespace, "editor", change(plural)...)
			if err := admin.Delete(t.Context(), o.stored["held"].DeepCopy()); err != nil {
				t.Fatal(err)
			}
			wantAnswer(t, o.patch("held", `{"metadata":{"finalizers":null}}`)(t.Context(), userClient(t, "editor")), "")
		})
	}
}

// The shipped roles: the admin holds, the editor does not, and the manager works on what is held.
func TestWhoHoldsByRole(t *testing.T) {
	const manager = "system:serviceaccount:mcpl-system:mcpl-manager"
	for plural, kind := range holdable {
		namespace := newNamespace(t)
		o := store(t, namespace, kind.manifest, map[string]edits{"held": held("incident 4711")})
		for _, role := range []string{"mcpl-admin", "mcpl-editor"} {
			bind(t, namespace, "a-"+role, rbacv1.RoleRef{Kind: "ClusterRole", Name: role})
			awaitRight(t, namespace, "a-"+role, right{"delete", plural, ""})
		}
		hold, _ := holdSentences(plural, namespace)
		requests := map[string]request{
			"sets": o.create("another", held("")), "changes": o.update("held", held("")),
			"lifts": o.update("held", unset("spec.hold")), "deletes": o.remove("held"),
		}
		for verb, r := range requests {
			name := "held"
			if verb == "sets" {
				name = "another"
			}
			t.Run(plural+": the admin "+verb, func(t *testing.T) {
				wantAnswer(t, r(t.Context(), userClient(t, "a-mcpl-admin")), "")
			})
			t.Run(plural+": the editor does not, who "+verb, func(t *testing.T) {
				wantAnswer(t, r(t.Context(), userClient(t, "a-mcpl-editor")), hold("a-mcpl-editor", name))
			})
		}
		t.Run(plural+": the manager writes the status of what is held", func(t *testing.T) {
			wantAnswer(t, o.patchStatus("held", `{"spec":{"hold":null},"status":{"observedGeneration":1}}`)(t.Context(), userClient(t, manager)), "")
		})
		if plural != "channels" {
			continue
		}
		t.Run("the manager adds its finalizer to what is held, and lifts nothing", func(t *testing.T) {
			c := userClient(t, manager)
			wantAnswer(t, o.patch("held", `{"metadata":{"finalizers":["mcpl.dev/close"]}}`)(t.Context(), c), "")
			wantAnswer(t, o.patch("held", `{"spec":{"hold":null}}`)(t.Context(), c), hold(manager, "held"))
			wantAnswer(t, o.remove("held")(t.Context(), c), hold(manager, "held"))
		})
	}
}
