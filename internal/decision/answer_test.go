package decision

import (
	"strings"
	"testing"

	v1 "mcpl.dev/operator/api/v1alpha1"
)

// said is what an answer must and must not say.
type said struct {
	result v1.Result
	cause  v1.Cause
	says   []string
	never  []string
}

func (w said) check(t *testing.T, got Answer) {
	t.Helper()
	same(t, w.result, got.Result)
	same(t, w.cause, got.Cause)
	for _, text := range w.says {
		if !strings.Contains(got.Message, text) {
			t.Errorf("%q does not say %q", got.Message, text)
		}
	}
	for _, text := range w.never {
		if strings.Contains(got.Message, text) {
			t.Errorf("%q says %q", got.Message, text)
		}
	}
}

func TestSettle(t *testing.T) {
	failed := func(cause v1.Cause) Outcome { return Outcome{Failure: cause} }
	refused := Outcome{Failure: v1.CauseConnectorFailed, Detail: "no such channel (-32004)"}
	silence := Outcome{Failure: v1.CauseConnectorFailed, Unknown: true}
	isOpen := directed(openBy(v1.SourceAgentTool), v1.TransportOpen)
	notOpen := directed(openBy(v1.SourceAgentTool), v1.TransportUnconfirmed)
	isClosed := directed(closedBy(v1.SourceAgentTool), v1.TransportClosed)
	stillOpen := directed(closedBy(v1.SourceAgentTool), v1.TransportOpen)

	cases := map[string]struct {
		kind    v1.DecisionKind
		success v1.Result
		outcome Outcome
		now     Situation
		want    said
	}{
		"B01 opened": {
			kind: v1.DecisionOpen, success: v1.ResultOpened, now: isOpen,
			want: said{result: v1.ResultOpened, says: []string{"is open", "confirmed"}},
		},
		"B03 reconciled: perhaps it was never confirmed before": {
			kind: v1.DecisionOpen, success: v1.ResultReconciled, now: isOpen,
			want: said{result: v1.ResultReconciled, says: []string{"already decided open", "confirmed"}, never: []string{"again"}},
		},
		"closed": {
			kind: v1.DecisionClose, success: v1.ResultClosed, now: isClosed,
			want: said{result: v1.ResultClosed, says: []string{"is closed", "confirmed"}},
		},
		"B04 the connector answers with an error": {
			kind: v1.DecisionOpen, success: v1.ResultOpened, outcome: refused, now: notOpen,
			want: said{result: v1.ResultFailed, cause: v1.CauseStaysSelected,
				says: []string{"decided open", "no such channel (-32004)", "next registers", "a close withdraws it"}, never: []string{"Nothing changed"}},
		},
		"B04 the connector does not answer": {
			kind: v1.DecisionOpen, success: v1.ResultReconciled, outcome: silence, now: notOpen,
			want: said{result: v1.ResultFailed, cause: v1.CauseStaysSelected, says: []string{"did not answer", "may or may not have acted", "a close withdraws it"}},
		},
		"B04 an error without a word": {
			kind: v1.DecisionOpen, success: v1.ResultOpened, outcome: failed(v1.CauseConnectorFailed), now: notOpen,
			want: said{result: v1.ResultFailed, cause: v1.CauseStaysSelected, says: []string{"with an error"}, never: []string{"error:", "did not answer"}},
		},
		"B06 backscroll of an open channel fails": {
			kind: v1.DecisionOpen, success: v1.ResultReconciled, outcome: refused, now: isOpen,
			want: said{result: v1.ResultFailed, cause: v1.CauseConnectorFailed, says: []string{"no such channel"}, never: []string{"withdraws"}},
		},
		"B11 the close fails and the channel is still open": {
			kind: v1.DecisionClose, success: v1.ResultClosed, outcome: refused, now: stillOpen,
			want: said{result: v1.ResultFailed, cause: v1.CauseConnectorFailed, says: []string{"decided closed", "close", "no such channel"}, never: []string{"withdraws", "open"}},
		},
		"B12 the close fails after the channel moved": {
			kind: v1.DecisionClose, success: v1.ResultClosed, outcome: silence, now: directed(closedBy(v1.SourceAgentTool), v1.TransportUnconfirmed),
			want: said{result: v1.ResultFailed, cause: v1.CauseConnectorFailed, says: []string{"may or may not have acted"}},
		},
		"B08 open in flight, closed by the resident": {
			kind: v1.DecisionOpen, success: v1.ResultOpened, now: isClosed,
			want: said{result: v1.ResultSuperseded, cause: v1.CauseSuperseded, says: []string{"newer decision", "Closed (AgentTool)"}},
		},
		"F02 close in flight, opened by the resident": {
			kind: v1.DecisionClose, success: v1.ResultClosed, now: isOpen,
			want: said{result: v1.ResultSuperseded, cause: v1.CauseSuperseded, says: []string{"newer decision", "Open (AgentTool)"}},
		},
		"F02 superseded, although its own request failed": {
			kind: v1.DecisionOpen, success: v1.ResultOpened, outcome: refused, now: isClosed,
			want: said{result: v1.ResultSuperseded, cause: v1.CauseSuperseded, never: []string{"no such channel"}},
		},
		"H21 close in flight, tuned out": {
			kind: v1.DecisionClose, success: v1.ResultClosed, now: directed(tunedOut(), v1.TransportOpen),
			want: said{result: v1.ResultSuperseded, cause: v1.CauseSuperseded, says: []string{"TunedOut (AgentTool)"}},
		},
		"open in flight, tuned out: it asked for Open": {
			kind: v1.DecisionOpen, success: v1.ResultOpened, now: directed(tunedOut(), v1.TransportOpen),
			want: said{result: v1.ResultSuperseded, cause: v1.CauseSuperseded, says: []string{"TunedOut (AgentTool)"}},
		},
		"another open landed meanwhile: what was asked for is so": {
			kind: v1.DecisionOpen, success: v1.ResultOpened, now: directed(openBy(v1.SourceOpenedByReply), v1.TransportOpen),
			want: said{result: v1.ResultOpened},
		},
		"another close landed meanwhile: what was asked for is so": {
			kind: v1.DecisionClose, success: v1.ResultClosed, now: directed(closedBy(v1.SourceModuleTool), v1.TransportClosed),
			want: said{result: v1.ResultClosed},
		},
		"the record was deleted": {
			kind: v1.DecisionOpen, success: v1.ResultOpened, now: directed(none, v1.TransportOpen),
			want: said{result: v1.ResultSuperseded, cause: v1.CauseSuperseded, says: []string{"deleted"}, never: []string{"newer decision"}},
		},
		"the record was deleted, and a pass found that nobody decided": {
			kind: v1.DecisionOpen, success: v1.ResultOpened, now: directed(undecided, v1.TransportOpen),
			want: said{result: v1.ResultSuperseded, cause: v1.CauseSuperseded, says: []string{"deleted"}, never: []string{"newer decision"}},
		},
		"F04 the channel was removed": {
			kind: v1.DecisionOpen, success: v1.ResultOpened, outcome: failed(v1.CauseRegistrationGone),
			now:  directed(openBy(v1.SourceAgentTool), v1.TransportUnconfirmed, unregistered),
			want: said{result: v1.ResultFailed, cause: v1.CauseRegistrationGone, says: []string{"register"}},
		},
		"F04 the channel was removed, and is back": {
			kind: v1.DecisionOpen, success: v1.ResultOpened, outcome: failed(v1.CauseRegistrationGone), now: notOpen,
			want: said{result: v1.ResultFailed, cause: v1.CauseRegistrationGone, never: []string{"does not register"}},
		},
		"I07 lifecycle was taken away": {
			kind: v1.DecisionClose, success: v1.ResultClosed, outcome: failed(v1.CauseNotPermitted),
			now:  directed(closedBy(v1.SourceAgentTool), v1.TransportOpen, noLifecycle),
			want: said{result: v1.ResultFailed, cause: v1.CauseNotPermitted, says: []string{"channels.lifecycle", "not granted"}},
		},
		"lifecycle was taken away, and is back": {
			kind: v1.DecisionClose, success: v1.ResultClosed, outcome: failed(v1.CauseNotPermitted), now: stillOpen,
			want: said{result: v1.ResultFailed, cause: v1.CauseNotPermitted, says: []string{"channels.lifecycle"}, never: []string{"is not granted"}},
		},
		"the connection went before the request": {
			kind: v1.DecisionOpen, success: v1.ResultOpened, outcome: failed(v1.CauseConnectorMissing),
			now:  directed(openBy(v1.SourceAgentTool), v1.TransportUnconfirmed, connectorIs(v1.ConnectorReconnecting)),
			want: said{result: v1.ResultFailed, cause: v1.CauseConnectorMissing, says: []string{"not connected (Reconnecting)", "a close withdraws it"}},
		},
		"the connection went before the request, and is back": {
			kind: v1.DecisionOpen, success: v1.ResultOpened, outcome: failed(v1.CauseConnectorMissing), now: notOpen,
			want: said{result: v1.ResultFailed, cause: v1.CauseConnectorMissing, never: []string{"is not connected", "(Up)"}},
		},
		"F13 answered for another channel": {
			kind: v1.DecisionOpen, success: v1.ResultOpened, outcome: failed(v1.CauseSubstituted), now: notOpen,
			want: said{result: v1.ResultFailed, cause: v1.CauseSubstituted, says: []string{"another channel", "nothing of that answer was used", "a close withdraws it"}},
		},
		"F08 did not converge": {
			kind: v1.DecisionOpen, success: v1.ResultOpened, outcome: failed(v1.CauseDidNotConverge), now: notOpen,
			want: said{result: v1.ResultFailed, cause: v1.CauseDidNotConverge, says: []string{"kept changing", "attempts", "a close withdraws it"}},
		},
		"a word that ends with a full stop": {
			kind: v1.DecisionClose, success: v1.ResultClosed, outcome: Outcome{Failure: v1.CauseConnectorFailed, Detail: "Not now."}, now: stillOpen,
			want: said{result: v1.ResultFailed, cause: v1.CauseConnectorFailed, says: []string{"Not now. "}, never: []string{".."}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.want.check(t, Settle(tc.kind, tc.success, tc.outcome, tc.now))
		})
	}
}

func TestAtOnce(t *testing.T) {
	cases := map[string]struct {
		kind    v1.DecisionKind
		verdict Verdict
		now     Situation
		want    said
	}{
		"another resident's": {
			kind: v1.DecisionOpen, verdict: refused(v1.CauseNotItsResident), now: directed(undecided, v1.TransportClosed),
			want: said{result: v1.ResultRefused, cause: v1.CauseNotItsResident, says: []string{"another resident", "Nothing changed."}},
		},
		"B05 tuned out": {
			kind: v1.DecisionOpen, verdict: refused(v1.CauseTunedOut), now: directed(tunedOut(), v1.TransportOpen),
			want: said{result: v1.ResultRefused, cause: v1.CauseTunedOut, says: []string{"End the tune-out first", "delivers", "Nothing changed."}},
		},
		"C01 explicit open": {
			kind: v1.DecisionClose, verdict: refused(v1.CauseExplicitOpen), now: directed(openBy(byResident), v1.TransportOpen),
			want: said{result: v1.ResultRefused, cause: v1.CauseExplicitOpen, says: []string{"opened the channel", "lease", "Nothing changed."}},
		},
		"C04 explicit tune-out": {
			kind: v1.DecisionClose, verdict: refused(v1.CauseExplicitOpen), now: directed(tunedOut(), v1.TransportOpen),
			want: said{result: v1.ResultRefused, cause: v1.CauseExplicitOpen, says: []string{"tuned out the channel", "lease"}},
		},
		"already open": {
			kind: v1.DecisionOpen, verdict: Verdict{Success: v1.ResultAlreadyOpen}, now: directed(openBy(byResident), v1.TransportOpen),
			want: said{result: v1.ResultAlreadyOpen, says: []string{"already open", "nothing was sent"}, never: []string{"Nothing changed"}},
		},
		"B09 already closed": {
			kind: v1.DecisionClose, verdict: Verdict{Write: write(v1.StateClosed, byResident), Success: v1.ResultAlreadyClosed}, now: directed(closedBy(byResident), v1.TransportClosed),
			want: said{result: v1.ResultAlreadyClosed, says: []string{"already closed", "nothing was sent"}, never: []string{"Nothing changed"}},
		},
		"B13 lifecycle is not granted": {
			kind: v1.DecisionClose, verdict: Verdict{Cause: v1.CauseNotPermitted}, now: directed(closedBy(byResident), v1.TransportOpen, noLifecycle),
			want: said{result: v1.ResultFailed, cause: v1.CauseNotPermitted, says: []string{"decided closed", "channels.lifecycle is not granted"}, never: []string{"withdraws"}},
		},
		"B14 lifecycle is not granted": {
			kind: v1.DecisionOpen, verdict: Verdict{Cause: v1.CauseNotPermitted}, now: directed(openBy(byResident), v1.TransportClosed, noLifecycle),
			want: said{result: v1.ResultFailed, cause: v1.CauseNotPermitted, says: []string{"decided open", "channels.lifecycle is not granted", "a close withdraws it"}},
		},
		"no connector": {
			kind: v1.DecisionOpen, verdict: Verdict{Cause: v1.CauseConnectorMissing}, now: Situation{Record: openBy(byResident)},
			want: said{result: v1.ResultFailed, cause: v1.CauseConnectorMissing, says: []string{"not connected (Gone)"}},
		},
		"a machine's close of what another has closed: it is decided, by the other": {
			kind: v1.DecisionClose, verdict: Verdict{Cause: v1.CauseConnectorMissing}, now: directed(closedBy(byResident), v1.TransportUnconfirmed, connectorIs(v1.ConnectorGone)),
			want: said{result: v1.ResultFailed, cause: v1.CauseConnectorMissing, says: []string{"decided closed"}, never: []string{"The decision is recorded"}},
		},
		"not registered": {
			kind: v1.DecisionOpen, verdict: Verdict{Cause: v1.CauseRegistrationGone}, now: directed(openBy(byResident), v1.TransportUnconfirmed, unregistered),
			want: said{result: v1.ResultFailed, cause: v1.CauseRegistrationGone, says: []string{"does not register the channel"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.want.check(t, AtOnce(tc.kind, tc.verdict, tc.now))
		})
	}
}

func TestResume(t *testing.T) {
	cases := map[string]struct {
		kind  v1.DecisionKind
		now   Situation
		final bool
		waits bool
		want  said
	}{
		"an open, confirmed":               {kind: v1.DecisionOpen, now: directed(openBy(byResident), v1.TransportOpen), want: said{result: v1.ResultOpened}},
		"a close, confirmed":               {kind: v1.DecisionClose, now: directed(closedBy(byResident), v1.TransportClosed), want: said{result: v1.ResultClosed}},
		"an open, unconfirmed":             {kind: v1.DecisionOpen, now: directed(openBy(byResident), v1.TransportUnconfirmed), waits: true},
		"a close of what is open yet":      {kind: v1.DecisionClose, now: directed(closedBy(byResident), v1.TransportOpen), waits: true},
		"confirmed, but work is under way": {kind: v1.DecisionOpen, now: directed(openBy(byResident), v1.TransportOpen, busy), waits: true},
		"the connector is not up yet":      {kind: v1.DecisionOpen, now: directed(openBy(byResident), v1.TransportUnconfirmed, connectorIs(v1.ConnectorConnecting), unregistered), waits: true},
		"superseded, at once": {
			kind: v1.DecisionOpen, now: directed(closedBy(byModule), v1.TransportUnconfirmed, connectorIs(v1.ConnectorConnecting)),
			want: said{result: v1.ResultSuperseded, cause: v1.CauseSuperseded, says: []string{"Closed (ModuleTool)"}}},
		"the record was deleted": {
			kind: v1.DecisionClose, now: directed(none, v1.TransportClosed),
			want: said{result: v1.ResultSuperseded, cause: v1.CauseSuperseded, says: []string{"deleted"}}},
		"waited too long, unconfirmed": {
			kind: v1.DecisionOpen, now: directed(openBy(byResident), v1.TransportUnconfirmed), final: true,
			want: said{result: v1.ResultFailed, cause: v1.CauseStaysSelected, says: []string{"may or may not have acted", "a close withdraws it"}}},
		"waited too long, and it is still open": {
			kind: v1.DecisionClose, now: directed(closedBy(byResident), v1.TransportOpen), final: true,
			want: said{result: v1.ResultFailed, cause: v1.CauseConnectorFailed, never: []string{"withdraws"}}},
		"waited too long, work is still under way": {
			kind: v1.DecisionClose, now: directed(closedBy(byResident), v1.TransportClosed, busy), final: true,
			want: said{result: v1.ResultFailed, cause: v1.CauseConnectorFailed}},
		"waited too long for the connector": {
			kind: v1.DecisionClose, now: directed(closedBy(byResident), v1.TransportUnconfirmed, connectorIs(v1.ConnectorReconnecting)), final: true,
			want: said{result: v1.ResultFailed, cause: v1.CauseConnectorMissing, says: []string{"Reconnecting"}}},
		"waited too long for the registration": {
			kind: v1.DecisionOpen, now: directed(openBy(byResident), v1.TransportUnconfirmed, unregistered), final: true,
			want: said{result: v1.ResultFailed, cause: v1.CauseRegistrationGone}},
		"waited too long for the grant": {
			kind: v1.DecisionOpen, now: directed(openBy(byResident), v1.TransportUnconfirmed, noLifecycle), final: true,
			want: said{result: v1.ResultFailed, cause: v1.CauseNotPermitted}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok := Resume(tc.kind, tc.now, tc.final)
			same(t, !tc.waits, ok)
			tc.want.check(t, got)
		})
	}
}

func TestResumeEverything(t *testing.T) {
	everySituation(func(s Situation) {
		for _, kind := range kinds {
			got, ok := Resume(kind, s, true)
			if !ok {
				t.Errorf("a final reading must answer: %+v", s)
			}
			confirmed := map[v1.Result]v1.TransportState{v1.ResultOpened: v1.TransportOpen, v1.ResultClosed: v1.TransportClosed}[got.Result]
			if Succeeded(got.Result) && (confirmed != s.Transport || s.Outstanding) {
				t.Errorf("%s without a confirmation: %+v", got.Result, s)
			}
			if early, ok := Resume(kind, s, false); ok {
				same(t, got, early)
			}
		}
	})
}

func TestNotStored(t *testing.T) {
	cases := map[string]struct {
		verdict Verdict
		want    said
	}{
		"B16 already closed, and not on record": {
			verdict: Close(directed(undecided, v1.TransportClosed), byResident, false),
			want:    said{result: v1.ResultAlreadyClosed, cause: v1.CauseDecisionNotStored, says: []string{"already closed", "nothing was sent", "could not be stored"}},
		},
		"B02 already open, and not on record": {
			verdict: Open(directed(openBy(v1.SourceOpenedByReply), v1.TransportOpen), false),
			want:    said{result: v1.ResultAlreadyOpen, cause: v1.CauseDecisionNotStored, says: []string{"already open", "could not be stored"}},
		},
		"B18 a close that needs the wire": {
			verdict: Close(directed(openBy(byResident), v1.TransportOpen), byResident, false),
			want:    said{result: v1.ResultFailed, cause: v1.CauseStoreFailed, says: []string{"could not be stored", "Nothing changed", "nothing was sent"}, never: []string{"recorded"}},
		},
		"a close that could not be sent either": {
			verdict: Close(directed(openBy(byResident), v1.TransportOpen, noLifecycle), byResident, false),
			want:    said{result: v1.ResultFailed, cause: v1.CauseStoreFailed, says: []string{"Nothing changed"}, never: []string{"channels.lifecycle"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.want.check(t, NotStored(tc.verdict))
		})
	}
}

func TestAnswersWithoutARecord(t *testing.T) {
	said{result: v1.ResultFailed, cause: v1.CauseNotFound, says: []string{"No such channel", "Nothing changed"}, never: []string{"recorded", "decided"}}.
		check(t, NeverAppeared(Situation{}))
	said{result: v1.ResultSuperseded, cause: v1.CauseSuperseded, says: []string{"older than the oldest"}}.
		check(t, Predates())
}

func TestSucceeded(t *testing.T) {
	cases := map[v1.Result]bool{
		v1.ResultOpened: true, v1.ResultAlreadyOpen: true, v1.ResultReconciled: true, v1.ResultClosed: true, v1.ResultAlreadyClosed: true,
		v1.ResultRefused: false, v1.ResultSuperseded: false, v1.ResultFailed: false, "": false,
	}
	for result, want := range cases {
		if got := Succeeded(result); got != want {
			t.Errorf("Succeeded(%q) = %v", result, got)
		}
	}
}
