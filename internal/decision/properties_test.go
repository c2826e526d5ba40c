package decision

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	v1 "mcpl.dev/operator/api/v1alpha1"
)

func anyRecord(t *rapid.T) Record {
	r := rapid.SampledFrom(everyRecord()).Draw(t, "record")
	if r.Revision > 0 {
		r.Revision = rapid.Int64Range(1, 1<<40).Draw(t, "revision")
	}
	return r
}

func anySituation(t *rapid.T) Situation {
	return Situation{
		Record:      anyRecord(t),
		Transport:   rapid.SampledFrom(transports).Draw(t, "transport"),
		Connector:   rapid.SampledFrom(connectorStates).Draw(t, "connector"),
		Registered:  rapid.Bool().Draw(t, "registered"),
		Lifecycle:   rapid.Bool().Draw(t, "lifecycle"),
		Outstanding: rapid.Bool().Draw(t, "outstanding"),
		Foreign:     rapid.Bool().Draw(t, "foreign"),
	}
}

func anyAnnouncement(t *rapid.T) Announcement {
	return Announcement{InitiallyOpen: rapid.Bool().Draw(t, "initiallyOpen"), Admitted: rapid.Bool().Draw(t, "admitted")}
}

// request is somebody's open or close.
type request struct {
	open, history, lease bool
	by                   v1.Source
}

func anyRequest(t *rapid.T) request {
	if rapid.Bool().Draw(t, "open") {
		return request{open: true, by: v1.SourceAgentTool, history: rapid.Bool().Draw(t, "history")}
	}
	return request{by: rapid.SampledFrom(closeSources).Draw(t, "by"), lease: rapid.Bool().Draw(t, "lease")}
}

func (r request) judge(s Situation) Verdict {
	if r.open {
		return Open(s, r.history)
	}
	return Close(s, r.by, r.lease)
}

func TestPropertyMachinesYield(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anySituation(t)
		by := rapid.SampledFrom(machineSources).Draw(t, "by")
		if v := Close(s, by, false); v.Write != nil && ExplicitOpen(s.Record) {
			t.Fatalf("%s wrote %s over %s without a lease", by, v.Write, s.Record)
		}
		v := Close(s, by, rapid.Bool().Draw(t, "lease"))
		if v.Write != nil && s.Record.State == v1.StateClosed {
			t.Fatalf("%s wrote %s over %s", by, v.Write, s.Record)
		}
	})
}

func TestPropertyOnlyTheUndecidedIsLifted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		record, a := anyRecord(t), anyAnnouncement(t)
		lift, ok := Lift(record, a)
		if ok && (record.Decided() && record.Source != v1.SourceDefaultClosed) {
			t.Fatalf("%s was lifted to %s", record, lift)
		}
		if ok && (lift.State != v1.StateOpen || !a.InitiallyOpen && !a.Admitted) {
			t.Fatalf("%s was lifted to %s by %+v", record, lift, a)
		}
		if w := Register(record, a, true).Write; w != nil && !record.Undecided() {
			t.Fatalf("a registration wrote %s over %s", w, record)
		}
	})
}

func TestPropertyARefusalChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anySituation(t)
		v := anyRequest(t).judge(s)
		switch {
		case v.Refused && (v.Write != nil || v.Send || v.Success != "" || v.Cause == ""):
			t.Fatalf("a refusal that does something: %+v", v)
		case v.Send && (v.Success == "" || v.Cause != ""):
			t.Fatalf("an operation without a result, or with a cause: %+v", v)
		case !v.Send && (v.Success == "") == (v.Cause == ""):
			t.Fatalf("neither a result nor a cause, or both: %+v", v)
		case s.Foreign && !v.Refused:
			t.Fatalf("another resident's channel: %+v", v)
		}
	})
}

// TestPropertyRevisionsDecideNothing: which record it is says who overtook whom; what may be done
// depends on its state and source alone.
func TestPropertyRevisionsDecideNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, r, a := anySituation(t), anyRequest(t), anyAnnouncement(t)
		other := s
		other.Record.Revision = rapid.Int64Range(0, 1<<40).Draw(t, "other revision")
		if v, w := r.judge(s), r.judge(other); !sameVerdict(v, w) {
			t.Fatalf("%+v at revision %d, %+v at %d", v, s.Record.Revision, w, other.Record.Revision)
		}
		if l, m := Register(s.Record, a, true), Register(other.Record, a, true); !sameVerdict(Verdict{Write: l.Write}, Verdict{Write: m.Write}) {
			t.Fatalf("%+v at revision %d, %+v at %d", l, s.Record.Revision, m, other.Record.Revision)
		}
		kind := rapid.SampledFrom(kinds).Draw(t, "kind")
		if x, y := Settle(kind, v1.ResultOpened, Outcome{}, s), Settle(kind, v1.ResultOpened, Outcome{}, other); x != y {
			t.Fatalf("%+v at revision %d, %+v at %d", x, s.Record.Revision, y, other.Record.Revision)
		}
	})
}

// TestPropertyTheSameAgainWritesNothing: a request that was recorded finds nothing more to record.
func TestPropertyTheSameAgainWritesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, r := anySituation(t), anyRequest(t)
		s = after(s, r.judge(s))
		if again := r.judge(s); again.Write != nil {
			t.Fatalf("the same again writes %s over %s", again.Write, s.Record)
		}
		attempt := Write{rapid.SampledFrom(states).Draw(t, "state"), rapid.SampledFrom(vocabulary).Draw(t, "source")}
		record := anyRecord(t)
		if w, ok := MayWrite(record, attempt); ok {
			record = Record{w.State, w.Source, record.Revision + 1}
			if again, ok := MayWrite(record, attempt); ok {
				t.Fatalf("%s over %s, made of it before, writes %s", attempt, record, again)
			}
		}
	})
}

// TestPropertyADeliberateCloseHolds runs a life of a channel: once somebody has closed it on
// purpose, only the resident's own open opens it again, whatever registers, asks or tidies up.
func TestPropertyADeliberateCloseHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := directed(none, v1.TransportUnconfirmed)
		holds := func(who any, opens bool, before Record) {
			if before.State != v1.StateClosed || !Deliberate(before.Source) || opens {
				return
			}
			if s.Record.State != v1.StateClosed || !Deliberate(s.Record.Source) {
				t.Fatalf("%+v made %s of %s", who, s.Record, before)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"register": func(t *rapid.T) {
				before, a := s.Record, anyAnnouncement(t)
				s = after(s, Verdict{Write: Register(s.Record, a, s.Directs()).Write})
				holds(a, false, before)
			},
			"request": func(t *rapid.T) {
				before, r := s.Record, anyRequest(t)
				s = after(s, r.judge(s))
				holds(r, r.open, before)
			},
			"connection": func(t *rapid.T) {
				s.Transport = rapid.SampledFrom(transports).Draw(t, "transport")
				s.Lifecycle = rapid.Bool().Draw(t, "lifecycle")
			},
		})
	})
}

func TestPropertyAdmitsWhatIsListed(t *testing.T) {
	// The signs that globs and regular expressions give a meaning, and some that need none.
	signs := []rune(`*?[]\/:-^.{}()+|$ abé0комната`)
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.StringOfN(rapid.SampledFrom(signs), 1, 20, -1).Draw(t, "id")
		list := v1.Subscription{Mode: v1.SubscriptionAllowList, Allow: []string{id}}
		if !Admits(list, id, "") || !Admits(list, "another", id) {
			t.Fatalf("the id %q does not admit itself", id)
		}
		runes := []rune(id)
		from := rapid.IntRange(0, len(runes)).Draw(t, "from")
		to := rapid.IntRange(from, len(runes)).Draw(t, "to")
		list.Allow = []string{string(runes[:from]) + "*" + string(runes[to:])}
		if !Admits(list, id, "") {
			t.Fatalf("%q does not admit %q", list.Allow, id)
		}
		if other := id + "!"; to < len(runes) && !slices.Contains([]rune{'*', '?'}, runes[len(runes)-1]) && Admits(list, other, "") {
			t.Fatalf("%q admits %q", list.Allow, other)
		}
	})
}
