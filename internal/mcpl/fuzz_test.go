package mcpl

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// fuzzHandler serves whatever comes and tells when the last request has.
type fuzzHandler struct{ last chan struct{} }

const lastMethod = "test/last"

func (h fuzzHandler) ServeRequest(_ context.Context, method string, params json.RawMessage) Answer {
	if method == lastMethod {
		return Answer{Then: func() { close(h.last) }}
	}
	return Answer{Result: params}
}

func (h fuzzHandler) ServeNotification(context.Context, string, json.RawMessage) {}

// fuzzPeer tells when the host has written its last request.
type fuzzPeer struct {
	*peer
	after chan struct{}
}

func (p *fuzzPeer) Write(ctx context.Context, line []byte) error {
	err := p.peer.Write(ctx, line)
	if strings.HasSuffix(string(line), `"method":"after"}`) {
		close(p.after)
	}
	return err
}

// FuzzFrame gives a connection one frame of anything. It must not panic, must
// survive, and must write nothing but one answer for each request in the frame,
// with the request's id.
func FuzzFrame(f *testing.F) {
	for _, frame := range []string{
		"",
		`{"jsonrpc":"2.0","id":1,"method":"channels/register","params":{"channels":[{"id":"c"}]}}`,
		"[log] line\n{\"id\":\"a\",\"method\":\"m\"}\r\n\n{\"method\":\"n\"}",
		`{"jsonrpc":"2.0","id":1,"result":{}}`,
		`{"jsonrpc":"2.0","id":1,"error":{"code":"x","message":7}}`,
		`[{"id":1,"method":"m"}]`,
		`{"id":null,"method":"m"}`,
		`{"id":1e99,"method":5}`,
		"{\"id\":\"\xff\",\"method\":\"\xc3\"}",
		`{"id":1,"ID":2,"method":"m"}`,
	} {
		f.Add([]byte(frame))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		p := &fuzzPeer{peer: newPeer(t), after: make(chan struct{})}
		h := fuzzHandler{last: make(chan struct{})}
		c := NewConn(p, h, Options{})
		defer func() {
			c.Close("end of test")
			<-c.Done()
		}()
		c.Release()
		call := c.Start("ours", nil, 0)
		p.send(string(frame))
		p.send(`{"jsonrpc":"2.0","id":"last","method":"` + lastMethod + `"}`)
		select {
		case <-h.last:
		case <-c.Done():
			t.Fatalf("the connection ended: %v", c.Err())
		}
		// The answers have been queued in order; this call comes after them.
		if after := c.Start("after", nil, 0); after.id != call.id+1 {
			t.Errorf("id %d after %d", after.id, call.id)
		}
		select {
		case <-p.after:
		case <-c.Done():
			t.Fatalf("the connection ended: %v", c.Err())
		}
		checkAnswers(t, frame, p.lines())
	})
}

// checkAnswers checks what was written against a plain reading of the frame.
func checkAnswers(t *testing.T, frame []byte, lines []string) {
	t.Helper()
	var want []string
	for _, line := range bytes.Split(frame, []byte("\n")) {
		line = bytes.ToValidUTF8(line, []byte("\uFFFD"))
		var m struct{ ID, Method json.RawMessage }
		if !json.Valid(line) || json.Unmarshal(line, &m) != nil || len(m.Method) == 0 {
			continue
		}
		if id := bytes.TrimSpace(m.ID); len(id) > 0 && strings.ContainsRune(`"-0123456789`, rune(id[0])) {
			want = append(want, string(id))
		}
	}
	want = append(want, `"last"`)
	var got []string
	for _, line := range lines {
		var m struct {
			JSONRPC string `json:"jsonrpc"`
			ID      json.RawMessage
			Method  string
			Result  json.RawMessage
			Error   *Error
		}
		if !utf8.ValidString(line) || strings.Contains(line, "\n") || json.Unmarshal([]byte(line), &m) != nil || m.JSONRPC != "2.0" {
			t.Fatalf("the host wrote %q", line)
		}
		if m.Method != "" {
			continue // our own requests
		}
		if (len(m.Result) == 0) == (m.Error == nil) {
			t.Fatalf("neither result nor error, or both: %q", line)
		}
		got = append(got, string(m.ID))
	}
	equal(t, got, want)
}

// FuzzDescriptors gives anything as a list of descriptors: one verdict for each
// element, and what is accepted keeps the rules.
func FuzzDescriptors(f *testing.F) {
	for _, list := range []string{
		`[]`,
		`[{"id":"c","type":"chat","label":"#general","address":{"a":[1,2.50,{"b":null}]},"capabilities":{"history":{"maxMessages":80}}}]`,
		`[{"id":"a"},{"id":"a"},{"id":""},{},5,null,{"id":"b\u0000"},{"id":"\ud800"}]`,
		`[{"id":"c","address":-0.0e5,"initiallyOpen":true}]`,
		`null`,
	} {
		f.Add([]byte(list), 3)
	}
	f.Fuzz(func(t *testing.T, raw []byte, max int) {
		var list DescriptorList
		if json.Unmarshal(raw, &list) != nil {
			return
		}
		var elements []json.RawMessage
		if err := json.Unmarshal(raw, &elements); err != nil {
			t.Fatalf("a list was read that is none: %v", err)
		}
		verdicts := CheckDescriptors(list, max, nil)
		if len(verdicts) != len(elements) {
			t.Fatalf("%d verdicts on %d elements", len(verdicts), len(elements))
		}
		accepted := map[string]bool{}
		for i, v := range verdicts {
			equal(t, v.ID, list[i].ID)
			equal(t, v.Accepted, v.Reason == "")
			if !v.Accepted {
				continue
			}
			if accepted[v.ID] || v.ID == "" || len(v.ID) > MaxChannelIDBytes || strings.ContainsFunc(v.ID, unicode.IsControl) {
				t.Fatalf("accepted %q", v.ID)
			}
			accepted[v.ID] = true
			checkDescriptor(t, list[i].Descriptor)
		}
		if max > 0 && len(accepted) > max {
			t.Fatalf("accepted %d of at most %d", len(accepted), max)
		}
	})
}

// checkDescriptor checks that a descriptor survives being sent.
func checkDescriptor(t *testing.T, d Descriptor) {
	t.Helper()
	if !d.SameTarget(d) {
		t.Fatalf("%+v has not its own target", d)
	}
	again := parseDescriptor([]byte(encode(t, d)))
	if again.Reason != "" || again.ID != d.ID || !again.SameTarget(d) || again.Label != d.Label {
		t.Fatalf("%+v became %+v", d, again)
	}
}
