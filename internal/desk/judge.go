package desk

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ayegate/ayegate/api"
	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/identity"
	"github.com/ayegate/ayegate/internal/policy"
	"github.com/ayegate/ayegate/internal/store"
)

// moment is when in its life a call is judged. A limit counts a call once, so it
// depends on the moment what of the totals is the call's own.
type moment uint8

const (
	asking   moment = iota // nothing of it is counted yet
	deciding               // it was counted when it was asked, and must not count against itself
	claiming               // it has its place in every count; its sums are still to come
	looking                // a trial: nothing will be counted
)

// tallies are totals on their way: charges that were judged and are not yet
// committed, and what is known of denials, which change by a person's hand only.
//
// Without the first, two calls that arrive together would both see the total
// before either, and both pass a limit that has room for one.
type tallies struct {
	mu      sync.Mutex
	owed    map[string]int64
	denials map[string]int64
}

// judgement is a verdict and what it charges.
type judgement struct {
	policy.Verdict
	charges []policy.Charge
	settle  func() // to be called when the charges were committed or given up
}

// judge asks the policy in force.
func (d *Desk) judge(ctx context.Context, from identity.Agent, c call.Call, t Tool, at moment, asked time.Time) (judgement, error) {
	p := d.policy.Load()
	f := d.facts(from, t)
	charges := p.Charges(c, f)
	if len(charges) == 0 {
		return judgement{p.Judge(c, f), nil, func() {}}, nil
	}
	d.tallies.mu.Lock()
	defer d.tallies.mu.Unlock()
	totals, err := d.totals(ctx, charges, f.Now)
	if err != nil {
		return judgement{}, fmt.Errorf("limits could not be looked up, so nothing ran: %w", err)
	}
	for _, ch := range charges {
		switch {
		case ch.Kind != policy.Count:
		case at == claiming:
			totals[ch.Key] = 0
		case at == deciding && !asked.Before(f.Now.Add(-ch.Window)):
			totals[ch.Key] = max(0, totals[ch.Key]-ch.Amount)
		}
	}
	f.Totals = totals
	j := judgement{p.Judge(c, f), charges, func() {}}
	if j.Effect != policy.Deny && (at == asking || at == claiming) {
		j.settle = d.tallies.reserve(charges, at)
	}
	return j, nil
}

// judgeAgain judges an existing request by the policy in force.
func (d *Desk) judgeAgain(ctx context.Context, r *approval.Request, at moment) (judgement, error) {
	return d.judge(ctx, r.From, r.Call, d.tool(r), at, r.AskedAt)
}

// withoutLimits is what the policy would say if nothing had been counted.
func (d *Desk) withoutLimits(from identity.Agent, c call.Call, t Tool) policy.Verdict {
	return d.policy.Load().Judge(c, d.facts(from, t))
}

// totals must be called with the lock of the tallies held.
func (d *Desk) totals(ctx context.Context, charges []policy.Charge, now time.Time) (map[string]int64, error) {
	out := make(map[string]int64, len(charges))
	since := make(map[string]time.Time)
	for _, ch := range charges {
		known, ok := d.tallies.denials[ch.Key]
		switch {
		case ok:
			out[ch.Key] = known
		case ch.Window > 0:
			since[ch.Key] = now.Add(-ch.Window)
		default:
			since[ch.Key] = time.Time{}
		}
	}
	if len(since) == 0 {
		return out, nil
	}
	read, err := d.store.Totals(ctx, since)
	if err != nil {
		return nil, err
	}
	for _, ch := range charges {
		if _, asked := since[ch.Key]; !asked {
			continue
		}
		out[ch.Key] = read[ch.Key] + d.tallies.owed[ch.Key]
		if ch.Kind == policy.Denials && ch.Window == 0 {
			d.tallies.know(ch.Key, read[ch.Key])
		}
	}
	return out, nil
}

func (o *tallies) know(key string, n int64) {
	if o.denials == nil {
		o.denials = make(map[string]int64)
	}
	o.denials[key] = n
}

// moved drops what is known of denials after any of them may have changed.
func (o *tallies) moved() {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.denials)
}

// reserve must be called with the lock held; what it returns takes it.
func (o *tallies) reserve(charges []policy.Charge, at moment) (settle func()) {
	taken := func(ch policy.Charge) bool {
		return ch.Kind == policy.Sum || ch.Kind == policy.Count && at == asking
	}
	if o.owed == nil {
		o.owed = make(map[string]int64)
	}
	for _, ch := range charges {
		if taken(ch) {
			o.owed[ch.Key] += ch.Amount
		}
	}
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		for _, ch := range charges {
			if !taken(ch) {
				continue
			}
			if o.owed[ch.Key] -= ch.Amount; o.owed[ch.Key] == 0 {
				delete(o.owed, ch.Key)
			}
		}
	}
}

// charged picks the charges of some kinds, as the store takes them.
func charged(charges []policy.Charge, kinds ...policy.ChargeKind) []store.Charge {
	var out []store.Charge
	for _, ch := range charges {
		for _, k := range kinds {
			if ch.Kind == k {
				out = append(out, store.Charge{Key: ch.Key, Amount: ch.Amount})
			}
		}
	}
	return out
}

// mayStart pauses the session where the verdict wants it, and refuses whatever a
// paused session may not do: all but reading.
func (d *Desk) mayStart(ctx context.Context, from identity.Agent, j judgement) error {
	if j.Pause {
		if err := d.pauseSession(ctx, from, j); err != nil {
			return err
		}
	}
	if j.Effect == policy.Deny || reads(j.Verdict) || !d.sessions.paused(from) {
		return nil
	}
	return sessionPaused()
}

// reads reports whether a rule allows a call that changes nothing.
func reads(v policy.Verdict) bool { return v.Effect == policy.Allow && v.Tier == policy.R0 }

func sessionPaused() *Refusal {
	return &Refusal{Code: api.SessionPaused, Detail: "the session is paused until a person resumes it"}
}

// places are requests on their way into the queue of an agent.
type places struct {
	mu sync.Mutex
	by map[string]int
}

// place takes one of the places an agent has for requests that wait for people
// (OPS-01), until free is called: those on their way count like those that are
// there, or parallel calls would overrun the cap.
func (d *Desk) place(ctx context.Context, agent string) (free func(), err error) {
	d.places.mu.Lock()
	defer d.places.mu.Unlock()
	n, err := d.store.Counts(ctx)
	if err != nil {
		return nil, err
	}
	if there := n.ByAgent[agent] + d.places.by[agent]; there >= d.cfg.PendingPerAgent {
		return nil, &Refusal{
			Code:   api.QueueFull,
			Detail: fmt.Sprintf("%d requests of this agent wait for people already", there),
		}
	}
	if d.places.by == nil {
		d.places.by = make(map[string]int)
	}
	d.places.by[agent]++
	return func() {
		d.places.mu.Lock()
		defer d.places.mu.Unlock()
		if d.places.by[agent]--; d.places.by[agent] == 0 {
			delete(d.places.by, agent)
		}
	}, nil
}
