package desk

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/ayegate/ayegate/api"
	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/policy"
	"github.com/ayegate/ayegate/internal/store"
)

// Times that a person's word keeps its meaning for a repeated call.
const (
	deniedFor  = time.Hour        // in the same session: longer than an agent keeps trying
	deniedNext = 10 * time.Minute // in another session of the same agent
	expiredFor = time.Hour        // two expiries within it, and nobody is asked a third time
)

// ask holds a call for people, unless the same call is there already. Only a new
// request is counted by the limits.
func (d *Desk) ask(ctx context.Context, a Ask, v judgement) (*Ticket, error) {
	defer d.twins.lock(a.From.ID + "\x00" + a.Call.Hash().String())()
	if t, err := d.twin(ctx, a); t != nil || err != nil {
		return t, err
	}
	free, err := d.place(ctx, a.From.ID)
	if err != nil {
		return nil, err
	}
	defer free()
	return d.create(ctx, a, v.Verdict, charged(v.charges, policy.Count))
}

// rejoin finds the request that a call repeats which only a limit denies: the
// limit counted the first, and the repetition is no second call.
func (d *Desk) rejoin(ctx context.Context, a Ask, v judgement) (*Ticket, error) {
	if len(v.charges) == 0 || d.withoutLimits(a.From, a.Call, a.Tool).Effect != policy.Ask {
		return nil, nil
	}
	defer d.twins.lock(a.From.ID + "\x00" + a.Call.Hash().String())()
	return d.twin(ctx, a)
}

// twin finds the earlier request that an equal call repeats: one to join, or a
// reason to refuse. Both nil means that the call is new. A call with other extras
// repeats nothing: nobody has seen what it would send.
func (d *Desk) twin(ctx context.Context, a Ask) (*Ticket, error) {
	now := d.store.Now()
	expired := 0
	for r, err := range d.store.List(ctx, store.Filter{
		Agent: a.From.ID, CallHash: a.Call.Hash(), Since: now.Add(-max(deniedFor, expiredFor, d.cfg.Replay) - 24*time.Hour), Limit: 50,
	}) {
		if err != nil {
			return nil, err
		}
		if !owns(a.From, r) || r.Executor != a.Executor || !bytes.Equal(r.Extra, a.Extra) {
			continue
		}
		if r.State == approval.Expired && now.Sub(r.EndedAt) < expiredFor {
			if expired++; expired >= 2 {
				return nil, &Refusal{Code: api.ApprovalExpired, Of: r, Detail: "nobody decided twice; it is not shown again for an hour"}
			}
			continue
		}
		if t, err := d.repeats(ctx, a, r, now); t != nil || err != nil {
			return t, err
		}
	}
	return nil, nil
}

func (d *Desk) repeats(ctx context.Context, a Ask, r *approval.Request, now time.Time) (*Ticket, error) {
	switch r.State {
	case approval.Pending, approval.Approved:
		if !now.Before(r.ExpiresAt) || r.Definition != a.Tool.Definition || d.other(a, r) {
			return nil, nil
		}
		return d.attach(ctx, a, r)
	case approval.Executing:
		if d.other(a, r) {
			return nil, nil
		}
		return &Ticket{Request: r, Attached: true}, nil
	case approval.Unknown:
		return nil, &Refusal{Code: api.OutcomeUnknown, Of: r, Detail: "the same call may have run; a person must look first"}
	case approval.Executed, approval.Failed:
		if r.Quorum() > 0 && r.Execution.PickedUp.IsZero() && now.Sub(r.EndedAt) < d.cfg.Replay && len(r.Execution.Result) > 0 && !d.other(a, r) {
			return d.replay(ctx, a, r)
		}
	case approval.Denied:
		age := now.Sub(r.EndedAt)
		if r.Cause == approval.ByPerson && (age < deniedNext || age < deniedFor && r.From.Session == a.From.Session) {
			return nil, d.refuseRepeat(ctx, a, r)
		}
	case approval.Expired, approval.Cancelled:
	}
	return nil, nil
}

// other reports whether an equal call is a twin and no re-issue: it has a key of
// its own, or the client names its uses of tools, the names differ, and the first
// still waits.
func (d *Desk) other(a Ask, r *approval.Request) bool {
	if a.Key != "" && r.Key != "" && a.Key != r.Key {
		return true
	}
	return a.Distinct != "" && r.Distinct != "" && a.Distinct != r.Distinct && d.waiters.count(r.ID) > 0
}

func (d *Desk) attach(ctx context.Context, a Ask, r *approval.Request) (*Ticket, error) {
	id, asks := r.ID, r.Asks
	r, err := d.change(ctx, id, func(r *approval.Request, _ time.Time) (ledger.Event, error) {
		return r.Attach(a.From.Session)
	})
	err = certain(r, err, func(r *approval.Request) bool { return r.Asks > asks })
	if errors.Is(err, approval.ErrEnded) {
		r, err = d.store.Get(ctx, id) // it ended in this very moment: the asker hears how
	}
	if err != nil {
		return nil, err
	}
	return &Ticket{Request: r, Attached: true}, nil
}

// replay hands out a result that nobody picked up: the agent's stream broke and
// it asks again. That is on the record, and no second run.
func (d *Desk) replay(ctx context.Context, a Ask, r *approval.Request) (*Ticket, error) {
	err := d.store.Append(ctx, ledger.Event{
		Kind: ledger.ResultReplayed, Subject: string(r.ID), Actor: agent(a.From),
		Data: []ledger.Field{
			ledger.String(ledger.FieldResult, ledger.Commit(r.Salt, r.Execution.Hash)),
			ledger.String(ledger.FieldSession, a.From.Session),
		},
	})
	if err != nil {
		return nil, err
	}
	return &Ticket{Request: r, Attached: true}, nil
}

func (d *Desk) refuseRepeat(ctx context.Context, a Ask, r *approval.Request) error {
	err := d.store.Append(ctx, ledger.Event{
		Kind: ledger.CallRepeated, Subject: string(r.ID), Actor: agent(a.From),
		Data: []ledger.Field{ledger.String(ledger.FieldSession, a.From.Session), ledger.String(ledger.FieldCause, "repeat")},
	})
	return errors.Join(&Refusal{Code: api.ToolDenied, Of: r, Detail: "the same call was denied before"}, err)
}
