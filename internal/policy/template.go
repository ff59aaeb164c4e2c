package policy

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ayegate/ayegate/internal/strictjson"
)

// argPath leads to a value in the arguments: ["amount_usd"] for args.amount_usd.
type argPath []string

func (p argPath) String() string { return "args." + strings.Join(p, ".") }

func parseArgPath(s string) (argPath, string) {
	steps := strings.Split(s, ".")
	if steps[0] != "args" || len(steps) < 2 {
		return nil, `"` + s + `" is not an argument: write args.NAME`
	}
	for _, step := range steps[1:] {
		if step == "" || HasHidden(step) || strings.ContainsAny(step, " {}[]\"'") {
			return nil, `"` + s + `" is not an argument: write args.NAME`
		}
	}
	return steps[1:], ""
}

// template is a text with slots that point into the call. Only the call fills
// them, so what it says of the call is true.
type template struct {
	at       Fault
	segments []segment
}

// segment is literal text, or a slot when path or variable is set.
type segment struct {
	text     string
	path     argPath
	variable string // tool, server or agent
}

func parseTemplate(s string) ([]segment, string) {
	var out []segment
	for s != "" {
		open := strings.IndexByte(s, '{')
		if open < 0 {
			return append(out, segment{text: s}), ""
		}
		if open > 0 {
			out = append(out, segment{text: s[:open]})
		}
		slot, rest, closed := strings.Cut(s[open+1:], "}")
		if !closed {
			return nil, `"{" is not closed by "}"`
		}
		switch slot {
		case "tool", "server", "agent":
			out = append(out, segment{variable: slot})
		default:
			path, err := parseArgPath(slot)
			if err != "" {
				return nil, "{" + slot + "} is not known: write {args.NAME}, {tool}, {server} or {agent}"
			}
			out = append(out, segment{path: path})
		}
		s = rest
	}
	return out, ""
}

// fill writes the template for one call.
func (t template) fill(e *evaluation) string {
	var b strings.Builder
	for _, s := range t.segments {
		switch {
		case s.path != nil:
			b.WriteString(e.show(s.path))
		case s.variable == "tool":
			b.WriteString(legible(e.call.Tool()))
		case s.variable == "server":
			b.WriteString(e.call.Server())
		case s.variable == "agent":
			b.WriteString(legible(e.facts.Agent))
		default:
			b.WriteString(s.text)
		}
	}
	return b.String()
}

// maxShown bounds a value in a text, in runes; the call itself is shown beside it.
const maxShown = 200

// show writes the value at a path: a simple text as it is, any other text
// quoted, and everything else as its canonical JSON.
func (e *evaluation) show(p argPath) string {
	raw, ok := strictjson.Get(e.args(), p...)
	if !ok {
		return "(no " + p.String() + ")"
	}
	if raw[0] != '"' {
		return cut(string(raw))
	}
	s, err := strictjson.String(raw)
	if err != nil {
		return "(unreadable " + p.String() + ")"
	}
	return legible(s)
}

// legible quotes a text that could be taken for more than one word, and escapes
// what would not be seen.
func legible(s string) string {
	simple := s != "" && strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r == '"' || r == '{' || r == '[' || IsHidden(r) }) < 0
	s = cut(s)
	if simple {
		return s
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case IsHidden(r):
			b.WriteString("[U+" + strings.ToUpper(strconv.FormatInt(int64(r), 16)) + "]")
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func cut(s string) string {
	if utf8.RuneCountInString(s) <= maxShown {
		return s
	}
	return string([]rune(s)[:maxShown]) + "…"
}

// maxTyped bounds what a person is asked to type for one value, in bytes.
const maxTyped = 64

// salient is what a person types to confirm the call: the tool's name and the
// values the policy names, or else the first argument that can be typed. Where a
// value cannot be typed, the beginning of the call's hash stands for it.
func (e *evaluation) salient(repeats []salient) string {
	words := []string{"call"}
	if typable(e.call.Tool()) {
		words[0] = e.call.Tool()
	}
	if repeats == nil {
		if first, ok := e.firstScalar(); ok {
			words = append(words, first)
		}
		return strings.Join(words, " ")
	}
	for _, r := range repeats {
		raw, ok := strictjson.Get(e.args(), r.path...)
		word, fit := scalarWord(raw)
		if !ok || !fit {
			word = e.call.Hash().Short()
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// firstScalar returns the first argument, in canonical order, that can be typed.
func (e *evaluation) firstScalar() (word string, ok bool) {
	members(e.args(), func(_ string, value []byte) bool {
		word, ok = scalarWord(value)
		return !ok
	})
	return word, ok
}

func scalarWord(raw []byte) (string, bool) {
	if len(raw) == 0 || raw[0] == '{' || raw[0] == '[' || raw[0] == 'n' {
		return "", false
	}
	word := string(raw)
	if raw[0] == '"' {
		s, err := strictjson.String(raw)
		if err != nil {
			return "", false
		}
		word = s
	}
	return word, typable(word)
}

// typable reports whether a person can type s without doubt: printable ASCII on
// one line, without spaces at the ends or in a row.
func typable(s string) bool {
	if s == "" || len(s) > maxTyped || strings.TrimSpace(s) != s || strings.Contains(s, "  ") {
		return false
	}
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
