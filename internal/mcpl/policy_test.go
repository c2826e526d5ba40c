package mcpl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

func (b *bench) negotiate(ctx context.Context, grant Grant, denied ...string) <-chan outcome[Receipt] {
	return inBackground(func() (Receipt, error) { return NegotiatePolicy(ctx, b.conn, grant, denied) })
}

func TestThePolicyRequest(t *testing.T) {
	cases := map[string]struct {
		grant  Grant
		denied []string
		want   string
	}{
		"an empty grant is sent as such": {
			want: `{"effectiveCapabilities":[]}`,
		},
		"paths are sorted": {
			grant: NewGrant("tools", "channels.register", "pushEvents"),
			want:  `{"effectiveCapabilities":["channels.register","pushEvents","tools"]}`,
		},
		"denied": {
			grant:  NewGrant("tools"),
			denied: []string{"channels.typing", "channels.streaming"},
			want:   `{"effectiveCapabilities":["tools"],"deniedCapabilities":["channels.typing","channels.streaming"]}`,
		},
		"no path is in both, or the policy is malformed": {
			grant:  NewGrant("channels.register"),
			denied: []string{"channels.register", "channels.typing"},
			want:   `{"effectiveCapabilities":["channels.register"],"deniedCapabilities":["channels.typing"]}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			onHeldWire(t, Options{}, func(b *bench) {
				got := b.negotiate(b.Context(), tc.grant, tc.denied...)
				b.wrote(`{"jsonrpc":"2.0","id":1,"method":"featureSets/update","params":` + tc.want + `}`)
				b.send(`{"id":1,"result":{"accepted":true}}`)
				equal(b, (<-got).err, nil)
			})
		})
	}
}

func TestPolicyAnswers(t *testing.T) {
	cases := map[string]struct {
		answer string
		want   Receipt
		err    string
		is     error
	}{
		"fact 11 a bare acceptance": {
			answer: `"result":{"accepted":true}`,
			want:   Receipt{Accepted: true},
		},
		"fact 11 a full one": {
			answer: `"result":{"accepted":true,"mode":"full","unavailableFeatures":[],"notes":[]}`,
			want:   Receipt{Accepted: true, Mode: ModeFull},
		},
		"fact 11 a degraded one": {
			answer: `"result":{"accepted":true,"mode":"degraded","unavailableFeatures":[` +
				`{"featureSet":"relay.messaging","missingCapabilities":["tools"],"effect":"disabled"},"relay.history",{"featureSet":""},{},5],` +
				`"notes":["mind\u001b the gap",5]}`,
			want: Receipt{
				Accepted: true, Mode: ModeDegraded,
				UnavailableFeatures: []string{"relay.messaging", "relay.history"},
				Notes:               []string{"mind the gap"},
			},
		},
		"an unknown mode": {
			answer: `"result":{"accepted":true,"mode":"turbo","fallback":"close"}`,
			want:   Receipt{Accepted: true},
		},
		"I05 refused, mcp-only": {
			answer: `"result":{"accepted":false,"fallback":"mcp-only"}`,
			want:   Receipt{Fallback: FallbackMCPOnly},
		},
		"refused, close": {
			answer: `"result":{"accepted":false,"fallback":"close","notes":["why"]}`,
			want:   Receipt{Fallback: FallbackClose, Notes: []string{"why"}},
		},
		"refused without a word": {
			answer: `"result":{"accepted":false}`,
			want:   Receipt{Fallback: FallbackMCPOnly},
		},
		"an answer that accepts nothing is a refusal": {
			answer: `"result":{"accepted":"true"}`,
			want:   Receipt{Fallback: FallbackMCPOnly},
		},
		"an error": {
			answer: `"error":{"code":-32602,"message":"malformed featureSets/update"}`,
			err:    "connector answered error -32602: malformed featureSets/update",
		},
		"an answer of the wrong shape": {
			answer: `"result":true`,
			err:    "malformed answer", is: ErrMalformedAnswer,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			onHeldWire(t, Options{}, func(b *bench) {
				got := b.negotiate(b.Context(), Grant{})
				b.settle()
				b.send(`{"id":1,` + tc.answer + `}`)
				res := <-got
				equal(b, res.value, tc.want)
				if text := fmt.Sprint(res.err); tc.err != "" && text != tc.err || tc.err == "" && res.err != nil {
					b.Errorf("error %s, want %s", text, tc.err)
				}
				if tc.is != nil && !errors.Is(res.err, tc.is) {
					b.Errorf("%v is not %v", res.err, tc.is)
				}
				b.lives() // what follows from it is the caller's to do
			})
		})
	}
}

func TestI06PolicyUnansweredFor15s(t *testing.T) {
	onHeldWire(t, Options{}, func(b *bench) {
		got := b.negotiate(b.Context(), NewGrant("tools"))
		b.pass(14 * time.Second)
		equal(b, len(got), 0)
		b.pass(time.Second)
		res := <-got
		var err *CallError
		if !errors.As(res.err, &err) || err.Outcome != NoResponse {
			b.Fatalf("got %v", res.err)
		}
		b.lives()
		b.send(`{"id":1,"result":{"accepted":true}}`) // too late to count
		equal(b, b.conn.Stats().UnknownAnswers, uint64(1))
		b.conn.Release()
		b.wrote(`{"jsonrpc":"2.0","id":1,"method":"featureSets/update","params":{"effectiveCapabilities":["tools"]}}`)
		b.conn.Start("tools/list", nil, 0)
		b.wrote(request(2, "tools/list"))
	})
}

func TestThePolicyEndsWithItsContext(t *testing.T) {
	onHeldWire(t, Options{}, func(b *bench) {
		ctx, cancel := context.WithCancel(b.Context())
		got := b.negotiate(ctx, Grant{})
		b.settle()
		cancel()
		equal(b, (<-got).err, context.Canceled)
		b.settle()
		equal(b, len(b.conn.awaited), 0) // nothing goes on waiting for it
		b.lives()
	})
}

func TestThePolicyOfALostConnection(t *testing.T) {
	onHeldWire(t, Options{}, func(b *bench) {
		got := b.negotiate(b.Context(), Grant{})
		b.settle()
		b.peer.hangUp(io.EOF)
		var err *CallError
		if res := <-got; !errors.As(res.err, &err) || err.Outcome != NoResponse {
			b.Fatalf("got %v", res.err)
		}
		if res := <-b.negotiate(b.Context(), Grant{}); !errors.As(res.err, &err) || err.Outcome != NotSent {
			b.Fatalf("got %v", res.err)
		}
	})
}

func TestWhatAReceiptSaysIsBounded(t *testing.T) {
	note := `"` + strings.Repeat("n", 1000) + `",`
	raw := `{"accepted":true,"notes":[` + strings.Repeat(note, 1000) + `""],"unavailableFeatures":[` + strings.Repeat(note, 1000) + `""]}`
	r, err := parseReceipt(json.RawMessage(raw))
	equal(t, err, nil)
	equal(t, len(r.Notes), maxNames)
	equal(t, len(r.Notes[0]), maxNameBytes)
	equal(t, len(r.UnavailableFeatures), maxNames)
	equal(t, len(r.UnavailableFeatures[0]), maxNameBytes)
}
