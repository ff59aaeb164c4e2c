package page

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/policy"
	"github.com/ayegate/ayegate/internal/strictjson"
)

// Exact is a call as it is drawn: the same bytes twice, once laid out and once as
// they are, and so what is sent beside it.
type Exact struct {
	Server, Tool string
	Hash         string
	Args         Value   // laid out
	Raw          []Piece // the canonical bytes
	Extra        Value   // what is sent beside the call, laid out; no type: nothing
	ExtraRaw     []Piece // its canonical bytes
	Lines        int     // of both laid out forms
	Characters   int     // of both canonical forms
	Hidden       int     // characters of both that could be missed
	Warnings     []Warning
}

// Value is one value of a call, laid out.
type Value struct {
	Type    string // object, array, text, number, boolean, null
	Text    []Piece
	Members []Member
}

// Member is a value in its object or array.
type Member struct {
	Name  []Piece
	Value Value
}

// Of takes a call apart, and what is sent beside it, canonical JSON or nil.
func Of(c call.Call, extra []byte) Exact {
	canonical := string(c.Canonical())
	x := Exact{
		Server: c.Server(), Tool: c.Tool(), Hash: c.Hash().String(), Raw: Pieces(canonical), ExtraRaw: Pieces(string(extra)),
		Characters: utf8.RuneCountInString(canonical) + utf8.RuneCount(extra), Hidden: Hidden(c, extra),
	}
	if c.IsZero() {
		return x
	}
	x.Args = valueOf(c.Args())
	x.Lines = x.Args.lines()
	if len(extra) > 0 {
		x.Extra = valueOf(extra)
		x.Lines += x.Extra.lines()
	}
	x.Warnings = warnings(c, extra)
	return x
}

// own are limits for what was accepted before: they only bound the recursion.
func own(b []byte) strictjson.Limits { return strictjson.Limits{Bytes: len(b), Nodes: len(b)} }

func valueOf(raw []byte) Value {
	var v Value
	switch raw[0] {
	case '{':
		v.Type = "object"
		_ = strictjson.Members(raw, own(raw), func(name string, value []byte) error {
			v.Members = append(v.Members, Member{Name: Pieces(name), Value: valueOf(value)})
			return nil
		})
	case '[':
		v.Type = "array"
		_ = strictjson.Elements(raw, own(raw), func(_ int, value []byte) error {
			v.Members = append(v.Members, Member{Value: valueOf(value)})
			return nil
		})
	case '"':
		v.Type = "text"
		s, _ := strictjson.String(raw)
		v.Text = Pieces(s)
	case 't', 'f':
		v.Type, v.Text = "boolean", Pieces(string(raw))
	case 'n':
		v.Type, v.Text = "null", Pieces(string(raw))
	default:
		v.Type, v.Text = "number", Pieces(string(raw))
	}
	return v
}

func (v Value) lines() int {
	n := 0
	for _, p := range v.Text {
		if p.Kind == Breaks {
			n += p.Count
		}
	}
	for _, m := range v.Members {
		n += m.Value.lines()
	}
	if v.Type != "object" && v.Type != "array" || len(v.Members) == 0 {
		n++
	}
	return n
}

// texts calls visit for every name and every text of a call, the tool's name
// first, and of what is sent beside it.
func texts(c call.Call, extra []byte, visit func(string)) {
	if c.IsZero() {
		return
	}
	visit(c.Tool())
	var walk func(raw []byte)
	walk = func(raw []byte) {
		switch raw[0] {
		case '{':
			_ = strictjson.Members(raw, own(raw), func(name string, value []byte) error {
				visit(name)
				walk(value)
				return nil
			})
		case '[':
			_ = strictjson.Elements(raw, own(raw), func(_ int, value []byte) error { walk(value); return nil })
		case '"':
			if s, err := strictjson.String(raw); err == nil {
				visit(s)
			}
		}
	}
	walk(c.Args())
	if len(extra) > 0 {
		walk(extra)
	}
}

// Hidden counts the characters of a call, and of what is sent beside it, that a
// person could miss or mistake.
func Hidden(c call.Call, extra []byte) int {
	n := 0
	texts(c, extra, func(s string) {
		for _, r := range s {
			if policy.IsHidden(r) {
				n++
			}
		}
	})
	return n
}

// Summary is one line about a call, made of its own values. It says when it
// leaves something out; it never replaces the call. beside says that more is sent
// than the call.
func Summary(c call.Call, beside bool) string {
	text, left := brief(c, 3, 60)
	s := "Call " + legible(c.Tool(), 80) + " on " + c.Server()
	if text != "" {
		s += " with " + text
	}
	if left != "" {
		s += " " + left
	}
	if beside {
		s += ", and more is sent beside the call"
	}
	return s + "."
}

// Preview is a call's arguments on one line, for lists. short says that there is
// more than is shown: then nobody may decide from it.
func Preview(c call.Call) (text []Piece, short bool) {
	const width = 140
	s, left := brief(c, 4, 80)
	one := cut(s, width)
	return Pieces(one), left != "" || one != s || strings.Contains(s, "…")
}

// brief writes the first arguments, and what is left out.
func brief(c call.Call, most, width int) (text, left string) {
	if c.IsZero() {
		return "", ""
	}
	var parts []string
	n := 0
	args := c.Args()
	_ = strictjson.Members(args, own(args), func(name string, value []byte) error {
		if n++; n <= most {
			parts = append(parts, legible(name, 40)+" "+shown(value, width))
		}
		return nil
	})
	if n > most {
		left = "and " + plural(n-most, "more argument", "more arguments")
	}
	return strings.Join(parts, ", "), left
}

func shown(value []byte, width int) string {
	if value[0] == '"' {
		if s, err := strictjson.String(value); err == nil {
			return quoted(s, width)
		}
	}
	return visible(cut(string(value), width))
}

// legible is a name as it is, or quoted when it could be misread. A comma ends an
// argument where a space follows, so it is quoted too.
func legible(s string, width int) string {
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r == '"' || r == ',' || policy.IsHidden(r) }) < 0 {
		return cut(s, width)
	}
	return quoted(s, width)
}

// quoted writes a text so that it ends where it ends: no quotation mark and no
// backslash of its own can be taken for ours (DISP-05).
func quoted(s string, width int) string {
	return `"` + visible(escaped.Replace(cut(s, width))) + `"`
}

var escaped = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// visible writes out what a line of plain text would hide.
func visible(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case policy.IsHidden(r):
			fmt.Fprintf(&b, "[U+%04X]", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func cut(s string, width int) string {
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	return string([]rune(s)[:width]) + "…"
}
