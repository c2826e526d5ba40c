package admission

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// install stores the policies and the roles, and waits until the policies are in force.
func install(ctx context.Context) error {
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "mcpl-system"}}
	if err := admin.Create(ctx, system); err != nil {
		return err
	}
	for _, dir := range []string{"policy", "rbac"} {
		objects, err := manifests(filepath.Join(configDir, dir))
		if err != nil {
			return err
		}
		for _, o := range objects {
			if err := admin.Create(ctx, o); err != nil {
				return fmt.Errorf("config/%s: %s %s: %w", dir, o.GetKind(), o.GetName(), err)
			}
		}
	}
	return inForce(ctx)
}

// inForce waits until each policy refuses what it is for.
func inForce(ctx context.Context) error {
	// A requestedBy that is nobody's name is refused to everyone, the administrator included.
	forged := object(decision).with(set("metadata.namespace", "default", "spec.requestedBy", "nobody at all"))
	// A hold is refused to whoever may do no more than edit.
	const editor = "an-editor"
	if err := admin.Create(ctx, binding("default", editor, rbacv1.RoleRef{Kind: "ClusterRole", Name: "mcpl-editor"})); err != nil {
		return err
	}
	edits, err := clientOf(editor)
	if err != nil {
		return err
	}
	held := object(channel).with(set("metadata.namespace", "default", "spec.hold.state", "Closed"))
	for policy, try := range map[string]func(context.Context) error{
		"mcpl-channeldecision-names": func(ctx context.Context) error { return admin.Create(ctx, forged.DeepCopy(), client.DryRunAll) },
		"mcpl-hold":                  func(ctx context.Context) error { return edits.Create(ctx, held.DeepCopy(), client.DryRunAll) },
	} {
		if err := eventually(ctx, func(ctx context.Context) error {
			err := try(ctx)
			if apierrors.IsForbidden(err) && strings.Contains(err.Error(), policy) {
				return nil
			}
			return fmt.Errorf("the policy %s is not in force: %w", policy, errors.Join(errors.New("it did not refuse"), err))
		}); err != nil {
			return err
		}
	}
	return nil
}

// manifests reads the objects in a folder's files, whatever its kustomization lists: a file that
// it forgets is found by TestEveryFileIsListed.
func manifests(dir string) ([]*unstructured.Unstructured, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, file := range files {
		if filepath.Base(file) == "kustomization.yaml" {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		more, err := decode(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		objects = append(objects, more...)
	}
	if len(objects) == 0 {
		return nil, fmt.Errorf("%s holds no objects", dir)
	}
	return objects, nil
}

// decode reads the objects of a YAML stream.
func decode(text []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		o := &unstructured.Unstructured{}
		switch err := documents.Decode(o); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, err
		case len(o.Object) > 0:
			objects = append(objects, o)
		}
	}
}
