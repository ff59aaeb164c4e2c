package desk

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/store"
)

// Lost is how long a caller that redeemed its token may stay silent before its
// outcome counts as unknown.
const Lost = 15 * time.Minute

// Recover brings the desk back to where the store is. It must be called once,
// before any other method, by the one process that owns the store. Calls that
// were being executed by a process that is gone become unknown: they may have
// run, and nothing runs them again.
func (d *Desk) Recover(ctx context.Context, version string) error {
	if err := d.loadPauses(ctx); err != nil {
		return err
	}
	if err := d.loadPins(ctx); err != nil {
		return err
	}
	err := d.store.Append(ctx, ledger.Event{
		Kind: ledger.StoreOpened, Subject: d.store.Name(), Actor: system(),
		Data: []ledger.Field{ledger.String("version", version), ledger.String(ledger.FieldPolicy, d.Policy().Revision())},
	})
	if err != nil {
		return err
	}
	var ids []approval.ID
	for r, err := range d.store.List(ctx, store.Filter{States: []approval.State{approval.Executing}}) {
		if err != nil {
			return err
		}
		if r.Executor == approval.Gateway {
			ids = append(ids, r.ID)
		}
	}
	for _, id := range ids {
		_, err := d.change(ctx, id, func(r *approval.Request, now time.Time) (ledger.Event, error) {
			return r.Lose(approval.ByCrash, now)
		})
		if err != nil && !errors.Is(err, approval.ErrNotClaimed) {
			return err
		}
		d.log.Warn("a call was being executed when ayegate stopped: its outcome is unknown", "request", id)
	}
	return d.sweep(ctx)
}

// VoidAll ends everything that is open because the store is known to have lost
// something it had promised: a restored backup, a rolled back file.
func (d *Desk) VoidAll(ctx context.Context, why string) (int, error) {
	n, err := d.void(ctx, approval.ByEpoch, store.Filter{})
	if err != nil {
		return n, err
	}
	return n, d.store.Append(ctx, ledger.Event{
		Kind: ledger.EpochBumped, Subject: d.store.Name(), Actor: system(),
		Data: []ledger.Field{
			ledger.String(ledger.FieldEpoch, strconv.FormatInt(d.store.Now().UnixNano(), 10)),
			ledger.String(ledger.FieldCause, clip(why, 500)),
		},
	})
}

// Run looks after deadlines until ctx ends.
func (d *Desk) Run(ctx context.Context) {
	tick := time.NewTicker(d.cfg.Sweep)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := d.sweep(ctx); err != nil && ctx.Err() == nil {
				d.log.Error("deadlines could not be written", "err", err)
			}
		}
	}
}

// sweep ends what is past its deadline. The deadline holds without it: a claim
// or a decision that comes late is refused by the move itself.
func (d *Desk) sweep(ctx context.Context) error {
	now := d.store.Now()
	for {
		ids, err := d.store.Due(ctx, now, 100)
		if err != nil {
			return err
		}
		for _, id := range ids {
			if _, err := d.change(ctx, id, due); err != nil && !late(err) {
				return err
			}
		}
		if len(ids) < 100 {
			break
		}
	}
	_, err := d.store.EraseResults(ctx, now.Add(-d.cfg.Replay))
	return err
}

// due is what a passed deadline does to a request.
func due(r *approval.Request, now time.Time) (ledger.Event, error) {
	if r.State != approval.Executing {
		return r.Expire(now)
	}
	if !r.Claimed.Redeemed.IsZero() && now.Before(r.Claimed.Redeemed.Add(Lost)) {
		return ledger.Event{}, approval.ErrNotClaimed
	}
	return r.Lose(approval.ByTimeout, now)
}

// late reports whether somebody else was first.
func late(err error) bool {
	return errors.Is(err, approval.ErrEnded) || errors.Is(err, approval.ErrNotPending) || errors.Is(err, approval.ErrNotClaimed)
}
