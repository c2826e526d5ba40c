package connector

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/coder/websocket"
)

// greet takes the handshake up to notifications/initialized.
func (h *testHost) greet() {
	h.t.Helper()
	if m := h.initialize(); m.Error != nil {
		h.t.Fatal(m.Error)
	}
	h.initialized()
}

func TestGrantsAreEnforcedByTheDialect(t *testing.T) {
	for dialect, enforced := range map[Dialect]bool{Dialect05: true, Dialect04: false} {
		t.Run(string(dialect), func(t *testing.T) {
			c := start(t, Options{Dialect: dialect, Channels: Generate("demo", 1)})
			h := dial(t, c)
			h.greet()
			refused := func(when, method string) {
				t.Helper()
				m := h.call(method, openParamsOf(one))
				if got := m.Error != nil && m.Error.Code == CodeNotGranted; got != enforced {
					t.Errorf("%s: %s is answered %s %v", when, method, m.Result, m.Error)
				}
			}
			refused("before a policy", "channels/list")
			h.grant("channels.register")
			refused("without lifecycle", "channels/open")
			if m := h.call("channels/list", params{}); m.Error != nil {
				t.Errorf("what is granted: %v", m.Error)
			}
			malformed := params{"effectiveCapabilities": []string{"tools"}, "deniedCapabilities": []string{"tools"}}
			if m := h.call("featureSets/update", malformed); m.Error == nil || m.Error.Code != CodeInvalidParams {
				t.Errorf("a malformed policy is answered %s", m.Result)
			}
			refused("after a malformed policy", "channels/list")
			if got := c.Requests("channels/register", ""); len(got) > 0 {
				t.Errorf("the host was asked to register: %v", got)
			}
			if got := c.Entries(Filter{Direction: Out, Kind: Request}); len(got) != 1 {
				t.Errorf("registered %d times after two policies", len(got))
			}
		})
	}
}

func TestPolicyAnswers(t *testing.T) {
	tests := map[string]struct {
		answer     PolicyAnswer
		grant      []string
		want       string
		registered bool
	}{
		"degraded by the grant": {
			grant: []string{"channels.register"},
			want: `{"accepted":true,"mode":"degraded","notes":[],"unavailableFeatures":[` +
				`{"featureSet":"demo.history","missingCapabilities":["tools"],"reason":"capability_denied","effect":"disabled"},` +
				`{"featureSet":"demo.messaging","missingCapabilities":["tools","pushEvents","channels.lifecycle","channels.publish","channels.incoming","channels.acknowledge","channels.typing"],"reason":"capability_denied","effect":"disabled"}]}`,
			registered: true,
		},
		"degraded by itself": {
			answer: PolicyAnswer{Kind: PolicyDegraded, Notes: []string{"busy"}}, grant: everything,
			want:       `{"accepted":true,"mode":"degraded","notes":["busy"],"unavailableFeatures":[]}`,
			registered: true,
		},
		"refused, plain MCP is left": {
			answer: PolicyAnswer{Kind: PolicyMCPOnly}, grant: everything,
			want: `{"accepted":false,"fallback":"mcp-only"}`,
		},
		"refused, to be closed": {
			answer: PolicyAnswer{Kind: PolicyClose}, grant: everything,
			want: `{"accepted":false,"fallback":"close"}`,
		},
		"any result": {
			answer: PolicyAnswer{Kind: PolicyResult, Result: json.RawMessage(`{"accepted":"perhaps"}`)}, grant: everything,
			want: `{"accepted":"perhaps"}`, registered: true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := start(t, Options{Channels: Generate("demo", 1), Behavior: Behavior{Policy: test.answer}})
			h := dial(t, c)
			h.greet()
			if m := h.grant(test.grant...); string(m.Result) != test.want {
				t.Errorf("want %s, got %s", test.want, m.Result)
			}
			if test.registered {
				if err := c.WaitRegistered(testContext(t)); err != nil {
					t.Error(err)
				}
				return
			}
			if m := h.call("tools/list", params{}); m.Error != nil {
				t.Errorf("tools after a refusal: %v", m.Error)
			}
			if m := h.call("channels/list", params{}); m.Error == nil {
				t.Error("channels after a refusal")
			}
			if got := c.Entries(Filter{Direction: Out, Method: "channels/register"}); len(got) > 0 {
				t.Errorf("registered after a refusal: %v", got)
			}
		})
	}
}

func TestAPolicyThatIsNeverAnsweredCounts(t *testing.T) {
	c := start(t, Options{Behavior: Behavior{Policy: PolicyAnswer{Kind: PolicyNever}}})
	h := dial(t, c)
	h.greet()
	h.begin("featureSets/update", params{"effectiveCapabilities": everything})
	if m := h.call("tools/list", params{}); m.Error != nil {
		t.Error(m.Error)
	}
	if got := c.Entries(Answered("featureSets/update", "")); len(got) > 0 {
		t.Errorf("answered: %v", got)
	}
}

func TestTheAnswerToThePolicyIsHeld(t *testing.T) {
	ctx := testContext(t)
	c := start(t, Options{Channels: Generate("demo", 1), Behavior: Behavior{Register: RegisterBeforePolicy}})
	c.Once(On("featureSets/update", "").AnswerHeldAt("policy"))
	h := dial(t, c)
	h.greet()
	answer := h.begin("featureSets/update", params{"effectiveCapabilities": everything})
	if err := c.WaitRegistered(ctx); err != nil {
		t.Fatal(err)
	}
	if got := c.Entries(Answered("featureSets/update", "")); len(got) > 0 {
		t.Errorf("answered: %v", got)
	}
	c.Release("policy")
	h.await(answer)
}

func TestPolicyInANotification(t *testing.T) {
	c := start(t, Options{Channels: Generate("demo", 1)})
	h := connect(t, c)
	h.send(`{"jsonrpc":"2.0","method":"featureSets/update","params":{"effectiveCapabilities":["tools"]}}`)
	if m := h.open(one); m.Error == nil {
		t.Error("the dialect 0.5 ignored a narrower grant")
	}
	if got := c.Status().Granted; !slices.Equal(got, []string{"tools"}) {
		t.Errorf("granted: %q", got)
	}
}

func TestInitializeAnswers(t *testing.T) {
	t.Run("plain MCP", func(t *testing.T) {
		c := start(t, Options{Channels: Generate("demo", 1), Behavior: Behavior{Initialize: InitializeAnswer{Kind: InitializePlain}}})
		h := dial(t, c)
		if got := into[initialized](t, h.initialize()); got.Capabilities.Experimental != nil || got.Capabilities.Tools == nil {
			t.Errorf("capabilities: %+v", got.Capabilities)
		}
		h.initialized()
		if m := h.call("tools/list", params{}); m.Error != nil {
			t.Error(m.Error)
		}
		for _, method := range []string{"channels/list", "channels/open", "featureSets/update"} {
			if m := h.call(method, openParamsOf(one)); m.Error == nil || m.Error.Code != CodeMethodNotFound {
				t.Errorf("%s is answered %s %v", method, m.Result, m.Error)
			}
		}
	})
	t.Run("an error", func(t *testing.T) {
		c := start(t, Options{Behavior: Behavior{Initialize: InitializeAnswer{Kind: InitializeFail, Error: &RPCError{Code: -32000, Message: "later"}}}})
		if m := dial(t, c).initialize(); m.Error == nil || m.Error.Code != -32000 {
			t.Errorf("answered %s", m.Result)
		}
	})
	t.Run("a malformed result", func(t *testing.T) {
		c := start(t, Options{Behavior: Behavior{Initialize: InitializeAnswer{Kind: InitializeMalformed}}})
		if m := dial(t, c).initialize(); m.Error != nil || m.Result[0] == '{' {
			t.Errorf("answered %s", m.Result)
		}
	})
	t.Run("garbage", func(t *testing.T) {
		c := start(t, Options{Behavior: Behavior{Initialize: InitializeAnswer{Kind: InitializeGarbage, Frame: "<html>"}}})
		h := dial(t, c)
		h.begin("initialize", params{})
		if m := h.next(); string(m.Params) != "<html>" {
			t.Errorf("sent %q", m.Params)
		}
	})
	t.Run("none", func(t *testing.T) {
		c := start(t, Options{Behavior: Behavior{Initialize: InitializeAnswer{Kind: InitializeNever}}})
		h := dial(t, c)
		h.begin("initialize", params{})
		h.initialized()
		h.call("tools/call", params{}) // it is served after initialize
		if got := c.Entries(Answered("initialize", "")); len(got) > 0 {
			t.Errorf("answered: %v", got)
		}
	})
	t.Run("the end", func(t *testing.T) {
		c := start(t, Options{Behavior: Behavior{Initialize: InitializeAnswer{Kind: InitializeDrop}}})
		h := dial(t, c)
		h.begin("initialize", params{})
		if err := h.end(); websocket.CloseStatus(err) != -1 {
			t.Errorf("left with %v", err)
		}
	})
}
