package mcpl

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

const flood = 100_000

// flooder sends requests from the host's first message on, and reads no answer.
// It says how many it got rid of.
func flooder(sent chan<- int) func(f *farEnd) {
	return func(f *farEnd) {
		_, _ = f.recv()
		id := strings.Repeat("x", 200)
		n := 0
		for n < flood && f.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"%d%s","method":"channels/list"}`, n, id)) == nil {
			n++
		}
		sent <- n
		<-f.over
	}
}

// TestAFloodOfRequestsWithoutReading: the answers fill the sockets, then the few
// that may wait, then the host stops serving and at last reading.
func TestAFloodOfRequestsWithoutReading(t *testing.T) {
	sent := make(chan int, 2)
	overBoth(t, hostOptions(), flooder(sent), func(h *host) {
		before := heapInUse()
		h.Release()
		equal(h, h.Notify("go", nil), nil)
		h.await(func() bool { return h.in.paused })
		equal(h, h.Err(), nil)
		heapIsBounded(h.T, before)
		h.mu.Lock()
		equal(h, h.out.answers <= maxAnswers && len(h.in.messages) <= 64, true)
		h.mu.Unlock()

		h.Close("enough")
		<-h.Done()
		heapIsBounded(h.T, before)
		<-sent
	})
}

// TestAFloodWithoutReadingIsEndedByTheWriteTimeout: in the end the host gives up.
func TestAFloodWithoutReadingIsEndedByTheWriteTimeout(t *testing.T) {
	o := hostOptions()
	o.WriteTimeout = 0 // the default
	sent := make(chan int, 2)
	overBoth(t, o, flooder(sent), func(h *host) {
		before := heapInUse()
		h.Release()
		equal(h, h.Notify("go", nil), nil)
		h.await(func() bool { return h.in.paused })
		h.until(o.withDefaults().WriteTimeout, h.Done())
		h.hasEnded("connection closed: the connector stopped reading")
		heapIsBounded(h.T, before)
		<-sent
	})
}

// TestAFloodBeforeThePolicy is not held into memory, but ends the connection.
func TestAFloodBeforeThePolicy(t *testing.T) {
	sent := make(chan int, 2)
	overBoth(t, hostOptions(), flooder(sent), func(h *host) {
		before := heapInUse()
		call := h.Start("initialize", nil, 0)
		h.hasEnded("connection closed: too many messages before the policy was settled")
		if _, err := call.Result(); err == nil {
			h.Error("the call succeeded")
		}
		heapIsBounded(h.T, before)
		<-sent
	})
}

// TestAFloodIntoABusyHandler is held back by the sockets.
func TestAFloodIntoABusyHandler(t *testing.T) {
	sent := make(chan int, 2)
	overBoth(t, hostOptions(), flooder(sent), func(h *host) {
		before := heapInUse()
		h.h.hold()
		h.Release()
		equal(h, h.Notify("go", nil), nil)
		h.await(func() bool { return h.in.paused })
		heapIsBounded(h.T, before)
		equal(h, len(h.h.heard()), 1)
		h.Close("enough")
		h.h.letGo()
		<-h.Done()
		heapIsBounded(h.T, before)
		<-sent
	})
}

// TestAFloodThatIsReadIsServed: all of it, in order, and nothing is left behind.
func TestAFloodThatIsReadIsServed(t *testing.T) {
	const requests = 10_000
	wrong := make(chan string, 1)
	overBoth(t, hostOptions(), func(f *farEnd) {
		_, _ = f.recv()
		go func() {
			for id := range requests {
				_ = f.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"channels/list"}`, id))
			}
		}()
		bad := ""
		for id := range requests {
			want := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":"%d"}`, id, id)
			if got, err := f.recv(); got != want && bad == "" {
				bad = fmt.Sprintf("%s (%v), want %s", got, err, want)
			}
		}
		wrong <- bad
		f.drain()
	}, func(h *host) {
		before := heapInUse()
		n := 0
		h.h.onRequest(func(context.Context, string, json.RawMessage) Answer {
			h.h.heard()
			n++
			return Answer{Result: fmt.Sprint(n - 1)}
		})
		h.Release()
		equal(h, h.Notify("go", nil), nil)
		equal(h, <-wrong, "")
		heapIsBounded(h.T, before)
		h.mu.Lock()
		equal(h, len(h.in.messages)+h.out.answers+len(h.out.frames)+len(h.awaited), 0)
		h.mu.Unlock()
	})
}
