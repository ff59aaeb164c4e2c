package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/store"
	"github.com/ayegate/ayegate/internal/store/storetest"
)

// inside opens a store whose parts the test can reach.
func inside(t *testing.T, edit func(*Config)) *Store {
	t.Helper()
	cfg := Config{Path: filepath.Join(t.TempDir(), "ayegate.db"), Now: storetest.NewWall().Now}
	if edit != nil {
		edit(&cfg)
	}
	s, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// reopened is the same database after a restart.
func reopened(t *testing.T, s *Store) *Store {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return inside(t, func(c *Config) { c.Path = s.path })
}

func ask(ctx context.Context, s store.Store, n int) (*approval.Request, error) {
	r, e := approval.Open(storetest.Opening(n), s.Now())
	return r, s.Create(ctx, r, []ledger.Event{e})
}

func mustAsk(t *testing.T, s store.Store, n int) *approval.Request {
	t.Helper()
	r, err := ask(t.Context(), s, n)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func withdraw(r *approval.Request, now time.Time) (ledger.Event, error) {
	return r.Cancel(ledger.Actor{Kind: ledger.Agent, ID: r.From.ID}, approval.ByAgent, now)
}

var errDisk = errors.New("the disk says EIO")

// TestFailedSync is RACE-25: after a failed fsync nobody knows what the disk
// holds. The change is in doubt, and no other is taken until the store is opened
// again; reading goes on.
func TestFailedSync(t *testing.T) {
	for name, fail := range map[string]func(commit func() error) func() error{
		"before": func(func() error) func() error { return func() error { return errDisk } },
		"after": func(commit func() error) func() error {
			return func() error { return errors.Join(commit(), errDisk) } // it was written all the same
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := inside(t, nil)
			first := mustAsk(t, s, 1)
			commit := s.w.commit
			s.w.commit = fail(commit)
			if _, err := ask(t.Context(), s, 2); !errors.Is(err, store.ErrInDoubt) || !errors.Is(err, errDisk) {
				t.Fatalf("the change is told %v", err)
			}
			s.w.commit = commit // the disk is well again, and must not be believed
			for _, again := range []func() error{
				func() error { _, err := ask(t.Context(), s, 3); return err },
				func() error { _, err := s.Change(t.Context(), first.ID, withdraw); return err },
				func() error {
					return s.Append(t.Context(), ledger.Event{Kind: ledger.PauseSet, Actor: ledger.Actor{Kind: ledger.System}})
				},
			} {
				if err := again(); !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, errDisk) {
					t.Fatalf("afterwards a change is told %v", err)
				}
			}
			if _, err := s.Get(t.Context(), first.ID); err != nil {
				t.Fatalf("reading: %v", err)
			}
			s = reopened(t, s)
			_, err := s.Get(t.Context(), storetest.ID(2))
			if written := name == "after"; written != (err == nil) {
				t.Fatalf("after opening it again: %v", err)
			}
			mustAsk(t, s, 3)
			storetest.Consistent(t, s)
		})
	}
}

// TestNothingIsToldBeforeItIsDurable stops the writer in front of the disk: no
// caller is told, no reader sees, no follower hears.
func TestNothingIsToldBeforeItIsDurable(t *testing.T) {
	s := inside(t, nil)
	first := mustAsk(t, s, 1)
	gate, reached := make(chan struct{}), make(chan struct{})
	commit := s.w.commit
	s.w.commit = func() error {
		reached <- struct{}{}
		<-gate
		return commit()
	}
	told := make(chan error, 1)
	go func() {
		_, err := s.Change(t.Context(), first.ID, withdraw)
		told <- err
	}()
	<-reached
	if r, err := s.Get(t.Context(), first.ID); err != nil || r.State != approval.Pending {
		t.Fatalf("a reader sees %v, %v", r, err)
	}
	if c, err := s.Counts(t.Context()); err != nil || c.Pending != 1 {
		t.Fatalf("counts are %+v, %v", c, err)
	}
	if h, err := s.Head(t.Context()); err != nil || h.Size != 1 {
		t.Fatalf("the head is %v, %v", h, err)
	}
	if lines, size, _, _ := s.w.public.since(0); size != 1 || len(lines) != 1 {
		t.Fatalf("followers are told of %d entries", size)
	}
	select {
	case err := <-told:
		t.Fatalf("the caller is told %v", err)
	default:
	}
	close(gate)
	if err := <-told; err != nil {
		t.Fatal(err)
	}
	if r, err := s.Get(t.Context(), first.ID); err != nil || r.State != approval.Cancelled {
		t.Fatalf("afterwards a reader sees %v, %v", r, err)
	}
}

// TestGroupCommit: all who wait while the disk is busy go in one transaction.
func TestGroupCommit(t *testing.T) {
	s := inside(t, nil)
	gate, reached := make(chan struct{}), make(chan struct{}, 100)
	commits := 0
	commit := s.w.commit
	s.w.commit = func() error {
		commits++
		reached <- struct{}{}
		<-gate
		return commit()
	}
	var all sync.WaitGroup
	create := func(n int) {
		all.Go(func() {
			if _, err := ask(t.Context(), s, n); err != nil {
				t.Error(err)
			}
		})
	}
	create(0)
	<-reached
	for n := 1; n <= 200; n++ {
		create(n)
	}
	for len(s.w.queue) < 200 {
		runtime.Gosched()
	}
	close(gate)
	all.Wait()
	if commits != 2 {
		t.Fatalf("201 changes took %d commits, want 2", commits)
	}
	storetest.Consistent(t, s)
}

// TestErasedInTheSameTransaction: a change that shares a transaction with erasing
// does not bring back what was erased.
func TestErasedInTheSameTransaction(t *testing.T) {
	s := inside(t, nil)
	r, asked, claimed := storetest.Running(1, s.Now())
	if err := s.Create(t.Context(), r, []ledger.Event{asked, claimed}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Change(t.Context(), r.ID, storetest.Finish(r.Claimed.ID, bytes.Repeat([]byte("x"), 3*inline))); err != nil {
		t.Fatal(err)
	}
	gate, reached := make(chan struct{}), make(chan struct{}, 10)
	commit := s.w.commit
	s.w.commit = func() error {
		reached <- struct{}{}
		<-gate
		return commit()
	}
	var all sync.WaitGroup
	wait := func(queued int, do func() error) {
		all.Go(func() {
			if err := do(); err != nil {
				t.Error(err)
			}
		})
		for len(s.w.queue) < queued {
			runtime.Gosched()
		}
	}
	wait(0, func() error { _, err := ask(t.Context(), s, 2); return err })
	<-reached
	wait(1, func() error { _, err := s.EraseResults(t.Context(), s.Now().Add(time.Hour)); return err })
	wait(2, func() error {
		_, err := s.Change(t.Context(), r.ID, func(r *approval.Request, now time.Time) (ledger.Event, error) { return r.PickUp(now) })
		return err
	})
	close(gate)
	all.Wait()
	got, err := reopened(t, s).Get(t.Context(), r.ID)
	if err != nil || got.Execution.Result != nil || got.Execution.PickedUp.IsZero() {
		t.Fatalf("%v, %v", got, err)
	}
}

// TestSlowStore is RACE-24: while the disk hangs, what waits is bounded, callers
// leave at their deadlines, and what they are told is true.
func TestSlowStore(t *testing.T) {
	s := inside(t, nil)
	gate, reached := make(chan struct{}), make(chan struct{}, 100)
	commit := s.w.commit
	s.w.commit = func() error {
		reached <- struct{}{}
		<-gate
		return commit()
	}
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	var doubt, refused atomic.Int32
	create := func(n int) {
		all.Go(func() {
			switch _, err := ask(ctx, s, n); {
			case errors.Is(err, store.ErrInDoubt):
				doubt.Add(1)
			case errors.Is(err, store.ErrUnavailable) && errors.Is(err, context.Canceled):
				refused.Add(1)
			default:
				t.Errorf("number %d is told %v", n, err)
			}
		})
	}
	create(0)
	<-reached
	const more = 2000
	for n := 1; n <= more; n++ {
		create(n)
	}
	for len(s.w.queue) < queued {
		runtime.Gosched()
	}
	if _, err := s.Get(t.Context(), storetest.ID(0)); !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("readers wait for the writer: %v", err)
	}
	stop()
	all.Wait()
	if doubt.Load() != 1 || refused.Load() != more {
		t.Fatalf("%d in doubt, %d refused", doubt.Load(), refused.Load())
	}
	close(gate)
	mustAsk(t, s, more+1)
	h, err := s.Head(t.Context())
	if err != nil || h.Size != 2 {
		t.Fatalf("%d changes were written, want the one in doubt and the last: %v", h.Size, err)
	}
	storetest.Consistent(t, s)
}

// TestBusy is RACE-20: while another connection holds the write lock, a caller
// with a deadline is refused and nothing was written, however long SQLite waits.
func TestBusy(t *testing.T) {
	s := inside(t, nil)
	r := mustAsk(t, s, 1)
	other, err := connect(t.Context(), writeDSN(s.path, 0))
	if err != nil {
		t.Fatal(err)
	}
	defer other.close()
	if err := other.exec("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	_, err = s.Change(ctx, r.ID, withdraw)
	if !errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrInDoubt) {
		t.Fatalf("the caller is told %v", err)
	}
	if err := s.w.conn.ctx.Err(); err != nil {
		t.Fatal(err)
	}
	if err := other.exec("ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Get(t.Context(), r.ID); err != nil || got.State != approval.Pending {
		t.Fatalf("%v, %v", got, err)
	}
	if _, err := s.Change(t.Context(), r.ID, withdraw); err != nil {
		t.Fatalf("with the lock free again: %v", err)
	}
	storetest.Consistent(t, s)
}

// TestBusyTooLong is RACE-20: SQLite gives up waiting; so does the caller.
func TestBusyTooLong(t *testing.T) {
	s := inside(t, nil)
	if err := s.w.conn.exec("PRAGMA busy_timeout = 1"); err != nil {
		t.Fatal(err)
	}
	other, err := connect(t.Context(), writeDSN(s.path, 0))
	if err != nil {
		t.Fatal(err)
	}
	defer other.close()
	if err := other.exec("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	if _, err := ask(t.Context(), s, 1); !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("the caller is told %v", err)
	}
	if err := other.exec("ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	mustAsk(t, s, 1)
}

// TestLongReader is RACE-20: a reader that stays keeps nobody from writing, and
// sees what it saw.
func TestLongReader(t *testing.T) {
	s := inside(t, nil)
	mustAsk(t, s, 0)
	tx, err := s.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	count := func() (n int) {
		if err := tx.QueryRow(`SELECT count(*) FROM requests`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := count()
	for n := 1; n < 300; n++ {
		mustAsk(t, s, n)
	}
	if after := count(); after != before {
		t.Fatalf("the reader saw %d, then %d", before, after)
	}
}

// TestFull is RACE-20 and AUD-05: a full store refuses, nothing of what it refused
// is there, readers go on, and with room it goes on by itself.
func TestFull(t *testing.T) {
	s := inside(t, func(c *Config) { c.Pages = 80 })
	var err error
	n := 0
	for ; err == nil && n < 10_000; n++ {
		_, err = ask(t.Context(), s, n)
	}
	if !errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrInDoubt) {
		t.Fatalf("request %d is told %v", n, err)
	}
	if _, err := s.Get(t.Context(), storetest.ID(n-1)); !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("what was refused: %v", err)
	}
	r, err := s.Get(t.Context(), storetest.ID(0))
	if err != nil {
		t.Fatal(err)
	}
	for { // not one approval without its entry
		_, err := s.Change(t.Context(), r.ID, func(r *approval.Request, _ time.Time) (ledger.Event, error) {
			return r.Attach(strings.Repeat("s", 1000))
		})
		if err != nil {
			break
		}
	}
	storetest.Consistent(t, s)
	if err := s.w.conn.exec("PRAGMA max_page_count = 10000"); err != nil {
		t.Fatal(err)
	}
	mustAsk(t, s, n)
	storetest.Consistent(t, reopened(t, s))
}

// TestOneThatDoesNotFit: a change that is too large for the space that is left
// does not take the small ones of its transaction with it.
func TestOneThatDoesNotFit(t *testing.T) {
	s := inside(t, func(c *Config) { c.Pages = 150 })
	gate, reached := make(chan struct{}), make(chan struct{}, 100)
	commit := s.w.commit
	s.w.commit = func() error {
		reached <- struct{}{}
		<-gate
		return commit()
	}
	var all sync.WaitGroup
	create := func(n int, size int) {
		all.Go(func() {
			o := storetest.Opening(n)
			c, err := call.New("shop", "upload", fmt.Appendf(nil, `{"x":"%s"}`, strings.Repeat("x", size)))
			if err != nil {
				t.Error(err)
				return
			}
			o.Call = c
			r, e := approval.Open(o, s.Now())
			err = s.Create(t.Context(), r, []ledger.Event{e})
			if large := size > 1; large != errors.Is(err, store.ErrUnavailable) || !large && err != nil {
				t.Errorf("number %d, of %d bytes, is told %v", n, size, err)
			}
		})
	}
	create(0, 1)
	<-reached
	for n := 1; n < 10; n++ {
		create(n, 1)
	}
	create(10, 900_000)
	for len(s.w.queue) < 10 {
		runtime.Gosched()
	}
	close(gate)
	all.Wait()
	storetest.Consistent(t, s)
}

// TestReadOnly is RACE-20: a file system that became read-only.
func TestReadOnly(t *testing.T) {
	s := inside(t, nil)
	r := mustAsk(t, s, 1)
	if err := s.w.conn.exec("PRAGMA query_only = 1"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Change(t.Context(), r.ID, withdraw); !errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrInDoubt) {
		t.Fatalf("the caller is told %v", err)
	}
	if got, err := s.Get(t.Context(), r.ID); err != nil || got.State != approval.Pending {
		t.Fatalf("%v, %v", got, err)
	}
	if err := s.w.conn.exec("PRAGMA query_only = 0"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Change(t.Context(), r.ID, withdraw); err != nil {
		t.Fatal(err)
	}
}

// TestNothingIsLeftRunning: closing ends every goroutine.
func TestNothingIsLeftRunning(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	s := inside(t, nil)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error)
	go func() {
		var last error
		for _, err := range s.Follow(ctx, 0) {
			last = err
		}
		ended <- last
	}()
	mustAsk(t, s, 1)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("a follower of a closed store is told %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatalf("closing twice: %v", err)
	}
}

// TestListsUseTheirIndexes: no list sorts what it could read in order, and none
// reads the table from one end to the other but where nothing else is possible.
func TestListsUseTheirIndexes(t *testing.T) {
	s := inside(t, nil)
	pending := []approval.State{approval.Pending}
	for name, f := range map[string]store.Filter{
		"inbox":       {States: pending},
		"next page":   {States: pending, After: store.Cursor{At: time.Unix(1, 0), ID: "x"}},
		"of an agent": {States: pending, Agent: "a", Tiers: []uint8{3}},
		"live":        {States: []approval.State{approval.Pending, approval.Executing, approval.Unknown}},
		"by deadline": {States: []approval.State{approval.Pending, approval.Approved}, Order: store.DeadlineFirst},
		"history":     {Agent: "a"},
		"older":       {Agent: "a", After: store.Cursor{At: time.Unix(1, 0), ID: "x"}, Since: time.Unix(0, 1)},
		"twins":       {Agent: "a", CallHash: call.Hash{1}, Limit: 50},
	} {
		query, args := listQuery(f, 50)
		plan := planOf(t, s, query, args)
		if strings.Contains(plan, "SCAN requests") && !strings.Contains(plan, "SCAN requests USING INDEX requests_asked") {
			t.Errorf("%s reads everything:\n%s", name, plan)
		}
		if name != "twins" && name != "live" && strings.Contains(plan, "TEMP B-TREE FOR ORDER BY") {
			t.Errorf("%s sorts:\n%s", name, plan)
		}
	}
}

func planOf(t *testing.T, s *Store, query string, args []any) string {
	t.Helper()
	rows, err := s.db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+query, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var plan strings.Builder
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		plan.WriteString(detail + "\n")
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return plan.String()
}
