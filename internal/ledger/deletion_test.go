package ledger_test

import (
	"testing"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/internal/decision"
	"mcpl.dev/operator/internal/ledger"
)

func TestADeletedRecordLeavesTheChannelUndecided(t *testing.T) {
	b := newBook(t).has(entry(opened), entry(closed), entry(opened))
	b.somebodyDeletes()
	b.observesDeletion(true)
	b.remembers("Open/AgentTool@3")
	b.refreshes(ledger.ErrChanged, "get")
	b.force("none")
	same(t, false, b.WantsOpen(b.key))
	same(t, true, b.Record(b.key).Undecided())
	b.observesDeletion(false) // it is known now
	b.refreshes(nil, "")

	b.MarkUndecided(b.key)
	b.remembers("Closed/DefaultClosed@0")
	_, err := b.append(entry(closed))
	must(t, err)
	b.force("Closed/AgentTool@1") // another record, from 1 again
	same(t, 1, len(b.stored().History))
	b.requests("create")
}

func TestADeletionThatMeansNothing(t *testing.T) {
	b := newBook(t)
	b.observesDeletion(false)
	b.remembers("none")
	b.MarkUndecided(b.key)
	b.observesDeletion(false)
	b.refreshes(nil, "")
	b.remembers("Closed/DefaultClosed@0")
}

// TestTheNewsOfADeletionIsLate: a new record stands already when it comes.
func TestTheNewsOfADeletionIsLate(t *testing.T) {
	b := newBook(t).has(entry(opened))
	old := b.stored().ResourceVersion
	b.somebodyDeletes()
	_, err := b.append(entry(closed))
	wantError(t, err, ledger.ErrChanged)
	wantError(t, b.Refresh(t.Context(), b.key), ledger.ErrChanged)
	_, err = b.append(entry(closed))
	must(t, err)
	b.observes(old, false)
	b.observesDeletion(true)
	b.refreshes(nil, "get")
	b.force("Closed/AgentTool@1")
	b.observes(b.stored().ResourceVersion, false)
	b.refreshes(nil, "")
}

// TestADeletionRightBehindAnAppend: the news comes before the append's answer, which must not undo it.
func TestADeletionRightBehindAnAppend(t *testing.T) {
	for of, base := range bases {
		t.Run(of, func(t *testing.T) {
			b := newBook(t).has(base.before...)
			b.spoil(base.verb, func(c call) error {
				err := c.made()
				b.observes(b.stored().ResourceVersion, false)
				b.somebodyDeletes()
				b.observesDeletion(true) // so that the owner looks
				return err
			})
			_, err := b.append(entry(base.next))
			must(t, err)
			if b.Record(b.key).Decided() {
				wantError(t, b.Refresh(t.Context(), b.key), ledger.ErrChanged)
			}
			b.force("none")
			b.refreshes(nil, "")
		})
	}
}

// TestADeletionOfWhatFollowedAnAppend: the append doesn't swallow what the owner has to notice.
func TestADeletionOfWhatFollowedAnAppend(t *testing.T) {
	b := newBook(t).has(entry(opened))
	b.spoil("update", func(c call) error {
		err := c.made()
		b.Observe(b.key, b.somebodyWrites(lifted).ResourceVersion)
		b.somebodyDeletes()
		b.observesDeletion(true)
		return err
	})
	_, err := b.append(entry(closed))
	must(t, err)
	b.remembers("Closed/AgentTool@2")
	b.requests("update")
	b.refreshes(ledger.ErrChanged, "get")
	b.force("none")
}

func TestADeletionWhileReading(t *testing.T) {
	b := newBook(t).has(entry(opened))
	b.observes(b.somebodyWrites(byModule).ResourceVersion, true)
	b.spoil("get", func(c call) error {
		err := c.made()
		b.somebodyDeletes()
		b.observesDeletion(true)
		return err
	})
	b.refreshes(ledger.ErrChanged, "get")
	b.refreshes(ledger.ErrChanged, "get")
	b.force("none")
}

func TestARecordThatAppearsWhileItsAbsenceIsRead(t *testing.T) {
	b := newBook(t).has(entry(opened))
	b.somebodyDeletes()
	b.observesDeletion(true)
	b.spoil("get", func(c call) error {
		err := c.made()
		b.observes(b.somebodyWrites(byModule).ResourceVersion, true)
		return err
	})
	b.refreshes(ledger.ErrChanged, "get")
	b.refreshes(ledger.ErrChanged, "get")
	b.force("Closed/ModuleTool@1")
}

// TestADeletionDoesNotOpenAShutChannel: what the platform says outlives the record.
func TestADeletionDoesNotOpenAShutChannel(t *testing.T) {
	b := newBook(t).has(entry(opened))
	b.Shut(b.key, true)
	b.somebodyDeletes()
	b.observesDeletion(true)
	b.refreshes(ledger.ErrChanged, "get")
	b.has(entry(opened))
	same(t, false, b.WantsOpen(b.key))
	b.Shut(b.key, false)
	same(t, true, b.WantsOpen(b.key))
}

// TestARestoredRecord: whoever deletes a record and puts an older one back has decided, too.
func TestARestoredRecord(t *testing.T) {
	b := newBook(t).has(entry(opened))
	backup := b.stored()
	b.has(entry(closed))
	b.somebodyDeletes()
	backup.ResourceVersion, backup.UID = "", ""
	must(t, admin.Create(t.Context(), backup))
	b.observesDeletion(true)
	b.Observe(b.key, backup.ResourceVersion)
	b.refreshes(ledger.ErrChanged, "get")
	b.force("Open/AgentTool@1")
	same(t, decision.Record{State: v1.StateOpen, Source: v1.SourceAgentTool, Revision: 1}, b.Record(b.key))
}
