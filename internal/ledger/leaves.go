package ledger

import (
	"bytes"
	"encoding/base64"
)

// leafCheck compares the leaf hashes that the store kept with those of the
// entries. Where an entry was edited and its hash was not, it names the entry,
// which a root cannot.
type leafCheck struct {
	got     []Hash // of the entries since the last line of hashes
	checked int64  // entries before those
}

func (v *verifier) leafLine(line []byte) {
	if v.leaves == nil {
		v.fault(-1, "leaf hashes that the first line does not announce")
		return
	}
	kept, ok := parseLeaves(line)
	if !ok || len(kept) != len(v.leaves.got) {
		v.fault(-1, "not the hashes of the %d entries before it", len(v.leaves.got))
	} else {
		for i, h := range kept {
			if h != v.leaves.got[i] {
				v.damage(v.leaves.checked+int64(i), "does not have the hash that was kept for it")
			}
		}
	}
	v.leaves.checked += int64(len(v.leaves.got))
	v.leaves.got = v.leaves.got[:0]
}

// leavesComplete complains about entries whose hashes should have come by now.
func (v *verifier) leavesComplete() {
	if v.leaves != nil && len(v.leaves.got) > 0 {
		v.fault(-1, "the leaf hashes of %d entries are missing", len(v.leaves.got))
	}
}

func leavesLine(hashes []Hash) []byte {
	b := make([]byte, 0, len(leavesPrefix)+47*len(hashes)+2)
	b = append(b, leavesPrefix...)
	for i, h := range hashes {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '"')
		b = base64.StdEncoding.AppendEncode(b, h[:])
		b = append(b, '"')
	}
	return append(b, `]}`...)
}

// parseLeaves reads a line, and reports whether it is one that leavesLine writes.
func parseLeaves(line []byte) ([]Hash, bool) {
	hashes := make([]Hash, 0, len(line)/47)
	rest := bytes.TrimPrefix(line, []byte(leavesPrefix))
	for len(rest) >= 46 {
		var raw [33]byte // what 44 characters may hold
		if n, err := base64.StdEncoding.Decode(raw[:], rest[1:45]); err != nil || n != len(Hash{}) {
			return nil, false
		}
		hashes = append(hashes, Hash(raw[:32]))
		rest = bytes.TrimPrefix(rest[46:], []byte(","))
	}
	return hashes, bytes.Equal(leavesLine(hashes), line)
}
