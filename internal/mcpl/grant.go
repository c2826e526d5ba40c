package mcpl

import (
	"slices"
	"strings"
)

// deniedByDefault is withheld from every connector (semantics §12.3). The other
// path denied there, toolLifecycle.*, is outside the vocabulary anyway.
var deniedByDefault = []string{CapBeforeInferenceInjectSystem}

// Grant is the set of capability paths the host has activated for a connection.
// The zero value grants nothing. A Grant does not change.
type Grant struct {
	paths []string // sorted, each once
}

// NewGrant returns a grant of the given paths. A segment `*` stands for exactly
// one segment.
func NewGrant(paths ...string) Grant {
	paths = slices.Clone(paths)
	slices.Sort(paths)
	return Grant{paths: slices.Compact(paths)}
}

// ComputeGrant takes what a connector advertises, keeps what is in the closed
// vocabulary, and removes what the operator denies and what is denied by
// default (semantics §12.3). In deny a parent pattern covers its subtree and
// `*` is one segment.
func ComputeGrant(advertised, deny []string) Grant {
	var paths []string
	for _, path := range advertised {
		if slices.Contains(vocabulary, path) && !masked(deny, path) && !masked(deniedByDefault, path) {
			paths = append(paths, path)
		}
	}
	return NewGrant(paths...)
}

// DeniedPaths returns the paths of the vocabulary that were advertised but are
// not granted, sorted. The wire carries explicit paths only, because
// connectors' matchers differ on wildcards (semantics §12.3).
func DeniedPaths(advertised []string, grant Grant) []string {
	var paths []string
	for _, path := range advertised {
		if slices.Contains(vocabulary, path) && !grant.Allows(path) {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// Allows reports whether the grant covers a path. Segment counts must be equal,
// so a granted parent alone covers none of its leaves (semantics §12.3).
func (g Grant) Allows(path string) bool {
	segments := strings.Split(path, ".")
	for _, granted := range g.paths {
		pattern := strings.Split(granted, ".")
		if len(pattern) == len(segments) && matchesPrefix(pattern, segments) {
			return true
		}
	}
	return false
}

// Paths returns the granted paths, sorted.
func (g Grant) Paths() []string { return slices.Clone(g.paths) }

// Empty reports whether nothing is granted.
func (g Grant) Empty() bool { return len(g.paths) == 0 }

// masked reports whether one of the patterns covers the path or one of its
// parents.
func masked(patterns []string, path string) bool {
	segments := strings.Split(path, ".")
	for _, p := range patterns {
		if matchesPrefix(strings.Split(p, "."), segments) {
			return true
		}
	}
	return false
}

// matchesPrefix reports whether pattern matches as many leading segments as it
// has itself.
func matchesPrefix(pattern, segments []string) bool {
	if len(pattern) > len(segments) {
		return false
	}
	for i, p := range pattern {
		if p != "*" && p != segments[i] {
			return false
		}
	}
	return true
}
