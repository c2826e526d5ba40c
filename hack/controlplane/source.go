package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"
)

const thisPackage = "mcpl.dev/operator/hack/controlplane"

// source is the checkout's folder hack/controlplane and the versions pinned in
// it. The modules below are no part of the operator's module, so they can be
// neither embedded nor imported and have to be found on disk.
type source struct {
	dir        string
	kubernetes string // v1.37.2
	etcd       string // v3.7.3
}

func findSource(ctx context.Context) (source, error) {
	out, err := command(ctx, ".", "go", "list", "-f", "{{.Dir}}", thisPackage).Output()
	if err != nil {
		return source{}, fmt.Errorf("find %s (run this inside the checkout): %w", thisPackage, withStderr(err))
	}
	src := source{dir: strings.TrimSpace(string(out))}
	if src.kubernetes, err = pinned(filepath.Join(src.dir, "kubernetes", "go.mod"), "k8s.io/kubernetes"); err != nil {
		return source{}, err
	}
	if src.etcd, err = pinned(filepath.Join(src.dir, "etcd", "go.mod"), "go.etcd.io/etcd/server/v3"); err != nil {
		return source{}, err
	}
	return src, nil
}

// pinned reads the version at which a go.mod file requires module.
func pinned(gomod, module string) (string, error) {
	text, err := os.ReadFile(gomod)
	if err != nil {
		return "", err
	}
	found := regexp.MustCompile(`(?m)^(?:require)?\s+` + regexp.QuoteMeta(module) + `\s+(v\S+)`).FindSubmatch(text)
	if found == nil {
		return "", fmt.Errorf("%s does not require %s", gomod, module)
	}
	return string(found[1]), nil
}

// cacheDir is outside the checkout, so that fresh clones share it, and different
// for everything that makes the binaries different.
func (s source) cacheDir() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	key := fmt.Sprintf("kubernetes-%s_etcd-%s_%s-%s", s.kubernetes, s.etcd, runtime.GOOS, runtime.GOARCH)
	return filepath.Join(base, "mcpl-operator", "controlplane", key), nil
}

// command is a child that gets the chance to clean up when ctx ends, and is
// killed only if it does not take it.
func command(ctx context.Context, dir string, argv ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// withStderr puts what a failed child said last into its error.
func withStderr(err error) error {
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return err
	}
	said := strings.Split(strings.TrimSpace(string(exit.Stderr)), "\n")
	if last := said[len(said)-1]; last != "" {
		return fmt.Errorf("%w: %s", err, last)
	}
	return err
}
