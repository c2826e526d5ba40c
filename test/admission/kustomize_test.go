package admission

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// render is what `kubectl apply -k config/<dir>` would send.
func render(t *testing.T, dir string) []*unstructured.Unstructured {
	t.Helper()
	kubectl := filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl")
	command := exec.CommandContext(t.Context(), kubectl, "kustomize", filepath.Join(configDir, dir))
	var complaints bytes.Buffer
	command.Stderr = &complaints
	text, err := command.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, complaints.String())
	}
	if complaints.Len() > 0 {
		t.Errorf("config/%s: %s", dir, complaints.String())
	}
	objects, err := decode(text)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// Everything in config/default goes into one cluster, and where a namespace is due it is mcpl-system.
func TestDefaultIsAdmitted(t *testing.T) {
	for _, o := range render(t, "default") {
		mapping, err := admin.RESTMapper().RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version)
		if err != nil {
			t.Fatal(err)
		}
		want := ""
		if mapping.Scope.Name() == "namespace" {
			want = "mcpl-system"
		}
		if o.GetNamespace() != want {
			t.Errorf("%s %s is in namespace %q, want %q", o.GetKind(), o.GetName(), o.GetNamespace(), want)
		}
		// The suite itself has stored some of these.
		err = admin.Create(t.Context(), o, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
}

// A file that its kustomization forgets is in no cluster.
func TestEveryFileIsListed(t *testing.T) {
	for _, dir := range []string{"crd/bases", "policy", "rbac", "manager", "network", "samples"} {
		folder := filepath.Join(configDir, dir)
		list, prefix := filepath.Join(folder, "kustomization.yaml"), ""
		if dir == "crd/bases" {
			list, prefix = filepath.Join(configDir, "crd", "kustomization.yaml"), "bases/"
		}
		text, err := os.ReadFile(list)
		if err != nil {
			t.Fatal(err)
		}
		var kustomization struct{ Resources []string }
		if err := yaml.Unmarshal(text, &kustomization); err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			name := prefix + filepath.Base(file)
			if filepath.Base(file) != "kustomization.yaml" && !slices.Contains(kustomization.Resources, name) {
				t.Errorf("config/%s: %s is not in the kustomization", dir, name)
			}
		}
	}
}

// The manager's namespace enforces the restricted Pod Security Standard, and its pod conforms.
func TestTheManagersPodIsRestricted(t *testing.T) {
	var pod *corev1.Pod
	enforced := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "restricted-"}}
	for _, o := range render(t, "manager") {
		switch o.GetKind() {
		case "Deployment":
			template := typed[appsv1.Deployment](t, o).Spec.Template
			pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "manager", Labels: template.Labels}, Spec: template.Spec}
		case "Namespace":
			enforced.Labels = o.GetLabels()
		}
	}
	if err := admin.Create(t.Context(), enforced); err != nil {
		t.Fatal(err)
	}
	pod.Namespace = enforced.Name
	if root := pod.Spec.Containers[0].SecurityContext.ReadOnlyRootFilesystem; root == nil || !*root {
		t.Error("the root file system can be written")
	}
	loose := pod.DeepCopy()
	loose.Spec.Containers[0].SecurityContext.Capabilities = nil
	if err := admin.Create(t.Context(), loose, client.DryRunAll); !apierrors.IsForbidden(err) {
		t.Errorf("a pod that keeps its capabilities should be forbidden, got %v", err)
	}
	if err := admin.Create(t.Context(), pod, client.DryRunAll); err != nil {
		t.Error(err)
	}
}

// The samples are admitted as they stand, and give the sample's resident its own voice and no other.
func TestSamples(t *testing.T) {
	for _, o := range render(t, "samples") {
		// As `kubectl apply --server-side` does, which knows no unknown fields.
		if err := admin.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("team")); err != nil {
			t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
	scout := userClient(t, "system:serviceaccount:residents:scout")
	decide := func(ctx context.Context, as string) error {
		o := object(decision).with(set("metadata.namespace", "residents", "spec.decidedBy", as))
		return scout.Create(ctx, o.Unstructured, client.DryRunAll)
	}
	if err := eventually(t.Context(), func(ctx context.Context) error { return decide(ctx, "scout") }); err != nil {
		t.Error(err)
	}
	if err := decide(t.Context(), "iris"); !apierrors.IsForbidden(err) {
		t.Errorf("scout decides as iris: %v", err)
	}
	other := object(channel).with(set("metadata.namespace", "residents"))
	if err := scout.Create(t.Context(), other.Unstructured, client.DryRunAll); !apierrors.IsForbidden(err) {
		t.Errorf("scout makes a Channel: %v", err)
	}
	checkExamples(t, map[string]client.Client{"Channel": admin, "ChannelDecision": scout})
	manager := "system:serviceaccount:mcpl-system:mcpl-manager"
	if err := eventually(t.Context(), func(ctx context.Context) error {
		named, err := readsSecret(ctx, manager, "residents", "discord-mcpl")
		if err == nil && !named {
			err = errors.New("the manager may not read the Secret that the sample names")
		}
		return err
	}); err != nil {
		t.Error(err)
	}
	for _, secret := range []struct{ namespace, name string }{{"residents", "another"}, {"residents", ""}, {"default", "discord-mcpl"}} {
		if reads, err := readsSecret(t.Context(), manager, secret.namespace, secret.name); reads || err != nil {
			t.Errorf("the manager reads the Secret %v: %v %v", secret, reads, err)
		}
	}
}

// example is a line of a manifest that a comment offers: a comment that says something has a blank first.
var example = regexp.MustCompile(`(?m)^( *)#(\S|  )`)

// checkExamples makes of the samples what their comments offer, each kind by the client of whom it is for.
func checkExamples(t *testing.T, by map[string]client.Client) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(configDir, "samples", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	offered := map[string]int{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !example.Match(text) {
			continue
		}
		all, err := decode(example.ReplaceAll(text, []byte("$1$2")))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, o := range all {
			if held, decided := (obj{o}).at("spec.hold"), (obj{o}).at("spec.decision"); held != nil || decided == "Decline" {
				offered[o.GetKind()]++
			}
			err := by[o.GetKind()].Create(t.Context(), o, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
			if err != nil && !apierrors.IsAlreadyExists(err) {
				t.Errorf("%s: %s %s: %v", file, o.GetKind(), o.GetName(), err)
			}
		}
	}
	if offered["Channel"] != 1 || offered["ChannelDecision"] != 1 {
		t.Errorf("the comments of the samples offer %v, want a Channel that is held and a ChannelDecision that declines", offered)
	}
}
