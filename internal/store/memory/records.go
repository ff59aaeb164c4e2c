package memory

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/store"
)

type charge struct {
	at     time.Time
	amount int64
}

func (s *Store) charge(charges []store.Charge, now time.Time) {
	for _, c := range charges {
		if c.Reset {
			delete(s.tallies, c.Key)
			continue
		}
		s.tallies[c.Key] = append(s.tallies[c.Key], charge{now, c.Amount})
	}
}

// Totals adds up what was charged to each key since the given time.
func (s *Store) Totals(ctx context.Context, keys map[string]time.Time) (map[string]int64, error) {
	out := make(map[string]int64, len(keys))
	err := s.read(ctx, func() error {
		for key, since := range keys {
			sum, err := total(s.tallies[key], since)
			if err != nil {
				return fmt.Errorf("tally %s: %w", key, err)
			}
			out[key] = sum
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func total(charges []charge, since time.Time) (int64, error) {
	var sum int64
	for _, c := range charges {
		if c.at.Before(since) {
			continue
		}
		if c.amount > 0 && sum > math.MaxInt64-c.amount || c.amount < 0 && sum < math.MinInt64-c.amount {
			return 0, store.ErrOverflow
		}
		sum += c.amount
	}
	return sum, nil
}

// Forget folds the charges older than t into one per key.
func (s *Store) Forget(ctx context.Context, before time.Time) error {
	return s.write(ctx, func(time.Time) error {
		for key, charges := range s.tallies {
			old := slices.IndexFunc(charges, func(c charge) bool { return !c.at.Before(before) })
			if old < 0 {
				old = len(charges)
			}
			if old < 2 {
				continue
			}
			sum, err := total(charges[:old], time.Time{})
			if err != nil {
				continue // left as it is: its total is an error all the same
			}
			s.tallies[key] = append([]charge{{charges[old-1].at, sum}}, charges[old:]...)
		}
		return nil
	})
}

// Update edits one record and takes the charges.
func (s *Store) Update(ctx context.Context, kind, id string, edit store.Edit, charges ...store.Charge) error {
	return s.write(ctx, func(now time.Time) error {
		at := [2]string{kind, id}
		value, e, err := edit(bytes.Clone(s.records[at].Value), now)
		if err != nil || e.IsZero() {
			return err
		}
		if err := s.record([]ledger.Event{e}, now); err != nil {
			return err
		}
		s.charge(charges, now)
		if value == nil {
			delete(s.records, at)
			return nil
		}
		s.records[at] = store.Record{Kind: kind, ID: id, Value: bytes.Clone(value), Changed: now}
		return nil
	})
}

// Load returns one record.
func (s *Store) Load(ctx context.Context, kind, id string) (store.Record, error) {
	var r store.Record
	err := s.read(ctx, func() error {
		r = s.records[[2]string{kind, id}]
		if r.Value == nil {
			return fmt.Errorf("%s %s: %w", kind, id, store.ErrNotFound)
		}
		r.Value = bytes.Clone(r.Value)
		return nil
	})
	return r, err
}

// Records yields the records of a kind by id, as they were when it began.
func (s *Store) Records(ctx context.Context, kind string) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		var found []store.Record
		err := s.read(ctx, func() error {
			for _, r := range s.records {
				if r.Kind == kind {
					r.Value = bytes.Clone(r.Value)
					found = append(found, r)
				}
			}
			return nil
		})
		if err != nil {
			yield(store.Record{}, err)
			return
		}
		slices.SortFunc(found, func(a, b store.Record) int { return cmp.Compare(a.ID, b.ID) })
		for _, r := range found {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// Append records events that change nothing else.
func (s *Store) Append(ctx context.Context, es ...ledger.Event) error {
	es = store.Events(es)
	return s.write(ctx, func(now time.Time) error { return s.record(es, now) })
}

// Entries yields the lines from number first on, up to what is there now.
func (s *Store) Entries(ctx context.Context, first int64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		lines, _, err := s.from(ctx, first)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, line := range lines {
			if !yield(bytes.Clone(line), nil) {
				return
			}
		}
	}
}

// Follow is [Store.Entries] that waits for more until ctx ends.
func (s *Store) Follow(ctx context.Context, first int64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for ctx.Err() == nil {
			lines, grown, err := s.from(ctx, first)
			if err != nil {
				if ctx.Err() == nil {
					yield(nil, err)
				}
				return
			}
			for _, line := range lines {
				if !yield(bytes.Clone(line), nil) {
					return
				}
				first++
			}
			if len(lines) > 0 {
				continue
			}
			select {
			case <-grown:
			case <-ctx.Done():
			}
		}
	}
}

func (s *Store) from(ctx context.Context, first int64) (lines [][]byte, grown <-chan struct{}, err error) {
	err = s.read(ctx, func() error {
		if first < 0 {
			return fmt.Errorf("%w: no entry %d", store.ErrNotFound, first)
		}
		lines, grown = s.lines[min(first, int64(len(s.lines))):], s.grown
		return nil
	})
	return lines, grown, err
}

// Head returns the size and the root of the ledger.
func (s *Store) Head(ctx context.Context) (ledger.Head, error) {
	var h ledger.Head
	err := s.read(ctx, func() error { h = s.edge.Head(); return nil })
	return h, err
}

// Hashes reads the tree.
func (s *Store) Hashes(ctx context.Context) tlog.HashReader {
	return tlog.HashReaderFunc(func(positions []int64) ([]tlog.Hash, error) {
		out := make([]tlog.Hash, len(positions))
		err := s.read(ctx, func() error {
			for i, p := range positions {
				if p < 0 || p >= int64(len(s.hashes)) {
					return fmt.Errorf("hash %d of the tree: %w", p, store.ErrNotFound)
				}
				out[i] = s.hashes[p]
			}
			return nil
		})
		return out, err
	})
}
