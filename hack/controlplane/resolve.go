package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const assetsEnv = "KUBEBUILDER_ASSETS"

// resolver finds a directory with all binaries, trying the cheapest place
// first. The two ways to fill the cache are fields, so that the order can be
// tested without either.
type resolver struct {
	given string // value of KUBEBUILDER_ASSETS, empty when unset
	cache string

	// fetch puts those of the named binaries that it can download into dir. It
	// is a shortcut: what it does not deliver is built.
	fetch func(ctx context.Context, dir string, names []string) error
	// build puts the named binary into dir.
	build func(ctx context.Context, dir, name string) error

	patience time.Duration
}

func (r resolver) resolve(ctx context.Context) (string, error) {
	if r.given != "" {
		// A directory that somebody chose is never completed or replaced behind
		// their back: tests against other binaries than meant prove nothing.
		if lacking := missing(r.given); len(lacking) > 0 {
			return "", fmt.Errorf("%s is set to %s, which has no %s; add what is missing, or unset %[1]s to have all of it built",
				assetsEnv, r.given, strings.Join(lacking, ", "))
		}
		return filepath.Abs(r.given)
	}
	if len(missing(r.cache)) == 0 {
		return r.cache, nil
	}
	if err := os.MkdirAll(r.cache, 0o755); err != nil {
		return "", err
	}
	unlock, err := lock(ctx, r.cache+".lock", r.patience)
	if err != nil {
		return "", err
	}
	defer unlock()
	// Whoever held the lock before may have finished the work.
	if err := r.fill(ctx, missing(r.cache)); err != nil {
		return "", err
	}
	return r.cache, nil
}

// fill brings the lacking binaries into the cache. Each is finished in a work
// directory and then renamed into place, so a name in the cache is always a
// whole binary, and an interrupted run keeps what it had finished.
func (r resolver) fill(ctx context.Context, lacking []string) error {
	if len(lacking) == 0 {
		return nil
	}
	log.Printf("filling %s", r.cache)
	work := filepath.Join(r.cache, ".work")
	// A run that was killed may have left one; the lock says that it is nobody's.
	if err := os.RemoveAll(work); err != nil {
		return err
	}
	if err := os.Mkdir(work, 0o755); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()

	if err := r.fetch(ctx, work, lacking); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		log.Printf("no download (%v): building from Go modules, which takes minutes the first time", err)
	}
	for i, name := range lacking {
		made := filepath.Join(work, name)
		if !executable(made) {
			log.Printf("building %s (%d of %d)", name, i+1, len(lacking))
			if err := r.build(ctx, work, name); err != nil {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				return fmt.Errorf("build %s: %w", name, err)
			}
		}
		if err := os.Rename(made, filepath.Join(r.cache, name)); err != nil {
			return err
		}
	}
	return nil
}

// missing names the binaries that dir does not hold, in the order in which they
// are built.
func missing(dir string) []string {
	var names []string
	for _, b := range binaries {
		if !executable(filepath.Join(dir, b.name)) {
			names = append(names, b.name)
		}
	}
	return names
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}
