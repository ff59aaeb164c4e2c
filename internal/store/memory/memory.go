// Package memory is the store that forgets: everything lives in this process and
// ends with it. It keeps the whole contract of package store but durability.
//
// It is for tests, for trying ayegate out, and it is the model that storetest
// compares the other backends with; so it prefers what is plainly right.
package memory

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/store"
)

// Config is what a memory store needs.
type Config struct {
	Now func() time.Time // the wall clock; required
}

// Store is a [store.Store] in memory. It is safe for concurrent use.
type Store struct {
	clock *store.Clock

	mu       sync.RWMutex
	closed   bool
	requests map[approval.ID]*approval.Request // replaced, never written to
	keys     map[[2]string]approval.ID         // by agent and idempotency key
	codes    map[string][]approval.ID
	counts   store.Counts
	tallies  map[string][]charge
	records  map[[2]string]store.Record // by kind and id

	edge   ledger.Frontier
	lines  [][]byte
	hashes []ledger.Hash
	grown  chan struct{} // closed and replaced when lines grew
}

var _ store.Store = (*Store)(nil)

// Open returns an empty store.
func Open(cfg Config) (*Store, error) {
	if cfg.Now == nil {
		return nil, errors.New("memory: Now is required")
	}
	return &Store{
		clock:    store.NewClock(cfg.Now, time.Time{}),
		requests: make(map[approval.ID]*approval.Request),
		keys:     make(map[[2]string]approval.ID),
		codes:    make(map[string][]approval.ID),
		tallies:  make(map[string][]charge),
		records:  make(map[[2]string]store.Record),
		grown:    make(chan struct{}),
	}, nil
}

// Now is the store's clock.
func (s *Store) Now() time.Time { return s.clock.Now() }

// Name says "memory".
func (s *Store) Name() string { return "memory" }

// Close ends the store and whoever follows it. What it held is gone.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		close(s.grown)
	}
	return nil
}

// write runs change alone. It is not started when ctx has ended.
func (s *Store) write(ctx context.Context, change func(now time.Time) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return err
	}
	return change(s.clock.Now())
}

// read runs look while nothing changes.
func (s *Store) read(ctx context.Context, look func() error) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.usable(ctx); err != nil {
		return err
	}
	return look()
}

func (s *Store) usable(ctx context.Context) error {
	if s.closed {
		return fmt.Errorf("%w: it was closed", store.ErrUnavailable)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w in time: %w", store.ErrUnavailable, err)
	}
	return nil
}

// record appends events to the ledger, all or none.
func (s *Store) record(es []ledger.Event, now time.Time) error {
	lines := make([][]byte, len(es))
	for i, e := range es {
		line, err := e.Entry(s.edge.Size()+int64(i), now)
		if err != nil {
			return err
		}
		lines[i] = line
	}
	for _, line := range lines {
		s.hashes = s.edge.AppendTo(s.hashes, line)
	}
	s.lines = append(s.lines, lines...)
	if len(lines) > 0 {
		close(s.grown)
		s.grown = make(chan struct{})
	}
	return nil
}
