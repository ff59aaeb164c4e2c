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
	r, err = d.change(ctx, id, func(r *approval.Request, now time.Time) (ledger.Event, error) {
		return r.Decide(dec, now)
	}, d.decisionCharges(r, dec)...)
	d.tallies.moved()
	err = certain(r, err, func(r *approval.Request) bool { return recorded(r, dec) })
	switch {
	case errors.Is(err, approval.ErrExpired):
		return d.expire(ctx, id, err)
	case err != nil:
		return d.with(ctx, id, err)
	}
	if !dec.Approve {
		d.afterDenial(ctx, r)
	}
	return r, nil
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
	v, err := d.judgeAgain(ctx, r, deciding)
	if err != nil {
		return r, err
	}
	r, err = d.change(ctx, id, func(r *approval.Request, now time.Time) (ledger.Event, error) {
		return r.Rejudge(v.Verdict, now)
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
	ctx, cancel := outlast(ctx)
	defer cancel()
	r, readErr := d.store.Get(ctx, id)
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
// itself stands whatever happens here, and the next call of the session is judged
// by the same limit.
func (d *Desk) afterDenial(ctx context.Context, r *approval.Request) {
	v, err := d.judgeAgain(ctx, r, deciding)
	if err == nil && v.Pause {
		err = d.pauseSession(ctx, r.From, v)
	}
	if err != nil {
		d.log.Error("a denial did not pause its session yet", "request", r.ID, "err", err)
	}
}

// Explain tells a person what the policy in force says of a call that from would
// ask for at this moment. It counts for no limit and leaves no trace.
func (d *Desk) Explain(ctx context.Context, by identity.Human, from identity.Agent, c call.Call) (policy.Verdict, error) {
	if by.IsZero() {
		return policy.Verdict{}, approval.ErrNoPerson
	}
	t, _ := d.Tool(c.Server(), c.Tool())
	v, err := d.judge(ctx, from, c, t, looking, time.Time{})
	return v.Verdict, err
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
	r, err := d.change(ctx, id, func(r *approval.Request, now time.Time) (ledger.Event, error) {
		if err := approval.Entitled(r.Verdict.Of, by, r.From, false); err != nil && by.Subject() != r.From.Owner {
			return ledger.Event{}, err
		}
		return r.Cancel(human(by), approval.ByPerson, now)
	})
	return r, certain(r, err, isCancelled)
}

// Withdraw ends an agent's own open request. Once it was claimed it is too late:
// [approval.ErrClaimed].
func (d *Desk) Withdraw(ctx context.Context, from identity.Agent, id approval.ID) (*approval.Request, error) {
	r, err := d.change(ctx, id, func(r *approval.Request, now time.Time) (ledger.Event, error) {
		if !owns(from, r) {
			return ledger.Event{}, store.ErrNotFound
		}
		return r.Cancel(agent(from), approval.ByAgent, now)
	})
	return r, certain(r, err, isCancelled)
}

func isCancelled(r *approval.Request) bool { return r.State == approval.Cancelled }

// Resolve is a person's word on an unknown outcome.
func (d *Desk) Resolve(ctx context.Context, by identity.Human, id approval.ID, o approval.Outcome, note string) (*approval.Request, error) {
	r, err := d.change(ctx, id, func(r *approval.Request, now time.Time) (ledger.Event, error) {
		return r.Resolve(by, o, clip(note, 2000), now)
	})
	return r, certain(r, err, func(r *approval.Request) bool {
		return r.State.Final() && r.Execution.Outcome == o && r.Execution.By == by.Subject()
	})
}

// void cancels every open request that f and which select. One that cannot be changed does
// not keep the others open.
func (d *Desk) void(ctx context.Context, why approval.Cause, f store.Filter, which func(*approval.Request) bool) (n int, err error) {
	f.States = []approval.State{approval.Pending, approval.Approved}
	var ids []approval.ID
	for r, err := range d.store.List(ctx, f) {
		if err != nil {
			return 0, err
		}
		if which(r) {
			ids = append(ids, r.ID)
		}
	}
	var errs []error
	for _, id := range ids {
		r, err := d.change(ctx, id, func(r *approval.Request, now time.Time) (ledger.Event, error) {
			return r.Cancel(system(), why, now)
		})
		err = certain(r, err, isCancelled)
		switch {
		case err == nil:
			n++
		case !errors.Is(err, approval.ErrClaimed) && !errors.Is(err, approval.ErrEnded):
			errs = append(errs, err)
		}
	}
	return n, errors.Join(errs...)
}
