package approval

import (
	"slices"
	"strings"
	"time"

	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/identity"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/policy"
)

// Decide records one person's word. One denial ends the request; an approval
// counts once per person and approves when the quorum is reached. The same word
// of the same person twice is the first one.
func (r *Request) Decide(d Decision, now time.Time) (ledger.Event, error) {
	if d.By.IsZero() {
		return ledger.Event{}, ErrNoPerson
	}
	if r.repeats(d) {
		return ledger.Event{}, nil
	}
	if err := r.decidable(d, now); err != nil {
		return ledger.Event{}, err
	}
	d.At, d.Void = now, false
	r.Decisions = append(r.Decisions, d)
	word := ledger.Approve
	switch {
	case !d.Approve:
		word = ledger.Deny
		r.end(Denied, ByPerson, now)
	case len(r.Approvals()) >= r.Quorum():
		r.State = Approved
	}
	return r.event(ledger.RequestDecided, human(d.By),
		field(ledger.FieldDecision, word), r.committed(ledger.FieldCall, r.Call.Hash()),
		r.committed(ledger.FieldDigest, d.Digest), field(ledger.FieldReason, d.Reason),
		field(ledger.FieldStrength, d.By.Strength.String()), field("typed", d.Typed != ""),
		field("approvals", int64(len(r.Approvals()))), field("state", string(r.State))), nil
}

// repeats reports whether the same person said the same before and it counts:
// then saying it again is not a new decision and never an error.
func (r *Request) repeats(d Decision) bool {
	return slices.ContainsFunc(r.Decisions, func(old Decision) bool {
		return !old.Void && old.By.ID == d.By.ID && old.Approve == d.Approve && old.Digest == d.Digest
	})
}

func (r *Request) decidable(d Decision, now time.Time) error {
	switch {
	case r.State == Expired:
		return ErrExpired
	case r.State != Pending:
		return ErrDecided
	case !now.Before(r.ExpiresAt):
		return ErrExpired
	case d.Digest != r.Digest:
		return ErrStale
	case !d.Approve:
		return Entitled(r.Verdict.Of, d.By, r.From, false)
	}
	if err := Entitled(r.Verdict.Of, d.By, r.From, true); err != nil {
		return err
	}
	if slices.Contains(r.Verdict.Confirm, policy.Typed) && (r.Verdict.Salient == "" || d.Typed != r.Verdict.Salient) {
		return ErrTyped
	}
	return nil
}

// Entitled reports whether a person belongs to a set of approvers for an
// agent's request. Those whom the set excludes ("requester", the owner of the
// agent) may still deny: to say no is always the safe direction.
func Entitled(of policy.Approvers, by identity.Human, from identity.Agent, approve bool) error {
	if len(of.AnyOf) > 0 && !slices.ContainsFunc(of.AnyOf, by.In) {
		return ErrNotEntitled
	}
	if !approve {
		return nil
	}
	for _, not := range of.Not {
		if not == "requester" {
			if from.Owner == "" || strings.TrimPrefix(from.Owner, "user:") == by.ID {
				return ErrOwnAgent // an agent nobody owns could be anybody's: nobody may approve it alone
			}
			continue
		}
		if by.In(not) {
			return ErrNotEntitled
		}
	}
	return nil
}

// Amend replaces the call: a new hash, a new verdict, a new digest, and all
// decisions void. Approving is a separate move that sees the new digest.
func (r *Request) Amend(by identity.Human, seen call.Hash, c call.Call, v policy.Verdict, now time.Time) (ledger.Event, error) {
	if by.IsZero() {
		return ledger.Event{}, ErrNoPerson
	}
	if err := r.decidable(Decision{By: by, Digest: seen}, now); err != nil {
		return ledger.Event{}, err
	}
	if v.Effect == policy.Deny {
		return ledger.Event{}, ErrPolicyDenies
	}
	was := r.committed(ledger.FieldWas, r.Call.Hash())
	r.Call = c
	r.rejudged(v)
	return r.event(ledger.RequestAmended, human(by), append([]ledger.Field{was}, r.asked()...)...), nil
}

// Rejudge takes over the verdict of a newer policy while the request is open.
// A stricter or equal verdict replaces the old one, voids all decisions and so
// changes the digest; a looser one never loosens what is already waiting for
// people, it only renews the digest. A deny ends the request.
func (r *Request) Rejudge(v policy.Verdict, now time.Time) (ledger.Event, error) {
	switch {
	case !r.State.Open():
		return ledger.Event{}, ErrNotPending
	case v.Revision == r.Verdict.Revision:
		return ledger.Event{}, nil
	case v.Effect == policy.Deny:
		return r.Refuse(v, now)
	case v.Effect == policy.Allow && r.Verdict.Effect == policy.Ask:
		kept := r.Verdict
		kept.Revision = v.Revision
		v = kept
	}
	r.rejudged(v)
	return r.event(ledger.RequestRejudged, system(), r.asked()...), nil
}

func (r *Request) rejudged(v policy.Verdict) {
	r.Verdict = v
	r.Digest = r.digest()
	for i := range r.Decisions {
		r.Decisions[i].Void = true
	}
	r.State = Pending
	if v.Effect == policy.Allow {
		r.State = Approved
	}
}

// Extension is by how much Extend moves the deadline.
const Extension = 5 * time.Minute

// MaxExtensions is how often the deadline of one request can be moved.
const MaxExtensions = 10

// Extend moves the deadline of a request that waits for people.
func (r *Request) Extend(by identity.Human, now time.Time) (ledger.Event, error) {
	switch {
	case by.IsZero():
		return ledger.Event{}, ErrNoPerson
	case r.State != Pending:
		return ledger.Event{}, ErrNotPending
	case !now.Before(r.ExpiresAt):
		return ledger.Event{}, ErrExpired
	case r.Extended >= MaxExtensions:
		return ledger.Event{}, ErrExtensions
	}
	if err := Entitled(r.Verdict.Of, by, r.From, false); err != nil {
		return ledger.Event{}, err
	}
	r.Extended++
	r.ExpiresAt = r.ExpiresAt.Add(Extension)
	return r.event(ledger.RequestExtended, human(by), field(ledger.FieldDeadline, stamp(r.ExpiresAt))), nil
}

// Attach notes that the agent asked for the same open request again.
func (r *Request) Attach(session string) (ledger.Event, error) {
	if !r.State.Open() {
		return ledger.Event{}, ErrEnded
	}
	r.Asks++
	return r.event(ledger.RequestAttached, r.agent(), field(ledger.FieldSession, session), field("asks", int64(r.Asks))), nil
}
