package mcpl

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var digestShape = regexp.MustCompile(`^sha256:[A-Za-z0-9_-]{43}$`)

// FuzzDigest gives anything as a manifest. It must not panic; what has a digest
// must have the same one in every other spelling that means the same, and
// another one when something is added to it.
func FuzzDigest(f *testing.F) {
	for _, manifest := range []string{
		`{"version":"0.5","revision":"r","featureSets":{"f":{"uses":["b","a","b"],"tagOntology":{"coreTags":["x:z","x:y"],` +
			`"tags":{"x:t":{"facet":"f","implies":["x:b","x:a"]}},"keyed":{"k":{"values":["z","a"]}},"suggestedTreatment":[{"tagsAny":["b","a"]}]}}}}`,
		`{"channels":{"register":true},"relay":[-0.0,1e21,5e-324,"\u2028<é\ud83d\ude42"]}`,
		`{"featureSets":[{"name":"f","uses":["b","a"]}]}`,
		`{"featureSets":{"f":{"uses":["b",1,"a"]}}}`,
		`{"a":1,"a":2}`, `{"a":"\ud800"}`, `[]`, "{\"\xff\":1}", `{"a":1e400}`,
	} {
		f.Add([]byte(manifest))
	}
	f.Fuzz(func(t *testing.T, manifest []byte) {
		digest, err := Digest(manifest)
		if err != nil {
			equal(t, digest, "")
			if !slices.Contains([]error{ErrManifestTooBig, ErrManifestMalformed, ErrManifestIdentifier}, err) {
				t.Fatalf("got %v", err)
			}
			return
		}
		if !digestShape.MatchString(digest) {
			t.Fatalf("got %q", digest)
		}
		same := func(what string, other []byte) {
			t.Helper()
			if len(other) > maxManifestBytes {
				return
			}
			if got, err := Digest(other); err != nil || got != digest {
				t.Fatalf("%s: %s (%v), want %s\n%s", what, got, err, digest, other)
			}
		}
		canonical, err := canonicalManifest(manifest)
		equal(t, err, nil)
		same("its canonical form", canonical)
		var spaced bytes.Buffer
		equal(t, json.Indent(&spaced, manifest, "\r\n", "\t "), nil)
		same("with white space", spaced.Bytes())
		same("with another revision", withMember(canonical, `"revision":"fuzz"`))
		if other, err := Digest(withMember(canonical, `"fuzz":1`)); err == nil && other == digest {
			t.Fatalf("a new member changes nothing")
		}
		if doubled, ok := doubleSets(canonical); ok {
			same("with its sets doubled and turned round", doubled)
		}
	})
}

// withMember adds a member to a JSON object without white space.
func withMember(object []byte, member string) []byte {
	if string(object) == "{}" {
		return []byte("{" + member + "}")
	}
	return []byte("{" + member + "," + string(object[1:]))
}

// doubleSets turns every `uses` of a canonical manifest round and adds its first
// element once more.
func doubleSets(canonical []byte) ([]byte, bool) {
	value, ok := decodeValue(canonical)
	changed := false
	for _, v := range object(object(value)["featureSets"]) {
		set := object(v)
		if uses, isSet := stringsOf(set["uses"]); isSet && len(uses) > 0 {
			slices.Reverse(uses)
			set["uses"] = append(uses, uses[0])
			changed = true
		}
	}
	if !ok || !changed {
		return nil, false
	}
	encoded, err := marshal(value)
	return encoded, err == nil && !strings.Contains(string(encoded), "\n")
}
