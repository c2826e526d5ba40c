package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

func TestPinned(t *testing.T) {
	tests := map[string]struct{ gomod, want string }{
		"a line of its own": {"module m\n\nrequire example.org/a v1.2.3\n", "v1.2.3"},
		"in a block":        {"require (\n\texample.org/a/b v9.9.9\n\texample.org/a v1.2.3 // indirect\n)\n", "v1.2.3"},
		"not required":      {"require example.org/a/b v1.2.3\n", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "go.mod")
			if err := os.WriteFile(file, []byte(tt.gomod), 0o644); err != nil {
				t.Fatal(err)
			}
			got, err := pinned(file, "example.org/a")
			if got != tt.want || (err != nil) != (tt.want == "") {
				t.Errorf("got %q, %v; want %q", got, err, tt.want)
			}
		})
	}
}

// The versions are read from files that a person edits: this fails when an edit
// puts them where pinned does not find them.
func TestFindSourceReadsTheVersions(t *testing.T) {
	src, err := findSource(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`^v\d+\.\d+\.\d+$`)
	if !version.MatchString(src.kubernetes) || !version.MatchString(src.etcd) {
		t.Errorf("kubernetes %q, etcd %q", src.kubernetes, src.etcd)
	}
}
