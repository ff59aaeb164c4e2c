// Package sqlite is the store of one process: a SQLite database in one file.
//
// It owns the file, alone: a second process that wants to write is refused with
// the name of the first. Every change and its ledger entries are one transaction,
// on disk (WAL, synchronous=FULL) before the caller hears of it. One goroutine
// writes, and each of its transactions takes in all changes that wait, so that
// the price of reaching the disk is shared; there is no timer. Readers have
// connections of their own and never wait for the writer.
//
// When the disk fails (an error of writing or syncing), the store takes no more
// changes until it is opened again: after a failed fsync nobody knows what the
// disk holds, and trying again would only hide it. Reading goes on.
//
// Not here: what a request may become (approval), and copies of the file. A
// restored copy is a store that forgot: see desk.VoidAll.
package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/ayegate/ayegate/internal/store"
)

// Config is what a store needs.
type Config struct {
	Path string           // of the database; it is made, readable to its owner only, when absent
	Now  func() time.Time // the wall clock; required

	// Pages bounds the size of the database; 0 means no bound but the disk's. A
	// full store refuses changes and goes on when there is room again.
	Pages int64
}

// Store is a [store.Store] in a SQLite database. It is safe for concurrent use.
type Store struct {
	*Reader
	clock *store.Clock
	lock  *lock
	w     *writer
}

var _ store.Store = (*Store)(nil)

// Open opens the database, brings its schema up to date and checks that the
// ledger's tree is whole. ctx bounds the opening only.
func Open(ctx context.Context, cfg Config) (_ *Store, err error) {
	if cfg.Now == nil || cfg.Path == "" {
		return nil, errors.New("sqlite: Path and Now are required")
	}
	path, err := filepath.Abs(cfg.Path)
	if err != nil {
		return nil, fmt.Errorf("sqlite: %w", err)
	}
	l, err := acquire(path+".lock", cfg.Now())
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.release())
		}
	}()
	if err := create(path); err != nil {
		return nil, err
	}
	c, err := connect(context.WithoutCancel(ctx), writeDSN(path, cfg.Pages))
	if err != nil {
		return nil, fmt.Errorf("sqlite: open %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close())
		}
	}()
	if err := migrate(c); err != nil {
		return nil, fmt.Errorf("sqlite: open %s: %w", path, err)
	}
	r, err := OpenReader(ctx, path)
	if err != nil {
		return nil, err
	}
	s := &Store{Reader: r, lock: l}
	if err := s.start(ctx, c, cfg.Now); err != nil {
		return nil, errors.Join(fmt.Errorf("sqlite: open %s: %w", path, err), r.Close())
	}
	return s, nil
}

func (s *Store) start(ctx context.Context, c *conn, now func() time.Time) error {
	edge, at, err := s.edge(ctx)
	if err != nil {
		return err
	}
	counts, err := s.Reader.Counts(ctx)
	if err != nil {
		return err
	}
	s.clock = store.NewClock(now, at)
	s.w, err = newWriter(c, s.clock, edge, counts)
	return err
}

// create makes the file before SQLite does, which would let others read it.
func create(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("sqlite: %w: %w", store.ErrUnavailable, err)
	}
	if err != nil {
		return fmt.Errorf("sqlite: %w", err)
	}
	return f.Close()
}

// Now is the store's clock.
func (s *Store) Now() time.Time { return s.clock.Now() }

// Close waits for the changes that were taken in, refuses all others, and lets
// go of the file.
func (s *Store) Close() error {
	if !s.w.stop() {
		return nil
	}
	return errors.Join(s.Reader.Close(), s.w.conn.close(), s.lock.release())
}
