package decision

import (
	"strings"
	"testing"

	v1 "mcpl.dev/operator/api/v1alpha1"
)

// declined is a reading after a decline that left the channel closed on record; the cases edit it.
func declined(edit ...func(*Reading)) Reading {
	r := Reading{Situation: Situation{
		Record:    Record{State: v1.StateClosed, Source: v1.SourceInvitationDeclined, Revision: 2},
		Transport: v1.TransportUnconfirmed, Registered: true, Connector: v1.ConnectorUp, Lifecycle: true,
	}}
	for _, e := range edit {
		e(&r)
	}
	return r
}

func seen(t v1.TransportState) func(*Reading) { return func(r *Reading) { r.Transport = t } }
func whileConnector(s v1.ConnectorState) func(*Reading) {
	return func(r *Reading) { r.Connector, r.Lifecycle = s, s == v1.ConnectorUp }
}
func notRegisteredNow(r *Reading) { r.Registered = false }
func withoutLifecycle(r *Reading) {
	r.Lifecycle = false
}
func pushKnown(r *Reading) { r.PushKnown = true }
func underWay(carried bool) func(*Reading) {
	return func(r *Reading) { r.Outstanding, r.CarriedOut = true, carried }
}
func closeFailed(o Outcome) func(*Reading) { return func(r *Reading) { r.Close = &o } }
func decided(s v1.State) func(*Reading) {
	return func(r *Reading) { r.Record = Record{State: s, Source: v1.SourceAgentTool, Revision: 3} }
}

func TestDeclineOutcome(t *testing.T) {
	refusal := Outcome{Failure: v1.CauseConnectorFailed, Detail: "busy (-32603)"}
	timeout := Outcome{Failure: v1.CauseConnectorFailed, Unknown: true}
	notPermitted := Outcome{Failure: v1.CauseNotPermitted}
	cases := map[string]struct {
		reading Reading
		want    v1.Result
		says    []string
		never   []string
	}{
		"G01 closed and confirmed":                        {declined(seen(v1.TransportClosed)), v1.ResultRemainedClosed, nil, []string{"channel_close", "ask"}},
		"G03 push-known, confirmed closed":                {declined(seen(v1.TransportClosed), pushKnown), v1.ResultRemainedClosed, nil, nil},
		"G07 its close failed, another confirmed it":      {declined(seen(v1.TransportClosed), closeFailed(refusal)), v1.ResultRemainedClosed, nil, []string{"busy"}},
		"G17 confirmed before the authority went":         {declined(seen(v1.TransportClosed), withoutLifecycle), v1.ResultRemainedClosed, nil, []string{"authority"}},
		"G22 a later close by somebody":                   {declined(seen(v1.TransportClosed), decided(v1.StateClosed)), v1.ResultRemainedClosed, nil, nil},
		"G04 D1 the close was not answered":               {declined(closeFailed(timeout)), v1.ResultDeclined, []string{"did not answer the close", "decide Close (channel_close)", "next registers"}, []string{"ask"}},
		"G05 D1 the authority went meanwhile":             {declined(closeFailed(notPermitted), withoutLifecycle), v1.ResultDeclined, []string{"closed sooner, ask"}, []string{"channel_close"}},
		"G06 D1 the connector went meanwhile":             {declined(closeFailed(timeout), whileConnector(v1.ConnectorGone)), v1.ResultDeclined, []string{"needed back, ask"}, []string{"channel_close"}},
		"D1 it is reconnected":                            {declined(closeFailed(timeout), whileConnector(v1.ConnectorReconnecting)), v1.ResultDeclined, []string{"registers the channel again"}, []string{"channel_close", "ask"}},
		"D1 the registration went, too":                   {declined(closeFailed(Outcome{Failure: v1.CauseRegistrationGone}), notRegisteredNow), v1.ResultDeclined, []string{"does not register"}, []string{"channel_close", "ask"}},
		"G08 D2 the registration went, Up":                {declined(notRegisteredNow), v1.ResultDeclined, []string{"does not register"}, []string{"channel_close", "ask", "reconnect"}},
		"G08 D2 the registration went, Reconnecting":      {declined(notRegisteredNow, whileConnector(v1.ConnectorReconnecting)), v1.ResultDeclined, []string{"does not register", "being reconnected"}, []string{"ask"}},
		"G08 D2 the registration went, Gone":              {declined(notRegisteredNow, whileConnector(v1.ConnectorGone)), v1.ResultDeclined, []string{"does not register", "is gone", "needed back, ask"}, nil},
		"G09 D3 no authority":                             {declined(withoutLifecycle), v1.ResultDeclined, []string{"no authority", "declining again makes no difference", "sooner, ask"}, []string{"channel_close"}},
		"G10 D4 Connecting":                               {declined(whileConnector(v1.ConnectorConnecting)), v1.ResultDeclined, []string{"being connected to", "again is not needed"}, []string{"ask", "channel_close"}},
		"G10 D4 Reconnecting":                             {declined(whileConnector(v1.ConnectorReconnecting)), v1.ResultDeclined, []string{"being reconnected"}, []string{"ask", "channel_close"}},
		"G10 D4 Gone":                                     {declined(whileConnector(v1.ConnectorGone)), v1.ResultDeclined, []string{"is gone", "needed back, ask"}, []string{"channel_close"}},
		"G11 D5 other work will apply it":                 {declined(seen(v1.TransportClosed), underWay(true)), v1.ResultDeclined, []string{"still under way applies the decline"}, []string{"channel_close", "ask"}},
		"D5 other work that is doomed":                    {declined(underWay(false)), v1.ResultDeclined, []string{"decide Close (channel_close)"}, []string{"under way"}},
		"D5 traffic showed it open":                       {declined(seen(v1.TransportOpen)), v1.ResultDeclined, []string{"not certain yet", "decide Close (channel_close)"}, nil},
		"D4 push-known says if, not when":                 {declined(pushKnown, whileConnector(v1.ConnectorReconnecting)), v1.ResultDeclined, []string{"if the connector ever registers it"}, []string{"when the connector next registers it"}},
		"G13 a later open replaced it":                    {declined(decided(v1.StateOpen)), v1.ResultReplaced, []string{"a later decision to open", "decide Close (channel_close)"}, []string{"ask"}},
		"G14 a later tune-out replaced it":                {declined(decided(v1.StateTunedOut)), v1.ResultReplaced, []string{"a later tune-out", "subconscious"}, nil},
		"G15 replaced, no authority":                      {declined(decided(v1.StateOpen), withoutLifecycle), v1.ResultReplaced, []string{"ask whoever runs the operator"}, []string{"channel_close"}},
		"G16 replaced, the registration went":             {declined(decided(v1.StateOpen), notRegisteredNow), v1.ResultReplaced, []string{"no tool can reach"}, []string{"channel_close", "ask"}},
		"G16 replaced, the registration went, Gone":       {declined(decided(v1.StateOpen), notRegisteredNow, whileConnector(v1.ConnectorGone)), v1.ResultReplaced, []string{"no tool can reach", "needed back, ask"}, []string{"channel_close"}},
		"replaced and confirmed open is no less replaced": {declined(decided(v1.StateOpen), seen(v1.TransportOpen)), v1.ResultReplaced, nil, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := DeclineOutcome(c.reading)
			if got.Result != c.want {
				t.Errorf("result %s, want %s: %s", got.Result, c.want, got.Message)
			}
			for _, s := range c.says {
				if !strings.Contains(got.Message, s) {
					t.Errorf("%q does not say %q", got.Message, s)
				}
			}
			for _, s := range c.never {
				if strings.Contains(got.Message, s) {
					t.Errorf("%q says %q", got.Message, s)
				}
			}
		})
	}
}

// Every state in which a decline can be read gives one result and one sentence, and no sentence says
// what is false in its state or advises what can't work there.
func TestDeclineSentencesAreTrue(t *testing.T) {
	results := map[v1.Result]int{}
	for r := range readings() {
		a := DeclineOutcome(r)
		results[a.Result]++
		says := func(s string) bool { return strings.Contains(a.Message, s) }
		gone := r.Connector == v1.ConnectorGone || r.Connector == ""
		directs := r.Connector == v1.ConnectorUp && r.Lifecycle
		facts := map[string]bool{ // what is said, and whether it is true in this state
			"decide Close (channel_close)":      r.Registered && (directs || r.Record.WantsOpen()),
			"is gone":                           gone,
			"being reconnected":                 r.Connector == v1.ConnectorReconnecting,
			"being connected to":                r.Connector == v1.ConnectorConnecting,
			"needed back, ask":                  gone,
			"closed sooner, ask":                r.Connector == v1.ConnectorUp && !r.Lifecycle,
			"if the channel must be closed":     r.Connector == v1.ConnectorUp && !r.Lifecycle,
			"has no authority":                  r.Connector == v1.ConnectorUp && !r.Lifecycle,
			"does not register":                 !r.Registered,
			"no tool can reach":                 !r.Registered,
			"still under way":                   r.Outstanding && r.CarriedOut,
			"not certain yet":                   r.Transport != v1.TransportClosed || r.Outstanding,
			"its close failed":                  r.Close != nil,
			"a later decision to open":          r.Record.State == v1.StateOpen,
			"a later tune-out":                  r.Record.State == v1.StateTunedOut,
			"if the connector ever registers":   r.PushKnown,
			"when the connector next registers": !r.PushKnown,
			"and the channel is closed":         r.Record.State == v1.StateClosed && r.Transport == v1.TransportClosed && r.Registered && !r.Outstanding,
		}
		for sentence, holds := range facts {
			if says(sentence) && !holds {
				t.Fatalf("%+v: %q says %q", r, a.Message, sentence)
			}
		}
		if !strings.HasSuffix(a.Message, ".") || strings.Count(a.Message, ".") != 1+strings.Count(a.Message, "channels.lifecycle")+2*strings.Count(a.Message, "spec.grant.deny") ||
			strings.Contains(a.Message, "; ;") || strings.Contains(a.Message, "  ") || a.Message[0] < 'A' || a.Message[0] > 'Z' {
			t.Fatalf("%+v: %q is not one sentence", r, a.Message)
		}
		if (a.Result == v1.ResultReplaced) != r.Record.WantsOpen() {
			t.Fatalf("%+v: %s", r, a.Result)
		}
	}
	for _, result := range []v1.Result{v1.ResultRemainedClosed, v1.ResultDeclined, v1.ResultReplaced} {
		if results[result] == 0 {
			t.Errorf("no state gives %s", result)
		}
	}
}

// readings are all states that a decline can be read in.
func readings() func(func(Reading) bool) {
	bools := []bool{false, true}
	return func(yield func(Reading) bool) {
		for _, state := range []v1.State{v1.StateClosed, v1.StateOpen, v1.StateTunedOut} {
			for _, tr := range []v1.TransportState{v1.TransportOpen, v1.TransportClosed, v1.TransportUnconfirmed} {
				for _, conn := range []v1.ConnectorState{v1.ConnectorUp, v1.ConnectorConnecting, v1.ConnectorReconnecting, v1.ConnectorGone, ""} {
					for i := range 1 << 5 {
						bit := func(n int) bool { return bools[i>>n&1] }
						for _, failure := range []*Outcome{nil, {Failure: v1.CauseConnectorFailed, Unknown: true}, {Failure: v1.CauseConnectorFailed, Detail: "no"},
							{Failure: v1.CauseConnectorMissing}, {Failure: v1.CauseNotPermitted}, {Failure: v1.CauseRegistrationGone}, {Failure: v1.CauseDidNotConverge}} {
							r := Reading{Situation: Situation{
								Record: Record{State: state, Source: v1.SourceAgentTool, Revision: 2}, Transport: tr, Connector: conn,
								Lifecycle: bit(0) && conn == v1.ConnectorUp, Registered: bit(1), Outstanding: bit(2),
							}, CarriedOut: bit(3), PushKnown: bit(4), Close: failure}
							if !yield(r) {
								return
							}
						}
					}
				}
			}
		}
	}
}

func TestDecline(t *testing.T) {
	closed := Record{State: v1.StateClosed, Source: v1.SourceInvitationDeclined, Revision: 1}
	cases := map[string]struct {
		situation Situation
		refused   v1.Cause
		writes    bool
	}{
		"G18 open":                                  {Situation{Record: Record{State: v1.StateOpen, Source: v1.SourceAgentTool}, Transport: v1.TransportOpen}, v1.CauseStillOpen, false},
		"another resident's":                        {Situation{Foreign: true}, v1.CauseNotItsResident, false},
		"decided open, not confirmed":               {Situation{Record: Record{State: v1.StateOpen, Source: v1.SourceAgentTool}, Transport: v1.TransportUnconfirmed}, "", true},
		"tuned out, not confirmed":                  {Situation{Record: Record{State: v1.StateTunedOut, Source: v1.SourceAgentTool}, Transport: v1.TransportUnconfirmed}, "", true},
		"nobody decided":                            {Situation{Transport: v1.TransportClosed}, "", true},
		"the resident closed it":                    {Situation{Record: Record{State: v1.StateClosed, Source: v1.SourceAgentTool}, Transport: v1.TransportClosed}, "", true},
		"declined already writes nothing":           {Situation{Record: closed, Transport: v1.TransportClosed}, "", false},
		"held does not keep it from being declined": {Situation{Held: true, Transport: v1.TransportClosed}, "", true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			v := Decline(c.situation)
			if v.Cause != c.refused || v.Refused != (c.refused != "") || (v.Write != nil) != c.writes {
				t.Errorf("got %+v", v)
			}
			if v.Write != nil && *v.Write != (Write{v1.StateClosed, v1.SourceInvitationDeclined}) {
				t.Errorf("writes %+v", *v.Write)
			}
		})
	}
}

func TestDeclineCloses(t *testing.T) {
	up := Situation{Record: Record{State: v1.StateClosed}, Connector: v1.ConnectorUp, Lifecycle: true, Registered: true, Transport: v1.TransportClosed}
	with := func(edit func(*Situation)) Situation { s := up; edit(&s); return s }
	cases := map[string]struct {
		now    Situation
		wanted bool
		want   bool
	}{
		"G01 certainly closed":              {up, false, false},
		"G02 unconfirmed":                   {with(func(s *Situation) { s.Transport = v1.TransportUnconfirmed }), false, true},
		"G12 traffic showed it open":        {with(func(s *Situation) { s.Transport = v1.TransportOpen }), false, true},
		"G11 other work is outstanding":     {with(func(s *Situation) { s.Outstanding = true }), false, true},
		"G19 it had been decided open":      {up, true, true},
		"G13 a later open stands":           {with(func(s *Situation) { s.Record.State, s.Transport = v1.StateOpen, v1.TransportUnconfirmed }), true, false},
		"G14 a later tune-out stands":       {with(func(s *Situation) { s.Record.State, s.Transport = v1.StateTunedOut, v1.TransportUnconfirmed }), true, false},
		"G09 the host does not direct":      {with(func(s *Situation) { s.Lifecycle, s.Transport = false, v1.TransportUnconfirmed }), true, false},
		"G10 the connector is not up":       {with(func(s *Situation) { s.Connector, s.Transport = v1.ConnectorReconnecting, v1.TransportUnconfirmed }), true, false},
		"G08 the channel is not registered": {with(func(s *Situation) { s.Registered, s.Transport = false, v1.TransportUnconfirmed }), true, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := DeclineCloses(c.now, c.wanted); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
