package ledger_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/internal/decision"
	"mcpl.dev/operator/internal/ledger"
)

func TestTheFirstAppendCreatesTheRecord(t *testing.T) {
	b := newBook(t)
	b.remembers("none")
	b.clock.SetTime(start.Add(time.Hour))
	got, err := b.append(ledger.Entry{
		Write: &opened, DecidedBy: "scout", Ref: reference("open-it"), Named: true, Label: "general", HistoryLimit: 10,
	})
	must(t, err)
	same(t, "Open/AgentTool@1", inWords(got))
	b.force("Open/AgentTool@1")
	b.requests("create")

	object := b.stored()
	same(t, b.key.RecordName(), object.Name)
	same(t, b.key.ServerID, object.ServerID)
	same(t, b.key.ChannelID, object.ChannelID)
	// What keeps it when a Channel or a Connector goes: it belongs to nobody, and waits for nobody.
	same(t, 0, len(object.OwnerReferences)+len(object.Finalizers))
	same(t, v1.Record{
		ID: object.Record.ID, State: v1.StateOpen, Source: v1.SourceAgentTool, DecidedBy: "scout",
		DecisionRef: reference("open-it"), At: metav1.NewTime(start.Add(time.Hour)),
	}, object.Record)
	same(t, []v1.HistoryEntry{{Revision: 1, Changed: ptr.To(true), Named: true, Record: object.Record}}, object.History)
	same(t, &v1.LabelSightings{Last: "general", Seen: []string{"general"}}, object.LabelSightings)
	same(t, false, object.PolicyNoticeGiven)

	// In memory is the same, but for what nobody reads and takes the most room.
	same(t, true, len(object.ManagedFields) > 0)
	object.ManagedFields = nil
	held := b.Object(b.key).DeepCopy()
	held.TypeMeta = object.TypeMeta
	same(t, object, held)
}

func TestRevisionsHaveNoGaps(t *testing.T) {
	b := newBook(t)
	var ids []string
	for i, w := range []decision.Write{opened, closed, byModule, lifted, closed} {
		b.clock.SetTime(start.Add(time.Duration(i) * time.Minute))
		got, err := b.append(entry(w))
		must(t, err)
		same(t, int64(i+1), got.Revision)
		b.force(fmt.Sprintf("%s/%s@%d", w.State, w.Source, i+1))
		ids = append([]string{b.stored().Record.ID}, ids...)
	}
	b.requests("create update update update update")
	history := b.stored().History
	same(t, ids, idsOf(history))
	for i, e := range history {
		same(t, int64(len(history)-i), e.Revision)
		same(t, true, *e.Changed)
		same(t, start.Add(time.Duration(len(history)-i-1)*time.Minute).Unix(), e.At.Unix())
	}
	slices.Sort(ids)
	same(t, 5, len(slices.Compact(ids)))
}

func TestOnlyWhatWasJudgedIsWrittenOver(t *testing.T) {
	cases := map[string]struct {
		before []ledger.Entry
		judged decision.Record
		want   string
	}{
		"an older record": {
			before: []ledger.Entry{entry(opened), entry(closed)},
			judged: decision.Record{State: v1.StateOpen, Source: v1.SourceAgentTool, Revision: 1}, want: "Closed/AgentTool@2",
		},
		"no record, where there is one": {before: []ledger.Entry{entry(opened)}, want: "Open/AgentTool@1"},
		"a record, where there is none": {judged: decision.Record{State: v1.StateOpen, Source: v1.SourceAgentTool, Revision: 1}, want: "none"},
		// (state, source) is no identity: only the revision says that it is the same record.
		"another record of the same state and source": {
			before: []ledger.Entry{entry(opened), entry(closed), entry(opened)},
			judged: decision.Record{State: v1.StateOpen, Source: v1.SourceAgentTool, Revision: 1}, want: "Open/AgentTool@3",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBook(t).has(tc.before...)
			_, err := b.Append(t.Context(), b.key, tc.judged, entry(byModule))
			wantError(t, err, ledger.ErrChanged)
			b.force(tc.want)
			b.requests("")
		})
	}
}

func TestANamedDecisionThatChangedNothing(t *testing.T) {
	t.Run("of an undecided channel makes revision 1", func(t *testing.T) {
		b := newBook(t)
		b.MarkUndecided(b.key)
		got, err := b.append(note())
		must(t, err)
		same(t, "Closed/DefaultClosed@1", inWords(got))
		b.force("Closed/DefaultClosed@1")
		object := b.stored()
		same(t, 1, len(object.History))
		same(t, v1.HistoryEntry{
			Revision: 1, Changed: ptr.To(false), Named: true,
			Record: v1.Record{
				ID: object.History[0].ID, State: v1.StateClosed, Source: v1.SourceDefaultClosed,
				DecidedBy: "scout", DecisionRef: reference("from-git"), At: metav1.NewTime(start),
			},
		}, object.History[0])
		same(t, "", object.Record.DecidedBy) // nobody decided
		same(t, (*v1.DecisionReference)(nil), object.Record.DecisionRef)
		same(t, false, object.Record.ID == object.History[0].ID)

		// It is a record like any other from here on.
		_, err = b.append(entry(opened))
		must(t, err)
		b.force("Open/AgentTool@2")
	})
	t.Run("of a decided channel leaves the revision and the record alone", func(t *testing.T) {
		b := newBook(t).has(entry(opened), entry(closed))
		before := b.stored()
		got, err := b.append(note())
		must(t, err)
		same(t, "Closed/AgentTool@2", inWords(got))
		after := b.stored()
		same(t, before.Revision, after.Revision)
		same(t, before.Record, after.Record)
		same(t, 3, len(after.History))
		same(t, int64(2), after.History[0].Revision)
		same(t, false, *after.History[0].Changed)
		same(t, "from-git", after.History[0].DecisionRef.Name)
		if _, found := decision.FindDecision(after.History, "from-git", "another-uid", true); !found {
			t.Error("it is not recognized when it is applied again")
		}
	})
}

func TestHistoryIsTrimmed(t *testing.T) {
	b := newBook(t)
	kept := reference("kept")
	of := func(w decision.Write, name string, isNamed bool) ledger.Entry {
		return ledger.Entry{
			Write: &w, Ref: reference(name), Named: isNamed, HistoryLimit: 2,
			Exists: func(r v1.DecisionReference) bool { return r.UID == kept.UID },
		}
	}
	b.has(of(opened, "gone", false), of(closed, "named", true), of(opened, "kept", false), of(closed, "gone-2", false),
		of(opened, "gone-3", false), of(closed, "gone-4", false))
	var names []string
	for _, e := range b.stored().History {
		names = append(names, e.DecisionRef.Name)
	}
	same(t, []string{"gone-4", "gone-3", "kept", "named"}, names)
}

func TestWhatIsRememberedBesidesTheDecision(t *testing.T) {
	b := newBook(t)
	first := entry(lifted)
	first.PolicyNotice, first.Label = true, b.key.ChannelID
	second := entry(closed)
	second.Label = "general"
	third := entry(opened)
	third.Label = b.key.ChannelID // the connector has lost the label: it stays
	b.has(first, second, third, entry(closed))

	object := b.stored()
	same(t, true, object.PolicyNoticeGiven) // once, ever
	same(t, &v1.LabelSightings{Last: "general", Seen: []string{b.key.ChannelID, "general"}}, object.LabelSightings)
}

func TestATuneOutGoesWithItsRecord(t *testing.T) {
	tunedOut := func(b *book) {
		record := v1.Record{ID: "tuned-out", State: v1.StateTunedOut, Source: v1.SourceAgentTool, DecidedBy: "scout", At: metav1.NewTime(start)}
		must(t, admin.Create(t.Context(), &v1.ChannelRecord{
			ObjectMeta: metav1.ObjectMeta{Namespace: b.key.Namespace, Name: b.key.RecordName()},
			ServerID:   b.key.ServerID, ChannelID: b.key.ChannelID, Revision: 4, Record: record,
			TuneOut: &v1.TuneOutEpoch{
				EpochID: "epoch", StartedAt: metav1.NewTime(start), Wakes: 2,
				Parameters: v1.TuneOutParameters{CadenceSeconds: 1800, BacklogCap: 200, MaxWakes: 5},
			},
		}))
		must(t, b.Load(t.Context()))
	}
	t.Run("a close ends it", func(t *testing.T) {
		b := newBook(t)
		tunedOut(b)
		b.remembers("TunedOut/AgentTool@4")
		same(t, true, b.WantsOpen(b.key))
		_, err := b.append(entry(closed))
		must(t, err)
		b.force("Closed/AgentTool@5")
		same(t, (*v1.TuneOutEpoch)(nil), b.stored().TuneOut)
		same(t, (*v1.TuneOutEpoch)(nil), b.Object(b.key).TuneOut)
	})
	t.Run("a decision that changed nothing leaves it alone", func(t *testing.T) {
		b := newBook(t)
		tunedOut(b)
		_, err := b.append(note())
		must(t, err)
		b.force("TunedOut/AgentTool@4")
		same(t, int32(2), b.stored().TuneOut.Wakes)
	})
}

// TestAnObjectThatWasHandedOutStaysAsItIs: readers hold on to objects while appends go on.
func TestAnObjectThatWasHandedOutStaysAsItIs(t *testing.T) {
	b := newBook(t).has(entry(opened))
	held := b.Object(b.key)
	before := held.DeepCopy()
	b.has(entry(closed), note(), entry(opened))
	same(t, before, held)
}

// TestTheLongestOfEverything: what the API admits is what the ledger may have to write.
func TestTheLongestOfEverything(t *testing.T) {
	b := newBook(t)
	b.key.ServerID, b.key.ChannelID = strings.Repeat("s", 45), strings.Repeat("ж", 1024)
	e := entry(opened)
	e.DecidedBy, e.Label = strings.Repeat("d", 512), strings.Repeat("l", 512)
	e.Ref = reference(strings.Repeat("n", 253))
	e.Ref.UID = "uid"
	b.has(e)
	b.force("Open/AgentTool@1")
}
