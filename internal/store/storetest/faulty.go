package storetest

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/store"
)

// Fault is how a write goes wrong.
type Fault uint8

// Faults.
const (
	NotWritten  Fault = iota + 1 // nothing is written, and the caller is told so: store.ErrUnavailable
	Unconfirmed                  // it is written, and the reply is lost: store.ErrInDoubt
	Hung                         // nothing is written, and no answer comes until the context ends: store.ErrInDoubt
	HungWritten                  // it is written, and no answer comes until the context ends: store.ErrInDoubt
	DiesBefore                   // nothing is written, and the store is gone: as if the process died here
	DiesAfter                    // it is written, and the store is gone
)

// Faults lists all faults.
var Faults = []Fault{NotWritten, Unconfirmed, Hung, HungWritten, DiesBefore, DiesAfter}

func (f Fault) String() string {
	return [...]string{"none", "not written", "unconfirmed", "hung", "hung but written", "dies before", "dies after"}[f]
}

// Faulty is a store that fails at a chosen write. Without a fault set it is the
// store it wraps. What was written can be looked at in that store.
//
// A write is a call that changes something: a move that errs or makes no event
// does not count. Writes are numbered from 1, and each has a label such as
// "Change request.claimed", so that a test can go through all of them:
//
//	for n := 1; ; n++ {
//		f := storetest.NewFaulty(fresh())
//		f.FailAt(n, storetest.Unconfirmed)
//		use(f)
//		if f.Writes() < n {
//			break // n was beyond the last write
//		}
//		...
//	}
type Faulty struct {
	store.Store

	mu     sync.Mutex
	at     int
	fault  Fault
	labels []string
	dead   bool
}

// NewFaulty wraps a store.
func NewFaulty(s store.Store) *Faulty { return &Faulty{Store: s} }

// FailAt makes the n-th write from now fail, counted from 1, and starts the list of
// writes anew. With n = 0 nothing fails. A store that died is alive again.
func (f *Faulty) FailAt(n int, fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at, f.fault, f.labels, f.dead = n, fault, nil, false
}

// Points lists the labels of the writes since FailAt, the failed one included.
func (f *Faulty) Points() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.labels...)
}

// Writes is how many writes there were since FailAt.
func (f *Faulty) Writes() int { return len(f.Points()) }

// point is one write on its way. A move may run twice; it is one write.
type point struct {
	f     *Faulty
	fault Fault
	met   bool
}

// meet numbers the write. The error stops it before anything is written.
func (p *point) meet(label string) error {
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	if p.met {
		return nil
	}
	p.met = true
	p.f.labels = append(p.f.labels, label)
	if len(p.f.labels) == p.f.at {
		p.fault = p.f.fault
	}
	if p.fault == NotWritten || p.fault == Hung || p.fault == DiesBefore {
		return fmt.Errorf("%w: %s at write %d (%s)", store.ErrUnavailable, p.fault, p.f.at, label)
	}
	return nil
}

// answer turns what the store answered into what the caller is told.
func (p *point) answer(ctx context.Context, err error) error {
	switch p.fault {
	case NotWritten:
	case Unconfirmed:
		if err == nil {
			return fmt.Errorf("%w: the reply was lost", store.ErrInDoubt)
		}
	case Hung, HungWritten:
		<-ctx.Done()
		return fmt.Errorf("%w in time: %w", store.ErrInDoubt, ctx.Err())
	case DiesBefore, DiesAfter:
		p.f.mu.Lock()
		p.f.dead = true
		p.f.mu.Unlock()
		return fmt.Errorf("%w: it died", store.ErrInDoubt)
	}
	return err
}

// alive refuses everything once the store died.
func (f *Faulty) alive() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dead {
		return fmt.Errorf("%w: it died", store.ErrUnavailable)
	}
	return nil
}

// Create is a write.
func (f *Faulty) Create(ctx context.Context, r *approval.Request, es []ledger.Event, charges ...store.Charge) error {
	if err := f.alive(); err != nil {
		return err
	}
	label := "Create"
	for _, e := range es {
		label += " " + string(e.Kind)
	}
	p := point{f: f}
	err := p.meet(label)
	if err == nil {
		err = f.Store.Create(ctx, r, es, charges...)
	}
	return p.answer(ctx, err)
}

// Change is a write when its move makes an event.
func (f *Faulty) Change(ctx context.Context, id approval.ID, move store.Move, charges ...store.Charge) (*approval.Request, error) {
	if err := f.alive(); err != nil {
		return nil, err
	}
	p := point{f: f}
	r, err := f.Store.Change(ctx, id, func(r *approval.Request, now time.Time) (ledger.Event, error) {
		e, err := move(r, now)
		if err == nil && !e.IsZero() {
			err = p.meet("Change " + string(e.Kind))
		}
		return e, err
	}, charges...)
	if err = p.answer(ctx, err); err != nil {
		return nil, err
	}
	return r, nil
}

// Update is a write when its edit makes an event.
func (f *Faulty) Update(ctx context.Context, kind, id string, edit store.Edit, charges ...store.Charge) error {
	if err := f.alive(); err != nil {
		return err
	}
	p := point{f: f}
	err := f.Store.Update(ctx, kind, id, func(old []byte, now time.Time) ([]byte, ledger.Event, error) {
		value, e, err := edit(old, now)
		if err == nil && !e.IsZero() {
			err = p.meet("Update " + string(e.Kind))
		}
		return value, e, err
	}, charges...)
	return p.answer(ctx, err)
}

// Append is a write.
func (f *Faulty) Append(ctx context.Context, es ...ledger.Event) error {
	if err := f.alive(); err != nil {
		return err
	}
	label := "Append"
	for _, e := range es {
		label += " " + string(e.Kind)
	}
	p := point{f: f}
	err := p.meet(label)
	if err == nil {
		err = f.Store.Append(ctx, es...)
	}
	return p.answer(ctx, err)
}

// EraseResults is a write.
func (f *Faulty) EraseResults(ctx context.Context, before time.Time) (n int, err error) {
	if err := f.alive(); err != nil {
		return 0, err
	}
	p := point{f: f}
	if err = p.meet("EraseResults"); err == nil {
		n, err = f.Store.EraseResults(ctx, before)
	}
	return n, p.answer(ctx, err)
}

// Forget is a write.
func (f *Faulty) Forget(ctx context.Context, before time.Time) error {
	if err := f.alive(); err != nil {
		return err
	}
	p := point{f: f}
	err := p.meet("Forget")
	if err == nil {
		err = f.Store.Forget(ctx, before)
	}
	return p.answer(ctx, err)
}

// Get fails once the store died. So do the other readings.
func (f *Faulty) Get(ctx context.Context, id approval.ID) (*approval.Request, error) {
	if err := f.alive(); err != nil {
		return nil, err
	}
	return f.Store.Get(ctx, id)
}

// ByKey fails once the store died.
func (f *Faulty) ByKey(ctx context.Context, agent, key string) (*approval.Request, error) {
	if err := f.alive(); err != nil {
		return nil, err
	}
	return f.Store.ByKey(ctx, agent, key)
}

// ByCode fails once the store died.
func (f *Faulty) ByCode(ctx context.Context, code string) (*approval.Request, error) {
	if err := f.alive(); err != nil {
		return nil, err
	}
	return f.Store.ByCode(ctx, code)
}

// List fails once the store died.
func (f *Faulty) List(ctx context.Context, filter store.Filter) iter.Seq2[*approval.Request, error] {
	if err := f.alive(); err != nil {
		return func(yield func(*approval.Request, error) bool) { yield(nil, err) }
	}
	return f.Store.List(ctx, filter)
}

// Counts fails once the store died.
func (f *Faulty) Counts(ctx context.Context) (store.Counts, error) {
	if err := f.alive(); err != nil {
		return store.Counts{}, err
	}
	return f.Store.Counts(ctx)
}

// Due fails once the store died.
func (f *Faulty) Due(ctx context.Context, now time.Time, limit int) ([]approval.ID, error) {
	if err := f.alive(); err != nil {
		return nil, err
	}
	return f.Store.Due(ctx, now, limit)
}

// Totals fails once the store died.
func (f *Faulty) Totals(ctx context.Context, keys map[string]time.Time) (map[string]int64, error) {
	if err := f.alive(); err != nil {
		return nil, err
	}
	return f.Store.Totals(ctx, keys)
}

// Load fails once the store died.
func (f *Faulty) Load(ctx context.Context, kind, id string) (store.Record, error) {
	if err := f.alive(); err != nil {
		return store.Record{}, err
	}
	return f.Store.Load(ctx, kind, id)
}

// Records fails once the store died.
func (f *Faulty) Records(ctx context.Context, kind string) iter.Seq2[store.Record, error] {
	if err := f.alive(); err != nil {
		return func(yield func(store.Record, error) bool) { yield(store.Record{}, err) }
	}
	return f.Store.Records(ctx, kind)
}
