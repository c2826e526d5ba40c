package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// binary is one program of the control plane: its name, the folder with the
// module that pins it, and the package it is built from.
type binary struct{ name, module, pkg string }

// binaries are in the order in which they are built: the quick one first, so
// that a broken setup shows early.
var binaries = []binary{
	{"etcd", "etcd", "go.etcd.io/etcd/server/v3"},
	{"kube-apiserver", "kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver"},
	{"kube-controller-manager", "kubernetes", "k8s.io/kubernetes/cmd/kube-controller-manager"},
	{"kubectl", "kubernetes", "k8s.io/kubernetes/cmd/kubectl"},
}

// build compiles one binary into dir and reports while it does.
func (s source) build(ctx context.Context, dir, name string) error {
	b := binaries[slices.IndexFunc(binaries, func(b binary) bool { return b.name == name })]
	cmd := command(ctx, filepath.Join(s.dir, b.module),
		"go", "build", "-v", "-trimpath", "-ldflags", s.ldflags(b), "-o", filepath.Join(dir, name), b.pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")

	p := &progress{started: time.Now()}
	cmd.Stderr = p
	stop := tell(func() string { return name + ": " + p.String() })
	err := cmd.Run()
	stop()
	if err != nil {
		return fmt.Errorf("%w\n%s", err, p.complaint())
	}
	log.Printf("built %s: %s", name, p)
	return nil
}

// ldflags stamp the version, which Kubernetes' own build scripts would do:
// without it the API server reports v0.0.0 and clients refuse features.
func (s source) ldflags(b binary) string {
	flags := []string{"-s", "-w"}
	if b.module == "kubernetes" {
		const pkg = "k8s.io/component-base/version"
		parts := strings.SplitN(strings.TrimPrefix(s.kubernetes, "v"), ".", 3)
		flags = append(flags,
			"-X", pkg+".gitVersion="+s.kubernetes,
			"-X", pkg+".gitMajor="+parts[0],
			"-X", pkg+".gitMinor="+parts[1])
	}
	return strings.Join(flags, " ")
}
