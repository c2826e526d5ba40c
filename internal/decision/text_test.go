package decision

import (
	"strings"
	"testing"

	v1 "mcpl.dev/operator/api/v1alpha1"
)

// wellFormed says what is wrong with the form of a message, empty where nothing is.
func wellFormed(message string) string {
	switch {
	case message == "":
		return "says nothing"
	case message != strings.TrimSpace(message), strings.Contains(message, "  "):
		return "has spaces too many"
	case !strings.HasSuffix(message, "."), strings.Contains(message, ".."):
		return "does not end with one full stop"
	case strings.Contains(message, "%!"), strings.ContainsAny(message, "\n\t"):
		return "is badly formatted"
	case message[0] < 'A' || message[0] > 'Z':
		return "does not begin with a capital letter"
	case len(message) > 1024:
		return "is too long"
	}
	return ""
}

// claim is something that a message may say about the present, and when that is so.
type claim struct {
	text  string
	holds func(Situation) bool
}

var claims = []claim{
	{"is not connected", func(s Situation) bool { return s.Connector != v1.ConnectorUp }},
	{"(Up)", func(Situation) bool { return false }},
	{"is not granted", func(s Situation) bool { return !s.Lifecycle }},
	{"does not register the channel", func(s Situation) bool { return !s.Registered }},
	{"Decided open, and", func(s Situation) bool { return s.Record.State == v1.StateOpen }},
	{"is decided open", func(s Situation) bool { return s.Record.State == v1.StateOpen }},
	{"is decided closed", func(s Situation) bool { return s.Record.State == v1.StateClosed }},
	{"Decided closed", func(s Situation) bool {
		return s.Record.State == v1.StateClosed && s.Record.Source != v1.SourceDefaultClosed
	}},
	{"Tuned out:", func(s Situation) bool { return s.Record.State == v1.StateTunedOut }},
	{"is tuned out", func(s Situation) bool { return s.Record.State == v1.StateTunedOut }},
	{"nobody has opened it", func(s Situation) bool { return s.Record.Undecided() }},
	{"nothing is decided any more", func(s Situation) bool { return s.Record.Undecided() }},
	{"A newer decision replaced", func(s Situation) bool { return !s.Record.Undecided() }},
	{"The channel is open", func(s Situation) bool { return s.Transport == v1.TransportOpen }},
	{"The channel is closed", func(s Situation) bool { return s.Transport == v1.TransportClosed }},
	{"was already open", func(s Situation) bool { return s.Transport == v1.TransportOpen }},
	{"was already closed", func(s Situation) bool { return s.Transport == v1.TransportClosed }},
	{"itself opened the channel", func(s Situation) bool { return s.Record == openBy(v1.SourceAgentTool) }},
	{"itself tuned out the channel", func(s Situation) bool { return s.Record == tunedOut() }},
	{"another resident", func(s Situation) bool { return s.Foreign }},
}

// untrue says which claim of a message is false now, empty where none is.
func untrue(message string, now Situation) string {
	for _, c := range claims {
		if strings.Contains(message, c.text) && !c.holds(now) {
			return "claims falsely that " + c.text
		}
	}
	return ""
}

// TestEveryImmediateAnswer goes through every request in every situation that is answered at once.
func TestEveryImmediateAnswer(t *testing.T) {
	everySituation(func(s Situation) {
		everyRequest(s, func(kind v1.DecisionKind, _ v1.Source, v Verdict) {
			if v.Send {
				return
			}
			now := after(s, v)
			got := AtOnce(kind, v, now)
			if fault := wellFormed(got.Message); fault != "" {
				t.Errorf("%q %s", got.Message, fault)
			}
			if fault := untrue(got.Message, now); fault != "" {
				t.Errorf("%q %s: %+v", got.Message, fault, now)
			}
			if nothing := strings.Contains(got.Message, "Nothing changed"); nothing != (got.Result == v1.ResultRefused) || (nothing && v.Write != nil) {
				t.Errorf("%q after %+v", got.Message, v)
			}
			if withdraws := strings.Contains(got.Message, "withdraws"); withdraws != (kind == v1.DecisionOpen && got.Result == v1.ResultFailed && now.Transport != v1.TransportOpen) {
				t.Errorf("%q for %s and %+v", got.Message, kind, now)
			}
			if strings.Contains(got.Message, "confirmed") {
				t.Errorf("%q, but nobody confirmed anything", got.Message)
			}
		})
	})
}

// TestEverySettledAnswer goes through every end that an operation can have, in every situation.
func TestEverySettledAnswer(t *testing.T) {
	outcomes := []Outcome{
		{},
		{Failure: v1.CauseConnectorFailed},
		{Failure: v1.CauseConnectorFailed, Unknown: true},
		{Failure: v1.CauseConnectorFailed, Detail: "a word (-32000)"},
		{Failure: v1.CauseConnectorMissing},
		{Failure: v1.CauseNotPermitted},
		{Failure: v1.CauseRegistrationGone},
		{Failure: v1.CauseSubstituted},
		{Failure: v1.CauseDidNotConverge},
	}
	everySituation(func(s Situation) {
		for _, kind := range kinds {
			success := map[v1.DecisionKind]v1.Result{v1.DecisionOpen: v1.ResultOpened, v1.DecisionClose: v1.ResultClosed}[kind]
			for _, o := range outcomes {
				got := Settle(kind, success, o, s)
				if fault := wellFormed(got.Message); fault != "" {
					t.Errorf("%q %s", got.Message, fault)
				}
				if got.Result != success { // a success speaks of the receipt, which the situation may have left behind
					if fault := untrue(got.Message, s); fault != "" {
						t.Errorf("%q %s: %+v", got.Message, fault, s)
					}
				}
				if strings.Contains(got.Message, "Nothing changed") || strings.Contains(got.Message, "nothing was sent") {
					t.Errorf("%q, but it was recorded and went to the connector", got.Message)
				}
				wanted := map[v1.DecisionKind]v1.State{v1.DecisionOpen: v1.StateOpen, v1.DecisionClose: v1.StateClosed}[kind]
				if (got.Result == v1.ResultSuperseded) != (s.Record.State != wanted) {
					t.Errorf("%s of %s is answered %s", s.Record, kind, got.Result)
				}
			}
		}
	})
}

// TestEveryCauseHasItsSentence: no two causes of one kind of answer share a sentence.
func TestEveryCauseHasItsSentence(t *testing.T) {
	now := directed(openBy(v1.SourceAgentTool), v1.TransportUnconfirmed)
	sentences := map[string]v1.Cause{}
	add := func(cause v1.Cause, message string) {
		t.Helper()
		if fault := wellFormed(message); fault != "" {
			t.Errorf("%s: %q %s", cause, message, fault)
		}
		if other, ok := sentences[message]; ok {
			t.Errorf("%s and %s have the same sentence: %q", other, cause, message)
		}
		sentences[message] = cause
	}
	for _, cause := range []v1.Cause{v1.CauseTunedOut, v1.CauseNotItsResident, v1.CauseExplicitOpen} {
		add(cause, AtOnce(v1.DecisionOpen, refused(cause), now).Message)
	}
	for _, cause := range []v1.Cause{
		v1.CauseNotPermitted, v1.CauseConnectorMissing, v1.CauseConnectorFailed,
		v1.CauseDidNotConverge, v1.CauseSubstituted, v1.CauseRegistrationGone,
	} {
		answer := Settle(v1.DecisionOpen, v1.ResultOpened, Outcome{Failure: cause}, now)
		if cause == v1.CauseConnectorFailed {
			same(t, v1.CauseStaysSelected, answer.Cause)
		} else {
			same(t, cause, answer.Cause)
		}
		add(answer.Cause, answer.Message)
	}
	now.Transport = v1.TransportOpen
	add(v1.CauseConnectorFailed, Settle(v1.DecisionOpen, v1.ResultOpened, Outcome{Failure: v1.CauseConnectorFailed}, now).Message)
	add(v1.CauseNotFound, NeverAppeared(Situation{}).Message)
	add(v1.CauseSuperseded, Settle(v1.DecisionClose, v1.ResultClosed, Outcome{}, now).Message)
	add(v1.CauseStoreFailed, NotStored(Verdict{Send: true, Success: v1.ResultOpened}).Message)
	add(v1.CauseDecisionNotStored, NotStored(Verdict{Success: v1.ResultAlreadyOpen}).Message)
	add("Predates", Predates().Message)
}

// TestEveryResultHasItsSentence: an answer says which of the five good ends it is.
func TestEveryResultHasItsSentence(t *testing.T) {
	seen := map[string]v1.Result{}
	for _, result := range []v1.Result{v1.ResultOpened, v1.ResultReconciled, v1.ResultAlreadyOpen, v1.ResultClosed, v1.ResultAlreadyClosed} {
		text := successText(result)
		if fault := wellFormed(text); fault != "" {
			t.Errorf("%q %s", text, fault)
		}
		if other, ok := seen[text]; ok {
			t.Errorf("%s and %s have the same sentence", other, result)
		}
		seen[text] = result
	}
}
