// Package approval owns the life of a request: its states and the legal moves
// between them.
//
// A move is a method of [Request]. It is pure and safe to run again: it takes
// the time, sets every field its transition needs, names the cause, and returns
// the event that must be committed together with the change. A move that fails
// changes nothing. A move that returns no error and a zero event found its work
// already done and changed nothing either.
//
// What the package guarantees, whatever order moves come in:
//   - a request is claimed at most once, before its deadline, after a rule or
//     enough distinct people approved exactly its digest;
//   - after denied, cancelled or expired there is no claim;
//   - decisions are only ever appended;
//   - an effect whose outcome nobody can know is unknown, never failed, and
//     leaves that state only by a person's word.
//
// The package does not store, judge, execute or tell anybody: that is the work
// of store, policy and desk. Time comes in as an argument.
package approval

// State of a request. The zero value is no state; no move is legal from it.
//
//	            ┌─────────── Decide (deny) ────────> Denied
//	Pending ────┤─────────── Expire ───────────────> Expired
//	            ├─────────── Cancel ───────────────> Cancelled
//	            └── Decide (enough) ──> Approved ── Claim ──> Executing ── Finish ──> Executed | Failed
//	  Amend, Rejudge: stay Pending,       │                       └── Lose ──> Unknown ── Resolve ──> Executed | Failed
//	  decisions void                      └── Expire, Cancel, Refuse ──> Expired | Cancelled | Denied
//
// Amend and Rejudge also lead from Approved back to Pending. An unredeemed claim
// of a caller that lets its token run out never started: Executing -> Expired.
type State string

// The states, each with who acts next.
const (
	// Pending waits for people: an entitled person decides, the agent may
	// withdraw, the sweeper ends it at its deadline.
	Pending State = "pending"
	// Approved waits for the executor: a rule or enough people said yes; the
	// gateway or the caller claims it before the deadline.
	Approved State = "approved"
	// Executing waits for the tool: the claim is taken, the call may have been
	// sent; the executor finishes it, or recovery declares it lost.
	Executing State = "executing"
	// Executed is an end: the tool answered.
	Executed State = "executed"
	// Failed is an end: the tool answered with an error, or nothing was sent.
	Failed State = "failed"
	// Unknown waits for a person: the call may have run, no answer came.
	Unknown State = "unknown"
	// Denied is an end: a person or the policy said no. Nothing ran.
	Denied State = "denied"
	// Expired is an end: the deadline passed without a claim. Nothing ran.
	Expired State = "expired"
	// Cancelled is an end: withdrawn, revoked or void. Nothing ran.
	Cancelled State = "cancelled"
)

// States lists all states in the order of a request's life.
var States = []State{Pending, Approved, Executing, Executed, Failed, Unknown, Denied, Expired, Cancelled}

// Open reports whether a claim may still come.
func (s State) Open() bool { return s == Pending || s == Approved }

// Final reports whether no move leads on. Unknown is not final: a person resolves it.
func (s State) Final() bool {
	switch s {
	case Executed, Failed, Denied, Expired, Cancelled:
		return true
	case Pending, Approved, Executing, Unknown:
	}
	return false
}

// Cause says why a request reached its state where the state alone does not.
type Cause string

// Causes.
const (
	ByPerson     Cause = "person"            // a person denied, revoked or cancelled
	ByPolicy     Cause = "policy"            // the policy denies it, at asking or at the claim
	ByDeadline   Cause = "deadline"          // nobody decided, or nobody claimed, in time
	ByAgent      Cause = "withdrawn"         // the agent took it back
	ByDefinition Cause = "definition"        // the tool's definition changed
	ByRejudging  Cause = "policy_changed"    // the policy now asks for more than was given
	ByEpoch      Cause = "store_rolled_back" // the store lost what it had promised: everything open is void
	ByCrash      Cause = "crash"             // the executor died between claim and finish
	ByTimeout    Cause = "no_answer"         // the tool did not answer in time
	ByTransport  Cause = "connection_lost"   // the connection to the tool broke after sending
	BySize       Cause = "answer_too_large"  // the tool's answer could not be taken in
)

// Causes lists all causes.
var Causes = []Cause{
	ByPerson, ByPolicy, ByDeadline, ByAgent, ByDefinition, ByRejudging, ByEpoch, ByCrash, ByTimeout, ByTransport, BySize,
}
