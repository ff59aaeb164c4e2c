package storetest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/identity"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/policy"
	"github.com/ayegate/ayegate/internal/store"
	"github.com/ayegate/ayegate/internal/store/memory"
)

// model drives a store and the memory store with the same random steps. They must
// give the same answers, and in the end the same ledger to the byte.
func model(t *testing.T, open Open, o Options) {
	if o.FastForward != nil {
		t.Skip("the store has a clock of its own: its ledger is another to the byte")
	}
	root, runs := t.TempDir(), 0
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		dir := filepath.Join(root, fmt.Sprint(runs))
		if err := os.Mkdir(dir, 0o700); err != nil {
			rt.Fatal(err)
		}
		env := Env{Dir: dir, Wall: NewWall()}
		plain, err := memory.Open(memory.Config{Now: env.Wall.Now})
		if err != nil {
			rt.Fatal(err)
		}
		m := &machine{t: rt, wall: env.Wall, plain: plain, tested: open(t, env)}
		defer func() { m.tested.Close() }()
		steps := map[string]func(*rapid.T){
			"create": m.create, "decide": m.decide, "move": m.move, "attach": m.attach, "time": m.time,
			"list": m.list, "find": m.find, "due": m.due, "totals": m.totals, "record": m.record, "append": m.append, "clean": m.clean,
			"": m.compare,
		}
		if o.Restart {
			steps["restart"] = func(rt *rapid.T) {
				m.ok(m.tested.Close())
				m.tested = open(t, env)
			}
		}
		rt.Repeat(steps)
		m.ledgers()
	})
}

type machine struct {
	t             *rapid.T
	wall          *Wall
	plain, tested store.Store
	known         []approval.ID
}

func (m *machine) ok(err error) {
	if err != nil {
		m.t.Fatal(err)
	}
}

// both runs do on both stores and compares what it returns.
func both[T any](m *machine, what string, do func(store.Store) (T, error)) T {
	want, wantErr := do(m.plain)
	got, err := do(m.tested)
	if kindOf(err) != kindOf(wantErr) {
		m.t.Fatalf("%s: error is %v, the model's %v", what, err, wantErr)
	}
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmp.Comparer(func(a, b call.Call) bool { return a == b })); d != "" {
		m.t.Fatalf("%s differs (-model +store):\n%s", what, d)
	}
	return want
}

// kindOf names what callers can tell errors apart by.
func kindOf(err error) string {
	for _, kind := range []error{
		store.ErrCode, store.ErrExists, store.ErrNotFound, store.ErrInDoubt, store.ErrUnavailable, store.ErrForm, store.ErrOverflow,
	} {
		if errors.Is(err, kind) {
			return kind.Error()
		}
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

func (m *machine) create(t *rapid.T) {
	n := rapid.IntRange(0, 60).Draw(t, "n")
	o := Opening(n)
	o.Verdict.Effect = rapid.SampledFrom([]policy.Effect{policy.Ask, policy.Ask, policy.Allow, policy.Deny}).Draw(t, "effect")
	o.Verdict.Tier = policy.RiskTier(rapid.IntRange(0, 4).Draw(t, "tier"))
	o.Verdict.TTL = time.Duration(rapid.IntRange(1, 100).Draw(t, "ttl")) * time.Minute
	o.Verdict.Quorum = rapid.IntRange(1, 2).Draw(t, "quorum")
	o.Code = rapid.SampledFrom([]string{"", "A", "B", "C"}).Draw(t, "code")
	o.Key = rapid.SampledFrom([]string{"", "", "k1", "k2", "K1"}).Draw(t, "key")
	o.From.ID = rapid.SampledFrom([]string{"bot", "Bot", "bot2"}).Draw(t, "agent")
	charges := m.charges(t)
	both(m, "create", func(s store.Store) (bool, error) {
		r, e := approval.Open(o, s.Now())
		return true, s.Create(t.Context(), r, []ledger.Event{e}, charges...)
	})
	if !slices.Contains(m.known, o.ID) {
		m.known = append(m.known, o.ID)
	}
}

func (m *machine) charges(t *rapid.T) []store.Charge {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) store.Charge {
		return store.Charge{
			Key:    rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key"),
			Amount: rapid.Int64Range(-3, 10).Draw(t, "amount"),
			Reset:  rapid.IntRange(0, 9).Draw(t, "reset") == 0,
		}
	}), 0, 3).Draw(t, "charges")
}

func (m *machine) some(t *rapid.T) approval.ID {
	if len(m.known) == 0 {
		t.Skip("no request yet")
	}
	return rapid.SampledFrom(m.known).Draw(t, "id")
}

func (m *machine) change(t *rapid.T, what string, move store.Move) {
	id, charges := m.some(t), m.charges(t)
	both(m, what, func(s store.Store) (*approval.Request, error) { return s.Change(t.Context(), id, move, charges...) })
}

func (m *machine) decide(t *rapid.T) {
	who := identity.Human{ID: rapid.SampledFrom([]string{"ben", "cy", "ana"}).Draw(t, "who"), Groups: []string{"ops"}, Strength: identity.Session}
	yes := rapid.Bool().Draw(t, "yes")
	m.change(t, "decide", func(r *approval.Request, now time.Time) (ledger.Event, error) {
		return r.Decide(approval.Decision{By: who, Approve: yes, Digest: r.Digest, Reason: "why"}, now)
	})
}

func (m *machine) attach(t *rapid.T) {
	m.change(t, "attach", func(r *approval.Request, _ time.Time) (ledger.Event, error) { return r.Attach("s1") })
}

func (m *machine) move(t *rapid.T) {
	result := rapid.SampledFrom([][]byte{nil, []byte("short"), slices.Repeat([]byte("long"), 1000)}).Draw(t, "result")
	amended, err := call.New("bank", "pay", fmt.Appendf(nil, `{"x":"%0*d"}`, rapid.SampledFrom([]int{1, 3000}).Draw(t, "size"), 7))
	m.ok(err)
	moves := map[string]store.Move{
		"claim": claim("c"), "finish": Finish("c", result), "cancel": cancel, "expire": expire,
		"extend": func(r *approval.Request, now time.Time) (ledger.Event, error) { return r.Extend(Ben, now) },
		"lose":   func(r *approval.Request, now time.Time) (ledger.Event, error) { return r.Lose(approval.ByCrash, now) },
		"pickup": func(r *approval.Request, now time.Time) (ledger.Event, error) { return r.PickUp(now) },
		"amend": func(r *approval.Request, now time.Time) (ledger.Event, error) {
			return r.Amend(Ben, r.Digest, amended, r.Verdict, now)
		},
		"resolve": func(r *approval.Request, now time.Time) (ledger.Event, error) {
			return r.Resolve(Ben, approval.Errored, "looked", now)
		},
	}
	names := []string{"claim", "claim", "finish", "finish", "cancel", "expire", "extend", "lose", "pickup", "amend", "resolve"}
	name := rapid.SampledFrom(names).Draw(t, "move")
	m.change(t, name, moves[name])
}

func (m *machine) time(t *rapid.T) {
	m.wall.Move(time.Duration(rapid.Int64Range(1, int64(30*time.Minute)).Draw(t, "passes")))
}

func (m *machine) list(t *rapid.T) {
	f := store.Filter{
		States: rapid.SliceOfN(rapid.SampledFrom(approval.States), 0, 3).Draw(t, "states"),
		Agent:  rapid.SampledFrom([]string{"", "", "bot", "BOT"}).Draw(t, "agent"),
		Server: rapid.SampledFrom([]string{"", "", "shop", "bank"}).Draw(t, "server"),
		Tiers:  rapid.SliceOfN(rapid.Uint8Range(0, 5), 0, 2).Draw(t, "tiers"),
		Order:  rapid.SampledFrom([]store.Order{store.NewestFirst, store.DeadlineFirst}).Draw(t, "order"),
		Limit:  rapid.IntRange(0, 5).Draw(t, "limit"),
	}
	if rapid.Bool().Draw(t, "by call") {
		f.CallHash = Opening(rapid.IntRange(0, 60).Draw(t, "n")).Call.Hash()
	}
	if rapid.Bool().Draw(t, "since") {
		f.Since = m.wall.Now().Add(-time.Hour)
	}
	if len(m.known) > 0 && rapid.Bool().Draw(t, "after") {
		if r, err := m.plain.Get(t.Context(), m.some(t)); err == nil {
			f.After = f.Order.Place(r)
		}
	}
	both(m, fmt.Sprintf("list %+v", f), func(s store.Store) (out []*approval.Request, err error) {
		for r, err := range s.List(t.Context(), f) {
			if err != nil {
				return nil, err
			}
			out = append(out, r)
		}
		return out, nil
	})
}

func (m *machine) find(t *rapid.T) {
	id := m.some(t)
	both(m, "get", func(s store.Store) (*approval.Request, error) { return s.Get(t.Context(), id) })
	key := rapid.SampledFrom([]string{"", "k1", "k2", "K1"}).Draw(t, "key")
	both(m, "by key", func(s store.Store) (*approval.Request, error) { return s.ByKey(t.Context(), "bot", key) })
	code := rapid.SampledFrom([]string{"A", "B", "C", "D", ""}).Draw(t, "code")
	both(m, "by code", func(s store.Store) (*approval.Request, error) { return s.ByCode(t.Context(), code) })
}

func (m *machine) due(t *rapid.T) {
	limit := rapid.IntRange(0, 4).Draw(t, "limit")
	both(m, "due", func(s store.Store) ([]approval.ID, error) { return s.Due(t.Context(), s.Now(), limit) })
}

func (m *machine) totals(t *rapid.T) {
	since := m.wall.Now().Add(-time.Duration(rapid.IntRange(0, 120).Draw(t, "minutes")) * time.Minute)
	keys := map[string]time.Time{"a": since, "b": {}}
	if rapid.IntRange(0, 3).Draw(t, "forget") == 0 {
		both(m, "forget", func(s store.Store) (bool, error) { return true, s.Forget(t.Context(), since) })
	}
	both(m, "totals", func(s store.Store) (map[string]int64, error) { return s.Totals(t.Context(), keys) })
}

func (m *machine) record(t *rapid.T) {
	id := rapid.SampledFrom([]string{"x", "X", "y"}).Draw(t, "id")
	value := rapid.SampledFrom([][]byte{nil, {}, []byte("v"), []byte("w")}).Draw(t, "value")
	silent := rapid.Bool().Draw(t, "silent")
	both(m, "update", func(s store.Store) (old []byte, err error) {
		err = s.Update(t.Context(), "pin", id, func(was []byte, _ time.Time) ([]byte, ledger.Event, error) {
			old = slices.Clone(was)
			if silent {
				return value, ledger.Event{}, nil
			}
			return value, fact, nil
		})
		return old, err
	})
	both(m, "load", func(s store.Store) (store.Record, error) { return s.Load(t.Context(), "pin", id) })
	both(m, "records", func(s store.Store) (out []store.Record, err error) {
		for r, err := range s.Records(t.Context(), "pin") {
			if err != nil {
				return nil, err
			}
			out = append(out, r)
		}
		return out, nil
	})
}

func (m *machine) append(t *rapid.T) {
	n := rapid.IntRange(0, 3).Draw(t, "n")
	both(m, "append", func(s store.Store) (bool, error) {
		return true, s.Append(t.Context(), slices.Repeat([]ledger.Event{fact}, n)...)
	})
}

func (m *machine) clean(t *rapid.T) {
	before := m.wall.Now().Add(-time.Duration(rapid.IntRange(0, 60).Draw(t, "minutes")) * time.Minute)
	both(m, "erase", func(s store.Store) (int, error) { return s.EraseResults(t.Context(), before) })
}

// compare runs after every step.
func (m *machine) compare(t *rapid.T) {
	both(m, "head", func(s store.Store) (ledger.Head, error) { return s.Head(t.Context()) })
	both(m, "counts", func(s store.Store) (store.Counts, error) { return s.Counts(t.Context()) })
}

func (m *machine) ledgers() {
	both(m, "entries", func(s store.Store) (out []string, err error) {
		for line, err := range s.Entries(m.t.Context(), 0) {
			if err != nil {
				return nil, err
			}
			out = append(out, string(line))
		}
		return out, nil
	})
}
