package ledger

import (
	"fmt"
	"slices"
	"strings"
)

// move takes the story over one event and returns what is wrong with it, or "".
func (r *story) move(e Entry, f facts, epoch int64) string {
	switch e.Kind {
	case RequestAsked:
		return r.ask(f)
	case RequestDecided:
		return r.decide(e.Actor, f)
	case RequestAmended, RequestRejudged:
		return r.renew(e, f)
	case RequestAttached, RequestExtended, RequestDryRun:
		return r.during(r.waits(), e.Kind)
	case RequestClaimed:
		return r.claimed(f, epoch)
	case RequestRedeemed:
		return r.redeem(f)
	case RequestFinished:
		return r.finish(f)
	case RequestLost:
		return r.lose(f)
	case RequestResolved:
		return r.resolve(e.Actor, f)
	case RequestExpired, RequestCancelled, RequestDenied:
		wrong := r.during(r.state == "" || r.waits() || r.state == executing && !r.began(), e.Kind)
		r.state = ended
		return wrong
	default: // picked up, repeated, replayed: what follows the end
	}
	return r.during(r.state == ended, e.Kind)
}

func (r *story) waits() bool { return r.state == pending || r.state == approved }

// began reports whether the effect may have started.
func (r *story) began() bool {
	return r.state == unknown || r.state == executing && (!r.byCaller || r.redeemed)
}

func (r *story) during(legal bool, k Kind) string {
	if legal {
		return ""
	}
	return fmt.Sprintf("%s while the request is %s", k, r.where())
}

// where says in words where the story stands.
func (r *story) where() string {
	if r.state == executing && !r.began() {
		return "claimed but not redeemed"
	}
	return string(r.state)
}

func (r *story) ask(f facts) string {
	r.call, r.digest, r.owner = f.call, f.digest, f.owner
	if wrong := r.judge(f); wrong != "" {
		return wrong
	}
	if f.call == "" || f.digest == "" {
		return "asked without a commitment to the call and the digest"
	}
	return ""
}

// judge takes over a verdict. Whatever is not clearly an allowance waits.
func (r *story) judge(f facts) string {
	r.effect, r.approvals, r.notRequester = f.effect, nil, f.notRequester
	r.state, r.quorum = pending, 1
	switch f.effect {
	case EffectAllow:
		r.state = approved
	case EffectGrant:
		if f.grant == "" {
			return "covered by a grant that is not named"
		}
		r.state = approved
	case EffectAsk:
		if f.hasQuorum {
			r.quorum = max(1, f.quorum)
		}
		if f.hasQuorum && f.quorum < 1 {
			return fmt.Sprintf("asks for the approval of %d people", f.quorum)
		}
	case EffectDeny:
		r.state = ended
	default:
		return fmt.Sprintf("a verdict of %q", f.effect)
	}
	return ""
}

func (r *story) decide(by Actor, f facts) string {
	switch {
	case r.state != pending:
		return r.during(false, RequestDecided)
	case by.Kind != Human:
		return fmt.Sprintf("decided by the %s %q, who is no human", by.Kind, by.ID)
	case f.call != r.call || f.digest != r.digest:
		return "decided on another call or digest than the one that waited"
	case f.decision == Deny:
		r.state = ended
		return ""
	case f.decision != Approve:
		return fmt.Sprintf("a decision of %q", f.decision)
	case r.notRequester && (r.owner == "" || person(by.ID) == person(r.owner)):
		return fmt.Sprintf("approved by %q, though the policy bars the owner of the agent, %q", by.ID, r.owner)
	}
	if !slices.Contains(r.approvals, person(by.ID)) {
		r.approvals = append(r.approvals, person(by.ID))
	}
	if int64(len(r.approvals)) >= r.quorum {
		r.state = approved
	}
	return ""
}

// person is the stable name of a human, with or without its class before it.
func person(id string) string { return strings.TrimPrefix(id, "user:") }

// renew is a new call (amended) or a new verdict on the same call (rejudged).
func (r *story) renew(e Entry, f facts) string {
	if !r.waits() {
		return r.during(false, e.Kind)
	}
	replaced, before := r.call, r.effect
	r.call, r.digest = f.call, f.digest
	wrong := r.judge(f)
	switch {
	case wrong != "":
		return wrong
	case f.call == "" || f.digest == "":
		return fmt.Sprintf("%s without a commitment to the call and the digest", e.Kind)
	case f.effect == EffectDeny:
		return fmt.Sprintf("%s into a call that the policy denies", e.Kind)
	case f.owner != "" && f.owner != r.owner:
		return fmt.Sprintf("%s with another owner", e.Kind)
	case e.Kind == RequestAmended && e.Actor.Kind != Human:
		return fmt.Sprintf("amended by the %s %q, who is no human", e.Actor.Kind, e.Actor.ID)
	case e.Kind == RequestAmended && f.was != replaced:
		return "amended from another call than the one that waited"
	case e.Kind == RequestRejudged && f.call != replaced:
		return "a new verdict on another call than the one that waited"
	case e.Kind == RequestRejudged && before == EffectAsk && r.state == approved:
		return "a new verdict allowed what waited for people"
	}
	return ""
}

func (r *story) claimed(f facts, epoch int64) string {
	switch r.state {
	case approved:
	case pending:
		had := len(r.approvals)
		r.start(f)
		return fmt.Sprintf("claimed with %d of %d approvals", had, r.quorum)
	default:
		return r.during(false, RequestClaimed)
	}
	r.start(f)
	switch {
	case f.claim == "":
		return "claimed without a claim id"
	case f.call != r.call || f.digest != r.digest:
		return "claimed another call or digest than the one that was approved"
	case r.epoch != epoch:
		return "claimed after everything open was voided"
	}
	return ""
}

func (r *story) start(f facts) {
	r.state, r.claim, r.byCaller = executing, f.claim, f.executor == ExecutorCaller
}

func (r *story) redeem(f facts) string {
	if r.state != executing || !r.byCaller || r.redeemed {
		if r.redeemed {
			return "redeemed twice"
		}
		return r.during(false, RequestRedeemed)
	}
	r.redeemed = true
	if f.claim != r.claim || f.call != r.call {
		return "redeemed another claim or call than the one that was claimed"
	}
	return ""
}

func (r *story) finish(f facts) string {
	if !r.began() {
		return r.during(false, RequestFinished)
	}
	r.state = ended
	if f.claim != r.claim {
		return "finished another claim than the one that was made"
	}
	return outcome(f)
}

func (r *story) lose(f facts) string {
	if r.state != executing || !r.began() {
		return r.during(false, RequestLost)
	}
	r.state = unknown
	if f.claim != r.claim {
		return "lost another claim than the one that was made"
	}
	return ""
}

func (r *story) resolve(by Actor, f facts) string {
	if r.state != unknown {
		return r.during(false, RequestResolved)
	}
	r.state = ended
	if by.Kind != Human {
		return fmt.Sprintf("resolved by the %s %q, who is no human", by.Kind, by.ID)
	}
	return outcome(f)
}

func outcome(f facts) string {
	if f.outcome != Executed && f.outcome != Failed {
		return fmt.Sprintf("an outcome of %q", f.outcome)
	}
	return ""
}
