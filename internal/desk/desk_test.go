package desk_test

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ayegate/ayegate/api"
	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/desk"
	"github.com/ayegate/ayegate/internal/identity"
	"github.com/ayegate/ayegate/internal/policy"
	"github.com/ayegate/ayegate/internal/store"
	"github.com/ayegate/ayegate/internal/store/memory"
)

const rules = `
version: 1
approvers:
  me: {any_of: ["user:ana"]}
  two: {any_of: ["user:ana", "user:raj"]}
  others: {any_of: ["user:ana", "user:raj"], not: [requester]}
rules:
  - {id: read, tool: "fs.read_*", allow: {tier: R0}}
  - {id: never, tool: fs.wipe, deny: {}}
  - {id: write, tool: "fs.write_*", ask: {of: me, tier: R1}}
  - {id: pay, tool: bank.pay, ask: {of: two, tier: R3, quorum: 2}}
  - {id: pay4, tool: bank.pay_all, ask: {of: others, tier: R4, quorum: 1, confirm: [typed]}}
limits:
  - {id: same-denial, denials: 3, by: session, then: pause_session}
`

var (
	bot = identity.Agent{ID: "bot", Owner: "user:ana", Session: "s1", Workspace: "w"}
	ana = identity.Human{ID: "ana", Strength: identity.Session}
	raj = identity.Human{ID: "raj", Strength: identity.Session}
)

type fixture struct {
	*desk.Desk
	store store.Store
	runs  atomic.Int32
}

func setup(t *testing.T, src string) *fixture {
	t.Helper()
	s, err := memory.Open(memory.Config{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	return over(t, s, src)
}

func over(t *testing.T, s store.Store, src string) *fixture {
	t.Helper()
	p, err := policy.Parse("policy.yaml", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	d, err := desk.New(desk.Config{Store: s, Policy: p, Rand: rand.Reader, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Recover(t.Context(), "test"); err != nil {
		t.Fatal(err)
	}
	return &fixture{Desk: d, store: s}
}

func ask(t *testing.T, server, tool, args string) desk.Ask {
	t.Helper()
	c, err := call.New(server, tool, []byte(args))
	if err != nil {
		t.Fatal(err)
	}
	return desk.Ask{From: bot, Call: c, Executor: approval.Gateway, Tool: desk.Tool{Known: true}}
}

func (f *fixture) do(context.Context, call.Call, string) (desk.Result, error) {
	f.runs.Add(1)
	return desk.Result{Bytes: []byte(`{"content":[]}`)}, nil
}

func (f *fixture) submit(t *testing.T, a desk.Ask) *desk.Ticket {
	t.Helper()
	tk, err := f.Submit(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	return tk
}

func (f *fixture) approve(t *testing.T, by identity.Human, r *approval.Request) *approval.Request {
	t.Helper()
	out, err := f.Decide(t.Context(), by, r.ID, approval.Decision{Approve: true, Digest: r.Digest})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestAllowedRunsAtOnce(t *testing.T) {
	f := setup(t, rules)
	tk := f.submit(t, ask(t, "fs", "read_file", `{"path":"a"}`))
	if tk.Claim == "" || tk.Request.State != approval.Executing {
		t.Fatalf("state %s, claim %q", tk.Request.State, tk.Claim)
	}
	r, res, err := f.Execute(t.Context(), bot, tk, f.do)
	if err != nil || r.State != approval.Executed || string(res.Bytes) != `{"content":[]}` || f.runs.Load() != 1 {
		t.Fatalf("%v %v %q %d", err, r.State, res.Bytes, f.runs.Load())
	}
}

func TestDeniedByPolicyNeverRuns(t *testing.T) {
	f := setup(t, rules)
	tk := f.submit(t, ask(t, "fs", "wipe", `{}`))
	if tk.Request.State != approval.Denied {
		t.Fatal(tk.Request.State)
	}
	if _, _, err := f.Execute(t.Context(), bot, tk, f.do); !errors.Is(err, approval.ErrEnded) || f.runs.Load() != 0 {
		t.Fatalf("%v, %d runs", err, f.runs.Load())
	}
}

func TestHeldApprovedRunsOnce(t *testing.T) {
	f := setup(t, rules)
	tk := f.submit(t, ask(t, "fs", "write_file", `{"path":"a"}`))
	if tk.Request.State != approval.Pending {
		t.Fatal(tk.Request.State)
	}
	if _, _, err := f.Execute(t.Context(), bot, tk, f.do); !errors.Is(err, approval.ErrNotApproved) {
		t.Fatal(err)
	}
	f.approve(t, ana, tk.Request)
	var wg sync.WaitGroup
	for range 100 { // RACE-02
		wg.Go(func() {
			again, err := f.Submit(t.Context(), ask(t, "fs", "write_file", `{"path":"a"}`))
			if err != nil {
				t.Error(err)
				return
			}
			r, res, err := f.Execute(t.Context(), bot, again, f.do)
			if err != nil || r.State != approval.Executed || len(res.Bytes) == 0 {
				t.Errorf("%v %v %q", err, r.State, res.Bytes)
			}
		})
	}
	wg.Wait()
	if n := f.runs.Load(); n != 1 {
		t.Fatalf("%d runs", n)
	}
}

func TestRepeatOfDeniedIsNotShownAgain(t *testing.T) {
	f := setup(t, rules)
	tk := f.submit(t, ask(t, "fs", "write_file", `{"path":"a"}`))
	if _, err := f.Decide(t.Context(), ana, tk.Request.ID, approval.Decision{Digest: tk.Request.Digest, Reason: "no"}); err != nil {
		t.Fatal(err)
	}
	_, err := f.Submit(t.Context(), ask(t, "fs", "write_file", `{"path":"a"}`))
	var ref *desk.Refusal
	if !errors.As(err, &ref) || ref.Code != api.ToolDenied || ref.Of.ID != tk.Request.ID {
		t.Fatal(err)
	}
}

func TestThreeDenialsPauseTheSession(t *testing.T) {
	f := setup(t, rules)
	for _, path := range []string{"a", "b", "c"} {
		tk := f.submit(t, ask(t, "fs", "write_file", `{"path":"`+path+`"}`))
		if _, err := f.Decide(t.Context(), ana, tk.Request.ID, approval.Decision{Digest: tk.Request.Digest}); err != nil {
			t.Fatal(err)
		}
	}
	_, err := f.Submit(t.Context(), ask(t, "fs", "write_file", `{"path":"d"}`))
	var ref *desk.Refusal
	if !errors.As(err, &ref) || ref.Code != api.SessionPaused {
		t.Fatal(err)
	}
	if _, err := f.Submit(t.Context(), ask(t, "fs", "read_file", `{"path":"d"}`)); err != nil {
		t.Fatalf("reading is still allowed: %v", err)
	}
	paused, err := f.PausedSessions(t.Context())
	if err != nil || len(paused) != 1 {
		t.Fatal(paused, err)
	}
	if err := f.ResumeSession(t.Context(), ana, paused[0], "talked to it"); err != nil {
		t.Fatal(err)
	}
	f.submit(t, ask(t, "fs", "write_file", `{"path":"d"}`))
}
