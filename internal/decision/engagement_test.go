package decision

import (
	"slices"
	"testing"

	v1 "mcpl.dev/operator/api/v1alpha1"
)

func TestSpeechOpens(t *testing.T) {
	base := Situation{Connector: v1.ConnectorUp, Lifecycle: true, Registered: true, Transport: v1.TransportClosed}
	record := func(state v1.State, source v1.Source) func(*Situation) {
		return func(s *Situation) { s.Record = Record{State: state, Source: source, Revision: 1} }
	}
	cases := map[string]struct {
		edit []func(*Situation)
		want bool
	}{
		"D01 nobody decided":           {nil, true},
		"D01 closed by default":        {[]func(*Situation){record(v1.StateClosed, v1.SourceDefaultClosed)}, true},
		"D03 the resident closed it":   {[]func(*Situation){record(v1.StateClosed, v1.SourceAgentTool)}, false},
		"D04 the resident declined":    {[]func(*Situation){record(v1.StateClosed, v1.SourceInvitationDeclined)}, false},
		"D05 a module closed it":       {[]func(*Situation){record(v1.StateClosed, v1.SourceModuleTool)}, false},
		"D06 a machine closed it":      {[]func(*Situation){record(v1.StateClosed, v1.SourceSubscriptionGC)}, true},
		"D06 housekeeping closed it":   {[]func(*Situation){record(v1.StateClosed, v1.SourceHousekeeping)}, true},
		"D07 imported":                 {[]func(*Situation){record(v1.StateClosed, v1.SourceLegacyRecipeMigration)}, true},
		"I02 imported, source unknown": {[]func(*Situation){record(v1.StateClosed, v1.SourceUnknown)}, true},
		"D08 decided open, not open":   {[]func(*Situation){record(v1.StateOpen, v1.SourceAgentTool)}, true},
		"decided open, open":           {[]func(*Situation){record(v1.StateOpen, v1.SourceAgentTool), func(s *Situation) { s.Transport = v1.TransportOpen }}, false},
		"D10 tuned out, unconfirmed":   {[]func(*Situation){record(v1.StateTunedOut, v1.SourceAgentTool), func(s *Situation) { s.Transport = v1.TransportUnconfirmed }}, true},
		"D11 tuned out, open":          {[]func(*Situation){record(v1.StateTunedOut, v1.SourceAgentTool), func(s *Situation) { s.Transport = v1.TransportOpen }}, false},
		"D12 the host does not direct": {[]func(*Situation){func(s *Situation) { s.Lifecycle = false }}, false},
		"E13 the connector is gone":    {[]func(*Situation){func(s *Situation) { s.Connector = v1.ConnectorGone }}, false},
		"held":                         {[]func(*Situation){func(s *Situation) { s.Held = true }}, false},
		"held, decided open":           {[]func(*Situation){record(v1.StateOpen, v1.SourceAgentTool), func(s *Situation) { s.Held = true }}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := base
			for _, edit := range c.edit {
				edit(&s)
			}
			if got := SpeechOpens(s); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestReplaced(t *testing.T) {
	cases := map[string]struct {
		before Record
		want   Write
	}{
		"E02 no record":         {Record{}, Write{v1.StateClosed, v1.SourceDefaultClosed}},
		"E01 closed by default": {Record{State: v1.StateClosed, Source: v1.SourceDefaultClosed}, Write{v1.StateClosed, v1.SourceDefaultClosed}},
		"E03 a machine's close": {Record{State: v1.StateClosed, Source: v1.SourceSubscriptionGC, Revision: 4}, Write{v1.StateClosed, v1.SourceSubscriptionGC}},
		"an import, as it was":  {Record{State: v1.StateClosed, Source: v1.SourceUnknown, Revision: 1}, Write{v1.StateClosed, v1.SourceUnknown}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Replaced(c.before); got != c.want {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestNotices(t *testing.T) {
	failedOpening := Engagement{Opening: true, Directed: true, Failure: v1.CauseConnectorFailed}
	selected := func(s Selection, cause v1.Cause) Engagement {
		return Engagement{Opening: true, Directed: true, Failure: cause, Selected: s}
	}
	able, ended, away := Author{MayOpen: true, MayClose: true}, Author{Ended: true}, Author{}
	cases := map[string]struct {
		end    Engagement
		author Author
		want   []Notice
	}{
		"D01 opened":                             {Engagement{Opening: true, Opened: true, Directed: true}, able, []Notice{{Opened: true}}},
		"D09 a reconfirmation says nothing":      {Engagement{Directed: true}, able, nil},
		"E01 put back":                           {failedOpening, able, []Notice{{NamesOpen: true}}},
		"E01 put back, a fork may not open":      {failedOpening, away, []Notice{{}}},
		"E04 overtaken":                          {selected("", v1.CauseOvertaken), able, nil},
		"E06 the connector selected it again":    {selected(SelectedByConnector, v1.CauseSelectedAgain), able, []Notice{{Selected: SelectedByConnector, NamesClose: true}}},
		"E07 the policy selected it again":       {selected(SelectedByPolicy, v1.CauseSelectedAgain), able, []Notice{{Selected: SelectedByPolicy, NamesClose: true}}},
		"E09 the put-back could not be stored":   {selected(Unrecorded, v1.CauseStaysSelected), able, []Notice{{Selected: Unrecorded, NamesClose: true, NamesOpen: true}}},
		"E11 a failed reconfirmation":            {Engagement{Directed: true, Failure: v1.CauseConnectorFailed}, able, nil},
		"E13 the host did not direct":            {Engagement{Opening: true, Failure: v1.CauseConnectorFailed}, able, nil},
		"E17 the author ended, channel selected": {selected(SelectedByPolicy, v1.CauseSelectedAgain), ended, []Notice{{ToPrimary: true, Selected: SelectedByPolicy, NamesClose: true}}},
		"E17 the author ended, channel closed":   {failedOpening, ended, nil},
		"E18 a fork away from home, selected":    {selected(Unrecorded, v1.CauseStaysSelected), away, []Notice{{Selected: Unrecorded}, {ToPrimary: true, Selected: Unrecorded, NamesClose: true}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Notices(c.end, c.author, true); !slices.Equal(got, c.want) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
	t.Run("E18 a primary that may not close is not told", func(t *testing.T) {
		if got := Notices(selected(Unrecorded, v1.CauseStaysSelected), away, false); len(got) != 1 {
			t.Errorf("got %+v", got)
		}
	})
}

func TestWaited(t *testing.T) {
	failed := Outcome{Failure: v1.CauseDidNotConverge}
	open := Record{State: v1.StateOpen, Source: v1.SourceAgentTool}
	cases := map[string]struct {
		now     Situation
		awaited Outcome
		want    v1.Cause
	}{
		"F04 the registration went":         {Situation{Record: open}, Outcome{}, v1.CauseRegistrationGone},
		"open":                              {Situation{Record: open, Registered: true, Transport: v1.TransportOpen}, Outcome{}, ""},
		"F08 decided open, the work failed": {Situation{Record: open, Registered: true, Transport: v1.TransportUnconfirmed}, failed, v1.CauseDidNotConverge},
		"decided open, not confirmed, nothing failed": {Situation{Record: open, Registered: true, Transport: v1.TransportClosed}, Outcome{}, v1.CauseNotConfirmedOpen},
		"D14 closed meanwhile":                        {Situation{Record: Record{State: v1.StateClosed}, Registered: true, Transport: v1.TransportClosed}, failed, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Waited(c.now, c.awaited); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// What the tools will say is one table away, for every result that is no error there.
func TestResultWords(t *testing.T) {
	for result, want := range map[v1.Result]string{
		v1.ResultRemainedClosed: "remained closed", v1.ResultDeclined: "declined", v1.ResultReplaced: "replaced",
		v1.ResultAlreadyOpen: "already open", v1.ResultSuperseded: "", v1.ResultFailed: "", v1.ResultRefused: "",
	} {
		if got := ResultWord(result); got != want {
			t.Errorf("%s: %q, want %q", result, got, want)
		}
	}
}
