package mcpl

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// A connector that answers what it was not asked. Every call gets its own answer
// or none.

func TestAnswersThatComeTwice(t *testing.T) {
	overBoth(t, hostOptions(), func(f *farEnd) {
		for id := 1; ; id++ {
			if _, err := f.recv(); err != nil {
				return
			}
			_ = f.send(answerTo(id))
			_ = f.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":"second"}`, id))
			_ = f.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"error":{"code":-32603,"message":"third"}}`, id))
		}
	}, func(h *host) {
		for id := 1; id <= 20; id++ {
			h.lives(id)
		}
		if n := h.Stats().UnknownAnswers; n < 19*2 { // those to the last call may be under way
			h.Errorf("%d answers were not counted as unknown", n)
		}
	})
}

func TestAnswersThatComeLate(t *testing.T) {
	late := make(chan struct{})
	overBoth(t, hostOptions(), func(f *farEnd) {
		_, _ = f.recv()
		select {
		case late <- struct{}{}: // the call has timed out
		case <-f.over:
		}
		_ = f.send(answerTo(1))
		_, _ = f.recv()
		_ = f.send(answerTo(2))
		f.drain()
	}, func(h *host) {
		call := h.Start("m", nil, time.Minute)
		h.until(time.Minute, call.Done())
		_, err := call.Result()
		var callErr *CallError
		if !errors.As(err, &callErr) || callErr.Outcome != NoResponse || !errors.Is(err, context.DeadlineExceeded) {
			h.Fatalf("got %v", err)
		}
		<-late
		h.lives(2) // its answer comes after the late one
		equal(h, h.Stats(), Stats{UnknownAnswers: 1})
		_, err = call.Result()
		equal(h, err, error(callErr))
	})
}

// TestAnswersToOtherIDs includes ids that look like the host's own.
func TestAnswersToOtherIDs(t *testing.T) {
	ids := []string{
		`2`, `0`, `-1`, `"1"`, `1.0`, `1e0`, `01`, `10e-1`, `18446744073709551617`, `99999999999999999999999`,
		`""`, `"\u0031"`, `null`, `[1]`, `{"id":1}`, `true`, `1 1`,
	}
	overBoth(t, hostOptions(), func(f *farEnd) {
		_, _ = f.recv()
		for _, id := range ids {
			_ = f.send(`{"jsonrpc":"2.0","id":` + id + `,"result":"stolen"}`)
		}
		_ = f.send(`{"jsonrpc":"2.0","result":"stolen"}`)
		_ = f.send(answerTo(1))
		f.drain()
	}, func(h *host) {
		h.lives(1)
		equal(h, h.Stats(), Stats{UnknownAnswers: 11, Malformed: 5, SkippedLines: 2}) // no JSON: 01 and 1 1
	})
}

// TestAnswersThatAreBoth: an error counts, whatever else there is.
func TestAnswersThatAreBoth(t *testing.T) {
	overBoth(t, hostOptions(), func(f *farEnd) {
		_, _ = f.recv()
		_ = f.send(`{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":-32000,"message":"no"}}`)
		f.drain()
	}, func(h *host) {
		_, err := h.Start("m", nil, 0).Wait(h.Context())
		equal(h, err.Error(), "connector answered error -32000: no")
	})
}

func TestAFloodOfAnswersToNothing(t *testing.T) {
	const answers = 20_000
	overBoth(t, hostOptions(), func(f *farEnd) {
		_, _ = f.recv()
		for id := range answers {
			if f.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":"%0600d"}`, id+2, id)) != nil {
				return
			}
		}
		_ = f.send(answerTo(1))
		f.drain()
	}, func(h *host) {
		before := heapInUse()
		h.lives(1)
		equal(h, h.Stats(), Stats{UnknownAnswers: answers})
		heapIsBounded(h.T, before)
	})
}
