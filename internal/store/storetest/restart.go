package storetest

import (
	"time"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/store"
)

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
