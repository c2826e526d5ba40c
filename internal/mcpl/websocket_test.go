package mcpl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestWebSocketCarriesFrames(t *testing.T) {
	tr := dial(t, serve(t, echo).URL)
	for _, line := range []string{`{"a":1}`, `{"é":"\u2028"}`, strings.Repeat("x", 1<<20)} {
		if err := tr.Write(t.Context(), []byte(line)); err != nil {
			t.Fatal(err)
		}
		got, err := tr.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		equal(t, string(got), line)
	}
}

func TestTheDialsContextDoesNotBoundTheConnection(t *testing.T) {
	s := serve(t, echo)
	ctx, cancel := context.WithCancel(t.Context())
	tr, err := DialWebSocket(ctx, DialOptions{URL: wsURL(t, s.URL)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tr.Close("") }()
	cancel()
	if err := tr.Write(t.Context(), []byte("x")); err != nil {
		t.Fatal(err)
	}
	got, err := tr.Read(t.Context())
	equal(t, err, nil)
	equal(t, string(got), "x")
}

func TestMessageLimit(t *testing.T) {
	const limit = 1000
	for name, tc := range map[string]struct {
		size int
		fits bool
	}{
		"at the limit":    {limit, true},
		"one beyond":      {limit + 1, false},
		"P16 10 MiB line": {10 << 20, false},
	} {
		t.Run(name, func(t *testing.T) {
			served := make(chan websocket.StatusCode, 1)
			s := serve(t, func(ctx context.Context, ws *websocket.Conn) {
				_ = ws.Write(ctx, websocket.MessageText, []byte(strings.Repeat("x", tc.size)))
				_, _, err := ws.Read(ctx)
				served <- websocket.CloseStatus(err)
			})
			tr, err := DialWebSocket(t.Context(), DialOptions{URL: wsURL(t, s.URL), MaxMessageBytes: limit})
			if err != nil {
				t.Fatal(err)
			}
			got, err := tr.Read(t.Context())
			if tc.fits {
				equal(t, err, nil)
				equal(t, len(got), tc.size)
			} else {
				equal(t, err, ErrMessageTooBig)
			}
			_ = tr.Close("")
			if code := <-served; code == websocket.StatusNormalClosure != tc.fits {
				t.Errorf("the server saw code %d", code)
			}
		})
	}
}

func TestDefaultMessageLimit(t *testing.T) {
	s := serve(t, func(ctx context.Context, ws *websocket.Conn) {
		_ = ws.Write(ctx, websocket.MessageText, make([]byte, 4<<20))
		_ = ws.Write(ctx, websocket.MessageText, make([]byte, 4<<20+1))
	})
	tr := dial(t, s.URL)
	got, err := tr.Read(t.Context())
	equal(t, err, nil)
	equal(t, len(got), 4<<20)
	_, err = tr.Read(t.Context())
	equal(t, err, ErrMessageTooBig)
}

func TestThePeersGoodbye(t *testing.T) {
	s := serve(t, func(_ context.Context, ws *websocket.Conn) {
		_ = ws.Close(4001, "taken over\u202e")
	})
	_, err := dial(t, s.URL).Read(t.Context())
	equal(t, err, error(&PeerClosedError{Code: 4001, Reason: "taken over"}))
}

func TestOurGoodbye(t *testing.T) {
	got := make(chan error, 1)
	s := serve(t, func(ctx context.Context, ws *websocket.Conn) {
		_, _, err := ws.Read(ctx)
		got <- err
	})
	tr := dial(t, s.URL)
	equal(t, tr.Close("shutting\ndown "+strings.Repeat("é", 100)), nil)
	_ = tr.Close("again")
	var bye websocket.CloseError
	if err := <-got; !errors.As(err, &bye) {
		t.Fatalf("the server saw %v", err)
	}
	equal(t, bye.Code, websocket.StatusNormalClosure)
	equal(t, bye.Reason, "shuttingdown "+strings.Repeat("é", 55))
	if _, err := tr.Read(t.Context()); err == nil {
		t.Error("a read succeeded after Close")
	}
	if err := tr.Write(t.Context(), []byte("x")); err == nil {
		t.Error("a write succeeded after Close")
	}
	if err := tr.Ping(t.Context()); err == nil {
		t.Error("a ping succeeded after Close")
	}
}

func TestCloseIsBoundedWhateverThePeerDoes(t *testing.T) {
	cases := map[string]func(conn net.Conn){
		"it does not read": func(net.Conn) {},
		"it reads and says no goodbye": func(conn net.Conn) {
			_, _ = io.Copy(io.Discard, conn)
		},
	}
	for name, after := range cases {
		for _, reading := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, reading %t", name, reading), func(t *testing.T) {
				// In a bubble the library's own time-outs are virtual.
				synctest.Test(t, func(t *testing.T) {
					ours, theirs := net.Pipe()
					defer func() { _ = theirs.Close() }()
					go func() {
						if upgrade(theirs) == nil {
							after(theirs)
						}
					}()
					tr, err := DialWebSocket(t.Context(), DialOptions{
						URL:         wsURL(t, "http://connector.example"),
						DialContext: func(context.Context, string, string) (net.Conn, error) { return ours, nil },
					})
					if err != nil {
						t.Fatal(err)
					}
					if reading {
						go func() {
							for {
								if _, err := tr.Read(context.Background()); err != nil {
									return
								}
							}
						}()
					}
					begin := time.Now()
					_ = tr.Close("nobody hears this")
					equal(t, time.Since(begin), 3*time.Second)
					if err := tr.Write(t.Context(), []byte("x")); err == nil {
						t.Error("a write succeeded after Close")
					}
				})
			})
		}
	}
}

func TestPingNeedsAPeer(t *testing.T) {
	s := serve(t, echo)
	tr := dial(t, s.URL)
	readDone := make(chan struct{})
	go func() {
		defer close(readDone)
		for {
			if _, err := tr.Read(context.Background()); err != nil {
				return
			}
		}
	}()
	equal(t, tr.Ping(t.Context()), nil)
	_ = tr.Close("")
	<-readDone
}

func TestAPingWithoutAnAnswerEndsWithItsContext(t *testing.T) {
	release := make(chan struct{})
	s := serve(t, func(context.Context, *websocket.Conn) { <-release })
	defer close(release)
	tr, err := DialWebSocket(t.Context(), DialOptions{URL: wsURL(t, s.URL), CloseTimeout: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tr.Close("") }()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := tr.Ping(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestP16ConnectionFaults(t *testing.T) {
	cases := map[string]struct {
		session func(ctx context.Context, ws *websocket.Conn)
		want    string
	}{
		"10 MiB line": {
			func(ctx context.Context, ws *websocket.Conn) {
				_ = ws.Write(ctx, websocket.MessageText, make([]byte, 10<<20))
			},
			"connection closed: message over the size limit",
		},
		"hangs up at once": {
			func(context.Context, *websocket.Conn) {},
			"connection lost",
		},
		"closes in the middle of a message": {
			func(ctx context.Context, ws *websocket.Conn) {
				w, err := ws.Writer(ctx, websocket.MessageText)
				if err == nil {
					_, _ = io.WriteString(w, `{"jsonrpc":`)
				}
			},
			"connection lost",
		},
		"says goodbye": {
			func(_ context.Context, ws *websocket.Conn) { _ = ws.Close(4001, "taken over") },
			"connection closed by the connector with code 4001: taken over",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := overWebSocket(t, tc.session)
			call := c.Start("m", nil, 0)
			<-call.Done()
			<-c.Done()
			equal(t, c.Err().Error(), tc.want)
			if _, err := call.Result(); err == nil {
				t.Error("the call succeeded")
			}
		})
	}
}

func TestFact13OverAWebSocket(t *testing.T) {
	c := overWebSocket(t, func(ctx context.Context, ws *websocket.Conn) {
		_, _, _ = ws.Read(ctx)
		_ = ws.Write(ctx, websocket.MessageText, []byte("[log] hello\n\n[1,2]\n"))
		_ = ws.Write(ctx, websocket.MessageBinary, []byte{0, 1, 2, 0xff})
		_ = ws.Write(ctx, websocket.MessageText, []byte(`{"jsonrpc":"2.0","id":1,"result":"found"}`))
		_, _, _ = ws.Read(ctx)
	})
	got, err := c.Start("m", nil, 0).Wait(t.Context())
	equal(t, err, nil)
	equal(t, string(got), `"found"`)
	equal(t, c.Stats(), Stats{SkippedLines: 3})
}

func TestAPeerThatFloodsWhileItIsLeft(t *testing.T) {
	s := serve(t, func(ctx context.Context, ws *websocket.Conn) {
		for ws.Write(ctx, websocket.MessageText, []byte(`{"method":"flood"}`)) == nil {
		}
	})
	tr, err := DialWebSocket(t.Context(), DialOptions{URL: wsURL(t, s.URL), CloseTimeout: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	h := &recorder{}
	h.hold() // so that the reader stands still
	c := NewConn(tr, h, Options{Clock: clocktesting.NewFakeClock(start)})
	c.Release()
	call := c.Start("m", nil, 0)
	c.Close("enough")
	<-call.Done()
	h.letGo()
	<-c.Done()
}

func TestManyCallsOverAWebSocket(t *testing.T) {
	c := overWebSocket(t, func(ctx context.Context, ws *websocket.Conn) {
		for i := 1; ; i++ {
			if _, _, err := ws.Read(ctx); err != nil {
				return
			}
			_ = ws.Write(ctx, websocket.MessageText, []byte(request(i, "theirs")+"\n"+result(i)))
			if _, _, err := ws.Read(ctx); err != nil { // the host's answer
				return
			}
		}
	})
	for range 200 {
		if _, err := c.Start("m", nil, time.Minute).Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
