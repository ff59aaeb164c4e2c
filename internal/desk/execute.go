package desk

import (
	"context"
	"crypto/sha256"
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

// Result is what a tool answered: bytes that nobody interprets here.
type Result struct {
	Bytes   []byte
	IsError bool // the tool says that it failed
}

// Do performs the effect: it sends exactly the call's canonical arguments, once,
// with the claim's id as idempotency key where the tool takes one.
//
// An error that wraps [ErrNotSent] promises that nothing reached the tool. After
// any other error nobody can know.
type Do func(ctx context.Context, c call.Call, claim string) (Result, error)

// Errors of the effect. A Do wraps one of them.
var (
	ErrNotSent  = errors.New("nothing was sent to the tool")
	ErrNoAnswer = errors.New("the tool did not answer in time")
	ErrTooLarge = errors.New("the tool's answer was too large")
)

// Execute runs an approved request once and returns what became of it, with the
// result where there is one. Whoever comes second, because another asker of the
// same request holds the claim, waits for the first one's outcome and gets that.
// The effect and its record do not depend on ctx being alive at the end: an asker
// that hangs up does not undo a call that was sent.
func (d *Desk) Execute(ctx context.Context, from identity.Agent, t *Ticket, do Do) (*approval.Request, Result, error) {
	if t.Claim != "" {
		return d.run(ctx, t.Request, t.Claim, do)
	}
	r, claim, err := d.claim(ctx, from, t.Request.ID, approval.Claim{Holder: d.holder})
	if errors.Is(err, approval.ErrClaimed) {
		r, err = d.await(ctx, from, t.Request.ID, func(s approval.State) bool { return s != approval.Executing })
		return r, resultOf(r), err
	}
	if err != nil {
		return r, Result{}, err
	}
	return d.run(ctx, r, claim, do)
}

// resultOf is the recorded result of a request.
func resultOf(r *approval.Request) Result {
	if r == nil {
		return Result{}
	}
	return Result{Bytes: r.Execution.Result, IsError: r.Execution.Outcome == approval.Errored}
}

// claim judges again and takes the right to run. What stands in the way becomes
// the request's state, so that the asker and the people see the same reason.
func (d *Desk) claim(ctx context.Context, from identity.Agent, id approval.ID, c approval.Claim) (*approval.Request, string, error) {
	r, err := d.GetOwn(ctx, from, id)
	if err != nil {
		return nil, "", err
	}
	if d.paused.Load() {
		return r, "", &Refusal{Code: api.SessionPaused, Of: r, Detail: "all agents are paused"}
	}
	v, charges, settle, err := d.judge(ctx, r.From, r.Call, d.tool(r))
	if err != nil {
		return r, "", err
	}
	defer settle()
	if c.ID, err = d.newUUID(); err != nil {
		return r, "", err
	}
	if c.TokenID == "" {
		if c.TokenID, err = d.newUUID(); err != nil {
			return r, "", err
		}
	}
	r, err = d.change(ctx, id, func(r *approval.Request, now time.Time) (ledger.Event, error) {
		if d.paused.Load() {
			return ledger.Event{}, &Refusal{Code: api.SessionPaused, Of: r, Detail: "all agents are paused"}
		}
		return r.Claim(c, v, d.definitionOf(r), now)
	}, charged(charges, policy.Sum)...)
	if errors.Is(err, store.ErrInDoubt) && r != nil && r.Claimed.ID == c.ID {
		err = nil // committed: the claim is ours
	}
	if err != nil {
		r, err = d.blocked(ctx, id, v, err)
		return r, "", err
	}
	return r, c.ID, nil
}

// blocked turns a claim that the world no longer allows into the state it means.
func (d *Desk) blocked(ctx context.Context, id approval.ID, v policy.Verdict, why error) (*approval.Request, error) {
	var move store.Move
	switch {
	case errors.Is(why, approval.ErrExpired):
		return d.expire(ctx, id, why)
	case errors.Is(why, approval.ErrPolicyDenies):
		move = func(r *approval.Request, now time.Time) (ledger.Event, error) { return r.Refuse(v, now) }
	case errors.Is(why, approval.ErrStricter):
		move = func(r *approval.Request, now time.Time) (ledger.Event, error) {
			return r.Cancel(system(), approval.ByRejudging, now)
		}
	case errors.Is(why, approval.ErrDefinition):
		move = func(r *approval.Request, now time.Time) (ledger.Event, error) {
			return r.Cancel(system(), approval.ByDefinition, now)
		}
	default:
		return d.with(ctx, id, why)
	}
	r, err := d.change(ctx, id, move)
	if err != nil {
		return d.with(ctx, id, errors.Join(why, err))
	}
	return r, why
}

// run performs a claimed effect and records its outcome.
func (d *Desk) run(ctx context.Context, r *approval.Request, claim string, do Do) (*approval.Request, Result, error) {
	res, err := do(ctx, r.Call, claim)
	e, why := execution(res, err)
	if !keeps(r) {
		e.Result = nil
	}
	r, err = d.finish(context.WithoutCancel(ctx), r.ID, claim, e, why)
	return r, res, err
}

// keeps reports whether the result may have to be handed out again. What a rule
// allowed can be asked anew; what a person approved cannot.
func keeps(r *approval.Request) bool {
	return r.Quorum() > 0 || r.Key != "" || r.Executor == approval.Caller
}

// execution says what an effect came to; why explains a doubt.
func execution(res Result, err error) (e approval.Execution, why approval.Cause) {
	switch {
	case err == nil:
		e = approval.Execution{Outcome: approval.Succeeded, Hash: sha256.Sum256(res.Bytes), Size: len(res.Bytes), Result: res.Bytes}
		if res.IsError {
			e.Outcome = approval.Errored
		}
		return e, ""
	case errors.Is(err, ErrNotSent):
		return approval.Execution{Outcome: approval.NotSent, Error: clip(err.Error(), 2000)}, ""
	case errors.Is(err, ErrNoAnswer):
		why = approval.ByTimeout
	case errors.Is(err, ErrTooLarge):
		why = approval.BySize
	default:
		why = approval.ByTransport
	}
	return approval.Execution{Outcome: approval.InDoubt}, why
}

// finish records an outcome and does not give up at once: a store that hiccups
// here would leave a finished call as one nobody knows about.
func (d *Desk) finish(ctx context.Context, id approval.ID, claim string, e approval.Execution, why approval.Cause) (*approval.Request, error) {
	move := func(r *approval.Request, now time.Time) (ledger.Event, error) {
		switch {
		case r.Claimed.ID != claim:
			return ledger.Event{}, approval.ErrWrongClaim
		case r.State.Final(), r.State == approval.Unknown && e.Outcome == approval.InDoubt:
			return ledger.Event{}, nil // an earlier try was committed after all
		case e.Outcome == approval.InDoubt:
			return r.Lose(why, now)
		}
		return r.Finish(claim, e, now)
	}
	wait := 10 * time.Millisecond
	for {
		r, err := d.change(ctx, id, move)
		if err == nil || !errors.Is(err, store.ErrInDoubt) && !errors.Is(err, store.ErrUnavailable) || wait > time.Second {
			if err != nil {
				return r, fmt.Errorf("%w: %w", ErrNotRecorded, err)
			}
			return r, nil
		}
		pause := time.NewTimer(wait)
		select {
		case <-pause.C:
			wait *= 2
		case <-ctx.Done():
			pause.Stop()
			return r, ctx.Err()
		}
	}
}

// ErrNotRecorded says that an effect may have happened and its outcome could not
// be written: the request stays executing until recovery calls it unknown.
var ErrNotRecorded = errors.New("the outcome could not be recorded")

// PickedUp notes that the asker received the outcome of an approved call.
func (d *Desk) PickedUp(ctx context.Context, id approval.ID) error {
	_, err := d.change(context.WithoutCancel(ctx), id, func(r *approval.Request, now time.Time) (ledger.Event, error) {
		return r.PickUp(now)
	})
	return err
}
