package admission

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// configDir is config/ as seen from this folder.
const configDir = "../../config"

var (
	// adminConfig belongs to a member of system:masters, whom RBAC never refuses.
	adminConfig *rest.Config
	admin       client.Client
	scheme      = runtime.NewScheme()
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "test/admission:", err)
		code = 1
	}
	os.Exit(code)
}

// run is TestMain's body: os.Exit would skip the deferred stop.
func run(m *testing.M) (code int, err error) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		return 1, errors.New("KUBEBUILDER_ASSETS does not say where kube-apiserver and etcd are: use `make test`, which builds them and sets it")
	}
	log.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	for _, add := range []func(*runtime.Scheme) error{clientscheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return 1, err
		}
	}

	server := &envtest.Environment{
		CRDDirectoryPaths:     []string{filepath.Join(configDir, "crd", "bases")},
		ErrorIfCRDPathMissing: true,
	}
	server.ControlPlane.GetAPIServer().Configure().Set("authorization-mode", "RBAC")
	defer func() { err = errors.Join(err, server.Stop()) }()
	if adminConfig, err = server.Start(); err != nil {
		return 1, err
	}
	// The tests are the only client; a rate limit would only make them slow.
	adminConfig.QPS = -1
	if admin, err = client.New(adminConfig, client.Options{Scheme: scheme}); err != nil {
		return 1, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := install(ctx); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// userClient acts as the user, who is in no group but system:authenticated, unless it is the administrator.
func userClient(t *testing.T, user string) client.Client {
	t.Helper()
	c, err := clientOf(user)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func clientOf(user string) (client.Client, error) {
	if user == adminName {
		return admin, nil
	}
	config := rest.CopyConfig(adminConfig)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	return client.New(config, client.Options{Scheme: scheme, Mapper: admin.RESTMapper()})
}

// newNamespace makes a namespace of the test's own.
func newNamespace(t *testing.T) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "admission-"}}
	if err := admin.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	return ns.Name
}

// eventually waits until the API server has taken notice of what was just stored: policies and
// role bindings reach the request path through its own watches.
func eventually(ctx context.Context, check func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	return errors.Join(err, last)
}
