package sqlite

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/store"
)

// chunk is how many entries one query reads.
const chunk = 256

// Entries yields the lines from number first on, up to what is there when the
// last of them is read.
func (r *Reader) Entries(ctx context.Context, first int64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		if _, err := r.forward(ctx, first, yield); err != nil {
			yield(nil, err)
		}
	}
}

// forward yields what there is from number next on and returns what comes after
// it, or -1 when the caller wants no more.
func (r *Reader) forward(ctx context.Context, next int64, yield func([]byte, error) bool) (int64, error) {
	if next < 0 {
		return -1, fmt.Errorf("no entry %d: %w", next, store.ErrNotFound)
	}
	for {
		lines, err := r.lines(ctx, next)
		if err != nil {
			return -1, err
		}
		for _, line := range lines {
			if !yield(line, nil) {
				return -1, nil
			}
		}
		next += int64(len(lines))
		if len(lines) < chunk {
			return next, nil
		}
	}
}

func (r *Reader) lines(ctx context.Context, first int64) ([][]byte, error) {
	page, err := r.entries(ctx, first, chunk)
	out := make([][]byte, len(page))
	for i, e := range page {
		out[i] = e.line
	}
	return out, err
}

type entry struct{ line, hashes []byte }

// entries reads at most limit entries from number first on.
func (r *Reader) entries(ctx context.Context, first, limit int64) ([]entry, error) {
	rows, err := r.db.QueryContext(ctx, `SELECT seq, line, hashes FROM entries WHERE seq >= ? ORDER BY seq LIMIT ?`, first, limit)
	if err != nil {
		return nil, unread(err)
	}
	defer rows.Close()
	var out []entry
	for rows.Next() {
		var seq int64
		var e entry
		if err := rows.Scan(&seq, &e.line, &e.hashes); err != nil {
			return nil, unread(err)
		}
		if seq != first+int64(len(out)) {
			return nil, fmt.Errorf("%w: entry %d is missing", ledger.ErrTree, first+int64(len(out)))
		}
		out = append(out, e)
	}
	if err := rows.Err(); err != nil {
		return nil, unread(err)
	}
	return out, nil
}

// flat appends hashes as they are stored.
func flat(dst []byte, hashes []ledger.Hash) []byte {
	for i := range hashes {
		dst = append(dst, hashes[i][:]...)
	}
	return dst
}

// Follow is Entries that waits for more until ctx ends or the store is closed.
func (s *Store) Follow(ctx context.Context, first int64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for ctx.Err() == nil {
			lines, size, grown, here := s.w.public.since(first)
			for _, line := range lines {
				if ctx.Err() != nil || !yield(line, nil) {
					return
				}
				first++
			}
			if !here && (first < 0 || size > first) {
				next, err := s.forward(ctx, first, yield)
				if err != nil && ctx.Err() == nil {
					yield(nil, err)
				}
				if first = next; first < 0 {
					return
				}
				continue
			}
			select {
			case <-grown:
			case <-ctx.Done():
			case <-s.w.ended:
				yield(nil, errClosed)
				return
			}
		}
	}
}

// Head returns the size and the root of the ledger. It is read from where the
// entries are: no reader sees an entry before a head that covers it.
func (r *Reader) Head(ctx context.Context) (ledger.Head, error) {
	h, _, err := r.storedHead(ctx)
	return h, err
}

func (r *Reader) storedHead(ctx context.Context) (h ledger.Head, at time.Time, err error) {
	var root []byte
	var nanos int64
	if err := r.db.QueryRowContext(ctx, `SELECT size, root, at FROM head`).Scan(&h.Size, &root, &nanos); err != nil {
		return h, at, unread(err)
	}
	if copy(h.Root[:], root) != len(h.Root) {
		return h, at, fmt.Errorf("%w: a root of %d bytes", ledger.ErrTree, len(root))
	}
	return h, store.FromNanos(nanos), nil
}

// Hashes reads the tree. The hash of a subtree is kept with the entry that
// completed it, so its place follows from its number.
func (r *Reader) Hashes(ctx context.Context) tlog.HashReader {
	return tlog.HashReaderFunc(func(positions []int64) ([]tlog.Hash, error) {
		out := make([]tlog.Hash, len(positions))
		for i, p := range positions {
			level, n := tlog.SplitStoredHashIndex(p)
			var hashes []byte
			err := r.db.QueryRowContext(ctx, `SELECT hashes FROM entries WHERE seq = ?`, (n+1)<<level-1).Scan(&hashes)
			if err != nil {
				return nil, fmt.Errorf("%w: hash %d: %w", ledger.ErrTree, p, err)
			}
			if len(hashes) < (level+1)*tlog.HashSize {
				return nil, fmt.Errorf("%w: hash %d is missing", ledger.ErrTree, p)
			}
			copy(out[i][:], hashes[level*tlog.HashSize:])
		}
		return out, nil
	})
}

// recent is how many of the last entries are hashed again when a store is opened.
const recent = 64

// edge reads the right edge of the tree and checks it: that it has the stored
// root, that no entry is behind it and that the last ones are what was hashed.
func (r *Reader) edge(ctx context.Context) (edge ledger.Frontier, at time.Time, err error) {
	head, at, err := r.storedHead(ctx)
	if err != nil {
		return edge, at, err
	}
	if edge, err = ledger.NewFrontier(head.Size, r.Hashes(ctx)); err != nil {
		return edge, at, err
	}
	if edge.Head() != head {
		return edge, at, fmt.Errorf("%w: %d entries have the root %s, stored is %s", ledger.ErrTree, head.Size, edge.Root(), head.Root)
	}
	return edge, at, r.rehash(ctx, max(0, head.Size-recent), head.Size)
}

// rehash compares the entries from first on with their leaves, and their number
// with size.
func (r *Reader) rehash(ctx context.Context, first, size int64) error {
	seq := first
	for line, err := range r.Entries(ctx, first) {
		if err != nil {
			return err
		}
		leaf, err := r.Hashes(ctx).ReadHashes([]int64{ledger.Position(seq)})
		if err != nil {
			return err
		}
		if leaf[0] != ledger.LeafHash(line) {
			return fmt.Errorf("%w: entry %d is not the one that was hashed", ledger.ErrTree, seq)
		}
		seq++
	}
	if seq != size {
		return fmt.Errorf("%w: %d entries, %d in the head", ledger.ErrTree, seq, size)
	}
	return nil
}

// Check reads everything and reports what does not fit: pages and indexes of the
// database, every entry and its hashes, every request, the counts. It takes
// seconds per million entries; Open checks only what every commit rests on.
func (r *Reader) Check(ctx context.Context) error {
	var verdict string
	if err := r.db.QueryRowContext(ctx, `PRAGMA integrity_check(1)`).Scan(&verdict); err != nil {
		return unread(err)
	}
	if verdict != "ok" {
		return fmt.Errorf("sqlite: %s", verdict)
	}
	head, err := r.Head(ctx)
	if err != nil {
		return err
	}
	if err := r.rebuild(ctx, head); err != nil {
		return err
	}
	return r.recount(ctx)
}

// rebuild grows the tree anew from the entries and compares every hash.
func (r *Reader) rebuild(ctx context.Context, head ledger.Head) error {
	var tree ledger.Frontier
	var hashes []ledger.Hash
	for tree.Size() < head.Size {
		page, err := r.entries(ctx, tree.Size(), min(chunk, head.Size-tree.Size()))
		if err != nil {
			return err
		}
		for _, e := range page {
			hashes = tree.AppendTo(hashes[:0], e.line)
			if !bytes.Equal(flat(nil, hashes), e.hashes) {
				return fmt.Errorf("%w: entry %d is not the one that was hashed", ledger.ErrTree, tree.Size()-1)
			}
		}
		if len(page) == 0 {
			break
		}
	}
	if tree.Head() != head {
		return fmt.Errorf("%w: %d entries do not make the head of %d", ledger.ErrTree, tree.Size(), head.Size)
	}
	return nil
}

// recount reads every request and compares the counts.
func (r *Reader) recount(ctx context.Context) error {
	var counted store.Counts
	for req, err := range r.List(ctx, store.Filter{}) {
		if err != nil {
			return err
		}
		counted.Add(req, 1)
	}
	kept, err := r.Counts(ctx)
	if err != nil {
		return err
	}
	if fmt.Sprint(counted) != fmt.Sprint(kept) {
		return fmt.Errorf("the counts are %+v, the requests make %+v", kept, counted)
	}
	return nil
}
