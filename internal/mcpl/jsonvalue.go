package mcpl

import (
	"bytes"
	"encoding/json"
)

// The functions below look at a raw JSON value by its first byte. They are for
// values that are read tolerantly: a member of the wrong type reads as absent.

func firstByte(raw []byte) byte {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	if len(raw) == 0 {
		return 0
	}
	return raw[0]
}

func isObject(raw []byte) bool { return firstByte(raw) == '{' }
func isArray(raw []byte) bool  { return firstByte(raw) == '[' }
func isString(raw []byte) bool { return firstByte(raw) == '"' }
func isTrue(raw []byte) bool   { return firstByte(raw) == 't' }
func isFalse(raw []byte) bool  { return firstByte(raw) == 'f' }
func isNull(raw []byte) bool   { return firstByte(raw) == 'n' || len(raw) == 0 }

func isNumber(raw []byte) bool {
	b := firstByte(raw)
	return b == '-' || b >= '0' && b <= '9'
}

// text returns the value of a JSON string, and "" for anything else.
func text(raw json.RawMessage) string {
	var s string
	if !isString(raw) || json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// items returns the elements of a JSON array, and nil for anything else and for
// one that is overfull.
func items(raw json.RawMessage) []json.RawMessage {
	var list []json.RawMessage
	if !isArray(raw) || overfull(raw) || json.Unmarshal(raw, &list) != nil {
		return nil
	}
	return list
}

// texts returns the strings of a JSON array, leaving out what is none.
func texts(raw json.RawMessage) []string {
	var out []string
	for _, item := range items(raw) {
		if isString(item) {
			out = append(out, text(item))
		}
	}
	return out
}

// members returns the members of a JSON object, and nil for anything else and for
// one that is overfull.
func members(raw json.RawMessage) map[string]json.RawMessage {
	var m map[string]json.RawMessage
	if !isObject(raw) || overfull(raw) || json.Unmarshal(raw, &m) != nil {
		return nil
	}
	return m
}

// scalar returns the value of a JSON string and the text of a number, and ""
// for anything else.
func scalar(raw json.RawMessage) string {
	if isNumber(raw) {
		return string(bytes.TrimSpace(raw))
	}
	return text(raw)
}

// compact returns a value without white space, and nil for null and nothing.
func compact(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if isNull(raw) || json.Compact(&b, raw) != nil {
		return nil
	}
	return b.Bytes()
}
