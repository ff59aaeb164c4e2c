package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/ayegate/ayegate/internal/store"
)

// Totals adds up what was charged to each key since the given time.
func (r *Reader) Totals(ctx context.Context, keys map[string]time.Time) (map[string]int64, error) {
	out := make(map[string]int64, len(keys))
	for key, since := range keys {
		var sum int64
		err := r.db.QueryRowContext(ctx, `SELECT coalesce(sum(amount), 0) FROM charges WHERE key = ? AND at >= ?`, key, store.Nanos(since)).Scan(&sum)
		if code(err) == sqlite3.SQLITE_ERROR { // the sum of integers overflows with an error
			return nil, fmt.Errorf("tally %s: %w: %w", key, store.ErrOverflow, err)
		}
		if err != nil {
			return nil, unread(err)
		}
		out[key] = sum
	}
	return out, nil
}

// forget folds the charges of each key before a time into the last of them.
func (b *batch) forget(before int64) error {
	for {
		var row [2]any
		err := b.w.conn.row(row[:], `SELECT key, max(at) FROM charges WHERE at < ? GROUP BY key HAVING count(*) > 1 LIMIT 1`, before)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fatal(err)
		}
		key, at := row[0], row[1]
		sum, err := b.w.conn.number(`SELECT sum(amount) FROM charges WHERE key = ? AND at < ?`, key, before)
		if err != nil {
			return fatal(err)
		}
		if err := errors.Join(
			b.must(`DELETE FROM charges WHERE key = ? AND at < ?`, key, before),
			b.must(`INSERT INTO charges (key, at, seq, amount) VALUES (?, ?, -1, ?)`, key, at, sum),
		); err != nil {
			return err
		}
	}
}

// Load returns one record.
func (r *Reader) Load(ctx context.Context, kind, id string) (store.Record, error) {
	out := store.Record{Kind: kind, ID: id}
	var changed int64
	err := r.db.QueryRowContext(ctx, `SELECT value, changed FROM records WHERE kind = ? AND id = ?`, kind, id).Scan(&out.Value, &changed)
	if errors.Is(err, sql.ErrNoRows) {
		return store.Record{}, fmt.Errorf("%s %s: %w", kind, id, store.ErrNotFound)
	}
	if err != nil {
		return store.Record{}, unread(err)
	}
	out.Value, out.Changed = append([]byte{}, out.Value...), store.FromNanos(changed)
	return out, nil
}

// Records yields the records of a kind by id, page by page.
func (r *Reader) Records(ctx context.Context, kind string) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		after, first := "", true
		for {
			found, err := r.records(ctx, kind, after, first)
			if err != nil {
				yield(store.Record{}, err)
				return
			}
			for _, rec := range found {
				if !yield(rec, nil) {
					return
				}
			}
			if len(found) < page {
				return
			}
			after, first = found[len(found)-1].ID, false
		}
	}
}

func (r *Reader) records(ctx context.Context, kind, after string, first bool) ([]store.Record, error) {
	rows, err := r.db.QueryContext(ctx, `SELECT id, value, changed FROM records WHERE kind = ? AND (id > ? OR ?) ORDER BY id LIMIT ?`, kind, after, first, page)
	if err != nil {
		return nil, unread(err)
	}
	defer rows.Close()
	var out []store.Record
	for rows.Next() {
		rec := store.Record{Kind: kind}
		var changed int64
		if err := rows.Scan(&rec.ID, &rec.Value, &changed); err != nil {
			return nil, unread(err)
		}
		rec.Value, rec.Changed = append([]byte{}, rec.Value...), store.FromNanos(changed)
		out = append(out, rec)
	}
	if err := rows.Err(); err != nil {
		return nil, unread(err)
	}
	return out, nil
}
