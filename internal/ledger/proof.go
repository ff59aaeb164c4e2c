package ledger

import (
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"
)

// Proof is a list of hashes: an audit path or a consistency proof (RFC 6962,
// sections 2.1.1 and 2.1.2).
type Proof []Hash

// ErrProof means that a proof does not prove what it was given for.
var ErrProof = errors.New("ledger: the proof does not hold")

// ProveInclusion returns the proof that entry seq is in the log of size entries.
func ProveInclusion(size, seq int64, r HashReader) (Proof, error) {
	if seq < 0 || seq >= size || size > MaxSize {
		return nil, fmt.Errorf("%w: no entry %d in a log of %d", ErrTree, seq, size)
	}
	p, err := tlog.ProveRecord(size, seq, r)
	if err != nil {
		return nil, fmt.Errorf("ledger: prove that entry %d is in %d: %w", seq, size, err)
	}
	return Proof(p), nil
}

// CheckInclusion reports whether p proves that entry is number seq of the log
// with this head.
func CheckInclusion(p Proof, h Head, seq int64, entry []byte) error {
	if h.Size > MaxSize {
		return fmt.Errorf("%w: size %d", ErrProof, h.Size)
	}
	if err := tlog.CheckRecord(tlog.RecordProof(p), h.Size, h.Root, seq, LeafHash(entry)); err != nil {
		return fmt.Errorf("%w: entry %d in a log of %d", ErrProof, seq, h.Size)
	}
	return nil
}

// ProveConsistency returns the proof that the log of from entries is how the log
// of to entries began.
func ProveConsistency(from, to int64, r HashReader) (Proof, error) {
	if from < 0 || from > to || to > MaxSize {
		return nil, fmt.Errorf("%w: %d entries never became %d", ErrTree, from, to)
	}
	if from == 0 {
		return Proof{}, nil // every log began empty
	}
	p, err := tlog.ProveTree(to, from, r)
	if err != nil {
		return nil, fmt.Errorf("ledger: prove that %d entries became %d: %w", from, to, err)
	}
	return Proof(p), nil
}

// CheckConsistency reports whether p proves that the log with the head from was
// only appended to until it had the head to. A failure between two signed heads
// is proof of a fork.
func CheckConsistency(p Proof, from, to Head) error {
	if to.Size > MaxSize {
		return fmt.Errorf("%w: size %d", ErrProof, to.Size)
	}
	if from.Size == 0 && to.Size >= 0 {
		var empty Frontier
		if len(p) != 0 || from.Root != empty.Root() || to.Size == 0 && to.Root != from.Root {
			return fmt.Errorf("%w: an empty log with a root", ErrProof)
		}
		return nil
	}
	if err := tlog.CheckTree(tlog.TreeProof(p), to.Size, to.Root, from.Size, from.Root); err != nil {
		return fmt.Errorf("%w: %d entries are not how %d began", ErrProof, from.Size, to.Size)
	}
	return nil
}
