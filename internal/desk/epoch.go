package desk

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/store"
)

const kindEpoch = "epoch"

// ErrVoid says that a request is from before the store lost something it had
// promised: it may not be claimed, whatever people said.
var ErrVoid = errors.New("the record had to be restored, which voids everything that was open")

// epoch is when everything open was voided last. It is kept in the store, so that
// a process that dies before it ended every request binds the next one, too.
type epoch struct {
	at   atomic.Pointer[time.Time]
	left atomic.Bool // some requests from before may still be open
}

func (e *epoch) voids(r *approval.Request) bool {
	at := e.at.Load()
	return at != nil && !r.AskedAt.After(*at)
}

// VoidAll ends everything that is open because the store is known to have lost
// something it had promised: a restored backup, a rolled back file. From the
// moment it is on record nothing that was asked before is claimed. What could not
// be ended yet is named by the error, and the sweeper goes on.
func (d *Desk) VoidAll(ctx context.Context, why string) (int, error) {
	open, err := d.inForce.shut(ctx)
	if err != nil {
		return 0, err
	}
	defer open()
	var at time.Time
	err = d.store.Update(ctx, kindEpoch, allAgents, func(_ []byte, now time.Time) ([]byte, ledger.Event, error) {
		at = now
		name := strconv.FormatInt(now.UnixNano(), 10)
		return []byte(name), ledger.Event{
			Kind: ledger.EpochBumped, Subject: d.store.Name(), Actor: system(),
			Data: []ledger.Field{ledger.String(ledger.FieldEpoch, name), ledger.String(ledger.FieldCause, clip(why, 500))},
		}, nil
	})
	if err != nil && !errors.Is(err, store.ErrInDoubt) {
		return 0, err
	}
	if !at.IsZero() { // also in doubt: what may be void must not run
		d.epoch.at.Store(&at)
		d.epoch.left.Store(true)
	}
	if err != nil {
		return 0, err
	}
	return d.voidBefore(ctx)
}

// voidOld goes on where VoidAll could not.
func (d *Desk) voidOld(ctx context.Context) error {
	if !d.epoch.left.Load() {
		return nil
	}
	_, err := d.voidBefore(ctx)
	return err
}

func (d *Desk) voidBefore(ctx context.Context) (int, error) {
	n, err := d.void(ctx, approval.ByEpoch, store.Filter{}, d.epoch.voids)
	if err == nil {
		d.epoch.left.Store(false)
	}
	return n, err
}

// loadEpoch takes over what the last process voided.
func (d *Desk) loadEpoch(ctx context.Context) error {
	r, err := d.store.Load(ctx, kindEpoch, allAgents)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	nanos, err := strconv.ParseInt(string(r.Value), 10, 64)
	if err != nil {
		return fmt.Errorf("the record of the last epoch cannot be read: %w", err)
	}
	at := time.Unix(0, nanos)
	d.epoch.at.Store(&at)
	_, err = d.voidBefore(ctx)
	return err
}
