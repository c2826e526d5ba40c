package session

import (
	"testing"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/internal/decision"
	"mcpl.dev/operator/test/connector"
)

func TestCorrectiveClose(t *testing.T) {
	substituted := decision.Outcome{Failure: v1.CauseSubstituted}
	for name, test := range map[string]struct {
		other  v1.State // what is decided of the channel that was opened instead; empty for nothing
		opened string
		want   []string
	}{
		"F15 one that is decided closed is closed again": {v1.StateClosed, "demo:c2", []string{"open demo:c1", "close demo:c2"}},
		"F16 one that is decided open is left alone":     {v1.StateOpen, "demo:c2", []string{"open demo:c1"}},
		"F16 so is one that is tuned out":                {v1.StateTunedOut, "demo:c2", []string{"open demo:c1"}},
		"one that nobody registered is left alone":       {v1.StateClosed, "demo:c9", []string{"open demo:c1"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t, setup{Options: demo(2)}).owned(always).registered()
			b.decide(test.other, test.opened)
			b.rest()
			b.c.Reset()
			b.c.Once(connector.On("channels/open", "demo:c1").Substituting(test.opened))
			b.settles(b.apply(v1.StateOpen, "demo:c1"), substituted)
			b.rest()
			b.sent(test.want...)
		})
	}
}
