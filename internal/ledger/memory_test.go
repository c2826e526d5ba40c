package ledger_test

import (
	"context"
	"testing"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/internal/decision"
	"mcpl.dev/operator/internal/ledger"
)

func TestMarkUndecidedStoresNothing(t *testing.T) {
	b := newBook(t)
	b.MarkUndecided(b.key)
	same(t, decision.Record{State: v1.StateClosed, Source: v1.SourceDefaultClosed}, b.Record(b.key))
	same(t, (*v1.ChannelRecord)(nil), b.Object(b.key))
	same(t, false, b.WantsOpen(b.key))
	b.stores("none")
	b.requests("")

	restarted := bookOf(t, b.key)
	must(t, restarted.Load(t.Context()))
	restarted.remembers("none") // no pass has looked at it yet

	got, err := b.append(entry(lifted))
	must(t, err)
	same(t, "Open/SubscriptionPolicy@1", inWords(got))
	b.force("Open/SubscriptionPolicy@1")
}

func TestMarkUndecidedLeavesARecordAlone(t *testing.T) {
	b := newBook(t).has(entry(closed))
	b.MarkUndecided(b.key)
	b.force("Closed/AgentTool@1")
	b.requests("")
}

// TestUndecidedIsNotRememberedUnderARecord: once that is gone, no pass has looked at the channel.
func TestUndecidedIsNotRememberedUnderARecord(t *testing.T) {
	marks := map[string]func(*book){
		"marked before there was a record": func(b *book) { b.MarkUndecided(b.key); b.has(entry(closed)) },
		"marked over a record":             func(b *book) { b.has(entry(closed)); b.MarkUndecided(b.key) },
	}
	for name, mark := range marks {
		t.Run(name, func(t *testing.T) {
			b := newBook(t)
			mark(b)
			b.somebodyDeletes()
			b.observesDeletion(true)
			b.refreshes(ledger.ErrChanged, "get")
			b.force("none")
		})
	}
}

// TestUndecidedSurvivesAFailedAppend: nothing was learned, so the channel reads as it did.
func TestUndecidedSurvivesAFailedAppend(t *testing.T) {
	b := newBook(t)
	b.MarkUndecided(b.key)
	b.spoil("create", fails(context.DeadlineExceeded))
	_, err := b.append(entry(opened))
	wantError(t, err, context.DeadlineExceeded)
	b.remembers("Closed/DefaultClosed@0")
	if err := b.Refresh(t.Context(), b.key); err != nil {
		t.Errorf("nothing changed, but: %v", err)
	}
	b.remembers("Closed/DefaultClosed@0")
	_, err = b.append(entry(opened))
	must(t, err)
	b.force("Open/AgentTool@1")
}

func TestShut(t *testing.T) {
	b := newBook(t)
	b.Shut(b.key, false) // of a channel that nobody knows
	same(t, false, b.WantsOpen(b.key))
	b.Shut(b.key, true)
	b.has(entry(opened))
	b.Shut(b.key, true)
	same(t, false, b.WantsOpen(b.key))
	b.force("Open/AgentTool@1") // it is no record
	b.requests("")

	b.has(entry(closed), entry(opened)) // decisions are recorded meanwhile
	same(t, false, b.WantsOpen(b.key))
	b.Shut(b.key, false)
	same(t, true, b.WantsOpen(b.key))
}

func TestWantsOpen(t *testing.T) {
	cases := map[string]struct {
		write decision.Write
		want  bool
	}{
		"open by the resident":   {write: opened, want: true},
		"open by the policy":     {write: lifted, want: true},
		"closed by the resident": {write: closed},
		"closed by nobody":       {write: decision.Write{State: v1.StateClosed, Source: v1.SourceDefaultClosed}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBook(t)
			same(t, false, b.WantsOpen(b.key))
			b.has(entry(tc.write))
			same(t, tc.want, b.WantsOpen(b.key))
		})
	}
}

func TestForget(t *testing.T) {
	t.Run("a channel without a record", func(t *testing.T) {
		b := newBook(t)
		b.MarkUndecided(b.key)
		b.Forget(b.key)
		b.remembers("none")
	})
	t.Run("never a record", func(t *testing.T) {
		b := newBook(t).has(entry(opened))
		b.Forget(b.key)
		b.force("Open/AgentTool@1")
	})
	t.Run("never a channel whose first append is out", func(t *testing.T) {
		b := newBook(t)
		b.Shut(b.key, true)
		b.spoil("create", func(c call) error {
			b.Forget(b.key)
			return c.made()
		})
		_, err := b.append(entry(opened))
		must(t, err)
		b.force("Open/AgentTool@1")
		same(t, false, b.WantsOpen(b.key))
	})
	t.Run("what is not known", func(*testing.T) {
		b := newBook(t)
		b.Forget(b.key)
		b.remembers("none")
	})
}

// TestI10: while an append is out, everybody still reads what was accepted before it.
func TestI10(t *testing.T) {
	b := newBook(t).has(entry(opened))
	b.spoil("update", func(c call) error {
		b.remembers("Open/AgentTool@1")
		same(t, true, b.WantsOpen(b.key))
		err := c.made()
		b.remembers("Open/AgentTool@1") // accepted, but not answered yet
		return err
	})
	_, err := b.append(entry(closed))
	must(t, err)
	b.force("Closed/AgentTool@2")
}
