package connector

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// testHost is a host as plain as can be. It accepts everything it is asked.
type testHost struct {
	t  *testing.T
	ws *websocket.Conn

	inbound chan message // requests, notifications and frames that are no message
	ended   chan struct{}
	err     error // why the connection ended

	mu      sync.Mutex
	nextID  int
	pending map[string]chan message
	answer  func(message) *message // nil: accept; a nil message: no answer
}

// testContext bounds what a test waits for, far beyond what anything takes.
func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func start(t *testing.T, o Options) *Connector {
	t.Helper()
	c, err := Start(testContext(t), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close the connector: %v", err)
		}
	})
	return c
}

func dialWith(t *testing.T, url string, o *websocket.DialOptions) (*testHost, *http.Response, error) {
	t.Helper()
	if o == nil {
		o = &websocket.DialOptions{}
	}
	if o.HTTPClient == nil {
		o.HTTPClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	}
	ws, resp, err := websocket.Dial(testContext(t), url, o)
	if err != nil {
		return nil, resp, err
	}
	ws.SetReadLimit(-1)
	h := &testHost{
		t: t, ws: ws,
		inbound: make(chan message, 1000),
		ended:   make(chan struct{}),
		pending: make(map[string]chan message),
	}
	go h.read(context.WithoutCancel(t.Context()))
	t.Cleanup(func() {
		_ = ws.CloseNow()
		<-h.ended
	})
	return h, resp, nil
}

func dial(t *testing.T, c *Connector) *testHost {
	t.Helper()
	h, _, err := dialWith(t, c.URL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// connect dials and goes through the handshake until the channels are registered.
func connect(t *testing.T, c *Connector) *testHost {
	t.Helper()
	h := dial(t, c)
	h.handshake()
	if err := c.WaitRegistered(testContext(t)); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *testHost) read(ctx context.Context) {
	defer close(h.ended)
	for {
		_, frame, err := h.ws.Read(ctx)
		if err != nil {
			h.err = err
			return
		}
		m, ok := parse(bytes.TrimSpace(frame))
		switch {
		case !ok:
			h.inbound <- message{Params: frame}
		case m.kind() == Response:
			h.mu.Lock()
			if c := h.pending[string(m.ID)]; c != nil {
				c <- m
			}
			h.mu.Unlock()
		default:
			h.inbound <- m
			if m.kind() == Request {
				h.respond(ctx, m)
			}
		}
	}
}

func (h *testHost) respond(ctx context.Context, m message) {
	h.mu.Lock()
	answer := h.answer
	h.mu.Unlock()
	var out *message
	if answer == nil {
		out = &message{ID: m.ID, Result: accept(m)}
	} else if out = answer(m); out == nil {
		return
	}
	out.JSONRPC = "2.0"
	frame, _ := json.Marshal(out)
	_ = h.ws.Write(ctx, websocket.MessageText, frame)
}

// accept is a host's answer that accepts everything.
func accept(m message) json.RawMessage {
	var p struct {
		Channels, Added []Descriptor
		Messages        []Message
	}
	_ = json.Unmarshal(m.Params, &p)
	var verdicts []Verdict
	for _, d := range append(p.Channels, p.Added...) {
		verdicts = append(verdicts, Verdict{ID: d.ID, Accepted: true})
	}
	for _, msg := range p.Messages {
		verdicts = append(verdicts, Verdict{MessageID: msg.MessageID, Accepted: true})
	}
	result, _ := json.Marshal(map[string]any{"results": verdicts, "accepted": true})
	return result
}

func (h *testHost) answerWith(f func(message) *message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answer = f
}

func (h *testHost) send(frame string) {
	h.t.Helper()
	if err := h.ws.Write(testContext(h.t), websocket.MessageText, []byte(frame)); err != nil {
		h.t.Fatal(err)
	}
}

func (h *testHost) initialized() {
	h.t.Helper()
	h.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

// begin sends a request; the answer comes over the channel.
func (h *testHost) begin(method string, params any) <-chan message {
	h.t.Helper()
	body, err := json.Marshal(params)
	if err != nil {
		h.t.Fatal(err)
	}
	h.mu.Lock()
	h.nextID++
	id := strconv.Itoa(h.nextID)
	answer := make(chan message, 1)
	h.pending[id] = answer
	h.mu.Unlock()
	h.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, body))
	return answer
}

func (h *testHost) await(answer <-chan message) message {
	h.t.Helper()
	select {
	case m := <-answer:
		return m
	case <-h.ended:
		h.t.Fatalf("the connection ended before the answer: %v", h.err)
	case <-testContext(h.t).Done():
		h.t.Fatal("no answer")
	}
	return message{}
}

func (h *testHost) call(method string, params any) message {
	h.t.Helper()
	return h.await(h.begin(method, params))
}

// next is the next request or notification of the connector.
func (h *testHost) next() message {
	h.t.Helper()
	select {
	case m := <-h.inbound:
		return m
	case <-testContext(h.t).Done():
		h.t.Fatal("the connector said nothing")
	}
	return message{}
}

// end waits for the end of the connection and returns its cause.
func (h *testHost) end() error {
	h.t.Helper()
	select {
	case <-h.ended:
		return h.err
	case <-testContext(h.t).Done():
		h.t.Fatal("the connection did not end")
	}
	return nil
}

type params map[string]any

func (h *testHost) initialize() message {
	h.t.Helper()
	return h.call("initialize", params{"protocolVersion": protocolVersion, "capabilities": params{}})
}

func (h *testHost) grant(paths ...string) message {
	h.t.Helper()
	return h.call("featureSets/update", params{"effectiveCapabilities": append([]string{}, paths...)})
}

var everything = []string{
	"channels.acknowledge", "channels.incoming", "channels.lifecycle", "channels.publish",
	"channels.register", "channels.typing", "pushEvents", "tools",
}

// handshake takes the handshake up to the answer to the policy.
func (h *testHost) handshake() {
	h.t.Helper()
	if m := h.initialize(); m.Error != nil {
		h.t.Fatal(m.Error)
	}
	h.initialized()
	if m := h.grant(everything...); m.Error != nil {
		h.t.Fatal(m.Error)
	}
}

func openParamsOf(id string) params {
	d := NewDescriptor(id)
	return params{"channelId": id, "type": d.Type, "address": d.Address}
}

func (h *testHost) open(id string) message {
	h.t.Helper()
	return h.call("channels/open", openParamsOf(id))
}

func (h *testHost) close(id string) message {
	h.t.Helper()
	return h.call("channels/close", params{"channelId": id})
}
