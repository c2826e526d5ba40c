package mcpl

import (
	"bufio"
	"context"
	"crypto/sha1"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/coder/websocket"
	clocktesting "k8s.io/utils/clock/testing"
)

const canaryToken = "canary-8d1f"

// wsURL makes the dialled URL of a test server, with a token in its query.
func wsURL(t *testing.T, server string) *url.URL {
	t.Helper()
	u, err := url.Parse(strings.Replace(server, "http", "ws", 1) + "/mcpl?a=b&token=" + canaryToken)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// serve runs a WebSocket server; session is one connection of it.
func serve(t *testing.T, session func(ctx context.Context, ws *websocket.Conn)) *httptest.Server {
	t.Helper()
	return serveHTTP(t, func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		ws.SetReadLimit(-1)
		defer func() { _ = ws.CloseNow() }()
		session(r.Context(), ws)
	})
}

func serveHTTP(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// serveRaw runs a TCP server; session is one connection of it.
func serveRaw(t *testing.T, session func(conn net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			session(conn)
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return "http://" + l.Addr().String()
}

func dial(t *testing.T, server string) Transport {
	t.Helper()
	tr, err := DialWebSocket(t.Context(), DialOptions{URL: wsURL(t, server)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tr.Close("") })
	return tr
}

// echo sends back what it reads.
func echo(ctx context.Context, ws *websocket.Conn) {
	for {
		typ, b, err := ws.Read(ctx)
		if err != nil {
			return
		}
		if ws.Write(ctx, typ, b) != nil {
			return
		}
	}
}

// upgrade answers a WebSocket request on a raw connection and does no more.
func upgrade(conn net.Conn) error {
	r, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil {
		return err
	}
	sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")) // RFC 6455 §4.2.2
	_, err = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Accept: "+base64.StdEncoding.EncodeToString(sum[:])+"\r\n\r\n")
	return err
}

// overWebSocket runs a Conn over a real WebSocket to a server.
func overWebSocket(t *testing.T, session func(ctx context.Context, ws *websocket.Conn)) *Conn {
	t.Helper()
	s := serve(t, session)
	tr, err := DialWebSocket(t.Context(), DialOptions{URL: wsURL(t, s.URL), MaxMessageBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	c := NewConn(tr, &recorder{}, Options{Clock: clocktesting.NewFakeClock(start)})
	c.Release()
	t.Cleanup(func() {
		c.Close("end of test")
		<-c.Done()
	})
	return c
}
