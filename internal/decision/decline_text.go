package decision

import (
	"strings"

	v1 "mcpl.dev/operator/api/v1alpha1"
)

// The sentence of a decline that did not certainly leave the channel closed (semantics §6.3), and of
// one that a later decision replaced (§6.4). Each clause is a function of the reading and says
// nothing that can be false where it is used.

// declinedSentence picks the first of five cases that holds.
func declinedSentence(r Reading) string {
	switch {
	case r.Close != nil && !r.Registered:
		return clauses(recorded(), notRegisteredClause(), later(r), askConnector(r))
	case r.Close != nil:
		return clauses(recorded(), "its close failed: "+failureClause("close", *r.Close, r.Situation), later(r), nextStep(r))
	case !r.Registered && r.Connector == v1.ConnectorUp:
		return clauses(recorded(), notRegisteredClause(), later(r))
	case !r.Registered:
		return clauses(recorded(), notRegisteredClause(), connectorClause(r), later(r), askConnector(r))
	case r.Connector == v1.ConnectorUp && !r.Lifecycle:
		return clauses(recorded(), noAuthority(), later(r), askSooner())
	case r.Connector != v1.ConnectorUp:
		return clauses(recorded(), connectorClause(r), "so it is not certain yet that the channel is closed", later(r), noRepeat(), askConnector(r))
	}
	return clauses(recorded(), "it is not certain yet that the channel is closed", nextStep(r))
}

// replacedSentence says what replaced a decline, and what may be done about it.
func replacedSentence(r Reading) string {
	by := "a later decision to open the channel replaced it and stands"
	if r.Record.State == v1.StateTunedOut {
		by = "a later tune-out replaced it and stands: messages go to the subconscious"
	}
	switch {
	case !r.Registered:
		return clauses(recorded(), by, "no tool can reach the channel until the connector registers it again", askConnector(r))
	case r.Connector == v1.ConnectorUp && !r.Lifecycle:
		return clauses(recorded(), by, "the operator may not open or close there: if the channel must be closed, ask whoever runs the operator")
	}
	return clauses(recorded(), by, "if it is still wanted closed, decide Close (channel_close)", askConnector(r))
}

func recorded() string { return "the decline is recorded" }

// later says when the decision is carried out without anybody doing anything.
func later(r Reading) string {
	if r.PushKnown {
		return "the operator closes the channel if the connector ever registers it while the operator has the authority to close there"
	}
	return "the operator closes the channel when the connector next registers it, or when the operator gains the authority to open and close there, provided it has that authority then"
}

func notRegisteredClause() string { return "the connector does not register the channel any more" }

// connectorClause says how it is with a connector that is not up.
func connectorClause(r Reading) string {
	switch r.Connector {
	case v1.ConnectorConnecting:
		return "the connector is being connected to"
	case v1.ConnectorReconnecting:
		return "the connector is not connected and is being reconnected"
	}
	return "the connector is gone"
}

// askConnector is said only where nothing will happen by itself.
func askConnector(r Reading) string {
	if r.Connector == v1.ConnectorUp || r.Connector == v1.ConnectorConnecting || r.Connector == v1.ConnectorReconnecting {
		return ""
	}
	return "if the connector is needed back, ask whoever runs the operator"
}

func askSooner() string { return "if it must be closed sooner, ask whoever runs the operator" }

func noAuthority() string {
	return "the operator has no authority to open or close channels there, so the connector decides whether it is open, and declining again makes no difference"
}

func noRepeat() string { return "declining again is not needed" }

// nextStep says what to do now, from the channel as it is and not from what failed.
func nextStep(r Reading) string {
	switch {
	case r.Connector == v1.ConnectorUp && !r.Lifecycle:
		return askSooner()
	case r.Connector != v1.ConnectorUp && r.Connector != v1.ConnectorConnecting && r.Connector != v1.ConnectorReconnecting:
		return askConnector(r)
	case r.Outstanding && r.CarriedOut:
		return "work for the channel that is still under way applies the decline, and declining again is not needed"
	case r.Connector != v1.ConnectorUp:
		return "it is applied when the connector registers the channel again, and declining again is not needed"
	}
	return "decide Close (channel_close) to close it now"
}

// clauses makes one sentence of the clauses that are not empty.
func clauses(parts ...string) string {
	var said []string
	for _, p := range parts {
		if p != "" {
			said = append(said, p)
		}
	}
	return capitalize(strings.Join(said, "; ")) + "."
}
