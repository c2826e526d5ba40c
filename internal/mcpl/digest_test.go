package mcpl

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
)

// TestDigest checks the project's own vectors: a manifest for each rule, with
// its canonical form written by hand.
func TestDigest(t *testing.T) {
	raw, err := os.ReadFile("testdata/manifest-digest.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct{ Rule, Manifest, Canonical, Digest, Error string }
	if err := json.Unmarshal(raw, &vectors); err != nil {
		t.Fatal(err)
	}
	refusals := map[string]error{"identifier": ErrManifestIdentifier, "malformed": ErrManifestMalformed, "": nil}
	for _, v := range vectors {
		t.Run(v.Rule, func(t *testing.T) {
			canonical, err := canonicalManifest([]byte(v.Manifest))
			equal(t, string(canonical), v.Canonical)
			equal(t, err, refusals[v.Error])
			got, err := Digest([]byte(v.Manifest))
			equal(t, got, v.Digest)
			equal(t, err, refusals[v.Error])
		})
	}
	equal(t, len(vectors) > 50, true)
}

// sharedVectors lie beside a checkout where other implementations of the digest
// are worked on. They are no part of the project.
const sharedVectors = "../../../shared/wire/manifest-vectors.json"

func TestDigestOfSharedVectors(t *testing.T) {
	raw, err := os.ReadFile(sharedVectors)
	if errors.Is(err, fs.ErrNotExist) {
		t.Log("NOT checked: there are no shared vectors beside this checkout")
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Vectors []struct {
			ID                  string
			Input               json.RawMessage
			CanonicalJSON       string
			SHA256Hex           string
			Digest              string
			ExpectError         string
			SameDigestAs        string
			DifferentDigestFrom string
		}
		Sort []struct{ Input, Sorted []string }
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	digests := map[string]string{}
	for _, v := range file.Vectors {
		t.Run(v.ID, func(t *testing.T) {
			digest, err := Digest(v.Input)
			if v.ExpectError != "" {
				equal(t, v.ExpectError, "identifier_charset")
				equal(t, err, ErrManifestIdentifier)
				return
			}
			canonical, err := canonicalManifest(v.Input)
			equal(t, err, nil)
			equal(t, string(canonical), v.CanonicalJSON)
			sum := sha256.Sum256(canonical)
			equal(t, hex.EncodeToString(sum[:]), v.SHA256Hex)
			equal(t, digest, v.Digest)
			digests[v.ID] = digest
		})
	}
	for _, v := range file.Vectors {
		if other := v.SameDigestAs; other != "" {
			equal(t, digests[v.ID], digests[other])
		}
		if other := v.DifferentDigestFrom; other != "" && digests[v.ID] == digests[other] {
			t.Errorf("%s and %s have the same digest", v.ID, other)
		}
	}
	for _, s := range file.Sort {
		equal(t, sortSet(s.Input), s.Sorted)
	}
	t.Logf("checked: %d shared vectors and %d sorted lists", len(file.Vectors), len(file.Sort))
}

func TestTheDigestIsBounded(t *testing.T) {
	fits := `{"relay":"` + strings.Repeat("x", maxManifestBytes-len(`{"relay":""}`)) + `"}`
	if _, err := Digest([]byte(fits)); err != nil {
		t.Error(err)
	}
	_, err := Digest([]byte(fits + " "))
	equal(t, err, ErrManifestTooBig)
	for _, depth := range []int{1000, 100_000} {
		deep := `{"relay":` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + `}`
		switch _, err := Digest([]byte(deep)); {
		case depth == 1000 && err != nil:
			t.Error(err)
		case depth > 1000 && !errors.Is(err, ErrManifestMalformed):
			t.Errorf("got %v", err)
		}
	}
}

func TestDigestErrorsTellNothing(t *testing.T) {
	for _, manifest := range []string{`{"canary 1":true}`, `{"canary":canary}`, `{"canary":1,"canary":2}`, `{"a":"\ud800canary"}`} {
		if _, err := Digest([]byte(manifest)); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", manifest, err)
		}
	}
}

func TestTheDigestLeavesItsArgumentAlone(t *testing.T) {
	manifest := []byte(`{"revision":1,"featureSets":{"f":{"uses":["b","a"]}}}`)
	before := string(manifest)
	if _, err := Digest(manifest); err != nil {
		t.Fatal(err)
	}
	equal(t, string(manifest), before)
}
