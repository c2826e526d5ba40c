package mcpl

import (
	"encoding/json"
	"errors"
)

// maxElements bounds the elements of a list and the members of an object that
// are taken from a connector one by one: more than the largest maxChannels, far
// less than fits into a line. Without it a line of 4 MiB that says nothing but
// [0,0,0,… costs half a GiB and its answer a tenth of that.
const maxElements = 1 << 15

var errOverfull = errors.New("more than 32768 elements")

// overfull reports whether a JSON list or object has more than maxElements. It
// costs one pass and no memory.
func overfull(raw []byte) bool {
	if len(raw) <= 2*maxElements {
		return false // an element has a byte and its comma another
	}
	depth, commas := 0, 0
	inString, escaped := false, false
	for _, c := range raw {
		switch {
		case escaped:
			escaped = false
		case inString:
			escaped, inString = c == '\\', c != '"'
		case c == '"':
			inString = true
		case c == '[', c == '{':
			depth++
		case c == ']', c == '}':
			depth--
		case c == ',' && depth == 1:
			if commas++; commas == maxElements {
				return true
			}
		}
	}
	return false
}

// decodeList decodes a JSON list that is not overfull; nothing and null are an
// empty one.
func decodeList[T any](raw []byte) ([]T, error) {
	if isNull(raw) {
		return nil, nil
	}
	if overfull(raw) {
		return nil, errOverfull
	}
	var list []T
	err := json.Unmarshal(raw, &list)
	return list, err
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *IncomingParams) UnmarshalJSON(raw []byte) error {
	var w struct {
		Messages json.RawMessage `json:"messages"`
	}
	err := json.Unmarshal(raw, &w)
	if err == nil {
		p.Messages, err = decodeList[IncomingMessage](w.Messages)
	}
	return err
}
