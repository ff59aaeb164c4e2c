package desk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

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
	// Extra is what is sent beside the call, canonical JSON; nil when nothing is. An
	// equal call with other extras is another request.
	Extra []byte
	Tool  Tool
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
	// intent is durable, [Desk.Execute] may start it, once, within a minute.
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
		return nil, allPaused(nil)
	}
	if a.Key != "" {
		if t, err := d.byKey(ctx, a); t != nil || err != nil {
			return t, err
		}
	}
	out, err := d.inForce.pass(ctx)
	if err != nil {
		return nil, err
	}
	defer out()
	if err := d.offered(a); err != nil {
		return nil, err
	}
	v, err := d.judge(ctx, a.From, a.Call, a.Tool, asking, time.Time{})
	if err != nil {
		return nil, err
	}
	defer v.settle()
	if err := d.mayStart(ctx, a.From, v); err != nil {
		return nil, err
	}
	switch v.Effect {
	case policy.Allow:
		return d.allow(ctx, a, v)
	case policy.Ask:
		return d.ask(ctx, a, v)
	case policy.Deny:
	}
	if t, err := d.rejoin(ctx, a, v); t != nil || err != nil {
		return t, err
	}
	return d.create(ctx, a, v.Verdict, nil)
}

func allPaused(of *approval.Request) *Refusal {
	return &Refusal{Code: api.SessionPaused, Of: of, Detail: "all agents are paused"}
}

// offered refuses a call to a tool whose pinned definition is not the one that
// the asker saw, or is held (MCP-10).
func (d *Desk) offered(a Ask) error {
	pin, ok := d.pins.get(a.Call.Server(), a.Call.Tool())
	switch {
	case !ok:
		return nil
	case !pin.Accepted:
		return ErrHeldTool
	case pin.Definition != a.Tool.Definition:
		return approval.ErrDefinition
	}
	return nil
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
	case r.Call.Hash() != a.Call.Hash() || !bytes.Equal(r.Extra, a.Extra):
		return nil, ErrKeyReused
	}
	return &Ticket{Request: r, Attached: true}, nil
}

// allow opens a request that a rule allows. Where the gateway executes, the
// claim is part of the same commit.
func (d *Desk) allow(ctx context.Context, a Ask, v judgement) (*Ticket, error) {
	if d.paused.Load() {
		return nil, allPaused(nil)
	}
	if a.Executor != approval.Gateway {
		return d.create(ctx, a, v.Verdict, charged(v.charges, policy.Count))
	}
	return d.create(ctx, a, v.Verdict, charged(v.charges, policy.Count, policy.Sum))
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
			Executor: a.Executor, Call: a.Call, Extra: a.Extra, Definition: a.Tool.Definition, Salt: salt, Verdict: v,
		}, now)
		events := []ledger.Event{asked}
		if claim != "" {
			claimed, err := r.Claim(approval.Claim{ID: claim, Holder: d.holder, TokenID: id}, v, a.Tool.Definition, now)
			if err != nil {
				return nil, err
			}
			events = append(events, claimed)
		}
		ticket, err := d.open(ctx, r, events, charges)
		switch {
		case err == nil:
			return ticket, nil
		case errors.Is(err, store.ErrCode):
			continue
		case errors.Is(err, store.ErrExists) && a.Key != "":
			return d.byKey(ctx, a) // two askers with one key: the other was first
		}
		return nil, fmt.Errorf("not recorded, so nothing ran: %w", err)
	}
	return nil, fmt.Errorf("no free short code, so nothing ran: %w", store.ErrCode)
}

// open stores a new request. When the reply is lost, the store is asked whether
// it is there; a claim that may still turn up is left to the sweeper.
func (d *Desk) open(ctx context.Context, r *approval.Request, events []ledger.Event, charges []store.Charge) (*Ticket, error) {
	claim := r.Claimed.ID
	if claim != "" {
		d.effects.add(claim, r.ID, r.AskedAt)
	}
	err := d.store.Create(ctx, r, events, charges...)
	if errors.Is(err, store.ErrInDoubt) {
		if d.created(ctx, r) {
			err = nil // the reply was lost, the request was not
		} else {
			d.effects.owe(claim, unsent("the store did not confirm the claim"), "")
		}
	} else if err != nil {
		d.effects.forget(claim)
	}
	if err != nil {
		return nil, err
	}
	return &Ticket{Request: r, Claim: claim}, nil
}

// created re-reads after a lost reply whether a request is there.
func (d *Desk) created(ctx context.Context, r *approval.Request) bool {
	late, cancel := outlast(ctx)
	defer cancel()
	have, err := d.store.Get(late, r.ID)
	return err == nil && have.Claimed.ID == r.Claimed.ID
}
