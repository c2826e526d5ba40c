package main

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var all = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kubectl"}

// place puts fake binaries into dir, each with the text that tells where it
// came from.
func place(t *testing.T, dir, origin string, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(origin), 0o755); err != nil {
			t.Error(err)
		}
	}
}

// origins reads back what place wrote.
func origins(t *testing.T, dir string) map[string]string {
	t.Helper()
	got := map[string]string{}
	for _, name := range all {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
			got[name] = string(text)
		}
	}
	return got
}

func TestResolve(t *testing.T) {
	errOffline := errors.New("offline")
	everything := func(origin string) map[string]string {
		m := map[string]string{}
		for _, name := range all {
			m[name] = origin
		}
		return m
	}
	tests := map[string]struct {
		given      []string // in KUBEBUILDER_ASSETS; nil means unset
		cached     []string
		fetchable  []string // nil means that the index is out of reach
		unbuilt    string   // its build fails
		wantGiven  bool     // the answer is KUBEBUILDER_ASSETS, not the cache
		wantErr    string
		wantCached map[string]string
	}{
		"KUBEBUILDER_ASSETS wins over the cache": {
			given: all, cached: all, wantGiven: true, wantCached: everything("cached"),
		},
		"an incomplete KUBEBUILDER_ASSETS is an error that names what is missing": {
			given: []string{"etcd", "kubectl"}, cached: all,
			wantErr: "has no kube-apiserver, kube-controller-manager;", wantCached: everything("cached"),
		},
		"a full cache is used as it is": {
			cached: all, fetchable: all, wantCached: everything("cached"),
		},
		"without an index everything is built": {
			wantCached: everything("built"),
		},
		"what cannot be fetched is built": {
			fetchable:  []string{"kube-apiserver", "kubectl"},
			wantCached: map[string]string{"etcd": "built", "kube-apiserver": "fetched", "kube-controller-manager": "built", "kubectl": "fetched"},
		},
		"what an interrupted run finished is kept": {
			cached:     []string{"etcd", "kube-apiserver"},
			wantCached: map[string]string{"etcd": "cached", "kube-apiserver": "cached", "kube-controller-manager": "built", "kubectl": "built"},
		},
		"a failed build says which and keeps what came before": {
			unbuilt: "kube-controller-manager", wantErr: "build kube-controller-manager: ",
			wantCached: map[string]string{"etcd": "built", "kube-apiserver": "built"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			cache := t.TempDir()
			place(t, cache, "cached", tt.cached...)
			r := resolver{
				cache:    cache,
				patience: time.Minute,
				fetch: func(_ context.Context, dir string, _ []string) error {
					if tt.fetchable == nil {
						return errOffline
					}
					place(t, dir, "fetched", tt.fetchable...)
					return nil
				},
				build: func(_ context.Context, dir, name string) error {
					if name == tt.unbuilt {
						return errors.New("does not compile")
					}
					place(t, dir, "built", name)
					return nil
				},
			}
			want := cache
			if tt.given != nil {
				r.given = t.TempDir()
				place(t, r.given, "given", tt.given...)
			}
			if tt.wantGiven {
				want = r.given
			}

			got, err := r.resolve(t.Context())

			switch {
			case tt.wantErr != "":
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Errorf("error %v, want one with %q", err, tt.wantErr)
				}
			case err != nil:
				t.Errorf("unexpected error: %v", err)
			case got != want:
				t.Errorf("got %s, want %s", got, want)
			}
			if got := origins(t, cache); !maps.Equal(got, tt.wantCached) {
				t.Errorf("cache holds %v, want %v", got, tt.wantCached)
			}
			if _, err := os.Stat(filepath.Join(cache, ".work")); !errors.Is(err, os.ErrNotExist) {
				t.Error("the work directory was left behind")
			}
		})
	}
}

func TestResolveMakesAGivenDirectoryAbsolute(t *testing.T) {
	dir := t.TempDir()
	place(t, dir, "given", all...)
	t.Chdir(filepath.Dir(dir))
	got, err := resolver{given: filepath.Base(dir)}.resolve(t.Context())
	if err != nil || got != dir {
		t.Errorf("got %s, %v; want %s", got, err, dir)
	}
}

func TestResolveAtOnceBuildsOnce(t *testing.T) {
	var mu sync.Mutex
	var built []string
	r := resolver{
		cache:    filepath.Join(t.TempDir(), "versions"),
		patience: time.Minute,
		fetch:    func(context.Context, string, []string) error { return nil },
		build: func(_ context.Context, dir, name string) error {
			mu.Lock()
			defer mu.Unlock()
			built = append(built, name)
			place(t, dir, "built", name)
			return nil
		},
	}
	var runs sync.WaitGroup
	for range 4 {
		runs.Go(func() {
			if _, err := r.resolve(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	runs.Wait()
	if !slices.Equal(built, all) {
		t.Errorf("built %v, want each once", built)
	}
}

func TestResolveDoesNotWaitForever(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "versions")
	unlock, err := lock(t.Context(), cache+".lock", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()

	_, err = resolver{cache: cache, patience: time.Millisecond}.resolve(t.Context())
	if err == nil || !strings.Contains(err.Error(), "another run has held") {
		t.Errorf("past its patience: %v", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (resolver{cache: cache, patience: time.Minute}).resolve(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted while waiting: %v", err)
	}
}

func TestInterruptedBuildIsNotABuildError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := resolver{
		cache:    t.TempDir(),
		patience: time.Minute,
		fetch:    func(context.Context, string, []string) error { return nil },
		build: func(context.Context, string, string) error {
			cancel()
			return errors.New("signal: interrupt")
		},
	}
	if _, err := r.resolve(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}
