package decision

import v1 "mcpl.dev/operator/api/v1alpha1"

// SpeechOpens says whether words that go to a channel open it (semantics §5.8): it is decided open
// or tuned out and not confirmed so, or nobody has closed it on purpose.
func SpeechOpens(s Situation) bool {
	switch {
	case !s.Directs() || s.Held:
		return false
	case s.Record.WantsOpen():
		return s.Transport != v1.TransportOpen
	}
	return !s.Record.Decided() || !Deliberate(s.Record.Source)
}

// Replaced is the record that an engagement puts back if its open fails: the one that was in force,
// or that nobody had decided.
func Replaced(before Record) Write {
	if !before.Decided() {
		return Write{v1.StateClosed, v1.SourceDefaultClosed}
	}
	return Write{before.State, before.Source}
}

// Selection is why a channel whose open failed may open all the same.
type Selection string

// The selections.
const (
	// Unrecorded: the put-back could not be stored, so the channel stays decided open.
	Unrecorded Selection = "Unrecorded"
	// SelectedByConnector and SelectedByPolicy: the lift selected it again.
	SelectedByConnector Selection = Selection(v1.SourceServerBootstrap)
	SelectedByPolicy    Selection = Selection(v1.SourceSubscriptionPolicy)
)

// Engagement is the end of an incidental open: of what words into a channel made of it.
type Engagement struct {
	// Opening says that the words turned a channel that was not decided open into one that is.
	Opening bool
	// Opened says that this engagement opened the channel, and that it is open.
	Opened bool
	// Failure says why a wanted open failed, empty where none did.
	Failure v1.Cause
	// Selected says why the channel may open all the same.
	Selected Selection
	// Directed says that the host directed the connector when the words were said.
	Directed bool
}

// Author is who said the words, as far as notices need to know.
type Author struct {
	// Ended says that the author is not there any more.
	Ended bool
	// MayClose and MayOpen say which tools the author may call on the channel.
	MayClose, MayOpen bool
}

// Notice is what is said to whom about an engagement (semantics §5.8, §7.3).
type Notice struct {
	// ToPrimary says that the primary resident is told, not the author.
	ToPrimary bool
	// Opened: the channel is now open. Otherwise its open failed.
	Opened bool
	// Selected says why it may open all the same; the notice names what withdraws it if NamesClose.
	Selected   Selection
	NamesClose bool
	// NamesOpen says that channel_open retries.
	NamesOpen bool
}

// Notices says who is told of an engagement's end, and what.
func Notices(e Engagement, author Author, primaryMayClose bool) []Notice {
	switch {
	case e.Opened:
		if author.Ended {
			return nil
		}
		return []Notice{{Opened: true}}
	case !e.Opening || !e.Directed || e.Failure == "" || e.Failure == v1.CauseOvertaken:
		return nil
	}
	selected := e.Selected != ""
	primary := Notice{ToPrimary: true, Selected: e.Selected, NamesClose: true}
	if author.Ended {
		if selected && primaryMayClose {
			return []Notice{primary}
		}
		return nil
	}
	// A channel that was selected again is opened by the host itself, so asking for it is not named.
	again := e.Selected == SelectedByConnector || e.Selected == SelectedByPolicy
	notices := []Notice{{
		Selected: e.Selected, NamesClose: selected && author.MayClose, NamesOpen: author.MayOpen && !again,
	}}
	if selected && !author.MayClose && primaryMayClose {
		notices = append(notices, primary)
	}
	return notices
}

// Waited is why speech that waited for work of others finds its channel not open, empty where it is
// or is not meant to be (semantics §8.7). awaited is how that work ended.
func Waited(now Situation, awaited Outcome) v1.Cause {
	switch {
	case !now.Registered:
		return v1.CauseRegistrationGone
	case !now.Record.WantsOpen() || now.Transport == v1.TransportOpen:
		return ""
	case awaited.Failure != "":
		return awaited.Failure
	}
	return v1.CauseNotConfirmedOpen
}
