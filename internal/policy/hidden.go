package policy

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// IsHidden reports whether a person looking at a page or a terminal could miss
// r or mistake it for something else: controls (except newline and tab), format
// characters, line and paragraph separators, private use, unassigned code
// points, lone surrogates, every space other than U+0020, variation selectors,
// and the letters and marks that draw nothing.
//
// It is the one definition of "hidden": the policy raises the tier of a call
// that carries such a character, pages and terminals draw it as a visible mark.
func IsHidden(r rune) bool {
	switch {
	case r < 0x7f:
		return r < 0x20 && r != '\n' && r != '\t'
	case r < 0xa1: // DEL, C1 controls, no-break space
		return true
	case r < 0x300:
		return r == 0xad // soft hyphen; the rest up to here is visible
	}
	switch r {
	case 0x034f, // combining grapheme joiner
		0x115f, 0x1160, // Hangul fillers
		0x17b4, 0x17b5, // Khmer inherent vowels
		0x2800, // blank braille pattern
		0x3164, // Hangul filler
		0xffa0, // half-width Hangul filler
		utf8.RuneError:
		return true
	}
	return unicode.Is(unicode.Variation_Selector, r) || !unicode.IsGraphic(r) || unicode.Is(unicode.Zs, r)
}

// HasHidden reports whether s holds a character that [IsHidden], or bytes that
// are not UTF-8.
func HasHidden(s string) bool { return strings.IndexFunc(s, IsHidden) >= 0 }
