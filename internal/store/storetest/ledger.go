package storetest

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/store"
)

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
