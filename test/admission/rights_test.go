package admission

import (
	"context"
	"fmt"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A right is one verb on one resource of the group, on one object or on all (name is empty).
type right struct{ verb, resource, name string }

// grant gives the user the rights in the namespace and waits until they are in force.
func grant(t *testing.T, namespace, user string, rights ...right) {
	t.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "test-"}}
	for _, r := range rights {
		rule := rbacv1.PolicyRule{APIGroups: []string{"mcpl.dev"}, Resources: []string{r.resource}, Verbs: []string{r.verb}}
		if r.name != "" {
			rule.ResourceNames = []string{r.name}
		}
		role.Rules = append(role.Rules, rule)
	}
	if err := admin.Create(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	bind(t, namespace, user, rbacv1.RoleRef{Kind: "Role", Name: role.Name})
	for _, r := range rights {
		awaitRight(t, namespace, user, r)
	}
}

// bind gives the user a role in the namespace.
func bind(t *testing.T, namespace, user string, ref rbacv1.RoleRef) {
	t.Helper()
	if err := admin.Create(t.Context(), binding(namespace, user, ref)); err != nil {
		t.Fatal(err)
	}
}

// binding is what gives the user a role in the namespace.
func binding(namespace, user string, ref rbacv1.RoleRef) *rbacv1.RoleBinding {
	ref.APIGroup = rbacv1.GroupName
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "test-"},
		RoleRef:    ref,
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	}
}

// awaitRight waits until the user has the right.
func awaitRight(t *testing.T, namespace, user string, r right) {
	t.Helper()
	if err := eventually(t.Context(), func(ctx context.Context) error {
		has, err := allowed(ctx, namespace, user, r)
		if err == nil && !has {
			err = fmt.Errorf("%s may not yet %v", user, r)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// allowed asks the authorizer about one of our kinds.
func allowed(ctx context.Context, namespace, user string, r right) (bool, error) {
	resource, subresource, _ := strings.Cut(r.resource, "/")
	return review(ctx, user, authorizationv1.ResourceAttributes{
		Namespace: namespace, Group: "mcpl.dev", Version: "v1alpha1",
		Verb: r.verb, Resource: resource, Subresource: subresource, Name: r.name,
	})
}

// readsSecret asks the authorizer about a Secret.
func readsSecret(ctx context.Context, user, namespace, name string) (bool, error) {
	return review(ctx, user, authorizationv1.ResourceAttributes{
		Namespace: namespace, Version: "v1", Verb: "get", Resource: "secrets", Name: name,
	})
}

func review(ctx context.Context, user string, attributes authorizationv1.ResourceAttributes) (bool, error) {
	question := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user, Groups: []string{"system:authenticated"}, ResourceAttributes: &attributes,
	}}
	err := admin.Create(ctx, question)
	return question.Status.Allowed, err
}
