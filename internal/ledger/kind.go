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
// two events of one request when, and only when, the hashes were. "It waits" means
// that it is pending or approved; "it began" that a claim was made and, where the
// caller executes, its token redeemed.
const (
	// RequestAsked opens a request. It must be the first event of its subject.
	// Data: call, digest, effect ("allow", "grant", "ask", "deny"), definition,
	// tier, rule, policy, agent, server, tool, deadline, [extra] (commitment to what
	// is sent beside the call), [owner], [session], [workspace], [plan], [quorum]
	// (people needed with "ask"; 1 when absent),
	// [not_requester] (true when the policy bars the owner from approving),
	// [grant] (with "grant"), [reason]. The effect "deny" ends the story.
	RequestAsked Kind = "request.asked"
	// RequestAttached says that the agent asked for the same thing again. The
	// request must be waiting. Data: [session], [asks].
	RequestAttached Kind = "request.attached"
	// RequestDecided is one person's decision, so its actor must be a human. The
	// request must be pending, call and digest must be the current ones, and with
	// not_requester an approval must not be the owner's. A denial ends the story.
	// Data: decision ("approve", "deny"), call, digest, [reason], [scope],
	// [strength], [typed], [approvals], [state].
	RequestDecided Kind = "request.decided"
	// RequestAmended replaces the call and clears all approvals; its actor must be
	// a human, the request must be waiting, and "was" must be the call that it
	// replaces. Data: was, and the fields of RequestAsked with any effect but
	// "deny".
	RequestAmended Kind = "request.amended"
	// RequestRejudged is a newer policy's verdict on the same call; it clears all
	// approvals. The request must be waiting, the call must stay, and what waited
	// for people must not become allowed. Data: the fields of RequestAsked with
	// any effect but "deny".
	RequestRejudged Kind = "request.rejudged"
	// RequestExtended moves the deadline. The request must be waiting. Data:
	// deadline, [reason].
	RequestExtended Kind = "request.extended"
	// RequestDryRun records a trial that had no effect. The request must be
	// waiting. Data: call, [result].
	RequestDryRun Kind = "request.dry_run"
	// RequestClaimed starts the one execution. It must come at most once, with the
	// current call and digest, after enough approvals by distinct people or an
	// effect of "allow" or "grant", in the epoch in which the request was asked.
	// Data: claim (its id), call, digest, [executor] ("gateway", "caller"),
	// [effect], [policy], [token] (its id), [holder], [approvals], [grant].
	RequestClaimed Kind = "request.claimed"
	// RequestRedeemed is a caller's use of its token. It must come at most once,
	// after the claim of a caller, with its claim and call. Data: claim, call,
	// [token].
	RequestRedeemed Kind = "request.redeemed"
	// RequestFinished ends an execution with what is known of it. It must come at
	// most once, after it began, or after it was lost and the answer came after
	// all. Data: claim, outcome ("executed", "failed"), [detail], [result]
	// (commitment), [size], [cause].
	RequestFinished Kind = "request.finished"
	// RequestLost says that an execution's outcome cannot be known. It must come
	// after it began. Data: claim, [cause].
	RequestLost Kind = "request.lost"
	// RequestResolved is a person's word on a lost execution, so its actor must be
	// a human. Data: outcome ("executed", "failed"), [claim], [detail], [reason].
	RequestResolved Kind = "request.resolved"
	// RequestExpired ends a request at its deadline, or a claim whose token was
	// never redeemed. It must come before it began. Data: [cause], [claim].
	RequestExpired Kind = "request.expired"
	// RequestCancelled ends a request that was withdrawn, revoked or voided. It
	// must come before it began. Data: [cause], [reason].
	RequestCancelled Kind = "request.cancelled"
	// RequestDenied is a refusal by policy: the first event of a call that was
	// never held, or the end of a request that policy no longer allows, before it
	// began. Data: the fields of RequestAsked, all optional, [cause].
	RequestDenied Kind = "request.denied"
	// ResultPickedUp says that the asker received the outcome. The request must
	// have ended. Data: [claim].
	ResultPickedUp Kind = "result.picked_up"
	// CallRepeated says that a call which had been denied was asked again, refused,
	// and shown to nobody. The request must have ended. Data: cause, [session].
	CallRepeated Kind = "call.repeated"
	// ResultReplayed says that a recorded outcome was told again; nothing ran. The
	// request must have ended. Data: [claim], [result].
	ResultReplayed Kind = "result.replayed"
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
	// pinned one. The subject is "server.tool". Data: definition, was. Where the
	// subject is "server" alone, all its tools are held, for they change too fast.
	// Data: cause.
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
	// request asked before it must be claimed after it, so it is recorded before
	// the first of them is cancelled. The subject is the store's name. Data: epoch,
	// cause.
	EpochBumped Kind = "epoch.bumped"
	// LedgerKeyRotated hands the log to another key. The subject is the log's
	// origin. Data: was, key (both verifier keys). A checkpoint over it must be
	// signed with both, and every checkpoint over it with the new one.
	LedgerKeyRotated Kind = "ledger.key_rotated"
	// LedgerExported says that the record left the house. The subject is the
	// log's origin. Data: size, [from].
	LedgerExported Kind = "ledger.exported"
)

// kinds is a table, never written; [Kinds] returns copies.
var kinds = [...]Kind{
	RequestAsked, RequestAttached, RequestDecided, RequestAmended, RequestRejudged,
	RequestExtended, RequestDryRun, RequestClaimed, RequestRedeemed, RequestFinished,
	RequestLost, RequestResolved, RequestExpired, RequestCancelled, RequestDenied,
	ResultPickedUp, CallRepeated, ResultReplayed,
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

// wellFormed reports whether k could be a kind of some version: two plain names
// and a dot between them.
func (k Kind) wellFormed() bool {
	area, what, ok := strings.Cut(string(k), ".")
	return ok && plainName(area) && plainName(what)
}

// ofRequest reports whether the subject of k is a request.
func (k Kind) ofRequest() bool {
	area, _, _ := strings.Cut(string(k), ".")
	return area == "request" || area == "result" || area == "call"
}

// Names of the fields that [Verify] reads, and of those that several kinds share.
const (
	FieldCall         = "call"
	FieldDigest       = "digest"
	FieldExtra        = "extra"
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
