package desk

import (
	"context"
	"errors"
	"fmt"

	"github.com/ayegate/ayegate/api"
	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/identity"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/policy"
	"github.com/ayegate/ayegate/internal/store"
)

// Ask is a call that an agent wants to happen.
type Ask struct {
	From identity.Agent
	Call call.Call
	Tool Tool
	// Executor says who performs the effect. The zero value is refused.
	Executor approval.Executor
	// Key is the asker's idempotency key: same key and call, same request.
	Key string
	// Distinct is the client's own id of this use of the tool, where it has one:
	// two equal calls in flight with different ids are two requests.
	Distinct string
	// Run and Reason are labels of the agent, shown as unchecked.
	Run, Reason string
}

// Ticket is what a submitted call became.
type Ticket struct {
	Request *approval.Request
	// Claim is set when the call was allowed and this ticket holds its claim: the
	// intent is durable, [Desk.Execute] may start.
	Claim string
	// Attached says that the request existed before: this is a re-issue.
	Attached bool
}

// Refusal is a call that was refused without a request of its own. Nothing ran.
type Refusal struct {
	Code   api.Code
	Of     *approval.Request // the earlier request it repeats, when there is one
	Limit  string            // the rule or limit behind it, when there is one
	Detail string
}

func (e *Refusal) Error() string { return string(e.Code) + ": " + e.Detail }

// Errors of asking.
var (
	ErrNoAgent    = errors.New("only a verified agent may ask")
	ErrNoExecutor = errors.New("the call does not say who executes it")
	ErrKeyReused  = errors.New("the key was used for another call")
	ErrHeldTool   = errors.New("the tool's definition changed and waits for a person's acceptance")
)

// Submit judges a call and makes it a request: denied, held, allowed or, where
// the same call is open already, joined to it. An error or a [Refusal] means that
// nothing ran and nothing will.
func (d *Desk) Submit(ctx context.Context, a Ask) (*Ticket, error) {
	switch {
	case a.From.IsZero():
		return nil, ErrNoAgent
	case a.Call.IsZero():
		return nil, errors.New("desk: no call")
	case a.Executor != approval.Gateway && a.Executor != approval.Caller:
		return nil, ErrNoExecutor
	case d.paused.Load():
		return nil, &Refusal{Code: api.SessionPaused, Detail: "all agents are paused"}
	}
	if a.Key != "" {
		if t, err := d.byKey(ctx, a); t != nil || err != nil {
			return t, err
		}
	}
	v, charges, settle, err := d.judge(ctx, a.From, a.Call, a.Tool)
	if err != nil {
		return nil, err
	}
	defer settle()
	if v.Pause {
		if err := d.pauseSession(ctx, a.From, v.Rule); err != nil {
			return nil, err
		}
	}
	if err := d.mayAsk(ctx, a.From, v); err != nil {
		return nil, err
	}
	switch v.Effect {
	case policy.Allow:
		return d.allow(ctx, a, v, charges)
	case policy.Ask:
		return d.ask(ctx, a, v, charges)
	case policy.Deny:
	}
	return d.create(ctx, a, v, nil)
}

func (d *Desk) byKey(ctx context.Context, a Ask) (*Ticket, error) {
	r, err := d.store.ByKey(ctx, a.From.ID, a.Key)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case !owns(a.From, r):
		return nil, store.ErrNotFound
	case r.Call.Hash() != a.Call.Hash():
		return nil, ErrKeyReused
	}
	return &Ticket{Request: r, Attached: true}, nil
}

// allow opens a request that a rule allows. Where the gateway executes, the
// claim is part of the same commit.
func (d *Desk) allow(ctx context.Context, a Ask, v policy.Verdict, charges []policy.Charge) (*Ticket, error) {
	if a.Executor != approval.Gateway {
		return d.create(ctx, a, v, charged(charges, policy.Count))
	}
	return d.create(ctx, a, v, append(charged(charges, policy.Count), charged(charges, policy.Sum)...))
}

// create opens and stores a request. Short codes are tried until one is free.
func (d *Desk) create(ctx context.Context, a Ask, v policy.Verdict, charges []store.Charge) (*Ticket, error) {
	id, err := d.newUUID()
	if err != nil {
		return nil, err
	}
	salt, err := d.bytes(ledger.MinSalt)
	if err != nil {
		return nil, err
	}
	var claim string
	if v.Effect == policy.Allow && a.Executor == approval.Gateway {
		if claim, err = d.newUUID(); err != nil {
			return nil, err
		}
	}
	for try := range 8 {
		code, err := d.newCode(4 + try/3)
		if err != nil {
			return nil, err
		}
		now := d.store.Now()
		r, asked := approval.Open(approval.Opening{
			ID: approval.ID(id), Code: code, From: a.From, Run: a.Run, Reason: a.Reason, Key: a.Key, Distinct: a.Distinct,
			Executor: a.Executor, Call: a.Call, Definition: a.Tool.Definition, Salt: salt, Verdict: v,
		}, now)
		events := []ledger.Event{asked}
		if claim != "" {
			claimed, err := r.Claim(approval.Claim{ID: claim, Holder: d.holder, TokenID: id}, v, a.Tool.Definition, now)
			if err != nil {
				return nil, err
			}
			events = append(events, claimed)
		}
		err = d.store.Create(ctx, r, events, charges...)
		if errors.Is(err, store.ErrInDoubt) && d.created(ctx, r) {
			err = nil // the reply was lost, the request was not
		}
		if errors.Is(err, store.ErrCode) {
			continue
		}
		if errors.Is(err, store.ErrExists) && a.Key != "" {
			return d.byKey(ctx, a) // two askers with one key: the other was first
		}
		if err != nil {
			return nil, fmt.Errorf("not recorded, so nothing ran: %w", err)
		}
		if claim != "" && d.paused.Load() {
			return nil, d.unclaim(ctx, r)
		}
		return &Ticket{Request: r, Claim: claim}, nil
	}
	return nil, fmt.Errorf("no free short code, so nothing ran: %w", store.ErrCode)
}

// created re-reads after a lost reply whether a request is there.
func (d *Desk) created(ctx context.Context, r *approval.Request) bool {
	have, err := d.store.Get(context.WithoutCancel(ctx), r.ID)
	return err == nil && have.Claimed.ID == r.Claimed.ID
}

// unclaim gives back a claim that met the kill switch between judging and
// committing: nothing was sent.
func (d *Desk) unclaim(ctx context.Context, r *approval.Request) error {
	_, err := d.finish(ctx, r.ID, r.Claimed.ID, approval.Execution{Outcome: approval.NotSent, Error: "paused"}, "")
	return errors.Join(&Refusal{Code: api.SessionPaused, Detail: "all agents are paused"}, err)
}
