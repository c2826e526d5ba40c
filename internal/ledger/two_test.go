package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"mcpl.dev/operator/internal/decision"
	"mcpl.dev/operator/internal/ledger"
)

// accepted is an append that a ledger said was stored.
type accepted struct {
	name    string
	inForce int64 // the revision that it was told
}

// appendAll has a ledger append until n of its appends were accepted, and says which.
func appendAll(ctx context.Context, b *book, who string, n int) ([]accepted, error) {
	var done []accepted
	for range 50 * n {
		if len(done) == n {
			return done, nil
		}
		if err := b.Refresh(ctx, b.key); err != nil && !errors.Is(err, ledger.ErrChanged) {
			return done, err
		}
		e := entry([]decision.Write{opened, closed}[len(done)%2])
		e.HistoryLimit, e.Ref = 200, reference(fmt.Sprintf("%s-%d", who, len(done)))
		got, err := b.Append(ctx, b.key, b.Record(b.key), e)
		switch {
		case err == nil:
			done = append(done, accepted{e.Ref.Name, got.Revision})
		case errors.Is(err, ledger.ErrUnknown):
			return done, err // the test lets every look succeed
		case errors.Is(err, ledger.ErrChanged), apierrors.IsTooManyRequests(err), errors.Is(err, context.DeadlineExceeded):
		default:
			return done, err
		}
	}
	return done, errors.New("it gets nowhere")
}

// TestTwoLedgersAtOnce: two managers that both believe to lead lose nothing and share no revision.
func TestTwoLedgersAtOnce(t *testing.T) {
	const each = 40
	first := newBook(t)
	second := bookOf(t, first.key)
	// Some answers are lost, some requests are refused, some are lost with their answer.
	for i := range 4 * each {
		for _, b := range []*book{first, second} {
			switch i % 5 {
			case 1:
				b.spoil("update", func(c call) error {
					if err := c.unanswered(); err != nil {
						return err
					}
					return context.DeadlineExceeded
				})
			case 3:
				b.spoil("update", fails(refusals["429 too many requests"]))
			case 4:
				b.spoil("update", fails(context.DeadlineExceeded))
			default:
				b.spoil("update", func(c call) error { return c.made() })
			}
		}
	}
	var mu sync.Mutex
	var all []accepted
	var group sync.WaitGroup
	for who, b := range map[string]*book{"first": first, "second": second} {
		group.Go(func() {
			done, err := appendAll(t.Context(), b, who, each)
			if err != nil {
				t.Errorf("%s: %v", who, err)
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, done...)
		})
	}
	group.Wait()

	// The history has every revision once, and every accepted append once: under a revision that was
	// in force by the time that its ledger went on, if it is not in force still.
	entries := map[string]int64{}
	for i, e := range slices.Backward(first.stored().History) {
		if want := int64(2*each - i); e.Revision != want || entries[e.DecisionRef.Name] != 0 {
			t.Errorf("%s has revision %d, want %d; before it had %d", e.DecisionRef.Name, e.Revision, want, entries[e.DecisionRef.Name])
		}
		entries[e.DecisionRef.Name] = e.Revision
	}
	same(t, 2*each, len(entries))
	for _, a := range all {
		if own := entries[a.name]; own == 0 || own > a.inForce {
			t.Errorf("%s was accepted, with revision %d in force; the history has it under %d", a.name, a.inForce, own)
		}
	}
}

// TestALifeOfFaults walks one ledger through faults and foreign writes in a random order, and holds
// it against the API server after every step.
func TestALifeOfFaults(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			b := newBook(t)
			writes := []decision.Write{opened, closed, byModule, lifted}
			for step := range 60 {
				was, before := b.Record(b.key), b.stored()
				aLostLook := false
				for _, verb := range []string{"create", "update"} {
					switch random.IntN(8) {
					case 0:
						b.spoil(verb, fails(apierrors.NewInternalError(errors.New("etcd"))))
					case 1:
						b.spoil(verb, func(c call) error { _ = c.unanswered(); return context.DeadlineExceeded })
					case 2:
						b.spoil(verb, func(c call) error { b.somebodyWrites(writes[random.IntN(4)]); return c.made() })
					case 3:
						b.spoil(verb, fails(refusals["429 too many requests"]))
					case 4:
						b.spoil(verb, func(c call) error { _ = c.unanswered(); return c.unanswered() })
					}
				}
				if random.IntN(4) == 0 {
					aLostLook = true
					b.spoil("get", fails(context.DeadlineExceeded))
				}
				if random.IntN(10) == 0 && before != nil {
					b.somebodyDeletes()
					b.ObserveDeletion(b.key)
					before = nil
				}
				w := writes[random.IntN(4)]
				got, err := b.append(entry(w))
				now := b.stored()
				same(t, got.Decided() || err != nil, true)
				switch {
				case err == nil:
					if now == nil || recordOf(now) != got || got.State != w.State || got.Source != w.Source {
						t.Fatalf("step %d: accepted is %s, stored is %+v", step, inWords(got), now)
					}
				case errors.Is(err, ledger.ErrUnknown):
					if !aLostLook {
						t.Fatalf("step %d: unknown, although it could look", step)
					}
					same(t, was, b.Record(b.key))
				case errors.Is(err, ledger.ErrChanged):
				default: // nothing of it was stored
					if now != nil && now.Record.State == w.State && (before == nil || now.Revision != before.Revision) {
						t.Fatalf("step %d: %v, but stored is %s", step, err, inWords(recordOf(now)))
					}
				}
				// Left to itself, it finds what is in force.
				b.mu.Lock()
				clear(b.faults)
				b.mu.Unlock()
				if err := b.Refresh(t.Context(), b.key); err != nil && !errors.Is(err, ledger.ErrChanged) {
					t.Fatal(err)
				}
				want := "none"
				if now != nil {
					want = inWords(recordOf(now))
				}
				b.remembers(want)
				if t.Failed() {
					t.FailNow()
				}
			}
		})
	}
}
