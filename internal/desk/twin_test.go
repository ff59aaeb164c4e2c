package desk_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/ayegate/ayegate/api"
	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/desk"
	"github.com/ayegate/ayegate/internal/identity"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/store"
)

// Only a verified agent with a call asks, and says who executes.
func TestWhoMayAsk(t *testing.T) {
	f := setup(t, rules)
	for _, c := range []struct {
		change func(*desk.Ask)
		want   error
	}{
		{func(a *desk.Ask) { a.From = identity.Agent{} }, desk.ErrNoAgent},
		{func(a *desk.Ask) { a.Executor = "" }, desk.ErrNoExecutor},
		{func(a *desk.Ask) { a.Executor = "somebody" }, desk.ErrNoExecutor},
	} {
		a := write(t, "a")
		c.change(&a)
		_, err := f.Submit(t.Context(), a)
		wants(t, err, c.want)
	}
	a := write(t, "a")
	a.Call = call.Call{}
	if _, err := f.Submit(t.Context(), a); err == nil {
		t.Error("submitted no call")
	}
	if _, err := f.Get(t.Context(), nobody, "x"); !errors.Is(err, approval.ErrNoPerson) {
		t.Error(err)
	}
	if n := len(f.recorded(t, ledger.RequestAsked)); n != 0 {
		t.Errorf("%d requests", n)
	}
	if _, err := desk.New(desk.Config{}); err == nil {
		t.Error("a desk of nothing")
	}
}

// TOK-02: key order makes no other call; a changed value does.
func TestSameCallJoins(t *testing.T) {
	f := setup(t, rules)
	first := f.submit(t, ask(t, "fs", "write_file", `{"path":"a","text":"b"}`))
	same := f.submit(t, ask(t, "fs", "write_file", ` {"text":"b", "path":"\u0061"}`))
	if !same.Attached || same.Request.ID != first.Request.ID || same.Request.Asks != 2 {
		t.Fatalf("%v %d", same.Attached, same.Request.Asks)
	}
	for _, args := range []string{`{"path":"a","text":"b "}`, `{"path":"a"}`, `{"path":"a","text":"b","x":null}`} {
		if tk := f.submit(t, ask(t, "fs", "write_file", args)); tk.Attached {
			t.Errorf("%s joined", args)
		}
	}
	f.wall.Move(6 * time.Minute) // not swept yet: what expired is not joined
	if tk := f.submit(t, ask(t, "fs", "write_file", `{"path":"a","text":"b"}`)); tk.Attached {
		t.Error("joined a request whose deadline has passed")
	}
}

// TOK-02, TOK-04: an equal call with something else beside it is another request,
// in every state of the first; the same beside it is a re-issue.
func TestOtherExtrasDoNotJoin(t *testing.T) {
	f := setup(t, rules)
	with := func(extra string) desk.Ask {
		a := write(t, "a")
		if extra != "" {
			a.Extra = []byte(extra)
		}
		return a
	}
	const shown = `{"_meta":{"to":"staging"}}`
	others := []string{"", `{"_meta":{"to":"prod"}}`, `{"_meta":{"to":"staging"},"sudo":true}`}
	first := f.submit(t, with(shown))
	if string(first.Request.Extra) != shown {
		t.Fatalf("the request has %s", first.Request.Extra)
	}
	seen := map[approval.ID]bool{first.Request.ID: true}
	for _, extra := range others {
		tk := f.submit(t, with(extra))
		if tk.Attached || seen[tk.Request.ID] {
			t.Errorf("%q joined", extra)
		}
		seen[tk.Request.ID] = true
	}
	f.approve(t, ana, first.Request)
	for _, extra := range others {
		if tk := f.submit(t, with(extra)); tk.Request.State != approval.Pending {
			t.Errorf("%q is %s", extra, tk.Request.State)
		}
	}
	if tk := f.submit(t, with(shown)); !tk.Attached || tk.Request.ID != first.Request.ID || tk.Request.State != approval.Approved {
		t.Error("a re-issue did not join")
	}
	_, _, err := f.Execute(t.Context(), bot, &desk.Ticket{Request: first.Request}, f.do)
	must(t, err)
	for _, extra := range others {
		if tk := f.submit(t, with(extra)); tk.Request.ID == first.Request.ID {
			t.Errorf("%q got the result of another call", extra)
		}
	}
	if tk := f.submit(t, with(shown)); tk.Request.ID != first.Request.ID {
		t.Error("the result is not handed out again")
	}
	keyed := with(`{"a":1}`)
	keyed.Key = "k"
	f.submit(t, keyed)
	keyed.Extra = []byte(`{"a":2}`)
	_, err = f.Submit(t.Context(), keyed)
	wants(t, err, desk.ErrKeyReused)
}

// TOK-08, TOK-09: parallel uses that the client names differently are requests of
// their own, each approved by its id; equal ones are one.
func TestParallelTwins(t *testing.T) {
	f := setup(t, rules)
	use := func(id string) desk.Ask {
		a := write(t, "a")
		a.Distinct = id
		return a
	}
	first := f.submit(t, use("u1"))
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = f.Await(ctx, bot, first.Request.ID) })
	for f.Waiting(first.Request.ID) == 0 {
		runtime.Gosched()
	}
	second := f.submit(t, use("u2"))
	if second.Attached || second.Request.ID == first.Request.ID {
		t.Fatal("a parallel twin joined")
	}
	if again := f.submit(t, use("u1")); !again.Attached {
		t.Fatal("a re-issue did not join")
	}
	f.approve(t, ana, second.Request)
	_, _, err := f.Execute(t.Context(), bot, &desk.Ticket{Request: first.Request}, f.do)
	wants(t, err, approval.ErrNotApproved)
	_, _, err = f.Execute(t.Context(), bot, second, f.do)
	must(t, err)
	f.ran(t, 1)
	must(t, f.PickedUp(t.Context(), second.Request.ID))
	stop()
	wg.Wait()
	if got := f.get(t, first.Request.ID); got.State != approval.Pending {
		t.Fatalf("the twin is %s", got.State)
	}
	if tk := f.submit(t, use("u3")); tk.Request.ID != first.Request.ID {
		t.Fatal("nobody waits for the first any more, so the next one joins it")
	}
}

// An asker's keys: same key and call, same request; same key for another call is
// refused; two keys are two requests.
func TestKeys(t *testing.T) {
	f := setup(t, rules)
	keyed := func(path, key string) desk.Ask {
		a := write(t, path)
		a.Key = key
		return a
	}
	first := f.submit(t, keyed("a", "k1"))
	if again := f.submit(t, keyed("a", "k1")); !again.Attached || again.Request.ID != first.Request.ID {
		t.Fatal("the same key is another request")
	}
	_, err := f.Submit(t.Context(), keyed("b", "k1"))
	wants(t, err, desk.ErrKeyReused)
	if other := f.submit(t, keyed("a", "k2")); other.Attached {
		t.Fatal("another key is the same request")
	}
	stranger := keyed("a", "k1")
	stranger.From.Workspace = "w2"
	_, err = f.Submit(t.Context(), stranger)
	wants(t, err, store.ErrNotFound)
	f.deny(t, ana, first.Request)
	if again := f.submit(t, keyed("a", "k1")); again.Request.State != approval.Denied {
		t.Fatalf("the key's request is %s", again.Request.State)
	}
	// A hundred at once with one key make one request.
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			a := ask(t, "fs", "touch", `{}`)
			a.Key = "k3"
			tk, err := f.Submit(t.Context(), a)
			if err != nil {
				t.Error(err)
				return
			}
			if _, _, err := f.Execute(t.Context(), bot, tk, f.do); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	f.ran(t, 1)
}

// What people said no to is refused at once: for an hour in the session, for ten
// minutes in the agent's other sessions, and it is on record.
func TestRepeatOfDenied(t *testing.T) {
	f := setup(t, rules)
	f.deny(t, ana, f.submit(t, write(t, "a")).Request)
	other := write(t, "a")
	other.From.Session = "s2"
	for _, a := range []desk.Ask{write(t, "a"), other} {
		_, err := f.Submit(t.Context(), a)
		refused(t, err, api.ToolDenied)
	}
	f.wall.Move(10 * time.Minute)
	_, err := f.Submit(t.Context(), write(t, "a"))
	refused(t, err, api.ToolDenied)
	tk := f.submit(t, other)
	must(t, cancelled(f.Withdraw(t.Context(), other.From, tk.Request.ID)))
	f.wall.Move(50 * time.Minute)
	f.submit(t, write(t, "a"))
	if n := len(f.recorded(t, ledger.CallRepeated)); n != 3 {
		t.Fatalf("%d repetitions on record", n)
	}
}

func cancelled(r *approval.Request, err error) error {
	if err == nil && r.State != approval.Cancelled {
		return fmt.Errorf("it is %s", r.State)
	}
	return err
}

// Nobody is shown a third time what nobody decided twice.
func TestExpiredTwice(t *testing.T) {
	f := setup(t, rules)
	for range 2 {
		f.submit(t, write(t, "a"))
		f.wall.Move(6 * time.Minute)
		must(t, f.Sweep(t.Context()))
	}
	_, err := f.Submit(t.Context(), write(t, "a"))
	refused(t, err, api.ApprovalExpired)
	f.wall.Move(time.Hour)
	f.submit(t, write(t, "a"))
}

// A limit that only counts does not deny the repetition of a call that it counted,
// and counts that once.
func TestAttachIsNotCounted(t *testing.T) {
	const src = `
version: 1
rules: [{id: write, tool: "fs.write_*", ask: {tier: R1}}]
limits: [{id: few, tool: "fs.*", count: 2, per: 10m, by: session, then: deny}]
`
	f := setup(t, src)
	a, b := f.submit(t, write(t, "a")), f.submit(t, write(t, "b"))
	if c := f.submit(t, write(t, "c")); c.Request.State != approval.Denied || c.Request.Cause != approval.ByPolicy {
		t.Fatalf("the third is %s", c.Request.State)
	}
	for path, tk := range map[string]*desk.Ticket{"a": a, "b": b} {
		if again := f.submit(t, write(t, path)); !again.Attached || again.Request.ID != tk.Request.ID {
			t.Fatalf("%s: attached %t", path, again.Attached)
		}
		f.approve(t, ana, tk.Request)
		if _, _, err := f.Execute(t.Context(), bot, tk, f.do); err != nil {
			t.Fatalf("its own count stands in its way: %v", err)
		}
	}
	f.wall.Move(11 * time.Minute)
	if tk := f.submit(t, write(t, "d")); tk.Request.State != approval.Pending {
		t.Fatal(tk.Request.State)
	}
	// Judged again because of a reload, a request does not count against itself.
	tk := f.submit(t, write(t, "e"))
	must(t, f.SetPolicy(t.Context(), "p", parse(t, src+"# newer\n")))
	got, err := f.Decide(t.Context(), ana, tk.Request.ID, approval.Decision{Approve: true, Digest: tk.Request.Digest})
	wants(t, err, approval.ErrStale)
	f.approve(t, ana, got)
}

// A sum is charged when the call is claimed: what was approved meets what was
// spent meanwhile.
func TestSumAtTheClaim(t *testing.T) {
	f := setup(t, `
version: 1
rules:
  - {id: gift, tool: bank.pay, when: args.to == "ana", ask: {tier: R3}}
  - {id: pay, tool: bank.pay, allow: {tier: R2}}
limits: [{id: spend, tool: bank.pay, sum: args.usd, per: 24h, by: workspace, above: 100, then: deny}]
`)
	gift := f.submit(t, ask(t, "bank", "pay", `{"usd":60,"to":"ana"}`))
	f.approve(t, ana, gift.Request)
	paid := f.submit(t, ask(t, "bank", "pay", `{"usd":60,"to":"raj"}`))
	_, _, err := f.Execute(t.Context(), bot, paid, f.do)
	must(t, err)
	r, _, err := f.Execute(t.Context(), bot, gift, f.do)
	wants(t, err, approval.ErrPolicyDenies)
	if r.State != approval.Denied || r.Cause != approval.ByPolicy {
		t.Fatalf("%s %s", r.State, r.Cause)
	}
	f.ran(t, 1)
}
