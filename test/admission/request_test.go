package admission

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A request is made by some user, who reads the answer. It changes nothing.
type request func(context.Context, client.Client) error

// objects are those of one kind that a test has stored, by name.
type objects struct {
	namespace, manifest string
	stored              map[string]obj
}

// store makes the objects by their names, each the manifest with its edits.
func store(t *testing.T, namespace, manifest string, all map[string]edits) objects {
	t.Helper()
	o := objects{namespace: namespace, manifest: manifest, stored: map[string]obj{}}
	for name, e := range all {
		o.stored[name] = o.made(name, e)
		if err := admin.Create(t.Context(), o.stored[name].Unstructured); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

// made is the manifest with the name and the edits.
func (o objects) made(name string, e edits) obj {
	return object(o.manifest).with(set("metadata.namespace", o.namespace, "metadata.name", name), e)
}

func (o objects) create(name string, e edits) request {
	return func(ctx context.Context, c client.Client) error {
		return c.Create(ctx, o.made(name, e).Unstructured, client.DryRunAll)
	}
}

// apply is server-side apply of the manifest with the edits and nothing else.
func (o objects) apply(name string, e edits) request {
	return func(ctx context.Context, c client.Client) error {
		return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(o.made(name, e).Unstructured),
			client.FieldOwner("team"), client.ForceOwnership, client.DryRunAll)
	}
}

func (o objects) update(name string, e edits) request {
	return func(ctx context.Context, c client.Client) error {
		return c.Update(ctx, o.stored[name].with(e).Unstructured, client.DryRunAll)
	}
}

func (o objects) patch(name, patch string) request {
	return func(ctx context.Context, c client.Client) error {
		return c.Patch(ctx, o.stored[name].DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)), client.DryRunAll)
	}
}

func (o objects) patchStatus(name, patch string) request {
	return func(ctx context.Context, c client.Client) error {
		return c.Status().Patch(ctx, o.stored[name].DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)),
			&client.SubResourcePatchOptions{PatchOptions: client.PatchOptions{DryRun: []string{metav1.DryRunAll}}})
	}
}

func (o objects) remove(name string) request {
	return func(ctx context.Context, c client.Client) error {
		return c.Delete(ctx, o.stored[name].DeepCopy(), client.DryRunAll)
	}
}

// removeAll deletes the collection of those objects that bear the name.
func (o objects) removeAll(name string) request {
	return func(ctx context.Context, c client.Client) error {
		return c.DeleteAllOf(ctx, o.stored[name].DeepCopy(), client.InNamespace(o.namespace),
			client.MatchingFields{"metadata.name": name}, client.DryRunAll)
	}
}
