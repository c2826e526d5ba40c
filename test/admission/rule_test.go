package admission

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A step says which request a rule is tried with.
type step int

const (
	// onCreate tries each side as a new object.
	onCreate step = iota
	// onUpdate makes the object and then changes it.
	onUpdate
	// onStatus makes the object and then writes its status.
	onStatus
)

// A rule shows one restriction of a schema from both sides.
type rule struct {
	// covers is the key of the restriction.
	covers string
	step   step
	// start prepares the valid object for both sides.
	start edits
	// admits are tried one after another, and each is admitted.
	admits []edits
	// refuses are tried one after another, and each is refused because of the restriction.
	refuses []edits
}

// each sets one path to one value after another.
func each(path string, values ...any) []edits {
	var all []edits
	for _, value := range values {
		all = append(all, set(path, value))
	}
	return all
}

// one is a list of one set of edits.
func one(all ...edits) []edits { return all }

// check tries the rules of a kind on a valid object of it, and then asks whether the schema has
// any restriction that no rule shows: a marker without a test is found here.
func check(t *testing.T, plural, valid string, rules map[string]rule) {
	t.Helper()
	known, namespace := restrictionsOf(t, plural), newNamespace(t)
	covered := map[string]bool{}
	for name, r := range rules {
		restriction, isKnown := known[r.covers]
		if !isKnown {
			t.Errorf("%q: the schema of %s has no restriction %q", name, plural, r.covers)
			continue
		}
		covered[r.covers] = true
		t.Run(name, func(t *testing.T) {
			if len(r.admits) == 0 || len(r.refuses) == 0 {
				t.Fatal("a rule is shown from both sides")
			}
			try := r.trial(t, object(valid).with(set("metadata.namespace", namespace), r.start))
			for _, e := range r.admits {
				if err := try(e); err != nil {
					t.Errorf("%v was refused: %v", e, err)
				}
			}
			for _, e := range r.refuses {
				if err := refusedBy(try(e), restriction); err != nil {
					t.Errorf("%v: %v", e, err)
				}
			}
			r.checkEnum(t, restriction)
		})
	}
	for key := range known {
		if !covered[key] {
			t.Errorf("%s: no case shows the restriction %q", plural, key)
		}
	}
}

// trial is a function that makes the rule's request with the edits.
func (r rule) trial(t *testing.T, start obj) func(edits) error {
	t.Helper()
	if r.step == onCreate {
		return func(e edits) error {
			return admin.Create(t.Context(), start.with(e).Unstructured, client.DryRunAll)
		}
	}
	current := start.with()
	if err := admin.Create(t.Context(), current.Unstructured); err != nil {
		t.Fatalf("the object to start from was refused: %v", err)
	}
	return func(e edits) error {
		next := current.with(e)
		var err error
		if r.step == onStatus {
			err = admin.Status().Update(t.Context(), next.Unstructured)
		} else {
			err = admin.Update(t.Context(), next.Unstructured)
		}
		if err == nil {
			current = next
		}
		return err
	}
}

var index = regexp.MustCompile(`\[\d+\]`)

// refusedBy is nil where the error is a refusal because of the restriction and names its field.
func refusedBy(err error, r restriction) error {
	if err == nil {
		return errors.New("it was admitted")
	}
	var refusal apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &refusal) {
		return fmt.Errorf("it was not refused as invalid: %w", err)
	}
	named := func(cause metav1.StatusCause) bool {
		field := index.ReplaceAllString(cause.Field, "[]")
		return (field == r.path || r.path == "") && strings.Contains(cause.Message, r.phrase)
	}
	if !slices.ContainsFunc(refusal.Status().Details.Causes, named) {
		return fmt.Errorf("the refusal does not say %q of %q: %w", r.phrase, r.path, err)
	}
	return nil
}

// checkEnum asks that every value of an enum was admitted, but for one that other rules narrow.
func (r rule) checkEnum(t *testing.T, enum restriction) {
	t.Helper()
	var admitted []string
	for _, e := range r.admits {
		if value, isText := e[enum.path].(string); isText {
			admitted = append(admitted, value)
		}
	}
	for _, value := range enum.values {
		if !slices.Contains(admitted, value) && !slices.Contains(narrowed[r.covers], value) {
			t.Errorf("no case shows that %q may be %s", enum.path, value)
		}
	}
}
