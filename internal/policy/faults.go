package policy

import (
	"strings"
	"time"

	"github.com/ayegate/ayegate/internal/strictjson"
	"github.com/ayegate/ayegate/internal/strictyaml"
)

// Fault is one thing wrong with a policy or test file.
type Fault = strictyaml.Fault

// Faults is everything wrong with a file. A file with a fault is not loaded at all.
type Faults = strictyaml.Faults

type node = strictyaml.Node

// reader reads a file of this package. It keeps the source to read decimal
// numbers as they are written there, and not through a double.
type reader struct {
	strictyaml.Reader
	src string
}

func newReader(name string, src []byte) *reader {
	return &reader{strictyaml.Reader{File: name}, string(src)}
}

func (r *reader) fault(n node, format string, args ...any) { r.Fault(n, format, args...) }

// place returns where a node is.
func place(n node) (line, column int) {
	var probe strictyaml.Reader
	probe.Fault(n, "here")
	return probe.Faults[0].Line, probe.Faults[0].Column
}

// is reports whether a reader accepts the node, without a fault when it does not.
func is(n node, read func(*strictyaml.Reader, node)) bool {
	var probe strictyaml.Reader
	read(&probe, n)
	return len(probe.Faults) == 0
}

func isText(n node) bool {
	return is(n, func(r *strictyaml.Reader, n node) { r.Text(n) })
}

func isTruth(n node) bool {
	return is(n, func(r *strictyaml.Reader, n node) { r.Truth(n) })
}

func isList(n node) bool {
	return is(n, func(r *strictyaml.Reader, n node) { r.Items(n) })
}

func isMapping(n node) bool {
	return is(n, func(r *strictyaml.Reader, n node) { r.Members(n) })
}

// token returns the characters of a plain scalar that could be a JSON number or
// null; "" for everything else.
func (r *reader) token(n node) string {
	line, column := place(n)
	rest := r.src
	for range line - 1 {
		_, rest, _ = strings.Cut(rest, "\n")
	}
	rest, _, _ = strings.Cut(rest, "\n")
	from := []rune(rest)
	if column < 1 || column > len(from) {
		return ""
	}
	rest = string(from[column-1:])
	if end := strings.IndexAny(rest, " \t\r,]}#"); end >= 0 {
		rest = rest[:end]
	}
	return rest
}

// amount returns a number in millionths.
func (r *reader) amount(n node) int64 {
	text := r.token(n)
	v, ok := millionths(text)
	if isText(n) || !ok || v < 0 || v > maxAmount {
		r.fault(n, "must be a number from 0 to %d with at most six decimals", int64(maxAmount/million))
		return 0
	}
	return v
}

// maxAmount bounds an amount in a file, in millionths: a million millions.
const maxAmount = 1_000_000_000_000 * million

// json writes a node as JSON. Texts, numbers, true, false and null mean what
// they mean in JSON; YAML's other spellings of numbers are faults.
func (r *reader) json(dst []byte, n node) []byte {
	switch token := r.token(n); {
	case isText(n):
		return strictjson.AppendString(dst, r.Text(n))
	case isTruth(n):
		if v, _ := r.Truth(n); v {
			return append(dst, "true"...)
		}
		return append(dst, "false"...)
	case isList(n):
		dst = append(dst, '[')
		for i, item := range r.Items(n) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = r.json(dst, item)
		}
		return append(dst, ']')
	case isMapping(n):
		dst = append(dst, '{')
		for i, m := range r.Members(n) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(strictjson.AppendString(dst, m.Name), ':')
			dst = r.json(dst, m.Value)
		}
		return append(dst, '}')
	case token == `""` || token == `''`:
		return append(dst, `""`...)
	case token == "null" || strictjson.Check([]byte(token), strictjson.Limits{}) == nil:
		return append(dst, token...)
	default:
		r.Members(n) // says what is wrong with a mapping
		r.fault(n, "must be a text, a number as in JSON, true, false, null, a list or a mapping")
		return append(dst, "null"...)
	}
}

// optional returns the text of a node that may be absent.
func (r *reader) optional(n node) string {
	if !n.Present() {
		return ""
	}
	return r.Text(n)
}

func short(d time.Duration) string { return strictyaml.Short(d) }

func meant(got string, names []string) string { return strictyaml.Meant(got, names) }
