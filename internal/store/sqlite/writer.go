package sqlite

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/store"
)

const (
	queued   = 1024 // how many changes may wait; the next ones wait to be let in
	together = 256  // how many changes one transaction takes in at most
)

// writer commits changes. Its goroutine takes all that wait, runs them one after
// the other in one transaction and tells everybody when that is on disk. While it
// syncs, the next ones gather; when nobody else is there, a change goes alone.
type writer struct {
	conn   *conn
	clock  *store.Clock
	queue  chan *op
	closed chan struct{} // no more changes are let in
	ended  chan struct{} // the goroutine is done
	once   sync.Once
	broken atomic.Pointer[error] // why no change will be taken any more

	// The goroutine's own: what is committed.
	edge  ledger.Frontier
	cache *cache
	rows  int64 // the highest row number of a request

	commit func() error // COMMIT; a test makes it fail like a disk

	memo memo

	public published
}

// op is one change on its way.
type op struct {
	run   func(*batch) error // may run again when a transaction was given up
	state atomic.Int32       // whether the goroutine or the caller's deadline was first
	done  chan struct{}
	err   error
	panic *panicked
}

const (
	waiting int32 = iota
	taken
	withdrawn
)

type panicked struct {
	value any
	stack []byte
}

func newWriter(c *conn, clock *store.Clock, edge ledger.Frontier, counts store.Counts) (*writer, error) {
	w := &writer{
		conn: c, clock: clock, edge: edge, cache: newCache(),
		queue: make(chan *op, queued), closed: make(chan struct{}), ended: make(chan struct{}),
		commit: func() error { return c.exec("COMMIT") },
	}
	rows, err := c.number(`SELECT coalesce(max(n), 0) FROM requests`)
	if err != nil {
		return nil, err
	}
	w.rows = rows
	w.public.head, w.public.counts, w.public.grown = edge.Head(), counts, make(chan struct{})
	go w.loop()
	return w, nil
}

// stop lets no more changes in and waits until those that were let in are done.
// It reports whether it was the first to stop the writer.
func (w *writer) stop() (first bool) {
	w.once.Do(func() {
		close(w.closed)
		first = true
	})
	<-w.ended
	return first
}

func (w *writer) stopped() bool {
	select {
	case <-w.closed:
		return true
	default:
		return false
	}
}

var errClosed = fmt.Errorf("%w: it was closed", store.ErrUnavailable)

// do has run committed and returns its error, or the commit's. When ctx ends
// while the change is being written, nobody knows yet: [store.ErrInDoubt].
func (w *writer) do(ctx context.Context, run func(*batch) error) error {
	if err := w.usable(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return late(err)
	}
	o := &op{run: run, done: make(chan struct{})}
	select {
	case w.queue <- o:
	case <-w.closed:
		return errClosed
	case <-ctx.Done():
		return late(ctx.Err())
	}
	select {
	case <-o.done:
	case <-w.ended:
		if !o.state.CompareAndSwap(waiting, withdrawn) {
			<-o.done
			break
		}
		return errClosed
	case <-ctx.Done():
		if o.state.CompareAndSwap(waiting, withdrawn) {
			return late(ctx.Err())
		}
		select {
		case <-o.done: // it was done in the same moment
		default:
			return fmt.Errorf("%w in time: %w", store.ErrInDoubt, ctx.Err())
		}
	}
	if o.panic != nil {
		panic(fmt.Sprintf("%v\n\nin the writer:\n%s", o.panic.value, o.panic.stack))
	}
	return o.err
}

func late(err error) error { return fmt.Errorf("%w in time: %w", store.ErrUnavailable, err) }

func (w *writer) usable() error {
	if why := w.broken.Load(); why != nil {
		return fmt.Errorf("%w until it is opened again: %w", store.ErrUnavailable, *why)
	}
	return nil
}

func (w *writer) loop() {
	defer close(w.ended)
	for {
		select {
		case first := <-w.queue:
			w.serve(first)
		case <-w.closed:
			for len(w.queue) > 0 {
				w.serve(<-w.queue)
			}
			return
		}
	}
}

// serve begins a transaction before it takes anybody in: whoever gives up while
// the database is locked by others can still go, and nothing of his was written.
func (w *writer) serve(first *op) {
	err := w.usable()
	if err == nil {
		err = w.begin()
	}
	ops := w.gather(first)
	if err != nil {
		finish(ops, err)
		return
	}
	if len(ops) == 0 {
		w.rollback()
		return
	}
	if err := w.transact(ops); err == nil || len(ops) == 1 || w.usable() != nil {
		finish(ops, err)
		return
	}
	for _, o := range ops { // one of them may be what does not fit: let each try alone
		if err := w.begin(); err != nil {
			finish([]*op{o}, err)
			continue
		}
		finish([]*op{o}, w.transact([]*op{o}))
	}
}

// gather takes in what waits, without waiting.
func (w *writer) gather(first *op) []*op {
	ops := make([]*op, 0, 1+len(w.queue))
	if first.state.CompareAndSwap(waiting, taken) {
		ops = append(ops, first)
	}
	for len(ops) < together {
		select {
		case o := <-w.queue:
			if o.state.CompareAndSwap(waiting, taken) {
				ops = append(ops, o)
			}
		default:
			return ops
		}
	}
	return ops
}

// finish tells the callers. An error of the transaction is everybody's; without
// one each has its own.
func finish(ops []*op, err error) {
	for _, o := range ops {
		if err != nil {
			o.err = err
		}
		close(o.done)
	}
}

func (w *writer) begin() error {
	if err := w.conn.exec("BEGIN IMMEDIATE"); err != nil {
		return w.refused(err)
	}
	return nil
}

// rollback gives up a transaction. If even that fails, nobody knows what the
// connection would do next.
func (w *writer) rollback() {
	err := w.conn.exec("ROLLBACK")
	if err != nil && code(err) != sqlite3.SQLITE_ERROR { // which says that SQLite gave it up itself
		w.breakDown(err)
	}
}

// transact runs ops in the transaction that was begun and commits it. An error
// means that none of them is committed, or that nobody knows.
func (w *writer) transact(ops []*op) error {
	b := newBatch(w)
	for _, o := range ops {
		if err := o.attempt(b); err != nil {
			w.rollback()
			return w.refused(err)
		}
	}
	if !b.dirty {
		w.rollback()
		return nil
	}
	if err := b.seal(); err != nil {
		w.rollback()
		return w.refused(err)
	}
	if len(b.records) > 0 {
		w.memo.begin(b.records)
		defer w.memo.end()
	}
	w.cache.hide(b.touched)
	if err := w.commit(); err != nil {
		return w.uncommitted(err)
	}
	b.publish()
	return nil
}

// attempt runs one change. What it returns is the end of the whole transaction;
// the change's own refusal, which left nothing behind, is kept in o.
func (o *op) attempt(b *batch) (err error) {
	o.err, o.panic = nil, nil
	defer func() {
		if v := recover(); v != nil {
			o.panic = &panicked{v, debug.Stack()}
			err = nil
			if b.writing {
				err = fmt.Errorf("a change panicked: %v", v)
			}
		}
	}()
	b.writing = false
	var fatal fatalError
	if err := o.run(b); errors.As(err, &fatal) {
		return fatal.error
	} else if err != nil {
		o.err = err
	}
	return nil
}

// published is what readers see of the writer's state: what is committed.
type published struct {
	mu     sync.Mutex
	head   ledger.Head
	counts store.Counts
	tail   tail
	grown  chan struct{} // closed and replaced when the ledger grew
}
