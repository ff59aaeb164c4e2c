package desk_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/desk"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/store"
	"github.com/ayegate/ayegate/internal/store/memory"
	"github.com/ayegate/ayegate/internal/store/storetest"
)

// OPS-02: when the store is gone everything is refused, in words that say so,
// and nothing runs; pausing works all the same.
func TestStoreDown(t *testing.T) {
	s, err := memory.Open(memory.Config{Now: storetest.NewWall().Now})
	must(t, err)
	f := over(t, s, limited)
	allowed := f.submit(t, ask(t, "bank", "pay", `{"usd":1}`))
	waits := f.submit(t, write(t, "a"))
	approved := f.submit(t, write(t, "b"))
	f.approve(t, ana, approved.Request)
	must(t, f.PauseSession(t.Context(), ana, "bot/s7", ""))
	must(t, s.Close())
	ctx := t.Context()
	yes := approval.Decision{Approve: true, Digest: waits.Request.Digest}
	keyed := write(t, "k")
	keyed.Key = "k"
	for name, do := range map[string]func() error{
		"allowed":  func() error { return second(f.Submit(ctx, ask(t, "bank", "pay", `{"usd":2}`))) },
		"no limit": func() error { return second(f.Submit(ctx, ask(t, "x", "y", `{}`))) },
		"keyed":    func() error { return second(f.Submit(ctx, keyed)) },
		"asked":    func() error { return second(f.Submit(ctx, write(t, "c"))) },
		"decide":   func() error { return second(f.Decide(ctx, ana, waits.Request.ID, yes)) },
		"claim":    func() error { _, _, err := f.Execute(ctx, bot, approved, f.do); return err },
		"await":    func() error { return second(f.Await(ctx, bot, waits.Request.ID)) },
		"revoke":   func() error { return second(f.Revoke(ctx, ana, waits.Request.ID)) },
		"withdraw": func() error { return second(f.Withdraw(ctx, bot, waits.Request.ID)) },
		"extend":   func() error { return second(f.Extend(ctx, ana, waits.Request.ID)) },
		"resolve":  func() error { return second(f.Resolve(ctx, ana, waits.Request.ID, approval.Succeeded, "")) },
		"token":    func() error { _, _, err := f.Claim(ctx, bot, approved.Request.ID); return err },
		"redeem":   func() error { return second(f.Redeem(ctx, bot, approved.Request.ID, approval.Redemption{})) },
		"finish":   func() error { return second(f.Finish(ctx, bot, approved.Request.ID, approval.Execution{})) },
		"pick up":  func() error { return f.PickedUp(ctx, approved.Request.ID) },
		"offer":    func() error { return second(f.Offer(ctx, "fs", "write_file", tool("x"))) },
		"accept":   func() error { return second(f.Accept(ctx, ana, "fs", "write_file", yes.Digest)) },
		"policy":   func() error { return f.SetPolicy(ctx, "p", parse(t, rules)) },
		"void":     func() error { return second(f.VoidAll(ctx, "x")) },
		"explain":  func() error { return second(f.Explain(ctx, ana, bot, allowed.Request.Call)) },
		"session":  func() error { return f.PauseSession(ctx, ana, "bot/s8", "") },
		"resume":   func() error { return f.ResumeSession(ctx, ana, "bot/s7", "") },
		"recover":  func() error { return f.Recover(ctx, "test") },
		"sweep":    func() error { return f.Sweep(ctx) },
		"resumed":  func() error { return f.Resume(ctx, ana, "") },
	} {
		if err := do(); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s: error is %v", name, err)
		}
	}
	f.ran(t, 0)
	if _, err := f.Submit(ctx, withSession(ask(t, "bank", "pay", `{"usd":1}`), "s8")); err == nil {
		t.Error("a session whose pause is not on record goes on")
	}
	if err := f.Pause(ctx, ana, ""); !errors.Is(err, store.ErrUnavailable) || !f.Paused() {
		t.Errorf("paused %t, %v", f.Paused(), err)
	}
	r, _, err := f.Execute(ctx, bot, allowed, f.do)
	if err == nil || r != nil && r.State != approval.Executing {
		t.Errorf("%v %v", err, r)
	}
	f.ran(t, 0)
}

func withSession(a desk.Ask, s string) desk.Ask {
	a.From.Session = s
	return a
}

func second[T any](_ T, err error) error { return err }

// lateStore confirms nothing in time: what it is told is written when the test
// lets it.
type lateStore struct {
	store.Store
	mu   sync.Mutex
	on   bool
	held []func()
}

func (s *lateStore) hold(do func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.on {
		do()
		return nil
	}
	s.held = append(s.held, do)
	return store.ErrInDoubt
}

func (s *lateStore) write() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.on = false
	for _, do := range s.held {
		do()
	}
	s.held = nil
}

func (s *lateStore) Create(ctx context.Context, r *approval.Request, es []ledger.Event, charges ...store.Charge) (err error) {
	r = r.Clone()
	late := s.hold(func() { err = s.Store.Create(context.WithoutCancel(ctx), r, es, charges...) })
	return errors.Join(err, late)
}

func (s *lateStore) Change(ctx context.Context, id approval.ID, move store.Move, charges ...store.Charge) (r *approval.Request, err error) {
	late := s.hold(func() { r, err = s.Store.Change(context.WithoutCancel(ctx), id, move, charges...) })
	return r, errors.Join(err, late)
}

// RACE-11: a claim that is committed after the desk had to give up on it never
// runs, and does not stay executing for ever; a decision that is committed late
// reaches whoever waits.
func TestLateCommits(t *testing.T) { synctest.Test(t, lateCommits) }

func lateCommits(t *testing.T) {
	wall := storetest.NewWall()
	inner, err := memory.Open(memory.Config{Now: wall.Now})
	must(t, err)
	s := &lateStore{Store: inner}
	f := over(t, s, rules)
	approved := f.submit(t, write(t, "a"))
	f.approve(t, ana, approved.Request)
	s.on = true
	_, err = f.Submit(t.Context(), ask(t, "fs", "touch", `{}`))
	wants(t, err, store.ErrInDoubt)
	_, _, err = f.Execute(t.Context(), bot, approved, f.do)
	wants(t, err, store.ErrInDoubt)
	f.ran(t, 0)
	s.write()
	must(t, f.Sweep(t.Context()))
	for r, err := range inner.List(t.Context(), store.Filter{}) {
		must(t, err)
		if r.State != approval.Failed || r.Execution.Outcome != approval.NotSent {
			t.Errorf("%s is %s (%s)", r.Call.Tool(), r.State, r.Execution.Outcome)
		}
	}
	waits := f.submit(t, write(t, "b"))
	done := make(chan *approval.Request)
	go func() {
		r, _ := f.Await(t.Context(), bot, waits.Request.ID)
		done <- r
	}()
	synctest.Wait()
	s.on = true
	_, err = f.Decide(t.Context(), ana, waits.Request.ID, approval.Decision{Approve: true, Digest: waits.Request.Digest})
	wants(t, err, store.ErrInDoubt)
	synctest.Wait() // who waits has looked again, in vain
	s.write()
	must(t, f.Sweep(t.Context()))
	if r := <-done; r.State != approval.Approved {
		t.Errorf("it is %s", r.State)
	}
	// A claim that never turns up is forgotten in the end.
	s.on = true
	_, err = f.Submit(t.Context(), ask(t, "fs", "touch", `{"n":2}`))
	wants(t, err, store.ErrInDoubt)
	s.held, s.on = nil, false
	for range 2 {
		wall.Move(6 * time.Minute)
		must(t, f.Sweep(t.Context()))
	}
	must(t, audit(inner))
}

// rivalStore loses a change and its reply, and somebody else is quicker.
type rivalStore struct {
	store.Store
	rival func()
}

func (s *rivalStore) Change(ctx context.Context, id approval.ID, move store.Move, charges ...store.Charge) (*approval.Request, error) {
	if rival := s.rival; rival != nil {
		s.rival = nil
		rival()
		return nil, store.ErrInDoubt
	}
	return s.Store.Change(ctx, id, move, charges...)
}

// RACE-11: an executor whose claim was lost does not take another's for its own.
func TestClaimOfAnother(t *testing.T) {
	inner, err := memory.Open(memory.Config{Now: storetest.NewWall().Now})
	must(t, err)
	s := &rivalStore{Store: inner}
	f, quicker := over(t, s, rules), over(t, inner, rules)
	tk := f.submit(t, write(t, "a"))
	f.approve(t, ana, tk.Request)
	s.rival = func() {
		_, _, err := quicker.Execute(t.Context(), bot, &desk.Ticket{Request: tk.Request}, quicker.do)
		must(t, err)
	}
	r, _, err := f.Execute(t.Context(), bot, tk, f.do)
	wants(t, err, store.ErrInDoubt)
	if r.State != approval.Executed {
		t.Errorf("it is %s", r.State)
	}
	quicker.ran(t, 1)
	f.ran(t, 0)
	if r, res, err := f.Execute(t.Context(), bot, tk, f.do); err != nil || r.State != approval.Executed || len(res.Bytes) == 0 {
		t.Errorf("%v %v", err, r)
	}
	must(t, audit(inner))
}
