package approval

import (
	"time"

	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/identity"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/policy"
)

// ID names a request: a UUID v4 in its canonical lower-case form.
type ID string

// Executor says who performs the effect after the claim.
type Executor string

// Executors. The zero value is none, which may not claim.
const (
	Gateway Executor = "gateway" // ayegate forwards the call: claim and redemption are one commit
	Caller  Executor = "caller"  // the asker performs it itself: the token is redeemed when it starts
)

// Request is the one aggregate: everything that must agree about a call. It
// changes only through the moves of this package, each of which sets every
// field its transition needs and returns the event that goes with it.
type Request struct {
	ID   ID
	Code string // short name for people, "K7Q4"; unique among open requests

	From       identity.Agent
	Run        string // label given by the agent, unchecked
	Reason     string // what the agent says of the call, unchecked
	Key        string // the asker's idempotency key, unique per agent; may be empty
	Distinct   string // the client's own id of the tool use, to tell parallel twins apart; may be empty
	Plan       string // the plan step it belongs to; empty for a single call
	Executor   Executor
	Call       call.Call
	Extra      []byte    // what is sent beside the call, canonical JSON; nil: nothing; never replaced, erased with the payload
	Definition call.Hash // of the tool as pinned when asked; zero: unknown
	Salt       []byte    // keys the commitments in the ledger; erased with the payload
	Verdict    policy.Verdict
	Digest     call.Hash // what a person decides about

	State     State
	Cause     Cause // why it ended, or why it is in doubt
	AskedAt   time.Time
	ExpiresAt time.Time // deadline of the claim
	EndedAt   time.Time // zero while open
	Extended  int       // how often the deadline was moved
	Asks      int       // how often the agent asked for it while it was open, at least 1

	Decisions []Decision // append-only; those before the last amend or re-judgement are marked void
	Claimed   Claim
	Execution Execution
}

// Decision is one person's word on a request. The zero value denies.
type Decision struct {
	By      identity.Human
	Approve bool
	Digest  call.Hash // what was on the person's screen
	Reason  string
	Typed   string // what the person typed where the verdict wants it
	At      time.Time
	Void    bool // the request changed afterwards: counts no more
}

// Claim is the right to perform the effect, given once.
type Claim struct {
	ID       string // UUID; travels upstream as the idempotency key
	At       time.Time
	Holder   string    // the process that claimed, to tell its own claims from those of a dead one
	TokenID  string    // UUID
	Secret   call.Hash // SHA-256 of the token's secret; zero where the token never leaves ayegate
	Device   string    // the device the token is for, empty for any
	Until    time.Time // a caller must redeem the token before, and then report its outcome before; zero where ayegate executes
	Redeemed time.Time // zero until the effect may start
}

// Execution is what became of the effect.
type Execution struct {
	Outcome  Outcome
	Result   []byte    // exactly as the tool answered; nil when erased or not kept
	Hash     call.Hash // SHA-256 of the result as the tool answered
	Size     int       // of the result, bytes
	Error    string    // plain text when no result arrived
	At       time.Time
	PickedUp time.Time // when the asker received it; zero: a re-issue of the call gets it again
	By       string    // subject of the person who resolved an unknown outcome
}

// Outcome of an effect.
type Outcome string

// Outcomes. The zero value is none.
const (
	Succeeded Outcome = "succeeded" // the tool answered without an error mark
	Errored   Outcome = "errored"   // the tool answered with an error: it may have done part of its work
	NotSent   Outcome = "not_sent"  // nothing reached the tool
	InDoubt   Outcome = "in_doubt"  // nobody can know
)

// Opening is what a request starts from.
type Opening struct {
	ID         ID
	Code       string
	From       identity.Agent
	Run        string
	Reason     string
	Key        string
	Distinct   string
	Plan       string
	Executor   Executor
	Call       call.Call
	Extra      []byte // canonical JSON, or nil
	Definition call.Hash
	Salt       []byte // at least 16 random bytes
	Verdict    policy.Verdict
}

// Open starts a request in the state its verdict demands: denied, pending or
// approved by rule.
func Open(o Opening, now time.Time) (*Request, ledger.Event) {
	r := &Request{
		ID: o.ID, Code: o.Code, From: o.From, Run: o.Run, Reason: o.Reason, Key: o.Key, Distinct: o.Distinct,
		Plan: o.Plan, Executor: o.Executor, Call: o.Call, Extra: o.Extra, Definition: o.Definition, Salt: o.Salt, Verdict: o.Verdict,
		AskedAt: now, ExpiresAt: now.Add(ttl(o.Verdict)), Asks: 1,
	}
	r.Digest = r.digest()
	kind := ledger.RequestAsked
	switch o.Verdict.Effect {
	case policy.Allow:
		r.State = Approved
	case policy.Ask:
		r.State = Pending
	case policy.Deny:
		r.State, r.Cause, r.EndedAt = Denied, ByPolicy, now
		kind = ledger.RequestDenied
	}
	return r, r.event(kind, r.agent(), r.asked()...)
}

// DefaultTTL is the time to the deadline where a verdict names none.
const DefaultTTL = 5 * time.Minute

func ttl(v policy.Verdict) time.Duration {
	if v.TTL > 0 {
		return v.TTL
	}
	return DefaultTTL
}

// digest is over the fields of a published contract, which has none for what is
// sent beside the call. The request's id binds it: the extras of a request are set
// when it is opened and no move replaces them, so other extras are another request,
// another id and another digest.
func (r *Request) digest() call.Hash {
	return call.DigestFields{
		Request: string(r.ID), Call: r.Call.Hash(), Definition: r.Definition, Agent: r.From.ID,
		Session: r.From.Session, Workspace: r.From.Workspace, Plan: r.Plan, Policy: r.Verdict.Revision,
	}.Hash()
}

// Approvals lists the distinct people whose approval counts now, in order.
func (r *Request) Approvals() []Decision {
	var out []Decision
	for _, d := range r.Decisions {
		if d.Approve && !d.Void {
			out = append(out, d)
		}
	}
	return out
}

// Quorum is how many distinct people must approve; 0 where a rule allowed.
func (r *Request) Quorum() int {
	if r.Verdict.Effect != policy.Ask {
		return 0
	}
	return max(1, r.Verdict.Quorum)
}

// Clone returns a copy that shares no mutable memory with r.
func (r *Request) Clone() *Request {
	c := *r
	c.Salt = append([]byte(nil), r.Salt...)
	c.Extra = append([]byte(nil), r.Extra...)
	c.Decisions = append([]Decision(nil), r.Decisions...)
	return &c
}
