package decision

import (
	"testing"

	v1 "mcpl.dev/operator/api/v1alpha1"
)

func TestOpen(t *testing.T) {
	explicit := write(v1.StateOpen, v1.SourceAgentTool)
	cases := map[string]struct {
		now     Situation
		history bool
		want    Verdict
	}{
		"another resident's channel": {
			now:  directed(undecided, v1.TransportClosed, foreign),
			want: Verdict{Refused: true, Cause: v1.CauseNotItsResident},
		},
		"another resident's channel, already open": {
			now:  directed(openBy(v1.SourceAgentTool), v1.TransportOpen, foreign),
			want: Verdict{Refused: true, Cause: v1.CauseNotItsResident},
		},
		"another resident's channel comes before tuned out": {
			now:  directed(tunedOut(), v1.TransportOpen, foreign),
			want: Verdict{Refused: true, Cause: v1.CauseNotItsResident},
		},
		"B05 tuned out": {
			now:  directed(tunedOut(), v1.TransportOpen),
			want: Verdict{Refused: true, Cause: v1.CauseTunedOut},
		},
		"B05 tuned out comes before an unreachable connector": {
			now: directed(tunedOut(), v1.TransportUnconfirmed, connectorIs(v1.ConnectorGone)), history: true,
			want: Verdict{Refused: true, Cause: v1.CauseTunedOut},
		},

		"B01 default-closed": {
			now:  directed(undecided, v1.TransportClosed),
			want: Verdict{Write: explicit, Send: true, Success: v1.ResultOpened},
		},
		"no record": {
			now:  directed(none, v1.TransportUnconfirmed),
			want: Verdict{Write: explicit, Send: true, Success: v1.ResultOpened},
		},
		"over the resident's own close": {
			now:  directed(closedBy(v1.SourceAgentTool), v1.TransportClosed),
			want: Verdict{Write: explicit, Send: true, Success: v1.ResultOpened},
		},
		"over a module's close": {
			now:  directed(closedBy(v1.SourceModuleTool), v1.TransportClosed),
			want: Verdict{Write: explicit, Send: true, Success: v1.ResultOpened},
		},
		"B07 a close is in flight": {
			now:  directed(closedBy(v1.SourceAgentTool), v1.TransportOpen, busy),
			want: Verdict{Write: explicit, Send: true, Success: v1.ResultOpened},
		},
		"decided closed although the transport is open: its close failed": {
			now:  directed(closedBy(v1.SourceAgentTool), v1.TransportOpen),
			want: Verdict{Write: explicit, Send: true, Success: v1.ResultOpened},
		},

		"B02 open by the resident makes an incidental open explicit": {
			now:  directed(openBy(v1.SourceOpenedByReply), v1.TransportOpen),
			want: Verdict{Write: explicit, Success: v1.ResultAlreadyOpen},
		},
		"already open by the resident": {
			now:  directed(openBy(v1.SourceAgentTool), v1.TransportOpen),
			want: Verdict{Success: v1.ResultAlreadyOpen},
		},
		"already open, and lifecycle is gone on the live connection": {
			now:  directed(openBy(v1.SourceAgentTool), v1.TransportOpen, noLifecycle),
			want: Verdict{Success: v1.ResultAlreadyOpen},
		},
		"B03 decided open, not confirmed": {
			now:  directed(openBy(v1.SourceAgentTool), v1.TransportUnconfirmed),
			want: Verdict{Send: true, Success: v1.ResultReconciled},
		},
		"decided open, confirmed closed": {
			now:  directed(openBy(v1.SourceAgentTool), v1.TransportClosed),
			want: Verdict{Send: true, Success: v1.ResultReconciled},
		},
		"decided open by the policy, not confirmed": {
			now:  directed(openBy(v1.SourceSubscriptionPolicy), v1.TransportUnconfirmed),
			want: Verdict{Write: explicit, Send: true, Success: v1.ResultReconciled},
		},
		"open, with work outstanding": {
			now:  directed(openBy(v1.SourceAgentTool), v1.TransportOpen, busy),
			want: Verdict{Send: true, Success: v1.ResultReconciled},
		},
		"open, with backscroll": {
			now: directed(openBy(v1.SourceAgentTool), v1.TransportOpen), history: true,
			want: Verdict{Send: true, Success: v1.ResultReconciled},
		},
		"B02 with backscroll": {
			now: directed(openBy(v1.SourceOpenedByDelivery), v1.TransportOpen), history: true,
			want: Verdict{Write: explicit, Send: true, Success: v1.ResultReconciled},
		},

		"B14 lifecycle is not granted": {
			now:  directed(undecided, v1.TransportClosed, noLifecycle),
			want: Verdict{Write: explicit, Cause: v1.CauseNotPermitted},
		},
		"B14 lifecycle is not granted, backscroll of an open channel": {
			now: directed(openBy(v1.SourceAgentTool), v1.TransportOpen, noLifecycle), history: true,
			want: Verdict{Cause: v1.CauseNotPermitted},
		},
		"the connector reconnects": {
			now:  directed(openBy(v1.SourceAgentTool), v1.TransportUnconfirmed, connectorIs(v1.ConnectorReconnecting), noLifecycle),
			want: Verdict{Cause: v1.CauseConnectorMissing},
		},
		"the connector is gone": {
			now:  directed(undecided, v1.TransportUnconfirmed, connectorIs(v1.ConnectorGone), noLifecycle, unregistered),
			want: Verdict{Write: explicit, Cause: v1.CauseConnectorMissing},
		},
		"no connector was ever there": {
			now:  Situation{},
			want: Verdict{Write: explicit, Cause: v1.CauseConnectorMissing},
		},
		"the channel is not registered": {
			now:  directed(none, v1.TransportUnconfirmed, unregistered),
			want: Verdict{Write: explicit, Cause: v1.CauseRegistrationGone},
		},
		"not registered and not permitted": {
			now:  directed(none, v1.TransportUnconfirmed, unregistered, noLifecycle),
			want: Verdict{Write: explicit, Cause: v1.CauseNotPermitted},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			same(t, tc.want, Open(tc.now, tc.history))
		})
	}
}

// TestOpenEverything restates §5.5 over every situation, row by row.
func TestOpenEverything(t *testing.T) {
	everySituation(func(s Situation) {
		for _, history := range []bool{false, true} {
			decidedOpen := s.Record.State == v1.StateOpen
			var want Verdict
			switch {
			case s.Foreign:
				want = Verdict{Refused: true, Cause: v1.CauseNotItsResident}
			case s.Record.State == v1.StateTunedOut:
				want = Verdict{Refused: true, Cause: v1.CauseTunedOut}
			case decidedOpen && s.Transport == v1.TransportOpen && !s.Outstanding && !history:
				want = Verdict{Success: v1.ResultAlreadyOpen}
			case s.Connector != v1.ConnectorUp:
				want = Verdict{Cause: v1.CauseConnectorMissing}
			case !s.Lifecycle:
				want = Verdict{Cause: v1.CauseNotPermitted}
			case !s.Registered:
				want = Verdict{Cause: v1.CauseRegistrationGone}
			case decidedOpen:
				want = Verdict{Send: true, Success: v1.ResultReconciled}
			default:
				want = Verdict{Send: true, Success: v1.ResultOpened}
			}
			if !want.Refused && s.Record != openBy(v1.SourceAgentTool) {
				want.Write = write(v1.StateOpen, v1.SourceAgentTool)
			}
			if got := Open(s, history); !sameVerdict(want, got) {
				t.Errorf("Open(%+v, %v) = %+v, want %+v", s, history, got, want)
			}
		}
	})
}

func TestDirects(t *testing.T) {
	everySituation(func(s Situation) {
		if got := s.Directs(); got != (s.Connector == v1.ConnectorUp && s.Lifecycle) {
			t.Errorf("%+v: Directs() = %v", s, got)
		}
	})
}

func sameVerdict(a, b Verdict) bool {
	if (a.Write == nil) != (b.Write == nil) || (a.Write != nil && *a.Write != *b.Write) {
		return false
	}
	a.Write, b.Write = nil, nil
	return a == b
}
