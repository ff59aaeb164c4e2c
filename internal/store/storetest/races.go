package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/identity"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/store"
)

var raceTests = []test{
	{name: "100 approvals of one id", run: func(s *scenario) { // RACE-01
		for n := range 5 {
			r := s.create(Opening(n))
			won := s.together(100, func(ctx context.Context, i int) error {
				who := identity.Human{ID: fmt.Sprintf("person-%d", i), Strength: identity.Session}
				_, err := s.Change(ctx, r.ID, approve(who, r.Digest))
				return err
			}, approval.ErrDecided)
			if won != 1 || len(s.get(r.ID).Decisions) != 1 || s.entries(r.ID, ledger.RequestDecided) != 1 {
				s.Fatalf("%d approvals won, %d are stored, %d recorded", won, len(s.get(r.ID).Decisions), s.entries(r.ID, ledger.RequestDecided))
			}
		}
	}},
	{name: "100 claims of one id", run: func(s *scenario) { // RACE-02
		for n := range 5 {
			r := s.create(allowed(Opening(n)))
			won := s.together(100, func(ctx context.Context, i int) error {
				_, err := s.Change(ctx, r.ID, claim(fmt.Sprintf("claim-%d", i)), store.Charge{Key: string(r.ID), Amount: 1})
				return err
			}, approval.ErrClaimed)
			if won != 1 || s.entries(r.ID, ledger.RequestClaimed) != 1 {
				s.Fatalf("%d claims won, %d are recorded", won, s.entries(r.ID, ledger.RequestClaimed))
			}
			s.wantTotal(string(r.ID), time.Time{}, 1)
		}
	}},
	{name: "approve, deny, cancel and expire at once", run: func(s *scenario) { // RACE-03, RACE-04
		for n := range 40 {
			r := s.create(Opening(n))
			s.forward(time.Hour - time.Millisecond)
			moves := []store.Move{approve(Ben, r.Digest), deny(Ben, r.Digest), cancel, expire, claim("c")}
			var told [5]error
			s.together(len(moves), func(ctx context.Context, i int) error {
				if i == 3 {
					s.forward(time.Millisecond) // the deadline comes in the middle of it
				}
				_, told[i] = s.Change(ctx, r.ID, moves[i])
				return nil
			})
			end := s.get(r.ID)
			// P3: whoever was told that it ended is never followed by a claim.
			if (told[1] == nil || told[2] == nil || told[3] == nil) && (end.Claimed.ID != "" || told[4] == nil) {
				s.Fatalf("told %v, and the request is %s", told, end.State)
			}
			ended := 0
			for _, err := range told[1:4] {
				if err == nil {
					ended++
				}
			}
			if told[4] == nil {
				ended++
			}
			if ended > 1 {
				s.Fatalf("%d of them won: %v", ended, told)
			}
		}
	}},
	{name: "100 creations of one id, key and code", run: func(s *scenario) { // RACE-26
		for what, same := range map[string]func(o *approval.Opening, i int){
			"id":   func(o *approval.Opening, i int) { o.ID, o.Code = "the-id", fmt.Sprint("X", i) },
			"key":  func(o *approval.Opening, i int) { o.Key = "the-key" },
			"code": func(o *approval.Opening, i int) { o.Code = "THE-CODE" },
		} {
			won := s.together(100, func(ctx context.Context, i int) error {
				o := Opening(len(what)*1000 + i)
				same(&o, i)
				r, e := approval.Open(o, s.Now())
				return s.Create(ctx, r, []ledger.Event{e})
			}, store.ErrExists)
			if won != 1 {
				s.Fatalf("%d requests with one %s", won, what)
			}
		}
	}},
	{name: "a refused change does not take others with it", run: func(s *scenario) {
		first := s.create(Opening(0))
		won := s.together(200, func(ctx context.Context, i int) error {
			o := Opening(i)
			if i%2 == 0 {
				o.ID = first.ID
			}
			r, e := approval.Open(o, s.Now())
			return s.Create(ctx, r, []ledger.Event{e})
		}, store.ErrExists)
		if won != 100 {
			s.Fatalf("%d of 100 won", won)
		}
	}},
	{name: "changes of one request lose nothing", run: func(s *scenario) {
		r := s.create(Opening(1))
		s.together(200, func(ctx context.Context, _ int) error {
			_, err := s.Change(ctx, r.ID, func(r *approval.Request, _ time.Time) (ledger.Event, error) { return r.Attach("s1") })
			return err
		})
		if got := s.get(r.ID).Asks; got != 201 {
			s.Fatalf("asked %d times, want 201", got)
		}
	}},
	{name: "records lose nothing", run: func(s *scenario) {
		s.together(100, func(ctx context.Context, _ int) error {
			return s.Update(ctx, "n", "n", func(old []byte, _ time.Time) ([]byte, ledger.Event, error) { return append(old, 'x'), fact, nil })
		})
		r, err := s.Load(s.Context(), "n", "n")
		s.must(err)
		if string(r.Value) != strings.Repeat("x", 100) {
			s.Fatalf("%d of 100 are there", len(r.Value))
		}
	}},
	{name: "readers see whole changes and no future", run: readers},
	{name: "deadlines that end amid writing", run: impatient},
	{name: "followers miss nothing", run: func(s *scenario) {
		ctx, stop := context.WithCancel(s.Context())
		defer stop()
		const writers, each = 8, 50
		var done sync.WaitGroup
		for range 4 {
			done.Go(func() {
				var next int64
				for line, err := range s.Follow(ctx, 0) {
					if err != nil {
						s.Errorf("follow: %v", err)
						return
					}
					if e, err := ledger.ParseEntry(line); err != nil || e.Seq != next {
						s.Errorf("entry %d where %d should be: %v", e.Seq, next, err)
						return
					}
					if next++; next == writers*each {
						return
					}
				}
			})
		}
		s.together(writers, func(ctx context.Context, _ int) error {
			for range each {
				if err := s.Append(ctx, fact); err != nil {
					return err
				}
			}
			return nil
		})
		done.Wait()
	}},
}

// together runs n at once and returns how many had no error. Only errors that
// are expected may come.
func (s *scenario) together(n int, do func(ctx context.Context, i int) error, expected ...error) int {
	s.Helper()
	var won atomic.Int32
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			<-start
			err := do(s.Context(), i)
			if err == nil {
				won.Add(1)
				return
			}
			for _, e := range expected {
				if errors.Is(err, e) {
					return
				}
			}
			s.Errorf("number %d: %v", i, err)
		})
	}
	close(start)
	all.Wait()
	return int(won.Load())
}

// entries counts the entries of a kind about a request.
func (s *scenario) entries(id approval.ID, k ledger.Kind) int {
	s.Helper()
	n := 0
	for line, err := range s.Entries(s.Context(), 0) {
		s.must(err)
		e, err := ledger.ParseEntry(line)
		s.must(err)
		if e.Subject == string(id) && e.Kind == k {
			n++
		}
	}
	return n
}

// readers: whoever reads after a change was told of sees it; what is read is
// always a state that was committed.
func readers(s *scenario) {
	r := s.create(Opening(1))
	var acked atomic.Int64
	acked.Store(1)
	stop := make(chan struct{})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				least := acked.Load()
				got, err := s.Get(s.Context(), r.ID)
				if err != nil {
					s.Error(err)
					return
				}
				if int64(got.Asks) < least {
					s.Errorf("asked %d times, acknowledged were %d", got.Asks, least)
					return
				}
				h, err := s.Head(s.Context())
				if err != nil || h.Size < int64(got.Asks) {
					s.Errorf("%d entries, and %d changes were read: %v", h.Size, got.Asks, err)
					return
				}
			}
		})
	}
	for range 200 {
		got, err := s.Change(s.Context(), r.ID, func(r *approval.Request, _ time.Time) (ledger.Event, error) { return r.Attach("s1") })
		s.must(err)
		acked.Store(int64(got.Asks))
	}
	close(stop)
	all.Wait()
}

// impatient: a caller whose time ends is told that nothing was changed, or that
// nobody knows; what it was told is true. RACE-11, RACE-24.
func impatient(s *scenario) {
	s.together(200, func(parent context.Context, i int) error {
		ctx, stop := context.WithTimeout(parent, time.Duration(i%20)*50*time.Microsecond)
		defer stop()
		r, e := approval.Open(Opening(i), s.Now())
		err := s.Create(ctx, r, []ledger.Event{e})
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		_, missing := s.Get(parent, r.ID)
		switch {
		case err == nil && missing != nil:
			return fmt.Errorf("told done, and %w", missing)
		case errors.Is(err, store.ErrUnavailable) && !errors.Is(missing, store.ErrNotFound):
			return fmt.Errorf("told unavailable, and it is there: %w", err)
		case err != nil && !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrInDoubt):
			return err
		}
		return nil
	})
	// Whatever was in doubt has settled now; the ledger is checked afterwards.
	s.must(s.Append(s.Context(), fact))
}
