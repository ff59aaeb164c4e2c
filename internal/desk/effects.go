package desk

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/store"
)

// Times within which a claim of this process must move on.
const (
	startWithin = time.Minute     // from the claim to the start of the effect
	doubtFor    = 5 * time.Minute // how long a change whose reply was lost may still show
)

// keepResults bounds the results that wait in memory for a store to take them.
const keepResults = 100

// effects are the claims of this process that have no end on record yet. An
// effect starts at most once, whoever holds its ticket; a claim that nobody
// starts, or whose outcome the store would not take, is ended by the sweeper, so
// that no request stays executing for ever (P8). A restart forgets them: recovery
// then calls their outcome unknown.
type effects struct {
	mu sync.Mutex
	by map[string]*effect // by claim
}

type effect struct {
	request approval.ID
	since   time.Time
	begun   bool
	over    bool // e and why wait to be recorded
	e       approval.Execution
	why     approval.Cause
}

// add must come before the claim is committed: a claim whose reply is lost is
// known then, too.
func (x *effects) add(claim string, id approval.ID, now time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.by == nil {
		x.by = make(map[string]*effect)
	}
	x.by[claim] = &effect{request: id, since: now}
}

// begin reports whether the effect of a claim may start: once.
func (x *effects) begin(claim string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	f := x.by[claim]
	if f == nil || f.begun {
		return false
	}
	f.begun = true
	return true
}

// forget is for a claim that was not made, or whose end is on record.
func (x *effects) forget(claim string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.by, claim)
}

// owe leaves an outcome to the sweeper.
func (x *effects) owe(claim string, e approval.Execution, why approval.Cause) {
	x.mu.Lock()
	defer x.mu.Unlock()
	f := x.by[claim]
	if f == nil {
		return
	}
	kept := 0
	for _, other := range x.by {
		if other.over && other.e.Result != nil {
			kept++
		}
	}
	if kept >= keepResults {
		e.Result = nil
	}
	f.begun, f.over, f.e, f.why = true, true, e, why
}

// due lists the outcomes that wait to be recorded. A claim that nobody started in
// time becomes one: nothing was sent.
func (x *effects) due(now time.Time) map[string]effect {
	x.mu.Lock()
	defer x.mu.Unlock()
	out := make(map[string]effect)
	for claim, f := range x.by {
		if !f.begun && now.Sub(f.since) >= startWithin {
			f.begun, f.over, f.e = true, true, unsent("nobody started the call")
		}
		if f.over {
			out[claim] = *f
		}
	}
	return out
}

func unsent(why string) approval.Execution {
	return approval.Execution{Outcome: approval.NotSent, Error: why}
}

// settle tries once more to record what is owed.
func (d *Desk) settle(ctx context.Context, now time.Time) error {
	var errs []error
	for claim, f := range d.effects.due(now) {
		_, err := d.change(ctx, f.request, ending(claim, f.e, f.why))
		switch {
		case err == nil:
			d.effects.forget(claim)
			d.log.Warn("the outcome of a call was recorded late", "request", f.request)
		case errors.Is(err, approval.ErrWrongClaim), errors.Is(err, store.ErrNotFound):
			// The claim was never made, unless its commit is still under way.
			if now.Sub(f.since) >= doubtFor {
				d.effects.forget(claim)
			}
		default:
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
