package mcpl

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/gowebpki/jcs"
)

// maxManifestBytes bounds a manifest that is kept and hashed. Real ones have a
// few KiB; the canonical form of one costs about a hundred times its size.
const maxManifestBytes = 256 << 10

// Errors of Digest. Their texts are fixed: nothing of the manifest is in them.
var (
	// ErrManifestTooBig: over 256 KiB.
	ErrManifestTooBig = errors.New("the manifest is over 256 KiB")
	// ErrManifestMalformed: no JSON object, or one without a canonical form.
	ErrManifestMalformed = errors.New("the manifest is no JSON object with a canonical form")
	// ErrManifestIdentifier: an identifier is empty or has other characters
	// than A-Z a-z 0-9 . _ : * -
	ErrManifestIdentifier = errors.New("an identifier of the manifest is not plain ASCII")
)

// Digest returns what stands for the content of a manifest, the object that an
// answer to initialize has at capabilities.experimental.mcpl and that
// mcpl/manifest answers with. Digests are compared for equality and mean nothing
// else (semantics §12.7). It is "sha256:" and the SHA-256, in base64url without
// padding, of the manifest's canonical form:
//
//  1. The member `revision` of the root is left out, and nothing else: one
//     further down is content, `version` is content, so are false and null, and
//     `true` for a subtree is not the same manifest as the subtree spelled out.
//  2. Three lists are sets, and only where a feature set stands under its name:
//     featureSets.*.uses, featureSets.*.tagOntology.coreTags and
//     featureSets.*.tagOntology.tags.*.implies. A set is sorted by the bytes of
//     its UTF-8 and has each element once. Every other list keeps its order and
//     its repetitions.
//  3. A value of the wrong type is content like any other. A set that is no
//     list, or a list with anything but strings in it, stays as it is and is not
//     looked at for identifiers; so does the list of feature sets of 0.4.
//  4. Identifiers are refused unless they are one or more of A-Z a-z 0-9 . _ : *
//     and -, because languages sort other characters differently. Identifiers
//     are: the names of the members of the root but `version` and `featureSets`,
//     and all names below them, lists apart; the names of feature sets, tags and
//     keys; the elements of the sets, of a key's `values`, of a treatment's
//     tagsAny, tagsAll and tagsNone; a tag's `facet`. Descriptions are none.
//  5. The rest is RFC 8785: members by UTF-16, numbers as ECMAScript writes the
//     double (-0 is 0), strings unescaped as far as JSON allows and never
//     normalized. What that cannot express has no digest: a name twice in an
//     object, half a surrogate pair, a number beyond a double.
func Digest(manifest json.RawMessage) (string, error) {
	canonical, err := canonicalManifest(manifest)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(canonical)
	return "sha256:" + base64.RawURLEncoding.EncodeToString(sum[:]), nil
}

func canonicalManifest(manifest json.RawMessage) ([]byte, error) {
	if len(manifest) > maxManifestBytes {
		return nil, ErrManifestTooBig
	}
	// First, because it refuses what decoding would silently repair.
	canonical, err := jcs.Transform(bytes.TrimSpace(manifest))
	if err != nil || !isObject(canonical) {
		return nil, ErrManifestMalformed
	}
	value, ok := decodeValue(canonical)
	root := object(value)
	if !ok || root == nil {
		return nil, ErrManifestMalformed
	}
	delete(root, "revision")
	if !normalizeManifest(root) {
		return nil, ErrManifestIdentifier
	}
	encoded, err := marshal(root)
	if err != nil {
		return nil, ErrManifestMalformed
	}
	if canonical, err = jcs.Transform(encoded); err != nil {
		return nil, ErrManifestMalformed
	}
	return canonical, nil
}

// normalizeManifest and the functions below put the sets of a decoded manifest
// in order and report whether all identifiers are ones.
func normalizeManifest(root map[string]any) bool {
	for name, value := range root {
		switch {
		case name == "version":
		case name == "featureSets":
			for name, set := range object(value) {
				if !isIdentifier(name) || !normalizeFeatureSet(object(set)) {
					return false
				}
			}
		case !isIdentifier(name) || !namesAreIdentifiers(value):
			return false
		}
	}
	return true
}

func normalizeFeatureSet(set map[string]any) bool {
	ontology := object(set["tagOntology"])
	if !normalizeSet(set, "uses") || !normalizeSet(ontology, "coreTags") {
		return false
	}
	for name, value := range object(ontology["tags"]) {
		tag := object(value)
		if facet, ok := tag["facet"].(string); ok && !isIdentifier(facet) {
			return false
		}
		if !isIdentifier(name) || !normalizeSet(tag, "implies") {
			return false
		}
	}
	for name, key := range object(ontology["keyed"]) {
		if !isIdentifier(name) || !areIdentifiers(object(key)["values"]) {
			return false
		}
	}
	treatments, _ := ontology["suggestedTreatment"].([]any)
	for _, value := range treatments {
		t := object(value)
		if !areIdentifiers(t["tagsAny"]) || !areIdentifiers(t["tagsAll"]) || !areIdentifiers(t["tagsNone"]) {
			return false
		}
	}
	return true
}

// normalizeSet sorts the set at a member of an object, if there is one.
func normalizeSet(parent map[string]any, member string) bool {
	set, ok := stringsOf(parent[member])
	if !ok {
		return true
	}
	if !allIdentifiers(set) {
		return false
	}
	parent[member] = sortSet(set)
	return true
}

// sortSet sorts by bytes, which is how Go compares strings.
func sortSet(set []string) []string {
	slices.Sort(set)
	return slices.Compact(set)
}

// areIdentifiers is for a list that keeps its order.
func areIdentifiers(value any) bool {
	list, ok := stringsOf(value)
	return !ok || allIdentifiers(list)
}

func allIdentifiers(list []string) bool {
	return !slices.ContainsFunc(list, func(s string) bool { return !isIdentifier(s) })
}

// namesAreIdentifiers looks at the names of an object and of the objects in it.
func namesAreIdentifiers(value any) bool {
	for name, child := range object(value) {
		if !isIdentifier(name) || !namesAreIdentifiers(child) {
			return false
		}
	}
	return true
}

func isIdentifier(s string) bool {
	for _, r := range s {
		letter := r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z'
		if !letter && (r < '0' || r > '9') && !strings.ContainsRune("._:*-", r) {
			return false
		}
	}
	return s != ""
}

// object returns a decoded JSON object, and nil for anything else.
func object(value any) map[string]any {
	m, _ := value.(map[string]any)
	return m
}

// stringsOf returns a decoded list that has strings only, and false for anything else.
func stringsOf(value any) ([]string, bool) {
	list, ok := value.([]any)
	if !ok {
		return nil, false
	}
	out := make([]string, 0, len(list))
	for _, element := range list {
		s, ok := element.(string)
		if !ok {
			return nil, false
		}
		out = append(out, s)
	}
	return out, true
}
