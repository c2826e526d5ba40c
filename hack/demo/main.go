// Command demo shows the operator's main job on this machine: a control plane, the manager and a
// connector as processes, the samples applied, and what becomes of them.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"mcpl.dev/operator/test/cluster"
	"mcpl.dev/operator/test/connector"
)

func main() {
	var once bool
	cmd := &cobra.Command{
		Use:           "demo",
		Short:         "Starts a control plane, the manager and a connector, and applies the samples.",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(*cobra.Command, []string) error {
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return run(ctx, once)
		},
	}
	cmd.Flags().BoolVar(&once, "once", false, "stop when everything has been shown")
	if err := cmd.Execute(); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// demo is what runs while the demo does.
type demo struct {
	cluster   *cluster.Cluster
	dir       string
	started   []*exec.Cmd
	connector *connector.Control
}

func run(ctx context.Context, once bool) (err error) {
	dir, err := os.MkdirTemp("", "mcpl-demo-")
	if err != nil {
		return err
	}
	d := &demo{dir: dir}
	defer func() { err = errors.Join(err, d.stop()) }()
	for _, step := range []func(context.Context) error{d.build, d.startCluster, d.startManager, d.startConnector, d.declare, d.decide, d.decline} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if once {
		return nil
	}
	fmt.Printf("\nIt runs on until Ctrl-C. To play with it, in another terminal:\n\n"+
		"  export KUBECONFIG=%s\n  alias kubectl=%s\n  kubectl -n residents get connectors,channels,channeldecisions\n\n"+
		"The manager's log is %s.\n", d.cluster.Kubeconfig, d.cluster.KubectlPath(), filepath.Join(d.dir, "manager.log"))
	<-ctx.Done()
	fmt.Println("\nStopping.")
	return nil
}

func (d *demo) stop() error {
	for i := len(d.started) - 1; i >= 0; i-- {
		_ = d.started[i].Process.Signal(syscall.SIGTERM) // it may have ended by itself
		_ = d.started[i].Wait()                          // how it ended is in its log
	}
	var errs []error
	if d.cluster != nil {
		errs = append(errs, d.cluster.Stop())
	}
	return errors.Join(append(errs, os.RemoveAll(d.dir))...)
}

// build makes the two binaries.
func (d *demo) build(ctx context.Context) error {
	say("Building the manager and the connector.")
	build := exec.CommandContext(ctx, "go", "build", "-o", d.dir+string(filepath.Separator), "./cmd/manager", "./test/connector/cmd/connector")
	build.Dir = cluster.Root()
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	return build.Run()
}

func (d *demo) startCluster(ctx context.Context) (err error) {
	say("Starting etcd, kube-apiserver and kube-controller-manager, and installing the kinds, policies and roles.")
	if d.cluster, err = cluster.Start(ctx); err != nil {
		return err
	}
	return d.cluster.StartControllerManager(ctx)
}

func (d *demo) startManager(context.Context) error {
	say("Starting the manager, with the rights of config/rbac and no others.")
	kubeconfig, err := d.cluster.ManagerKubeconfig()
	if err != nil {
		return err
	}
	_, err = d.start("manager", "--kubeconfig", kubeconfig, "--leader-election-namespace", "mcpl-system",
		"--metrics-bind-address", "0", "--health-probe-bind-address", "0")
	return err
}

// startConnector starts the connector's process, and writes its Secret and Pod as a kubelet and a
// platform team would.
func (d *demo) startConnector(ctx context.Context) error {
	say("Starting a connector of a chat platform with seven channels, and writing its Pod.")
	if _, err := d.cluster.Kubectl(ctx, "create", "namespace", "residents"); err != nil {
		return err
	}
	const token = "a-token-of-the-demo"
	if _, err := d.cluster.Kubectl(ctx, "-n", "residents", "create", "secret", "generic", "discord-mcpl", "--from-literal=token="+token); err != nil {
		return err
	}
	ready, err := d.startConnectorProcess(ctx, "--control", "127.0.0.1:0", "--listen", "127.0.0.1:0", "--token", token, "--fence",
		"--server-name", "discord", "--channels", filepath.Join(cluster.Root(), "hack", "demo", "channels.yaml"))
	if err != nil {
		return err
	}
	d.connector = connector.NewControl(ready.Control)
	_, err = d.cluster.WritePod(ctx, "residents", "discord-mcpl-0", map[string]string{"app": "discord-mcpl"}, ready.Addr)
	return err
}

// declare applies what a platform team would keep in Git.
func (d *demo) declare(ctx context.Context) error {
	say("Applying config/samples: a Connector, three Channels, and the rights of the resident scout.")
	samples := filepath.Join(cluster.Root(), "config", "samples")
	for _, file := range []string{"namespace", "resident", "secrets_reader", "connector", "channels"} {
		if _, err := d.cluster.Kubectl(ctx, "-n", "residents", "apply", "-f", filepath.Join(samples, file+".yaml")); err != nil {
			return err
		}
	}
	for _, condition := range []string{"connector/discord", "channel/discord-general", "channel/discord-dev", "channel/discord-ops"} {
		if err := d.await(ctx, "Ready", condition); err != nil {
			return err
		}
	}
	if err := d.await(ctx, "Ready", "channel", "-l", "mcpl.dev/discovered=true"); err != nil {
		return err
	}
	return d.show(ctx, "get", "connectors,channels")
}

// decide makes an open and a close, and shows their answers.
func (d *demo) decide(ctx context.Context) error {
	say("The resident scout opens #random, of which its connector told, and closes #ops.")
	for _, file := range []string{filepath.Join(cluster.Root(), "config", "samples", "decisions.yaml"), filepath.Join(cluster.Root(), "hack", "demo", "open-random.yaml")} {
		// As the resident's own service account: it may speak for scout, and for nobody else.
		if _, err := d.cluster.Kubectl(ctx, "-n", "residents", "--as", "system:serviceaccount:residents:scout", "apply", "-f", file); err != nil {
			return err
		}
	}
	for _, name := range []string{"scout-opens-general", "scout-closes-ops", "scout-opens-random"} {
		if err := d.await(ctx, "Complete", "channeldecision/"+name); err != nil {
			return err
		}
	}
	if err := d.await(ctx, "Ready", "channel", "--all"); err != nil {
		return err
	}
	if err := d.show(ctx, "get", "channeldecisions"); err != nil {
		return err
	}
	if err := d.show(ctx, "get", "channels"); err != nil {
		return err
	}
	say("Why is #ops closed? Its record says it, newest first:")
	return d.show(ctx, "get", "channelrecords", "-o",
		`jsonpath={range .items[?(@.channelID=="discord:111:1003")].history[*]}  revision {.revision}: {.state} by {.source} {.decidedBy}, {.at}{"\n"}{end}`)
}

// await waits until a condition is True; if it does not become so, it shows why.
func (d *demo) await(ctx context.Context, condition string, objects ...string) error {
	args := append([]string{"-n", "residents", "wait", "--for=condition=" + condition, "--timeout=60s"}, objects...)
	if _, err := d.cluster.Kubectl(ctx, args...); err != nil {
		_ = d.show(ctx, "get", "connectors,channels,channeldecisions", "-o", "wide") // the wait's error is the one that counts
		log, _ := os.ReadFile(filepath.Join(d.dir, "manager.log"))
		fmt.Println(string(log))
		return fmt.Errorf("%s is not %s after a minute: %w", strings.Join(objects, " "), condition, err)
	}
	return nil
}

func (d *demo) show(ctx context.Context, args ...string) error {
	out, err := d.cluster.Kubectl(ctx, append([]string{"-n", "residents"}, args...)...)
	fmt.Printf("\n$ kubectl -n residents %s\n%s", strings.Join(brief(args), " "), out)
	return err
}

// brief leaves out of a command line what only shapes its output.
func brief(args []string) []string {
	for i, arg := range args {
		if strings.HasPrefix(arg, "jsonpath") {
			return append(append([]string{}, args[:i]...), "jsonpath=…")
		}
	}
	return args
}

var begun = time.Now()

func say(text string) {
	fmt.Printf("\n[%3.0fs] %s\n", time.Since(begun).Seconds(), text)
}
