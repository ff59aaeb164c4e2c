package policy

import (
	"bytes"
	"slices"
	"strings"
)

// pattern names tools: the bytes of "server.tool", in which "*" stands for any
// run of bytes. It is case-sensitive and knows nothing else, so that no pattern
// means more than it shows.
type pattern struct {
	text  string
	parts []string // what stands between the stars; one part: an exact name
}

func (p pattern) exact() bool { return len(p.parts) == 1 }

func parsePattern(s string) (pattern, string) {
	switch {
	case HasHidden(s) || strings.ContainsAny(s, " \t\n"):
		return pattern{}, "a tool pattern holds no spaces and no hidden characters"
	case strings.ContainsAny(s, "?[]{}\\"):
		return pattern{}, `the only wildcard in a tool pattern is "*"`
	}
	p := pattern{s, strings.Split(s, "*")}
	server, _, dotted := strings.Cut(s, ".")
	switch {
	case p.exact() && !dotted:
		return pattern{}, `"` + s + `" names no tool: write "server.tool", as in "` + s + `.*"`
	case dotted && strings.ToLower(server) != server:
		return pattern{}, `"` + server + `" can match no server: their names are lower case`
	}
	return p, ""
}

// matches reports whether the pattern names the tool. It is linear in the name:
// each part is looked for once, from left to right.
func (p pattern) matches(name []byte) bool {
	first, last := p.parts[0], p.parts[len(p.parts)-1]
	if p.exact() {
		return string(name) == first
	}
	if len(name) < len(first)+len(last) || string(name[:len(first)]) != first || string(name[len(name)-len(last):]) != last {
		return false
	}
	rest := name[len(first) : len(name)-len(last)]
	for _, part := range p.parts[1 : len(p.parts)-1] {
		at := bytes.Index(rest, []byte(part))
		if at < 0 {
			return false
		}
		rest = rest[at+len(part):]
	}
	return true
}

// index finds the entries of a policy whose patterns name a tool, without
// looking at the others. Exact names are in a hash table; a glob is filed under
// its literal beginning or its literal end, whichever is longer.
type index struct {
	exact  map[string][]int32
	starts *trie
	ends   *trie // of reversed bytes
}

func newIndex() index {
	return index{exact: map[string][]int32{}, starts: &trie{}, ends: &trie{}}
}

func (x *index) add(entry int, p pattern) {
	id := int32(entry) //nolint:gosec // a policy file is at most 4 MiB
	first, last := p.parts[0], p.parts[len(p.parts)-1]
	switch {
	case p.exact():
		x.exact[first] = append(x.exact[first], id)
	case len(first) >= len(last):
		n := x.starts.node([]byte(first))
		n.globs = append(n.globs, glob{p, id})
	default:
		reversed := []byte(last)
		slices.Reverse(reversed)
		n := x.ends.node(reversed)
		n.globs = append(n.globs, glob{p, id})
	}
}

// find appends the matching entries to out, in order and each once.
func (x *index) find(name []byte, out []int32) []int32 {
	out = append(out, x.exact[string(name)]...)
	for n, at := x.starts, 0; n != nil; {
		out = n.collect(name, out)
		n, at = n.next(name, at, false)
	}
	for n, at := x.ends, 0; n != nil; {
		out = n.collect(name, out)
		n, at = n.next(name, at, true)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// trie is a radix tree over bytes.
type trie struct {
	label  []byte // of the edge that leads here
	firsts []byte // the first byte of each kid's label
	kids   []*trie
	globs  []glob
}

type glob struct {
	pattern
	entry int32
}

func (n *trie) collect(name []byte, out []int32) []int32 {
	for i := range n.globs {
		if n.globs[i].matches(name) {
			out = append(out, n.globs[i].entry)
		}
	}
	return out
}

// next goes down one edge along name, of which at bytes are used; reversed reads
// the name from its end.
func (n *trie) next(name []byte, at int, reversed bool) (*trie, int) {
	if at == len(name) || len(n.kids) == 0 {
		return nil, 0
	}
	i := bytes.IndexByte(n.firsts, byteAt(name, at, reversed))
	if i < 0 {
		return nil, 0
	}
	kid := n.kids[i]
	if len(name)-at < len(kid.label) {
		return nil, 0
	}
	for j, c := range kid.label {
		if byteAt(name, at+j, reversed) != c {
			return nil, 0
		}
	}
	return kid, at + len(kid.label)
}

func byteAt(name []byte, at int, reversed bool) byte {
	if reversed {
		at = len(name) - 1 - at
	}
	return name[at]
}

// node returns the node for a key, splitting edges as needed.
func (n *trie) node(key []byte) *trie {
	if len(key) == 0 {
		return n
	}
	i := bytes.IndexByte(n.firsts, key[0])
	if i < 0 {
		kid := &trie{label: key}
		n.firsts, n.kids = append(n.firsts, key[0]), append(n.kids, kid)
		return kid
	}
	kid := n.kids[i]
	same := 0
	for same < len(key) && same < len(kid.label) && key[same] == kid.label[same] {
		same++
	}
	if same < len(kid.label) {
		fork := &trie{label: kid.label[:same], firsts: []byte{kid.label[same]}, kids: []*trie{kid}}
		kid.label = kid.label[same:]
		n.kids[i] = fork
		kid = fork
	}
	return kid.node(key[same:])
}
