package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/internal/decision"
	"mcpl.dev/operator/internal/ledger"
)

var records = schema.GroupResource{Group: "mcpl.dev", Resource: "channelrecords"}

// refusals say that nothing was stored.
var refusals = map[string]error{
	"429 too many requests":  apierrors.NewTooManyRequests("slow down", 1),
	"403 forbidden":          apierrors.NewForbidden(records, "x", errors.New("the namespace is going")),
	"422 invalid":            apierrors.NewInvalid(schema.GroupKind{Group: "mcpl.dev", Kind: "ChannelRecord"}, "x", nil),
	"400 bad request":        apierrors.NewBadRequest("what?"),
	"401 unauthorized":       apierrors.NewUnauthorized("who?"),
	"413 too large":          apierrors.NewRequestEntityTooLargeError("no"),
	"404 no such collection": apierrors.NewNotFound(records, ""),
}

// silences leave open whether anything was stored.
var silences = map[string]error{
	"500 internal error":       apierrors.NewInternalError(errors.New("etcd")),
	"500 server timeout":       apierrors.NewServerTimeout(records, "update", 2),
	"503 unavailable":          apierrors.NewServiceUnavailable("later"),
	"504 timeout":              apierrors.NewTimeoutError("the request did not complete", 0),
	"502 of something between": apierrors.NewGenericServerResponse(http.StatusBadGateway, "put", records, "x", "", 0, true),
	"the deadline":             context.DeadlineExceeded,
	"a cancelled context":      context.Canceled,
	"a connection reset":       fmt.Errorf("put: %w", syscall.ECONNRESET),
	"a cut answer":             io.ErrUnexpectedEOF,
}

// bases are what an append may build upon.
var bases = map[string]struct {
	before []ledger.Entry
	verb   string
	was    string
	next   decision.Write
	is     string
}{
	"the first": {verb: "create", was: "none", next: opened, is: "Open/AgentTool@1"},
	"a further": {before: []ledger.Entry{entry(opened), entry(byModule)}, verb: "update",
		was: "Closed/ModuleTool@2", next: closed, is: "Closed/AgentTool@3"},
}

func TestRefusedOutright(t *testing.T) {
	for of, base := range bases {
		for name, refusal := range refusals {
			if base.verb == "update" && apierrors.IsNotFound(refusal) {
				continue // that is a record which was deleted
			}
			t.Run(of+": "+name, func(t *testing.T) {
				b := newBook(t).has(base.before...)
				b.spoil(base.verb, fails(refusal))
				got, err := b.append(entry(base.next))
				wantError(t, err, refusal)
				same(t, base.was, inWords(got))
				b.force(base.was)
				b.requests(base.verb) // nothing to look up, and not made again

				_, err = b.append(entry(base.next))
				must(t, err)
				b.force(base.is)
				b.requests(base.verb)
			})
		}
	}
}

// TestTheAPIRefuses: what the schema forbids never gets into the memory either.
func TestTheAPIRefuses(t *testing.T) {
	b := newBook(t).has(entry(opened))
	_, err := b.append(entry(decision.Write{State: v1.StateTunedOut, Source: v1.SourceAgentTool})) // without parameters
	if !apierrors.IsInvalid(err) {
		t.Errorf("the error is %v", err)
	}
	b.force("Open/AgentTool@1")
	_, err = b.append(entry(decision.Write{State: v1.StateClosed, Source: "Somebody"}))
	if !apierrors.IsInvalid(err) {
		t.Errorf("the error is %v", err)
	}
	b.force("Open/AgentTool@1")
	_, err = b.append(entry(closed))
	must(t, err)
	b.force("Closed/AgentTool@2") // a refused append uses up no revision
}

func TestNotAnsweredAndNotStored(t *testing.T) {
	for of, base := range bases {
		for name, silence := range silences {
			t.Run(of+": "+name, func(t *testing.T) {
				b := newBook(t).has(base.before...)
				b.spoil(base.verb, fails(silence))
				got, err := b.append(entry(base.next))
				wantError(t, err, silence)
				if errors.Is(err, ledger.ErrUnknown) || errors.Is(err, ledger.ErrChanged) {
					t.Errorf("it is known that nothing was stored: %v", err)
				}
				same(t, base.was, inWords(got))
				b.force(base.was)
				b.requests(base.verb + " get") // looked up, not made again
			})
		}
	}
}

func TestAnswerLost(t *testing.T) {
	for of, base := range bases {
		for name, silence := range silences {
			t.Run(of+": "+name, func(t *testing.T) {
				b := newBook(t).has(base.before...)
				b.spoil(base.verb, losesAnswer(silence))
				got, err := b.append(entry(base.next))
				must(t, err)
				same(t, base.is, inWords(got))
				b.force(base.is)
				b.requests(base.verb + " get")
				same(t, len(base.before)+1, len(b.stored().History))
			})
		}
	}
}

// TestRetriedBehindOurBack: an API server's 5xx with Retry-After has the client make the request
// again by itself. If the first one took place, the second one collides with it.
func TestRetriedBehindOurBack(t *testing.T) {
	for of, base := range bases {
		t.Run(of, func(t *testing.T) {
			b := newBook(t).has(base.before...)
			b.spoil(base.verb, func(c call) error {
				must(t, c.unanswered())
				err := c.unanswered()
				if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
					t.Errorf("the second request does not collide with the first: %v", err)
				}
				return err
			})
			got, err := b.append(entry(base.next))
			must(t, err)
			same(t, base.is, inWords(got))
			b.force(base.is)
			same(t, len(base.before)+1, len(b.stored().History))
		})
	}
}

func TestANoteWhoseAnswerIsLost(t *testing.T) {
	b := newBook(t).has(entry(opened))
	b.spoil("update", losesAnswer(context.DeadlineExceeded))
	_, err := b.append(note())
	must(t, err)
	b.force("Open/AgentTool@1")
	same(t, 2, len(b.stored().History))
	same(t, b.stored().History, b.Object(b.key).History)
}

func TestNobodyKnows(t *testing.T) {
	for of, base := range bases {
		for _, stored := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, stored: %v", of, stored), func(t *testing.T) {
				b := newBook(t).has(base.before...)
				lost := fails(io.ErrUnexpectedEOF)
				if stored {
					lost = losesAnswer(io.ErrUnexpectedEOF)
				}
				b.spoil(base.verb, lost)
				b.spoil("get", fails(context.DeadlineExceeded))
				got, err := b.append(entry(base.next))
				wantError(t, err, ledger.ErrUnknown)
				same(t, base.was, inWords(got))
				b.remembers(base.was) // the memory is changed by an accepted append only
				b.requests(base.verb + " get")

				// While nobody can look, nothing is written over it.
				b.spoil("get", fails(context.DeadlineExceeded))
				_, err = b.append(entry(closed))
				wantError(t, err, context.DeadlineExceeded)
				b.requests("get")
				b.remembers(base.was)

				// The next use reads first.
				err = b.Refresh(t.Context(), b.key)
				b.requests("get")
				if stored {
					wantError(t, err, ledger.ErrChanged)
					b.force(base.is)
				} else {
					must(t, err)
					b.force(base.was)
				}
				must(t, b.Refresh(t.Context(), b.key))
				b.requests("")
			})
		}
	}
}

// TestAnAppendReadsFirstWhereNobodyKnows: an append instead of a Refresh judges nothing anew by itself.
func TestAnAppendReadsFirstWhereNobodyKnows(t *testing.T) {
	b := newBook(t).has(entry(opened))
	b.spoil("update", losesAnswer(io.ErrUnexpectedEOF))
	b.spoil("get", fails(context.DeadlineExceeded))
	_, err := b.append(entry(closed))
	wantError(t, err, ledger.ErrUnknown)
	_, err = b.append(entry(closed))
	wantError(t, err, ledger.ErrChanged)
	b.force("Closed/AgentTool@2")
	b.requests("update get get")
}

func TestSomebodyElseWrote(t *testing.T) {
	cases := map[string]struct {
		before []ledger.Entry
		verb   string
		does   func(*book)
		want   string
	}{
		"created meanwhile": {
			verb: "create", does: func(b *book) { b.somebodyWrites(lifted) }, want: "Open/SubscriptionPolicy@1",
		},
		"changed meanwhile": {
			before: []ledger.Entry{entry(opened)}, verb: "update",
			does: func(b *book) { b.somebodyWrites(byModule) }, want: "Closed/ModuleTool@2",
		},
		"touched meanwhile": {
			before: []ledger.Entry{entry(opened)}, verb: "update",
			does: func(b *book) { b.somebodyTouches() }, want: "Open/AgentTool@1",
		},
		"deleted meanwhile": {
			before: []ledger.Entry{entry(opened)}, verb: "update",
			does: func(b *book) { b.somebodyDeletes() }, want: "none",
		},
		"deleted and made anew meanwhile": {
			before: []ledger.Entry{entry(opened)}, verb: "update",
			does: func(b *book) { b.somebodyDeletes(); b.somebodyWrites(byModule) }, want: "Closed/ModuleTool@1",
		},
	}
	answers := map[string]fault{
		"answered":               func(c call) error { return c.made() },
		"and the answer is lost": func(c call) error { _ = c.unanswered(); return context.DeadlineExceeded },
	}
	for name, tc := range cases {
		for how, answer := range answers {
			t.Run(name+", "+how, func(t *testing.T) {
				b := newBook(t).has(tc.before...)
				b.spoil(tc.verb, func(c call) error {
					tc.does(b)
					return answer(c)
				})
				got, err := b.append(entry(closed))
				wantError(t, err, ledger.ErrChanged)
				b.requests(tc.verb + " get")
				if tc.want == "none" {
					// That a record is gone is for the owner to find, who says so in an Event.
					wantError(t, b.Refresh(t.Context(), b.key), ledger.ErrChanged)
					got = b.Record(b.key)
				}
				same(t, tc.want, inWords(got))
				b.force(tc.want) // fresh at once: the rules are applied again to this

				_, err = b.append(entry(closed))
				must(t, err)
				b.force(fmt.Sprintf("Closed/AgentTool@%d", got.Revision+1))
			})
		}
	}
}

func TestSomebodyElseCreatedAndDeleted(t *testing.T) {
	b := newBook(t)
	b.spoil("create", func(c call) error {
		b.somebodyWrites(lifted)
		err := c.made()
		b.somebodyDeletes()
		return err
	})
	_, err := b.append(entry(closed))
	wantError(t, err, ledger.ErrChanged) // a collision is no failed append, although nothing is left of it
	b.force("none")
	_, err = b.append(entry(closed))
	must(t, err)
	b.force("Closed/AgentTool@1")
}

func TestSomebodyElseWroteAndNobodyCanLook(t *testing.T) {
	b := newBook(t).has(entry(opened))
	b.spoil("update", func(c call) error {
		b.somebodyWrites(byModule)
		return c.made()
	})
	b.spoil("get", fails(apierrors.NewServiceUnavailable("later")))
	_, err := b.append(entry(closed))
	// A collision is no failed append, so this must not look like one; and it may have been our own.
	if !errors.Is(err, ledger.ErrUnknown) && !errors.Is(err, ledger.ErrChanged) {
		t.Errorf("the error is %v", err)
	}
	b.remembers("Open/AgentTool@1")
	b.requests("update get")

	wantError(t, b.Refresh(t.Context(), b.key), ledger.ErrChanged)
	b.force("Closed/ModuleTool@2")
}

// TestB18: a close that can't be stored leaves the record as it was, here and after a restart.
func TestB18(t *testing.T) {
	b := newBook(t).has(entry(opened))
	b.spoil("update", fails(apierrors.NewInternalError(errors.New("etcd is full"))))
	if _, err := b.append(entry(closed)); err == nil {
		t.Fatal("stored")
	}
	b.force("Open/AgentTool@1")
	same(t, true, b.WantsOpen(b.key))

	restarted := bookOf(t, b.key)
	must(t, restarted.Load(t.Context()))
	restarted.force("Open/AgentTool@1")
}

// TestAnAppendWhoseCallerGaveUp: the look that follows a cancelled append is not cancelled with it.
func TestAnAppendWhoseCallerGaveUp(t *testing.T) {
	b := newBook(t).has(entry(opened))
	ctx, cancel := context.WithCancel(t.Context())
	b.spoil("update", func(c call) error {
		must(t, c.unanswered())
		cancel()
		return ctx.Err()
	})
	got, err := b.Append(ctx, b.key, b.Record(b.key), entry(closed))
	must(t, err)
	same(t, "Closed/AgentTool@2", inWords(got))
	b.force("Closed/AgentTool@2")
}

// TestNoNamespace: a record can't be made in a namespace that is not there, and that is known.
func TestNoNamespace(t *testing.T) {
	b := newBook(t)
	b.key.Namespace = "nowhere"
	_, err := b.append(entry(opened))
	if !apierrors.IsNotFound(err) {
		t.Errorf("the error is %v", err)
	}
	b.remembers("none")
	b.requests("create")
}

// TestALateLanding: a request can take place after the look that found nothing of it. Nothing is
// written over it, and it is found.
func TestALateLanding(t *testing.T) {
	for of, base := range bases {
		t.Run(of, func(t *testing.T) {
			b := newBook(t).has(base.before...)
			var lands func() error
			b.spoil(base.verb, func(c call) error {
				lands = c.unanswered
				return context.DeadlineExceeded
			})
			_, err := b.append(entry(base.next))
			wantError(t, err, context.DeadlineExceeded)
			must(t, lands())

			_, err = b.append(entry(byModule))
			wantError(t, err, ledger.ErrChanged)
			b.force(base.is)
		})
	}
}
