package mcpl

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestI04InboundTrafficIsHeldUntilRelease(t *testing.T) {
	onHeldWire(t, Options{}, func(b *bench) {
		call := b.conn.Start("featureSets/update", nil, 0)
		b.wrote(request(1, "featureSets/update"))
		b.send(`{"id":1,"method":"channels/register"}`)
		b.send(`{"method":"channels/changed"}`)
		b.send(`{"id":2,"method":7}`) // not even that is answered while held
		b.send(`{"id":3,"method":"push/event"}`)
		b.heard()
		b.wrote()
		b.send(`{"id":1,"result":{"accepted":true}}`)
		b.succeeded(call, `{"accepted":true}`) // fact 23: the answer comes after the registration
		b.heard()
		b.wrote()
		b.conn.Release()
		b.heard("request channels/register ", "notification channels/changed ", "request push/event ")
		b.wrote(result(1), `{"jsonrpc":"2.0","id":2,"error":{"code":-32600,"message":"malformed request"}}`, result(3))
		b.conn.Release()
		b.send(`{"method":"later"}`)
		b.heard("notification later ")
	})
}

func TestHeldTrafficIsBounded(t *testing.T) {
	big := `{"method":"m","params":["` + strings.Repeat("x", 1000) + `"]}`
	cases := map[string]struct {
		o     Options
		frame string
		fits  int
	}{
		"256 messages by default": {Options{}, `{"method":"m"}`, 256},
		"messages":                {Options{HeldMessages: 3}, `{"method":"m"}`, 3},
		"bytes":                   {Options{HeldBytes: 4*len(big) + 1}, big, 4},
		"one always fits":         {Options{HeldBytes: 10}, big, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			onHeldWire(t, tc.o, func(b *bench) {
				for range tc.fits {
					b.peer.send(tc.frame)
				}
				b.lives()
				b.send(tc.frame)
				err := b.ended(HeldOverflow)
				equal(b, err.Error(), "connection closed: too many messages before the policy was settled")
				<-b.conn.Done()
				equal(b, b.peer.farewell, []string{"too many messages before the policy was settled"})
				b.heard()
			})
		})
	}
}

func TestHandlersAreCalledOneAtATimeInOrder(t *testing.T) {
	onWire(t, Options{}, func(b *bench) {
		var want []string
		for i := range 1000 {
			frame := fmt.Sprintf(`{"method":"n%d"}`, i)
			kind := "notification"
			if i%3 == 0 {
				frame, kind = fmt.Sprintf(`{"id":%d,"method":"n%d"}`, i, i), "request"
			}
			b.peer.send(frame)
			want = append(want, fmt.Sprintf("%s n%d ", kind, i))
		}
		b.heard(want...)
		equal(b, b.h.overlap, false)
	})
}

func TestTheReaderStopsWhenTheInboundQueueIsFull(t *testing.T) {
	big := `{"method":"m","params":["` + strings.Repeat("x", 1000) + `"]}`
	cases := map[string]struct {
		o     Options
		frame string
		taken int // one at the handler, the queue, and one in the reader's hands
	}{
		"64 messages by default": {Options{}, `{"method":"m"}`, 1 + 64 + 1},
		"messages":               {Options{InboundMessages: 5}, `{"method":"m"}`, 1 + 5 + 1},
		"bytes":                  {Options{InboundBytes: 3 * len(big)}, big, 1 + 3 + 1},
		"one always fits":        {Options{InboundBytes: 10}, big, 1 + 1 + 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			onWire(t, tc.o, func(b *bench) {
				b.h.hold()
				for range 1000 {
					b.peer.send(tc.frame)
				}
				b.settle()
				equal(b, 1000-len(b.peer.frames), tc.taken)
				b.lives()
				b.h.letGo()
				b.settle()
				equal(b, len(b.h.heard()), 1000)
			})
		})
	}
}

func TestMoreHeldThanTheInboundQueueTakes(t *testing.T) {
	onHeldWire(t, Options{InboundMessages: 2}, func(b *bench) {
		for range 100 {
			b.peer.send(`{"method":"held"}`)
		}
		b.settle()
		b.h.hold()
		b.conn.Release()
		b.peer.send(`{"method":"later"}`)
		b.peer.send(`{"method":"later"}`)
		b.settle()
		equal(b, len(b.peer.frames), 1) // the reader has stopped with one in its hands
		b.h.letGo()
		b.settle()
		heard := b.h.heard()
		equal(b, len(heard), 102)
		equal(b, slices.Index(heard, "notification later "), 100)
	})
}

func TestAnswersDoNotWaitBehindInboundMessages(t *testing.T) {
	onWire(t, Options{}, func(b *bench) {
		call := b.conn.Start("m", nil, 0)
		b.settle()
		b.h.hold()
		for range 50 {
			b.peer.send(`{"method":"n"}`)
		}
		b.peer.send(result(1))
		b.succeeded(call, `{}`)
		equal(b, len(b.h.heard()), 1)
	})
}

func TestAnswerBeforeReconcile(t *testing.T) {
	// semantics §12.4: what a registration starts is written after its answer.
	onWire(t, Options{}, func(b *bench) {
		b.h.onRequest(func(_ context.Context, method string, _ json.RawMessage) Answer {
			return Answer{
				Result: method,
				Then: func() {
					equal(b, b.h.heard(), []string{"request " + method + " "}) // before the next message
					b.conn.Start("open for "+method, nil, 0)
				},
			}
		})
		b.peer.send(`{"id":1,"method":"r1"}` + "\n" + `{"id":2,"method":"r2"}`)
		b.wrote(
			`{"jsonrpc":"2.0","id":1,"result":"r1"}`, request(1, "open for r1"),
			`{"jsonrpc":"2.0","id":2,"result":"r2"}`, request(2, "open for r2"),
		)
	})
}

func TestThenRunsAfterAnErrorAnswerToo(t *testing.T) {
	onWire(t, Options{}, func(b *bench) {
		b.h.onRequest(func(context.Context, string, json.RawMessage) Answer {
			return Answer{Err: MethodNotFound(), Then: func() { b.conn.Start("m", nil, 0) }}
		})
		b.peer.send(`{"id":1,"method":"r"}`)
		b.wrote(`{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"method not served"}}`, request(1, "m"))
	})
}

func TestAPeerThatSendsWithoutReadingIsNotAnsweredIntoMemory(t *testing.T) {
	cases := map[string]struct {
		answer Answer
		served int
	}{
		"messages": {Answer{}, maxAnswers},
		"bytes":    {Answer{Result: strings.Repeat("x", maxAnswerBytes/4)}, 4},
		"one large answer always goes": {
			Answer{Result: strings.Repeat("x", 2*maxAnswerBytes)}, 1,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			onWire(t, Options{}, func(b *bench) {
				b.h.onRequest(func(context.Context, string, json.RawMessage) Answer { return tc.answer })
				b.peer.stopReading()
				for i := range 1000 {
					b.peer.send(request(i, "flood"))
				}
				b.settle()
				equal(b, len(b.h.heard()), tc.served)
				// What was served, the inbound queue, and one in the reader's hands.
				equal(b, 1000-len(b.peer.frames), tc.served+64+1)

				b.clock.Step(30 * time.Second)
				b.ended(WriteTimedOut)
				<-b.conn.Done()
			})
		})
	}
}

func TestAFloodIsServedOnceThePeerReads(t *testing.T) {
	onWire(t, Options{}, func(b *bench) {
		b.peer.stopReading()
		var want []string
		for i := range 500 {
			b.peer.send(request(i, "flood"))
			want = append(want, result(i))
		}
		b.settle()
		b.peer.resume()
		b.wrote(want...)
	})
}

func TestUnwrittenAnswersDoNotHoldUpNotifications(t *testing.T) {
	onWire(t, Options{}, func(b *bench) {
		b.peer.stopReading()
		for i := range maxAnswers {
			b.peer.send(request(i, "flood"))
		}
		b.settle()
		b.h.heard()
		b.peer.send(`{"method":"n"}`)
		b.heard("notification n ")
	})
}

func TestP19StormOfChanges(t *testing.T) {
	onWire(t, Options{}, func(b *bench) {
		b.h.hold()
		for i := range 10000 {
			b.peer.send(fmt.Sprintf(`{"method":"channels/changed","params":{"removed":["c%d"]}}`, i))
		}
		b.settle()
		equal(b, len(b.peer.frames), 10000-66) // they wait in the socket, not here
		b.h.letGo()
		b.settle()
		heard := b.h.heard()
		equal(b, len(heard), 10000)
		equal(b, heard[9999], `notification channels/changed {"removed":["c9999"]}`)
	})
}
