package mcpl

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

func TestWebSocketRequest(t *testing.T) {
	requests := make(chan *http.Request, 1)
	s := serveHTTP(t, func(w http.ResponseWriter, r *http.Request) {
		requests <- r
		if ws, err := websocket.Accept(w, r, nil); err == nil {
			_ = ws.CloseNow()
		}
	})
	var dialled []string
	u := wsURL(t, s.URL)
	u.Host = "connector.example:80" // no proxy is asked, whatever the environment says
	tr, err := DialWebSocket(t.Context(), DialOptions{
		URL:    u,
		Header: http.Header{"Authorization": {"Bearer x"}, "Mcpl-Term": {"1700000000.3"}, "Mcpl-Host": {"host-a"}},
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			dialled = append(dialled, network+" "+addr)
			return (&net.Dialer{}).DialContext(ctx, network, s.Listener.Addr().String())
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	_ = tr.Close("")
	r := <-requests
	equal(t, dialled, []string{"tcp connector.example:80"})
	equal(t, r.Host, "connector.example:80")
	equal(t, r.URL.RequestURI(), "/mcpl?a=b&token="+canaryToken)
	equal(t, r.Header.Get("Authorization"), "Bearer x")
	equal(t, r.Header.Get("Mcpl-Term"), "1700000000.3")
	equal(t, r.Header.Get("Mcpl-Host"), "host-a")
	equal(t, r.Header.Get("Sec-Websocket-Extensions"), "")
}

func status(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

func TestDialErrors(t *testing.T) {
	// No port of a closed server: another test's server may have got it.
	const nobody = "http://127.0.0.1:1"
	cases := map[string]struct {
		server string
		want   DialError
		text   string
	}{
		"nobody listens": {
			nobody, DialError{Class: Unreachable, Detail: "connection refused"},
			"unreachable: connection refused",
		},
		"an unknown name": {
			"http://connector.invalid", DialError{Class: Unreachable, Detail: "name not found"},
			"unreachable: name not found",
		},
		"401": {
			serveHTTP(t, status(401, "no")).URL, DialError{Class: TokenRefused, Status: 401, Detail: "token refused"},
			"the token was refused (HTTP 401)",
		},
		"403": {
			serveHTTP(t, status(403, "")).URL, DialError{Class: TokenRefused, Status: 403, Detail: "token refused"},
			"the token was refused (HTTP 403)",
		},
		"409 with a holder": {
			serveHTTP(t, status(409, `{"holder":"host-b\u001b","term":"1700000000.3"}`)).URL,
			DialError{Class: OtherHost, Status: 409, Holder: "host-b", Term: "1700000000.3", Detail: "held by another host"},
			"another host holds the connector: host-b (term 1700000000.3)",
		},
		"409 with a term that is a number": {
			serveHTTP(t, status(409, `{"holder":"b","term":1700000000.3}`)).URL,
			DialError{Class: OtherHost, Status: 409, Holder: "b", Term: "1700000000.3", Detail: "held by another host"},
			"another host holds the connector: b (term 1700000000.3)",
		},
		"409 of something else": {
			serveHTTP(t, status(409, "conflict")).URL, DialError{Class: NotMCPL, Status: 409, Detail: "something else answers"},
			"no WebSocket: something else answers (HTTP 409)",
		},
		"a web page": {
			serveHTTP(t, status(200, "<html>")).URL, DialError{Class: NotMCPL, Status: 200, Detail: "something else answers"},
			"no WebSocket: something else answers (HTTP 200)",
		},
		"a failing server": {
			serveHTTP(t, status(503, strings.Repeat("x", 1<<20))).URL, DialError{Class: NotMCPL, Status: 503, Detail: "something else answers"},
			"no WebSocket: something else answers (HTTP 503)",
		},
		"a redirect is not followed": {
			serveHTTP(t, http.RedirectHandler(serve(t, echo).URL, http.StatusFound).ServeHTTP).URL,
			DialError{Class: NotMCPL, Status: 302, Detail: "something else answers"},
			"no WebSocket: something else answers (HTTP 302)",
		},
		"a redirect to nowhere": {
			serveHTTP(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "http://%zz")
				w.WriteHeader(302)
			}).URL,
			DialError{Class: NotMCPL, Detail: "the answer is not HTTP"}, "no WebSocket: the answer is not HTTP",
		},
		"an upgrade that is none": {
			serveRaw(t, func(conn net.Conn) {
				_, _ = http.ReadRequest(bufio.NewReader(conn))
				_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
			}),
			DialError{Class: NotMCPL, Status: 101, Detail: "malformed upgrade"},
			"no WebSocket: malformed upgrade (HTTP 101)",
		},
		"P16 garbage": {
			serveRaw(t, func(conn net.Conn) {
				_, _ = http.ReadRequest(bufio.NewReader(conn))
				_, _ = io.WriteString(conn, "what do you want?\n")
			}),
			DialError{Class: NotMCPL, Detail: "the answer is not HTTP"}, "no WebSocket: the answer is not HTTP",
		},
		"P16 hangs up": {
			serveRaw(t, func(conn net.Conn) { _, _ = http.ReadRequest(bufio.NewReader(conn)) }),
			DialError{Class: Unreachable, Detail: "closed without an answer"}, "unreachable: closed without an answer",
		},
		"an HTTP URL": {
			"x" + nobody, DialError{Class: Unreachable, Detail: "the URL is neither ws nor wss"},
			"unreachable: the URL is neither ws nor wss",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var conns []net.Conn
			tr, err := DialWebSocket(t.Context(), DialOptions{URL: wsURL(t, tc.server), DialContext: noting(&conns)})
			if tr != nil {
				t.Fatal("a transport was returned")
			}
			var got *DialError
			if !errors.As(err, &got) {
				t.Fatalf("not a DialError: %v", err)
			}
			equal(t, err.Error(), tc.text)
			everything := fmt.Sprintf("%v %+v", err, errors.Unwrap(err))
			if strings.Contains(everything, canaryToken) || strings.Contains(everything, "?") {
				t.Errorf("the token is in the error: %s", everything)
			}
			cause := got.cause
			got.cause = nil
			equal(t, *got, tc.want)
			if (cause != nil) != (tc.want.Detail == "connection refused" || tc.want.Detail == "name not found") {
				t.Errorf("cause %v", cause)
			}
			for _, conn := range conns {
				if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
					t.Errorf("the socket was left open: %v", err)
				}
			}
		})
	}
}

// noting is a DialContext that keeps the sockets it makes.
func noting(conns *[]net.Conn) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		if err == nil {
			*conns = append(*conns, conn)
		}
		return conn, err
	}
}

func TestNoURL(t *testing.T) {
	_, err := DialWebSocket(t.Context(), DialOptions{})
	equal(t, err.Error(), "unreachable: the URL is neither ws nor wss")
}

func TestTheCallersDialErrorCanBeTold(t *testing.T) {
	denied := errors.New("address not allowed")
	_, err := DialWebSocket(t.Context(), DialOptions{
		URL:         wsURL(t, "http://192.0.2.1"),
		DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, denied },
	})
	equal(t, errors.Is(err, denied), true)
	equal(t, err.Error(), "unreachable: connection failed")
}

// deadline is a context whose deadline passes when the test says so.
type deadline struct {
	context.Context
	done chan struct{}
}

func (d deadline) Done() <-chan struct{} { return d.done }

func (d deadline) Err() error {
	select {
	case <-d.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func TestP16BlackHoles(t *testing.T) {
	cases := map[string]struct {
		scheme string
		dial   func(ctx deadline, server string) (net.Conn, error)
		text   string
	}{
		"no connection": {
			dial: func(ctx deadline, _ string) (net.Conn, error) {
				close(ctx.done)
				return nil, ctx.Err()
			},
			text: "timed out: no connection",
		},
		"accepts and never answers": {
			text: "timed out: no answer",
		},
		"TLS never answers": {
			scheme: "s",
			text:   "timed out: no answer",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ctx := deadline{t.Context(), make(chan struct{})}
			server := serveRaw(t, func(conn net.Conn) {
				_, _ = conn.Read(make([]byte, 1)) // the request has begun
				close(ctx.done)
				_, _ = io.Copy(io.Discard, conn) // returns when the dialler gives up
			})
			o := DialOptions{URL: wsURL(t, strings.Replace(server, "http", "http"+tc.scheme, 1))}
			if tc.dial != nil {
				o.DialContext = func(context.Context, string, string) (net.Conn, error) { return tc.dial(ctx, server) }
			}
			_, err := DialWebSocket(ctx, o)
			var got *DialError
			if !errors.As(err, &got) || got.Class != DialTimeout {
				t.Fatalf("got %v", err)
			}
			equal(t, err.Error(), tc.text)
		})
	}
}

func TestACancelledDial(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	server := serveRaw(t, func(conn net.Conn) {
		cancel()
		_, _ = io.Copy(io.Discard, conn)
	})
	_, err := DialWebSocket(ctx, DialOptions{URL: wsURL(t, server)})
	equal(t, err, context.Canceled)
}

func TestNothingGoesOnAfterACancelledDial(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	_, err := DialWebSocket(ctx, DialOptions{
		URL: wsURL(t, "http://192.0.2.1"),
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			defer close(ended)
			cancel()
			<-ctx.Done()
			return nil, ctx.Err()
		},
	})
	equal(t, err, context.Canceled)
	<-ended
}

func TestTLS(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if ws, err := websocket.Accept(w, r, nil); err == nil {
			echo(r.Context(), ws)
		}
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())

	needsCert := httptest.NewUnstartedServer(s.Config.Handler)
	needsCert.Config.ErrorLog = s.Config.ErrorLog
	needsCert.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	needsCert.StartTLS()
	t.Cleanup(needsCert.Close)

	cases := map[string]struct {
		server string
		config *tls.Config
		text   string
	}{
		"trusted":                {s.URL, &tls.Config{RootCAs: roots}, ""},
		"h2 is not offered":      {s.URL, &tls.Config{RootCAs: roots, NextProtos: []string{"h2"}}, ""},
		"a given server name":    {s.URL, &tls.Config{RootCAs: roots, ServerName: "example.com"}, ""},
		"an unknown authority":   {s.URL, nil, "TLS: certificate of an unknown authority"},
		"another name":           {s.URL, &tls.Config{RootCAs: roots, ServerName: "other"}, "TLS: certificate for another name"},
		"expired":                {s.URL, &tls.Config{RootCAs: roots, Time: farFuture}, "TLS: certificate expired or not yet valid"},
		"no TLS there":           {strings.Replace(serve(t, echo).URL, "http", "https", 1), nil, "TLS: the answer is not TLS"},
		"our certificate wanted": {needsCert.URL, &tls.Config{RootCAs: roots}, "TLS: refused by the connector"},
		"no common version": {
			s.URL, &tls.Config{RootCAs: roots, MaxVersion: tls.VersionTLS10, MinVersion: tls.VersionTLS10},
			"TLS: refused by the connector",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tr, err := DialWebSocket(t.Context(), DialOptions{URL: wsURL(t, tc.server), TLS: tc.config})
			if tc.text == "" {
				if err != nil {
					t.Fatal(err)
				}
				equal(t, tr.Close("bye"), nil)
				return
			}
			var got *DialError
			if !errors.As(err, &got) || got.Class != TLSFailed {
				t.Fatalf("got %v", err)
			}
			equal(t, err.Error(), tc.text)
		})
	}
}

func farFuture() time.Time { return time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC) }

func TestPlainToATLSServer(t *testing.T) {
	s := httptest.NewUnstartedServer(nil)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	_, err := DialWebSocket(t.Context(), DialOptions{URL: wsURL(t, strings.Replace(s.URL, "https", "http", 1))})
	equal(t, err.Error(), "no WebSocket: something else answers (HTTP 400)")
}
