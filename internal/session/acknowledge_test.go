package session

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"mcpl.dev/operator/internal/mcpl"
	"mcpl.dev/operator/test/connector"
)

// acknowledged waits until it is known what became of an acknowledgement.
func (b *bench) acknowledged(a *Acknowledgement) string {
	b.Helper()
	var told string
	b.until("an acknowledgement to settle", func() bool {
		shown, representation, failure, settled := b.session().Acknowledged(a)
		told = fmt.Sprint(shown, " ", representation, failure)
		return settled
	})
	return told
}

func (b *bench) acknowledge(value string) *Acknowledgement {
	b.Helper()
	return b.session().Acknowledge("demo:c1", "m1", mcpl.IntentSeenNotOpening, value)
}

func TestAcknowledge(t *testing.T) {
	for name, test := range map[string]struct {
		rule connector.Rule
		want string
	}{
		"plainly":          {connector.Rule{}, "true 🙈"},
		"shown too long":   {connector.On("", "").Answering(map[string]any{"acknowledged": true, "representation": strings.Repeat("x", 99)}), "true " + strings.Repeat("x", maxRepresentation)},
		"not acknowledged": {connector.On("", "").Answering(map[string]any{"acknowledged": false, "reason": "muted"}), "false the connector did not acknowledge it: muted"},
		"without a reason": {connector.On("", "").Answering(map[string]any{}), "false the connector did not acknowledge it"},
		"an error":         {connector.On("", "").Failing(-32603, "busy"), "false the connector answered with an error: busy"},
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t, setup{Options: demo(1)}).owned(always).registered()
			test.rule.Method = mcpl.MethodChannelsAcknowledge
			b.c.Once(test.rule)
			before := b.notify.wakesOf("demo:c1")
			b.same(b.acknowledged(b.acknowledge("🙈")), test.want)
			b.same(string(b.asked(mcpl.MethodChannelsAcknowledge, "demo:c1").Params), `{"channelId":"demo:c1","messageId":"m1","intent":"seen-not-opening","value":"🙈"}`)
			if b.notify.wakesOf("demo:c1") == before {
				t.Error("nobody was told")
			}
			b.same(b.c.Count(mcpl.MethodChannelsAcknowledge, ""), 1)
		})
	}
	t.Run("not granted", func(t *testing.T) {
		b := start(t, setup{Options: demo(1), config: func(c *Config) { c.Deny = []string{"channels.acknowledge"} }}).owned(always).registered()
		b.same(b.acknowledged(b.acknowledge("")), "false channels.acknowledge is not granted on the connector")
		b.same(b.c.Count(mcpl.MethodChannelsAcknowledge, ""), 0)
	})
	t.Run("in its place of the window, and lost with the connection", func(t *testing.T) {
		b := start(t, setup{Options: demo(1), config: func(c *Config) { c.Window = 1 }}).owned(always).registered()
		b.must(b.c.Pause())
		b.c.Once(connector.On(mcpl.MethodChannelsAcknowledge, "").HeldAt("busy"))
		sent, waiting := b.acknowledge("1"), b.acknowledge("2")
		b.held("busy", 1)
		b.flush()
		b.same(b.c.Count(mcpl.MethodChannelsAcknowledge, ""), 1)
		b.must(b.c.Drop())
		b.same(b.acknowledged(sent), "false the connector did not answer: it may or may not have been posted")
		b.same(b.acknowledged(waiting), "false the connector is not connected")
		b.same(b.acknowledged(b.acknowledge("3")), "false the connector is not connected")
	})
	t.Run("never answered", func(t *testing.T) {
		clk := newClock()
		b := start(t, setup{Options: demo(1), clock: clk, config: registering}).owned(always).registered()
		b.c.Once(connector.On(mcpl.MethodChannelsAcknowledge, "").NeverAnswered())
		b.ensure(func(c *Config) { c.RequestTimeout, c.Window = 0, 1 })
		a := b.acknowledge("")
		b.timer(clk, 1, exactly(lifecycleTimeout))
		clk.Step(lifecycleTimeout - time.Second)
		b.flush()
		clk.Step(time.Second)
		b.same(b.acknowledged(a), "false the connector did not answer: it may or may not have been posted")
		b.same(b.acknowledged(b.acknowledge("🙈")), "true 🙈") // and its place is free
	})
}
