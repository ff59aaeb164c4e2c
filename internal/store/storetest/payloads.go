package storetest

import (
	"bytes"
	"strings"
	"time"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/store"
)

func ownCopies(s *scenario) {
	ctx := s.Context()
	o := Opening(1)
	o.Verdict.Scopes, o.Verdict.Of.AnyOf, o.Verdict.Quorum = []string{"once"}, []string{"user:ben", "user:cy"}, 2
	o.Key = "k"
	given, e := approval.Open(o, s.Now())
	s.must(s.Create(ctx, given, []ledger.Event{e}))
	vandalize(given)
	var kept *approval.Request
	changed, err := s.Change(ctx, ID(1), func(r *approval.Request, now time.Time) (ledger.Event, error) {
		kept = r
		return r.Decide(approval.Decision{By: Ben, Approve: true, Digest: r.Digest}, now)
	})
	s.must(err)
	want := s.get(ID(1))
	if want.State != approval.Pending || want.Verdict.Effects[0] != "refund 900" {
		s.Fatalf("what was handed in is not what was stored: %+v", want)
	}
	vandalize(kept)
	vandalize(changed)
	for name, look := range map[string]func() (*approval.Request, error){
		"get":     func() (*approval.Request, error) { return s.Get(ctx, ID(1)) },
		"by key":  func() (*approval.Request, error) { return s.ByKey(ctx, "release-bot", "k") },
		"by code": func() (*approval.Request, error) { return s.ByCode(ctx, "C1") },
		"list":    func() (*approval.Request, error) { return s.list(store.Filter{})[0], nil },
		"no move": func() (*approval.Request, error) {
			return s.Change(ctx, ID(1), func(*approval.Request, time.Time) (ledger.Event, error) { return ledger.Event{}, nil })
		},
	} {
		for range 2 {
			got, err := look()
			s.must(err)
			if d := same(want, got); d != "" {
				s.Fatalf("%s shows what a caller wrote (-want +got):\n%s", name, d)
			}
			vandalize(got)
		}
	}
}

// exactBytes holds P5: what is stored and given back is byte for byte the same,
// whatever JSON, HTML or UTF-8 would make of it.
func exactBytes(s *scenario) {
	args := `{"html":"<b>&amp;</b>","line":"\u2028","n":123456789012345678901234567890,"q":"'; DROP TABLE requests; --"}`
	c, err := call.New("shop", "note", []byte(args))
	s.must(err)
	o := allowed(Opening(1))
	o.Call = c
	o.Extra = []byte("{\"_meta\":{\"n\":9007199254740993},\"o\":\"<&>\u2028\"}")
	o.Reason, o.Run, o.Distinct = "bad \xff utf-8 \x00 nul", "<&>\u2028", "\x00"
	o.Salt = []byte("\x00\xff<&>0123456789abcdef")
	r := s.create(o)
	_, err = s.Change(s.Context(), r.ID, claim("c"))
	s.must(err)
	result := []byte("{\"a\":1 ,\n \"a\":2, \"x\":\"\xff\x00<&>\"}")
	_, err = s.Change(s.Context(), r.ID, Finish("c", result))
	s.must(err)
	got := s.get(r.ID)
	if !bytes.Equal(got.Call.Canonical(), c.Canonical()) || got.Call.Hash() != c.Hash() || !bytes.Equal(got.Salt, o.Salt) || !bytes.Equal(got.Extra, o.Extra) ||
		!bytes.Equal(got.Execution.Result, result) || got.Reason != o.Reason || got.Run != o.Run || got.Distinct != o.Distinct {
		s.Fatalf("stored %q %q, got %q %q", c.Canonical(), result, got.Call.Canonical(), got.Execution.Result)
	}
}

func eraseResults(s *scenario) { // AUD-09: the payload goes, the proof stays
	ctx := s.Context()
	finish := func(n int, result []byte) {
		r := s.running(n)
		_, err := s.Change(ctx, r.ID, Finish(r.Claimed.ID, result))
		s.must(err)
	}
	finish(1, []byte(`{"ok":true}`))
	finish(2, bytes.Repeat([]byte("long "), 5000))
	s.forward(time.Minute)
	cut := s.Now()
	finish(3, []byte(`{"later":true}`))
	s.running(4)
	head, err := s.Head(ctx)
	s.must(err)
	for _, want := range []int{2, 0} {
		n, err := s.EraseResults(ctx, cut)
		s.must(err)
		if n != want {
			s.Fatalf("erased %d, want %d", n, want)
		}
	}
	for n, want := range map[int]int{1: 0, 2: 0, 3: 14} {
		r := s.get(ID(n))
		if len(r.Execution.Result) != want || (r.Execution.Hash == call.Hash{}) || r.Execution.Size == 0 {
			s.Fatalf("request %d has a result of %d bytes, hash %s, size %d", n, len(r.Execution.Result), r.Execution.Hash, r.Execution.Size)
		}
	}
	after, err := s.Head(ctx)
	s.must(err)
	if after != head {
		s.Fatal("erasing touched the ledger")
	}
	// What was erased stays erased when the request changes afterwards.
	got, err := s.Change(ctx, ID(1), func(r *approval.Request, now time.Time) (ledger.Event, error) { return r.PickUp(now) })
	s.must(err)
	if got.Execution.Result != nil || s.get(ID(1)).Execution.Result != nil {
		s.Fatal("an erased result came back")
	}
}

func largePayloads(s *scenario) {
	ctx := s.Context()
	for n, size := range []int{1, 100, 2048, 2049, 100_000, 900_000} {
		c, err := call.New("shop", "upload", []byte(`{"text":"`+strings.Repeat("x", size)+`"}`))
		s.must(err)
		o := allowed(Opening(n))
		o.Call = c
		r := s.create(o)
		_, err = s.Change(ctx, r.ID, claim("c"))
		s.must(err)
		result := bytes.Repeat([]byte("y"), size)
		_, err = s.Change(ctx, r.ID, Finish("c", result))
		s.must(err)
		got, err := s.Change(ctx, r.ID, func(r *approval.Request, now time.Time) (ledger.Event, error) { return r.PickUp(now) })
		s.must(err)
		for _, r := range []*approval.Request{got, s.get(r.ID)} {
			if r.Call != c || !bytes.Equal(r.Execution.Result, result) {
				s.Fatalf("%d bytes did not come back", size)
			}
		}
	}
}
