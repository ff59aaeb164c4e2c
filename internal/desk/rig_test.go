package desk_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ayegate/ayegate/api"
	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/desk"
	"github.com/ayegate/ayegate/internal/identity"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/policy"
	"github.com/ayegate/ayegate/internal/store"
	"github.com/ayegate/ayegate/internal/store/memory"
	"github.com/ayegate/ayegate/internal/store/sqlite"
	"github.com/ayegate/ayegate/internal/store/storetest"
)

const rules = `
version: 1
approvers:
  me: {any_of: ["user:ana"]}
  two: {any_of: ["user:ana", "user:raj"]}
  others: {any_of: ["user:ana", "user:raj"], not: [requester]}
rules:
  - {id: read, tool: "fs.read_*", allow: {tier: R0}}
  - {id: touch, tool: "fs.touch", allow: {tier: R1}}
  - {id: never, tool: fs.wipe, deny: {}}
  - {id: write, tool: "fs.write_*", ask: {of: me, tier: R1}}
  - {id: pay, tool: bank.pay, ask: {of: two, tier: R3, quorum: 2}}
  - {id: pay4, tool: bank.pay_all, ask: {of: others, tier: R4, quorum: 1, confirm: [typed]}}
limits:
  - {id: same-denial, denials: 3, by: session, then: pause_session}
`

var (
	bot    = identity.Agent{ID: "bot", Owner: "user:ana", Session: "s1", Workspace: "w"}
	ana    = identity.Human{ID: "ana", Strength: identity.Session}
	raj    = identity.Human{ID: "raj", Strength: identity.Session}
	nobody = identity.Human{ID: "ana"} // verified by nothing
	eve    = identity.Human{ID: "eve", Strength: identity.Session}
)

type fixture struct {
	*desk.Desk
	store store.Store
	wall  *storetest.Wall
	runs  atomic.Int32

	mu  sync.Mutex
	got []string // what reached the tool, as canonical arguments
}

// setup makes a desk over a memory store whose clock the test moves. When the
// test ends, an auditor reads the record.
func setup(t testing.TB, src string) *fixture {
	t.Helper()
	wall := storetest.NewWall()
	s, err := memory.Open(memory.Config{Now: wall.Now})
	must(t, err)
	f := over(t, s, src)
	f.wall = wall
	t.Cleanup(func() { must(t, audit(s)) })
	return f
}

// over makes a desk over a store, as a process that starts does.
func over(t testing.TB, s store.Store, src string) *fixture {
	t.Helper()
	d, err := desk.New(desk.Config{Store: s, Policy: parse(t, src), Rand: rand.Reader, Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	must(t, d.Recover(t.Context(), "test"))
	return &fixture{Desk: d, store: s}
}

func onDisk(t testing.TB, now func() time.Time) store.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "ayegate.db"), Now: now})
	must(t, err)
	return s
}

func parse(t testing.TB, src string) *policy.Policy {
	t.Helper()
	p, err := policy.Parse("policy.yaml", []byte(src))
	must(t, err)
	return p
}

// audit verifies the record of a store.
func audit(s store.Store) error {
	ctx := context.Background()
	var export bytes.Buffer
	if err := ledger.WriteExportLeaves(&export, s.Entries(ctx, 0), s.Hashes(ctx)); err != nil {
		return err
	}
	rep, err := ledger.Verify(&export, ledger.VerifyOptions{})
	if err != nil {
		return fmt.Errorf("%w: %v", err, rep.Findings)
	}
	return nil
}

// recorded lists the events of some kinds, or all.
func (f *fixture) recorded(t testing.TB, kinds ...ledger.Kind) []ledger.Entry {
	t.Helper()
	var out []ledger.Entry
	for line, err := range f.store.Entries(t.Context(), 0) {
		must(t, err)
		e, err := ledger.ParseEntry(line)
		must(t, err)
		for _, k := range kinds {
			if e.Kind == k {
				out = append(out, e)
			}
		}
	}
	return out
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wants(t testing.TB, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Fatalf("error is %v, want %v", err, target)
	}
}

// refused checks that an error is a refusal with a code.
func refused(t testing.TB, err error, code api.Code) *desk.Refusal {
	t.Helper()
	var ref *desk.Refusal
	if !errors.As(err, &ref) || ref.Code != code {
		t.Fatalf("error is %v, want a refusal with %s", err, code)
	}
	return ref
}

func ask(t testing.TB, server, tool, args string) desk.Ask {
	t.Helper()
	c, err := call.New(server, tool, []byte(args))
	must(t, err)
	return desk.Ask{From: bot, Call: c, Executor: approval.Gateway, Tool: desk.Tool{Known: true}}
}

func write(t testing.TB, path string) desk.Ask {
	t.Helper()
	return ask(t, "fs", "write_file", fmt.Sprintf(`{"path":%q}`, path))
}

func (f *fixture) do(_ context.Context, c call.Call, _ string) (desk.Result, error) {
	f.runs.Add(1)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.got = append(f.got, string(c.Args()))
	return desk.Result{Bytes: []byte(`{"content":[]}`)}, nil
}

func (f *fixture) submit(t testing.TB, a desk.Ask) *desk.Ticket {
	t.Helper()
	tk, err := f.Submit(t.Context(), a)
	must(t, err)
	return tk
}

func (f *fixture) approve(t testing.TB, by identity.Human, r *approval.Request) *approval.Request {
	t.Helper()
	out, err := f.Decide(t.Context(), by, r.ID, approval.Decision{Approve: true, Digest: r.Digest})
	must(t, err)
	return out
}

func (f *fixture) deny(t testing.TB, by identity.Human, r *approval.Request) *approval.Request {
	t.Helper()
	out, err := f.Decide(t.Context(), by, r.ID, approval.Decision{Digest: r.Digest, Reason: "no"})
	must(t, err)
	return out
}

func (f *fixture) get(t testing.TB, id approval.ID) *approval.Request {
	t.Helper()
	r, err := f.store.Get(t.Context(), id)
	must(t, err)
	return r
}

func (f *fixture) ran(t testing.TB, n int32) {
	t.Helper()
	if got := f.runs.Load(); got != n {
		t.Fatalf("the tool ran %d times, want %d", got, n)
	}
}
