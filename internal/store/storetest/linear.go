package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/identity"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/store"
)

// What clients do to one request, and what they were told.
type (
	action struct {
		do string // "approve", "deny", "claim", "read"
		by string // the person, or the claim's id
		on approval.ID
	}
	answer struct {
		state approval.State // that was read or made
		claim string
		err   error
	}
)

// oneRequest is what a request with a quorum of one is to somebody who sees only
// decisions, claims and states.
var oneRequest = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		by := map[approval.ID][]porcupine.Operation{}
		for _, op := range history {
			id := op.Input.(action).on
			by[id] = append(by[id], op)
		}
		var out [][]porcupine.Operation
		for _, ops := range by {
			out = append(out, ops)
		}
		return out
	},
	Init: func() any { return answer{state: approval.Pending} },
	Step: func(state, input, output any) (bool, any) {
		was, in, out := state.(answer), input.(action), output.(answer)
		next := was
		var err error
		switch {
		case in.do == "read":
		case in.do == "claim" && was.state == approval.Approved:
			next = answer{state: approval.Executing, claim: in.by}
		case in.do == "claim" && was.state == approval.Executing:
			err = approval.ErrClaimed
		case in.do == "claim" && was.state == approval.Denied:
			err = approval.ErrEnded
		case in.do == "claim":
			err = approval.ErrNotApproved
		case was.state != approval.Pending:
			err = approval.ErrDecided
		case in.do == "approve":
			next.state = approval.Approved
		case in.do == "deny":
			next.state = approval.Denied
		}
		if err != nil || out.err != nil {
			return errors.Is(out.err, err) && err != nil, was
		}
		return out == next, next
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
}

// history lets clients loose on a few requests and returns what they saw. It is
// also run on a store that is broken on purpose.
func history(t *testing.T, s store.Store, round int) []porcupine.Operation {
	const clients, each, requests = 8, 24, 3
	digests := map[approval.ID]*approval.Request{}
	var targets []approval.ID
	for n := range requests {
		r, e := approval.Open(Opening(round*requests+n), s.Now())
		if err := s.Create(t.Context(), r, []ledger.Event{e}); err != nil {
			t.Fatal(err)
		}
		digests[r.ID], targets = r, append(targets, r.ID)
	}
	var mu sync.Mutex
	var ops []porcupine.Operation
	var clock atomic.Int64 // orders calls and returns
	var all sync.WaitGroup
	for client := range clients {
		all.Go(func() {
			for i := range each {
				in := action{do: "read", on: targets[i/8]}
				in.by = fmt.Sprintf("%d-%d", client, i)
				if j := (client*7 + i*5 + round) % 8; j < 4 {
					in.do = []string{"approve", "deny", "claim", "claim"}[j]
				}
				call := clock.Add(1)
				out := act(t.Context(), s, in, digests[in.on])
				back := clock.Add(1)
				mu.Lock()
				ops = append(ops, porcupine.Operation{ClientId: client, Input: in, Call: call, Output: out, Return: back})
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return ops
}

func act(ctx context.Context, s store.Store, in action, asked *approval.Request) answer {
	who := identity.Human{ID: in.by, Strength: identity.Session}
	var r *approval.Request
	var err error
	switch in.do {
	case "read":
		r, err = s.Get(ctx, in.on)
	case "approve":
		r, err = s.Change(ctx, in.on, approve(who, asked.Digest))
	case "deny":
		r, err = s.Change(ctx, in.on, deny(who, asked.Digest))
	case "claim":
		r, err = s.Change(ctx, in.on, claim(in.by))
	}
	if err != nil {
		return answer{err: err}
	}
	return answer{state: r.State, claim: r.Claimed.ID}
}

// linearizable: decisions, claims and readings of a request happen as if one
// after the other, each between its call and its return. RACE-01, RACE-02.
func linearizable(t *testing.T, open Open) {
	s := open(t, Env{Dir: t.TempDir(), Wall: NewWall()})
	defer s.Close()
	for round := range 20 {
		if !porcupine.CheckOperations(oneRequest, history(t, s, round)) {
			t.Fatalf("round %d cannot be put in an order", round)
		}
	}
	Consistent(t, s)
}

// CatchesLostUpdates proves that the check of linearizability bites: it must
// reject s when its changes are read, made and written in three steps.
func CatchesLostUpdates(t *testing.T, s store.Store) {
	for round := range 100 {
		if !porcupine.CheckOperations(oneRequest, history(t, forgetful{s}, round)) {
			return
		}
	}
	t.Fatal("a store that loses updates passed 100 rounds")
}

// forgetful is broken: between its reading and its writing others may write.
type forgetful struct{ store.Store }

func (f forgetful) Change(ctx context.Context, id approval.ID, move store.Move, charges ...store.Charge) (*approval.Request, error) {
	stale, err := f.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	e, err := move(stale, f.Now())
	if err != nil || e.IsZero() {
		return stale, err
	}
	return f.Store.Change(ctx, id, func(r *approval.Request, _ time.Time) (ledger.Event, error) {
		*r = *stale
		return e, nil
	}, charges...)
}
