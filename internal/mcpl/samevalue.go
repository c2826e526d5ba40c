package mcpl

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// sameValue reports whether two JSON texts are the same value: members in any
// order, numbers by value. Nothing equals null.
func sameValue(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	va, okA := decodeValue(a)
	vb, okB := decodeValue(b)
	return okA && okB && equalValues(va, vb)
}

// decodeValue keeps numbers as text: an id of 19 digits does not survive a float.
func decodeValue(raw json.RawMessage) (any, bool) {
	if len(raw) == 0 {
		return nil, true
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	err := dec.Decode(&v)
	return v, err == nil
}

func equalValues(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k, v := range a {
			w, ok := b[k]
			if !ok || !equalValues(v, w) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !equalValues(a[i], b[i]) {
				return false
			}
		}
		return true
	case json.Number:
		b, ok := b.(json.Number)
		return ok && (a == b || canonicalNumber(a) == canonicalNumber(b))
	default:
		return a == b
	}
}

// number is a JSON number as sign, digits without zeros at either end, and the
// power of ten of the last digit.
type number struct {
	negative bool
	digits   string
	exponent int
}

func canonicalNumber(n json.Number) number {
	s, negative := strings.CutPrefix(string(n), "-")
	mantissa, exp, _ := strings.Cut(strings.ToLower(s), "e")
	exponent, err := strconv.Atoi(exp)
	if exp != "" && err != nil {
		return number{digits: string(n)} // beyond any number: equal to the same text only
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	exponent -= len(fraction)
	trimmed := strings.TrimRight(digits, "0")
	exponent += len(digits) - len(trimmed)
	if trimmed == "" {
		return number{}
	}
	return number{negative: negative, digits: trimmed, exponent: exponent}
}
