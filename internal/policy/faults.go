package policy

import (
	"fmt"
	"slices"
	"strings"
)

// Fault is one thing wrong with a policy or test file.
type Fault struct {
	File   string
	Line   int    // 1-based; 0 when the whole file is meant
	Column int    // 1-based
	Path   string // where in the document, "rules[3].ask.ttl"; empty for the whole
	Text   string // what is wrong and what to write instead
}

func (f Fault) String() string {
	var b strings.Builder
	b.WriteString(f.File)
	if f.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", f.Line, f.Column)
	}
	b.WriteString(": ")
	if f.Path != "" {
		b.WriteString(f.Path + ": ")
	}
	b.WriteString(f.Text)
	return b.String()
}

// Faults is everything wrong with a file, in the order of its lines. A file with
// a fault is not loaded at all.
type Faults []Fault

func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, one := range f {
		lines[i] = one.String()
	}
	return strings.Join(lines, "\n")
}

// inOrder sorts the faults by place and drops repetitions.
func (f Faults) inOrder() Faults {
	slices.SortStableFunc(f, func(a, b Fault) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return slices.Compact(f)
}

// nearest returns the name a person probably meant, or "" when none is close.
func nearest(got string, names []string) string {
	best, distance := "", 1+max(1, len(got)/3)
	for _, name := range names {
		if d := edits(got, name); d < distance {
			best, distance = name, d
		}
	}
	return best
}

// edits is the number of single-byte insertions, deletions, replacements and
// swaps of neighbours that turn a into b.
func edits(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	two, one := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range one {
		one[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(one[j]+1, row[j-1]+1, one[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], two[j-2]+1)
			}
		}
		two, one = one, row
	}
	return one[len(b)]
}

// meant is the suggestion to append to a message about an unknown name.
func meant(got string, names []string) string {
	if near := nearest(got, names); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	if len(names) == 0 {
		return ""
	}
	return "; known: " + strings.Join(names, ", ")
}
