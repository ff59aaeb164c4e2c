package desk

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

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
	if t.Claim != "" && d.effects.begin(t.Claim) {
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
	if !d.effects.begin(claim) { // it took longer than a claim may
		return r, Result{}, approval.ErrClaimed
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
	if r.State != approval.Approved {
		return r, "", unclaimable(r.State)
	}
	out, err := d.inForce.pass(ctx)
	if err != nil {
		return r, "", err
	}
	defer out()
	if d.paused.Load() {
		return r, "", allPaused(r)
	}
	if d.held(r) {
		return r, "", ErrHeldTool
	}
	v, err := d.judgeAgain(ctx, r, claiming)
	if err != nil {
		return r, "", err
	}
	defer v.settle()
	if err := d.mayStart(ctx, r.From, v); err != nil {
		return r, "", err
	}
	if c.ID, err = d.newUUID(); err != nil {
		return r, "", err
	}
	if c.TokenID, err = d.newUUID(); err != nil {
		return r, "", err
	}
	if r.Executor == approval.Gateway {
		d.effects.add(c.ID, id, d.store.Now())
	}
	r, err = d.change(ctx, id, func(r *approval.Request, now time.Time) (ledger.Event, error) {
		if d.epoch.voids(r) {
			return ledger.Event{}, ErrVoid
		}
		return r.Claim(c, v.Verdict, d.tool(r).Definition, now)
	}, charged(v.charges, policy.Sum)...)
	err = certain(r, err, func(r *approval.Request) bool { return r.Claimed.ID == c.ID })
	switch {
	case errors.Is(err, store.ErrInDoubt):
		d.effects.owe(c.ID, unsent("the store did not confirm the claim"), "")
	case err != nil:
		d.effects.forget(c.ID)
	}
	if err != nil {
		r, err = d.blocked(ctx, id, v.Verdict, err)
		return r, "", err
	}
	return r, c.ID, nil
}

// unclaimable says why a request in a state other than approved is not claimed.
func unclaimable(s approval.State) error {
	r := approval.Request{State: s}
	_, err := r.Claim(approval.Claim{}, policy.Verdict{}, call.Hash{}, time.Time{})
	return err
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
	case errors.Is(why, ErrVoid):
		move = func(r *approval.Request, now time.Time) (ledger.Event, error) {
			return r.Cancel(system(), approval.ByEpoch, now)
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

// run performs a claimed effect and records its outcome. A Do that panics leaves
// an outcome that nobody knows.
func (d *Desk) run(ctx context.Context, r *approval.Request, claim string, do Do) (*approval.Request, Result, error) {
	if d.paused.Load() { // since the claim
		r, err := d.finish(ctx, r.ID, claim, unsent("all agents were paused"), "")
		return r, Result{}, errors.Join(allPaused(r), err)
	}
	e, why := approval.Execution{Outcome: approval.InDoubt}, approval.ByCrash
	returned := false
	defer func() {
		if !returned {
			_, _ = d.finish(ctx, r.ID, claim, e, why) // what cannot be written is owed, and the panic goes on
		}
	}()
	res, err := do(ctx, r.Call, claim)
	returned = true
	e, why = execution(res, err)
	if !keeps(r) {
		e.Result = nil
	}
	r, err = d.finish(ctx, r.ID, claim, e, why)
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

// ending is the move that records an outcome, however often it is tried.
func ending(claim string, e approval.Execution, why approval.Cause) store.Move {
	return func(r *approval.Request, now time.Time) (ledger.Event, error) {
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
}

// finish records an outcome, whether or not the asker is still there, and does
// not give up at once: a store that hiccups here would leave a finished call as
// one nobody knows about. What the store will not take now is left to the sweeper.
func (d *Desk) finish(ctx context.Context, id approval.ID, claim string, e approval.Execution, why approval.Cause) (*approval.Request, error) {
	ctx, cancel := outlast(ctx)
	defer cancel()
	move := ending(claim, e, why)
	for wait := 10 * time.Millisecond; ; wait *= 2 {
		r, err := d.change(ctx, id, move)
		if err == nil {
			d.effects.forget(claim)
			return r, nil
		}
		again := errors.Is(err, store.ErrInDoubt) || errors.Is(err, store.ErrUnavailable)
		if !again || wait > time.Second || !sleep(ctx, wait) {
			d.effects.owe(claim, e, why)
			return r, fmt.Errorf("%w: %w", ErrNotRecorded, err)
		}
	}
}

// sleep reports whether the time passed before ctx ended.
func sleep(ctx context.Context, t time.Duration) bool {
	timer := time.NewTimer(t)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// ErrNotRecorded says that an effect may have happened and its outcome could not
// be written yet: the sweeper goes on trying, and recovery calls it unknown.
var ErrNotRecorded = errors.New("the outcome could not be recorded")

// PickedUp notes that the asker received the outcome of an approved call.
func (d *Desk) PickedUp(ctx context.Context, id approval.ID) error {
	ctx, cancel := outlast(ctx)
	defer cancel()
	_, err := d.change(ctx, id, func(r *approval.Request, now time.Time) (ledger.Event, error) { return r.PickUp(now) })
	return err
}
