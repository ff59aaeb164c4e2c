package storetest

import (
	"fmt"
	"math"
	"time"

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
