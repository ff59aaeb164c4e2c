package api

import (
	"encoding/json"
	"time"
)

// Request is an approval request as people see it (GET /v1/requests/{id}).
type Request struct {
	// A UUID.
	ApprovalID string `json:"approvalId"`
	// The short name for people: "K7Q4". Unique among open requests.
	Code string `json:"code"`
	// The session that ayegate made for the agent's credential or connection.
	SessionID string `json:"sessionId"`
	// Labels of the agent for its session and run, unchecked.
	RunID string `json:"runId"`
	// From the agent's configuration.
	WorkspaceID string `json:"workspaceId"`
	// Who asks.
	Agent Agent `json:"agent"`
	// Id of the tool server.
	Server string `json:"server"`
	// Name of the tool.
	Tool string `json:"tool"`
	// The canonical call, as text: exactly the bytes that are hashed, and whose "args" are sent to the tool.
	ToolCallCanonical string `json:"toolCallCanonical"`
	// SHA-256 of toolCallCanonical.
	ToolCallHash string `json:"toolCallHash"`
	// What is sent to the tool's server beside the call: canonical JSON of the other members of the request's params, as text. Empty when nothing is.
	// It does not change, so a decision about this request is one about it.
	Extras string `json:"extras"`
	// SHA-256 of the tool's definition when it was asked for. Empty when it is not known.
	DefinitionHash string `json:"definitionHash"`
	// What a decision is about. A decision must echo it.
	Digest string `json:"digest"`
	// One line made by ayegate from the canonical call. It may leave out arguments, and says so.
	HumanSummary string `json:"humanSummary"`
	// Every literal of the summary occurs in the call.
	SummaryVerified bool `json:"summaryVerified"`
	// What the agent says of the call. Not checked.
	AgentReason string `json:"agentReason"`
	// R0 to R4.
	RiskTier string `json:"riskTier"`
	// The deciding rule's own words. May be empty.
	Why string `json:"why"`
	// The deciding rule, guard or limit.
	Rule string `json:"rule"`
	// What it will do, as far as anybody knows. May be empty.
	Effects []Effect `json:"effects"`
	// How to undo it, or that no way is known.
	Rollback string `json:"rollback"`
	// Whether it can be tried without effect.
	DryRun DryRun `json:"dryRun"`
	// When the agent first asked.
	RequestedAt time.Time `json:"requestedAt"`
	// The deadline: of the decision and of the start.
	ExpiresAt time.Time `json:"expiresAt"`
	// The server's clock when it answered, to tell how much time is left.
	ServerNow time.Time `json:"serverNow"`
	// How often the deadline can still be moved, by five minutes each time.
	ExtensionsLeft int `json:"extensionsLeft"`
	// What a person changed in the call. Empty when nobody did.
	Diff []Change `json:"diff"`
	// Other calls that were suggested instead.
	SuggestedAlternatives []json.RawMessage `json:"suggestedAlternatives"`
	// Where it stands.
	Status Status `json:"status"`
	// Why it ended or is in doubt, where the status alone does not say.
	Cause string `json:"cause,omitempty"`
	// When it ended.
	EndedAt time.Time `json:"endedAt,omitzero"`
	// What people said, in order. Void ones were given before the request changed.
	Decisions []Decision `json:"decisions"`
	// How many distinct people must approve. 0 when a rule allowed it.
	Quorum int `json:"quorum"`
	// How many of them are still missing.
	ApprovalsNeeded int `json:"approvalsNeeded"`
	// Who may decide.
	Approvers Approvers `json:"approvers"`
	// What an approval must carry.
	Confirm ConfirmNeeded `json:"confirm"`
	// Who performs the call.
	Executor Executor `json:"executor"`
	// How many askers wait for it right now: when none does, it runs when the agent returns.
	Waiting int `json:"waiting"`
	// How often the agent asked for it while it was open.
	Asks int `json:"asks"`
	// How many characters of the call and its extras cannot be seen or are easily mistaken.
	HiddenCharacters int `json:"hiddenCharacters"`
	// What became of the effect.
	Execution *Execution `json:"execution,omitempty"`
	// How the policy came to its verdict.
	PolicyTrace PolicyTrace `json:"policyTrace"`
}

// Agent is who asks.
type Agent struct {
	// Id from the configuration.
	ID string `json:"id"`
	// The person it works for: "user:ana". Empty when nobody owns it.
	Owner string `json:"owner"`
	// The device of its credential. Empty when it has none.
	Device string `json:"device"`
}

// Sources of effects.
const (
	FromGateway = "gateway"      // measured or done by ayegate
	FromPolicy  = "policy"       // words of the rule
	FromServer  = "server claim" // the tool server says so, unchecked
	FromAgent   = "agent claim"  // the agent says so, unchecked
)

// Effect is one thing that the call will do, and who says so.
type Effect struct {
	// What it does.
	Text string `json:"text"`
	// gateway, policy, server claim or agent claim.
	Source string `json:"source"`
}

// DryRun says whether a call can be tried without effect.
type DryRun struct {
	// Whether it can.
	Available bool `json:"available"`
	// Why not, or by what method.
	Note string `json:"note"`
}

// Change is one difference between two calls.
type Change struct {
	// JSON pointer (RFC 6901) into the call.
	Path string `json:"path"`
	// The value before. Absent when it was added.
	Was json.RawMessage `json:"was,omitempty"`
	// The value now. Absent when it was removed.
	Is json.RawMessage `json:"is,omitempty"`
}

// Decision is one person's word on a request.
type Decision struct {
	// Who: "user:ana".
	By string `json:"by"`
	// How they are called.
	Name string `json:"name"`
	// approve or deny.
	Decision Verb `json:"decision"`
	// What they said about it.
	Reason string `json:"reason"`
	// How they proved who they are: token, session, passkey.
	Strength string `json:"strength"`
	// When.
	At time.Time `json:"at"`
	// The request changed afterwards: it counts no more.
	Void bool `json:"void,omitempty"`
}

// Approvers are the people a policy names.
type Approvers struct {
	// The policy's name for them. Empty: anybody who may decide.
	Name string `json:"name"`
	// Subjects such as "user:ana" or "group:db-admins". Empty: anybody.
	AnyOf []string `json:"anyOf"`
	// Subjects that may not approve. "requester" is the owner of the agent.
	Not []string `json:"not"`
}

// ConfirmNeeded is what an approval must carry beyond the word.
type ConfirmNeeded struct {
	// The text to type. Empty when nothing has to be typed.
	Typed string `json:"typed"`
}

// Execution is what became of an effect.
type Execution struct {
	// succeeded, errored, not_sent or in_doubt. Absent while it runs.
	Outcome Outcome `json:"outcome,omitempty"`
	// When it was started.
	StartedAt time.Time `json:"startedAt,omitzero"`
	// When its outcome was recorded.
	At time.Time `json:"at,omitzero"`
	// Size of the result in bytes.
	Size int `json:"size"`
	// SHA-256 of the result.
	ResultHash string `json:"resultHash,omitempty"`
	// The result as text, unchanged. Absent when it is not kept, no longer kept, or too long to be told here.
	Result string `json:"result,omitempty"`
	// Why there is no result, in words.
	Error string `json:"error,omitempty"`
	// When the agent received it.
	PickedUpAt time.Time `json:"pickedUpAt,omitzero"`
	// Who settled an unknown outcome: "user:ana".
	ResolvedBy string `json:"resolvedBy,omitempty"`
	// Travels to the tool as its idempotency key.
	ClaimID string `json:"claimId,omitempty"`
}

// PolicyTrace is how a policy came to its verdict.
type PolicyTrace struct {
	// The policy's hash.
	Revision string `json:"revision"`
	// deny, ask or allow.
	Effect string `json:"effect"`
	// Each thing that was looked at, in order.
	Steps []PolicyStep `json:"steps"`
}

// PolicyStep is one line of a trace.
type PolicyStep struct {
	// guard, rule, limit, default or tier.
	Phase string `json:"phase"`
	// Its id in the policy.
	ID string `json:"id"`
	// Whether it applied.
	Hit bool `json:"hit"`
	// Why, in words. Never values of arguments.
	Note string `json:"note"`
}

// RequestList is a page of requests (GET /v1/requests).
type RequestList struct {
	// The requests.
	Requests []Request `json:"requests"`
	// Continues behind the last one. Absent on the last page.
	Cursor string `json:"cursor,omitempty"`
	// The server's clock when it answered.
	ServerNow time.Time `json:"serverNow"`
}
