package page

import (
	"strings"

	"github.com/ayegate/ayegate/internal/strictjson"
)

// Diff lays two JSON documents out, a line for each value, and marks the lines
// that the other side lacks. A document that cannot be read is one line.
func Diff(before, after []byte) (was, is []DiffLine) {
	a, b := flat(before), flat(after)
	return marked(a, b), marked(b, a)
}

func marked(lines, other []string) []DiffLine {
	has := make(map[string]int, len(other))
	for _, l := range other {
		has[l]++
	}
	out := make([]DiffLine, 0, len(lines))
	for _, l := range lines {
		has[l]--
		out = append(out, DiffLine{Text: Pieces(l), Changed: has[l] < 0})
	}
	return out
}

// flat writes a document as lines "path value".
func flat(doc []byte) []string {
	if len(doc) == 0 {
		return nil
	}
	canon, err := strictjson.Canonical(nil, doc, own(doc))
	if err != nil {
		return []string{string(doc)}
	}
	var out []string
	var walk func(path string, raw []byte)
	walk = func(path string, raw []byte) {
		n := 0
		switch raw[0] {
		case '{':
			_ = strictjson.Members(raw, own(raw), func(name string, value []byte) error {
				n++
				walk(strings.TrimPrefix(path+"."+name, "."), value)
				return nil
			})
		case '[':
			_ = strictjson.Elements(raw, own(raw), func(_ int, value []byte) error {
				n++
				walk(path+"[]", value)
				return nil
			})
		case '"':
			if s, err := strictjson.String(raw); err == nil {
				out = append(out, path+": "+s)
				return
			}
		}
		if n == 0 {
			out = append(out, path+": "+string(raw))
		}
	}
	walk("", canon)
	return out
}
