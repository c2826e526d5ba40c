package mcpl

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestP16LinesThatEndTheConnection: with a reason that is the same every time
// and over either transport.
func TestP16LinesThatEndTheConnection(t *testing.T) {
	cases := map[string]struct {
		session func(f *farEnd)
		want    string
	}{
		"10 MiB in a line": {
			func(f *farEnd) { _ = f.send(strings.Repeat("x", 10<<20)) },
			"connection closed: message over the size limit",
		},
		"10 MiB of JSON": {
			func(f *farEnd) {
				_ = f.send(`{"id":1,"method":"m","params":{"x":"` + strings.Repeat("x", 10<<20) + `"}}`)
				f.drain()
			},
			"connection closed: message over the size limit",
		},
		"one byte too many": {
			func(f *farEnd) {
				_ = f.send(strings.Repeat("x", farLimit+1))
				f.drain()
			},
			"connection closed: message over the size limit",
		},
		"the end in the middle of a line": {
			func(f *farEnd) {
				_, _ = f.recv()
				_ = f.half(`{"jsonrpc":"2.0","id":1,"result":{}}`) // complete, but for its end
			},
			"connection lost",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			overBoth(t, hostOptions(), tc.session, func(h *host) {
				before := heapInUse()
				call := h.Start("m", nil, 0)
				h.hasEnded(tc.want)
				if _, err := call.Result(); err == nil {
					h.Error("the call succeeded")
				}
				heapIsBounded(h.T, before)
			})
		})
	}
}

func TestTheLargestLineThatIsTaken(t *testing.T) {
	overBoth(t, hostOptions(), func(f *farEnd) {
		_, _ = f.recv()
		empty := len(`{"id":1,"result":""}`)
		_ = f.send(`{"id":1,"result":"` + strings.Repeat("x", farLimit-empty) + `"}`)
		f.drain()
	}, func(h *host) {
		got, err := h.Start("m", nil, 0).Wait(h.Context())
		equal(h, err, nil)
		equal(h, len(got), farLimit-len(`{"id":1,"result":}`))
	})
}

func nested(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }

func nestedObjects(depth int) string {
	return strings.Repeat(`{"a":`, depth) + "1" + strings.Repeat("}", depth)
}

// TestDeepNesting: a thousand deep is served. A hundred thousand is over what is
// read as JSON (10,000), so it is a line like any other that is none.
func TestDeepNesting(t *testing.T) {
	overBoth(t, hostOptions(), func(f *farEnd) {
		_, _ = f.recv()
		for id, params := range []string{nested(1000), nestedObjects(1000), nested(100_000), nestedObjects(100_000)} {
			_ = f.send(fmt.Sprintf(`{"id":%d,"method":"deep","params":%s}`, id, params))
			_ = f.send(fmt.Sprintf(`{"id":7,"result":%s}`, params))
		}
		_ = f.send(nested(100_000))
		_ = f.send(strings.Repeat("[", 100_000))
		for range 2 { // the host's answers
			_, _ = f.recv()
		}
		_ = f.send(answerTo(1))
		f.drain()
	}, func(h *host) {
		before := heapInUse()
		h.Release()
		h.lives(1)
		equal(h, h.Stats(), Stats{UnknownAnswers: 2, SkippedLines: 6})
		equal(h, len(h.h.heard()), 2)
		heapIsBounded(h.T, before)
	})
}

// TestDeepDescriptors reads what is nested where the host looks.
func TestDeepDescriptors(t *testing.T) {
	list := decode[DescriptorList](t, `[{"id":"a","address":`+nested(8000)+`},{"id":"b","capabilities":`+nestedObjects(9000)+`},{"id":`+nested(9000)+`}]`)
	verdicts := CheckDescriptors(list, 0, nil)
	equal(t, []bool{verdicts[0].Accepted, verdicts[1].Accepted, verdicts[2].Accepted}, []bool{true, true, false})
	equal(t, list[0].SameTarget(list[0].Descriptor), true)
	if _, err := marshal(OpenParams{ChannelID: "a", Address: list[0].Address}); err != nil {
		t.Errorf("what was accepted cannot be sent back: %v", err)
	}
}

func TestFact13NoiseOverBoth(t *testing.T) {
	noise := []string{
		"", " ", "\t\r", "[log] connected", "{", "}", "{]", "[1,2]", "null", "true", "1", `"x"`, `{"id":1,"result":}`, `{'id':1}`,
		"{\"id\":1,\"result\":\"\x00\"}", "\xff\xfe{}", "\x1b[31mred\x1b[0m", "HTTP/1.1 400 Bad Request", strings.Repeat("x", farLimit),
		`{"id":1,"result":"cut`, `{"id":1}{"id":1}`,
	}
	overBoth(t, hostOptions(), func(f *farEnd) {
		_, _ = f.recv()
		for _, line := range noise {
			_ = f.send(line)
		}
		_ = f.send(answerTo(1))
		f.drain()
	}, func(h *host) {
		h.Release()
		h.lives(1)
		equal(h, h.Stats(), Stats{SkippedLines: uint64(len(noise) - 3)}) // three are blank
		equal(h, len(h.h.heard()), 0)
	})
}

// TestIDsOfEveryShape: an id comes back exactly as it was sent, on one line, and
// a channel's in a verdict.
func TestIDsOfEveryShape(t *testing.T) {
	type wire struct {
		ID     json.RawMessage `json:"id"`
		Result struct {
			Results []Verdict `json:"results"`
		} `json:"result"`
	}
	long := strings.Repeat("é", 1024) // 2 KiB
	ids := []string{
		`"a\nb"`, `"a\r\nb"`, `"\u000a"`, "\"\u202Eevil\u2066\"", "\"\u2028\u2029\"", `"\u202e"`, `"` + long + `"`, `"` + long + `x"`,
		`"` + strings.Repeat("x", 64<<10) + `"`, `"<&>"`, `"\u0000"`, `"\ud800"`, `-0.5e+10`, `123456789012345678901234567890`,
	}
	answers := make(chan []wire, 2)
	overBoth(t, hostOptions(), func(f *farEnd) {
		_, _ = f.recv()
		var got []wire
		for _, id := range ids {
			channel := id
			if id[0] != '"' {
				channel = `"c"`
			}
			_ = f.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"channels/register","params":{"channels":[{"id":` + channel + `}]}}`)
			var w wire
			if line, _ := f.recv(); !strings.Contains(line, "\n") {
				_ = json.Unmarshal([]byte(line), &w) // the ids are compared below
			}
			got = append(got, w)
		}
		answers <- got
		f.drain()
	}, func(h *host) {
		h.h.onRequest(func(_ context.Context, _ string, params json.RawMessage) Answer {
			p, err := DecodeParams[RegisterParams](params)
			if err != nil {
				return Answer{Err: err}
			}
			return Answer{Result: NewRegisterResult(CheckDescriptors(p.Channels, 0, nil))}
		})
		h.Release()
		equal(h, h.Notify("go", nil), nil)
		for i, got := range <-answers {
			equal(h, string(got.ID), ids[i])
			if len(got.Result.Results) != 1 {
				h.Fatalf("%s: %d verdicts", ids[i], len(got.Result.Results))
			}
			v := got.Result.Results[0]
			if ids[i][0] == '"' {
				equal(h, v.ID, decode[string](h.T, ids[i]))
			}
			equal(h, v.Accepted, ValidID(v.ID))
			if v.Accepted != (v.Reason == "") || strings.Contains(v.Reason, "\n") || len(v.Reason) > 100 {
				h.Errorf("%s: %+v", ids[i], v)
			}
		}
	})
}

// TestOverfullLists: a line may have millions of elements. Those that the host
// would take one by one are refused as a whole; the rest is not looked at.
func TestOverfullLists(t *testing.T) {
	many := func(element string, n int) string { return strings.TrimSuffix(strings.Repeat(element+",", n), ",") }
	const fits, over = maxElements, maxElements + 1
	for name, tc := range map[string]struct {
		decode func(n int, element string) (int, *Error)
	}{
		"channels/register": {func(n int, e string) (int, *Error) {
			p, err := DecodeParams[RegisterParams]([]byte(`{"channels":[` + many(e, n) + `]}`))
			return len(p.Channels), err
		}},
		"channels/changed added": {func(n int, e string) (int, *Error) {
			p, err := DecodeParams[ChangedParams]([]byte(`{"added":[` + many(e, n) + `]}`))
			return len(p.Added), err
		}},
		"channels/changed removed": {func(n int, e string) (int, *Error) {
			p, err := DecodeParams[ChangedParams]([]byte(`{"removed":[` + many(e, n) + `]}`))
			return len(p.Removed), err
		}},
		"channels/incoming": {func(n int, e string) (int, *Error) {
			p, err := DecodeParams[IncomingParams]([]byte(`{"messages":[` + many(e, n) + `]}`))
			return len(p.Messages), err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, element := range []string{`0`, `{}`} {
				n, err := tc.decode(fits, element)
				equal(t, err, (*Error)(nil))
				equal(t, n, fits)
				_, err = tc.decode(over, element)
				equal(t, err, InvalidParams())
			}
		})
	}
	for _, element := range []string{`0`, `"]"`, `"\\\",[{"`, `[1,2,[3,4],{"a":1,"b":2}]`, `{"a":"}","b":2}`} {
		equal(t, overfull([]byte(`[`+many(element, fits)+`]`)), false)
		equal(t, overfull([]byte(`[`+many(element, over)+`]`)), true)
		equal(t, overfull([]byte(`[[`+many(element, over)+`]]`)), false)
	}
	equal(t, len(items([]byte(`[`+many(`0`, over)+`]`))), 0)
	var object bytes.Buffer
	for i := range over {
		fmt.Fprintf(&object, `"%d":0,`, i)
	}
	equal(t, len(members([]byte(`{`+object.String()+`"last":0}`))), 0)
	equal(t, len(members([]byte(`{`+strings.TrimSuffix(object.String(), fmt.Sprintf(`"%d":0,`, over-1))+`"last":0}`))) <= fits, true)
}
