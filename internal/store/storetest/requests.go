package storetest

import (
	"context"
	"errors"
	"time"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/policy"
	"github.com/ayegate/ayegate/internal/store"
)

var requestTests = []test{
	{name: "create and get", run: func(s *scenario) {
		r := s.create(Opening(1))
		if d := same(r, s.get(r.ID)); d != "" {
			s.Fatal(d)
		}
	}},
	{name: "what is absent is not found", run: func(s *scenario) { // RACE-17: absence is never permission
		ctx := s.Context()
		_, err := s.Get(ctx, ID(1))
		s.wants(err, store.ErrNotFound)
		_, err = s.ByKey(ctx, "release-bot", "k")
		s.wants(err, store.ErrNotFound)
		_, err = s.ByKey(ctx, "release-bot", "")
		s.wants(err, store.ErrNotFound)
		_, err = s.ByCode(ctx, "K7Q4")
		s.wants(err, store.ErrNotFound)
		_, err = s.ByCode(ctx, "")
		s.wants(err, store.ErrNotFound)
		_, err = s.Change(ctx, ID(1), func(*approval.Request, time.Time) (ledger.Event, error) {
			s.Error("the move ran on nothing")
			return ledger.Event{}, nil
		})
		s.wants(err, store.ErrNotFound)
	}},
	{name: "ids are used once", run: func(s *scenario) { // RACE-26
		first := s.create(Opening(1))
		_, err := s.Change(s.Context(), first.ID, cancel)
		s.must(err)
		second := Opening(2)
		second.ID = first.ID
		s.unchanged(func() {
			r, e := approval.Open(second, s.Now())
			s.wants(s.Create(s.Context(), r, []ledger.Event{e}), store.ErrExists)
		})
	}},
	{name: "ids are compared byte for byte", run: func(s *scenario) {
		for _, id := range []approval.ID{"a", "A", "á", "a ", "a\x00", "ａ"} {
			o := Opening(1)
			o.ID, o.Code = id, ""
			s.create(o)
			if got := s.get(id).ID; got != id {
				s.Fatalf("got %q for %q", got, id)
			}
		}
		_, err := s.Get(s.Context(), "Á")
		s.wants(err, store.ErrNotFound)
	}},
	{name: "a key is used once per agent", run: keyOnce},
	{name: "a short code names one open request", run: codeOnce},
	{name: "a request without an event is refused", run: func(s *scenario) { // no durable record, no effect
		s.unchanged(func() {
			r, _ := approval.Open(Opening(1), s.Now())
			s.wants(s.Create(s.Context(), r, nil), store.ErrForm)
			s.wants(s.Create(s.Context(), r, []ledger.Event{{}}), store.ErrForm)
		})
	}},
	{name: "an event that cannot be recorded stops the change", run: func(s *scenario) { // AUD-05: no record, no change
		r, e := approval.Open(Opening(1), s.Now())
		bad := ledger.Event{Kind: "nonsense", Subject: "x", Actor: e.Actor}
		s.unchanged(func() { s.wants(s.Create(s.Context(), r, []ledger.Event{e, bad}), ledger.ErrEvent) })
		s.must(s.Create(s.Context(), r, []ledger.Event{e}))
		s.unchanged(func() {
			_, err := s.Change(s.Context(), r.ID, func(r *approval.Request, now time.Time) (ledger.Event, error) {
				_, err := r.Expire(now.Add(2 * time.Hour))
				return bad, err
			})
			s.wants(err, ledger.ErrEvent)
			s.wants(s.Append(s.Context(), e, bad), ledger.ErrEvent)
			s.wants(s.Update(s.Context(), "pin", "x", func([]byte, time.Time) ([]byte, ledger.Event, error) {
				return []byte("v"), bad, nil
			}), ledger.ErrEvent)
		})
	}},
	{name: "change stores what the move made", run: func(s *scenario) {
		r := s.create(Opening(1))
		got, err := s.Change(s.Context(), r.ID, approve(Ben, r.Digest))
		s.must(err)
		if got.State != approval.Approved || len(got.Decisions) != 1 {
			s.Fatalf("got %s with %d decisions", got.State, len(got.Decisions))
		}
		if d := same(got, s.get(r.ID)); d != "" {
			s.Fatal(d)
		}
	}},
	{name: "a whole life", run: wholeLife},
	{name: "a move that errs writes nothing", run: func(s *scenario) {
		r := s.create(Opening(1), store.Charge{Key: "t", Amount: 1})
		mine := errors.New("mine")
		s.unchanged(func() {
			got, err := s.Change(s.Context(), r.ID, func(r *approval.Request, now time.Time) (ledger.Event, error) {
				vandalize(r)
				return ledger.Event{Kind: ledger.RequestCancelled, Subject: string(r.ID), Actor: ledger.Actor{Kind: ledger.System}}, mine
			}, store.Charge{Key: "t", Amount: 1})
			if err != mine || got != nil { //nolint:errorlint // it is returned as it is
				s.Fatalf("got %v, %v", got, err)
			}
		})
		s.wantTotal("t", time.Time{}, 1)
	}},
	{name: "a move without an event writes nothing", run: func(s *scenario) {
		r := s.create(Opening(1))
		s.unchanged(func() {
			got, err := s.Change(s.Context(), r.ID, func(r *approval.Request, _ time.Time) (ledger.Event, error) {
				vandalize(r)
				return ledger.Event{}, nil
			}, store.Charge{Key: "t", Amount: 1})
			s.must(err)
			if d := same(r, got); d != "" {
				s.Fatalf("a change that was not made is shown:\n%s", d)
			}
		})
		s.wantTotal("t", time.Time{}, 0)
	}},
	{name: "a move cannot make another request of one", run: func(s *scenario) {
		r := s.create(Opening(1))
		for name, f := range map[string]func(*approval.Request){
			"id":       func(r *approval.Request) { r.ID = ID(2) },
			"code":     func(r *approval.Request) { r.Code = "OTHER" },
			"key":      func(r *approval.Request) { r.Key = "k" },
			"agent":    func(r *approval.Request) { r.From.ID = "other" },
			"asked at": func(r *approval.Request) { r.AskedAt = r.AskedAt.Add(1) },
			"state":    func(r *approval.Request) { r.State = "authorized" },
			"ended":    func(r *approval.Request) { r.State = approval.Executed },
			"deadline": func(r *approval.Request) { r.ExpiresAt = r.AskedAt.AddDate(500, 0, 0) },
			"executor": func(r *approval.Request) { r.Executor = "nobody" },
			"outcome":  func(r *approval.Request) { r.Execution.Outcome = "perhaps" },
			"effect":   func(r *approval.Request) { r.Verdict.Effect = policy.Allow + 1 },
			"confirm":  func(r *approval.Request) { r.Verdict.Confirm = []policy.Confirm{"sung"} },
		} {
			s.unchanged(func() {
				_, err := s.Change(s.Context(), r.ID, func(r *approval.Request, _ time.Time) (ledger.Event, error) {
					e, err := r.Attach("s1")
					f(r)
					return e, err
				})
				if !errors.Is(err, store.ErrForm) {
					s.Fatalf("%s: %v", name, err)
				}
			})
		}
	}},
	{name: "what is returned is the caller's own", run: ownCopies},
	{name: "bytes are kept as they are", run: exactBytes},
	{name: "erasing results", run: eraseResults},
	{name: "large payloads", run: largePayloads},
	{name: "counts", run: counts},
	{name: "due", run: due},
	{name: "ended contexts change nothing", run: func(s *scenario) { // RACE-24
		r := s.create(Opening(1))
		s.unchanged(func() {
			ctx, stop := context.WithCancel(s.Context())
			stop()
			other, e := approval.Open(Opening(2), s.Now())
			s.wants(s.Create(ctx, other, []ledger.Event{e}), context.Canceled)
			_, err := s.Change(ctx, r.ID, cancel)
			s.wants(err, context.Canceled)
			s.wants(err, store.ErrUnavailable)
			_, err = s.Get(ctx, r.ID)
			s.wants(err, context.Canceled)
			for _, err := range s.List(ctx, store.Filter{}) {
				s.wants(err, context.Canceled)
			}
		})
	}},
	{name: "a closed store refuses", run: func(s *scenario) { // OPS-02
		r := s.create(Opening(1))
		again := s.open
		s.must(s.Close())
		_, err := s.Change(s.Context(), r.ID, cancel)
		s.wants(err, store.ErrUnavailable)
		if _, err = s.Get(s.Context(), r.ID); err == nil {
			s.Fatal("a closed store answers")
		}
		s.must(s.Close())
		s.Store = again(s.TB, Env{Dir: s.TempDir(), Wall: s.env.Wall})
	}},
	{name: "a move that panics leaves nothing behind", run: func(s *scenario) {
		r := s.create(Opening(1))
		s.unchanged(func() {
			defer func() {
				if recover() == nil {
					s.Error("the panic was swallowed")
				}
			}()
			_, _ = s.Change(s.Context(), r.ID, func(r *approval.Request, _ time.Time) (ledger.Event, error) {
				vandalize(r)
				panic("oops")
			})
		})
		_, err := s.Change(s.Context(), r.ID, cancel)
		s.must(err)
	}},
}

// vandalize writes to everything a request holds.
func vandalize(r *approval.Request) {
	r.State, r.Reason, r.ExpiresAt = approval.Approved, "vandal", r.ExpiresAt.Add(time.Hour)
	for i := range r.Decisions {
		r.Decisions[i].Void = !r.Decisions[i].Void
		for j := range r.Decisions[i].By.Groups {
			r.Decisions[i].By.Groups[j] = "vandal"
		}
	}
	for _, b := range [][]byte{r.Salt, r.Extra, r.Execution.Result} {
		for i := range b {
			b[i] ^= 0xff
		}
	}
	for _, list := range [][]string{r.Verdict.Effects, r.Verdict.Of.AnyOf, r.Verdict.Of.Not, r.Verdict.Scopes} {
		for i := range list {
			list[i] = "vandal"
		}
	}
	for i := range r.Verdict.Trace {
		r.Verdict.Trace[i].Note = "vandal"
	}
	for i := range r.Verdict.Confirm {
		r.Verdict.Confirm[i] = "vandal"
	}
}

func keyOnce(s *scenario) {
	first := Opening(1)
	first.Key = "k"
	s.create(first)
	again := Opening(2)
	again.Key = "k"
	s.unchanged(func() {
		r, e := approval.Open(again, s.Now())
		s.wants(s.Create(s.Context(), r, []ledger.Event{e}), store.ErrExists)
	})
	again.From.ID = "other-bot" // another agent's key is another key
	s.create(again)
	upper := Opening(3)
	upper.Key = "K"
	s.create(upper)
	for n := 4; n < 6; n++ { // no key is no key
		s.create(Opening(n))
	}
	got, err := s.ByKey(s.Context(), "release-bot", "k")
	s.must(err)
	if got.ID != ID(1) {
		s.Fatalf("found %s", got.ID)
	}
	_, err = s.ByKey(s.Context(), "release-bot", "")
	s.wants(err, store.ErrNotFound)
}

func codeOnce(s *scenario) {
	with := func(n int, code string) approval.Opening {
		o := Opening(n)
		o.Code = code
		return o
	}
	finds := func(n int) {
		s.Helper()
		r, err := s.ByCode(s.Context(), "K7Q4")
		s.must(err)
		if r.ID != ID(n) {
			s.Fatalf("found %s, want number %d", r.ID, n)
		}
	}
	first := s.create(with(1, "K7Q4"))
	s.unchanged(func() {
		r, e := approval.Open(with(2, "K7Q4"), s.Now())
		err := s.Create(s.Context(), r, []ledger.Event{e})
		s.wants(err, store.ErrCode)
		s.wants(err, store.ErrExists)
	})
	finds(1)
	s.forward(time.Second)
	_, err := s.Change(s.Context(), first.ID, cancel)
	s.must(err)
	finds(1)
	second := s.create(with(2, "K7Q4"))
	finds(2)
	s.forward(time.Second)
	_, err = s.Change(s.Context(), second.ID, cancel)
	s.must(err)
	finds(2) // the latest of those that ended
	r, asked, claimed := Running(3, s.Now())
	r.Code = "K7Q4"
	s.must(s.Create(s.Context(), r, []ledger.Event{asked, claimed})) // claimed: no longer open
	s.create(with(4, "K7Q4"))
	finds(4)
	s.create(with(5, ""))
	s.create(with(6, ""))
}

func wholeLife(s *scenario) {
	ctx := s.Context()
	r := s.create(Opening(1))
	step := func(want approval.State, move store.Move) {
		s.Helper()
		s.forward(time.Second)
		got, err := s.Change(ctx, r.ID, move)
		s.must(err)
		if got.State != want {
			s.Fatalf("state is %s, want %s", got.State, want)
		}
		if d := same(got, s.get(r.ID)); d != "" {
			s.Fatal(d)
		}
	}
	step(approval.Pending, func(r *approval.Request, _ time.Time) (ledger.Event, error) { return r.Attach("s1") })
	step(approval.Pending, func(r *approval.Request, now time.Time) (ledger.Event, error) {
		c, err := call.New("bank", "refund", []byte(`{"amount":800}`))
		s.must(err)
		return r.Amend(Ben, r.Digest, c, r.Verdict, now)
	})
	s.wantIDs(ids(s.list(store.Filter{Server: "bank"})), 1)
	s.wantIDs(ids(s.list(store.Filter{Server: "shop"})))
	step(approval.Approved, func(r *approval.Request, now time.Time) (ledger.Event, error) {
		return r.Decide(approval.Decision{By: Ben, Approve: true, Digest: r.Digest}, now)
	})
	step(approval.Executing, claim("c1"))
	step(approval.Unknown, func(r *approval.Request, now time.Time) (ledger.Event, error) {
		return r.Lose(approval.ByCrash, now)
	})
	step(approval.Executed, func(r *approval.Request, now time.Time) (ledger.Event, error) {
		return r.Resolve(Ben, approval.Succeeded, "it is there", now)
	})
	step(approval.Executed, func(r *approval.Request, now time.Time) (ledger.Event, error) { return r.PickUp(now) })
}

func counts(s *scenario) {
	ctx := s.Context()
	want := func(want store.Counts) {
		s.Helper()
		got, err := s.Counts(ctx)
		s.must(err)
		if got.Pending != want.Pending || got.Approved != want.Approved || got.Executing != want.Executing || got.Unknown != want.Unknown ||
			got.ByAgent["release-bot"] != want.Pending || got.ByTier["R3"] != want.Pending {
			s.Fatalf("counts are %+v, want %+v", got, want)
		}
		if got.ByAgent != nil {
			got.ByAgent["release-bot"] = 99 // the caller's own
		}
	}
	want(store.Counts{})
	a, b := s.create(Opening(1)), s.create(Opening(2))
	want(store.Counts{Pending: 2})
	_, err := s.Change(ctx, a.ID, approve(Ben, a.Digest))
	s.must(err)
	want(store.Counts{Pending: 1, Approved: 1})
	_, err = s.Change(ctx, a.ID, claim("c"))
	s.must(err)
	_, err = s.Change(ctx, b.ID, deny(Ben, b.Digest))
	s.must(err)
	want(store.Counts{Executing: 1})
	_, err = s.Change(ctx, a.ID, func(r *approval.Request, now time.Time) (ledger.Event, error) {
		return r.Lose(approval.ByCrash, now)
	})
	s.must(err)
	want(store.Counts{Unknown: 1})
}

func due(s *scenario) {
	ctx := s.Context()
	wants := func(limit int, want ...int) {
		s.Helper()
		got, err := s.Due(ctx, s.Now(), limit)
		s.must(err)
		s.wantIDs(got, want...)
	}
	for n, ttl := range map[int]time.Duration{1: 3 * time.Minute, 2: time.Minute, 3: 2 * time.Minute, 4: time.Hour} {
		o := Opening(n)
		o.Verdict.TTL = ttl
		s.create(o)
	}
	s.running(5) // the gateway's claim is redeemed: no deadline acts on it
	caller := allowed(Opening(6))
	caller.Executor, caller.Verdict.TTL = approval.Caller, time.Hour
	r := s.create(caller)
	wants(10)
	s.forward(time.Minute)
	wants(10, 2) // a deadline is past when it is reached
	s.forward(2 * time.Minute)
	wants(10, 2, 3, 1)
	wants(2, 2, 3)
	_, err := s.Change(ctx, ID(3), expire)
	s.must(err)
	wants(10, 2, 1)
	_, err = s.Change(ctx, r.ID, func(r *approval.Request, now time.Time) (ledger.Event, error) {
		return r.Claim(approval.Claim{ID: "c", Until: now.Add(time.Minute), Secret: call.Hash{1}}, r.Verdict, r.Definition, now)
	})
	s.must(err)
	s.forward(time.Minute)
	wants(10, 2, 1, 6)
}

func (s *scenario) wantTotal(key string, since time.Time, want int64) {
	s.Helper()
	got, err := s.Totals(s.Context(), map[string]time.Time{key: since})
	s.must(err)
	if got[key] != want || len(got) != 1 {
		s.Fatalf("total of %s since %v is %v, want %d", key, since, got, want)
	}
}
