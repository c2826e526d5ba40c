package main

import (
	"strings"
	"testing"
	"time"
)

func TestProgress(t *testing.T) {
	p := &progress{started: time.Now()}
	// Pieces as a pipe delivers them, not as lines.
	for _, piece := range []string{
		"go: downloading k8s.io/api v0.37.2\nk8s.io/a", "pi/core/v1\nfmt\n", "# k8s.io/broken\n./x.go:1:2: undefined: y\nsignal: kil", "led",
	} {
		if n, err := p.Write([]byte(piece)); n != len(piece) || err != nil {
			t.Fatalf("wrote %d, %v", n, err)
		}
	}
	if got, want := p.String(), "2 packages compiled, 1 modules downloaded"; !strings.Contains(got, want) {
		t.Errorf("progress %q, want %q in it", got, want)
	}
	if got, want := p.complaint(), "# k8s.io/broken\n./x.go:1:2: undefined: y\nsignal: killed"; got != want {
		t.Errorf("complaint %q, want %q", got, want)
	}
}
