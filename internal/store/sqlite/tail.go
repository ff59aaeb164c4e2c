package sqlite

import "bytes"

// Bounds of the entries that are kept in memory for those who follow the ledger.
const (
	maxTail      = 1024
	maxTailBytes = 1 << 20
)

// tail is the end of the ledger, as it is committed: whoever follows closely is
// served from it and costs the database nothing.
type tail struct {
	lines [][]byte // never written to
	bytes int
}

// add appends entries and drops what becomes too much, oldest first.
func (t *tail) add(lines [][]byte) {
	for _, line := range lines {
		t.bytes += len(line)
	}
	t.lines = append(t.lines, lines...)
	drop := 0
	for len(t.lines)-drop > maxTail || t.bytes > maxTailBytes {
		t.bytes -= len(t.lines[drop])
		t.lines[drop] = nil
		drop++
	}
	t.lines = t.lines[drop:]
}

// since returns the entries from number first on, of a ledger that has size, and
// false when some of them are not here any more.
func (p *published) since(first int64) (lines [][]byte, size int64, grown <-chan struct{}, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	size, grown = p.head.Size, p.grown
	from := int64(len(p.tail.lines)) - (size - first)
	if first < 0 || first > size || from < 0 {
		return nil, size, grown, false
	}
	for _, line := range p.tail.lines[from:] {
		lines = append(lines, bytes.Clone(line))
	}
	return lines, size, grown, true
}
