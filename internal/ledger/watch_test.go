package ledger_test

import (
	"context"
	"testing"

	"mcpl.dev/operator/internal/decision"
	"mcpl.dev/operator/internal/ledger"
)

// observes brings the news of a write, and checks whether it is news.
func (b *book) observes(resourceVersion string, want bool) {
	b.t.Helper()
	if got := b.Observe(b.key, resourceVersion); got != want {
		b.t.Errorf("Observe reports %v, want %v", got, want)
	}
}

func (b *book) observesDeletion(want bool) {
	b.t.Helper()
	if got := b.ObserveDeletion(b.key); got != want {
		b.t.Errorf("ObserveDeletion reports %v, want %v", got, want)
	}
}

// refreshes reads again if need be, and checks the result and the calls.
func (b *book) refreshes(want error, calls string) {
	b.t.Helper()
	b.made()
	wantError(b.t, b.Refresh(b.t.Context(), b.key), want)
	b.requests(calls)
}

func TestOurOwnEchoIsNoNews(t *testing.T) {
	b := newBook(t)
	var versions []string
	for _, e := range []ledger.Entry{entry(opened), entry(closed), note()} {
		b.has(e)
		versions = append(versions, b.stored().ResourceVersion)
	}
	for _, version := range versions { // late, and of writes that were written over since
		b.observes(version, false)
	}
	b.observes(versions[2], false) // a watch that begins anew brings it again
	b.refreshes(nil, "")
	b.force("Closed/AgentTool@2")
}

func TestWhatWasLoadedIsNoNews(t *testing.T) {
	b := newBook(t).has(entry(opened))
	restarted := bookOf(t, b.key)
	must(t, restarted.Load(t.Context()))
	restarted.observes(b.stored().ResourceVersion, false)
	restarted.refreshes(nil, "")
}

func TestAForeignWriteIsNews(t *testing.T) {
	b := newBook(t).has(entry(opened))
	foreign := b.somebodyWrites(byModule)
	b.observes(foreign.ResourceVersion, true)
	b.remembers("Open/AgentTool@1") // news is no reading
	b.refreshes(ledger.ErrChanged, "get")
	b.force("Closed/ModuleTool@2")
	b.refreshes(nil, "")
	b.observes(foreign.ResourceVersion, false)
}

func TestAForeignWriteThatDecidesNothing(t *testing.T) {
	b := newBook(t).has(entry(opened))
	b.observes(b.somebodyTouches().ResourceVersion, true)
	b.refreshes(nil, "get")
	b.force("Open/AgentTool@1")
	_, err := b.append(entry(closed)) // over the object as it is now, without a collision
	must(t, err)
	b.requests("update")
}

func TestAForeignRecordOfAChannelThatHadNone(t *testing.T) {
	b := newBook(t)
	b.MarkUndecided(b.key)
	b.observes(b.somebodyWrites(lifted).ResourceVersion, true)
	b.remembers("Closed/DefaultClosed@0")
	_, err := b.append(entry(closed))
	wantError(t, err, ledger.ErrChanged)
	b.force("Open/SubscriptionPolicy@1")
	b.requests("get")
}

func TestNewsThatCanNotBeReadYet(t *testing.T) {
	b := newBook(t).has(entry(opened))
	b.observes(b.somebodyWrites(byModule).ResourceVersion, true)
	b.spoil("get", fails(context.DeadlineExceeded))
	b.refreshes(context.DeadlineExceeded, "get")
	b.remembers("Open/AgentTool@1")
	b.refreshes(ledger.ErrChanged, "get")
	b.force("Closed/ModuleTool@2")
}

// TestTheEchoComesBeforeTheAnswer: a watch is often faster than the answer to the write.
func TestTheEchoComesBeforeTheAnswer(t *testing.T) {
	for of, base := range bases {
		t.Run(of, func(t *testing.T) {
			b := newBook(t).has(base.before...)
			b.spoil(base.verb, func(c call) error {
				err := c.made()
				b.observes(b.stored().ResourceVersion, false)
				return err
			})
			_, err := b.append(entry(base.next))
			must(t, err)
			b.force(base.is)
			b.requests(base.verb)
			b.refreshes(nil, "")
		})
	}
}

// TestTheEchoOfALostAnswer: the watch brings the append whose answer got lost.
func TestTheEchoOfALostAnswer(t *testing.T) {
	b := newBook(t).has(entry(opened))
	b.spoil("update", func(c call) error {
		must(t, c.unanswered())
		b.observes(b.stored().ResourceVersion, false)
		return context.DeadlineExceeded
	})
	_, err := b.append(entry(closed))
	must(t, err)
	b.force("Closed/AgentTool@2")
	b.requests("update get")
	b.refreshes(nil, "")
}

// TestSomebodyWritesRightBehindUs: the news of it comes while the append is out, and is taken for
// the append's echo. Nobody else will look, so the append does.
func TestSomebodyWritesRightBehindUs(t *testing.T) {
	for of, base := range bases {
		t.Run(of, func(t *testing.T) {
			b := newBook(t).has(base.before...)
			b.spoil(base.verb, func(c call) error {
				err := c.made()
				b.observes(b.stored().ResourceVersion, false)
				b.Observe(b.key, b.somebodyWrites(lifted).ResourceVersion)
				return err
			})
			got, err := b.append(entry(base.next))
			must(t, err) // it was accepted
			same(t, b.Record(b.key), got)
			same(t, lifted, decision.Write{State: got.State, Source: got.Source})
			b.force(inWords(got))
		})
	}
}

func TestSomebodyWritesRightBehindUsAndNobodyCanLook(t *testing.T) {
	b := newBook(t).has(entry(opened))
	b.spoil("get", fails(context.DeadlineExceeded))
	b.spoil("update", func(c call) error {
		err := c.made()
		b.Observe(b.key, b.somebodyWrites(lifted).ResourceVersion)
		return err
	})
	_, err := b.append(entry(closed))
	must(t, err)
	b.remembers("Closed/AgentTool@2")
	b.refreshes(ledger.ErrChanged, "get")
	b.force("Open/SubscriptionPolicy@3")
}

func TestSomebodyWasFasterAndTheNewsCameFirst(t *testing.T) {
	b := newBook(t).has(entry(opened))
	b.spoil("update", func(c call) error {
		b.observes(b.somebodyWrites(byModule).ResourceVersion, false)
		return c.made()
	})
	_, err := b.append(entry(closed))
	wantError(t, err, ledger.ErrChanged)
	b.force("Closed/ModuleTool@2")
	b.refreshes(nil, "")
}

// TestNewsWhileARefusedAppendWasOut: the owner is told by the refusal, and reads before it goes on.
func TestNewsWhileARefusedAppendWasOut(t *testing.T) {
	b := newBook(t).has(entry(opened))
	b.spoil("update", func(call) error {
		b.Observe(b.key, b.somebodyWrites(byModule).ResourceVersion)
		return refusals["429 too many requests"]
	})
	_, err := b.append(entry(closed))
	wantError(t, err, refusals["429 too many requests"])
	b.refreshes(ledger.ErrChanged, "get")
	b.force("Closed/ModuleTool@2")
}

func TestNewsThatComesWhileReading(t *testing.T) {
	b := newBook(t).has(entry(opened))
	b.observes(b.somebodyWrites(byModule).ResourceVersion, true)
	b.spoil("get", func(c call) error {
		err := c.made()
		b.observes(b.somebodyWrites(lifted).ResourceVersion, true)
		return err
	})
	b.refreshes(ledger.ErrChanged, "get")
	b.remembers("Closed/ModuleTool@2")
	b.refreshes(ledger.ErrChanged, "get")
	b.force("Open/SubscriptionPolicy@3")
}
