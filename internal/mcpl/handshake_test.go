package mcpl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// initializeLine is the request as it must leave, byte for byte.
const initializeLine = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{` +
	`"protocolVersion":"2024-11-05","clientInfo":{"name":"host","version":"1.2"},` +
	`"capabilities":{"experimental":{"mcpl":{"version":"0.5","channels":{"acknowledge":true,"incoming":true,` +
	`"lifecycle":true,"publish":true,"register":true,"streaming":true,"typing":true},"featureSets":true,"pushEvents":true}}}}}`

const initializedLine = `{"jsonrpc":"2.0","method":"notifications/initialized"}`

var testClient = Implementation{Name: "host", Version: "1.2"}

// outcome is what a handshake function returned.
type outcome[T any] struct {
	value T
	err   error
}

// inBackground runs f and returns where its outcome will be.
func inBackground[T any](f func() (T, error)) <-chan outcome[T] {
	c := make(chan outcome[T], 1)
	go func() {
		v, err := f()
		c <- outcome[T]{v, err}
	}()
	return c
}

func (b *bench) initialize(ctx context.Context) <-chan outcome[InitializeResult] {
	b.Helper()
	c := inBackground(func() (InitializeResult, error) { return Initialize(ctx, b.conn, testClient) })
	b.wrote(initializeLine)
	return c
}

func TestInitialize(t *testing.T) {
	channels := []string{
		"channels.acknowledge", "channels.incoming", "channels.lifecycle", "channels.publish",
		"channels.register", "channels.streaming", "channels.typing",
	}
	cases := map[string]struct {
		result string
		want   InitializeResult
	}{
		"facts 8, 9, 10: a connector of 0.4, feature sets in a list, channels in short": {
			`{"protocolVersion":"2024-11-05","capabilities":{"tools":{},"experimental":{"mcpl":{"version":"0.4","pushEvents":true,` +
				`"channels":true,"rollback":true,"featureSets":[{"name":"chat.messaging","uses":["tools","channels.publish"],"rollback":true},` +
				`{"name":"chat.history"},{"description":"nameless"},"text",7,{"name":"chat.history"}]}}},"serverInfo":{"name":"chat-mcpl","version":"0.1.0"}}`,
			InitializeResult{
				ServerInfo: Implementation{"chat-mcpl", "0.1.0"}, IsMCPL: true, MCPLVersion: "0.4",
				Advertised:  append(append([]string{}, channels...), "pushEvents", "tools"),
				FeatureSets: []string{"chat.history", "chat.messaging"},
			},
		},
		"fact 8 a connector of 0.5, feature sets by name": {
			`{"capabilities":{"tools":{"listChanged":true},"experimental":{"mcpl":{"version":"0.5","pushEvents":true,` +
				`"channels":{"register":true,"lifecycle":true,"typing":false,"unknown":true},"featureSets":{"10":{},"relay.messaging":{"uses":["tools"]}}}}},` +
				`"serverInfo":{"name":"relay","version":"0.2"}}`,
			InitializeResult{
				ServerInfo: Implementation{"relay", "0.2"}, IsMCPL: true, MCPLVersion: "0.5",
				Advertised:  []string{"channels.lifecycle", "channels.register", "pushEvents", "tools"},
				FeatureSets: []string{"10", "relay.messaging"},
			},
		},
		"a plain MCP server": {
			`{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"plain","version":"1"}}`,
			InitializeResult{ServerInfo: Implementation{"plain", "1"}, Advertised: []string{"tools"}},
		},
		"one with other experiments": {
			`{"capabilities":{"experimental":{"other":{}}}}`, InitializeResult{},
		},
		"mcpl that is no object": {
			`{"capabilities":{"experimental":{"mcpl":true}}}`, InitializeResult{},
		},
		"fact 10 any version, even none": {
			`{"capabilities":{"experimental":{"mcpl":{"version":7}}}}`, InitializeResult{IsMCPL: true},
		},
		"names are made fit": {
			`{"capabilities":{"experimental":{"mcpl":{"version":"0.5","featureSets":{"a\u0000\u202eb":{}}}}},"serverInfo":{"name":"x\u001b[0m` +
				strings.Repeat("y", 200) + `","version":"\u0007"}}`,
			InitializeResult{
				ServerInfo: Implementation{Name: "x[0m" + strings.Repeat("y", 124)}, IsMCPL: true, MCPLVersion: "0.5",
				FeatureSets: []string{"ab"},
			},
		},
		"members of the wrong type": {
			`{"capabilities":[],"serverInfo":"x"}`, InitializeResult{},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			onHeldWire(t, Options{}, func(b *bench) {
				got := b.initialize(b.Context())
				b.send(`{"jsonrpc":"2.0","id":1,"result":` + tc.result + `}`)
				b.wrote(initializedLine)
				res := <-got
				equal(b, res.err, nil)
				res.value.Manifest, res.value.Tools = nil, false // see TestTheManifestOfTheHandshake
				equal(b, res.value, tc.want)
				b.lives()
			})
		})
	}
}

func TestFact22SilenceBetween(t *testing.T) {
	// Whatever the connector sends, nothing is written between the answer to
	// initialize and notifications/initialized.
	onHeldWire(t, Options{}, func(b *bench) {
		got := b.initialize(b.Context())
		b.send(request(1, "channels/register") + "\n" + `{"id":2,"method":5}` + "\n" + request(3, "ping"))
		b.wrote()
		b.send(`{"id":1,"result":{"capabilities":{"experimental":{"mcpl":{}}}}}` + "\n" + request(4, "channels/register"))
		b.wrote(initializedLine)
		equal(b, (<-got).err, nil)
		b.wrote()
	})
}

func TestInitializeFails(t *testing.T) {
	cases := map[string]struct {
		happens func(b *bench)
		err     string
		is      error
		lost    string // why the connection ended; the handshake itself if ""
	}{
		"an error answer": {
			happens: func(b *bench) { b.send(`{"id":1,"error":{"code":-32600,"message":"no"}}`) },
			err:     "connector answered error -32600: no",
		},
		"an answer of the wrong shape": {
			happens: func(b *bench) { b.send(`{"id":1,"result":[]}`) },
			err:     "malformed answer", is: ErrMalformedAnswer,
		},
		"an empty answer": {
			happens: func(b *bench) { b.send(`{"id":1}`) },
			err:     "malformed answer", is: ErrMalformedAnswer,
		},
		"no answer in 30 s": {
			happens: func(b *bench) {
				b.pass(29 * time.Second)
				b.lives()
				b.pass(time.Second)
			},
			err: "no response: timed out", is: context.DeadlineExceeded,
		},
		"the connector hangs up": {
			happens: func(b *bench) { b.peer.hangUp(&PeerClosedError{Code: 1002}) },
			err:     "no response: connection closed by the connector with code 1002",
			lost:    "connection closed by the connector with code 1002",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			onHeldWire(t, Options{}, func(b *bench) {
				got := b.initialize(b.Context())
				tc.happens(b)
				res := <-got
				if res.err == nil || res.err.Error() != tc.err {
					b.Errorf("got %v, want %s", res.err, tc.err)
				}
				if tc.is != nil && !errors.Is(res.err, tc.is) {
					b.Errorf("%v is not %v", res.err, tc.is)
				}
				equal(b, res.value, InitializeResult{})
				<-b.conn.Done()
				if tc.lost == "" {
					tc.lost = "connection closed: the handshake failed"
				}
				equal(b, b.conn.Err().Error(), tc.lost)
				b.wrote()
			})
		})
	}
}

func TestInitializeEndsWithItsContext(t *testing.T) {
	onHeldWire(t, Options{}, func(b *bench) {
		ctx, cancel := context.WithCancel(b.Context())
		got := b.initialize(ctx)
		cancel()
		equal(b, (<-got).err, context.Canceled)
		<-b.conn.Done()
		b.ended(ClosedByHost)
	})
}

func TestAdvertisedPaths(t *testing.T) {
	cases := map[string]struct {
		mcpl, tools string
		want        []string
	}{
		"nothing":                     {mcpl: `{}`},
		"absent":                      {},
		"tools as an object":          {tools: `{}`, want: []string{"tools"}},
		"tools as true":               {tools: `true`, want: []string{"tools"}},
		"tools as false":              {tools: `false`},
		"tools as null":               {tools: `null`},
		"tools inside mcpl is none":   {mcpl: `{"tools":true}`},
		"fact 9 channels false":       {mcpl: `{"channels":false}`},
		"channels null":               {mcpl: `{"channels":null}`},
		"channels as an empty object": {mcpl: `{"channels":{}}`},
		"an object at a leaf":         {mcpl: `{"channels":{"publish":{}},"pushEvents":{}}`},
		"a string is not true":        {mcpl: `{"channels":{"publish":"true"},"pushEvents":"true","modelInfo":1}`},
		"unknown names mint nothing":  {mcpl: `{"everything":true,"channels":{"delete":true},"toolLifecycle":true,"scope":{"elevate":true}}`},
		"true above":                  {mcpl: `{"contextHooks":true}`, want: []string{"contextHooks.beforeInference.inject.afterUser", "contextHooks.beforeInference.inject.beforeUser", "contextHooks.beforeInference.inject.system", "contextHooks.beforeInference.observe"}},
		"true in the middle":          {mcpl: `{"contextHooks":{"beforeInference":{"inject":true,"observe":false}}}`, want: []string{"contextHooks.beforeInference.inject.afterUser", "contextHooks.beforeInference.inject.beforeUser", "contextHooks.beforeInference.inject.system"}},
		"leaves":                      {mcpl: `{"contextHooks":{"beforeInference":{"inject":{"system":true},"observe":true}},"modelInfo":true,"inferenceLifecycle":true}`, want: []string{"contextHooks.beforeInference.inject.system", "contextHooks.beforeInference.observe", "inferenceLifecycle", "modelInfo"}},
		"inferenceRequest true":       {mcpl: `{"inferenceRequest":true}`, want: []string{"inferenceRequest", "inferenceRequest.streaming"}},
		"inferenceRequest streaming":  {mcpl: `{"inferenceRequest":{"streaming":true}}`, want: []string{"inferenceRequest", "inferenceRequest.streaming"}},
		"inferenceRequest only":       {mcpl: `{"inferenceRequest":{"streaming":false}}`, want: []string{"inferenceRequest"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			equal(t, advertisedPaths(json.RawMessage(tc.mcpl), json.RawMessage(tc.tools)), tc.want)
		})
	}
}

func TestNamesOfAConnectorAreBounded(t *testing.T) {
	var list []string
	for i := range 2 * maxNames {
		list = append(list, fmt.Sprintf(`{"name":"%04d%s"}`, i, strings.Repeat("x", 200)))
	}
	names := featureSetNames(json.RawMessage("[" + strings.Join(list, ",") + "]"))
	equal(t, len(names), maxNames)
	equal(t, len(names[0]), maxNameBytes)
}
