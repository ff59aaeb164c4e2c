package policy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// The index finds what a scan finds: in order, each entry once.
func TestIndex(t *testing.T) {
	d := dice{rand.New(rand.NewPCG(5, 6))}
	word := func() string {
		b := make([]byte, d.IntN(5))
		for i := range b {
			b[i] = "ab.*"[d.IntN(4)]
		}
		return string(b)
	}
	for range 2000 {
		x, patterns := newIndex(), []pattern{}
		for len(patterns) < 40 {
			p, err := parsePattern(word() + word())
			if err != "" {
				continue
			}
			entry := len(patterns) / 2 // two patterns an entry: it may match twice
			x.add(entry, p)
			patterns = append(patterns, p)
		}
		for range 20 {
			name := word() + "." + word()
			var want []int32
			for i, p := range patterns {
				if globs(p.text, name) != p.matches([]byte(name)) {
					t.Fatalf("%q and %q: %v", p.text, name, p.matches([]byte(name)))
				}
				if globs(p.text, name) && !slices.Contains(want, int32(i/2)) {
					want = append(want, int32(i/2))
				}
			}
			if got := x.find([]byte(name), nil); !slices.Equal(got, want) {
				t.Fatalf("%q: %v, want %v of %v", name, got, want, patterns)
			}
		}
	}
}

// Globs that share their beginning or their end are told apart by the tree.
func TestIndexManyGlobs(t *testing.T) {
	x := newIndex()
	for i := range 500 {
		for entry, text := range []string{fmt.Sprintf("srv.tool%d-*", i), fmt.Sprintf("*.end-%d", i), fmt.Sprintf("srv.exact%d", i)} {
			p, err := parsePattern(text)
			if err != "" {
				t.Fatal(err)
			}
			x.add(3*i+entry, p)
		}
	}
	for name, want := range map[string][]int32{
		"srv.tool7-x": {21}, "srv.tool77-x": {231}, "srv.tool7": nil, "a.end-77": {232}, "a.end-7": {22}, "srv.tool7-.end-9": {21, 28}, "srv.exact499": {1499}, "srv.exact500": nil, "": nil,
	} {
		if got := x.find([]byte(name), nil); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", name, got, want)
		}
	}
}
