package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/identity"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/policy"
	"github.com/ayegate/ayegate/internal/store"
)

var listTests = []test{
	{name: "filters", run: filters},
	{name: "orders", run: orders},
	{name: "cursors hold while requests come and go", run: cursors},
	{name: "a list may be left and may call the store", run: func(s *scenario) {
		for n := range 150 {
			s.create(Opening(n))
		}
		seen := 0
		for r, err := range s.List(s.Context(), store.Filter{}) {
			s.must(err)
			_, err := s.Change(s.Context(), r.ID, cancel)
			s.must(err)
			if seen++; seen == 100 {
				break
			}
		}
		c, err := s.Counts(s.Context())
		s.must(err)
		if c.Pending != 50 {
			s.Fatalf("%d are pending", c.Pending)
		}
	}},
}

// many stores requests that differ in all that filters know, and returns them.
func many(s *scenario, n int) []*approval.Request {
	var out []*approval.Request
	for i := range n {
		o := Opening(i)
		o.From = identity.Agent{ID: fmt.Sprintf("agent-%d", i%3), Session: fmt.Sprintf("s%d", i%5), Workspace: fmt.Sprintf("w%d", i%2)}
		o.Verdict.Tier = policy.RiskTier(i % 5)
		o.Verdict.Of = policy.Approvers{}
		o.Verdict.TTL = time.Duration(1+i*7%11) * time.Hour
		c, err := call.New(fmt.Sprintf("server-%d", i%2), fmt.Sprintf("tool_%d", i%4), fmt.Appendf(nil, `{"n":%d}`, i%6))
		s.must(err)
		o.Call = c
		r := s.create(o)
		if i%4 != 0 {
			s.env.Wall.Move(time.Millisecond)
		}
		for _, move := range []store.Move{
			approve(Ben, r.Digest), claim("c"), Finish("c", []byte("ok")),
		}[:i%4] {
			r, err = s.Change(s.Context(), r.ID, move)
			s.must(err)
		}
		if i%7 == 3 && r.State.Open() {
			r, err = s.Change(s.Context(), r.ID, cancel)
			s.must(err)
		}
		out = append(out, r)
	}
	return out
}

func filters(s *scenario) {
	all := many(s, 130)
	for _, f := range []store.Filter{
		{},
		{States: []approval.State{approval.Pending}},
		{States: []approval.State{approval.Pending, approval.Executing}},
		{States: []approval.State{approval.Pending, approval.Approved}},
		{States: []approval.State{approval.Pending, approval.Pending}},
		{States: []approval.State{approval.Executed, approval.Pending, approval.Cancelled}},
		{States: []approval.State{approval.Denied}},
		{Agent: "agent-1"},
		{Agent: "AGENT-1"},
		{Session: "s2", Workspace: "w1"},
		{Server: "server-1", Tool: "tool_3"},
		{CallHash: all[7].Call.Hash()},
		{CallHash: all[7].Call.Hash(), Agent: all[7].From.ID, States: []approval.State{approval.Pending, approval.Executed}},
		{Tiers: []uint8{0, 4}},
		{Tiers: []uint8{3}, States: []approval.State{approval.Pending}},
		{Since: all[60].AskedAt},
		{Since: all[60].AskedAt, Agent: "agent-2", States: []approval.State{approval.Approved}},
	} {
		for _, f.Order = range []store.Order{store.NewestFirst, store.DeadlineFirst} {
			for _, f.Limit = range []int{0, 1, 64, 65} {
				var want []*approval.Request
				for _, r := range all {
					if f.Match(r) {
						want = append(want, r)
					}
				}
				slices.SortFunc(want, func(a, b *approval.Request) int { return f.Order.Compare(f.Order.Place(a), f.Order.Place(b)) })
				if f.Limit > 0 && len(want) > f.Limit {
					want = want[:f.Limit]
				}
				if got := s.list(f); !slices.Equal(ids(got), ids(want)) {
					s.Fatalf("%+v\n got %v\nwant %v", f, ids(got), ids(want))
				}
				f.After = store.Cursor{}
				if got := s.paged(f, 7); f.Limit == 0 && !slices.Equal(ids(got), ids(want)) {
					s.Fatalf("%+v in pages\n got %v\nwant %v", f, ids(got), ids(want))
				}
			}
		}
	}
}

// paged reads a list in pages, each continuing behind the one before.
func (s *scenario) paged(f store.Filter, size int) (out []*approval.Request) {
	s.Helper()
	f.Limit = size
	for {
		page := s.list(f)
		out = append(out, page...)
		if len(page) < size {
			return out
		}
		f.After = f.Order.Place(page[size-1])
	}
}

func orders(s *scenario) {
	at := func(n int, ttl time.Duration) {
		o := Opening(n)
		o.Verdict.TTL = ttl
		s.create(o)
	}
	at(2, 2*time.Minute)
	at(1, time.Hour)
	s.forward(time.Minute)
	at(3, time.Minute)
	at(4, time.Second)
	s.wantIDs(ids(s.list(store.Filter{})), 4, 3, 2, 1)
	s.wantIDs(ids(s.list(store.Filter{Order: store.DeadlineFirst})), 4, 2, 3, 1)
	_, err := s.Change(s.Context(), ID(2), func(r *approval.Request, now time.Time) (ledger.Event, error) { return r.Extend(Ben, now) })
	s.must(err)
	s.wantIDs(ids(s.list(store.Filter{Order: store.DeadlineFirst, States: []approval.State{approval.Pending}})), 4, 3, 2, 1)
}

// cursors: whoever turns pages sees every request that was there all the time,
// once, whatever comes and ends meanwhile.
func cursors(s *scenario) {
	const size = 4 // three requests each are of one moment: pages end among them
	for _, order := range []store.Order{store.NewestFirst, store.DeadlineFirst} {
		base := 1000 * int(order)
		stays := map[approval.ID]int{}
		for n := range 40 {
			r := s.create(Opening(base + n))
			if n%2 == 0 {
				stays[r.ID] = 0
			}
			if n%3 == 0 {
				s.forward(time.Millisecond)
			}
		}
		f := store.Filter{Order: order, States: []approval.State{approval.Pending}, Limit: size}
		for n := 1; ; n += 2 {
			page := s.list(f)
			for _, r := range page {
				if _, ok := stays[r.ID]; ok {
					stays[r.ID]++
				}
			}
			if len(page) < size {
				break
			}
			f.After = order.Place(page[size-1])
			s.create(Opening(base + 100 + n)) // comes
			if n < 40 {
				_, err := s.Change(s.Context(), ID(base+n), cancel) // goes
				s.must(err)
			}
		}
		for id, times := range stays {
			if times != 1 {
				s.Fatalf("order %d: %s was told %d times", order, id, times)
			}
			_, err := s.Change(s.Context(), id, cancel)
			s.must(err)
		}
		for _, r := range s.list(store.Filter{States: []approval.State{approval.Pending}}) {
			_, err := s.Change(s.Context(), r.ID, cancel)
			s.must(err)
		}
	}
}
