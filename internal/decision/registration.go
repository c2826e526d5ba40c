package decision

import (
	"path"
	"strings"

	v1 "mcpl.dev/operator/api/v1alpha1"
)

// Announcement is what matters of a channel that its connector declares.
type Announcement struct {
	// InitiallyOpen is the connector's wish that the channel starts open.
	InitiallyOpen bool
	// Admitted says that the subscription, or the channel's own rule, admits the channel.
	Admitted bool
	// Excluded says that the channel's own rule keeps it closed while nobody has decided.
	Excluded bool
	// Held says that the platform holds the channel closed: nothing is lifted meanwhile.
	Held bool
}

// Admission is what a registration makes of one channel.
type Admission struct {
	// Write is to be recorded before anything is sent; nil where the record stands.
	Write *Write
	// PolicyNotice says that the record is the policy's, so that the resident is told, once ever.
	PolicyNotice bool
	// Apply says that one operation follows.
	Apply bool
}

// Register says what a registration makes of a channel (semantics §5.1). directs says whether the
// host may open and close on this connector; if not, nothing is recorded and nothing is sent.
func Register(record Record, a Announcement, directs bool) Admission {
	if !directs {
		return Admission{}
	}
	if lift, ok := Lift(record, a); ok {
		return Admission{Write: &lift, PolicyNotice: lift.Source == v1.SourceSubscriptionPolicy, Apply: true}
	}
	if !record.Decided() {
		return Admission{Write: &Write{v1.StateClosed, v1.SourceDefaultClosed}, Apply: true}
	}
	return Admission{Apply: true}
}

// Lift says whether the connector's wish or the policy opens a channel, and as whose decision. Only
// a channel that nobody decided is ever lifted. Where both ask for it, it is the connector's.
func Lift(record Record, a Announcement) (Write, bool) {
	switch {
	case !record.Undecided(), a.Excluded, a.Held:
		return Write{}, false
	case a.InitiallyOpen:
		return Write{v1.StateOpen, v1.SourceServerBootstrap}, true
	case a.Admitted:
		return Write{v1.StateOpen, v1.SourceSubscriptionPolicy}, true
	}
	return Write{}, false
}

// Announce says what a registration is judged by: the connector's wish, and the channel's own
// admission rule where it has one, else the subscription.
func Announce(initiallyOpen bool, subscribed bool, own v1.State, held bool) Announcement {
	a := Announcement{InitiallyOpen: initiallyOpen, Admitted: subscribed, Held: held}
	switch own {
	case v1.StateOpen:
		a.Admitted = true
	case v1.StateClosed:
		a.Admitted, a.Excluded = false, true
	}
	return a
}

// Admits reports whether a subscription admits a channel with this id, whose platform calls it
// platformID (empty where the platform has no id of its own).
func Admits(s v1.Subscription, channelID, platformID string) bool {
	switch s.Mode {
	case v1.SubscriptionAuto:
		return true
	case v1.SubscriptionAllowList:
		for _, pattern := range s.Allow {
			if matches(pattern, channelID) || (platformID != "" && matches(pattern, platformID)) {
				return true
			}
		}
	}
	return false
}

// matches compares an id with a glob in which * is any run of characters, / and : among them.
func matches(pattern, id string) bool {
	if pattern == id {
		return true
	}
	// path.Match stops * at a slash, which is nothing special in an id, and reads brackets and
	// backslashes, which are nothing special in our patterns.
	pattern = strings.NewReplacer("/", "\x00", `\`, `\\`, "[", `\[`).Replace(pattern)
	ok, err := path.Match(pattern, strings.ReplaceAll(id, "/", "\x00"))
	return err == nil && ok
}
