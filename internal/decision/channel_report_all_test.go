package decision

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "mcpl.dev/operator/api/v1alpha1"
)

// everyFacts calls f with every combination of what can be gathered of a channel, with one record
// of each kind that a report tells apart.
func everyFacts(f func(ChannelFacts)) {
	failures := []*Outcome{
		nil,
		{Failure: v1.CauseConnectorFailed, Unknown: true},
		{Failure: v1.CauseConnectorFailed, Detail: "no such channel (-32004)"},
		{Failure: v1.CauseConnectorMissing},
		{Failure: v1.CauseSubstituted},
		{Failure: v1.CauseDidNotConverge},
		{Failure: v1.CauseNotPermitted},
	}
	records := []Record{none, undecided, closedBy(byResident), openBy(v1.SourceOpenedByReply), tunedOut()}
	for _, record := range records {
		for _, transport := range transports {
			for _, connector := range connectorStates {
				for bits := range 1 << 9 {
					on := func(bit int) bool { return bits>>bit&1 == 1 }
					facts := ChannelFacts{
						Situation: Situation{
							Record: record, Transport: transport, Connector: connector,
							Registered: on(0), Lifecycle: on(1), Outstanding: on(2),
						},
						ConnectorName: "discord", ConnectorExists: on(3), PushKnown: on(4), InFlight: on(5), DuplicateServerID: on(6), FailedOpening: on(7),
						LastConfirmed: transports[bits%4],
					}
					if on(8) {
						facts.DuplicateOf = "elder"
					}
					if !possible(facts) {
						continue
					}
					for _, failure := range failures {
						facts.Failed = failure
						f(facts)
					}
					facts.Failed = nil
					for _, hand := range platformHands {
						overlaid := facts
						hand(&overlaid)
						f(overlaid)
					}
					if !facts.Registered {
						facts.MissingFor = StalledAfter
						f(facts)
					}
				}
			}
		}
	}
}

// platformHands are what the platform may have set over whatever is decided.
var platformHands = []func(*ChannelFacts){
	func(f *ChannelFacts) { f.Held, f.HoldReason = true, "incident 4711" },
	func(f *ChannelFacts) { f.Held = true },
	func(f *ChannelFacts) { f.Suspended = true },
	func(f *ChannelFacts) { f.ConnectorSuspended = true },
}

// possible leaves out what contradicts itself.
func possible(f ChannelFacts) bool {
	switch {
	case f.PushKnown && !f.Registered, f.InFlight && !f.Outstanding:
		return false
	case !f.ConnectorExists:
		return f.Connector == "" && !f.Registered && !f.Lifecycle && !f.Outstanding && !f.DuplicateServerID
	}
	return true
}

// TestEveryReport holds what must be so of a status whatever the facts are.
func TestEveryReport(t *testing.T) {
	reasons := reasonsOf()
	every := slices.Concat(reasons[v1.ConditionReady], reasons[v1.ConditionSettled], reasons[v1.ConditionRegistered])
	reasons[v1.ConditionReconciling], reasons[v1.ConditionStalled] = every, every

	count, met := 0, map[string]bool{}
	everyFacts(func(f ChannelFacts) {
		if t.Failed() {
			return // the first is enough
		}
		count++
		report := ReportChannel(f)
		byType := map[string]metav1.Condition{}
		for _, c := range report.Conditions {
			if _, twice := byType[c.Type]; twice {
				t.Errorf("%s stands twice for %+v", c.Type, f)
			}
			byType[c.Type] = c
			met[c.Type+"/"+c.Reason] = true
			if !slices.Contains(reasons[c.Type], c.Reason) {
				t.Errorf("no such reason: %s, for %+v", brief(c), f)
			}
			if fault := wellFormed(c.Message); fault != "" {
				t.Errorf("%s %s: %q", brief(c), fault, c.Message)
			}
			if fault := untrue(c.Message, f.Situation); fault != "" {
				t.Errorf("%s %s: %q for %+v", brief(c), fault, c.Message, f)
			}
			if !c.LastTransitionTime.IsZero() || c.ObservedGeneration != 0 {
				t.Errorf("%s has a time or a generation", brief(c))
			}
		}
		checkReady(t, f, byType)
		checkTimes(t, f, report, byType)
		if again := ReportChannel(f); !slices.Equal(report.Conditions, again.Conditions) {
			t.Errorf("not the same twice:\n%s", cmp.Diff(report, again))
		}
	})
	if count < 50_000 {
		t.Errorf("only %d combinations were looked at", count)
	}
	for _, kind := range []string{v1.ConditionRegistered, v1.ConditionSettled, v1.ConditionHeld, v1.ConditionReady} {
		for _, reason := range reasons[kind] {
			if !met[kind+"/"+reason] {
				t.Errorf("no report has the reason %s of %s", reason, kind)
			}
		}
	}
}

// checkReady holds Ready and the kstatus conditions against the other two.
func checkReady(t *testing.T, f ChannelFacts, conditions map[string]metav1.Condition) {
	t.Helper()
	ready, settled, registered := conditions[v1.ConditionReady], conditions[v1.ConditionSettled], conditions[v1.ConditionRegistered]
	if ready.Type == "" || settled.Type == "" || registered.Type == "" {
		t.Errorf("Ready, Settled and Registered must always be there: %v for %+v", conditions, f)
	}
	reconciling, isReconciling := conditions[v1.ConditionReconciling]
	stalled, isStalled := conditions[v1.ConditionStalled]
	if isReconciling && reconciling.Status != metav1.ConditionTrue || isStalled && stalled.Status != metav1.ConditionTrue {
		t.Errorf("Reconciling and Stalled are there only while they are true: %v", conditions)
	}
	if isReconciling && isStalled {
		t.Errorf("both Reconciling and Stalled for %+v", f)
	}
	if (ready.Status == metav1.ConditionTrue) == (isReconciling || isStalled) {
		t.Errorf("Ready=%s with Reconciling %v, Stalled %v for %+v", ready.Status, isReconciling, isStalled, f)
	}
	confirmed := v1.TransportClosed
	if !f.Held && (f.Record.State == v1.StateOpen || f.Record.State == v1.StateTunedOut) {
		confirmed = v1.TransportOpen
	}
	suspended := f.Suspended || f.ConnectorSuspended
	certain := !suspended && !f.DuplicateServerID && f.ConnectorExists && f.Connector == v1.ConnectorUp && f.Registered && !f.Outstanding && f.Transport == confirmed
	if (settled.Status == metav1.ConditionTrue) != certain {
		t.Errorf("%s for %+v", brief(settled), f)
	}
	wantReady := certain && !f.PushKnown && f.DuplicateOf == "" && !f.DuplicateServerID
	if (ready.Status == metav1.ConditionTrue) != wantReady {
		t.Errorf("%s for %+v", brief(ready), f)
	}
	missing := f.ConnectorExists && f.Connector == v1.ConnectorUp && !f.Registered && f.MissingFor >= 5*time.Minute
	if want := missing || f.DuplicateOf != "" || f.DuplicateServerID || settled.Reason == v1.ReasonDidNotConverge; want != isStalled {
		t.Errorf("Stalled is %v for %+v", isStalled, f)
	}
}

// checkTimes holds what a report says of the passing of time.
func checkTimes(t *testing.T, f ChannelFacts, report Report, conditions map[string]metav1.Condition) {
	t.Helper()
	waits := f.Connector == v1.ConnectorUp && !f.Registered && conditions[v1.ConditionReconciling].Type != ""
	if waits != (report.Recheck > 0) || report.Recheck > StalledAfter {
		t.Errorf("a recheck after %s for %+v", report.Recheck, f)
	}
	if f.Registered {
		return // nothing in the facts moves with the time
	}
	f.MissingFor += 3 * time.Minute
	for _, later := range ReportChannel(f).Conditions {
		if now, ok := conditions[later.Type]; ok && now.Message != later.Message {
			t.Errorf("the message of %s changes by the passing of time: %q, then %q", now.Type, now.Message, later.Message)
		}
	}
}
