package ledger

import (
	"slices"
	"strings"
)

// Kind says what an event records. Each constant's comment lists the fields of
// the event's data by their names; a field in brackets is optional. What [Verify]
// checks is said with "must". Fields not listed are allowed and unchecked.
type Kind string

// A request's story. The subject of each is the request's id.
//
// "call" and "digest" are commitments ([Commit]) to the call hash and to the
// digest that a person decides about, under the salt of the request: equal in
// two events of one request when, and only when, the hashes were.
const (
	// RequestAsked opens a request. It must be the first event of its subject.
	// Data: call, digest, definition, effect ("allow", "grant", "ask", "deny"),
	// tier, rule, policy, agent, [owner], [session], [workspace], [server],
	// [tool], [quorum] (with "ask"; 1 when absent), [not_requester] (true when the
	// policy bars the owner from approving), [grant] (with "grant"), [deadline],
	// [reason]. With the effect "deny" the story ends here.
	RequestAsked Kind = "request.asked"
	// RequestDecided is one person's decision, so its actor must be a human. It
	// must come while the request is pending or approved, and must carry the
	// current call and digest. With not_requester the actor must not be the owner.
	// Data: decision ("approve", "deny"), call, digest, [reason], [scope],
	// [strength], [seen_ms]. A denial ends the story.
	RequestDecided Kind = "request.decided"
	// RequestAmended replaces the call; it must come before the claim, from a
	// human. It clears all approvals. Data: was (the replaced call), call, digest,
	// effect, tier, rule, policy, [definition], [quorum], [not_requester],
	// [approves] (true when the editor's approval counts as the first), [reason].
	// "was" must be the call that it replaces.
	RequestAmended Kind = "request.amended"
	// RequestRejudged takes over the verdict of a newer policy while the request
	// is open; by the system. Like RequestAmended it clears all approvals, but the
	// call stays. Data: call, digest, effect, tier, rule, policy, [quorum],
	// [not_requester].
	RequestRejudged Kind = "request.rejudged"
	// RequestAttached says that the agent asked for the same open request again.
	// It changes nothing else. Data: asks, [session].
	RequestAttached Kind = "request.attached"
	// RequestExtended moves the deadline. Data: deadline, [reason].
	RequestExtended Kind = "request.extended"
	// RequestDryRun records a trial that had no effect. Data: call, [result].
	RequestDryRun Kind = "request.dry_run"
	// RequestClaimed starts the one execution. It must come at most once, after
	// enough approvals by distinct people or an effect of "allow" or "grant", with
	// the current call, in the epoch in which the request was asked. Data: call,
	// claim (its id), [digest], [rule], [policy], [grant], [executor] ("caller"
	// when an agent runs it itself and must redeem first), [token] (its id).
	RequestClaimed Kind = "request.claimed"
	// RequestRedeemed is an outside executor's use of its token. It must come at
	// most once, after the claim. Data: call, claim; both must be the claim's.
	RequestRedeemed Kind = "request.redeemed"
	// RequestFinished ends an execution with what is known of it. It must come at
	// most once, after the claim. Data: claim, outcome ("executed", "failed"),
	// [result] (commitment), [cause], [took_ms]. A caller that never redeemed must
	// not have executed.
	RequestFinished Kind = "request.finished"
	// RequestExpired ends a request at its deadline. It must come before anything
	// started to run. Data: [cause].
	RequestExpired Kind = "request.expired"
	// RequestCancelled ends a request that was withdrawn or voided. It must come
	// before anything started to run. Data: [cause], [reason].
	RequestCancelled Kind = "request.cancelled"
	// RequestLost says that an execution's outcome cannot be known. It must come
	// after the claim. Data: claim, [cause].
	RequestLost Kind = "request.lost"
	// RequestResolved is a person's word on a lost execution, so its actor must be
	// a human. Data: outcome ("executed", "failed"), [claim], [reason].
	RequestResolved Kind = "request.resolved"
	// RequestDenied is a refusal by policy: the first event of a call that was
	// never held, or the end of a request that policy no longer allows. It must
	// come before anything started to run. Data: [call], [definition], [tier],
	// [rule], [policy], [agent], [owner], [session], [server], [tool], [cause].
	RequestDenied Kind = "request.denied"
	// ResultReplayed says that a recorded result was told again; nothing ran. The
	// request must have ended. Data: [result].
	ResultReplayed Kind = "result.replayed"
	// ResultPickedUp says that the asker received the outcome. The request must
	// have ended. Data: [claim].
	ResultPickedUp Kind = "result.picked_up"
)

// Standing grants. The subject is the grant's id.
const (
	// GrantGiven is a person's lasting approval of a predicate. Data: request,
	// scope, predicate (commitment), tier, uses, expires, policy, definition.
	GrantGiven Kind = "grant.given"
	// GrantRevoked is a person's end to a grant. Data: [reason].
	GrantRevoked Kind = "grant.revoked"
	// GrantVoided ends a grant whose ground changed: definition, policy, the
	// granter's rights, uses, time. Data: cause.
	GrantVoided Kind = "grant.voided"
)

// What decides: policies, tools, configuration.
const (
	// PolicyLoaded puts a policy in force. The subject is its name. Data: policy
	// (revision), [was].
	PolicyLoaded Kind = "policy.loaded"
	// PolicyRejected says that a policy was not loaded and the old one stays.
	// The subject is its name. Data: cause, [policy].
	PolicyRejected Kind = "policy.rejected"
	// DefinitionPinned is the first sight of a tool. The subject is
	// "server.tool". Data: definition.
	DefinitionPinned Kind = "definition.pinned"
	// DefinitionChanged says that a server now offers another definition than the
	// pinned one. The subject is "server.tool". Data: definition, was.
	DefinitionChanged Kind = "definition.changed"
	// DefinitionAccepted is a person's yes to a changed definition. The subject
	// is "server.tool". Data: definition, [was].
	DefinitionAccepted Kind = "definition.accepted"
	// ConfigLoaded puts a configuration in force. The subject is its name. Data:
	// config (hash), version (of the program).
	ConfigLoaded Kind = "config.loaded"
)

// Who may: sign-in and credentials.
const (
	// AuthSignedIn is a person's sign-in. The subject is the session. Data:
	// method, strength.
	AuthSignedIn Kind = "auth.signed_in"
	// AuthSignedOut ends a session. The subject is the session. Data: [cause].
	AuthSignedOut Kind = "auth.signed_out"
	// AuthFailed is a credential that was refused. The subject is what was tried.
	// Data: method, cause.
	AuthFailed Kind = "auth.failed"
	// KeyAdded is a new credential. The subject is its id. Data: class ("agent",
	// "human"), for (its holder).
	KeyAdded Kind = "key.added"
	// KeyRevoked ends a credential. The subject is its id. Data: [reason].
	KeyRevoked Kind = "key.revoked"
)

// Stops.
const (
	// PauseSet stops all claims. The subject is what is paused. Data: [reason].
	PauseSet Kind = "pause.set"
	// PauseCleared lets claims start again. The subject is what was paused. Data:
	// [reason].
	PauseCleared Kind = "pause.cleared"
	// SessionPaused stops one session. The subject is the session. Data: [rule],
	// [cause], [reason].
	SessionPaused Kind = "session.paused"
	// SessionResumed lets a session ask again. The subject is the session. Data:
	// [reason].
	SessionResumed Kind = "session.resumed"
)

// The record itself.
const (
	// StoreOpened is a start of the program on this store. The subject is the
	// store's name. Data: backend, version, epoch.
	StoreOpened Kind = "store.opened"
	// EpochBumped voids all that was open: a restore, a failover, a lost store. No
	// request asked before it must be claimed after it. The subject is the store's
	// name. Data: epoch, cause.
	EpochBumped Kind = "epoch.bumped"
	// LedgerKeyRotated hands the log to another key. The subject is the log's
	// origin. Data: was, key (both verifier keys). The first checkpoint over it
	// must be signed with both, every later one with the new.
	LedgerKeyRotated Kind = "ledger.key_rotated"
	// LedgerExported says that the record left the house. The subject is the
	// log's origin. Data: size, [from].
	LedgerExported Kind = "ledger.exported"
)

// kinds is a table, never written; [Kinds] returns copies.
var kinds = [...]Kind{
	RequestAsked, RequestDecided, RequestAmended, RequestRejudged, RequestAttached, RequestExtended, RequestDryRun,
	RequestClaimed, RequestRedeemed, RequestFinished, RequestExpired,
	RequestCancelled, RequestLost, RequestResolved, RequestDenied, ResultReplayed, ResultPickedUp,
	GrantGiven, GrantRevoked, GrantVoided,
	PolicyLoaded, PolicyRejected, DefinitionPinned, DefinitionChanged,
	DefinitionAccepted, ConfigLoaded,
	AuthSignedIn, AuthSignedOut, AuthFailed, KeyAdded, KeyRevoked,
	PauseSet, PauseCleared, SessionPaused, SessionResumed,
	StoreOpened, EpochBumped, LedgerKeyRotated, LedgerExported,
}

// Kinds returns every kind, in the order of their declaration.
func Kinds() []Kind { return slices.Clone(kinds[:]) }

// Known reports whether k is one of [Kinds]. Only known kinds are written; a
// reader accepts others, written by a later version, and does not judge them.
func (k Kind) Known() bool { return slices.Contains(kinds[:], k) }

// ofRequest reports whether the subject of k is a request.
func (k Kind) ofRequest() bool {
	return strings.HasPrefix(string(k), "request.") || k == ResultReplayed || k == ResultPickedUp
}

// Names of the fields that [Verify] reads, and of those that several kinds share.
const (
	FieldCall         = "call"
	FieldDigest       = "digest"
	FieldDefinition   = "definition"
	FieldDecision     = "decision"
	FieldReason       = "reason"
	FieldRule         = "rule"
	FieldEffect       = "effect"
	FieldTier         = "tier"
	FieldPolicy       = "policy"
	FieldAgent        = "agent"
	FieldOwner        = "owner"
	FieldSession      = "session"
	FieldWorkspace    = "workspace"
	FieldServer       = "server"
	FieldTool         = "tool"
	FieldClaim        = "claim"
	FieldExecutor     = "executor"
	FieldToken        = "token"
	FieldOutcome      = "outcome"
	FieldResult       = "result"
	FieldCause        = "cause"
	FieldQuorum       = "quorum"
	FieldNotRequester = "not_requester"
	FieldApproves     = "approves"
	FieldGrant        = "grant"
	FieldScope        = "scope"
	FieldDeadline     = "deadline"
	FieldStrength     = "strength"
	FieldEpoch        = "epoch"
	FieldWas          = "was"
	FieldKey          = "key"
)

// Values of fields that [Verify] reads.
const (
	EffectAllow     = "allow"
	EffectGrant     = "grant"
	EffectAsk       = "ask"
	EffectDeny      = "deny"
	Approve         = "approve"
	Deny            = "deny"
	Executed        = "executed"
	Failed          = "failed"
	ExecutorGateway = "gateway"
	ExecutorCaller  = "caller"
)
