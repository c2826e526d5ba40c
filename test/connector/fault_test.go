package connector

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"syscall"
	"testing"

	"github.com/coder/websocket"
)

func TestRestartForgetsWhatIsOpen(t *testing.T) {
	c := start(t, Options{Channels: Generate("demo", 1)})
	h := connect(t, c)
	h.open(one)
	c.Restart()
	_ = h.end()
	if got := c.OpenChannels(); len(got) > 0 {
		t.Errorf("open: %q", got)
	}
	connect(t, c)
	// Its own requests are numbered from 1 on each connection.
	for _, e := range c.Entries(Filter{Direction: Out, Kind: Request}) {
		if string(e.ID) != "1" {
			t.Errorf("numbered %s", e.ID)
		}
	}
}

func TestForgetOnConnect(t *testing.T) {
	c := start(t, Options{Channels: Generate("demo", 1), Behavior: Behavior{ForgetOnConnect: true}})
	h := connect(t, c)
	h.open(one)
	if err := c.Drop(); err != nil {
		t.Fatal(err)
	}
	_ = h.end()
	if !c.IsOpen(one) {
		t.Error("closed by the drop")
	}
	connect(t, c)
	if c.IsOpen(one) {
		t.Error("kept over the connection")
	}
}

func TestDisconnectSaysGoodbye(t *testing.T) {
	c := start(t, Options{})
	h := connect(t, c)
	h.answerWith(func(message) *message { return nil })
	call, err := c.Begin(testContext(t), "host/command", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Disconnect(1012, "restarting"); err != nil {
		t.Fatal(err)
	}
	if err := h.end(); websocket.CloseStatus(err) != websocket.StatusServiceRestart {
		t.Errorf("left with %v", err)
	}
	if _, err := call.Wait(testContext(t)); !errors.Is(err, ErrDisconnected) {
		t.Errorf("an unanswered call ends with %v", err)
	}
	if err := c.Drop(); !errors.Is(err, ErrNotConnected) {
		t.Errorf("a drop of nobody: %v", err)
	}
}

func TestPauseRefusesAndResumeAcceptsAtTheSameAddress(t *testing.T) {
	c := start(t, Options{Channels: Generate("demo", 1)})
	h := connect(t, c)
	for range 3 {
		if err := c.Pause(); err != nil {
			t.Fatal(err)
		}
		if _, err := net.Dial("tcp", c.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("want a refusal, got %v", err)
		}
		if m := h.call("channels/list", params{}); m.Error != nil {
			t.Errorf("the present connection: %v", m.Error)
		}
		if err := c.Resume(testContext(t)); err != nil {
			t.Fatal(err)
		}
		if err := c.Drop(); err != nil {
			t.Fatal(err)
		}
		h = connect(t, c)
	}
}

func TestFreezeIsSilentAndThawGoesOn(t *testing.T) {
	ctx := testContext(t)
	c := start(t, Options{Channels: Generate("demo", 1)})
	h := connect(t, c)
	c.Freeze()
	answer := h.begin("channels/open", openParamsOf(one))
	pinged, cancel := context.WithCancel(ctx)
	pong := make(chan error, 1)
	go func() { pong <- h.ws.Ping(pinged) }()
	conn, err := net.Dial("tcp", c.Addr())
	if err != nil {
		t.Fatalf("a frozen connector accepts connections: %v", err)
	}
	defer func() { _ = conn.Close() }()
	if got := c.Requests("channels/open", ""); len(got) > 0 {
		t.Errorf("read while frozen: %v", got)
	}
	c.Thaw()
	h.await(answer)
	if err := <-pong; err != nil {
		t.Errorf("the ping after the thaw: %v", err)
	}
	cancel()
}

func TestCloseWhileFrozenEndsEverything(t *testing.T) {
	c := start(t, Options{Channels: Generate("demo", 1)})
	connect(t, c)
	c.Freeze()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.WaitUntil(testContext(t), func() bool { return false }); !errors.Is(err, ErrClosed) {
		t.Errorf("a wait for a closed connector: %v", err)
	}
}

func TestACancelledContextCloses(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c, err := Start(ctx, Options{})
	if err != nil {
		t.Fatal(err)
	}
	h := connect(t, c)
	cancel()
	_ = h.end()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestUpgradesAreRefusedOrGarbled(t *testing.T) {
	c := start(t, Options{Behavior: Behavior{RefuseStatus: http.StatusServiceUnavailable}})
	if _, resp, _ := dialWith(t, c.URL(), nil); resp == nil || resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("want 503, got %v", resp)
	}
	c.SetBehavior(Behavior{GarbleUpgrades: true})
	if _, resp, err := dialWith(t, c.URL(), nil); err == nil || resp != nil {
		t.Errorf("want no HTTP, got %v", resp)
	}
	c.SetBehavior(Behavior{})
	connect(t, c)
}

func TestAFrameIsCutInTheMiddle(t *testing.T) {
	c := start(t, Options{})
	h := connect(t, c)
	if err := c.DropMidFrame(testContext(t)); err != nil {
		t.Fatal(err)
	}
	if err := h.end(); err == nil || websocket.CloseStatus(err) != -1 {
		t.Errorf("left with %v", err)
	}
}

func TestTLS(t *testing.T) {
	server := httptest.NewUnstartedServer(nil)
	server.StartTLS() // for its certificate
	defer server.Close()
	c := start(t, Options{TLS: &tls.Config{Certificates: server.TLS.Certificates}, Channels: Generate("demo", 1)})
	transport := server.Client().Transport.(*http.Transport).Clone()
	transport.DisableKeepAlives = true
	h, _, err := dialWith(t, c.URL(), &websocket.DialOptions{HTTPClient: &http.Client{Transport: transport}})
	if err != nil {
		t.Fatal(err)
	}
	h.handshake()
	if m := h.open(one); m.Error != nil {
		t.Error(m.Error)
	}
	_, err = Start(t.Context(), Options{CertFile: "nowhere.pem", KeyFile: "nowhere.pem"})
	if err == nil {
		t.Error("started with a certificate that is not there")
	}
}

func TestManyConnectorsInOneProcess(t *testing.T) {
	var cs []*Connector
	for range 20 {
		cs = append(cs, start(t, Options{Channels: Generate("demo", 100), JournalKeep: -1}))
	}
	for _, c := range cs {
		h := connect(t, c)
		var answers []<-chan message
		for _, d := range c.Channels() {
			answers = append(answers, h.begin("channels/open", openParamsOf(d.ID)))
		}
		for _, answer := range answers {
			h.await(answer)
		}
	}
	for _, c := range cs {
		if got := len(c.OpenChannels()); got != 100 {
			t.Errorf("%d channels are open", got)
		}
		if got := c.Count("channels/open", "demo:c7"); got != 1 {
			t.Errorf("counted %d", got)
		}
	}
}

func TestViolations(t *testing.T) {
	tests := map[ViolationKind]func(c *Connector, h *testHost){
		FirstMessage: func(_ *Connector, h *testHost) {
			h.begin("channels/list", params{})
			_ = h.end()
		},
		Interjection: func(_ *Connector, h *testHost) {
			h.initialize()
			h.begin("channels/list", params{})
			h.grant(everything...)
		},
		InitializedTwice: func(_ *Connector, h *testHost) {
			h.handshake()
			if m := h.initialize(); m.Error == nil || m.Error.Code != CodeMethodNotFound {
				h.t.Errorf("a second initialize is answered %v", m.Error)
			}
		},
		NotJSON: func(_ *Connector, h *testHost) {
			h.handshake()
			h.send("hello\n \n[]")
			h.call("channels/list", params{})
		},
		ReusedID: func(_ *Connector, h *testHost) {
			h.handshake()
			h.nextID--
			h.call("channels/list", params{})
		},
		UnknownAnswer: func(_ *Connector, h *testHost) {
			h.handshake()
			h.send(`{"jsonrpc":"2.0","id":77,"result":{}}`)
			h.call("channels/list", params{})
		},
		Overlap: func(c *Connector, h *testHost) {
			h.handshake()
			c.Once(On("channels/open", one).HeldAt("gate"))
			open := h.begin("channels/open", openParamsOf(one))
			closed := h.begin("channels/close", params{"channelId": one})
			if _, err := c.Wait(h.t.Context(), Asked("channels/close", one), 1); err != nil {
				h.t.Error(err)
			}
			c.Release("gate")
			h.await(open)
			h.await(closed)
		},
	}
	for kind, do := range tests {
		t.Run(string(kind), func(t *testing.T) {
			c := start(t, Options{Channels: Generate("demo", 1)})
			do(c, dial(t, c))
			if vs := c.Violations(); !slices.ContainsFunc(vs, func(v Violation) bool { return v.Kind == kind }) {
				t.Errorf("violations: %v", vs)
			}
		})
	}
	t.Run(string(Probe), func(t *testing.T) {
		c := start(t, Options{})
		conn, err := net.Dial("tcp", c.Addr())
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
		if err := c.WaitUntil(testContext(t), func() bool { return len(c.Violations()) == 1 }); err != nil {
			t.Error(err)
		}
	})
}
