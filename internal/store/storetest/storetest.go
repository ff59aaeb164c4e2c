// Package storetest holds every store to the contract of package store: the
// backends, and every fake that stands in for one.
//
// [Run] is the suite. It needs nothing but a way to open a store, and checks
// after every scenario that the ledger verifies and that the counts are those of
// the requests. [Faulty] makes a store fail at a chosen write, for the tests of
// those who use stores. [Crash] kills a process that writes.
package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/identity"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/policy"
	"github.com/ayegate/ayegate/internal/store"
)

// Env is where a store is opened. Opening again in the same Env, after closing,
// is a restart.
type Env struct {
	Dir  string // empty at first
	Wall *Wall  // the clock on the wall
}

// Open opens a store, failing the test when it cannot. The suite closes it.
type Open func(t testing.TB, env Env) store.Store

// Options says what a backend can be asked to do besides the contract.
type Options struct {
	// Restart says that a store which is closed and opened again remembers.
	Restart bool
	// FastForward moves the clock of a store that has one of its own. Nil means
	// that the store goes by Env.Wall.
	FastForward func(d time.Duration)
}

// Wall is a clock on the wall: it shows what it is set to.
type Wall struct {
	mu sync.Mutex
	at time.Time
}

// NewWall returns a clock that shows a day in 2026.
func NewWall() *Wall { return &Wall{at: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)} }

// Now reads the clock.
func (w *Wall) Now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at
}

// Move sets the clock forward, or back.
func (w *Wall) Move(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = w.at.Add(d)
}

// scenario is one test and what it runs on.
type scenario struct {
	testing.TB
	store.Store
	env  Env
	open Open
	o    Options
}

// Run holds a store to the contract.
func Run(t *testing.T, open Open, o Options) {
	for _, group := range []struct {
		name  string
		tests []test
	}{
		{"Requests", requestTests},
		{"List", listTests},
		{"Tallies", tallyTests},
		{"Records", recordTests},
		{"Ledger", ledgerTests},
		{"Clock", clockTests},
		{"Races", raceTests},
		{"Restart", restartTests},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, c := range group.tests {
				t.Run(c.name, func(t *testing.T) { runOne(t, open, o, c) })
			}
		})
	}
	t.Run("Linearizable", func(t *testing.T) { linearizable(t, open) })
	t.Run("Model", func(t *testing.T) { model(t, open, o) })
}

type test struct {
	name    string
	restart bool // needs a store that remembers
	run     func(*scenario)
}

func runOne(t *testing.T, open Open, o Options, c test) {
	if c.restart && !o.Restart {
		t.Skip("the store ends with its process")
	}
	s := &scenario{TB: t, env: Env{Dir: t.TempDir(), Wall: NewWall()}, open: open, o: o}
	s.Store = open(t, s.env)
	defer func() { s.Close() }()
	c.run(s)
	if !t.Failed() {
		Consistent(t, s.Store)
	}
}

// restart closes the store and opens it again.
func (s *scenario) restart() {
	s.Helper()
	s.must(s.Close())
	s.Store = s.open(s.TB, s.env)
}

func (s *scenario) forward(d time.Duration) {
	s.env.Wall.Move(d)
	if s.o.FastForward != nil {
		s.o.FastForward(d)
	}
}

func (s *scenario) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *scenario) wants(err, target error) {
	s.Helper()
	if !errors.Is(err, target) {
		s.Fatalf("error is %v, want %v", err, target)
	}
}

// Consistent checks what must be true of a store at all times when nobody writes:
// the ledger verifies and is the tree that is stored, every request can be read,
// and the counts are those of the requests.
func Consistent(t testing.TB, s store.Store) {
	t.Helper()
	ctx := t.Context()
	var export bytes.Buffer
	if err := ledger.WriteExportLeaves(&export, s.Entries(ctx, 0), s.Hashes(ctx)); err != nil {
		t.Fatalf("export the ledger: %v", err)
	}
	rep, err := ledger.Verify(bytes.NewReader(export.Bytes()), ledger.VerifyOptions{})
	if err != nil {
		t.Fatalf("verify the ledger: %v", err)
	}
	head, err := s.Head(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if head.Size != rep.Entries || head.Root != rep.Root {
		t.Fatalf("the head is %d %s, the entries make %d %s", head.Size, head.Root, rep.Entries, rep.Root)
	}
	if head.Size > 0 {
		if _, err := tlog.TreeHash(head.Size, s.Hashes(ctx)); err != nil {
			t.Fatalf("the tree: %v", err)
		}
	}
	told := storiesOf(t, s)
	var counted store.Counts
	for r, err := range s.List(ctx, store.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		counted.Add(r, 1)
		if want, got := told[string(r.ID)], storyOf(r); want != got {
			t.Fatalf("request %s is %+v, and the ledger tells of %+v", r.ID, got, want)
		}
		delete(told, string(r.ID))
	}
	if len(told) > 0 {
		t.Fatalf("the ledger tells of %d requests that are not there", len(told))
	}
	counts, err := s.Counts(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(counted, counts, cmpopts.EquateEmpty()); d != "" {
		t.Fatalf("counts differ from the requests (-counted +kept):\n%s", d)
	}
}

// story is what the ledger and a request must agree on: that a change and its
// entry are there together or not at all.
type story struct {
	claimed, redeemed, ended, pickedUp bool
	decisions, asks                    int
}

func storyOf(r *approval.Request) story {
	return story{
		claimed: r.Claimed.ID != "", redeemed: !r.Claimed.Redeemed.IsZero(), ended: r.State.Final(),
		pickedUp: !r.Execution.PickedUp.IsZero(), decisions: len(r.Decisions), asks: r.Asks,
	}
}

// storiesOf reads the ledger by request.
func storiesOf(t testing.TB, s store.Store) map[string]story {
	t.Helper()
	out := map[string]story{}
	for line, err := range s.Entries(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		e, err := ledger.ParseEntry(line)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(string(e.Kind), "request.") || e.Kind == ledger.ResultPickedUp {
			out[e.Subject] = tell(out[e.Subject], e)
		}
	}
	return out
}

// endings are the entries after which a request is in an end state.
var endings = []ledger.Kind{
	ledger.RequestDenied, ledger.RequestCancelled, ledger.RequestExpired, ledger.RequestFinished, ledger.RequestResolved,
}

// tell adds an entry to a story.
func tell(s story, e ledger.Entry) story {
	s.asks = max(1, s.asks)
	s.ended = s.ended || slices.Contains(endings, e.Kind)
	is := func(name, value string) bool {
		got, _ := e.Text(name)
		return got == value
	}
	switch string(e.Kind) {
	case string(ledger.RequestAsked):
		s.ended = is(ledger.FieldEffect, ledger.EffectDeny)
	case string(ledger.RequestAttached):
		s.asks++
	case string(ledger.RequestDecided):
		s.decisions++
		s.ended = s.ended || is(ledger.FieldDecision, ledger.Deny)
	case string(ledger.RequestClaimed):
		s.claimed, s.redeemed = true, is(ledger.FieldExecutor, ledger.ExecutorGateway)
	case string(ledger.RequestRedeemed):
		s.redeemed = true
	case string(ledger.ResultPickedUp):
		s.pickedUp = true
	}
	return s
}

// Opening is the start of request number n: a call that the verdict holds.
func Opening(n int) approval.Opening {
	c, err := call.New("shop", "refund", fmt.Appendf(nil, `{"order":%d,"amount":900}`, n))
	if err != nil {
		panic(err)
	}
	return approval.Opening{
		ID: ID(n), Code: fmt.Sprintf("C%d", n),
		From:       identity.Agent{ID: "release-bot", Owner: "user:ana", Session: "s1", Workspace: "shop"},
		Reason:     "the customer asked",
		Executor:   approval.Gateway,
		Call:       c,
		Definition: call.Hash{1},
		Salt:       bytes.Repeat([]byte{byte(n + 1)}, 16),
		Verdict: policy.Verdict{
			Effect: policy.Ask, Tier: policy.R3, Rule: "refunds", Why: "money leaves", Quorum: 1, TTL: time.Hour,
			Revision: "sha256:" + strings.Repeat("0", 64), Effects: []string{"refund 900"},
			Of:    policy.Approvers{Name: "team", Not: []string{"requester"}},
			Trace: []policy.Step{{Phase: "rule", ID: "refunds", Hit: true}},
		},
	}
}

// ID is the id of request number n.
func ID(n int) approval.ID { return approval.ID(fmt.Sprintf("%08x-0000-4000-8000-%012x", n, n)) }

// Ben may decide what [Opening] asks.
var Ben = identity.Human{ID: "ben", Name: "Ben", Groups: []string{"ops"}, Strength: identity.Session}

// allowed makes an opening one that a rule allows.
func allowed(o approval.Opening) approval.Opening {
	o.Verdict.Effect, o.Verdict.Quorum, o.Verdict.Of = policy.Allow, 0, policy.Approvers{}
	return o
}

// create opens a request and stores it.
func (s *scenario) create(o approval.Opening, charges ...store.Charge) *approval.Request {
	s.Helper()
	r, e := approval.Open(o, s.Now())
	s.must(s.Create(s.Context(), r, []ledger.Event{e}, charges...))
	return r
}

// running creates a request that a rule allowed and the gateway claimed.
func (s *scenario) running(n int) *approval.Request {
	s.Helper()
	r, asked, claimed := Running(n, s.Now())
	s.must(s.Create(s.Context(), r, []ledger.Event{asked, claimed}))
	return r
}

// Running is request number n as the gateway creates it when a rule allows the
// call: asked and claimed in one commit.
func Running(n int, now time.Time) (r *approval.Request, asked, claimed ledger.Event) {
	o := allowed(Opening(n))
	r, asked = approval.Open(o, now)
	claimed, err := r.Claim(approval.Claim{ID: fmt.Sprintf("claim-%d", n), Holder: "here"}, o.Verdict, o.Definition, now)
	if err != nil {
		panic(err)
	}
	return r, asked, claimed
}

// The moves that the suite makes.

func approve(by identity.Human, digest call.Hash) store.Move {
	return func(r *approval.Request, now time.Time) (ledger.Event, error) {
		return r.Decide(approval.Decision{By: by, Approve: true, Digest: digest, Reason: "fine"}, now)
	}
}

func deny(by identity.Human, digest call.Hash) store.Move {
	return func(r *approval.Request, now time.Time) (ledger.Event, error) {
		return r.Decide(approval.Decision{By: by, Digest: digest}, now)
	}
}

func claim(id string) store.Move {
	return func(r *approval.Request, now time.Time) (ledger.Event, error) {
		return r.Claim(approval.Claim{ID: id, Holder: "here"}, r.Verdict, r.Definition, now)
	}
}

// Finish ends the execution of a claim with a result.
func Finish(claim string, result []byte) store.Move {
	return func(r *approval.Request, now time.Time) (ledger.Event, error) {
		return r.Finish(claim, approval.Execution{
			Outcome: approval.Succeeded, Result: result, Hash: call.Hash{9}, Size: len(result),
		}, now)
	}
}

func expire(r *approval.Request, now time.Time) (ledger.Event, error) { return r.Expire(now) }

func cancel(r *approval.Request, now time.Time) (ledger.Event, error) {
	return r.Cancel(ledger.Actor{Kind: ledger.Agent, ID: r.From.ID}, approval.ByAgent, now)
}

// same compares two requests; nil and empty lists are the same.
func same(a, b *approval.Request) string {
	return cmp.Diff(a, b, cmpopts.EquateEmpty(), cmp.Comparer(func(a, b call.Call) bool { return a == b }))
}

func (s *scenario) get(id approval.ID) *approval.Request {
	s.Helper()
	r, err := s.Get(s.Context(), id)
	s.must(err)
	return r
}

// unchanged runs do and fails when the ledger or a request is another afterwards.
func (s *scenario) unchanged(do func()) {
	s.Helper()
	before, was := s.image()
	do()
	after, is := s.image()
	if before != after {
		s.Fatalf("the ledger had %d entries and has %d", before.Size, after.Size)
	}
	if d := cmp.Diff(was, is, cmpopts.EquateEmpty(), cmp.Comparer(func(a, b call.Call) bool { return a == b })); d != "" {
		s.Fatalf("requests changed (-before +after):\n%s", d)
	}
}

func (s *scenario) image() (ledger.Head, []*approval.Request) {
	s.Helper()
	h, err := s.Head(s.Context())
	s.must(err)
	return h, s.list(store.Filter{})
}

func (s *scenario) list(f store.Filter) []*approval.Request {
	s.Helper()
	var out []*approval.Request
	for r, err := range s.List(s.Context(), f) {
		s.must(err)
		out = append(out, r)
	}
	return out
}

func ids(rs []*approval.Request) []approval.ID {
	var out []approval.ID
	for _, r := range rs {
		out = append(out, r.ID)
	}
	return out
}

func (s *scenario) wantIDs(got []approval.ID, want ...int) {
	s.Helper()
	var w []approval.ID
	for _, n := range want {
		w = append(w, ID(n))
	}
	if !slices.Equal(got, w) {
		s.Fatalf("got %v, want %v", got, w)
	}
}
