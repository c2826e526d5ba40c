package mcpl

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestInboundLines(t *testing.T) {
	cases := map[string]struct {
		frame string
		heard []string
		wrote []string
		stats Stats
	}{
		"a request is served and answered": {
			frame: `{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1}}`,
			heard: []string{`request m {"a":1}`},
			wrote: []string{`{"jsonrpc":"2.0","id":1,"result":{}}`},
		},
		"a notification is served and never answered": {
			frame: `{"jsonrpc":"2.0","method":"m","params":[1]}`,
			heard: []string{`notification m [1]`},
		},
		"a null id makes a notification": {
			frame: `{"jsonrpc":"2.0","id":null,"method":"m"}`,
			heard: []string{`notification m `},
		},
		"fact 13 log lines between messages are skipped": {
			frame: "[discord] starting\n" + `{"method":"a"}` + "\n\"text\"\n17\nnull\n{\n" + `{"method":"b"}` + "\n{} trailing\n",
			heard: []string{`notification a `, `notification b `},
			stats: Stats{SkippedLines: 6},
		},
		"frames are split on newlines, trimmed, blanks ignored": {
			frame: "\n  \r\n\t{\"method\":\"a\"} \r\n\n{\"method\":\"b\"}\r",
			heard: []string{`notification a `, `notification b `},
		},
		"batches are not served": {
			frame: `[{"jsonrpc":"2.0","id":1,"method":"m"}]`,
			stats: Stats{SkippedLines: 1},
		},
		"a message without jsonrpc is taken": {
			frame: `{"id":"x","method":"m"}`,
			heard: []string{`request m `},
			wrote: []string{`{"jsonrpc":"2.0","id":"x","result":{}}`},
		},
		"an id without a method is a response, here to no request": {
			frame: `{"jsonrpc":"2.0","id":1,"params":{}}`,
			stats: Stats{UnknownAnswers: 1},
		},
		"neither id nor method": {
			frame: `{"jsonrpc":"2.0","result":{}}`,
			stats: Stats{Malformed: 1},
		},
		"an id that cannot be echoed as one": {
			frame: `{"id":{"a":1},"method":"m"}` + "\n" + `{"id":[1],"method":"m"}` + "\n" + `{"id":true,"method":"m"}`,
			stats: Stats{Malformed: 3},
		},
		"a request whose method is no name is answered": {
			frame: `{"id":7,"method":5}` + "\n" + `{"id":8,"method":""}` + "\n" + `{"method":5}`,
			wrote: []string{
				`{"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"malformed request"}}`,
				`{"jsonrpc":"2.0","id":8,"error":{"code":-32600,"message":"malformed request"}}`,
			},
			stats: Stats{Malformed: 1},
		},
		"bytes that are not UTF-8 are replaced": {
			frame: "{\"id\":\"a\xff\",\"method\":\"m\"}",
			heard: []string{`request m `},
			wrote: []string{"{\"jsonrpc\":\"2.0\",\"id\":\"a\uFFFD\",\"result\":{}}"},
		},
		"nesting beyond all measure is noise": {
			frame: `{"method":"m","params":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`,
			stats: Stats{SkippedLines: 1},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			onWire(t, Options{}, func(b *bench) {
				b.send(tc.frame)
				b.heard(tc.heard...)
				b.wrote(tc.wrote...)
				b.lives()
				equal(b, b.conn.Stats(), tc.stats)
			})
		})
	}
}

func TestIDsAreEchoedVerbatim(t *testing.T) {
	for _, id := range []string{`1`, `0`, `-5`, `1.0`, `1e3`, `12345678901234567890123`, `""`, `"1"`, `"a\u0062 <&> é \n"`} {
		onWire(t, Options{}, func(b *bench) {
			b.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"m"}`, id))
			b.wrote(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, id))
		})
	}
}

func TestAnswers(t *testing.T) {
	cases := map[string]struct {
		answer Answer
		want   string
	}{
		"no result is an empty object": {Answer{}, `"result":{}`},
		"a result":                     {Answer{Result: map[string]any{"a": "<b>"}}, `"result":{"a":"<b>"}`},
		"an error":                     {Answer{Err: MethodNotFound()}, `"error":{"code":-32601,"message":"method not served"}`},
		"an error with data": {
			Answer{Err: NotPermitted(CapPushEvents), Result: 1},
			`"error":{"code":-32002,"message":"capability not granted: pushEvents","data":{"capability":"pushEvents"}}`,
		},
		"a result that cannot be encoded": {Answer{Result: func() {}}, `"error":{"code":-32603,"message":"internal error"}`},
		"a result over several lines is sent in one": {
			Answer{Result: json.RawMessage("{\n\"a\":\n1}")}, `"result":{"a":1}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := string(encodeAnswer(json.RawMessage(`1`), tc.answer))
			equal(t, got, `{"jsonrpc":"2.0","id":1,`+tc.want+`}`)
		})
	}
}

func TestErrorAnswersOfConnectors(t *testing.T) {
	cases := map[string]struct {
		member string
		want   CallError
	}{
		"fact 17 free text": {
			`{"code":-32603,"message":"No matching channel found"}`,
			CallError{Code: -32603, Message: "No matching channel found"},
		},
		"data is kept": {
			`{"code":-32002,"message":"m","data":{"capability":"channels.lifecycle"}}`,
			CallError{Code: -32002, Message: "m", Data: json.RawMessage(`{"capability":"channels.lifecycle"}`)},
		},
		"large data is dropped":      {`{"code":1,"data":"` + strings.Repeat("x", maxErrorData) + `"}`, CallError{Code: 1}},
		"the text is made fit":       {`{"code":1,"message":"a\u001b[31m\u202eb\n"}`, CallError{Code: 1, Message: "a[31mb"}},
		"the text is cut":            {`{"code":1,"message":"` + strings.Repeat("é", 200) + `"}`, CallError{Code: 1, Message: strings.Repeat("é", 128)}},
		"an error that is a string":  {`"broken"`, CallError{Message: "broken"}},
		"an error without members":   {`{}`, CallError{}},
		"a code that is no number":   {`{"code":"x","message":5}`, CallError{}},
		"an error beside a result":   {`{"code":2},"result":{}`, CallError{Code: 2}},
		"an error that is something": {`false`, CallError{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			onWire(t, Options{}, func(b *bench) {
				call := b.conn.Start("m", nil, 0)
				b.wrote(`{"jsonrpc":"2.0","id":1,"method":"m"}`)
				b.send(`{"jsonrpc":"2.0","id":1,"error":` + tc.member + `}`)
				got := *b.failed(call, ErrorResponse)
				tc.want.Outcome = ErrorResponse
				equal(b, got, tc.want)
			})
		})
	}
}

func TestResultsOfConnectors(t *testing.T) {
	cases := map[string]struct{ member, want string }{
		"an object":                     {`,"result":{"a":1}`, `{"a":1}`},
		"null":                          {`,"result":null`, `null`},
		"none at all is still no error": {``, `null`},
		"a null error is none":          {`,"result":1,"error":null`, `1`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			onWire(t, Options{}, func(b *bench) {
				call := b.conn.Start("m", nil, 0)
				b.settle()
				b.send(`{"jsonrpc":"2.0","id":1` + tc.member + `}`)
				b.succeeded(call, tc.want)
			})
		})
	}
}

func TestDecodeParams(t *testing.T) {
	cases := map[string]struct {
		params string
		id     string
		fails  bool
	}{
		"an object":           {params: `{"channelId":"c"}`, id: "c"},
		"absent":              {},
		"null":                {params: `null`},
		"a list":              {params: `[]`, fails: true},
		"a member that is no": {params: `{"channelId":5}`, fails: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := DecodeParams[CloseParams](json.RawMessage(tc.params))
			equal(t, err != nil, tc.fails)
			equal(t, got.ChannelID, tc.id)
			if err != nil {
				equal(t, err.Code, CodeInvalidParams)
				var asError error = err
				equal(t, asError.Error(), "malformed params")
			}
		})
	}
}

func TestErrorTexts(t *testing.T) {
	cause := errors.New("cause")
	cases := map[string]error{
		"connector answered error -32603: broken": &CallError{Outcome: ErrorResponse, Code: -32603, Message: "broken"},
		"not sent: connection lost":               &CallError{Outcome: NotSent, Message: "connection lost", cause: cause},
		"no response: timed out":                  &CallError{Outcome: NoResponse, Message: "timed out"},

		"connection closed: shutting down":                                   &ConnError{Cause: ClosedByHost, Reason: "shutting down"},
		"connection closed by the connector with code 4001: taken over":      &ConnError{Cause: ClosedByConnector, Code: 4001, Reason: "taken over"},
		"connection closed by the connector":                                 &ConnError{Cause: ClosedByConnector},
		"connection closed: message over the size limit":                     &ConnError{Cause: MessageTooBig},
		"connection closed: too many messages before the policy was settled": &ConnError{Cause: HeldOverflow},
		"connection closed: the connector stopped reading":                   &ConnError{Cause: WriteTimedOut},
		"connection closed: the connector stopped answering pings":           &ConnError{Cause: PingTimedOut},
		"connection closed: internal error":                                  &ConnError{Cause: HandlerPanicked, Panic: "secret"},
		"connection lost":                                                    &ConnError{Cause: ConnectionLost},
		"closed by the connector with code 1000":                             &PeerClosedError{Code: 1000},
		"the token was refused (HTTP 401)":                                   &DialError{Class: TokenRefused, Status: 401},
		"another host holds the connector: host-b (term 1700000000.3)":       &DialError{Class: OtherHost, Status: 409, Holder: "host-b", Term: "1700000000.3"},
		"no WebSocket: something else answers (HTTP 200)":                    &DialError{Class: NotMCPL, Status: 200, Detail: "something else answers"},
		"no WebSocket: the answer is not HTTP":                               &DialError{Class: NotMCPL, Detail: "the answer is not HTTP"},
		"TLS: certificate of an unknown authority":                           &DialError{Class: TLSFailed, Detail: "certificate of an unknown authority"},
		"timed out: no answer":                                               &DialError{Class: DialTimeout, Detail: "no answer"},
		"unreachable: connection refused":                                    &DialError{Class: Unreachable, Detail: "connection refused"},
	}
	for want, err := range cases {
		equal(t, err.Error(), want)
	}
	equal(t, errors.Is(&CallError{cause: cause}, cause), true)
}
