package decision

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	v1 "mcpl.dev/operator/api/v1alpha1"
)

// MaxHistory is how many entries a record's history holds at the most.
const MaxHistory = 200

// maxSightings is how many labels of a channel are remembered.
const maxSightings = 16

// TrimHistory keeps of a history, newest first, the newest limit entries, every one whose object
// still exists, and every one of a decision with a name of its own: by that name it is recognized
// when it is applied again.
func TrimHistory(history []v1.HistoryEntry, limit int, exists func(v1.DecisionReference) bool) []v1.HistoryEntry {
	kept := make([]v1.HistoryEntry, 0, min(len(history), MaxHistory))
	for i, entry := range history {
		referenced := entry.DecisionRef != nil && exists != nil && exists(*entry.DecisionRef)
		// The record in force is always there, so that a history is never empty.
		if i == 0 || i < limit || entry.Named || referenced {
			kept = append(kept, entry)
		}
	}
	return kept[:min(len(kept), MaxHistory)]
}

// FindDecision is the entry of a ChannelDecision: of this very object, or, where it has a name of
// its own, of one of the same name that was there before it.
func FindDecision(history []v1.HistoryEntry, name string, uid types.UID, named bool) (v1.HistoryEntry, bool) {
	for _, entry := range history {
		ref := entry.DecisionRef
		if ref == nil || ref.Kind != "ChannelDecision" {
			continue
		}
		if ref.UID == uid || (named && entry.Named && ref.Name == name) {
			return entry, true
		}
	}
	return v1.HistoryEntry{}, false
}

// PredatesHistory reports whether a decision without an entry may have had one: the history has
// been trimmed, and the decision is older than the oldest entry left.
func PredatesHistory(history []v1.HistoryEntry, created int64) bool {
	if len(history) == 0 {
		return false
	}
	oldest := history[len(history)-1]
	return oldest.Revision > 1 && created < oldest.At.Unix()
}

// SightLabel notes a channel's label. A bare id that stands in for a label never replaces a real one.
func SightLabel(seen *v1.LabelSightings, label, channelID string) *v1.LabelSightings {
	if label == "" || (label == channelID && seen != nil) || (seen != nil && seen.Last == label) {
		return seen
	}
	next := &v1.LabelSightings{Last: label}
	if seen != nil {
		next.Seen = slices.DeleteFunc(slices.Clone(seen.Seen), func(l string) bool { return l == label })
	}
	next.Seen = append(next.Seen, label)
	next.Seen = next.Seen[max(0, len(next.Seen)-maxSightings):]
	return next
}
