package desk_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ayegate/ayegate/api"
	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/desk"
	"github.com/ayegate/ayegate/internal/identity"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/store"
)

// RACE-01: of a hundred approvals of one request one decides; the others are the
// same word again, or are told that it is decided.
func TestParallelApprovals(t *testing.T) {
	f := setup(t, rules)
	r := f.submit(t, write(t, "a")).Request
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			got, err := f.Decide(t.Context(), ana, r.ID, approval.Decision{Approve: true, Digest: r.Digest})
			if err != nil || got.State != approval.Approved {
				t.Errorf("%v %v", err, got)
			}
		})
	}
	wg.Wait()
	if n := len(f.recorded(t, ledger.RequestDecided)); n != 1 {
		t.Fatalf("%d decisions on record", n)
	}
}

// RACE-03: when everybody acts at once one wins, whoever was told no is never
// followed by a run, and whoever lost is told the state.
func TestEverybodyAtOnce(t *testing.T) {
	f := setup(t, rules)
	for i := range 200 {
		r := f.submit(t, ask(t, "bank", "pay", fmt.Sprintf(`{"n":%d}`, i))).Request
		f.approve(t, raj, r)
		before := f.runs.Load()
		var told sync.Map
		tell := func(r *approval.Request, err error) {
			if err == nil && (r.State == approval.Denied || r.State == approval.Cancelled || r.State == approval.Expired) {
				told.Store(r.State, true)
			}
		}
		var wg sync.WaitGroup
		for _, act := range []func(){
			func() {
				tell(f.Decide(t.Context(), ana, r.ID, approval.Decision{Approve: true, Digest: r.Digest}))
			},
			func() { tell(f.Decide(t.Context(), ana, r.ID, approval.Decision{Digest: r.Digest})) },
			func() { tell(f.Withdraw(t.Context(), bot, r.ID)) },
			func() { tell(f.Revoke(t.Context(), ana, r.ID)) },
			func() { f.wall.Move(time.Duration(i%3) * 3 * time.Minute); _ = f.Sweep(t.Context()) },
			func() { _, _, _ = f.Execute(t.Context(), bot, &desk.Ticket{Request: r}, f.do) },
			func() { _, _, _ = f.Execute(t.Context(), bot, &desk.Ticket{Request: r}, f.do) },
		} {
			wg.Go(act)
		}
		wg.Wait()
		_, _, _ = f.Execute(t.Context(), bot, &desk.Ticket{Request: r}, f.do)
		ran, end := f.runs.Load()-before, f.get(t, r.ID)
		no := false
		told.Range(func(any, any) bool { no = true; return false })
		if ran > 1 || no && ran > 0 || (ran == 1) != (end.State == approval.Executed) {
			t.Fatalf("round %d: ran %d times, somebody was told no: %t, it is %s", i, ran, no, end.State)
		}
		if end.State == approval.Denied {
			must(t, resumed(f.ResumeSession(t.Context(), ana, "bot/s1", "")))
		}
	}
}

// resumed ignores that a session was not paused.
func resumed(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

// RACE-04: a decision before the deadline counts, at the deadline it does not; an
// approval in time whose claim is late says that it expired.
func TestDeadlineEdge(t *testing.T) {
	for _, c := range []struct {
		before time.Duration // of the deadline, when the person decides
		err    error
	}{{time.Nanosecond, nil}, {time.Millisecond, nil}, {0, approval.ErrExpired}, {-time.Millisecond, approval.ErrExpired}} {
		f := setup(t, rules)
		r := f.submit(t, write(t, "a")).Request
		f.wall.Move(r.ExpiresAt.Sub(f.wall.Now()) - c.before)
		got, err := f.Decide(t.Context(), ana, r.ID, approval.Decision{Approve: true, Digest: r.Digest})
		wants(t, err, c.err)
		if c.err != nil {
			if got.State != approval.Expired {
				t.Fatalf("told expired, and it is %s", got.State)
			}
			continue
		}
		f.wall.Move(c.before)
		got, _, err = f.Execute(t.Context(), bot, &desk.Ticket{Request: r}, f.do)
		wants(t, err, approval.ErrExpired)
		if got.State != approval.Expired {
			t.Fatal(got.State)
		}
		f.ran(t, 0)
	}
}

// RACE-04, P8: the sweeper ends what nobody decided, and wakes whoever waits.
func TestSweeperEndsAndWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := onDisk(t, time.Now)
		defer s.Close()
		f := over(t, s, rules)
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { f.Run(ctx) })
		r := f.submit(t, write(t, "a")).Request
		start := time.Now()
		got, err := f.Await(ctx, bot, r.ID)
		if err != nil || got.State != approval.Expired {
			t.Errorf("%v %v", err, got)
		}
		if late := time.Since(start) - 5*time.Minute; late < 0 || late > 2*time.Second {
			t.Errorf("it expired %v after its deadline", late)
		}
		stop()
		wg.Wait()
	})
}

// RACE-05: a decision on a version that is no longer the current one changes
// nothing and gets the current one.
func TestStaleDecision(t *testing.T) {
	f := setup(t, rules)
	r := f.submit(t, write(t, "a")).Request
	must(t, f.SetPolicy(t.Context(), "p", parse(t, rules+"# another version\n")))
	for _, approve := range []bool{true, false} {
		got, err := f.Decide(t.Context(), ana, r.ID, approval.Decision{Approve: approve, Digest: r.Digest})
		wants(t, err, approval.ErrStale)
		if got.Digest == r.Digest || got.State != approval.Pending || len(got.Approvals()) != 0 {
			t.Fatalf("%s with %d approvals", got.State, len(got.Approvals()))
		}
		f.approve(t, ana, got)
		must(t, f.SetPolicy(t.Context(), "p", parse(t, rules+"# a third version\n")))
	}
}

// RACE-06: an agent that hangs up while its call runs changes nothing about it.
func TestAgentGoesWhileRunning(t *testing.T) {
	f := setup(t, rules)
	tk := f.submit(t, write(t, "a"))
	f.approve(t, ana, tk.Request)
	ctx, hangUp := context.WithCancel(t.Context())
	r, _, err := f.Execute(ctx, bot, tk, func(ctx context.Context, c call.Call, claim string) (desk.Result, error) {
		hangUp()
		_, err := f.Withdraw(t.Context(), bot, tk.Request.ID)
		wants(t, err, approval.ErrClaimed)
		return f.do(ctx, c, claim)
	})
	if err != nil || r.State != approval.Executed {
		t.Fatalf("%v %v", err, r)
	}
	// RACE-07: it asks again and gets the result that waits for it, without a run.
	again := f.submit(t, write(t, "a"))
	r, res, err := f.Execute(t.Context(), bot, again, f.do)
	if err != nil || !again.Attached || r.ID != tk.Request.ID || string(res.Bytes) != `{"content":[]}` {
		t.Fatalf("%v %v %q", err, r.ID, res.Bytes)
	}
	f.ran(t, 1)
	must(t, f.PickedUp(t.Context(), r.ID))
	if next := f.submit(t, write(t, "a")); next.Attached {
		t.Fatal("after the result was picked up the same call is a new one")
	}
}

// RACE-07: a re-issue while the call runs waits for the first one's outcome.
func TestReissueWhileRunning(t *testing.T) {
	f := setup(t, rules)
	tk := f.submit(t, write(t, "a"))
	f.approve(t, ana, tk.Request)
	running, answer := make(chan bool), make(chan bool)
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _, err := f.Execute(t.Context(), bot, tk, func(ctx context.Context, c call.Call, claim string) (desk.Result, error) {
			close(running)
			<-answer
			return f.do(ctx, c, claim)
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-running
	again := f.submit(t, write(t, "a"))
	wg.Go(func() {
		r, res, err := f.Execute(t.Context(), bot, again, f.do)
		if err != nil || r.State != approval.Executed || len(res.Bytes) == 0 {
			t.Errorf("%v %v", err, r)
		}
	})
	for f.Waiting(tk.Request.ID) == 0 {
		runtime.Gosched()
	}
	close(answer)
	wg.Wait()
	f.ran(t, 1)
}

// RACE-08: a process that dies before the claim leaves an approval that the next
// one uses, once.
func TestCrashBeforeClaim(t *testing.T) {
	f := setup(t, rules)
	tk := f.submit(t, write(t, "a"))
	f.approve(t, ana, tk.Request)
	next := over(t, f.store, rules)
	tk = next.submit(t, write(t, "a"))
	if r, _, err := next.Execute(t.Context(), bot, tk, next.do); err != nil || r.State != approval.Executed {
		t.Fatalf("%v %v", err, r)
	}
	next.ran(t, 1)
}

// RACE-09, RACE-10: a process that dies after the claim leaves an outcome that
// nobody knows. The next one says so, runs nothing again, and a person settles it.
func TestCrashAfterClaim(t *testing.T) {
	f := setup(t, rules)
	tk := f.submit(t, write(t, "a"))
	f.approve(t, ana, tk.Request)
	allowed := f.submit(t, ask(t, "fs", "touch", `{}`)) // claimed, never started
	var next *fixture
	r, _, err := f.Execute(t.Context(), bot, tk, func(ctx context.Context, c call.Call, claim string) (desk.Result, error) {
		next = over(t, f.store, rules) // the first process is gone here, in the middle of the effect
		return f.do(ctx, c, claim)
	})
	_ = r
	must(t, err) // what came after all is known, whoever was first
	f.ran(t, 1)
	if got := f.get(t, allowed.Request.ID); got.State != approval.Unknown || got.Cause != approval.ByCrash {
		t.Fatalf("%s %s", got.State, got.Cause)
	}
	_, err = next.Submit(t.Context(), ask(t, "bank", "pay", `{}`))
	must(t, err)
	must(t, next.Sweep(t.Context()))
	next.ran(t, 0)
	if _, err := next.Resolve(t.Context(), ana, allowed.Request.ID, approval.NotSent, "looked"); err != nil {
		t.Fatal(err)
	}
}

// RACE-10: the same call as one in doubt is refused until somebody looked.
func TestInDoubtIsNotAskedAgain(t *testing.T) {
	f := setup(t, rules)
	tk := f.submit(t, write(t, "a"))
	f.approve(t, ana, tk.Request)
	r, _, err := f.Execute(t.Context(), bot, tk, func(context.Context, call.Call, string) (desk.Result, error) {
		f.runs.Add(1)
		return desk.Result{}, errors.New("connection reset")
	})
	if err != nil || r.State != approval.Unknown || r.Cause != approval.ByTransport {
		t.Fatalf("%v %v", err, r)
	}
	_, err = f.Submit(t.Context(), write(t, "a"))
	if ref := refused(t, err, api.OutcomeUnknown); ref.Of.ID != r.ID {
		t.Fatal(ref.Of.ID)
	}
	_, err = f.Resolve(t.Context(), identity.Human{}, r.ID, approval.Succeeded, "")
	wants(t, err, approval.ErrNoPerson)
	r, err = f.Resolve(t.Context(), ana, r.ID, approval.Errored, "it is half done")
	if err != nil || r.State != approval.Failed {
		t.Fatalf("%v %v", err, r)
	}
	if again := f.submit(t, write(t, "a")); again.Attached {
		t.Fatal("joined a request that has ended")
	}
	f.ran(t, 1)
}

// RACE-22, TOK-16: a clock that is set back reopens nothing.
func TestClockSetBack(t *testing.T) {
	f := setup(t, rules)
	r := f.submit(t, write(t, "a")).Request
	f.approve(t, ana, r)
	f.wall.Move(6 * time.Minute)
	must(t, f.Sweep(t.Context()))
	f.wall.Move(-time.Hour)
	_, _, err := f.Execute(t.Context(), bot, &desk.Ticket{Request: r}, f.do)
	wants(t, err, approval.ErrExpired)
	// Not even when nobody had swept: the store's clock does not run backwards.
	r = f.submit(t, write(t, "b")).Request
	f.approve(t, ana, r)
	f.wall.Move(time.Hour + 6*time.Minute)
	_ = f.store.Now()
	f.wall.Move(-time.Hour)
	_, _, err = f.Execute(t.Context(), bot, &desk.Ticket{Request: r}, f.do)
	wants(t, err, approval.ErrExpired)
	f.ran(t, 0)
}

// RACE-26: ids that collide are refused, never reused.
func TestIDsCollide(t *testing.T) {
	f := setup(t, rules)
	d := f.withRand(t, constant{})
	if _, err := d.Submit(t.Context(), ask(t, "fs", "touch", `{"n":1}`)); err != nil {
		t.Fatal(err)
	}
	for _, a := range []desk.Ask{ask(t, "fs", "touch", `{"n":2}`), write(t, "x")} {
		_, err := d.Submit(t.Context(), a)
		wants(t, err, store.ErrExists)
	}
	none := f.withRand(t, nothing{after: 16})
	if _, err := none.Submit(t.Context(), write(t, "y")); err == nil {
		t.Fatal("submitted without randomness")
	}
}

// A ticket's effect starts once, whoever holds copies of the ticket.
func TestTicketUsedTwice(t *testing.T) {
	f := setup(t, rules)
	tk := f.submit(t, ask(t, "fs", "touch", `{}`))
	for range 3 {
		twin := *tk
		if r, _, err := f.Execute(t.Context(), bot, &twin, f.do); err != nil || r.State != approval.Executed {
			t.Fatalf("%v %v", err, r)
		}
	}
	f.ran(t, 1)
}

// P8: a claim that nobody starts ends, and can then not be started.
func TestClaimNobodyStarts(t *testing.T) {
	f := setup(t, rules)
	tk := f.submit(t, ask(t, "fs", "touch", `{}`))
	must(t, f.Sweep(t.Context()))
	if got := f.get(t, tk.Request.ID); got.State != approval.Executing {
		t.Fatal(got.State)
	}
	f.wall.Move(time.Minute)
	must(t, f.Sweep(t.Context()))
	if got := f.get(t, tk.Request.ID); got.State != approval.Failed || got.Execution.Outcome != approval.NotSent {
		t.Fatalf("%s %s", got.State, got.Execution.Outcome)
	}
	if r, _, err := f.Execute(t.Context(), bot, tk, f.do); err != nil || r.State != approval.Failed {
		t.Fatalf("%v %v", err, r)
	}
	f.ran(t, 0)
}

// An executor that panics leaves an outcome that nobody knows, on record.
func TestExecutorPanics(t *testing.T) {
	f := setup(t, rules)
	tk := f.submit(t, ask(t, "fs", "touch", `{}`))
	func() {
		defer func() {
			if recover() != "boom" {
				t.Error("the panic was swallowed")
			}
		}()
		_, _, _ = f.Execute(t.Context(), bot, tk, func(context.Context, call.Call, string) (desk.Result, error) { panic("boom") })
	}()
	if got := f.get(t, tk.Request.ID); got.State != approval.Unknown || got.Cause != approval.ByCrash {
		t.Fatalf("%s %s", got.State, got.Cause)
	}
}

// How an effect ended is told by its error alone.
func TestOutcomes(t *testing.T) {
	f := setup(t, rules)
	for i, c := range []struct {
		res   desk.Result
		err   error
		state approval.State
		cause approval.Cause
	}{
		{desk.Result{Bytes: []byte("1")}, nil, approval.Executed, ""},
		{desk.Result{Bytes: []byte("1"), IsError: true}, nil, approval.Failed, ""},
		{desk.Result{}, fmt.Errorf("no route: %w", desk.ErrNotSent), approval.Failed, ""},
		{desk.Result{}, desk.ErrNoAnswer, approval.Unknown, approval.ByTimeout},
		{desk.Result{}, desk.ErrTooLarge, approval.Unknown, approval.BySize},
		{desk.Result{}, errors.New("reset"), approval.Unknown, approval.ByTransport},
	} {
		tk := f.submit(t, ask(t, "fs", "touch", fmt.Sprintf(`{"n":%d}`, i)))
		r, _, err := f.Execute(t.Context(), bot, tk, func(context.Context, call.Call, string) (desk.Result, error) { return c.res, c.err })
		if err != nil || r.State != c.state || r.Cause != c.cause || r.Execution.Result != nil {
			t.Errorf("%v: %v, %s %s %q", c.err, err, r.State, r.Cause, r.Execution.Result)
		}
	}
}
