package page

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ayegate/ayegate/internal/policy"
)

// Kind says what a [Piece] stands for.
type Kind uint8

// Kinds of pieces.
const (
	Plain  Kind = iota // the text itself
	Mark               // a character that could be missed, Count times
	Spaces             // Count spaces that could be miscounted
	Tabs               // Count tabs
	Breaks             // Count line breaks
)

// Piece is a part of a text as it is drawn.
type Piece struct {
	Kind  Kind
	Text  string // of Plain
	Rune  rune   // of Mark
	Count int
}

// Pieces takes a text apart for drawing. Nothing is dropped: [Text] puts it
// together again.
func Pieces(s string) []Piece {
	var out []Piece
	runes := []rune(s)
	from := 0
	flush := func(to int) {
		if to > from {
			out = append(out, Piece{Kind: Plain, Text: string(runes[from:to])})
		}
	}
	for i := 0; i < len(runes); {
		n := 1
		for i+n < len(runes) && runes[i+n] == runes[i] {
			n++
		}
		kind := kindOf(runes, i, n)
		if kind == Plain {
			i += n
			continue
		}
		flush(i)
		out = append(out, Piece{Kind: kind, Rune: runes[i], Count: n})
		i += n
		from = i
	}
	flush(len(runes))
	return out
}

// kindOf says how the n equal runes at i are drawn.
func kindOf(runes []rune, i, n int) Kind {
	switch r := runes[i]; {
	case r == '\n':
		return Breaks
	case r == '\t':
		return Tabs
	case r == ' ' && (n > 1 || i == 0 || i+n == len(runes) || blank(runes[i-1]) || blank(runes[i+n])):
		return Spaces
	case policy.IsHidden(r):
		return Mark
	}
	return Plain
}

// blank reports whether a space beside r would not be seen for what it is.
func blank(r rune) bool { return r == '\n' || r == '\t' || policy.IsHidden(r) }

// Text puts pieces together again.
func Text(pieces []Piece) string {
	var b strings.Builder
	for _, p := range pieces {
		switch p.Kind {
		case Plain:
			b.WriteString(p.Text)
		case Spaces:
			b.WriteString(strings.Repeat(" ", p.Count))
		case Tabs:
			b.WriteString(strings.Repeat("\t", p.Count))
		case Breaks:
			b.WriteString(strings.Repeat("\n", p.Count))
		case Mark:
			b.WriteString(strings.Repeat(string(p.Rune), p.Count))
		}
	}
	return b.String()
}

// How many equal marks are drawn one by one; more are counted, so that nothing
// can be pushed out of sight (DISP-03).
const (
	few       = 8
	fewBreaks = 3
)

// Label is what is drawn for a piece that is not plain.
func (p Piece) Label() string {
	unit := map[Kind]string{Spaces: "·", Tabs: "⇥", Breaks: "⏎"}[p.Kind]
	switch {
	case p.Kind == Plain:
		return p.Text
	case p.Kind == Mark && p.Count == 1:
		return fmt.Sprintf("U+%04X", p.Rune)
	case p.Kind == Mark:
		return fmt.Sprintf("U+%04X ×%d", p.Rune, p.Count)
	case p.Count <= few && p.Kind != Breaks:
		return strings.Repeat(unit, p.Count)
	case p.Kind == Spaces:
		return "space ×" + strconv.Itoa(p.Count)
	case p.Count == 1:
		return unit
	}
	return unit + " ×" + strconv.Itoa(p.Count)
}

// Class is the style of a piece that is not plain.
func (p Piece) Class() string {
	if p.Kind == Mark || p.Count > few || p.Kind == Breaks && p.Count > 1 {
		return "chip"
	}
	return "ws"
}

// Name says in words what a mark stands for.
func (p Piece) Name() string {
	if name, ok := names[p.Rune]; ok && p.Kind == Mark {
		return name
	}
	switch p.Kind {
	case Spaces:
		return plural(p.Count, "space", "spaces")
	case Tabs:
		return plural(p.Count, "tab", "tabs")
	case Breaks:
		return plural(p.Count, "line break", "line breaks")
	case Plain, Mark:
	}
	switch {
	case p.Rune < 0x20 || p.Rune >= 0x7f && p.Rune < 0xa0:
		return "control character"
	case p.Rune >= 0xe0000 && p.Rune <= 0xe007f:
		return "tag character, invisible"
	case p.Rune >= 0xfe00 && p.Rune <= 0xfe0f || p.Rune >= 0xe0100 && p.Rune <= 0xe01ef:
		return "variation selector, invisible"
	case p.Rune >= 0xe000 && p.Rune <= 0xf8ff || p.Rune >= 0xf0000:
		return "private use, looks different everywhere"
	}
	return "character that cannot be seen or is easily mistaken"
}

// names of the characters that people meet most.
var names = map[rune]string{
	0x00: "null", 0x07: "bell", 0x08: "backspace", 0x0d: "carriage return", 0x1b: "escape, starts terminal commands", 0x7f: "delete",
	0xa0: "no-break space", 0xad: "soft hyphen", 0x34f: "combining grapheme joiner", 0x61c: "Arabic letter mark",
	0x2003: "em space", 0x2009: "thin space", 0x200b: "zero width space", 0x200c: "zero width non-joiner", 0x200d: "zero width joiner",
	0x200e: "left-to-right mark", 0x200f: "right-to-left mark", 0x2028: "line separator", 0x2029: "paragraph separator",
	0x202a: "left-to-right embedding", 0x202b: "right-to-left embedding", 0x202c: "pop directional formatting",
	0x202d: "left-to-right override", 0x202e: "right-to-left override: turns the order of what follows around",
	0x202f: "narrow no-break space", 0x2060: "word joiner", 0x2066: "left-to-right isolate", 0x2067: "right-to-left isolate",
	0x2068: "first strong isolate", 0x2069: "pop directional isolate", 0x2800: "blank braille pattern", 0x3000: "ideographic space",
	0x3164: "Hangul filler", 0xfeff: "zero width no-break space (byte order mark)", 0xfffd: "replacement character",
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return grouped(n) + " " + many
}

// grouped writes a number with commas: 18,231.
func grouped(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
