package decision

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "mcpl.dev/operator/api/v1alpha1"
)

// started is when the histories of these tests begin.
var started = time.Unix(1_000_000, 0)

// entryAt is the entry of a revision, recorded as many seconds after the start.
func entryAt(revision int64, but ...func(*v1.HistoryEntry)) v1.HistoryEntry {
	e := v1.HistoryEntry{Revision: revision, Record: v1.Record{
		ID: fmt.Sprintf("id-%d", revision), State: v1.StateOpen, Source: v1.SourceAgentTool,
		At: metav1.NewTime(started.Add(time.Duration(revision) * time.Second)),
	}}
	for _, change := range but {
		change(&e)
	}
	return e
}

func named(e *v1.HistoryEntry) { e.Named = true }
func refersTo(kind, name string, uid types.UID) func(*v1.HistoryEntry) {
	return func(e *v1.HistoryEntry) {
		e.DecisionRef = &v1.DecisionReference{Kind: kind, Name: name, UID: uid}
	}
}

// historyOf has the revisions from newest down to 1.
func historyOf(newest int64, but func(*v1.HistoryEntry)) []v1.HistoryEntry {
	var history []v1.HistoryEntry
	for revision := newest; revision > 0; revision-- {
		history = append(history, entryAt(revision, but))
	}
	return history
}

func revisions(history []v1.HistoryEntry) []int64 {
	var all []int64
	for _, e := range history {
		all = append(all, e.Revision)
	}
	return all
}

func TestTrimHistory(t *testing.T) {
	plain := func(*v1.HistoryEntry) {}
	namedAt := func(at ...int64) func(*v1.HistoryEntry) {
		return func(e *v1.HistoryEntry) { e.Named = slices.Contains(at, e.Revision) }
	}
	referenced := func(e *v1.HistoryEntry) {
		refersTo("ChannelDecision", "d", types.UID(fmt.Sprintf("uid-%d", e.Revision)))(e)
	}
	cases := map[string]struct {
		history []v1.HistoryEntry
		limit   int
		exists  func(v1.DecisionReference) bool
		want    []int64
	}{
		"nothing":                                   {limit: 10},
		"below the limit":                           {history: historyOf(3, plain), limit: 10, want: []int64{3, 2, 1}},
		"the newest up to the limit":                {history: historyOf(5, plain), limit: 2, want: []int64{5, 4}},
		"the newest always, at limit 0":             {history: historyOf(5, plain), want: []int64{5}},
		"a decision with a name of its own":         {history: historyOf(9, namedAt(1, 4)), limit: 2, want: []int64{9, 8, 4, 1}},
		"those with a name count towards the limit": {history: historyOf(5, namedAt(5, 4)), limit: 2, want: []int64{5, 4}},
		"one whose object is still there": {
			history: historyOf(6, referenced), limit: 1,
			exists: func(r v1.DecisionReference) bool { return r.UID == "uid-3" }, want: []int64{6, 3},
		},
		"an entry without an object": {
			history: historyOf(3, plain), limit: 1,
			exists: func(v1.DecisionReference) bool { return true }, want: []int64{3},
		},
		"nobody knows which objects are there": {history: historyOf(3, referenced), limit: 1, want: []int64{3}},
		"never more than 200, though all have names": {
			history: historyOf(250, named), limit: 10, want: revisions(historyOf(250, plain)[:200]),
		},
		"never more than 200, though the limit is higher": {
			history: historyOf(250, plain), limit: 1000, want: revisions(historyOf(250, plain)[:200]),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := slices.Clone(tc.history)
			got := TrimHistory(tc.history, tc.limit, tc.exists)
			same(t, tc.want, revisions(got))
			same(t, before, tc.history)
		})
	}
}

func TestFindDecision(t *testing.T) {
	history := []v1.HistoryEntry{
		entryAt(5, refersTo("TuneOut", "quiet", "uid-t"), named),
		entryAt(4, refersTo("ChannelDecision", "from-git", "uid-4"), named),
		entryAt(3, refersTo("ChannelDecision", "scout-abcde", "uid-3")),
		entryAt(2, refersTo("ChannelDecision", "from-git", "uid-2"), named),
		entryAt(1),
	}
	cases := map[string]struct {
		name  string
		uid   types.UID
		named bool
		want  int64 // 0: none
	}{
		"the very object, with a generated name":            {name: "scout-abcde", uid: "uid-3", want: 3},
		"the very object, with a name of its own":           {name: "from-git", uid: "uid-4", named: true, want: 4},
		"deleted and applied again under its own name":      {name: "from-git", uid: "uid-9", named: true, want: 4},
		"another object with the same generated name":       {name: "scout-abcde", uid: "uid-9", want: 0},
		"a named object called like one that was generated": {name: "scout-abcde", uid: "uid-9", named: true, want: 0},
		"a generated name like one of Git's":                {name: "from-git", uid: "uid-9", want: 0},
		"an older one of the same name, by its uid":         {name: "elsewhere", uid: "uid-2", want: 2},
		"never seen": {name: "new", uid: "uid-9", named: true, want: 0},
		"a TuneOut of that name is no ChannelDecision": {name: "quiet", uid: "uid-9", named: true, want: 0},
		"a TuneOut of that uid is no ChannelDecision":  {name: "quiet", uid: "uid-t", named: true, want: 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok := FindDecision(history, tc.name, tc.uid, tc.named)
			same(t, tc.want, got.Revision)
			same(t, tc.want != 0, ok)
		})
	}
	if _, ok := FindDecision(nil, "from-git", "uid-4", true); ok {
		t.Error("found in an empty history")
	}
}

func TestPredatesHistory(t *testing.T) {
	trimmed := []v1.HistoryEntry{entryAt(9), entryAt(8), entryAt(7)}
	whole := []v1.HistoryEntry{entryAt(2), entryAt(1)}
	at := func(second int64) int64 { return started.Unix() + second }
	cases := map[string]struct {
		history []v1.HistoryEntry
		created int64
		want    bool
	}{
		"no history":                       {created: at(0)},
		"older than the oldest entry left": {history: trimmed, created: at(6), want: true},
		"as old as the oldest entry left":  {history: trimmed, created: at(7)},
		"newer":                            {history: trimmed, created: at(8)},
		"older than a history that nothing was taken from": {history: whole, created: at(0)},
		"newer than a whole history":                       {history: whole, created: at(5)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			same(t, tc.want, PredatesHistory(tc.history, tc.created))
		})
	}
}

func TestSightLabel(t *testing.T) {
	const id = "discord:111:222"
	seen := func(labels ...string) *v1.LabelSightings {
		return &v1.LabelSightings{Last: labels[len(labels)-1], Seen: labels}
	}
	var many []string
	for i := range 16 {
		many = append(many, fmt.Sprint("name-", i))
	}
	cases := map[string]struct {
		before *v1.LabelSightings
		label  string
		want   *v1.LabelSightings
	}{
		"no label yet":                              {},
		"the first":                                 {label: "general", want: seen("general")},
		"an id that stands in for the first":        {label: id, want: seen(id)},
		"a label replaces the id that stood in":     {before: seen(id), label: "general", want: seen(id, "general")},
		"an id never replaces a label":              {before: seen("general"), label: id, want: seen("general")},
		"none never replaces a label":               {before: seen("general"), want: seen("general")},
		"the same again":                            {before: seen("general"), label: "general", want: seen("general")},
		"a new one":                                 {before: seen("general"), label: "talk", want: seen("general", "talk")},
		"one of before moves to the end":            {before: seen("a", "b", "c"), label: "a", want: seen("b", "c", "a")},
		"at most 16, the oldest goes":               {before: seen(many...), label: "name-16", want: seen(append(slices.Clone(many[1:]), "name-16")...)},
		"one of 16 moves to the end, and none goes": {before: seen(many...), label: "name-3", want: seen(append(slices.Delete(slices.Clone(many), 3, 4), "name-3")...)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := tc.before.DeepCopy()
			same(t, tc.want, SightLabel(tc.before, tc.label, id))
			same(t, before, tc.before)
		})
	}
}
