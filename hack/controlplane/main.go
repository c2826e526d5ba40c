// Command controlplane makes sure that the binaries of a Kubernetes control
// plane are on this machine and prints the directory that holds them, ready to
// be used as KUBEBUILDER_ASSETS.
//
// The versions stand in kubernetes/go.mod and etcd/go.mod, modules of their own
// so that the operator's module never sees the dependencies of a whole cluster.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
)

const usage = `Usage: go run ./hack/controlplane

Makes sure that etcd, kube-apiserver, kube-controller-manager and kubectl are
here, and prints the directory that holds them. Progress goes to stderr. The
first of these that has all four wins:

 1. the directory named by KUBEBUILDER_ASSETS; if it is set and something is
    missing there, that is an error;
 2. the cache of an earlier run, in the user's cache directory, per version and
    platform;
 3. the cache, after filling it: kube-apiserver and kubectl come from the
    envtest archive where setup-envtest reaches its index, everything else is
    built from Go modules, which takes minutes once.
`

func main() {
	log.SetFlags(0)
	log.SetPrefix("controlplane: ")
	flag.Usage = func() { _, _ = fmt.Fprint(flag.CommandLine.Output(), usage) }
	flag.Parse()
	if flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}

	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	dir, err := run(ctx)
	switch {
	case ctx.Err() != nil:
		log.Fatal("interrupted; what was finished is kept")
	case err != nil:
		log.Fatal(err)
	}
	fmt.Println(dir)
}

func run(ctx context.Context) (string, error) {
	src, err := findSource(ctx)
	if err != nil {
		return "", err
	}
	cache, err := src.cacheDir()
	if err != nil {
		return "", err
	}
	return resolver{
		given:    os.Getenv(assetsEnv),
		cache:    cache,
		fetch:    src.fetch,
		build:    src.build,
		patience: lockPatience,
	}.resolve(ctx)
}
