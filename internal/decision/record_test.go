package decision

import (
	"fmt"
	"slices"
	"testing"

	v1 "mcpl.dev/operator/api/v1alpha1"
)

// row is one row of the table of who may write over what (semantics §4.3).
type row struct {
	name  string
	holds func(attempt Write, existing Record) bool
	// writes is what is written, empty for nothing and "the attempt" for what was attempted.
	writes string
}

// whoMayWriteOverWhat is the table; the first row that holds counts.
func whoMayWriteOverWhat() []row {
	openOver := func(state v1.State, sources ...v1.Source) func(Write, Record) bool {
		return func(a Write, r Record) bool {
			return a.State == v1.StateOpen && r.State == state && (len(sources) == 0 || slices.Contains(sources, a.Source))
		}
	}
	closeOver := func(state v1.State, sources []v1.Source, and func(Write, Record) bool) func(Write, Record) bool {
		return func(a Write, r Record) bool {
			return a.State == v1.StateClosed && r.State == state && slices.Contains(sources, a.Source) && and(a, r)
		}
	}
	always := func(Write, Record) bool { return true }
	sameSource := func(a Write, r Record) bool { return a.Source == r.Source }
	byNobody := func(a Write, _ Record) bool { return a == Write{v1.StateClosed, v1.SourceDefaultClosed} }
	return []row{
		{"resident open over Open/AgentTool",
			func(a Write, r Record) bool {
				return openOver(v1.StateOpen, v1.SourceAgentTool)(a, r) && sameSource(a, r)
			}, ""},
		{"resident open over another's open", openOver(v1.StateOpen, v1.SourceAgentTool), "the attempt"},
		{"any other open over Open", openOver(v1.StateOpen), ""},
		{"a tune-out's own end", openOver(v1.StateTunedOut, v1.SourceSubconscious, v1.SourceDuration, v1.SourceTuneOutMaxWakes), "the attempt"},
		{"any other open over TunedOut", openOver(v1.StateTunedOut), ""},
		{"deliberate close over a close of the same source", closeOver(v1.StateClosed, deliberateSources, sameSource), ""},
		{"deliberate close over another's close", closeOver(v1.StateClosed, deliberateSources, always), "the attempt"},
		{"machine close over a close", closeOver(v1.StateClosed, machineSources, always), ""},
		{"machine close of a channel without a record", closeOver("", machineSources, always), "Closed/DefaultClosed"},
		// §4.1: nobody's close is the first record or none; a put-back writes it without asking.
		{"default close of a channel without a record", func(a Write, r Record) bool { return byNobody(a, r) && r.State == "" }, "the attempt"},
		{"default close over a record", byNobody, ""},
		{"a write that changes the state", func(a Write, r Record) bool { return a.State != r.State }, "the attempt"},
		{"a write of the same state that no row names", always, ""},
	}
}

func TestMayWrite(t *testing.T) {
	rows := whoMayWriteOverWhat()
	met := map[string]int{}
	for _, existing := range everyRecord() {
		for _, state := range states {
			for _, source := range vocabulary {
				attempt := Write{state, source}
				i := slices.IndexFunc(rows, func(r row) bool { return r.holds(attempt, existing) })
				met[rows[i].name]++
				want := map[string]Write{"the attempt": attempt, "Closed/DefaultClosed": {v1.StateClosed, v1.SourceDefaultClosed}}[rows[i].writes]

				got, ok := MayWrite(existing, attempt)
				if ok != (want != Write{}) || (ok && got != want) {
					t.Errorf("%s: %s over %s gives %v, %v; want %q", rows[i].name, attempt, existing, got, ok, rows[i].writes)
				}
			}
		}
	}
	for _, r := range rows {
		if met[r.name] == 0 {
			t.Errorf("no write meets the row %q", r.name)
		}
	}
}

func TestRecordReads(t *testing.T) {
	cases := map[string]struct {
		record                        Record
		decided, wantsOpen, undecided bool
	}{
		"no record":                               {record: none, undecided: true},
		"Closed/DefaultClosed, not stored":        {record: undecided, decided: true, undecided: true},
		"Closed/DefaultClosed, stored":            {record: closedBy(v1.SourceDefaultClosed), decided: true, undecided: true},
		"Closed/AgentTool":                        {record: closedBy(v1.SourceAgentTool), decided: true},
		"Closed/SubscriptionGC":                   {record: closedBy(v1.SourceSubscriptionGC), decided: true},
		"Closed/LegacyRecipeMigration":            {record: closedBy(v1.SourceLegacyRecipeMigration), decided: true},
		"Open/OpenedByReply":                      {record: openBy(v1.SourceOpenedByReply), decided: true, wantsOpen: true},
		"tuned out: the transport is wanted open": {record: tunedOut(), decided: true, wantsOpen: true},
		"an open of unknown source is a decision": {record: openBy(v1.SourceUnknown), decided: true, wantsOpen: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			same(t, tc.decided, tc.record.Decided())
			same(t, tc.wantsOpen, tc.record.WantsOpen())
			same(t, tc.undecided, tc.record.Undecided())
		})
	}
}

func (r Record) String() string { return fmt.Sprintf("%s/%s@%d", r.State, r.Source, r.Revision) }
func (w Write) String() string  { return fmt.Sprintf("%s/%s", w.State, w.Source) }
