package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/store"
)

var tallyTests = []test{
	{name: "windows and resets", run: func(s *scenario) {
		start := s.Now()
		s.create(Opening(1), store.Charge{Key: "a", Amount: 5}, store.Charge{Key: "b", Amount: 1}, store.Charge{Key: "a", Amount: 2})
		s.forward(time.Minute)
		middle := s.Now()
		r := s.create(Opening(2), store.Charge{Key: "a", Amount: 10}, store.Charge{Key: "A", Amount: 100})
		s.wantTotal("a", time.Time{}, 17)
		s.wantTotal("a", start, 17)
		s.wantTotal("a", middle, 10) // a charge of the very moment counts
		s.wantTotal("a", middle.Add(1), 0)
		s.wantTotal("A", time.Time{}, 100)
		s.wantTotal("never", time.Time{}, 0)
		got, err := s.Totals(s.Context(), map[string]time.Time{"a": middle, "b": start})
		s.must(err)
		if len(got) != 2 || got["a"] != 10 || got["b"] != 1 {
			s.Fatalf("got %v", got)
		}
		_, err = s.Change(s.Context(), r.ID, approve(Ben, r.Digest), store.Charge{Key: "a", Reset: true})
		s.must(err)
		s.wantTotal("a", time.Time{}, 0)
		s.wantTotal("b", time.Time{}, 1)
		_, err = s.Change(s.Context(), r.ID, claim("c"), store.Charge{Key: "a", Amount: 3}, store.Charge{Key: "a", Amount: -1})
		s.must(err)
		s.wantTotal("a", time.Time{}, 2)
	}},
	{name: "a charge is taken with its change only", run: func(s *scenario) {
		s.create(Opening(1), store.Charge{Key: "a", Amount: 1})
		r, e := approval.Open(Opening(1), s.Now())
		s.wants(s.Create(s.Context(), r, []ledger.Event{e}, store.Charge{Key: "a", Amount: 1}), store.ErrExists)
		s.wantTotal("a", time.Time{}, 1)
	}},
	{name: "a total too large to count is an error", run: func(s *scenario) { // an error is a refusal
		s.create(Opening(1), store.Charge{Key: "a", Amount: math.MaxInt64})
		s.forward(time.Second)
		s.create(Opening(2), store.Charge{Key: "a", Amount: 1})
		_, err := s.Totals(s.Context(), map[string]time.Time{"a": {}})
		s.wants(err, store.ErrOverflow)
		s.wantTotal("a", s.Now(), 1)
	}},
	{name: "forgetting changes no total that counts", run: func(s *scenario) {
		for n := range 20 {
			s.create(Opening(n), store.Charge{Key: "a", Amount: int64(n)}, store.Charge{Key: fmt.Sprint("k", n%3), Amount: 1})
			s.forward(time.Minute)
		}
		cut := s.Now().Add(-5 * time.Minute)
		for range 2 {
			s.must(s.Forget(s.Context(), cut))
			s.wantTotal("a", time.Time{}, 190)
			s.wantTotal("a", cut, 15+16+17+18+19)
			s.wantTotal("a", cut.Add(2*time.Minute), 17+18+19)
			s.wantTotal("k0", time.Time{}, 7)
		}
		r := s.get(ID(0))
		_, err := s.Change(s.Context(), r.ID, cancel, store.Charge{Key: "a", Reset: true})
		s.must(err)
		s.wantTotal("a", time.Time{}, 0)
	}},
}

var fact = ledger.Event{Kind: ledger.PauseSet, Subject: "all", Actor: ledger.Actor{Kind: ledger.System, ID: "ayegate"}}

func put(value string) store.Edit {
	return func([]byte, time.Time) ([]byte, ledger.Event, error) { return []byte(value), fact, nil }
}

var recordTests = []test{
	{name: "a record's life", run: func(s *scenario) {
		ctx := s.Context()
		_, err := s.Load(ctx, "pin", "a")
		s.wants(err, store.ErrNotFound)
		edit := func(wantOld []byte, value []byte) {
			s.Helper()
			s.must(s.Update(ctx, "pin", "a", func(old []byte, now time.Time) ([]byte, ledger.Event, error) {
				if !bytes.Equal(old, wantOld) || (old == nil) != (wantOld == nil) {
					s.Errorf("old is %q, want %q", old, wantOld)
				}
				if now.IsZero() {
					s.Error("no time")
				}
				return value, fact, nil
			}))
		}
		edit(nil, []byte("one"))
		s.forward(time.Minute)
		edit([]byte("one"), []byte("two\x00\xff"))
		r, err := s.Load(ctx, "pin", "a")
		s.must(err)
		if r.Kind != "pin" || r.ID != "a" || string(r.Value) != "two\x00\xff" || !r.Changed.Equal(s.Now()) {
			s.Fatalf("got %+v", r)
		}
		r.Value[0] = 'X' // the caller's own
		edit([]byte("two\x00\xff"), []byte{})
		edit([]byte{}, nil) // an empty value is not an absent one
		_, err = s.Load(ctx, "pin", "a")
		s.wants(err, store.ErrNotFound)
		edit(nil, nil)
	}},
	{name: "an edit without an event writes nothing", run: func(s *scenario) {
		mine := errors.New("mine")
		s.must(s.Update(s.Context(), "pin", "a", put("one")))
		s.unchanged(func() {
			err := s.Update(s.Context(), "pin", "a", func(old []byte, _ time.Time) ([]byte, ledger.Event, error) {
				old[0] = 'X'
				return old, fact, mine
			})
			if err != mine { //nolint:errorlint // it is returned as it is
				s.Fatalf("got %v", err)
			}
			s.must(s.Update(s.Context(), "pin", "a", func(old []byte, _ time.Time) ([]byte, ledger.Event, error) {
				old[0] = 'X'
				return nil, ledger.Event{}, nil
			}))
		})
		r, err := s.Load(s.Context(), "pin", "a")
		s.must(err)
		if string(r.Value) != "one" {
			s.Fatalf("got %q", r.Value)
		}
	}},
	{name: "records of a kind, by id", run: func(s *scenario) {
		ctx := s.Context()
		for _, id := range []string{"b", "", "a", "B", "é"} {
			s.must(s.Update(ctx, "pin", id, put("v"+id)))
		}
		s.must(s.Update(ctx, "pins", "z", put("other")))
		var got []string
		for r, err := range s.Records(ctx, "pin") {
			s.must(err)
			got = append(got, r.ID+"="+string(r.Value))
		}
		if want := []string{"=v", "B=vB", "a=va", "b=vb", "é=vé"}; !slices.Equal(got, want) {
			s.Fatalf("got %q, want %q", got, want)
		}
		for n := range 200 {
			s.must(s.Update(ctx, "many", fmt.Sprintf("%03d", n), put("v")))
		}
		n := 0
		for r, err := range s.Records(ctx, "many") {
			s.must(err)
			s.must(s.Update(ctx, "many", r.ID, func([]byte, time.Time) ([]byte, ledger.Event, error) { return nil, fact, nil }))
			n++
		}
		if n != 200 {
			s.Fatalf("read %d", n)
		}
	}},
}

var ledgerTests = []test{
	{name: "an empty ledger", run: func(s *scenario) {
		h, err := s.Head(s.Context())
		s.must(err)
		var empty ledger.Frontier
		if h != empty.Head() {
			s.Fatalf("head is %v", h)
		}
		for range s.Entries(s.Context(), 0) {
			s.Fatal("an entry")
		}
	}},
	{name: "appending and reading", run: func(s *scenario) {
		ctx := s.Context()
		s.unchanged(func() {
			s.must(s.Append(ctx))
			s.must(s.Append(ctx, ledger.Event{}, ledger.Event{}))
		})
		const n = 700
		for range n / 7 {
			s.must(s.Append(ctx, fact, fact, fact, ledger.Event{}, fact, fact, fact, fact))
		}
		for _, first := range []int64{0, 1, 255, 256, 257, n - 1, n, n + 5} {
			next := first
			for line, err := range s.Entries(ctx, first) {
				s.must(err)
				e, err := ledger.ParseEntry(line)
				s.must(err)
				if e.Seq != next {
					s.Fatalf("entry %d where %d should be", e.Seq, next)
				}
				next++
			}
			if next != max(first, n) {
				s.Fatalf("from %d on there are entries up to %d", first, next)
			}
		}
		for _, err := range s.Entries(ctx, -1) {
			s.wants(err, store.ErrNotFound)
		}
	}},
	{name: "proofs", run: func(s *scenario) { // AUD-04
		ctx := s.Context()
		var heads []ledger.Head
		for range 40 {
			h, err := s.Head(ctx)
			s.must(err)
			heads = append(heads, h)
			s.must(s.Append(ctx, fact, fact, fact))
		}
		now, err := s.Head(ctx)
		s.must(err)
		for seq := range now.Size {
			p, err := ledger.ProveInclusion(now.Size, seq, s.Hashes(ctx))
			s.must(err)
			for line, err := range s.Entries(ctx, seq) {
				s.must(err)
				s.must(ledger.CheckInclusion(p, now, seq, line))
				break
			}
		}
		for _, h := range heads {
			p, err := ledger.ProveConsistency(h.Size, now.Size, s.Hashes(ctx))
			s.must(err)
			s.must(ledger.CheckConsistency(p, h, now))
		}
		if _, err := s.Hashes(ctx).ReadHashes([]int64{tlog.StoredHashCount(now.Size)}); err == nil {
			s.Fatal("a hash beyond the tree")
		}
	}},
	{name: "text cannot leave its field", run: func(s *scenario) { // AUD-06
		o := Opening(1)
		o.From.Session = "s\n{\"kind\":\"request.decided\"}\u001b[31m\",\"event\":\"approved"
		r := s.create(o)
		_, err := s.Change(s.Context(), r.ID, func(r *approval.Request, now time.Time) (ledger.Event, error) {
			return r.Decide(approval.Decision{By: Ben, Digest: r.Digest, Reason: "=cmd|' /C calc'!A0\n\r\x00"}, now)
		})
		s.must(err)
		for line, err := range s.Entries(s.Context(), 0) {
			s.must(err)
			if bytes.ContainsAny(line, "\n\r\x1b\x00") {
				s.Fatalf("raw control characters in %q", line)
			}
		}
	}},
	{name: "payload is not in the ledger", run: func(s *scenario) { // AUD-09, AUD-10
		r := s.running(4711)
		_, err := s.Change(s.Context(), r.ID, Finish(r.Claimed.ID, []byte("secret-result")))
		s.must(err)
		for line, err := range s.Entries(s.Context(), 0) {
			s.must(err)
			for _, secret := range []string{"secret-result", `"order"`, r.Call.Hash().String()} {
				if strings.Contains(string(line), secret) {
					s.Fatalf("%s is in %s", secret, line)
				}
			}
		}
	}},
	{name: "following", run: follow},
}

func follow(s *scenario) {
	ctx, stop := context.WithCancel(s.Context())
	defer stop()
	s.must(s.Append(ctx, fact, fact))
	lines := make(chan string)
	ended := make(chan error, 1)
	go func() {
		defer close(ended)
		for line, err := range s.Follow(ctx, 1) {
			if err != nil {
				ended <- err
				return
			}
			lines <- string(line)
		}
	}()
	for seq := int64(1); seq < 600; seq++ {
		if seq >= 2 && seq < 50 || seq == 300 {
			s.must(s.Append(ctx, fact)) // one by one: each wakes the follower
		} else if seq == 50 {
			s.must(s.Append(ctx, slices.Repeat([]ledger.Event{fact}, 250)...))
		} else if seq == 301 {
			s.must(s.Append(ctx, slices.Repeat([]ledger.Event{fact}, 299)...))
		}
		e, err := ledger.ParseEntry([]byte(<-lines))
		s.must(err)
		if e.Seq != seq {
			s.Fatalf("followed to %d, want %d", e.Seq, seq)
		}
	}
	stop()
	if err := <-ended; err != nil {
		s.Fatalf("ending the context is no error: %v", err)
	}
}

var clockTests = []test{
	{name: "a clock that is set back", run: func(s *scenario) { // RACE-22: sticky expiry
		ctx := s.Context()
		r := s.create(Opening(1))
		s.forward(2 * time.Hour)
		_, err := s.Change(ctx, r.ID, expire)
		s.must(err)
		at := s.Now()
		s.env.Wall.Move(-3 * time.Hour)
		if s.Now().Before(at) {
			s.Fatalf("the clock went back from %v to %v", at, s.Now())
		}
		got, err := s.Change(ctx, r.ID, claim("c"))
		s.wants(err, approval.ErrExpired)
		if got != nil {
			s.Fatal("a request beside an error")
		}
		open := s.create(Opening(2))
		var inside time.Time
		_, err = s.Change(ctx, open.ID, func(r *approval.Request, now time.Time) (ledger.Event, error) {
			inside = now
			return r.Attach("s1")
		})
		s.must(err)
		if inside.Before(at) {
			s.Fatalf("inside a move it is %v, before %v", inside, at)
		}
	}},
	{name: "a clock that was set back still reaches deadlines", run: func(s *scenario) {
		if s.o.FastForward != nil {
			s.Skip("the store has a clock of its own")
		}
		r := s.create(Opening(1))
		s.env.Wall.Move(-24 * time.Hour)
		s.Now()
		s.env.Wall.Move(2*time.Hour + time.Second)
		_, err := s.Change(s.Context(), r.ID, expire)
		s.must(err)
	}},
	{name: "entries never go back in time", run: func(s *scenario) { // AUD-08
		var last time.Time
		for n := range 20 {
			s.create(Opening(n))
			s.env.Wall.Move(time.Duration(n%3-1) * time.Minute)
		}
		for line, err := range s.Entries(s.Context(), 0) {
			s.must(err)
			e, err := ledger.ParseEntry(line)
			s.must(err)
			if e.Time.Before(last) {
				s.Fatalf("entry %d is of %v, the one before of %v", e.Seq, e.Time, last)
			}
			last = e.Time
		}
	}},
	{name: "the clock goes on where it was after a restart", restart: true, run: func(s *scenario) { // RACE-22
		s.forward(time.Hour)
		r := s.create(Opening(1))
		s.forward(2 * time.Hour)
		_, err := s.Change(s.Context(), r.ID, expire)
		s.must(err)
		at := s.Now()
		s.env.Wall.Move(-10 * time.Hour)
		s.restart()
		if s.Now().Before(at) {
			s.Fatalf("it is %v, before the restart it was %v", s.Now(), at)
		}
	}},
}

var restartTests = []test{
	{name: "all is there", restart: true, run: func(s *scenario) {
		all := many(s, 100)
		s.must(s.Update(s.Context(), "pin", "a", put("v")))
		s.create(Opening(1000), store.Charge{Key: "a", Amount: 3})
		_, err := s.EraseResults(s.Context(), all[50].AskedAt)
		s.must(err)
		s.unchanged(s.restart)
		s.wantTotal("a", time.Time{}, 3)
		rec, err := s.Load(s.Context(), "pin", "a")
		s.must(err)
		if string(rec.Value) != "v" {
			s.Fatalf("the record is %q", rec.Value)
		}
		c, err := s.Counts(s.Context())
		s.must(err)
		if c.Pending == 0 {
			s.Fatal("nothing is pending")
		}
	}},
	{name: "and goes on", restart: true, run: func(s *scenario) { // RACE-26: ids stay used
		for n := range 20 {
			s.create(Opening(n))
			s.restart()
		}
		r, e := approval.Open(Opening(3), s.Now())
		s.wants(s.Create(s.Context(), r, []ledger.Event{e}), store.ErrExists)
		old := s.get(ID(0))
		_, err := s.Change(s.Context(), old.ID, approve(Ben, old.Digest))
		s.must(err)
		h, err := s.Head(s.Context())
		s.must(err)
		if h.Size != 21 {
			s.Fatalf("the ledger has %d entries", h.Size)
		}
	}},
}
