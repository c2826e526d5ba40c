package mcpl

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Sanitize makes text from a connector fit for a status, an event or a log: it
// drops control characters, line separators and the controls of bidirectional
// text (which could make a terminal or a table show something else), replaces
// what is not UTF-8 by U+FFFD, and ends at the last whole rune within max bytes.
func Sanitize(s string, max int) string {
	var b strings.Builder
	for _, r := range s {
		if hidden(r) {
			continue
		}
		if b.Len()+utf8.RuneLen(r) > max {
			break
		}
		b.WriteRune(r)
	}
	return b.String()
}

// hidden reports whether r changes how text is shown instead of showing.
func hidden(r rune) bool {
	switch {
	case unicode.IsControl(r):
		return true
	case r == 0x2028, r == 0x2029: // line and paragraph separator
		return true
	case r == 0x061C, r == 0x200E, r == 0x200F: // marks
		return true
	case r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069: // embeddings, overrides, isolates
		return true
	}
	return false
}
