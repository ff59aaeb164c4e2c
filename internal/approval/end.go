package approval

import (
	"crypto/sha256"
	"slices"
	"time"

	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/identity"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/policy"
)

// Expire ends an open request whose deadline has passed. It is sticky: a clock
// that is set back does not reopen it.
func (r *Request) Expire(now time.Time) (ledger.Event, error) {
	switch {
	case r.State == Expired:
		return ledger.Event{}, nil
	case !r.State.Open():
		return ledger.Event{}, ErrEnded
	case now.Before(r.ExpiresAt):
		return ledger.Event{}, ErrNotPending
	}
	r.end(Expired, ByDeadline, now)
	return r.event(ledger.RequestExpired, system(), field(ledger.FieldCause, string(r.Cause))), nil
}

// Cancel ends an open request: the agent withdraws it, a person revokes it, or
// the gateway voids it. Once claimed it is too late: [ErrClaimed].
func (r *Request) Cancel(by ledger.Actor, why Cause, now time.Time) (ledger.Event, error) {
	switch {
	case r.State == Cancelled:
		return ledger.Event{}, nil
	case r.State == Executing, r.State == Unknown, r.State == Executed, r.State == Failed:
		return ledger.Event{}, ErrClaimed
	case !r.State.Open():
		return ledger.Event{}, ErrEnded
	}
	r.end(Cancelled, why, now)
	return r.event(ledger.RequestCancelled, by, field(ledger.FieldCause, string(why))), nil
}

// Refuse ends an open request because the policy now denies it.
func (r *Request) Refuse(v policy.Verdict, now time.Time) (ledger.Event, error) {
	if !r.State.Open() {
		return ledger.Event{}, ErrEnded
	}
	r.Verdict = v
	r.end(Denied, ByPolicy, now)
	return r.event(ledger.RequestDenied, system(), r.asked()...), nil
}

func (r *Request) end(s State, why Cause, now time.Time) {
	r.State, r.Cause, r.EndedAt = s, why, now
}

// asked lists what was asked and judged, for events that begin or renew a
// request. Arguments are not in it: the record holds commitments, no payload.
func (r *Request) asked() []ledger.Field {
	return []ledger.Field{
		field(ledger.FieldServer, r.Call.Server()), field(ledger.FieldTool, r.Call.Tool()),
		field(ledger.FieldAgent, r.From.ID), field(ledger.FieldOwner, r.From.Owner),
		field(ledger.FieldSession, r.From.Session), field(ledger.FieldWorkspace, r.From.Workspace),
		field("plan", r.Plan), r.committed(ledger.FieldCall, r.Call.Hash()), r.beside(), r.committed(ledger.FieldDigest, r.Digest),
		field(ledger.FieldDefinition, r.Definition.String()), field(ledger.FieldPolicy, r.Verdict.Revision),
		field(ledger.FieldRule, r.Verdict.Rule), field(ledger.FieldEffect, r.Verdict.Effect.String()),
		field(ledger.FieldTier, r.Verdict.Tier.String()), field(ledger.FieldQuorum, int64(r.Quorum())),
		field(ledger.FieldNotRequester, slices.Contains(r.Verdict.Of.Not, "requester")),
		field(ledger.FieldDeadline, stamp(r.ExpiresAt)),
	}
}

// event builds the event of a move; facts that are empty are left out.
func (r *Request) event(k ledger.Kind, by ledger.Actor, data ...ledger.Field) ledger.Event {
	data = slices.DeleteFunc(data, func(f ledger.Field) bool { return f.Value == "" })
	return ledger.Event{Kind: k, Subject: string(r.ID), Actor: by, Data: data}
}

// committed hides a hash that could be guessed from the record alone: who has
// the request's salt can check it, who has only the ledger learns nothing.
func (r *Request) committed(name string, h call.Hash) ledger.Field {
	return field(name, ledger.Commit(r.Salt, h))
}

// beside commits to what is sent beside the call, where there is anything.
func (r *Request) beside() ledger.Field {
	if r.Extra == nil {
		return field(ledger.FieldExtra, "")
	}
	return r.committed(ledger.FieldExtra, sha256.Sum256(r.Extra))
}

func (r *Request) agent() ledger.Actor {
	return ledger.Actor{Kind: ledger.Agent, ID: r.From.ID}
}

func field(name string, v any) ledger.Field { return ledger.Field{Name: name, Value: v} }

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

func human(h identity.Human) ledger.Actor {
	return ledger.Actor{Kind: ledger.Human, ID: h.Subject(), Via: h.Strength.String()}
}

func system() ledger.Actor { return ledger.Actor{Kind: ledger.System, ID: "ayegate"} }
