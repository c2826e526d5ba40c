// Package cluster starts a real control plane with the operator's kinds, policies and roles
// installed: for the tests, the benchmarks and the demo.
package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// ManagerUser is the service account of config/rbac: the manager has its rights and no others.
const ManagerUser = "system:serviceaccount:mcpl-system:mcpl-manager"

// Cluster is a running control plane: etcd and kube-apiserver.
type Cluster struct {
	// Config is that of an administrator.
	Config *rest.Config
	// Kubeconfig is the path of a file with the same.
	Kubeconfig string

	env        *envtest.Environment
	dir        string
	assets     string
	controller *exec.Cmd
}

// Root is the directory of the project.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(filepath.Dir(filepath.Dir(file)))
}

// Start starts a control plane from the binaries that KUBEBUILDER_ASSETS names, and installs the
// operator's kinds, policies and roles.
func Start(ctx context.Context) (*Cluster, error) {
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		return nil, errors.New("KUBEBUILDER_ASSETS is not set: run the tests with `make test`, or set it to what `go run ./hack/controlplane` prints")
	}
	dir, err := os.MkdirTemp("", "mcpl-cluster-")
	if err != nil {
		return nil, err
	}
	c := &Cluster{dir: dir, assets: assets, env: &envtest.Environment{BinaryAssetsDirectory: assets}}
	if c.Config, err = c.env.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the control plane: %w", err), c.Stop())
	}
	c.Config.QPS = -1
	if c.Kubeconfig, err = c.kubeconfig("admin", envtest.User{Name: "admin", Groups: []string{"system:masters"}}); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	if err := c.install(ctx); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// Stop ends the control plane and removes its files.
func (c *Cluster) Stop() error {
	var errs []error
	if c.controller != nil {
		_ = c.controller.Process.Kill()
		_ = c.controller.Wait() // it was killed
	}
	errs = append(errs, c.env.Stop(), os.RemoveAll(c.dir))
	return errors.Join(errs...)
}

// install applies config/crd, config/policy and config/rbac, and waits until they are in force.
func (c *Cluster) install(ctx context.Context) error {
	if _, err := c.Kubectl(ctx, "create", "namespace", "mcpl-system"); err != nil {
		return err
	}
	for _, part := range []string{"crd", "policy", "rbac"} {
		if _, err := c.Kubectl(ctx, "apply", "--server-side", "-k", filepath.Join(Root(), "config", part)); err != nil {
			return err
		}
	}
	_, err := c.Kubectl(ctx, "wait", "--for=condition=Established", "--timeout=60s", "crd",
		"connectors.mcpl.dev", "channels.mcpl.dev", "channeldecisions.mcpl.dev", "channelrecords.mcpl.dev")
	return err
}

// Kubectl runs kubectl as the administrator and returns what it printed.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(c.assets, "kubectl"), append([]string{"--kubeconfig", c.Kubeconfig}, args...)...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(errOut.String()))
	}
	return out.String(), nil
}

// KubectlPath is where kubectl is.
func (c *Cluster) KubectlPath() string { return filepath.Join(c.assets, "kubectl") }

// User is the configuration of a user without rights of its own but those that its name and groups give.
func (c *Cluster) User(name string, groups ...string) (*rest.Config, error) {
	user, err := c.env.ControlPlane.AddUser(envtest.User{Name: name, Groups: groups}, c.Config)
	if err != nil {
		return nil, err
	}
	config := user.Config()
	config.QPS = -1
	return config, nil
}

// ManagerKubeconfig is the path of a kubeconfig with exactly the rights that config/rbac gives the manager.
func (c *Cluster) ManagerKubeconfig() (string, error) {
	return c.kubeconfig("manager", envtest.User{Name: ManagerUser, Groups: []string{"system:serviceaccounts", "system:serviceaccounts:mcpl-system"}})
}

func (c *Cluster) kubeconfig(name string, user envtest.User) (string, error) {
	added, err := c.env.ControlPlane.AddUser(user, c.env.Config)
	if err != nil {
		return "", err
	}
	data, err := added.KubeConfig()
	if err != nil {
		return "", err
	}
	path := filepath.Join(c.dir, name+".kubeconfig")
	return path, os.WriteFile(path, data, 0o600)
}

// StartControllerManager adds kube-controller-manager, so that garbage is collected, namespaces go
// when they are deleted, and roles are aggregated.
func (c *Cluster) StartControllerManager(ctx context.Context) error {
	log, err := os.Create(filepath.Join(c.dir, "kube-controller-manager.log"))
	if err != nil {
		return err
	}
	defer log.Close() // the process has its own descriptor
	c.controller = exec.Command(filepath.Join(c.assets, "kube-controller-manager"), "--kubeconfig", c.Kubeconfig,
		"--leader-elect=false", "--secure-port=0", "--use-service-account-credentials=false",
		"--controllers=garbage-collector-controller,namespace-controller,serviceaccount-controller,clusterrole-aggregation-controller")
	c.controller.Stdout, c.controller.Stderr = log, log
	if err := c.controller.Start(); err != nil {
		return err
	}
	clients, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return err
	}
	// It works once it has made the default service account of a namespace.
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := clients.CoreV1().ServiceAccounts("default").Get(ctx, "default", getOptions)
		return err == nil, nil
	})
}
