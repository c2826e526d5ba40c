package mcpl

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// messageKind is what a line turned out to be.
type messageKind int

const (
	kindNoise     messageKind = iota // not a JSON object
	kindMalformed                    // an object, but no message that can be answered
	kindInvalid                      // has an id and a method that names none: answered CodeInvalidRequest
	kindRequest
	kindNotification
	kindResponse // has an id and no method (semantics §12.1)
)

// message is one line, taken apart. Its slices are copies.
type message struct {
	kind   messageKind
	id     json.RawMessage // as sent: a JSON string or number
	method string
	params json.RawMessage
	result json.RawMessage
	error  json.RawMessage
	size   int // bytes of the line
}

// parseMessage reads one trimmed line. The member "jsonrpc" is not looked at:
// nothing depends on it.
func parseMessage(line []byte) message {
	m := message{size: len(line)}
	if !utf8.Valid(line) {
		// Nothing that is echoed or kept may carry bytes that are not UTF-8.
		line = bytes.ToValidUTF8(line, []byte("\uFFFD"))
	}
	if !isObject(line) {
		return m // also a batch: the protocol has none (semantics §12.1)
	}
	var members struct {
		ID     json.RawMessage `json:"id"`
		Method json.RawMessage `json:"method"`
		Params json.RawMessage `json:"params"`
		Result json.RawMessage `json:"result"`
		Error  json.RawMessage `json:"error"`
	}
	if json.Unmarshal(line, &members) != nil {
		return m
	}
	m.kind = kindMalformed
	hasID := isString(members.ID) || isNumber(members.ID)
	if !hasID && len(members.ID) > 0 && !isNull(members.ID) {
		return m // an id that cannot be echoed as one
	}
	if hasID {
		m.id = members.ID
	}
	if len(members.Method) == 0 {
		if !hasID {
			return m
		}
		m.kind, m.result = kindResponse, members.Result
		if !isNull(members.Error) {
			m.error = members.Error
		}
		return m
	}
	m.method, m.params = text(members.Method), members.Params
	switch {
	case m.method != "" && hasID:
		m.kind = kindRequest
	case m.method != "":
		m.kind = kindNotification
	case hasID:
		m.kind = kindInvalid
	}
	return m
}

// ownID reads the id of a response as one of the host's own request ids. Only
// the exact text that was sent is one: a JSON number in plain digits has no
// other spelling.
func (m message) ownID() (uint64, bool) {
	n, err := strconv.ParseUint(string(m.id), 10, 64)
	return n, err == nil
}

// responseError turns the error member of a response into a CallError.
func (m message) responseError() *CallError {
	var e struct {
		Code    json.RawMessage `json:"code"`
		Message json.RawMessage `json:"message"`
		Data    json.RawMessage `json:"data"`
	}
	if json.Unmarshal(m.error, &e) != nil {
		e.Message = m.error // an error that is no object, such as a bare string
	}
	err := &CallError{Outcome: ErrorResponse, Message: Sanitize(text(e.Message), maxErrorMessage)}
	if code, convErr := strconv.Atoi(string(e.Code)); convErr == nil {
		err.Code = code
	}
	if len(e.Data) <= maxErrorData && !isNull(e.Data) {
		err.Data = e.Data
	}
	return err
}

// encodeRequest and the other encoders build one line, without a line end.
// params, result and id are compact JSON.
func encodeRequest(id uint64, method string, params []byte) []byte {
	b := append([]byte(`{"jsonrpc":"2.0","id":`), strconv.FormatUint(id, 10)...)
	return encodeMethod(b, method, params)
}

func encodeNotification(method string, params []byte) []byte {
	return encodeMethod([]byte(`{"jsonrpc":"2.0"`), method, params)
}

func encodeMethod(b []byte, method string, params []byte) []byte {
	name, _ := marshal(method) // a string always encodes
	b = append(b, `,"method":`...)
	b = append(b, name...)
	if len(params) > 0 {
		b = append(b, `,"params":`...)
		b = append(b, params...)
	}
	return append(b, '}')
}

func encodeAnswer(id json.RawMessage, answer Answer) []byte {
	member, value := `,"result":`, []byte(`{}`)
	var err error
	switch {
	case answer.Err != nil:
		member = `,"error":`
		value, err = marshal(answer.Err)
	case answer.Result != nil:
		value, err = marshal(answer.Result)
	}
	if err != nil {
		member, value = `,"error":`, []byte(`{"code":-32603,"message":"internal error"}`)
	}
	b := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	b = append(b, member...)
	b = append(b, value...)
	return append(b, '}')
}

// marshal encodes v as compact JSON on one line, leaving <, > and & as they are.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
