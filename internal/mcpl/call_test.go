package mcpl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"
)

func request(id int, method string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q}`, id, method)
}

func result(id int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, id)
}

func TestRequestsLeaveInTheOrderOfStart(t *testing.T) {
	onWire(t, Options{}, func(b *bench) {
		b.peer.stopReading()
		var want []string
		for i := 1; i <= 200; i++ {
			b.conn.Start(fmt.Sprintf("m%d", i), nil, time.Minute)
			want = append(want, request(i, fmt.Sprintf("m%d", i)))
		}
		b.peer.resume()
		b.wrote(want...)
	})
}

func TestParamsAreEncodedOnOneLine(t *testing.T) {
	onWire(t, Options{}, func(b *bench) {
		b.conn.Start("m", OpenParams{ChannelID: "a<b>&", Address: []byte("{\n \"x\": 1}")}, 0)
		b.wrote(`{"jsonrpc":"2.0","id":1,"method":"m","params":{"channelId":"a<b>&","address":{"x":1}}}`)
	})
}

func TestIDsAreNeverReused(t *testing.T) {
	onWire(t, Options{}, func(b *bench) {
		b.conn.Start("a", nil, 0)
		b.settle()
		b.send(result(1))
		b.conn.Start("b", func() {}, 0) // fails before it gets an id
		b.conn.Start("c", nil, 0).Cancel()
		b.conn.Start("d", nil, 0)
		b.settle()
		lines := b.peer.lines()
		equal(b, lines[len(lines)-1], request(3, "d"))
	})
}

func TestFact18IDsOverlap(t *testing.T) {
	onWire(t, Options{}, func(b *bench) {
		call := b.conn.Start("ours", nil, 0)
		b.wrote(request(1, "ours"))
		b.send(request(1, "theirs"))
		b.heard("request theirs ")
		b.wrote(result(1))
		b.pending(call)
		b.send(`{"jsonrpc":"2.0","id":1,"result":"answer"}`)
		b.succeeded(call, `"answer"`)
	})
}

func TestAnswersToUnknownIDsAreDroppedAndCounted(t *testing.T) {
	onWire(t, Options{}, func(b *bench) {
		call := b.conn.Start("m", nil, 0)
		b.settle()
		for _, id := range []string{`2`, `"1"`, `1.0`, `01`, `-1`, `0`, `99999999999999999999`, `1e0`} {
			b.send(`{"id":` + id + `,"result":{}}`)
		}
		b.pending(call)
		// 01 is not JSON at all.
		equal(b, b.conn.Stats(), Stats{UnknownAnswers: 7, SkippedLines: 1})

		b.send(`{"id":1,"result":"first"}`)
		b.send(`{"id":1,"result":"second"}`)
		b.send(`{"id":1,"error":{"code":1}}`)
		b.succeeded(call, `"first"`)
		equal(b, b.conn.Stats().UnknownAnswers, uint64(9))
		b.lives()
	})
}

func TestAnAnswerToARequestThatWasNotSentIsUnknown(t *testing.T) {
	onWire(t, Options{}, func(b *bench) {
		b.peer.stopReading()
		inWrite := b.conn.Start("in write", nil, 0)
		queued := b.conn.Start("queued", nil, 0)
		b.settle()
		b.send(`{"id":2,"result":"guessed"}`)
		b.pending(queued)
		equal(b, b.conn.Stats().UnknownAnswers, uint64(1))

		// Of the one that is being written the peer may have seen all.
		b.send(`{"id":1,"result":"early"}`)
		b.succeeded(inWrite, `"early"`)
		b.peer.resume()
		b.pending(queued)
		b.send(`{"id":2,"result":"real"}`)
		b.succeeded(queued, `"real"`)
	})
}

func TestFact24ATimeoutCountsFromTheCompletedWrite(t *testing.T) {
	onWire(t, Options{WriteTimeout: time.Hour}, func(b *bench) {
		b.peer.stopReading()
		first := b.conn.Start("first", nil, time.Minute)
		second := b.conn.Start("second", nil, time.Minute)
		b.pass(10 * time.Minute)
		b.pending(first)
		b.peer.letOne()
		b.pass(59 * time.Second)
		b.pending(first)
		b.pass(time.Second)
		err := b.failed(first, NoResponse)
		equal(b, errors.Is(err, context.DeadlineExceeded), true)
		equal(b, err.Error(), "no response: timed out")

		b.pending(second) // still being written
		b.peer.letOne()
		b.pass(59 * time.Second)
		b.pending(second)
		b.pass(time.Second)
		b.failed(second, NoResponse)

		b.send(result(1)) // late
		b.failed(first, NoResponse)
		equal(b, b.conn.Stats().UnknownAnswers, uint64(1))
		b.lives()
	})
}

func TestNoTimeout(t *testing.T) {
	onWire(t, Options{}, func(b *bench) {
		call := b.conn.Start("m", nil, 0)
		for range 10 {
			b.pass(time.Hour)
		}
		b.pending(call)
		b.send(result(1))
		b.succeeded(call, `{}`)
	})
}

func TestI03TransportLostWithCallsPending(t *testing.T) {
	// The grant is emptied before a request fails for the end of the connection.
	var call, inWrite, queued *Call
	granted := true
	o := Options{OnClosing: func(*ConnError) {
		granted = false
		for _, c := range []*Call{call, inWrite, queued} {
			select {
			case <-c.Done():
				t.Error("a request failed before the grant was emptied")
			default:
			}
		}
	}}
	onWire(t, o, func(b *bench) {
		call = b.conn.Start("written", nil, 0)
		b.settle()
		b.peer.stopReading()
		inWrite = b.conn.Start("in write", nil, 0)
		queued = b.conn.Start("queued", nil, 0)
		b.settle()
		b.peer.hangUp(io.ErrUnexpectedEOF)

		err := b.failed(call, NoResponse)
		equal(b, err.Error(), "no response: connection lost")
		var connErr *ConnError
		equal(b, errors.As(err, &connErr), true)
		equal(b, granted, false)
		b.failed(inWrite, NoResponse) // part of it may have reached the connector
		equal(b, b.failed(queued, NotSent).Error(), "not sent: connection lost")
		b.ended(ConnectionLost)
		<-b.conn.Done()

		equal(b, b.failed(b.conn.Start("late", nil, 0), NotSent).Error(), "not sent: connection lost")
		equal(b, errors.As(b.conn.Notify("late", nil), &connErr), true)
	})
}

func TestParamsThatCannotBeEncodedAreNotSent(t *testing.T) {
	onWire(t, Options{}, func(b *bench) {
		b.failed(b.conn.Start("m", func() {}, 0), NotSent)
		if b.conn.Notify("m", func() {}) == nil {
			b.Error("the notification was taken")
		}
		b.wrote()
		b.lives()
	})
}

func TestCancel(t *testing.T) {
	onWire(t, Options{}, func(b *bench) {
		b.peer.stopReading()
		inWrite := b.conn.Start("in write", nil, 0)
		queued := b.conn.Start("queued", nil, 0)
		last := b.conn.Start("last", nil, 0)
		b.settle()
		queued.Cancel()
		inWrite.Cancel()
		equal(b, errors.Is(b.failed(queued, NotSent), context.Canceled), true)
		equal(b, errors.Is(b.failed(inWrite, NoResponse), context.Canceled), true)
		b.peer.resume()
		b.wrote(request(1, "in write"), request(3, "last"))
		last.Cancel()
		b.failed(last, NoResponse)
		last.Cancel()

		answered := b.conn.Start("answered", nil, 0)
		b.settle()
		b.send(result(4))
		answered.Cancel()
		b.succeeded(answered, `{}`)
	})
}

func TestWait(t *testing.T) {
	onWire(t, Options{}, func(b *bench) {
		call := b.conn.Start("m", nil, 0)
		ctx, cancel := context.WithCancel(b.Context())
		cancel()
		if _, err := call.Wait(ctx); !errors.Is(err, context.Canceled) {
			b.Errorf("Wait returned %v", err)
		}
		if raw, err := call.Result(); raw != nil || err != nil {
			b.Errorf("Result before the end: %s, %v", raw, err)
		}
		b.settle()
		b.peer.send(result(1))
		raw, err := call.Wait(b.Context())
		if err != nil {
			b.Error(err)
		}
		equal(b, string(raw), `{}`)
	})
}

func TestNotify(t *testing.T) {
	onWire(t, Options{}, func(b *bench) {
		if err := b.conn.Notify("a", nil); err != nil {
			b.Error(err)
		}
		if err := b.conn.Notify("b", TypingParams{ChannelID: "c", Op: TypingStart}); err != nil {
			b.Error(err)
		}
		b.wrote(`{"jsonrpc":"2.0","method":"a"}`, `{"jsonrpc":"2.0","method":"b","params":{"channelId":"c","op":"start"}}`)
	})
}

func TestNotificationsAreBounded(t *testing.T) {
	onWire(t, Options{}, func(b *bench) {
		b.peer.stopReading()
		taken := 0
		for b.conn.Notify("n", nil) == nil {
			taken++
			b.settle()
		}
		equal(b, taken, maxNotifications+1) // one is being written
		equal(b, b.conn.Notify("n", nil), ErrOutboundFull)
		call := b.conn.Start("a call is always taken", nil, 0)
		b.peer.resume()
		b.settle()
		equal(b, len(b.peer.lines()), taken+1)
		b.pending(call)
		if err := b.conn.Notify("n", nil); err != nil {
			b.Error(err)
		}
	})
}
