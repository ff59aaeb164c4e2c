package desk

import (
	"context"
	"errors"
	"time"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/store"
)

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
	if err := d.loadEpoch(ctx); err != nil {
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

// sweepAtOnce is how many passed deadlines are looked up together.
const sweepAtOnce = 100

// sweep ends what is past its deadline, records what is owed and tidies up. A
// deadline holds without it: a claim or a decision that comes late is refused by
// the move itself. What fails for one request does not keep the others waiting.
func (d *Desk) sweep(ctx context.Context) error {
	now := d.store.Now()
	errs := []error{d.deadlines(ctx, now), d.settle(ctx, now), d.voidOld(ctx)}
	d.waiters.again(now)
	d.tallies.moved()
	_, err := d.store.EraseResults(ctx, now.Add(-d.cfg.Replay))
	return errors.Join(append(errs, err, d.fold(ctx, now))...)
}

func (d *Desk) deadlines(ctx context.Context, now time.Time) error {
	var errs []error
	failed := make(map[approval.ID]bool)
	for {
		limit := sweepAtOnce + len(failed)
		ids, err := d.store.Due(ctx, now, limit)
		if err != nil {
			return errors.Join(append(errs, err)...)
		}
		tried := 0
		for _, id := range ids {
			if failed[id] {
				continue
			}
			tried++
			switch _, err := d.change(ctx, id, due); {
			case late(err):
				failed[id] = true // somebody else was first, or it is not due after all
			case err != nil:
				failed[id] = true
				errs = append(errs, err)
			}
		}
		if tried == 0 || len(ids) < limit || ctx.Err() != nil {
			return errors.Join(errs...)
		}
	}
}

// fold keeps the tallies small: charges that are older than any limit looks back
// are added up.
func (d *Desk) fold(ctx context.Context, now time.Time) error {
	if now.Sub(d.forgot) < time.Hour {
		return nil
	}
	d.forgot = now
	return d.store.Forget(ctx, now.Add(-d.policy.Load().LookBack()))
}

// due is what a passed deadline does to a request.
func due(r *approval.Request, now time.Time) (ledger.Event, error) {
	switch {
	case r.State != approval.Executing:
		return r.Expire(now)
	case r.Claimed.Until.IsZero() || now.Before(r.Claimed.Until):
		return ledger.Event{}, approval.ErrNotClaimed
	}
	return r.Lose(approval.ByTimeout, now)
}

// late reports whether somebody else was first.
func late(err error) bool {
	return errors.Is(err, approval.ErrEnded) || errors.Is(err, approval.ErrNotPending) || errors.Is(err, approval.ErrNotClaimed)
}
