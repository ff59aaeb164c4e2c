package storetest

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/identity"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/store"
)

// Benchmark measures what the hot paths ask of a store, alone and with 64 callers
// at a time. pending is how many waiting requests the inbox is measured with.
func Benchmark(b *testing.B, open Open, pending ...int) {
	for _, callers := range []int{1, 64} {
		// An allowed call: asked and claimed in one commit, finished in another.
		bench(b, open, fmt.Sprintf("allowed call/%d callers", callers), callers, func(s store.Store, n int) error {
			r, asked, claimed := Running(n, s.Now())
			r.ID, r.Code = scattered(n), ""
			if err := s.Create(b.Context(), r, []ledger.Event{asked, claimed}); err != nil {
				return err
			}
			_, err := s.Change(b.Context(), r.ID, Finish(r.Claimed.ID, result))
			return err
		})
		bench(b, open, fmt.Sprintf("create/%d callers", callers), callers, func(s store.Store, n int) error {
			r, e := approval.Open(Opening(n), s.Now())
			r.ID = scattered(n)
			return s.Create(b.Context(), r, []ledger.Event{e})
		})
		bench(b, open, fmt.Sprintf("append/%d callers", callers), callers, func(s store.Store, _ int) error {
			return s.Append(b.Context(), fact)
		})
	}
	for _, n := range pending {
		b.Run(fmt.Sprintf("%d pending", n), func(b *testing.B) { benchPending(b, open, n) })
	}
}

// scattered is an id that comes, like a random one, in no order.
func scattered(n int) approval.ID {
	return approval.ID(fmt.Sprintf("%08x-0000-4000-8000-%012x", uint32(n)*2654435761, n))
}

var result = []byte(`{"content":[{"type":"text","text":"done: the record was written"}],"isError":false}`)

func bench(b *testing.B, open Open, name string, callers int, do func(s store.Store, n int) error) {
	b.Run(name, func(b *testing.B) {
		s := open(b, Env{Dir: b.TempDir(), Wall: NewWall()})
		defer s.Close()
		var n atomic.Int64
		b.SetParallelism(max(1, callers/runtime.GOMAXPROCS(0)))
		b.ReportAllocs()
		b.ResetTimer()
		if callers == 1 {
			for i := 0; b.Loop(); i++ {
				if err := do(s, i); err != nil {
					b.Fatal(err)
				}
			}
		} else {
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := do(s, int(n.Add(1))); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "/s")
	})
}

func benchPending(b *testing.B, open Open, pending int) {
	env := Env{Dir: b.TempDir(), Wall: NewWall()}
	s := open(b, env)
	defer s.Close()
	Fill(b, s, env.Wall, pending)
	ctx := b.Context()
	b.Run("list 50", func(b *testing.B) {
		for b.Loop() {
			n := 0
			for _, err := range s.List(ctx, store.Filter{States: []approval.State{approval.Pending}, Limit: 50}) {
				if err != nil {
					b.Fatal(err)
				}
				n++
			}
			if n != min(50, pending) {
				b.Fatal(n)
			}
		}
	})
	b.Run("list 50 by deadline", func(b *testing.B) {
		for b.Loop() {
			for _, err := range s.List(ctx, store.Filter{States: []approval.State{approval.Pending}, Order: store.DeadlineFirst, Limit: 50}) {
				if err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("get", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if _, err := s.Get(ctx, scattered(i*7919%pending)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("twin", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			for _, err := range s.List(ctx, store.Filter{CallHash: Opening(i * 7919 % pending).Call.Hash(), Agent: "release-bot", Limit: 50}) {
				if err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("counts", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.Counts(ctx); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("due", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.Due(ctx, s.Now(), 100); err != nil {
				b.Fatal(err)
			}
		}
	})
	decided := 0
	b.Run("decide", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			decided++ // by another person each time: a quorum that is never reached
			by := identity.Human{ID: fmt.Sprint(decided), Strength: identity.Session}
			_, err := s.Change(ctx, scattered(i*7919%pending), func(r *approval.Request, now time.Time) (ledger.Event, error) {
				r.Decisions = nil
				return r.Decide(approval.Decision{By: by, Approve: true, Digest: r.Digest}, now)
			})
			if err != nil {
				b.Fatal(err)
			}
		}
	})
}

// Fill creates pending requests that need two approvals, 64 at a time, each a
// millisecond after the one before.
func Fill(tb testing.TB, s store.Store, wall *Wall, pending int) {
	tb.Helper()
	ctx, stop := context.WithCancelCause(tb.Context())
	defer stop(nil)
	next := make(chan int)
	done := make(chan struct{})
	for range 64 {
		go func() {
			defer func() { done <- struct{}{} }()
			for n := range next {
				o := Opening(n)
				o.ID = scattered(n)
				o.Verdict.Quorum, o.Verdict.TTL = 2, 24*time.Hour
				r, e := approval.Open(o, s.Now())
				if err := s.Create(ctx, r, []ledger.Event{e}); err != nil {
					stop(err)
				}
			}
		}()
	}
	for n := range pending {
		wall.Move(time.Millisecond)
		next <- n
	}
	close(next)
	for range 64 {
		<-done
	}
	if err := context.Cause(ctx); err != nil {
		tb.Fatal(err)
	}
}
