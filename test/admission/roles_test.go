package admission

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Each role may do what stands here in a namespace where it is bound, and nothing else.
func TestRoles(t *testing.T) {
	const read = "get list watch"
	for role, may := range map[string]map[string]string{
		"mcpl-viewer": {
			"connectors": read, "channels": read, "channeldecisions": read, "channelrecords": read,
		},
		"mcpl-editor": {
			"connectors":       read + " create update patch delete",
			"channels":         read + " create update patch delete",
			"channeldecisions": read,
			"channelrecords":   read,
		},
		"mcpl-resident": {
			"connectors": read, "channels": read, "channeldecisions": read + " create", "channelrecords": read,
		},
		"mcpl-admin": {
			"connectors":       read + " create update patch delete hold",
			"channels":         read + " create update patch delete hold",
			"channeldecisions": read + " create update patch delete attribute",
			"channelrecords":   read + " delete",
			"residents":        "speakfor",
		},
	} {
		t.Run(role, func(t *testing.T) {
			namespace, user := newNamespace(t), "a-"+role
			bind(t, namespace, user, rbacv1.RoleRef{Kind: "ClusterRole", Name: role})
			awaitRight(t, namespace, user, right{"get", "channels", ""})
			for _, resource := range []string{
				"connectors", "connectors/status", "connectors/finalizers",
				"channels", "channels/status", "channels/finalizers",
				"channeldecisions", "channeldecisions/status", "channeldecisions/finalizers",
				"channelrecords", "residents", "residents/status",
			} {
				for _, verb := range []string{
					"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection",
					"speakfor", "attribute", "hold", "impersonate", "bind", "escalate",
				} {
					got, err := allowed(t.Context(), namespace, user, right{verb, resource, ""})
					if err != nil {
						t.Fatal(err)
					}
					if want := slices.Contains(strings.Fields(may[resource]), verb); got != want {
						t.Errorf("%s %s: allowed %v, want %v", verb, resource, got, want)
					}
				}
			}
			if has, err := allowed(t.Context(), "default", user, right{"get", "channels", ""}); has || err != nil {
				t.Errorf("it reaches into another namespace: %v %v", has, err)
			}
		})
	}
}

// shippedRoles are the Roles and ClusterRoles of config/rbac and of the samples.
func shippedRoles(t *testing.T) []*rbacv1.ClusterRole {
	t.Helper()
	var roles []*rbacv1.ClusterRole
	for _, dir := range []string{"rbac", "samples"} {
		objects, err := manifests(filepath.Join(configDir, dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			if o.GetKind() == "ClusterRole" || o.GetKind() == "Role" {
				roles = append(roles, typed[rbacv1.ClusterRole](t, o))
			}
		}
	}
	return roles
}

// typed reads the object as a T.
func typed[T any](t *testing.T, o *unstructured.Unstructured) *T {
	t.Helper()
	into := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, into); err != nil {
		t.Fatal(err)
	}
	return into
}

// What no shipped role may say.
func TestRolesAreNarrow(t *testing.T) {
	for _, role := range shippedRoles(t) {
		for _, rule := range role.Rules {
			for _, words := range [][]string{rule.Verbs, rule.Resources, rule.APIGroups, rule.NonResourceURLs} {
				if slices.Contains(words, "*") {
					t.Errorf("%s %s has a rule with *: %v", role.Kind, role.Name, rule)
				}
			}
			for _, verb := range []string{"escalate", "bind", "impersonate", "deletecollection"} {
				if slices.Contains(rule.Verbs, verb) {
					t.Errorf("%s %s has the verb %s", role.Kind, role.Name, verb)
				}
			}
			if slices.Contains(rule.Resources, "secrets") &&
				(role.Kind != "Role" || len(rule.ResourceNames) == 0 || !slices.Equal(rule.Verbs, []string{"get"})) {
				t.Errorf("%s %s reads more than named Secrets: %v", role.Kind, role.Name, rule)
			}
			if slices.Contains(rule.Resources, "events") && !slices.Equal(rule.APIGroups, []string{"events.k8s.io"}) {
				t.Errorf("%s %s writes events of the old kind, which nothing of ours does: %v", role.Kind, role.Name, rule)
			}
			if slices.Contains(rule.Resources, "pods/exec") {
				t.Errorf("%s %s reaches into pods", role.Kind, role.Name)
			}
		}
	}
}

// The log of a channel is what the manager says it is.
func TestOnlyTheManagerWritesRecords(t *testing.T) {
	for _, role := range shippedRoles(t) {
		for _, rule := range role.Rules {
			writes := slices.ContainsFunc(rule.Verbs, func(verb string) bool {
				return slices.Contains([]string{"create", "update", "patch"}, verb)
			})
			if writes && slices.Contains(rule.Resources, "channelrecords") && role.Name != "mcpl-manager" {
				t.Errorf("%s %s writes ChannelRecords", role.Kind, role.Name)
			}
		}
	}
}

// The controller that fills the built-in roles does not run here; what it goes by is looked at.
func TestRolesAggregate(t *testing.T) {
	for name, want := range map[string][]string{
		"view":  {"mcpl-viewer"},
		"edit":  {"mcpl-editor"},
		"admin": {"mcpl-admin"},
	} {
		builtin := &rbacv1.ClusterRole{}
		if err := admin.Get(t.Context(), client.ObjectKey{Name: name}, builtin); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, role := range shippedRoles(t) {
			for _, s := range builtin.AggregationRule.ClusterRoleSelectors {
				selector, err := metav1.LabelSelectorAsSelector(&s)
				if err != nil {
					t.Fatal(err)
				}
				if selector.Matches(labels.Set(role.Labels)) {
					got = append(got, role.Name)
				}
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s takes up %v, want %v", name, got, want)
		}
	}
}
