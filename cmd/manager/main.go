// Command manager runs the operator's controllers.
package main

import (
	"fmt"
	"net"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"mcpl.dev/operator/controllers"
	"mcpl.dev/operator/internal/lease"
)

type flags struct {
	kubeconfig      string
	namespaces      []string
	electNamespace  string
	electName       string
	metrics         string
	metricsInsecure bool
	probes          string
	workers         int
	allowURLs       bool
	urlNetworks     []string
	verbose         bool
}

func main() {
	var f flags
	cmd := &cobra.Command{
		Use:           "manager",
		Short:         "Runs the controllers of the MCPL operator.",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(*cobra.Command, []string) error { return run(f) },
	}
	set := cmd.Flags()
	set.StringVar(&f.kubeconfig, "kubeconfig", "", "path of a kubeconfig; inside a cluster it is not needed")
	set.StringSliceVar(&f.namespaces, "namespace", nil, "namespaces to serve; all if not given")
	set.StringVar(&f.electNamespace, "leader-election-namespace", os.Getenv("POD_NAMESPACE"), "namespace of the leader election's Lease")
	set.StringVar(&f.electName, "leader-election-name", "mcpl-manager", "name of the leader election's Lease")
	set.StringVar(&f.metrics, "metrics-bind-address", ":8443", "address of the metrics, 0 for none")
	set.BoolVar(&f.metricsInsecure, "metrics-insecure", false, "serve metrics over plain HTTP, to anybody")
	set.StringVar(&f.probes, "health-probe-bind-address", ":8081", "address of /healthz and /readyz, 0 for none")
	set.IntVar(&f.workers, "workers", 16, "how many channels are reconciled at once")
	set.BoolVar(&f.allowURLs, "allow-connector-urls", false, "let Connectors have a spec.url, which leads out of the cluster")
	set.StringSliceVar(&f.urlNetworks, "connector-url-network", nil, "networks (CIDR) to which a spec.url may lead although they are loopback, link-local or private")
	set.BoolVar(&f.verbose, "verbose", false, "log what is of use to developers only")
	if err := cmd.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "manager:", err)
		os.Exit(1)
	}
}

func run(f flags) error {
	ctrl.SetLogger(zap.New(zap.UseDevMode(f.verbose)))
	networks, err := parseNetworks(f.urlNetworks)
	if err != nil {
		return err
	}
	if f.electNamespace == "" {
		return fmt.Errorf("--leader-election-namespace (or POD_NAMESPACE) is not set: name the namespace of the manager's Lease")
	}
	config, err := loadConfig(f.kubeconfig)
	if err != nil {
		return err
	}
	election, err := lease.New(config, f.electNamespace, f.electName)
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(config, managerOptions(f, election))
	if err != nil {
		return err
	}
	ctx := ctrl.SetupSignalHandler()
	if _, err := controllers.Setup(ctx, mgr, controllers.Options{
		Workers: f.workers, Identity: election.Identity, AllowURLs: f.allowURLs, AllowedNetworks: networks, Version: version(),
	}); err != nil {
		return err
	}
	for _, add := range []func(string, healthz.Checker) error{mgr.AddHealthzCheck, mgr.AddReadyzCheck} {
		if err := add("ping", healthz.Ping); err != nil {
			return err
		}
	}
	return mgr.Start(ctx)
}

// loadConfig finds the API server. Its client does not limit itself: the server's own priority and
// fairness does that better, and a limit here would delay renewals of the Lease.
func loadConfig(kubeconfig string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules() // inside a cluster they find the pod's own
	rules.ExplicitPath = kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the API server: %w; outside a cluster set --kubeconfig", err)
	}
	config.QPS = -1
	return config, nil
}

func managerOptions(f flags, election *lease.Lease) ctrl.Options {
	options := controllers.ManagerOptions(election.Lock(), f.namespaces...)
	options.HealthProbeBindAddress = f.probes
	options.Metrics = metricsserver.Options{BindAddress: f.metrics, SecureServing: !f.metricsInsecure}
	if !f.metricsInsecure {
		options.Metrics.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	return options
}

func parseNetworks(list []string) ([]*net.IPNet, error) {
	networks := make([]*net.IPNet, 0, len(list))
	for _, s := range list {
		_, network, err := net.ParseCIDR(s)
		if err != nil {
			return nil, fmt.Errorf("--connector-url-network %q is no network in CIDR notation, such as 10.0.0.0/8", s)
		}
		networks = append(networks, network)
	}
	return networks, nil
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
