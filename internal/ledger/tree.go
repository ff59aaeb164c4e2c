package ledger

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math/bits"

	"golang.org/x/mod/sumdb/tlog"
)

// Hash is the SHA-256 hash of a leaf or an interior node (RFC 6962, section 2.1).
type Hash = tlog.Hash

// HashReader reads stored hashes by their position. A store implements it over
// whatever it keeps them in; the answer has one hash for each position asked.
type HashReader = tlog.HashReader

// HashReaderFunc makes a function a [HashReader].
type HashReaderFunc = tlog.HashReaderFunc

// Head names one state of the log: how many entries, and the root over them.
type Head struct {
	Size int64
	Root Hash
}

// Position returns where the first hash of entry seq is stored; the others that
// the entry completed follow it. It is also how many hashes a log of seq entries
// has stored.
func Position(seq int64) int64 { return tlog.StoredHashIndex(0, seq) }

// MaxSize bounds every size and sequence number: the largest integer that every
// reader of JSON holds exactly. (tlog's own arithmetic needs less than 2^62.)
const MaxSize = 1<<53 - 1

// ErrTree means that what a store keeps, or what a proof claims, is not the tree
// it should be.
var ErrTree = errors.New("ledger: the stored tree does not fit")

// LeafHash is the hash under which an entry becomes a leaf.
func LeafHash(entry []byte) Hash {
	var stack [1024]byte // an entry that fits costs no allocation
	b := append(append(stack[:0], 0), entry...)
	return sha256.Sum256(b)
}

// Append returns the hashes to store for entry as number size of the log, at
// [Position](size) and on. It reads about log2(size) hashes; [Frontier] reads none.
func Append(size int64, entry []byte, r HashReader) ([]Hash, error) {
	if size < 0 || size >= MaxSize {
		return nil, fmt.Errorf("%w: size %d", ErrTree, size)
	}
	hashes, err := tlog.StoredHashesForRecordHash(size, LeafHash(entry), r)
	if err != nil {
		return nil, fmt.Errorf("ledger: append entry %d: %w", size, err)
	}
	return hashes, nil
}

// HeadOf computes the head of the first size entries from stored hashes.
func HeadOf(size int64, r HashReader) (Head, error) {
	f, err := NewFrontier(size, r)
	if err != nil {
		return Head{}, err
	}
	return f.Head(), nil
}

// Frontier is the right edge of the tree: all that is needed to append without
// reading. The zero value is the edge of the empty log.
//
// It is a plain value: frontiers of equal logs are ==. A committer copies it before a transaction and assigns
// the copy back when the transaction fails.
type Frontier struct {
	size int64
	edge [64]Hash // edge[l] is the complete subtree of 2^l leaves, where size has bit l
}

// NewFrontier reads the edge of a log of size entries: one call of r, at most
// 53 hashes. A size of 0 reads nothing and r may be nil.
func NewFrontier(size int64, r HashReader) (Frontier, error) {
	if size < 0 || size > MaxSize {
		return Frontier{}, fmt.Errorf("%w: size %d", ErrTree, size)
	}
	f := Frontier{size: size}
	if size == 0 {
		return f, nil
	}
	positions := make([]int64, 0, 64)
	for l := bits.Len64(uint64(size)) - 1; l >= 0; l-- {
		if size>>l&1 == 1 {
			positions = append(positions, tlog.StoredHashIndex(l, size>>l-1))
		}
	}
	hashes, err := r.ReadHashes(positions)
	if err != nil {
		return Frontier{}, fmt.Errorf("ledger: read the edge of the tree: %w", err)
	}
	if len(hashes) != len(positions) {
		return Frontier{}, fmt.Errorf("%w: %d hashes asked for, %d read", ErrTree, len(positions), len(hashes))
	}
	for l, i := 0, len(hashes)-1; i >= 0; l++ {
		if size>>l&1 == 1 {
			f.edge[l] = hashes[i]
			i--
		}
	}
	return f, nil
}

// Size returns how many entries the log has; it is the number of the next one.
func (f *Frontier) Size() int64 { return f.size }

// Append adds an entry and returns the hashes to store at [Position] of its
// number and on: the leaf, then each subtree that it completed.
func (f *Frontier) Append(entry []byte) []Hash {
	return f.appendLeaf(nil, LeafHash(entry))
}

// AppendTo is [Frontier.Append] that adds the hashes to dst, for a batch that
// stores them with one statement.
func (f *Frontier) AppendTo(dst []Hash, entry []byte) []Hash {
	return f.appendLeaf(dst, LeafHash(entry))
}

func (f *Frontier) appendLeaf(dst []Hash, h Hash) []Hash {
	dst = append(dst, h)
	l := 0
	for ; f.size>>l&1 == 1; l++ {
		h = tlog.NodeHash(f.edge[l], h)
		f.edge[l] = Hash{} // so that equal frontiers are equal as values
		dst = append(dst, h)
	}
	f.edge[l] = h
	f.size++
	return dst
}

// Root returns the root over all entries; for the empty log the hash of nothing.
func (f *Frontier) Root() Hash {
	if f.size == 0 {
		return sha256.Sum256(nil)
	}
	l := bits.TrailingZeros64(uint64(f.size))
	root := f.edge[l]
	for l++; f.size>>l != 0; l++ {
		if f.size>>l&1 == 1 {
			root = tlog.NodeHash(f.edge[l], root)
		}
	}
	return root
}

// Head returns the size and the root.
func (f *Frontier) Head() Head { return Head{Size: f.size, Root: f.Root()} }
