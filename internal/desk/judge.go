package desk

import (
	"context"
	"sync"
	"time"

	"github.com/ayegate/ayegate/api"
	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/identity"
	"github.com/ayegate/ayegate/internal/policy"
	"github.com/ayegate/ayegate/internal/store"
)

// reserved adds up charges that were judged and are on their way to the store.
// Without it two calls that arrive together would both see the total before
// either, and both pass a limit that has room for one.
type reserved struct {
	mu sync.Mutex
	by map[string]int64
}

// judge asks the policy in force. settle must be called when the charges were
// committed or given up.
func (d *Desk) judge(ctx context.Context, from identity.Agent, c call.Call, t Tool) (v policy.Verdict, charges []policy.Charge, settle func(), err error) {
	p := d.policy.Load()
	f := d.facts(from, t)
	charges = p.Charges(c, f)
	if len(charges) == 0 {
		return p.Judge(c, f), nil, func() {}, nil
	}
	d.owed.mu.Lock()
	defer d.owed.mu.Unlock()
	since := make(map[string]time.Time, len(charges))
	for _, ch := range charges {
		since[ch.Key] = time.Time{}
		if ch.Window > 0 {
			since[ch.Key] = f.Now.Add(-ch.Window)
		}
	}
	totals, err := d.store.Totals(ctx, since)
	if err != nil {
		return policy.Verdict{}, nil, nil, err
	}
	f.Totals = make(map[string]int64, len(charges))
	for _, ch := range charges {
		f.Totals[ch.Key] = totals[ch.Key] + d.owed.by[ch.Key]
	}
	v = p.Judge(c, f)
	if v.Effect == policy.Deny {
		return v, charges, func() {}, nil
	}
	return v, charges, d.owed.reserve(charges), nil
}

// reserve must be called with the lock held; what it returns takes it.
func (o *reserved) reserve(charges []policy.Charge) (settle func()) {
	if o.by == nil {
		o.by = make(map[string]int64)
	}
	for _, ch := range charges {
		if ch.Kind != policy.Denials {
			o.by[ch.Key] += ch.Amount
		}
	}
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		for _, ch := range charges {
			if ch.Kind == policy.Denials {
				continue
			}
			if o.by[ch.Key] -= ch.Amount; o.by[ch.Key] == 0 {
				delete(o.by, ch.Key)
			}
		}
	}
}

// charged picks the charges of one kind, as the store takes them.
func charged(charges []policy.Charge, k policy.ChargeKind) []store.Charge {
	var out []store.Charge
	for _, ch := range charges {
		if ch.Kind == k {
			out = append(out, store.Charge{Key: ch.Key, Amount: ch.Amount})
		}
	}
	return out
}

// mayAsk holds the caps and pauses that lie outside of the policy's verdict.
func (d *Desk) mayAsk(ctx context.Context, from identity.Agent, v policy.Verdict) error {
	readOnly := v.Effect == policy.Allow && v.Tier == policy.R0
	if v.Effect == policy.Deny || readOnly {
		return nil
	}
	stopped, err := d.sessionPaused(ctx, from)
	if err != nil {
		return err
	}
	if stopped {
		return &Refusal{Code: api.SessionPaused, Detail: "the session is paused until a person resumes it"}
	}
	return nil
}
