package main

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/ayegate/ayegate/internal/policy"
)

// visible makes every character of a text show on a terminal: what a person
// could not see, or what a terminal would obey, is written as <U+202E>. Newlines
// stay newlines and tabs tabs. Nothing is removed (DISP-01, DISP-02).
func visible(s string) string {
	if !policy.HasHidden(s) && !strings.ContainsRune(s, '<') {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, "<byte %02X>", s[i])
		case policy.IsHidden(r):
			fmt.Fprintf(&b, "<U+%04X>", r)
		case r == '<' && strings.HasPrefix(s[i:], "<U+"):
			b.WriteString("<U+003C>") // a text that only looks like an escape is told apart
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

// oneLine is visible for a place where a newline would break a row.
func oneLine(s string) string {
	return strings.NewReplacer("\n", "<U+000A>", "\t", "<U+0009>").Replace(visible(s))
}
