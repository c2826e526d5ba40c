package decision

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "mcpl.dev/operator/api/v1alpha1"
)

// factsOf are the facts of a registered channel on connector "discord".
func factsOf(r Record, t v1.TransportState, but ...func(*ChannelFacts)) ChannelFacts {
	f := ChannelFacts{Situation: directed(r, t), ConnectorExists: true, ConnectorName: "discord"}
	for _, change := range but {
		change(&f)
	}
	return f
}

func situationIs(change func(*Situation)) func(*ChannelFacts) {
	return func(f *ChannelFacts) { change(&f.Situation) }
}

func failedWith(opening bool, o Outcome) func(*ChannelFacts) {
	return func(f *ChannelFacts) { f.Failed, f.FailedOpening = &o, opening }
}

func missingFor(d time.Duration) func(*ChannelFacts) {
	return func(f *ChannelFacts) { f.Registered, f.MissingFor = false, d }
}

func down(state v1.ConnectorState) func(*ChannelFacts) {
	return func(f *ChannelFacts) {
		f.Connector, f.Lifecycle, f.Registered = state, false, state == v1.ConnectorReconnecting
	}
}

func gone(f *ChannelFacts) {
	f.Situation = Situation{Record: f.Record}
	f.ConnectorExists = false
}

// brief is a condition in a few words: "Ready=False/NotRegistered".
func brief(c metav1.Condition) string { return c.Type + "=" + string(c.Status) + "/" + c.Reason }

func briefs(conditions []metav1.Condition) []string {
	var all []string
	for _, c := range conditions {
		all = append(all, brief(c))
	}
	return all
}

func message(r Report, kind string) string {
	for _, c := range r.Conditions {
		if c.Type == kind {
			return c.Message
		}
	}
	return ""
}

func TestReportChannel(t *testing.T) {
	refused := Outcome{Failure: v1.CauseConnectorFailed, Detail: "no such channel (-32004)"}
	silence := Outcome{Failure: v1.CauseConnectorFailed, Unknown: true}
	pushKnown := func(f *ChannelFacts) { f.PushKnown = true }
	working := func(f *ChannelFacts) { f.Outstanding = true }
	inFlight := func(f *ChannelFacts) { f.Outstanding, f.InFlight = true, true }
	duplicate := func(f *ChannelFacts) { f.DuplicateOf = "elder" }
	duplicateServer := func(f *ChannelFacts) { f.DuplicateServerID = true }
	lastOpen := func(f *ChannelFacts) { f.LastConfirmed = v1.TransportOpen }

	cases := map[string]struct {
		facts      ChannelFacts
		desired    string // default Closed
		registered string // default True/Declared
		settled    string
		ready      string // with Reconciling or Stalled of the same reason
		also       string // Reconciling (default where Ready is not True) or Stalled
		final      bool
		recheck    time.Duration
		says       []string // in the message of Ready
		never      []string
	}{
		"decided open, confirmed": {
			facts: factsOf(openBy(byResident), v1.TransportOpen), desired: "Open",
			settled: "True/Open", ready: "True/Settled", final: true, says: []string{"Decided open", "confirmed"},
		},
		"default-closed, confirmed": {
			facts: factsOf(undecided, v1.TransportClosed), settled: "True/Closed", ready: "True/Settled", final: true,
			says: []string{"nobody has opened it"},
		},
		"closed by the resident, confirmed": {
			facts: factsOf(closedBy(byResident), v1.TransportClosed), settled: "True/Closed", ready: "True/Settled", final: true,
			says: []string{"Decided closed (AgentTool)"}, never: []string{"nobody"},
		},
		"no record, confirmed closed": {
			facts: factsOf(none, v1.TransportClosed), settled: "True/Closed", ready: "True/Settled", final: true,
		},
		"tuned out, confirmed open": {
			facts: factsOf(tunedOut(), v1.TransportOpen), desired: "TunedOut",
			settled: "True/TunedOut", ready: "True/Settled", final: true, says: []string{"held"},
		},
		"tuned out, confirmed closed: an open is wanted": {
			facts: factsOf(tunedOut(), v1.TransportClosed), desired: "TunedOut",
			settled: "Unknown/Unconfirmed", ready: "Unknown/Unconfirmed",
		},
		"decided open, nothing known": {
			facts: factsOf(openBy(byResident), v1.TransportUnconfirmed), desired: "Open",
			settled: "Unknown/Unconfirmed", ready: "Unknown/Unconfirmed", says: []string{"The open is sent"},
		},
		"decided closed, nothing known": {
			facts: factsOf(closedBy(byResident), ""), settled: "Unknown/Unconfirmed", ready: "Unknown/Unconfirmed", says: []string{"The close is sent"},
		},
		"its turn has not come": {
			facts: factsOf(openBy(byResident), v1.TransportClosed, working), desired: "Open",
			settled: "Unknown/WorkOutstanding", ready: "Unknown/WorkOutstanding", says: []string{"open waits for its turn"},
		},
		"the connector has not answered": {
			facts:   factsOf(closedBy(byResident), v1.TransportOpen, inFlight),
			settled: "Unknown/WorkOutstanding", ready: "Unknown/WorkOutstanding", says: []string{"close is with the connector"},
		},
		"confirmed, but work is under way": {
			facts: factsOf(openBy(byResident), v1.TransportOpen, inFlight), desired: "Open",
			settled: "Unknown/WorkOutstanding", ready: "Unknown/WorkOutstanding",
		},
		"B04 the open failed": {
			facts: factsOf(openBy(byResident), v1.TransportUnconfirmed, failedWith(true, refused)), desired: "Open",
			settled: "False/OpenFailed", ready: "False/OpenFailed", final: true, says: []string{"open", "no such channel (-32004)", "The open is sent when"},
		},
		"B11 the close failed": {
			facts:   factsOf(closedBy(byResident), v1.TransportOpen, failedWith(false, silence)),
			settled: "False/CloseFailed", ready: "False/CloseFailed", final: true, says: []string{"did not answer the close"},
		},
		"the open failed, and it is decided closed now": {
			facts:   factsOf(closedBy(byResident), v1.TransportUnconfirmed, failedWith(true, refused)),
			settled: "False/OpenFailed", ready: "False/OpenFailed", final: true, says: []string{"answered the open", "The close is sent when"}, never: []string{"sent again"},
		},
		"F13 answered for another channel": {
			facts: factsOf(openBy(byResident), v1.TransportUnconfirmed, failedWith(true, Outcome{Failure: v1.CauseSubstituted})), desired: "Open",
			settled: "False/Substituted", ready: "False/Substituted", final: true,
		},
		"F08 did not converge": {
			facts: factsOf(openBy(byResident), v1.TransportUnconfirmed, failedWith(true, Outcome{Failure: v1.CauseDidNotConverge})), desired: "Open",
			settled: "False/DidNotConverge", ready: "False/DidNotConverge", also: "Stalled", final: true,
		},
		"B06 a redundant open failed: it is confirmed open all the same": {
			facts: factsOf(openBy(byResident), v1.TransportOpen, failedWith(true, refused)), desired: "Open",
			settled: "True/Open", ready: "True/Settled", final: true,
		},
		"the connection broke before the request, and is back": {
			facts: factsOf(openBy(byResident), v1.TransportUnconfirmed, failedWith(true, Outcome{Failure: v1.CauseConnectorMissing})), desired: "Open",
			settled: "False/OpenFailed", ready: "False/OpenFailed", final: true, never: []string{"is not connected", "(Up)"},
		},
		"B13 lifecycle is not granted": {
			facts:   factsOf(closedBy(byResident), v1.TransportOpen, situationIs(noLifecycle)),
			settled: "False/NotPermitted", ready: "False/NotPermitted", final: true, says: []string{"channels.lifecycle is not granted", "with that capability granted"},
		},
		"not granted comes before an earlier failure": {
			facts: factsOf(openBy(byResident), v1.TransportUnconfirmed, situationIs(noLifecycle), failedWith(true, refused)), desired: "Open",
			settled: "False/NotPermitted", ready: "False/NotPermitted", final: true,
		},
		"G17 confirmed closed before lifecycle was lost": {
			facts: factsOf(closedBy(byResident), v1.TransportClosed, situationIs(noLifecycle)), settled: "True/Closed", ready: "True/Settled", final: true,
		},
		"the connector reconnects": {
			facts: factsOf(openBy(byResident), v1.TransportUnconfirmed, down(v1.ConnectorReconnecting), lastOpen), desired: "Open",
			settled: "Unknown/ConnectorDown", ready: "Unknown/ConnectorDown", says: []string{"discord", "not connected (Reconnecting)", "what was last confirmed"},
		},
		"the connector connects for the first time": {
			facts: factsOf(openBy(byResident), "", down(v1.ConnectorConnecting)), desired: "Open", registered: "Unknown/NotRegistered",
			settled: "Unknown/ConnectorDown", ready: "Unknown/ConnectorDown", says: []string{"(Connecting)"}, never: []string{"last confirmed"},
		},
		"the connector has no session": {
			facts: factsOf(none, "", down("")), registered: "Unknown/NotRegistered",
			settled: "Unknown/ConnectorDown", ready: "Unknown/ConnectorDown", says: []string{"(Gone)"},
		},
		"there is no Connector": {
			facts: factsOf(openBy(byResident), "", gone), desired: "Open", registered: "False/ConnectorGone",
			settled: "Unknown/ConnectorGone", ready: "Unknown/ConnectorGone", says: []string{"no Connector discord"},
		},
		"the connector does not name the channel yet": {
			facts: factsOf(openBy(byResident), "", missingFor(4*time.Minute)), desired: "Open", registered: "False/NotRegistered",
			settled: "Unknown/RegistrationGone", ready: "False/NotRegistered", recheck: time.Minute, says: []string{"spec.channelID"},
		},
		"the connector has not named the channel for five minutes": {
			facts: factsOf(openBy(byResident), "", missingFor(5*time.Minute)), desired: "Open", registered: "False/NotRegistered",
			settled: "Unknown/RegistrationGone", ready: "False/NotRegistered", also: "Stalled",
		},
		"A17 known by a push only": {
			facts: factsOf(none, v1.TransportUnconfirmed, pushKnown), registered: "False/PushKnown",
			settled: "Unknown/Unconfirmed", ready: "Unknown/Unconfirmed",
		},
		"G03 known by a push only, confirmed closed": {
			facts: factsOf(closedBy(byResident), v1.TransportClosed, pushKnown), registered: "False/PushKnown",
			settled: "True/Closed", ready: "False/PushKnown", final: true,
		},
		"an older Channel stands for it": {
			facts: factsOf(openBy(byResident), v1.TransportOpen, duplicate), desired: "Open",
			settled: "True/Open", ready: "False/DuplicateChannel", also: "Stalled", final: true, says: []string{"Channel elder"},
		},
		"its Connector does not serve": {
			facts: factsOf(openBy(byResident), v1.TransportOpen, duplicateServer), desired: "Open",
			registered: "Unknown/NotRegistered", settled: "Unknown/ConnectorDown", ready: "False/DuplicateServerID", also: "Stalled", final: true, says: []string{"Connector discord does not serve"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.desired == "" {
				tc.desired = "Closed"
			}
			if tc.registered == "" {
				tc.registered = "True/Declared"
			}
			want := []string{"Registered=" + tc.registered, "Settled=" + tc.settled, "Ready=" + tc.ready}
			if status, reason, _ := strings.Cut(tc.ready, "/"); status != "True" {
				if tc.also == "" {
					tc.also = "Reconciling"
				}
				want = append(want, tc.also+"=True/"+reason)
			}
			got := ReportChannel(tc.facts)
			same(t, want, briefs(got.Conditions))
			same(t, tc.desired, got.Desired)
			same(t, tc.final, got.Final)
			same(t, tc.recheck, got.Recheck)
			said{says: tc.says, never: tc.never}.check(t, Answer{Message: message(got, v1.ConditionReady)})
		})
	}
}

func TestReportedTransportAndRegistration(t *testing.T) {
	for _, transport := range transports {
		for _, last := range transports {
			for _, connector := range connectorStates {
				f := factsOf(openBy(byResident), transport, situationIs(connectorIs(connector)))
				f.LastConfirmed = last
				want := transport
				if connector != v1.ConnectorUp {
					want = last // nobody can vouch for anything now, so what was written stays
				}
				if want == "" {
					want = v1.TransportUnconfirmed
				}
				same(t, want, ReportChannel(f).Transport)
			}
		}
	}
	declared := factsOf(none, "")
	same(t, v1.RegistrationDeclared, ReportChannel(declared).Registration)
	declared.PushKnown = true
	same(t, v1.RegistrationPushKnown, ReportChannel(declared).Registration)
	same(t, v1.RegistrationNotRegistered, ReportChannel(factsOf(none, "", missingFor(0))).Registration)
}

// reasonsOf are the reasons that the API has for each condition.
func reasonsOf() map[string][]string {
	settled := []string{
		v1.ReasonOpen, v1.ReasonClosed, v1.ReasonTunedOut, v1.ReasonWorkOutstanding, v1.ReasonUnconfirmed, v1.ReasonOpenFailed,
		v1.ReasonCloseFailed, v1.ReasonSubstituted, v1.ReasonDidNotConverge, v1.ReasonNotPermitted, v1.ReasonConnectorDown,
		v1.ReasonConnectorGone, v1.ReasonRegistrationGone, v1.ReasonSuspended,
	}
	ready := slices.Concat(settled[3:12], []string{
		v1.ReasonSuspended,
		v1.ReasonSettled, v1.ReasonPushKnown, v1.ReasonNotRegistered, v1.ReasonDuplicateChannel, v1.ReasonDuplicateServerID,
	})
	return map[string][]string{
		v1.ConditionRegistered: {v1.ReasonDeclared, v1.ReasonPushKnown, v1.ReasonNotRegistered, v1.ReasonConnectorGone},
		v1.ConditionSettled:    settled,
		v1.ConditionReady:      ready,
		v1.ConditionHeld:       {v1.ReasonHold},
	}
}
