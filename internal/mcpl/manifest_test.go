package mcpl

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestTheManifestOfTheHandshake(t *testing.T) {
	big := `{"relay":"` + strings.Repeat("x", maxManifestBytes) + `","pushEvents":true}`
	cases := map[string]struct {
		capabilities string
		manifest     string
		tools        bool
		advertised   []string
	}{
		"as sent": {
			`{"tools":{},"experimental":{"mcpl":{ "pushEvents": true, "revision": "r" }}}`,
			`{ "pushEvents": true, "revision": "r" }`, true, []string{"pushEvents", "tools"},
		},
		"without tools":             {`{"experimental":{"mcpl":{"tools":true}}}`, `{"tools":true}`, false, nil},
		"tools denied":              {`{"tools":false,"experimental":{"mcpl":{}}}`, `{}`, false, nil},
		"a plain MCP server":        {`{"tools":true}`, ``, true, []string{"tools"}},
		"mcpl that is no object":    {`{"experimental":{"mcpl":[1]}}`, ``, false, nil},
		"one that is too big":       {`{"experimental":{"mcpl":` + big + `}}`, ``, false, []string{"pushEvents"}},
		"no capabilities":           {`null`, ``, false, nil},
		"the shorthand is not lost": {`{"experimental":{"mcpl":{"inferenceRequest":true}}}`, `{"inferenceRequest":true}`, false, []string{"inferenceRequest", "inferenceRequest.streaming"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			res, err := parseInitializeResult(json.RawMessage(`{"capabilities":` + tc.capabilities + `}`))
			equal(t, err, nil)
			equal(t, string(res.Manifest), tc.manifest)
			equal(t, res.Tools, tc.tools)
			equal(t, res.Advertised, tc.advertised)
			if tc.manifest != "" {
				equal(t, Advertised(res.Manifest, res.Tools), tc.advertised)
			}
		})
	}
}

func TestAdvertisedOfAFetchedManifest(t *testing.T) {
	manifest := json.RawMessage(`{"channels":{"register":true,"lifecycle":false},"tools":true}`)
	equal(t, Advertised(manifest, false), []string{"channels.register"})
	equal(t, Advertised(manifest, true), []string{"channels.register", "tools"})
	equal(t, len(Advertised(nil, false)), 0)
}

const manifestLine = `{"jsonrpc":"2.0","id":1,"method":"mcpl/manifest","params":{}}`

func TestFetchManifest(t *testing.T) {
	onWire(t, Options{}, func(b *bench) {
		call := FetchManifest(b.conn)
		b.wrote(manifestLine)
		b.pending(call)
		b.send(`{"id":1,"result":{"channels":true}}`)
		raw, err := call.Result()
		equal(b, err, nil)
		manifest, err := ParseManifest(raw)
		equal(b, err, nil)
		equal(b, string(manifest), `{"channels":true}`)
	})
}

func TestFact17AFailedFetchLeavesTheConnection(t *testing.T) {
	cases := map[string]struct {
		happens func(b *bench, call *Call)
		want    Outcome
		is      error
	}{
		"not served": {
			happens: func(b *bench, _ *Call) { b.send(`{"id":1,"error":{"code":-32601,"message":"Method not found"}}`) },
			want:    ErrorResponse,
		},
		"no answer in 15 s": {
			happens: func(b *bench, call *Call) {
				b.pass(15*time.Second - 1)
				b.pending(call)
				b.pass(1)
			},
			want: NoResponse, is: context.DeadlineExceeded,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			onWire(t, Options{}, func(b *bench) {
				call := FetchManifest(b.conn)
				b.wrote(manifestLine)
				b.pending(call)
				tc.happens(b, call)
				if err := b.failed(call, tc.want); tc.is != nil && !errors.Is(err, tc.is) {
					b.Errorf("%v is not %v", err, tc.is)
				}
				b.lives()
			})
		})
	}
}

func TestParseManifest(t *testing.T) {
	for _, result := range []string{`[]`, `null`, `"x"`, `7`, ``, `true`} {
		manifest, err := ParseManifest(json.RawMessage(result))
		equal(t, err, ErrMalformedAnswer)
		equal(t, manifest, json.RawMessage(nil))
	}
	big := `{"relay":"` + strings.Repeat("x", maxManifestBytes) + `"}`
	_, err := ParseManifest(json.RawMessage(big))
	equal(t, err, ErrManifestTooBig)
}
