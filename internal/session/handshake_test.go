package session

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/internal/decision"
	"mcpl.dev/operator/test/connector"
)

// hour is a redial's wait that no other timer of a session resembles.
var hour = Timing{RedialBase: time.Hour, RedialMax: 8 * time.Hour}

func redials(d time.Duration) bool { return d >= 30*time.Minute }

func TestHandshake(t *testing.T) {
	for _, dialect := range []connector.Dialect{connector.Dialect05, connector.Dialect04} {
		t.Run("its order, dialect "+string(dialect), func(t *testing.T) {
			o := demo(1)
			o.Dialect = dialect
			b := start(t, setup{Options: o, config: func(c *Config) { c.Handshakes = 41 }}).owned(always).registered()
			var said []string
			for _, e := range b.c.Entries(connector.Filter{Direction: connector.In}) {
				if e.Kind == connector.Request || e.Kind == connector.Notification {
					said = append(said, e.Method)
				}
			}
			b.same(said[:3], []string{"initialize", "notifications/initialized", "featureSets/update"})
			var p struct {
				ClientInfo                                struct{ Name, Version string }
				EffectiveCapabilities, DeniedCapabilities []string
			}
			b.must(json.Unmarshal(b.asked("initialize", "").Params, &p))
			b.same([]string{p.ClientInfo.Name, p.ClientInfo.Version}, []string{"mcpl-operator", "1.2.3"})
			b.must(json.Unmarshal(b.asked("featureSets/update", "").Params, &p))
			snap := b.snapshot()
			b.same(p.EffectiveCapabilities, snap.Peer.Capabilities)
			if !slices.Contains(snap.Peer.Capabilities, "channels.lifecycle") || !snap.Lifecycle || len(p.DeniedCapabilities) > 0 {
				t.Errorf("granted %q, denied %q", p.EffectiveCapabilities, p.DeniedCapabilities)
			}
			b.same(snap.Peer.Negotiated, v1.ReasonGranted)
			b.same([]string{snap.Peer.Name, snap.Peer.Version}, []string{"demo-mcpl", "0.1.0"})
			b.same(snap.Generation, int64(42))
			b.same(b.c.Status().Term+" "+b.c.Status().Host, "7.0 manager-0")
		})
	}
	for _, when := range []connector.RegisterWhen{connector.RegisterAfterInitialized, connector.RegisterBeforePolicy} {
		t.Run("fact 23 a registration before the policy's answer is held: "+string(when), func(t *testing.T) {
			o := demo(2)
			o.Behavior.Register = when
			b := start(t, setup{Options: o}).owned(always)
			b.decide(v1.StateOpen, "demo:c2")
			b.c.Once(connector.On("featureSets/update", "").AnswerHeldAt("policy"))
			b.ensure()
			b.held("policy", 1)
			b.must(b.c.WaitUntil(b.ctx, func() bool { return b.c.Status().Unanswered == 1 }))
			if b.c.Status().Registered || b.snapshot().Registered > 0 {
				t.Error("it is registered before the grant is established")
			}
			b.c.Release("policy")
			b.untilIs(v1.TransportOpen, "demo:c2")
			b.untilIs(v1.TransportClosed, "demo:c1")
			b.same(b.c.Verdicts(), []connector.Verdict{{ID: "demo:c1", Accepted: true}, {ID: "demo:c2", Accepted: true}})
		})
	}
	t.Run("I04 after a reconnect, too, and the decisions are applied", func(t *testing.T) {
		b := start(t, setup{Options: demo(2)}).owned(always)
		b.decide(v1.StateOpen, "demo:c1")
		b.registered()
		b.c.Change(func(how *connector.Behavior) {
			how.Register, how.ForgetOnConnect = connector.RegisterAfterInitialized, true
		})
		b.c.Once(connector.On("featureSets/update", "").AnswerHeldAt("policy"))
		b.must(b.c.Drop())
		b.held("policy", 1)
		b.must(b.c.WaitUntil(b.ctx, func() bool { return b.c.Status().Unanswered == 1 }))
		b.same(b.snapshot().State, v1.ConnectorReconnecting)
		b.same(len(b.c.OpenChannels()), 0)
		b.c.Release("policy")
		b.must(b.c.WaitOpen(b.ctx, "demo:c1", true))
		b.untilIs(v1.TransportOpen, "demo:c1")
		b.untilIs(v1.TransportClosed, "demo:c2")
	})
	t.Run("a mask", func(t *testing.T) {
		b := start(t, setup{Options: demo(1), config: func(c *Config) { c.Deny = []string{"tools", "channels.typing"} }}).owned(always).registered()
		granted := b.c.Status().Granted
		if slices.Contains(granted, "tools") || slices.Contains(granted, "channels.typing") || !slices.Contains(granted, "channels.publish") {
			t.Errorf("granted %q", granted)
		}
		b.same(granted, b.snapshot().Peer.Capabilities)
		b.same(b.snapshot().Peer.Negotiated, v1.ReasonDegraded) // as the connector says of it
		b.same(b.snapshot().Peer.Unavailable, []string{"demo.history", "demo.messaging"})
	})
}

// A connector without a grant stays connected, and none of its channels is served.
func TestNothingGranted(t *testing.T) {
	ungranted := func(b *bench, reason string) {
		b.Helper()
		snap := b.snapshot()
		b.same(snap.State, v1.ConnectorUp)
		b.same(snap.Peer.Negotiated, reason)
		b.same(len(snap.Peer.Capabilities), 0)
		b.same(snap.Lifecycle, false)
		_, err := b.c.RegisterAll(b.ctx, connector.AsRequest)
		b.same(codeOf(err), -32002)
		_, err = b.c.RegisterAll(b.ctx, connector.AsNotification)
		b.must(err)
		b.flush()
		b.same(b.snapshot().Registered, 0)
		b.sent()
	}
	for name, test := range map[string]struct {
		answer connector.PolicyAnswer
		rule   connector.Rule
	}{
		"I05 refused with mcp-only": {answer: connector.PolicyAnswer{Kind: connector.PolicyMCPOnly}},
		"refused without a word":    {answer: connector.PolicyAnswer{Kind: connector.PolicyResult, Result: json.RawMessage(`{"accepted":false}`)}},
		"no answer to it":           {answer: connector.PolicyAnswer{Kind: connector.PolicyResult, Result: json.RawMessage(`["fine"]`)}},
		"an error":                  {rule: connector.On("featureSets/update", "").Failing(-32602, "malformed")},
	} {
		t.Run(name, func(t *testing.T) {
			o := demo(1)
			o.Behavior.Policy, o.Behavior.Register = test.answer, connector.RegisterNever
			b := start(t, setup{Options: o})
			if test.rule.Method != "" {
				b.c.Once(test.rule)
			}
			ungranted(b.up(), v1.ReasonRefusedMCPOnly)
		})
	}
	t.Run("I06 unanswered for 15 s", func(t *testing.T) {
		clk := newClock()
		o := demo(1)
		o.Behavior.Policy, o.Behavior.Register = connector.PolicyAnswer{Kind: connector.PolicyNever}, connector.RegisterNever
		b := start(t, setup{Options: o, clock: clk})
		b.ensure()
		b.timer(clk, 1, exactly(15*time.Second))
		clk.Step(14 * time.Second)
		b.same(b.snapshot().State, v1.ConnectorConnecting)
		clk.Step(time.Second)
		b.until("it to be up all the same", func() bool { return b.snapshot().State == v1.ConnectorUp })
		ungranted(b, v1.ReasonPolicyTimeout)
	})
	t.Run("the next connection may be granted", func(t *testing.T) {
		o := demo(1)
		o.Behavior.Policy.Kind = connector.PolicyMCPOnly
		b := start(t, setup{Options: o}).owned(always).up()
		b.c.Change(func(how *connector.Behavior) { how.Policy.Kind = connector.PolicyAccept })
		b.must(b.c.Drop())
		b.untilIs(v1.TransportClosed, "demo:c1")
		b.same(b.snapshot().Peer.Negotiated, v1.ReasonGranted)
	})
	t.Run("it may say what it does without", func(t *testing.T) {
		o := demo(1)
		o.Behavior.Policy = connector.PolicyAnswer{Kind: connector.PolicyDegraded}
		b := start(t, setup{Options: o}).owned(always).registered()
		b.same(b.snapshot().Peer.Negotiated, v1.ReasonDegraded)
		b.same(b.snapshot().Lifecycle, true)
	})
}

// A handshake that fails closes the connection; it is dialled again after a wait.
func TestFailedHandshakes(t *testing.T) {
	for name, test := range map[string]struct {
		behavior        connector.Behavior
		waits           time.Duration // that pass without an answer
		reason, message string
		negotiated      string
	}{
		"refused with close": {
			behavior: connector.Behavior{Policy: connector.PolicyAnswer{Kind: connector.PolicyClose}},
			reason:   v1.ReasonHandshakeFailed, message: "it refused the grant and wants no connection", negotiated: v1.ReasonRefusedClose,
		},
		"plain MCP": {
			behavior: connector.Behavior{Initialize: connector.InitializeAnswer{Kind: connector.InitializePlain}},
			reason:   v1.ReasonNotMCPL, message: "it answers as a plain MCP server, without channels",
		},
		"an error": {
			behavior: connector.Behavior{Initialize: connector.InitializeAnswer{Kind: connector.InitializeFail}},
			reason:   v1.ReasonHandshakeFailed, message: "connector answered error -32603: not ready",
		},
		"a result that is none": {
			behavior: connector.Behavior{Initialize: connector.InitializeAnswer{Kind: connector.InitializeMalformed}},
			reason:   v1.ReasonHandshakeFailed, message: "malformed answer",
		},
		"cut": {
			behavior: connector.Behavior{Initialize: connector.InitializeAnswer{Kind: connector.InitializeDrop}},
			reason:   v1.ReasonHandshakeFailed, message: "no response: connection lost",
		},
		"P16 it accepts and never answers": {
			behavior: connector.Behavior{Initialize: connector.InitializeAnswer{Kind: connector.InitializeNever}},
			waits:    30 * time.Second, reason: v1.ReasonHandshakeFailed, message: "no response: timed out",
		},
		"P16 it answers garbage": {
			behavior: connector.Behavior{Initialize: connector.InitializeAnswer{Kind: connector.InitializeGarbage}},
			waits:    30 * time.Second, reason: v1.ReasonHandshakeFailed, message: "no response: timed out",
		},
	} {
		t.Run(name, func(t *testing.T) {
			clk := newClock()
			o := demo(1)
			o.Behavior = test.behavior
			b := start(t, setup{Options: o, clock: clk, timing: hour})
			b.ensure()
			if test.waits > 0 {
				b.timer(clk, 2, exactly(test.waits)) // writing initialize may take as long
				clk.Step(test.waits)
			}
			b.same(b.untilTrouble(test.reason), test.message)
			snap := b.snapshot()
			b.same(snap.State, v1.ConnectorConnecting)
			b.same(snap.Peer.Negotiated, test.negotiated)
			b.same(snap.Generation, int64(0))
			b.timer(clk, 1, redials)
			b.must(b.c.WaitUntil(b.ctx, func() bool { return !b.c.Status().Connected }))
			b.settles(b.apply(v1.StateOpen, "demo:c1"), decision.Outcome{Failure: v1.CauseRegistrationGone})
			b.c.SetBehavior(connector.Behavior{})
			clk.Step(2 * time.Hour)
			b.until("it to be up", func() bool { return b.snapshot().State == v1.ConnectorUp })
			b.same(b.snapshot().Trouble, Trouble{})
			b.same(b.snapshot().Peer.Negotiated, v1.ReasonGranted)
		})
	}
}
