package approval

import (
	"crypto/sha256"
	"crypto/subtle"
	"slices"
	"time"

	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/identity"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/policy"
)

// Claim takes the right to run, once. The policy was judged again: v is its
// verdict now, and definition the tool's definition now. When the gateway is the
// executor the claim is also the redemption; a caller redeems its token later.
func (r *Request) Claim(c Claim, v policy.Verdict, definition call.Hash, now time.Time) (ledger.Event, error) {
	switch r.State {
	case Approved:
	case Executing, Executed, Failed, Unknown:
		return ledger.Event{}, ErrClaimed
	case Expired:
		return ledger.Event{}, ErrExpired
	case Denied, Cancelled:
		return ledger.Event{}, ErrEnded
	default:
		return ledger.Event{}, ErrNotApproved
	}
	switch {
	case !now.Before(r.ExpiresAt):
		return ledger.Event{}, ErrExpired
	case c.ID == "" || r.Executor == "":
		return ledger.Event{}, ErrWrongClaim
	case definition != r.Definition:
		return ledger.Event{}, ErrDefinition
	case v.Effect == policy.Deny:
		return ledger.Event{}, ErrPolicyDenies
	case !r.satisfies(v):
		return ledger.Event{}, ErrStricter
	}
	c.At = now
	if r.Executor == Gateway {
		c.Redeemed, c.Until, c.Secret = now, time.Time{}, call.Hash{}
	} else {
		c.Redeemed = time.Time{}
	}
	r.Claimed, r.State = c, Executing
	return r.event(ledger.RequestClaimed, r.agent(), field(ledger.FieldClaim, c.ID), field(ledger.FieldToken, c.TokenID),
		field(ledger.FieldExecutor, string(r.Executor)), field("holder", c.Holder), r.committed(ledger.FieldCall, r.Call.Hash()),
		r.committed(ledger.FieldDigest, r.Digest), field(ledger.FieldPolicy, v.Revision), field(ledger.FieldEffect, v.Effect.String()),
		field("approvals", int64(len(r.Approvals())))), nil
}

// satisfies reports whether what was given is enough for the verdict now.
func (r *Request) satisfies(v policy.Verdict) bool {
	if v.Effect == policy.Allow {
		return r.Verdict.Effect == policy.Allow || len(r.Approvals()) >= r.Quorum()
	}
	enough := 0
	for _, d := range r.Approvals() {
		typed := !slices.Contains(v.Confirm, policy.Typed) || d.Typed != "" && d.Typed == v.Salient
		if typed && Entitled(v.Of, d.By, r.From, true) == nil {
			enough++
		}
	}
	return enough >= max(1, v.Quorum, r.Quorum())
}

// Silence is how long a caller that redeemed its token may take to report the
// outcome before it counts as unknown.
const Silence = 15 * time.Minute

// Redemption is what a caller brings to start the effect it claimed.
type Redemption struct {
	Secret []byte    // the token's secret
	Call   call.Hash // of the call it is about to perform
	Device string
}

// Redeem spends the token of a caller's claim, once. The effect may start when
// this is committed.
func (r *Request) Redeem(with Redemption, now time.Time) (ledger.Event, error) {
	sum := sha256.Sum256(with.Secret)
	switch {
	case r.Claimed.Secret == call.Hash{} || subtle.ConstantTimeCompare(sum[:], r.Claimed.Secret[:]) != 1:
		return ledger.Event{}, ErrTokenUnknown
	case !r.Claimed.Redeemed.IsZero():
		return ledger.Event{}, ErrTokenUsed
	case r.State != Executing || !now.Before(r.Claimed.Until):
		return ledger.Event{}, ErrTokenExpired
	case with.Call != r.Call.Hash():
		return ledger.Event{}, ErrTokenCallMismatch
	case r.Claimed.Device != "" && with.Device != r.Claimed.Device:
		return ledger.Event{}, ErrTokenDevice
	}
	r.Claimed.Redeemed, r.Claimed.Until = now, now.Add(Silence)
	return r.event(ledger.RequestRedeemed, r.agent(), field(ledger.FieldClaim, r.Claimed.ID), field(ledger.FieldToken, r.Claimed.TokenID),
		r.committed(ledger.FieldCall, with.Call)), nil
}

// Finish records how the effect ended.
func (r *Request) Finish(claim string, e Execution, now time.Time) (ledger.Event, error) {
	switch {
	case r.State == Unknown && claim == r.Claimed.ID:
		// The answer came after all; what was in doubt is known now.
	case r.State != Executing:
		return ledger.Event{}, ErrNotClaimed
	case claim == "" || claim != r.Claimed.ID:
		return ledger.Event{}, ErrWrongClaim
	case r.Claimed.Redeemed.IsZero():
		return ledger.Event{}, ErrNotClaimed
	}
	switch e.Outcome {
	case Succeeded, Errored, NotSent:
	case InDoubt:
		return r.Lose(ByTransport, now)
	default:
		return ledger.Event{}, ErrOutcome
	}
	e.At = now
	r.Execution = e
	r.finish(e.Outcome, now)
	return r.event(ledger.RequestFinished, r.agent(), r.outcome()...), nil
}

func (r *Request) finish(o Outcome, now time.Time) {
	r.State, r.Cause, r.EndedAt = Executed, "", now
	if o != Succeeded {
		r.State = Failed
	}
}

func (r *Request) outcome() []ledger.Field {
	f := []ledger.Field{
		field(ledger.FieldClaim, r.Claimed.ID), field(ledger.FieldOutcome, string(r.State)),
		field("detail", string(r.Execution.Outcome)),
	}
	if r.Execution.Hash != (call.Hash{}) {
		f = append(f, r.committed(ledger.FieldResult, r.Execution.Hash), field("size", int64(r.Execution.Size)))
	}
	return f
}

// Lose says that the outcome of a started effect cannot be known. A caller's
// claim that was never redeemed and can be no longer did not start: it expires.
// How long to wait for an outcome is for whoever loses it to say; see
// [Claim.Until].
func (r *Request) Lose(why Cause, now time.Time) (ledger.Event, error) {
	if r.State != Executing {
		return ledger.Event{}, ErrNotClaimed
	}
	if r.Claimed.Redeemed.IsZero() {
		if now.Before(r.Claimed.Until) {
			return ledger.Event{}, ErrNotClaimed
		}
		r.end(Expired, ByDeadline, now)
		return r.event(ledger.RequestExpired, system(), field(ledger.FieldClaim, r.Claimed.ID), field(ledger.FieldCause, string(r.Cause))), nil
	}
	r.State, r.Cause = Unknown, why
	r.Execution = Execution{Outcome: InDoubt, At: now}
	return r.event(ledger.RequestLost, system(), field(ledger.FieldClaim, r.Claimed.ID), field(ledger.FieldCause, string(why))), nil
}

// Resolve is a person's word on an unknown outcome, after looking.
func (r *Request) Resolve(by identity.Human, o Outcome, note string, now time.Time) (ledger.Event, error) {
	switch {
	case by.IsZero():
		return ledger.Event{}, ErrNoPerson
	case r.State != Unknown, o != Succeeded && o != Errored && o != NotSent:
		return ledger.Event{}, ErrNotUnknown
	}
	if err := Entitled(r.Verdict.Of, by, r.From, false); err != nil {
		return ledger.Event{}, err
	}
	r.Execution = Execution{Outcome: o, At: now, By: by.Subject(), Error: note}
	r.finish(o, now)
	return r.event(ledger.RequestResolved, human(by), append(r.outcome(), field(ledger.FieldReason, note))...), nil
}

// PickUp notes that the asker received the outcome: the next identical call is
// a new one, no longer a re-issue of this.
func (r *Request) PickUp(now time.Time) (ledger.Event, error) {
	switch {
	case !r.State.Final():
		return ledger.Event{}, ErrNotClaimed
	case !r.Execution.PickedUp.IsZero():
		return ledger.Event{}, nil
	}
	r.Execution.PickedUp = now
	return r.event(ledger.ResultPickedUp, r.agent(), field(ledger.FieldClaim, r.Claimed.ID)), nil
}
