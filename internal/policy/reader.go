package policy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// maxSource bounds a policy or test file, in bytes.
const maxSource = 4 << 20

// reader walks a YAML document strictly and collects what is wrong with it
// instead of stopping at the first fault. Its accessors return the zero value
// for a node that is absent or wrong; a wrong one has been reported.
type reader struct {
	file   string
	faults Faults
}

// node is a YAML node and the path people know it by. The zero node is absent.
type node struct {
	y    *yaml.Node
	path string
}

func (n node) present() bool { return n.y != nil }

func (n node) child(name string) string {
	if n.path == "" {
		return name
	}
	return n.path + "." + name
}

func (r *reader) fault(n node, format string, args ...any) {
	f := Fault{File: r.file, Path: n.path, Text: fmt.Sprintf(format, args...)}
	if n.y != nil {
		f.Line, f.Column = n.y.Line, n.y.Column
	}
	r.faults = append(r.faults, f)
}

// document parses src, which must be one YAML document.
func (r *reader) document(src []byte) node {
	if len(src) > maxSource {
		r.fault(node{}, "the file is over %d bytes", maxSource)
		return node{}
	}
	if !utf8.Valid(src) {
		r.fault(node{}, "the file is not UTF-8")
		return node{}
	}
	dec := yaml.NewDecoder(bytes.NewReader(src))
	var doc, more yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		r.fault(node{}, "the file is empty")
		return node{}
	case err != nil:
		r.fault(node{}, "not YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
		return node{}
	}
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		r.fault(node{}, "the file must hold one YAML document and nothing after it")
		return node{}
	}
	return node{y: doc.Content[0]}
}

// plain reports whether n is a node of the wanted kind, without the features of
// YAML that let a document mean something else than it shows.
func (r *reader) plain(n node, kind yaml.Kind, want string) bool {
	switch {
	case n.y == nil:
		return false
	case n.y.Kind == yaml.AliasNode || n.y.Anchor != "":
		r.fault(n, "anchors and aliases are not accepted: write the value out")
	case n.y.Style&yaml.TaggedStyle != 0:
		r.fault(n, "type tags are not accepted")
	case n.y.Kind != kind:
		r.fault(n, "must be %s, not %s", want, kindName(n.y))
	default:
		return true
	}
	return false
}

func kindName(y *yaml.Node) string {
	switch y.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	switch y.Tag {
	case "!!null":
		return "nothing"
	case "!!int", "!!float":
		return "a number"
	case "!!bool":
		return "true or false"
	}
	return "a text"
}

// pair is one member of a mapping.
type pair struct {
	name  string
	key   node
	value node
}

// members lists a mapping's members in order; a name that occurs twice is a fault.
func (r *reader) members(n node) []pair {
	if !r.plain(n, yaml.MappingNode, "a mapping") {
		return nil
	}
	var out []pair
	seen := map[string]int{}
	for i := 0; i+1 < len(n.y.Content); i += 2 {
		k := node{n.y.Content[i], n.path}
		if !r.plain(k, yaml.ScalarNode, "a name") {
			continue
		}
		name := k.y.Value
		k.path = n.child(name)
		if line, twice := seen[name]; twice {
			r.fault(k, "written twice, first on line %d", line)
			continue
		}
		seen[name] = k.y.Line
		out = append(out, pair{name, k, node{n.y.Content[i+1], k.path}})
	}
	return out
}

// fields reads a mapping with a fixed set of names.
func (r *reader) fields(n node, names ...string) map[string]node {
	out := map[string]node{}
	for _, m := range r.members(n) {
		if !slices.Contains(names, m.name) {
			r.fault(m.key, "unknown key %q%s", m.name, meant(m.name, names))
			continue
		}
		out[m.name] = m.value
	}
	return out
}

// items lists a sequence's elements.
func (r *reader) items(n node) []node {
	if !r.plain(n, yaml.SequenceNode, "a list") {
		return nil
	}
	out := make([]node, len(n.y.Content))
	for i, y := range n.y.Content {
		out[i] = node{y, n.path + "[" + strconv.Itoa(i) + "]"}
	}
	return out
}

// scalar returns a scalar's text if it has one of the wanted YAML types.
func (r *reader) scalar(n node, want string, tags ...string) (string, bool) {
	if !r.plain(n, yaml.ScalarNode, want) {
		return "", false
	}
	if !slices.Contains(tags, n.y.Tag) {
		r.fault(n, "must be %s, not %s", want, kindName(n.y))
		return "", false
	}
	return n.y.Value, true
}

// text returns a string that is not empty.
func (r *reader) text(n node) string {
	s, ok := r.scalar(n, "a text", "!!str")
	if ok && strings.TrimSpace(s) == "" {
		r.fault(n, "must not be empty")
	}
	return s
}

// texts returns a list of strings; a single string stands for a list of one.
func (r *reader) texts(n node) []node {
	if n.y != nil && n.y.Kind == yaml.ScalarNode {
		if r.text(n) == "" {
			return nil
		}
		return []node{n}
	}
	var out []node
	items := r.items(n)
	if n.y != nil && n.y.Kind == yaml.SequenceNode && len(items) == 0 {
		r.fault(n, "must not be empty")
	}
	for _, item := range items {
		if r.text(item) != "" {
			out = append(out, item)
		}
	}
	return out
}

// oneOf returns a string out of a fixed set.
func (r *reader) oneOf(n node, names ...string) string {
	if !n.present() {
		return ""
	}
	s, ok := r.scalar(n, "one of "+strings.Join(names, ", "), "!!str")
	if ok && !slices.Contains(names, s) {
		r.fault(n, "%q is not one of %s", s, strings.Join(names, ", "))
		return ""
	}
	return s
}

// truth returns true or false.
func (r *reader) truth(n node) (value, ok bool) {
	s, ok := r.scalar(n, "true or false", "!!bool")
	return strings.EqualFold(s, "true"), ok
}

// count returns a whole number between low and high, written in plain digits.
func (r *reader) count(n node, low, high int64) int64 {
	if !n.present() {
		return 0
	}
	s, ok := r.scalar(n, "a whole number", "!!int")
	if !ok {
		return 0
	}
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil || v < low || v > high {
		r.fault(n, "must be a whole number from %d to %d", low, high)
		return 0
	}
	return v
}

// amount returns a decimal number in millionths.
func (r *reader) amount(n node) int64 {
	s, ok := r.scalar(n, "a number", "!!int", "!!float")
	if !ok {
		return 0
	}
	v, ok := millionths(s)
	if !ok || v < 0 {
		r.fault(n, "must be a number from 0 to %d with at most six decimals", math.MaxInt64/million)
		return 0
	}
	return v
}

// length returns a duration between low and high.
func (r *reader) length(n node, low, high time.Duration) time.Duration {
	if !n.present() {
		return 0
	}
	s, ok := r.scalar(n, `a duration such as "5m"`, "!!str", "!!int")
	if !ok {
		return 0
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		r.fault(n, `%q is not a duration such as "90s", "5m" or "24h"`, s)
		return 0
	}
	if d < low || d > high {
		r.fault(n, "%s is not between %s and %s", s, short(low), short(high))
		return 0
	}
	return d
}

// size returns a number of bytes such as 4096, 64KiB or 1MB.
func (r *reader) size(n node) int64 {
	s, ok := r.scalar(n, `a size such as "1MB"`, "!!str", "!!int")
	if !ok {
		return 0
	}
	units := []struct {
		suffix string
		bytes  int64
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}, {"", 1}}
	for _, u := range units {
		digits, found := strings.CutSuffix(s, u.suffix)
		if !found {
			continue
		}
		v, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err != nil || v < 1 || v > math.MaxInt64/u.bytes {
			break
		}
		return v * u.bytes
	}
	r.fault(n, `%q is not a size such as 4096, "64KiB" or "1MB"`, s)
	return 0
}

// short writes a duration as people do: "15m", not "15m0s".
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
