package decision

import (
	"slices"
	"testing"

	v1 "mcpl.dev/operator/api/v1alpha1"
)

const (
	byResident = v1.SourceAgentTool
	byModule   = v1.SourceModuleTool
	gc         = v1.SourceSubscriptionGC
	keeper     = v1.SourceHousekeeping
)

func TestClose(t *testing.T) {
	closing := func(by v1.Source) Verdict {
		return Verdict{Write: write(v1.StateClosed, by), Send: true, Success: v1.ResultClosed}
	}
	recordOnly := func(by v1.Source) Verdict {
		return Verdict{Write: write(v1.StateClosed, by), Success: v1.ResultAlreadyClosed}
	}
	explicitOpen := Verdict{Refused: true, Cause: v1.CauseExplicitOpen}
	already := Verdict{Success: v1.ResultAlreadyClosed}
	sendOnly := Verdict{Send: true, Success: v1.ResultClosed}

	cases := map[string]struct {
		now   Situation
		by    v1.Source
		lease bool
		want  Verdict
	}{
		"another resident's channel": {
			now: directed(openBy(byResident), v1.TransportOpen, foreign), by: byResident,
			want: Verdict{Refused: true, Cause: v1.CauseNotItsResident},
		},
		"another resident's channel, already closed": {
			now: directed(closedBy(byResident), v1.TransportClosed, foreign), by: byResident,
			want: Verdict{Refused: true, Cause: v1.CauseNotItsResident},
		},

		"the resident closes its open":             {now: directed(openBy(byResident), v1.TransportOpen), by: byResident, want: closing(byResident)},
		"the resident closes another's open":       {now: directed(openBy(v1.SourceSubscriptionPolicy), v1.TransportOpen), by: byResident, want: closing(byResident)},
		"the resident closes what is tuned out":    {now: directed(tunedOut(), v1.TransportOpen), by: byResident, want: closing(byResident)},
		"no record":                                {now: directed(none, v1.TransportUnconfirmed), by: byResident, want: closing(byResident)},
		"B08 an open is in flight":                 {now: directed(openBy(byResident), v1.TransportClosed, busy), by: byResident, want: closing(byResident)},
		"B09 default-closed, confirmed, idle":      {now: directed(undecided, v1.TransportClosed), by: byResident, want: recordOnly(byResident)},
		"B10 default-closed, its close is pending": {now: directed(undecided, v1.TransportUnconfirmed, busy), by: byResident, want: closing(byResident)},
		"B10 confirmed closed, but work is outstanding": {
			now: directed(closedBy(byResident), v1.TransportClosed, busy), by: byResident, want: sendOnly},
		"B11 the last close failed, it is still open": {
			now: directed(closedBy(byResident), v1.TransportOpen), by: byResident, want: sendOnly},
		"B12 the channel was retargeted under a close": {
			now: directed(closedBy(byResident), v1.TransportUnconfirmed), by: byResident, want: sendOnly},
		"B12 the third close, once confirmed": {
			now: directed(closedBy(byResident), v1.TransportClosed), by: byResident, want: already},
		"over a decline": {
			now: directed(closedBy(v1.SourceInvitationDeclined), v1.TransportClosed), by: byResident, want: recordOnly(byResident)},
		"over a machine's close": {
			now: directed(closedBy(gc), v1.TransportClosed), by: byResident, want: recordOnly(byResident)},
		"over an imported close": {
			now: directed(closedBy(v1.SourceLegacyRecipeMigration), v1.TransportClosed), by: byResident, want: recordOnly(byResident)},
		"B13 lifecycle is not granted": {
			now: directed(openBy(byResident), v1.TransportOpen, noLifecycle), by: byResident,
			want: Verdict{Write: write(v1.StateClosed, byResident), Cause: v1.CauseNotPermitted}},
		"G17 confirmed closed, then lifecycle was lost": {
			now: directed(closedBy(byResident), v1.TransportClosed, noLifecycle), by: byResident, want: already},
		"the connector is gone": {
			now: directed(openBy(byResident), v1.TransportUnconfirmed, connectorIs(v1.ConnectorGone)), by: byResident,
			want: Verdict{Write: write(v1.StateClosed, byResident), Cause: v1.CauseConnectorMissing}},
		"the connector connects for the first time": {
			now: directed(closedBy(byResident), v1.TransportUnconfirmed, connectorIs(v1.ConnectorConnecting)), by: byResident,
			want: Verdict{Cause: v1.CauseConnectorMissing}},
		"the channel is not registered": {
			now: directed(openBy(byResident), v1.TransportUnconfirmed, unregistered), by: byResident,
			want: Verdict{Write: write(v1.StateClosed, byResident), Cause: v1.CauseRegistrationGone}},

		"C01 an explicit open, no lease":           {now: directed(openBy(byResident), v1.TransportOpen), by: gc, want: explicitOpen},
		"C01 by housekeeping":                      {now: directed(openBy(byResident), v1.TransportOpen), by: keeper, want: explicitOpen},
		"C01 refused even where nobody is there":   {now: directed(openBy(byResident), v1.TransportUnconfirmed, connectorIs(v1.ConnectorGone)), by: gc, want: explicitOpen},
		"C02 an explicit open, with lease":         {now: directed(openBy(byResident), v1.TransportOpen), by: gc, lease: true, want: closing(gc)},
		"C03 an incidental open":                   {now: directed(openBy(v1.SourceOpenedByDelivery), v1.TransportOpen), by: gc, want: closing(gc)},
		"I02 an open of unknown source":            {now: directed(openBy(v1.SourceUnknown), v1.TransportOpen), by: gc, want: closing(gc)},
		"after a tune-out ended by itself":         {now: directed(openBy(v1.SourceDuration), v1.TransportOpen), by: keeper, want: closing(keeper)},
		"C04 tuned out, no lease":                  {now: directed(tunedOut(), v1.TransportOpen), by: gc, want: explicitOpen},
		"tuned out, with lease":                    {now: directed(tunedOut(), v1.TransportOpen), by: gc, lease: true, want: closing(gc)},
		"C11 the resident's close, confirmed":      {now: directed(closedBy(byResident), v1.TransportClosed), by: gc, want: already},
		"C11 the resident's close, unconfirmed":    {now: directed(closedBy(byResident), v1.TransportUnconfirmed), by: gc, want: sendOnly},
		"C11 with lease, too":                      {now: directed(closedBy(byResident), v1.TransportClosed), by: gc, lease: true, want: already},
		"a machine's close over another machine's": {now: directed(closedBy(keeper), v1.TransportClosed), by: gc, want: already},
		"a machine's close over default-closed":    {now: directed(undecided, v1.TransportClosed), by: gc, want: already},
		"C12 a machine's close, no record": {
			now: directed(none, v1.TransportUnconfirmed), by: gc,
			want: Verdict{Write: write(v1.StateClosed, v1.SourceDefaultClosed), Send: true, Success: v1.ResultClosed}},
		"C12 the same where no lifecycle is granted": {
			now: directed(none, v1.TransportUnconfirmed, noLifecycle), by: gc,
			want: Verdict{Write: write(v1.StateClosed, v1.SourceDefaultClosed), Cause: v1.CauseNotPermitted}},

		"C09 a module's close":                        {now: directed(openBy(v1.SourceServerBootstrap), v1.TransportOpen), by: byModule, want: closing(byModule)},
		"C10 a module's close over the resident's":    {now: directed(closedBy(byResident), v1.TransportClosed), by: byModule, want: recordOnly(byModule)},
		"C10 the resident's close over a module's":    {now: directed(closedBy(byModule), v1.TransportClosed), by: byResident, want: recordOnly(byResident)},
		"C10 the same close again":                    {now: directed(closedBy(byModule), v1.TransportClosed), by: byModule, want: already},
		"C14 a module's close of an explicit open":    {now: directed(openBy(byResident), v1.TransportOpen), by: byModule, want: closing(byModule)},
		"C14 a module's close of a tuned-out channel": {now: directed(tunedOut(), v1.TransportOpen), by: byModule, want: closing(byModule)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			same(t, tc.want, Close(tc.now, tc.by, tc.lease))
		})
	}
}

// TestCloseEverything restates §5.6 over every situation, row by row.
func TestCloseEverything(t *testing.T) {
	everySituation(func(s Situation) {
		for _, by := range closeSources {
			for _, lease := range []bool{false, true} {
				machine := by == gc || by == keeper
				explicit := s.Record == openBy(byResident) || s.Record == tunedOut()
				decidedClosed := s.Record.State == v1.StateClosed
				var want Verdict
				switch {
				case s.Foreign:
					want = Verdict{Refused: true, Cause: v1.CauseNotItsResident}
				case machine && explicit && !lease:
					want = Verdict{Refused: true, Cause: v1.CauseExplicitOpen}
				case decidedClosed && s.Transport == v1.TransportClosed && !s.Outstanding:
					want = Verdict{Success: v1.ResultAlreadyClosed}
				case s.Connector != v1.ConnectorUp:
					want = Verdict{Cause: v1.CauseConnectorMissing}
				case !s.Lifecycle:
					want = Verdict{Cause: v1.CauseNotPermitted}
				case !s.Registered:
					want = Verdict{Cause: v1.CauseRegistrationGone}
				default:
					want = Verdict{Send: true, Success: v1.ResultClosed}
				}
				switch {
				case want.Refused:
				case machine && s.Record.State == "":
					want.Write = write(v1.StateClosed, v1.SourceDefaultClosed)
				case !decidedClosed, !machine && s.Record.Source != by:
					want.Write = write(v1.StateClosed, by)
				}
				if got := Close(s, by, lease); !sameVerdict(want, got) {
					t.Errorf("Close(%+v, %s, %v) = %+v, want %+v", s, by, lease, got, want)
				}
			}
		}
	})
}

// TestCloseAfterClose walks through scenarios that are made of several requests.
func TestCloseAfterClose(t *testing.T) {
	type step struct {
		open  bool
		by    v1.Source
		wants string // the record afterwards, or the refusal
	}
	cases := map[string]struct {
		from  Record
		steps []step
	}{
		"C10 module, resident, and the resident again": {
			from: closedBy(byResident),
			steps: []step{
				{by: byModule, wants: "Closed/ModuleTool@8"}, {by: byResident, wants: "Closed/AgentTool@9"}, {by: byResident, wants: "Closed/AgentTool@9"},
			},
		},
		"C12 a machine closes what nobody decided: the policy may lift it later": {
			steps: []step{{by: gc, wants: "Closed/DefaultClosed@1"}, {by: keeper, wants: "Closed/DefaultClosed@1"}},
		},
		"C13 an incidental open that the resident made its own": {
			from: openBy(v1.SourceOpenedByReply),
			steps: []step{
				{open: true, wants: "Open/AgentTool@8"}, {by: gc, wants: "ExplicitOpen"}, {by: byModule, wants: "Closed/ModuleTool@9"},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			now := directed(tc.from, v1.TransportClosed)
			var got, want []string
			for _, step := range tc.steps {
				v := Close(now, step.by, false)
				if step.open {
					v = Open(now, false)
				}
				now = after(now, v)
				want = append(want, step.wants)
				if v.Refused {
					got = append(got, string(v.Cause))
				} else {
					got = append(got, now.Record.String())
				}
			}
			same(t, want, got)
			if lift, ok := Lift(now.Record, Announcement{Admitted: true}); ok != slices.Contains(want, "Closed/DefaultClosed@1") {
				t.Errorf("the policy may lift %s: %v, %v", now.Record, lift, ok)
			}
		})
	}
}
