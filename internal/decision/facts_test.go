package decision

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "mcpl.dev/operator/api/v1alpha1"
)

// The whole vocabulary, written down once more: a word that is added to the API and not here, or
// the other way round, shows in TestEverySourceHasItsRow.
var (
	states     = []v1.State{v1.StateOpen, v1.StateClosed, v1.StateTunedOut}
	vocabulary = []v1.Source{
		v1.SourceAgentTool, v1.SourceInvitationDeclined, v1.SourceModuleTool, v1.SourceSubscriptionGC,
		v1.SourceHousekeeping, v1.SourceDefaultClosed, v1.SourceServerBootstrap, v1.SourceSubscriptionPolicy,
		v1.SourceOpenedByDelivery, v1.SourceOpenedByReply, v1.SourceSubconscious, v1.SourceDuration,
		v1.SourceTuneOutMaxWakes, v1.SourceLegacyRecipeMigration, v1.SourceUnknown,
	}
	deliberateSources = []v1.Source{v1.SourceAgentTool, v1.SourceInvitationDeclined, v1.SourceModuleTool}
	machineSources    = []v1.Source{v1.SourceSubscriptionGC, v1.SourceHousekeeping}
	closeSources      = []v1.Source{v1.SourceAgentTool, v1.SourceModuleTool, v1.SourceSubscriptionGC, v1.SourceHousekeeping}
	transports        = []v1.TransportState{"", v1.TransportUnconfirmed, v1.TransportOpen, v1.TransportClosed}
	connectorStates   = []v1.ConnectorState{"", v1.ConnectorConnecting, v1.ConnectorUp, v1.ConnectorReconnecting, v1.ConnectorGone}
	kinds             = []v1.DecisionKind{v1.DecisionOpen, v1.DecisionClose}
)

// none is no record; undecided is what a channel reads as once a pass found that nobody decided.
var (
	none      = Record{}
	undecided = Record{State: v1.StateClosed, Source: v1.SourceDefaultClosed}
)

func openBy(s v1.Source) Record   { return Record{State: v1.StateOpen, Source: s, Revision: 7} }
func closedBy(s v1.Source) Record { return Record{State: v1.StateClosed, Source: s, Revision: 7} }
func tunedOut() Record {
	return Record{State: v1.StateTunedOut, Source: v1.SourceAgentTool, Revision: 7}
}

// everyRecord is no record, the undecided one that is not stored, and every state by every source.
func everyRecord() []Record {
	records := []Record{none, undecided}
	for _, state := range states {
		for _, source := range vocabulary {
			records = append(records, Record{State: state, Source: source, Revision: 7})
		}
	}
	return records
}

// directed is a channel that is registered on a connector that is up and may be opened and closed.
func directed(r Record, t v1.TransportState, but ...func(*Situation)) Situation {
	s := Situation{Record: r, Transport: t, Registered: true, Connector: v1.ConnectorUp, Lifecycle: true}
	for _, change := range but {
		change(&s)
	}
	return s
}

func busy(s *Situation)         { s.Outstanding = true }
func foreign(s *Situation)      { s.Foreign = true }
func noLifecycle(s *Situation)  { s.Lifecycle = false }
func unregistered(s *Situation) { s.Registered = false }
func connectorIs(state v1.ConnectorState) func(*Situation) {
	return func(s *Situation) { s.Connector = state }
}

// everySituation calls f with every combination of what a situation can be.
func everySituation(f func(Situation)) {
	flags := []bool{false, true}
	for _, record := range everyRecord() {
		for _, transport := range transports {
			for _, connector := range connectorStates {
				for i := range 16 {
					f(Situation{
						Record: record, Transport: transport, Connector: connector,
						Registered: flags[i&1], Lifecycle: flags[i>>1&1], Outstanding: flags[i>>2&1], Foreign: flags[i>>3&1],
					})
				}
			}
		}
	}
}

// everyRequest calls f with every request that can be made in a situation, and its verdict.
func everyRequest(s Situation, f func(v1.DecisionKind, v1.Source, Verdict)) {
	for _, history := range []bool{false, true} {
		f(v1.DecisionOpen, v1.SourceAgentTool, Open(s, history))
	}
	for _, source := range closeSources {
		for _, lease := range []bool{false, true} {
			f(v1.DecisionClose, source, Close(s, source, lease))
		}
	}
}

// after is the situation once a verdict's record has been appended.
func after(s Situation, v Verdict) Situation {
	if v.Write != nil {
		s.Record = Record{State: v.Write.State, Source: v.Write.Source, Revision: s.Record.Revision + 1}
	}
	return s
}

func write(state v1.State, source v1.Source) *Write { return &Write{state, source} }

func same(t *testing.T, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("not what was wanted (-want +got):\n%s", diff)
	}
}
