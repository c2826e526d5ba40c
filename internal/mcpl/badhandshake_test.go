package mcpl

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

const goodAnswer = `{"jsonrpc":"2.0","id":1,"result":{"capabilities":{"experimental":{"mcpl":{"channels":true}}},"serverInfo":{"name":"x","version":"1"}}}`

func TestGarbageBeforeTheHandshake(t *testing.T) {
	garbage := []string{
		"connector 1.2 starting", "SSH-2.0-OpenSSH_9.9", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
		"{\"level\":\"info\"}", "[]", strings.Repeat("\x00", 1000), `{"id":1,"result":{"capabilities":`,
	}
	heard := make(chan string, 2)
	overBoth(t, hostOptions(), func(f *farEnd) {
		for _, line := range garbage { // before it has read anything
			_ = f.send(line)
		}
		_, _ = f.recv()
		for _, line := range garbage {
			_ = f.send(line)
		}
		_ = f.send(goodAnswer)
		line, _ := f.recv()
		heard <- line
		f.drain()
	}, func(h *host) {
		res, err := Initialize(h.Context(), h.Conn, testClient)
		equal(h, err, nil)
		equal(h, string(res.Manifest), `{"channels":true}`)
		equal(h, <-heard, initializedLine)
		equal(h, h.Stats().Malformed, uint64(2)) // the JSON of a logger
	})
}

// TestNothingButGarbage: lines that go on for ever do not put the end off.
func TestNothingButGarbage(t *testing.T) {
	overBoth(t, hostOptions(), func(f *farEnd) {
		for f.send("garbage") == nil {
			continue
		}
	}, func(h *host) {
		before := heapInUse()
		got := inBackground(func() (InitializeResult, error) { return Initialize(h.Context(), h.Conn, testClient) })
		h.until(initializeTimeout, h.Done())
		res := <-got
		if !errors.Is(res.err, context.DeadlineExceeded) {
			h.Errorf("got %v", res.err)
		}
		h.hasEnded("connection closed: the handshake failed")
		heapIsBounded(h.T, before)
	})
}

func TestPeersThatBreakTheHandshakeOff(t *testing.T) {
	cases := map[string]struct {
		session        func(f *farEnd)
		webSocket, tcp string // why the connection ended
	}{
		"after the request": {
			func(f *farEnd) { _, _ = f.recv() },
			"connection lost", "connection closed by the connector",
		},
		"after some noise": {
			func(f *farEnd) {
				_, _ = f.recv()
				_ = f.send("cannot start")
			},
			"connection lost", "connection closed by the connector",
		},
		"in the middle of the answer": {
			func(f *farEnd) {
				_, _ = f.recv()
				_ = f.half(goodAnswer[:100])
			},
			"connection lost", "connection lost",
		},
		"with the answer too long": {
			func(f *farEnd) {
				_, _ = f.recv()
				_ = f.send(strings.TrimSuffix(goodAnswer, "}") + strings.Repeat(" ", farLimit) + "}")
				f.drain()
			},
			"connection closed: message over the size limit", "connection closed: message over the size limit",
		},
		"with a request for every capability there is not": {
			func(f *farEnd) {
				_, _ = f.recv()
				for id := range 300 {
					_ = f.send(fmt.Sprintf(`{"id":%d,"method":"scope/elevate"}`, id))
				}
				f.drain()
			},
			"connection closed: too many messages before the policy was settled", "connection closed: too many messages before the policy was settled",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			overBoth(t, hostOptions(), tc.session, func(h *host) {
				_, err := Initialize(h.Context(), h.Conn, testClient)
				want := tc.webSocket
				if strings.HasSuffix(h.Name(), "TCP") {
					want = tc.tcp
				}
				h.hasEnded(want)
				var callErr *CallError
				if !errors.As(err, &callErr) || callErr.Outcome != NoResponse || callErr.Message != want {
					h.Errorf("got %v", err)
				}
			})
		})
	}
}

// TestAPeerThatLeavesBetweenHandshakeAndPolicy answers, and is gone.
func TestAPeerThatLeavesBetweenHandshakeAndPolicy(t *testing.T) {
	overBoth(t, hostOptions(), func(f *farEnd) {
		_, _ = f.recv()
		_ = f.send(goodAnswer)
		_, _ = f.recv() // notifications/initialized
	}, func(h *host) {
		res, err := Initialize(h.Context(), h.Conn, testClient)
		equal(h, err, nil)
		_, err = NegotiatePolicy(h.Context(), h.Conn, ComputeGrant(res.Advertised, nil), nil)
		var connErr *ConnError
		if !errors.As(err, &connErr) {
			h.Errorf("got %v", err)
		}
		<-h.Done()
	})
}

// TestAManifestThatIsTooBig is advertised from, but not kept.
func TestAManifestThatIsTooBig(t *testing.T) {
	big := `{"id":%d,"result":{"capabilities":{"experimental":{"mcpl":%s}}}}`
	manifest := `{"channels":true,"relay":"` + strings.Repeat("x", maxManifestBytes) + `"}`
	overBoth(t, hostOptions(), func(f *farEnd) {
		_, _ = f.recv()
		_ = f.send(fmt.Sprintf(big, 1, manifest))
		_, _ = f.recv()
		_, _ = f.recv()
		_ = f.send(`{"id":2,"result":` + manifest + `}`)
		f.drain()
	}, func(h *host) {
		res, err := Initialize(h.Context(), h.Conn, testClient)
		equal(h, err, nil)
		equal(h, len(res.Manifest), 0)
		equal(h, len(res.Advertised), 7)
		raw, err := FetchManifest(h.Conn).Wait(h.Context())
		equal(h, err, nil)
		_, err = ParseManifest(raw)
		equal(h, err, ErrManifestTooBig)
	})
}
