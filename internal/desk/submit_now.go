package desk

import (
	"context"

	"github.com/ayegate/ayegate/api"
	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/policy"
)

// SubmitNow judges a call that cannot wait for people, because nobody hears its
// answer. A ticket holds the claim of a call that a rule allows. What is denied,
// and what would have to be asked for, is recorded as denied by the policy and
// returned as a [Refusal]: it is never open, so no approval can run it later.
// [ErrNoExecutor] refuses calls that the gateway does not execute.
func (d *Desk) SubmitNow(ctx context.Context, a Ask) (*Ticket, error) {
	switch {
	case a.From.IsZero():
		return nil, ErrNoAgent
	case a.Executor != approval.Gateway || a.Call.IsZero() || a.Key != "":
		return nil, ErrNoExecutor
	case d.paused.Load():
		return nil, allPaused(nil)
	}
	out, err := d.inForce.pass(ctx)
	if err != nil {
		return nil, err
	}
	defer out()
	if err := d.offered(a); err != nil {
		return nil, err
	}
	v, err := d.judge(ctx, a.From, a.Call, a.Tool, asking, d.store.Now())
	if err != nil {
		return nil, err
	}
	defer v.settle()
	if err := d.mayStart(ctx, a.From, v); err != nil {
		return nil, err
	}
	if v.Effect == policy.Allow {
		return d.allow(ctx, a, v)
	}
	why := "a rule denies it"
	if v.Effect == policy.Ask {
		why = "it cannot wait for people, and no rule allows it"
		v.Trace = append(v.Trace, policy.Step{Phase: "default", ID: "unasked", Hit: true, Note: why})
		v.Effect = policy.Deny
	}
	t, err := d.create(ctx, a, v.Verdict, nil)
	if err != nil {
		return nil, err
	}
	return nil, &Refusal{Code: api.ToolDenied, Of: t.Request, Limit: v.Rule, Detail: why}
}
