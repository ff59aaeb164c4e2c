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
	"github.com/ayegate/ayegate/internal/store"
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
// be spent then, and the caller asks again.
func (d *Desk) Redeem(ctx context.Context, from identity.Agent, id approval.ID, with approval.Redemption) (*approval.Request, error) {
	with.Device = from.Device
	return d.change(ctx, id, func(r *approval.Request, now time.Time) (ledger.Event, error) {
		switch {
		case !owns(from, r):
			return ledger.Event{}, store.ErrNotFound
		case d.paused.Load():
			return ledger.Event{}, ErrPaused
		}
		return r.Redeem(with, now)
	})
}

// Finish records the outcome that a caller reports.
func (d *Desk) Finish(ctx context.Context, from identity.Agent, id approval.ID, e approval.Execution) (*approval.Request, error) {
	r, err := d.GetOwn(ctx, from, id)
	if err != nil {
		return nil, err
	}
	if r.Executor != approval.Caller {
		return r, ErrNotCaller
	}
	if e.Result != nil {
		e.Hash, e.Size = sha256.Sum256(e.Result), len(e.Result)
	}
	return d.change(ctx, id, func(r *approval.Request, now time.Time) (ledger.Event, error) {
		return r.Finish(r.Claimed.ID, e, now)
	})
}
