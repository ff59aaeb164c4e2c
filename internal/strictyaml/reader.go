// Package strictyaml reads the YAML files that people write, policies and the
// configuration, so strictly that a file means what it shows or is refused.
//
// It walks the document instead of decoding it into structs and collects every
// Fault with its line, column and path, instead of stopping at the first. An
// unknown key is a fault with a suggestion, a key written twice is one, and so
// are anchors, aliases, type tags, a second document and a value of the wrong
// type. It owns reading; what a file means belongs to its reader's caller.
package strictyaml

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

// MaxSource bounds a file, in bytes.
const MaxSource = 4 << 20

// Reader walks a YAML document strictly and collects what is wrong with it
// instead of stopping at the first fault. Its accessors return the zero value
// for a node that is absent or wrong; a wrong one has been reported.
type Reader struct {
	File   string // for messages
	Faults Faults
}

// Node is a YAML node and the path people know it by. The zero Node is absent.
type Node struct {
	y    *yaml.Node
	Path string
}

// Present reports whether the node is in the document.
func (n Node) Present() bool { return n.y != nil }

func (n Node) child(name string) string {
	if n.Path == "" {
		return name
	}
	return n.Path + "." + name
}

// Fault notes what is wrong at a node; the zero node stands for the whole file.
func (r *Reader) Fault(n Node, format string, args ...any) {
	f := Fault{File: r.File, Path: n.Path, Text: fmt.Sprintf(format, args...)}
	if n.y != nil {
		f.Line, f.Column = n.y.Line, n.y.Column
	}
	r.Faults = append(r.Faults, f)
}

// Document parses src, which must be one YAML document.
func (r *Reader) Document(src []byte) Node {
	if len(src) > MaxSource {
		r.Fault(Node{}, "the file is over %d bytes", MaxSource)
		return Node{}
	}
	if !utf8.Valid(src) {
		r.Fault(Node{}, "the file is not UTF-8")
		return Node{}
	}
	dec := yaml.NewDecoder(bytes.NewReader(src))
	var doc, more yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		r.Fault(Node{}, "the file is empty")
		return Node{}
	case err != nil:
		r.Fault(Node{}, "not YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
		return Node{}
	}
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		r.Fault(Node{}, "the file must hold one YAML document and nothing after it")
		return Node{}
	}
	return Node{y: doc.Content[0]}
}

// plain reports whether n is a node of the wanted kind, without the features of
// YAML that let a document mean something else than it shows.
func (r *Reader) plain(n Node, kind yaml.Kind, want string) bool {
	switch {
	case n.y == nil:
		return false
	case n.y.Kind == yaml.AliasNode || n.y.Anchor != "":
		r.Fault(n, "anchors and aliases are not accepted: write the value out")
	case n.y.Style&yaml.TaggedStyle != 0:
		r.Fault(n, "type tags are not accepted")
	case n.y.Kind != kind:
		r.Fault(n, "must be %s, not %s", want, kindName(n.y))
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
	default: // a scalar, told apart by its tag
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

// Member is one member of a mapping.
type Member struct {
	Name  string
	Key   Node
	Value Node
}

// Members lists a mapping's members in order; a name that occurs twice is a fault.
func (r *Reader) Members(n Node) []Member {
	if !r.plain(n, yaml.MappingNode, "a mapping") {
		return nil
	}
	var out []Member
	seen := map[string]int{}
	for i := 0; i+1 < len(n.y.Content); i += 2 {
		k := Node{n.y.Content[i], n.Path}
		if !r.plain(k, yaml.ScalarNode, "a name") {
			continue
		}
		name := k.y.Value
		k.Path = n.child(name)
		if line, twice := seen[name]; twice {
			r.Fault(k, "written twice, first on line %d", line)
			continue
		}
		seen[name] = k.y.Line
		out = append(out, Member{name, k, Node{n.y.Content[i+1], k.Path}})
	}
	return out
}

// Fields reads a mapping with a fixed set of names.
func (r *Reader) Fields(n Node, names ...string) map[string]Node {
	out := map[string]Node{}
	for _, m := range r.Members(n) {
		if !slices.Contains(names, m.Name) {
			r.Fault(m.Key, "unknown key %q%s", m.Name, Meant(m.Name, names))
			continue
		}
		out[m.Name] = m.Value
	}
	return out
}

// Items lists a sequence's elements.
func (r *Reader) Items(n Node) []Node {
	if !r.plain(n, yaml.SequenceNode, "a list") {
		return nil
	}
	out := make([]Node, len(n.y.Content))
	for i, y := range n.y.Content {
		out[i] = Node{y, n.Path + "[" + strconv.Itoa(i) + "]"}
	}
	return out
}

// scalar returns a scalar's text if it has one of the wanted YAML types.
func (r *Reader) scalar(n Node, want string, tags ...string) (string, bool) {
	if !r.plain(n, yaml.ScalarNode, want) {
		return "", false
	}
	if !slices.Contains(tags, n.y.Tag) {
		r.Fault(n, "must be %s, not %s", want, kindName(n.y))
		return "", false
	}
	return n.y.Value, true
}

// Text returns a string that is not empty.
func (r *Reader) Text(n Node) string {
	s, ok := r.scalar(n, "a text", "!!str")
	if ok && strings.TrimSpace(s) == "" {
		r.Fault(n, "must not be empty")
	}
	return s
}

// Texts returns a list of strings; a single string stands for a list of one.
func (r *Reader) Texts(n Node) []Node {
	if n.y != nil && n.y.Kind == yaml.ScalarNode {
		if r.Text(n) == "" {
			return nil
		}
		return []Node{n}
	}
	var out []Node
	items := r.Items(n)
	if n.y != nil && n.y.Kind == yaml.SequenceNode && len(items) == 0 {
		r.Fault(n, "must not be empty")
	}
	for _, item := range items {
		if r.Text(item) != "" {
			out = append(out, item)
		}
	}
	return out
}

// OneOf returns a string out of a fixed set.
func (r *Reader) OneOf(n Node, names ...string) string {
	if !n.Present() {
		return ""
	}
	s, ok := r.scalar(n, "one of "+strings.Join(names, ", "), "!!str")
	if ok && !slices.Contains(names, s) {
		r.Fault(n, "%q is not one of %s", s, strings.Join(names, ", "))
		return ""
	}
	return s
}

// Truth returns true or false.
func (r *Reader) Truth(n Node) (value, ok bool) {
	s, ok := r.scalar(n, "true or false", "!!bool")
	return strings.EqualFold(s, "true"), ok
}

// Count returns a whole number between low and high, written in plain digits.
func (r *Reader) Count(n Node, low, high int64) int64 {
	if !n.Present() {
		return 0
	}
	s, ok := r.scalar(n, "a whole number", "!!int")
	if !ok {
		return 0
	}
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil || v < low || v > high {
		r.Fault(n, "must be a whole number from %d to %d", low, high)
		return 0
	}
	return v
}

// Length returns a duration between low and high.
func (r *Reader) Length(n Node, low, high time.Duration) time.Duration {
	if !n.Present() {
		return 0
	}
	s, ok := r.scalar(n, `a duration such as "5m"`, "!!str", "!!int")
	if !ok {
		return 0
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		r.Fault(n, `%q is not a duration such as "90s", "5m" or "24h"`, s)
		return 0
	}
	if d < low || d > high {
		r.Fault(n, "%s is not between %s and %s", s, Short(low), Short(high))
		return 0
	}
	return d
}

// Size returns a number of bytes such as 4096, 64KiB or 1MB.
func (r *Reader) Size(n Node) int64 {
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
	r.Fault(n, `%q is not a size such as 4096, "64KiB" or "1MB"`, s)
	return 0
}

// Short writes a duration as people do: "15m", not "15m0s".
func Short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
