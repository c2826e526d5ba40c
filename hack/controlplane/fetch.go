package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// indexPatience bounds the question to setup-envtest's index. Where the index
// cannot be reached a build is the only way, and nobody should wait long to
// learn that.
const indexPatience = 5 * time.Second

// archived are the binaries taken from an envtest archive. It has no
// kube-controller-manager, and an etcd of its own choice: taking that one would
// make the cache hold another version than its name says.
var archived = []string{"kube-apiserver", "kubectl"}

// fetch moves what the envtest archive of our Kubernetes version offers into dir.
func (s source) fetch(ctx context.Context, dir string, names []string) error {
	wanted := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !slices.Contains(archived, name) })
	if len(wanted) == 0 {
		return nil
	}
	defer tell(func() string { return "trying to download with setup-envtest" })()
	tool, err := s.setupEnvtest(ctx)
	if err != nil {
		return err
	}
	version := strings.TrimPrefix(s.kubernetes, "v")
	if err := offered(ctx, tool, version); err != nil {
		return err
	}

	out, err := command(ctx, dir, tool, "use", version, "--bin-dir", dir, "--print", "path").Output()
	if err != nil {
		return withStderr(err)
	}
	unpacked := strings.TrimSpace(string(out))
	// setup-envtest leaves its folder read-only; moving files out of it, and
	// removing it with the work directory, needs the write bit.
	if err := os.Chmod(unpacked, 0o755); err != nil {
		return err
	}
	for _, name := range wanted {
		if err := os.Rename(filepath.Join(unpacked, name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// setupEnvtest returns the path of the pinned tool. With -n go compiles the tool
// and prints it instead of running it: compiling must not use up indexPatience.
func (s source) setupEnvtest(ctx context.Context) (string, error) {
	out, err := command(ctx, s.dir, "go", "tool", "-modfile="+filepath.Join(s.dir, "..", "tools", "go.mod"), "-n", "setup-envtest").Output()
	if err != nil {
		return "", fmt.Errorf("setup-envtest: %w", withStderr(err))
	}
	return strings.TrimSpace(string(out)), nil
}

// offered asks the index, within its patience, whether it has the version.
func offered(ctx context.Context, tool, version string) error {
	ctx, cancel := context.WithTimeout(ctx, indexPatience)
	defer cancel()
	out, err := command(ctx, ".", tool, "list", version).Output()
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("setup-envtest's index did not answer within %s", indexPatience)
	case err != nil:
		return errors.New("setup-envtest cannot reach its index")
	case !strings.Contains(string(out), version):
		return fmt.Errorf("setup-envtest's index has no %s for this platform", version)
	}
	return nil
}
