// Package store is the contract between the desk and what remembers.
//
// A change and the events that record it commit together, durably, or not at
// all. There is one ledger per store, and its tree grows in the same commit.
//
// The contract, which storetest holds every backend and every fake to:
//   - A call that returned nil is durable: it survives a crash of the process.
//   - A call that returned an error changed nothing, with one exception: when the
//     reply was lost the error wraps [ErrInDoubt], and the caller re-reads.
//   - Moves run under compare-and-swap and may run more than once; they must be
//     pure. When a move errs, nothing is written and its error is returned as it is.
//     When a move returns a zero event and no error, nothing is written either.
//   - What is returned is the caller's own: no later change of the store shows in it.
//   - Time inside a move is the store's clock. It never runs backwards, also over
//     restarts: it continues from the latest time that was committed.
//   - Absence is never read as permission.
//
// Backends are subpackages. The stored form is their own matter and apart from
// the domain type.
package store

import (
	"context"
	"errors"
	"iter"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/ledger"
)

// Errors of stores.
var (
	ErrNotFound = errors.New("not found")
	ErrExists   = errors.New("already exists")
	// ErrInDoubt says that a commit may or may not have happened: re-read before acting.
	ErrInDoubt = errors.New("the store did not confirm the change")
	// ErrUnavailable says that the store cannot take changes; nothing was written.
	ErrUnavailable = errors.New("the store is not available")
	// ErrOverflow says that a tally is beyond what can be counted: refuse.
	ErrOverflow = errors.New("the tally is larger than can be counted")
)

// Store is everything ayegate remembers.
type Store interface {
	Requests
	Tallies
	Records
	Ledger
	// Now is the store's clock.
	Now() time.Time
	// Name says which store this is, for people: "sqlite:ayegate.db".
	Name() string
	Close() error
}

// Move changes a request and returns the event that records the change.
type Move func(r *approval.Request, now time.Time) (ledger.Event, error)

// Requests keeps the requests.
type Requests interface {
	// Create stores a new request with its events and charges. An id or an
	// (agent, key) pair that exists is [ErrExists]; a short code that another open
	// request has is [ErrExists] too, wrapped in [ErrCode].
	Create(ctx context.Context, r *approval.Request, es []ledger.Event, charges ...Charge) error
	// Change runs move on the current request and stores what it made of it.
	Change(ctx context.Context, id approval.ID, move Move, charges ...Charge) (*approval.Request, error)
	Get(ctx context.Context, id approval.ID) (*approval.Request, error)
	// ByKey finds the request an agent made under its idempotency key.
	ByKey(ctx context.Context, agent, key string) (*approval.Request, error)
	// ByCode finds the open request of a short code, else the latest ended one.
	ByCode(ctx context.Context, code string) (*approval.Request, error)
	List(ctx context.Context, f Filter) iter.Seq2[*approval.Request, error]
	// Counts tells what is open without counting rows: its cost does not grow.
	Counts(ctx context.Context) (Counts, error)
	// Due lists ids of requests whose deadline, or whose claim's token, ran out at
	// or before now and that are still open or executing, soonest first.
	Due(ctx context.Context, now time.Time, limit int) ([]approval.ID, error)
	// EraseResults drops the payload of results that ended before t; hashes stay.
	EraseResults(ctx context.Context, before time.Time) (int, error)
}

// ErrCode says that a short code is taken by another open request.
var ErrCode = errors.New("the short code is in use")

// Order of a list.
type Order uint8

// Orders.
const (
	NewestFirst   Order = iota // by AskedAt and id, both descending
	DeadlineFirst              // by ExpiresAt, ascending, then id
)

// Filter selects requests; zero fields select all.
type Filter struct {
	States    []approval.State
	Agent     string
	Session   string
	Workspace string
	Server    string
	Tool      string
	CallHash  call.Hash
	Tiers     []uint8
	Since     time.Time // AskedAt not before
	Order     Order
	After     Cursor // continue behind this one; the zero value starts at the beginning
	Limit     int    // 0: no limit
}

// Cursor is a place in an order: stable while requests come and go.
type Cursor struct {
	At time.Time
	ID approval.ID
}

// Counts of open requests.
type Counts struct {
	Pending   int
	Approved  int
	Executing int
	Unknown   int
	ByAgent   map[string]int // pending
	ByTier    map[string]int // pending, "R0".."R4"
}

// Charge adds to a tally in the same commit as a change.
type Charge struct {
	Key    string
	Amount int64
	Reset  bool // set the tally to zero instead
}

// Tallies count for the limits of a policy.
type Tallies interface {
	// Totals adds up what was charged to each key since the given time; a zero time
	// adds up everything since the last reset.
	Totals(ctx context.Context, keys map[string]time.Time) (map[string]int64, error)
	// Forget folds the charges older than t of each key into one. No total changes
	// that counts since t or later, or since the last reset.
	Forget(ctx context.Context, before time.Time) error
}

// Record is a small document: a key, a session, a pin, a pause.
type Record struct {
	Kind, ID string
	Value    []byte
	Changed  time.Time
}

// Edit makes the new value of a record from the old one; nil means absent on
// both sides. It obeys the rules of a [Move].
type Edit func(old []byte, now time.Time) (value []byte, e ledger.Event, err error)

// Records keeps small documents by kind and id.
type Records interface {
	// Update edits one record and takes the charges in the same commit.
	Update(ctx context.Context, kind, id string, edit Edit, charges ...Charge) error
	Load(ctx context.Context, kind, id string) (Record, error)
	Records(ctx context.Context, kind string) iter.Seq2[Record, error]
}

// Ledger is the record nobody can quietly change.
type Ledger interface {
	// Append records events that change nothing else.
	Append(ctx context.Context, es ...ledger.Event) error
	// Entries yields the canonical lines with sequence numbers from first on.
	Entries(ctx context.Context, first int64) iter.Seq2[[]byte, error]
	// Follow is Entries that waits for more until ctx ends, which is no error. It
	// yields only what is committed.
	Follow(ctx context.Context, first int64) iter.Seq2[[]byte, error]
	Head(ctx context.Context) (ledger.Head, error)
	// Hashes reads the tree, for proofs.
	Hashes(ctx context.Context) tlog.HashReader
}
