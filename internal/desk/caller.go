package desk

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"time"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/identity"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/policy"
)

// Token is the approval token of document 002: the right to perform one approved
// call once. The secret is told once, here, and kept only as its hash.
type Token struct {
	ID        string // UUID
	Secret    string // base64url of 256 random bits
	ExpiresAt time.Time
	Device    string // the only device that may redeem it; empty for any
}

// TokenTTL is how long a caller has from its claim to the start of the effect.
const TokenTTL = 2 * time.Minute

// ErrNotCaller says that ayegate itself executes this request.
var ErrNotCaller = errors.New("this request is executed by ayegate, there is no token to give out")

// Claim gives the agent that executes a call itself the token for it, once.
func (d *Desk) Claim(ctx context.Context, from identity.Agent, id approval.ID) (*approval.Request, Token, error) {
	r, err := d.GetOwn(ctx, from, id)
	if err != nil {
		return nil, Token{}, err
	}
	if r.Executor != approval.Caller {
		return r, Token{}, ErrNotCaller
	}
	raw, err := d.bytes(32)
	if err != nil {
		return r, Token{}, err
	}
	secret := base64.RawURLEncoding.EncodeToString(raw)
	until := d.store.Now().Add(TokenTTL)
	r, _, err = d.claim(ctx, from, id, approval.Claim{
		Holder: from.ID, Secret: sha256.Sum256([]byte(secret)), Device: from.Device, Until: until,
	})
	if err != nil {
		return r, Token{}, err
	}
	return r, Token{ID: r.Claimed.TokenID, Secret: secret, ExpiresAt: until, Device: from.Device}, nil
}

// Redeem spends a token: when it returns without error the effect may start.
// After any error it must not, also when the store did not confirm: the token may
// be spent then, and nobody can tell by whom. What the policy denies by now, and
// a tool that changed, does not start either (POL-12).
func (d *Desk) Redeem(ctx context.Context, from identity.Agent, id approval.ID, with approval.Redemption) (*approval.Request, error) {
	r, err := d.GetOwn(ctx, from, id)
	if err != nil {
		return nil, err
	}
	out, err := d.inForce.pass(ctx)
	if err != nil {
		return r, err
	}
	defer out()
	if d.held(r) {
		return r, ErrHeldTool
	}
	t := d.tool(r)
	v := d.withoutLimits(r.From, r.Call, t)
	with.Device = from.Device
	return d.change(ctx, id, func(r *approval.Request, now time.Time) (ledger.Event, error) {
		e, err := r.Redeem(with, now)
		switch {
		case err != nil:
			return ledger.Event{}, err
		case d.paused.Load():
			return ledger.Event{}, ErrPaused
		case d.sessions.paused(r.From) && !reads(v):
			return ledger.Event{}, sessionPaused()
		case v.Effect == policy.Deny:
			return ledger.Event{}, approval.ErrPolicyDenies
		case t.Definition != r.Definition:
			return ledger.Event{}, approval.ErrDefinition
		}
		return e, nil
	})
}

// Finish records the outcome that a caller reports: its kind, and the result or
// an error's text. The same report again is no error.
func (d *Desk) Finish(ctx context.Context, from identity.Agent, id approval.ID, e approval.Execution) (*approval.Request, error) {
	r, err := d.GetOwn(ctx, from, id)
	if err != nil {
		return nil, err
	}
	if r.Executor != approval.Caller {
		return r, ErrNotCaller
	}
	e = approval.Execution{Outcome: e.Outcome, Result: e.Result, Error: clip(e.Error, 2000)}
	if e.Result != nil {
		e.Hash, e.Size = sha256.Sum256(e.Result), len(e.Result)
	}
	same := func(r *approval.Request) bool {
		was := r.Execution
		return r.State.Final() && was.Outcome == e.Outcome && was.Hash == e.Hash && was.By == ""
	}
	r, err = d.change(ctx, id, func(r *approval.Request, now time.Time) (ledger.Event, error) {
		if same(r) {
			return ledger.Event{}, nil
		}
		return r.Finish(r.Claimed.ID, e, now)
	})
	return r, certain(r, err, same)
}
