package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/store"
)

// readers is how many queries run at a time.
const readers = 4

// Reader reads a database that this or another process may be writing. What it
// sees is committed. It holds no transaction between two calls, nor while a
// caller looks at what an iterator yielded: a slow reader keeps nobody waiting.
type Reader struct {
	path string
	db   *sql.DB
}

// OpenReader opens an existing database for reading only.
func OpenReader(ctx context.Context, path string) (*Reader, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("sqlite: %w", err)
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("sqlite: %s: %w", path, store.ErrNotFound)
	}
	db, err := sql.Open("sqlite", readDSN(path))
	if err != nil {
		return nil, fmt.Errorf("sqlite: %w", err)
	}
	db.SetMaxOpenConns(readers)
	db.SetMaxIdleConns(readers)
	r := &Reader{path: path, db: db}
	if err := r.known(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("sqlite: open %s: %w", path, err), db.Close())
	}
	return r, nil
}

func (r *Reader) known(ctx context.Context) error {
	var id, taken int64
	if err := r.db.QueryRowContext(ctx, `SELECT application_id, user_version FROM pragma_application_id, pragma_user_version`).Scan(&id, &taken); err != nil {
		return err
	}
	steps, err := fs.Glob(migrations, "migrations/*.sql")
	switch {
	case err != nil:
		return err
	case id != applicationID:
		return ErrForeign
	case taken > int64(len(steps)):
		return fmt.Errorf("%w: it has schema %d, this one knows %d", ErrNewer, taken, len(steps))
	}
	return nil
}

// Name is "sqlite:" and the name of the file.
func (r *Reader) Name() string { return "sqlite:" + filepath.Base(r.path) }

// Close lets go of the file.
func (r *Reader) Close() error { return r.db.Close() }

// unread wraps errors of reading: nothing can be said, least of all yes.
func unread(err error) error { return fmt.Errorf("%w: %w", store.ErrUnavailable, err) }

// Get returns a request.
func (r *Reader) Get(ctx context.Context, id approval.ID) (*approval.Request, error) {
	return r.one(ctx, missing(id), `SELECT `+rowColumns+` FROM requests WHERE id = ?`, string(id))
}

// ByKey finds the request an agent made under its idempotency key.
func (r *Reader) ByKey(ctx context.Context, agent, key string) (*approval.Request, error) {
	return r.one(ctx, fmt.Errorf("a request of %s with this key: %w", agent, store.ErrNotFound),
		`SELECT `+rowColumns+` FROM requests WHERE agent = ? AND key = ? AND key <> ''`, agent, key)
}

// ByCode finds the open request of a short code, else the latest other one.
func (r *Reader) ByCode(ctx context.Context, code string) (*approval.Request, error) {
	return r.one(ctx, fmt.Errorf("short code %s: %w", code, store.ErrNotFound),
		`SELECT `+rowColumns+` FROM requests INDEXED BY requests_code WHERE code = ? AND code <> ''
		ORDER BY state IN ('pending', 'approved') DESC, asked_at DESC, id DESC LIMIT 1`, code)
}

func (r *Reader) one(ctx context.Context, none error, query string, args ...any) (*approval.Request, error) {
	found, err := r.rows(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, none
	}
	return found[0].r, nil
}

// rows reads all requests of a query. Only when a payload is kept apart are there
// two queries, which then must see the same snapshot.
func (r *Reader) rows(ctx context.Context, query string, args ...any) ([]kept, error) {
	out, err := read(ctx, r.db, nil, query, args)
	if !errors.Is(err, errApart) {
		return out, err
	}
	tx, err := r.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, unread(err)
	}
	out, err = read(ctx, tx, func(p int64) (data []byte, err error) {
		err = tx.QueryRowContext(ctx, payloadQuery, p).Scan(&data)
		return data, err
	}, query, args)
	return out, errors.Join(err, tx.Rollback())
}

var errApart = errors.New("the payload is kept apart")

type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func read(ctx context.Context, from querier, payload func(p int64) ([]byte, error), query string, args []any) ([]kept, error) {
	if payload == nil {
		payload = func(int64) ([]byte, error) { return nil, errApart }
	}
	raw, err := scan(from.QueryContext(ctx, query, args...))
	if err != nil {
		return nil, unread(err)
	}
	out := make([]kept, len(raw))
	for i, row := range raw {
		if out[i], err = readRow(row, payload); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func scan(rows *sql.Rows, err error) (out [][rowWidth]any, _ error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var row [rowWidth]any
		dest := make([]any, rowWidth)
		for i := range row {
			dest[i] = &row[i]
		}
		if err := rows.Scan(dest...); err != nil {
			return nil, err
		}
		out = append(out, row)
	}
	return out, rows.Err()
}

// Due lists what time acts on at or before now, soonest first.
func (r *Reader) Due(ctx context.Context, now time.Time, limit int) ([]approval.ID, error) {
	if limit <= 0 {
		limit = math.MaxInt32
	}
	rows, err := r.db.QueryContext(ctx, `SELECT id FROM requests INDEXED BY requests_due
		WHERE due_at <= ? ORDER BY due_at, id LIMIT ?`, store.Nanos(now), limit)
	if err != nil {
		return nil, unread(err)
	}
	defer rows.Close()
	var ids []approval.ID
	for rows.Next() {
		var id approval.ID
		if err := rows.Scan(&id); err != nil {
			return nil, unread(err)
		}
		ids = append(ids, id)
	}
	if err := rows.Err(); err != nil {
		return nil, unread(err)
	}
	return ids, nil
}

// Get returns a request. One that changed lately is in memory.
func (s *Store) Get(ctx context.Context, id approval.ID) (*approval.Request, error) {
	if k, ok := s.w.cache.get(id); ok && ctx.Err() == nil && !s.w.stopped() {
		return store.Copy(k.r), nil
	}
	return s.Reader.Get(ctx, id)
}

// Counts tells what is open. Nothing is counted for it.
func (s *Store) Counts(ctx context.Context) (store.Counts, error) {
	if err := ctx.Err(); err != nil {
		return store.Counts{}, unread(err)
	}
	p := &s.w.public
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts.Clone(), nil
}

// Counts tells what is open, as the writer last stored it.
func (r *Reader) Counts(ctx context.Context) (store.Counts, error) {
	var c store.Counts
	rows, err := r.db.QueryContext(ctx, `SELECT state, agent, tier, n FROM counts WHERE n > 0`)
	if err != nil {
		return c, unread(err)
	}
	defer rows.Close()
	for rows.Next() {
		var k countKey
		var n int
		if err := rows.Scan(&k.state, &k.agent, &k.tier, &n); err != nil {
			return c, unread(err)
		}
		k.addTo(&c, n)
	}
	if err := rows.Err(); err != nil {
		return c, unread(err)
	}
	return c, nil
}
