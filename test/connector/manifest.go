package connector

import (
	"context"
	"maps"
	"slices"
)

// Manifest is what a connector advertises as experimental.mcpl.
type Manifest map[string]any

// channelLeaves are the capabilities of a connector's channels.
var channelLeaves = []string{"register", "lifecycle", "publish", "incoming", "acknowledge", "typing"}

// DefaultManifest advertises everything this connector serves, in the shape of a
// dialect (facts 8 and 9). The feature sets are <name>.messaging, which uses all
// of it, and <name>.history, which uses tools.
func DefaultManifest(d Dialect, name string) Manifest {
	uses := []string{"tools", "pushEvents"}
	for _, leaf := range channelLeaves {
		uses = append(uses, "channels."+leaf)
	}
	messaging := map[string]any{"description": "Messages of channels.", "uses": uses, "rollback": false}
	history := map[string]any{"description": "Reading back.", "uses": []string{"tools"}, "rollback": false}
	m := Manifest{"version": string(d), "pushEvents": true}
	if d == Dialect04 {
		messaging["name"], history["name"] = name+".messaging", name+".history"
		messaging["hostState"], history["hostState"] = false, false
		m["channels"] = true
		m["rollback"] = true
		m["featureSets"] = []any{messaging, history}
		return m
	}
	m["channels"] = Leaves(channelLeaves...)
	m["rollback"] = false
	m["featureSets"] = map[string]any{name + ".messaging": messaging, name + ".history": history}
	return m
}

// Leaves is an advertisement of some leaves, as for a manifest's channels.
func Leaves(names ...string) map[string]any {
	leaves := make(map[string]any, len(names))
	for _, name := range names {
		leaves[name] = true
	}
	return leaves
}

// SetManifest changes what is advertised from the next initialize or
// mcpl/manifest on. ManifestChanged tells a connected host.
func (c *Connector) SetManifest(m Manifest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.manifest = maps.Clone(m)
}

// Manifest returns what is advertised.
func (c *Connector) Manifest() Manifest {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.manifest)
}

// ManifestChanged sends mcpl/manifestChanged. Behavior.ServeManifest makes the
// manifest available.
func (c *Connector) ManifestChanged(ctx context.Context) error {
	return c.Notify(ctx, "mcpl/manifestChanged", nil)
}

// unavailable are the advertised feature sets that a grant leaves without a
// capability, by name.
func (m Manifest) unavailable(granted map[string]bool) []UnavailableFeature {
	out := []UnavailableFeature{}
	sets, _ := m["featureSets"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(sets)) {
		set, _ := sets[name].(map[string]any)
		var missing []string
		for _, path := range texts(set["uses"]) {
			if !granted[path] {
				missing = append(missing, path)
			}
		}
		if missing != nil {
			out = append(out, UnavailableFeature{
				FeatureSet:          name,
				MissingCapabilities: missing,
				Reason:              "capability_denied",
				Effect:              "disabled",
			})
		}
	}
	return out
}

// texts reads a list of strings, made in Go or read from JSON.
func texts(v any) []string {
	switch list := v.(type) {
	case []string:
		return list
	case []any:
		var out []string
		for _, item := range list {
			if s, ok := item.(string); ok {
				out = append(out, s)
			}
		}
		return out
	default:
		return nil
	}
}
