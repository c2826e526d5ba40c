package decision

import v1 "mcpl.dev/operator/api/v1alpha1"

// Situation is what is known of a channel at the moment somebody decides.
type Situation struct {
	Record    Record
	Transport v1.TransportState
	// Registered says that the connector names the channel now.
	Registered bool
	Connector  v1.ConnectorState
	// ConnectorName is the connector's name, for sentences; it may be empty.
	ConnectorName string
	// Lifecycle says that channels.lifecycle is granted.
	Lifecycle bool
	// Outstanding says that an open or close is queued or in flight.
	Outstanding bool
	// Foreign says that the channel is another resident's than the one that decides.
	Foreign bool
	// Held says that the platform holds the channel closed, whatever is decided.
	Held bool
}

// Directs reports whether the host may send opens and closes there now.
func (s Situation) Directs() bool { return s.Connector == v1.ConnectorUp && s.Lifecycle }

// Resumed is the situation as it will be when a request can be sent: nothing in the way, and nothing
// confirmed, so that whatever is decided takes one.
func (s Situation) Resumed() Situation {
	s.Connector, s.Lifecycle, s.Registered, s.Transport = v1.ConnectorUp, true, true, v1.TransportUnconfirmed
	return s
}

// Verdict is what becomes of a request before anything was sent. A refusal changes nothing. Else
// Write, where it is set, is appended first; then, if Send is true, one operation runs and Settle
// gives the answer; if it is false the answer is already here.
type Verdict struct {
	Write *Write
	Send  bool
	// Success is the answer if all goes well: at once where Send is false, else at the operation's end.
	Success v1.Result
	// Cause is set where the request is refused or has failed already.
	Cause v1.Cause
	// Refused says that Cause is a refusal: nothing changed.
	Refused bool
}

// Open judges a resident's channel_open (semantics §5.5). history says that earlier messages are
// asked for, which needs a request even to an open channel.
func Open(s Situation, history bool) Verdict {
	switch {
	case s.Foreign:
		return refused(v1.CauseNotItsResident)
	case s.Held:
		return refused(v1.CauseHeld)
	case s.Record.State == v1.StateTunedOut:
		return refused(v1.CauseTunedOut)
	}
	v := Verdict{Send: true, Success: v1.ResultOpened}
	if w, ok := MayWrite(s.Record, Write{v1.StateOpen, v1.SourceAgentTool}); ok {
		v.Write = &w
	}
	if s.Record.State == v1.StateOpen {
		v.Success = v1.ResultReconciled
		if s.Transport == v1.TransportOpen && !s.Outstanding && !history {
			v.Send, v.Success = false, v1.ResultAlreadyOpen
			return v
		}
	}
	return v.unreachable(s)
}

// Close judges a channel_close (semantics §5.6). The source has been checked at admission.
func Close(s Situation, source v1.Source, lease bool) Verdict {
	switch {
	case s.Foreign:
		return refused(v1.CauseNotItsResident)
	case Machine(source) && !lease && ExplicitOpen(s.Record):
		return refused(v1.CauseExplicitOpen)
	}
	v := Verdict{Send: true, Success: v1.ResultClosed}
	if w, ok := MayWrite(s.Record, Write{v1.StateClosed, source}); ok {
		v.Write = &w
	}
	if s.Record.State == v1.StateClosed && s.Transport == v1.TransportClosed && !s.Outstanding {
		v.Send, v.Success = false, v1.ResultAlreadyClosed
		return v
	}
	return v.unreachable(s)
}

// unreachable turns a verdict that needs the wire into a failure where the wire can't be had. What
// is to be recorded stays: the decision stands, and is applied when the connector registers the channel.
func (v Verdict) unreachable(s Situation) Verdict {
	if cause := s.Obstacle(); cause != "" {
		v.Send, v.Success, v.Cause = false, "", cause
	}
	return v
}

// Obstacle is why no operation can run now, empty where one can.
func (s Situation) Obstacle() v1.Cause {
	switch {
	case s.Connector != v1.ConnectorUp:
		return v1.CauseConnectorMissing
	case !s.Lifecycle:
		return v1.CauseNotPermitted
	case !s.Registered:
		return v1.CauseRegistrationGone
	}
	return ""
}

func refused(cause v1.Cause) Verdict { return Verdict{Cause: cause, Refused: true} }
