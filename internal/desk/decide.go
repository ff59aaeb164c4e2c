package desk

import (
	"context"
	"errors"
	"time"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/identity"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/policy"
	"github.com/ayegate/ayegate/internal/store"
)

// Decide records a person's word. When the policy changed since the person
// looked, the request is judged again first and the decision is stale: what is
// decided is always what the policy in force asks about. On an error the request
// is returned as it stands, where it could be read.
func (d *Desk) Decide(ctx context.Context, by identity.Human, id approval.ID, dec approval.Decision) (*approval.Request, error) {
	if by.IsZero() {
		return nil, approval.ErrNoPerson
	}
	dec.By = by
	r, err := d.refresh(ctx, id)
	if err != nil {
		return r, err
	}
	charges := d.decisionCharges(r, dec)
	r, err = d.change(ctx, id, func(r *approval.Request, now time.Time) (ledger.Event, error) {
		return r.Decide(dec, now)
	}, charges...)
	switch {
	case errors.Is(err, approval.ErrExpired):
		return d.expire(ctx, id, err)
	case errors.Is(err, store.ErrInDoubt) && r != nil && recorded(r, dec):
		err = nil // the reply was lost, the decision was not
	case err != nil:
		return d.with(ctx, id, err)
	}
	if !dec.Approve && err == nil {
		d.afterDenial(ctx, r)
	}
	return r, err
}

// recorded reports whether a decision is on a request.
func recorded(r *approval.Request, dec approval.Decision) bool {
	for _, have := range r.Decisions {
		if !have.Void && have.By.ID == dec.By.ID && have.Approve == dec.Approve && have.Digest == dec.Digest {
			return true
		}
	}
	return false
}

// refresh judges an open request again when the policy in force is another one
// than the request was judged by.
func (d *Desk) refresh(ctx context.Context, id approval.ID) (*approval.Request, error) {
	r, err := d.store.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	if !r.State.Open() || r.Verdict.Revision == d.policy.Load().Revision() {
		return r, nil
	}
	v, _, settle, err := d.judge(ctx, r.From, r.Call, d.tool(r))
	if err != nil {
		return r, err
	}
	defer settle()
	r, err = d.change(ctx, id, func(r *approval.Request, now time.Time) (ledger.Event, error) {
		return r.Rejudge(v, now)
	})
	if errors.Is(err, approval.ErrNotPending) {
		return d.with(ctx, id, nil)
	}
	return r, err
}

// tool is what the desk knows now of the tool a request was made for.
func (d *Desk) tool(r *approval.Request) Tool {
	t := Tool{Definition: r.Definition}
	if pin, ok := d.pins.get(r.Call.Server(), r.Call.Tool()); ok {
		t.Definition, t.Hints, t.Known = pin.Definition, pin.hints(), pin.Accepted
	}
	return t
}

// with returns the request as it stands beside an error.
func (d *Desk) with(ctx context.Context, id approval.ID, err error) (*approval.Request, error) {
	r, readErr := d.store.Get(context.WithoutCancel(ctx), id)
	return r, errors.Join(err, readErr)
}

// expire makes a passed deadline stick, whoever met it first.
func (d *Desk) expire(ctx context.Context, id approval.ID, err error) (*approval.Request, error) {
	r, expErr := d.change(ctx, id, func(r *approval.Request, now time.Time) (ledger.Event, error) {
		return r.Expire(now)
	})
	if expErr != nil {
		return d.with(ctx, id, err)
	}
	return r, err
}

// decisionCharges counts denials in a row; one approval starts the row anew.
func (d *Desk) decisionCharges(r *approval.Request, dec approval.Decision) []store.Charge {
	f := d.facts(r.From, d.tool(r))
	var out []store.Charge
	for _, ch := range d.policy.Load().Charges(r.Call, f) {
		if ch.Kind == policy.Denials {
			out = append(out, store.Charge{Key: ch.Key, Amount: ch.Amount, Reset: dec.Approve})
		}
	}
	return out
}

// afterDenial pauses the session when a limit on denials is reached. The denial
// itself stands whatever happens here.
func (d *Desk) afterDenial(ctx context.Context, r *approval.Request) {
	v, _, settle, err := d.judge(ctx, r.From, r.Call, d.tool(r))
	if err != nil {
		d.log.Error("limits after a denial could not be judged", "request", r.ID, "err", err)
		return
	}
	settle()
	if v.Pause {
		if err := d.pauseSession(ctx, r.From, v.Rule); err != nil {
			d.log.Error("session could not be paused", "request", r.ID, "err", err)
		}
	}
}

// Extend gives people more time.
func (d *Desk) Extend(ctx context.Context, by identity.Human, id approval.ID) (*approval.Request, error) {
	return d.change(ctx, id, func(r *approval.Request, now time.Time) (ledger.Event, error) { return r.Extend(by, now) })
}

// Revoke ends an open request by a person, also an approved one.
func (d *Desk) Revoke(ctx context.Context, by identity.Human, id approval.ID) (*approval.Request, error) {
	if by.IsZero() {
		return nil, approval.ErrNoPerson
	}
	return d.change(ctx, id, func(r *approval.Request, now time.Time) (ledger.Event, error) {
		if err := approval.Entitled(r.Verdict.Of, by, r.From, false); err != nil && by.Subject() != r.From.Owner {
			return ledger.Event{}, err
		}
		return r.Cancel(human(by), approval.ByPerson, now)
	})
}

// Withdraw ends an agent's own open request. Once it was claimed it is too late:
// [approval.ErrClaimed].
func (d *Desk) Withdraw(ctx context.Context, from identity.Agent, id approval.ID) (*approval.Request, error) {
	return d.change(ctx, id, func(r *approval.Request, now time.Time) (ledger.Event, error) {
		if !owns(from, r) {
			return ledger.Event{}, store.ErrNotFound
		}
		return r.Cancel(agent(from), approval.ByAgent, now)
	})
}

// Resolve is a person's word on an unknown outcome.
func (d *Desk) Resolve(ctx context.Context, by identity.Human, id approval.ID, o approval.Outcome, note string) (*approval.Request, error) {
	return d.change(ctx, id, func(r *approval.Request, now time.Time) (ledger.Event, error) {
		return r.Resolve(by, o, clip(note, 2000), now)
	})
}

// void cancels every open request that match selects.
func (d *Desk) void(ctx context.Context, why approval.Cause, f store.Filter) (int, error) {
	f.States = []approval.State{approval.Pending, approval.Approved}
	var ids []approval.ID
	for r, err := range d.store.List(ctx, f) {
		if err != nil {
			return 0, err
		}
		ids = append(ids, r.ID)
	}
	for i, id := range ids {
		_, err := d.change(ctx, id, func(r *approval.Request, now time.Time) (ledger.Event, error) {
			return r.Cancel(system(), why, now)
		})
		if err != nil && !errors.Is(err, approval.ErrClaimed) && !errors.Is(err, approval.ErrEnded) {
			return i, err
		}
	}
	return len(ids), nil
}

// definitionOf is the tool's definition as it stands now; a request whose tool
// is not pinned keeps its own.
func (d *Desk) definitionOf(r *approval.Request) call.Hash { return d.tool(r).Definition }
