package mcpl

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/clock"
)

func TestOptionDefaults(t *testing.T) {
	o := Options{}.withDefaults()
	equal(t, o, Options{
		Clock:           clock.RealClock{},
		InboundMessages: 64, InboundBytes: 1 << 20,
		HeldMessages: 256, HeldBytes: 8 << 20,
		WriteTimeout: 30 * time.Second, PingEvery: 10 * time.Second, PingTimeout: 30 * time.Second,
	})
	set := Options{Clock: o.Clock, InboundMessages: 1, InboundBytes: 2, HeldMessages: 3, HeldBytes: 4, WriteTimeout: 5, PingEvery: 6, PingTimeout: 7}
	equal(t, set.withDefaults(), set)
}

func TestClose(t *testing.T) {
	onWire(t, Options{}, func(b *bench) {
		equal(b, b.conn.Err(), nil)
		b.conn.Close("first\nreason")
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() { b.conn.Close("again") })
		}
		wg.Wait()
		<-b.conn.Done()
		equal(b, b.ended(ClosedByHost).Error(), "connection closed: firstreason")
		equal(b, b.peer.farewell, []string{"firstreason"})
		b.conn.Close("after the end")
		b.conn.Release()
	})
}

func TestCloseFromAHandler(t *testing.T) {
	onWire(t, Options{}, func(b *bench) {
		b.h.onRequest(func(context.Context, string, json.RawMessage) Answer {
			b.conn.Close("from the handler")
			return Answer{}
		})
		b.peer.send(request(1, "m"))
		<-b.conn.Done()
		b.ended(ClosedByHost)
		b.wrote()
	})
}

func TestDoneWaitsForTheHandler(t *testing.T) {
	onWire(t, Options{}, func(b *bench) {
		b.h.hold()
		b.send(`{"method":"m"}`)
		b.conn.Close("")
		b.settle()
		select {
		case <-b.conn.Done():
			b.Fatal("Done is closed while a handler runs")
		default:
		}
		b.h.letGo()
		<-b.conn.Done()
	})
}

func TestTheHandlersContextEndsWithTheConnection(t *testing.T) {
	onWire(t, Options{}, func(b *bench) {
		b.h.onRequest(func(ctx context.Context, _ string, _ json.RawMessage) Answer {
			<-ctx.Done()
			return Answer{}
		})
		b.send(request(1, "m"))
		b.conn.Close("")
		<-b.conn.Done()
	})
}

func TestNothingIsDispatchedAfterTheEnd(t *testing.T) {
	onWire(t, Options{}, func(b *bench) {
		b.h.hold()
		for range 200 { // more than fits, so that the reader waits too
			b.peer.send(`{"method":"m"}`)
		}
		b.settle()
		b.conn.Close("")
		b.settle()
		b.h.letGo()
		<-b.conn.Done()
		equal(b, len(b.h.heard()), 1)
	})
}

func TestAPanicInAHandlerClosesTheConnection(t *testing.T) {
	cases := map[string]func(context.Context, string, json.RawMessage) Answer{
		"in the handler": func(context.Context, string, json.RawMessage) Answer { panic("canary") },
		"in Then": func(context.Context, string, json.RawMessage) Answer {
			return Answer{Then: func() { panic("canary") }}
		},
		"of the runtime": func(_ context.Context, method string, _ json.RawMessage) Answer {
			return Answer{Result: method[len(method)]}
		},
	}
	for name, f := range cases {
		t.Run(name, func(t *testing.T) {
			onWire(t, Options{}, func(b *bench) {
				b.h.onRequest(f)
				b.send(request(1, "m") + "\n" + request(2, "m"))
				err := b.ended(HandlerPanicked)
				if err.Panic == nil || !strings.Contains(string(err.Stack), "conn_test.go") {
					b.Errorf("panic %v, stack %s", err.Panic, err.Stack)
				}
				if strings.Contains(err.Error(), "canary") {
					b.Errorf("the panic's value is in the text: %s", err)
				}
				<-b.conn.Done()
				equal(b, len(b.h.heard()), 1)
				equal(b, b.peer.farewell, []string{"internal error"})
			})
		})
	}
}

func TestEndsOfTheTransport(t *testing.T) {
	cases := map[string]struct {
		err  error
		want ConnError
	}{
		"the connector says goodbye": {
			&PeerClosedError{Code: 4001, Reason: "taken over"},
			ConnError{Cause: ClosedByConnector, Code: 4001, Reason: "taken over"},
		},
		"a message is too big": {ErrMessageTooBig, ConnError{Cause: MessageTooBig}},
		"the socket breaks":    {io.EOF, ConnError{Cause: ConnectionLost}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			onWire(t, Options{}, func(b *bench) {
				b.peer.send(`{"method":"last words"}`)
				b.heard("notification last words ")
				b.peer.hangUp(tc.err)
				<-b.conn.Done()
				equal(b, *b.ended(tc.want.Cause), tc.want)
			})
		})
	}
}

func TestTheReadersReasonReplacesABareLoss(t *testing.T) {
	// The writer meets the dead socket first, the reader knows why it died.
	lost := &ConnError{Cause: ConnectionLost}
	for name, tc := range map[string]struct {
		first, second *ConnError
		want          Cause
	}{
		"goodbye after loss": {lost, &ConnError{Cause: ClosedByConnector, Code: 4001}, ClosedByConnector},
		"too big after loss": {lost, &ConnError{Cause: MessageTooBig}, MessageTooBig},
		"loss after goodbye": {&ConnError{Cause: ClosedByConnector}, lost, ClosedByConnector},
		"loss after close":   {&ConnError{Cause: ClosedByHost}, lost, ClosedByHost},
		"goodbye after close": {
			&ConnError{Cause: ClosedByHost}, &ConnError{Cause: ClosedByConnector}, ClosedByHost,
		},
	} {
		t.Run(name, func(t *testing.T) {
			onWire(t, Options{}, func(b *bench) {
				b.conn.fail(tc.first)
				b.conn.fail(tc.second)
				<-b.conn.Done()
				b.ended(tc.want)
			})
		})
	}
}

func TestAConnectorThatStopsReading(t *testing.T) {
	onWire(t, Options{WriteTimeout: 20 * time.Second}, func(b *bench) {
		b.peer.stopReading()
		call := b.conn.Start("m", nil, time.Second)
		b.pass(19 * time.Second)
		b.pending(call)
		b.pass(time.Second)
		b.ended(WriteTimedOut)
		b.failed(call, NoResponse)
		<-b.conn.Done()
	})
}

func TestAWriteIsBoundedByItself(t *testing.T) {
	onWire(t, Options{}, func(b *bench) {
		for range 10 {
			b.peer.stopReading()
			b.conn.Start("m", nil, 0)
			b.pass(29 * time.Second)
			b.peer.resume()
			b.settle()
		}
		b.lives()
	})
}

func TestP16AHalfOpenConnection(t *testing.T) {
	onWire(t, Options{}, func(b *bench) {
		b.peer.mute = true
		call := b.conn.Start("m", nil, 0)
		b.pass(10 * time.Second)
		equal(b, b.peer.pings, 1)
		b.pass(29 * time.Second)
		b.lives()
		b.pass(time.Second)
		equal(b, b.ended(PingTimedOut).Error(), "connection closed: the connector stopped answering pings")
		b.failed(call, NoResponse)
		<-b.conn.Done()
	})
}

func TestASilentButHealthyConnectorIsKept(t *testing.T) {
	onWire(t, Options{}, func(b *bench) {
		for range 60 {
			b.pass(10 * time.Second)
		}
		b.lives()
		equal(b, b.peer.pings, 60)
	})
}

func TestPingsSayNothingWhileTheReaderStandsStill(t *testing.T) {
	o := Options{InboundMessages: 1}
	t.Run("no ping while it does", func(t *testing.T) {
		onWire(t, o, func(b *bench) {
			b.peer.mute = true
			b.h.hold()
			for range 10 {
				b.peer.send(`{"method":"m"}`)
			}
			for range 10 {
				b.pass(30 * time.Second)
			}
			b.lives()
			equal(b, b.peer.pings, 0)

			b.h.letGo()
			b.pass(10 * time.Second)
			equal(b, b.peer.pings, 1)
			b.pass(30 * time.Second)
			b.ended(PingTimedOut)
		})
	})
	t.Run("a ping during which it did does not count", func(t *testing.T) {
		onWire(t, o, func(b *bench) {
			b.peer.mute = true
			b.pass(10 * time.Second)
			equal(b, b.peer.pings, 1)
			b.h.hold()
			for range 10 {
				b.peer.send(`{"method":"m"}`)
			}
			b.settle()
			b.h.letGo()
			b.pass(30 * time.Second)
			b.lives()
			b.pass(10 * time.Second)
			equal(b, b.peer.pings, 2)
			b.pass(30 * time.Second)
			b.ended(PingTimedOut)
		})
	})
}

func TestAPingThatFindsTheConnectionLost(t *testing.T) {
	onWire(t, Options{}, func(b *bench) {
		b.peer.mute = true
		b.pass(10 * time.Second)
		b.peer.hangUp(&PeerClosedError{Code: 4001})
		<-b.conn.Done()
		b.ended(ClosedByConnector)
	})
}

func TestGoroutinesDoNotGrowWithTraffic(t *testing.T) {
	onWire(t, Options{}, func(b *bench) {
		b.settle()
		before := runtime.NumGoroutine()
		for i := 1; i <= 500; i++ {
			call := b.conn.Start("m", nil, time.Minute)
			b.settle()
			b.peer.send(result(i) + "\n" + request(i, "theirs"))
			b.succeeded(call, `{}`)
		}
		b.settle()
		if now := runtime.NumGoroutine(); now > before+10 { // some may be about to end
			b.Errorf("%d goroutines, %d before", now, before)
		}
		equal(b, len(b.conn.awaited), 0)
		equal(b, b.clock.Waiters(), 1) // the pinger's
	})
}

func TestErrIsAPlainNilWhileTheConnectionLives(t *testing.T) {
	onWire(t, Options{}, func(b *bench) {
		if err := b.conn.Err(); err != nil {
			b.Errorf("Err is %v", err)
		}
		b.conn.Close("")
		if err := b.conn.Err(); !errors.As(err, new(*ConnError)) {
			b.Errorf("Err is %v", err)
		}
	})
}
