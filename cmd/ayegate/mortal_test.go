package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/store"
)

// mortalMain is ayegate with a store over its store that ends the process, as
// kill -9 does, at a chosen write. AYEGATE_TEST_KILL says where: "before
// request.claimed 3" is before the third commit that records a claim, "after" is
// behind it, when nobody has been told yet. AYEGATE_TEST_AHEAD sets the clock
// ahead, so that deadlines come without waiting for them.
func mortalMain() {
	ahead, _ := time.ParseDuration(os.Getenv("AYEGATE_TEST_AHEAD"))
	m := &mortal{}
	_, _ = fmt.Sscan(os.Getenv("AYEGATE_TEST_KILL"), &m.side, &m.kind, &m.left)
	w := &world{
		in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.LookupEnv, rand: rand.Reader,
		now:  func() time.Time { return time.Now().Add(ahead) },
		over: func(s store.Store) store.Store { m.Store = s; return m },
	}
	os.Exit(w.run(context.Background(), os.Args[1:]))
}

type mortal struct {
	store.Store
	side, kind string

	mu   sync.Mutex
	left int
}

// meet dies when this is the place. It never returns then.
func (m *mortal) meet(side string, kinds ...ledger.Kind) {
	if side != m.side {
		return
	}
	for _, k := range kinds {
		if string(k) != m.kind {
			continue
		}
		m.mu.Lock()
		m.left--
		if m.left == 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		m.mu.Unlock()
	}
}

func kindsOf(es []ledger.Event) (kinds []ledger.Kind) {
	for _, e := range es {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

func (m *mortal) Create(ctx context.Context, r *approval.Request, es []ledger.Event, charges ...store.Charge) error {
	m.meet("before", kindsOf(es)...)
	err := m.Store.Create(ctx, r, es, charges...)
	if err == nil {
		m.meet("after", kindsOf(es)...)
	}
	return err
}

func (m *mortal) Change(ctx context.Context, id approval.ID, move store.Move, charges ...store.Charge) (*approval.Request, error) {
	var kind ledger.Kind
	r, err := m.Store.Change(ctx, id, func(r *approval.Request, now time.Time) (ledger.Event, error) {
		e, err := move(r, now)
		if err == nil && !e.IsZero() {
			kind = e.Kind
			m.meet("before", kind) // inside the transaction, with all that is in it
		}
		return e, err
	}, charges...)
	if err == nil && kind != "" {
		m.meet("after", kind)
	}
	return r, err
}

func (m *mortal) Update(ctx context.Context, kind, id string, edit store.Edit, charges ...store.Charge) error {
	var did ledger.Kind
	err := m.Store.Update(ctx, kind, id, func(old []byte, now time.Time) ([]byte, ledger.Event, error) {
		value, e, err := edit(old, now)
		if err == nil && !e.IsZero() {
			did = e.Kind
			m.meet("before", did)
		}
		return value, e, err
	}, charges...)
	if err == nil && did != "" {
		m.meet("after", did)
	}
	return err
}

func (m *mortal) Append(ctx context.Context, es ...ledger.Event) error {
	m.meet("before", kindsOf(es)...)
	err := m.Store.Append(ctx, es...)
	if err == nil {
		m.meet("after", kindsOf(es)...)
	}
	return err
}

func (m *mortal) EraseResults(ctx context.Context, before time.Time) (int, error) {
	m.meet("before", "erase")
	n, err := m.Store.EraseResults(ctx, before)
	m.meet("after", "erase")
	return n, err
}

// points are the labelled places at which the process is ended. The last two are
// the oracle's: the call has arrived and is not done, or is done and not answered.
func points() (all []string) {
	for _, kind := range []ledger.Kind{
		ledger.RequestAsked, ledger.RequestAttached, ledger.RequestDecided, ledger.RequestClaimed, ledger.RequestFinished,
		ledger.RequestLost, ledger.RequestExpired, ledger.RequestCancelled, ledger.RequestRedeemed, ledger.ResultPickedUp,
		ledger.StoreOpened, ledger.DefinitionPinned, "erase",
	} {
		all = append(all, "before "+string(kind), "after "+string(kind))
	}
	return append(all, "sent", "acted")
}
