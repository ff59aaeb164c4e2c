package api

import (
	"encoding/json"
	"time"
)

// CallRequest is a call that an agent wants to happen (POST /v1/calls).
type CallRequest struct {
	// Id of the tool server, as the configuration names it.
	Server string `json:"server"`
	// Name of the tool.
	Tool string `json:"tool"`
	// The arguments, a JSON object. Absent means {}. What is shown, hashed and sent is their canonical form.
	Args json.RawMessage `json:"args,omitempty"`
	// Who performs the call: "gateway" (the default) for a server that ayegate fronts, "caller" for the asker itself.
	Executor Executor `json:"executor,omitempty"`
	// A label of the caller for its session. Shown as unchecked; sessions that mean something are made by ayegate.
	Session string `json:"session,omitempty"`
	// A label of the caller for its run. Shown as unchecked.
	Run string `json:"run,omitempty"`
	// The workspace. It must be the one of the agent's configuration, or absent.
	Workspace string `json:"workspace,omitempty"`
	// The device that will perform the call. A token is then good on this device only.
	Device string `json:"device,omitempty"`
	// What the agent says of the call. Shown to people as unchecked.
	Reason string `json:"reason,omitempty"`
	// The caller's idempotency key: same key and call, same request.
	Key string `json:"key,omitempty"`
	// How long to wait for people before answering "pending". At most five minutes.
	Wait Duration `json:"wait,omitzero"`
}

// Call is what became of a call, as the agent that asked may know it.
type Call struct {
	// Where it stands.
	Status Status `json:"status"`
	// What it means for the agent, such as TOOL_BLOCKED_PENDING_APPROVAL. Absent when the tool answered.
	Code Code `json:"code,omitempty"`
	// The request behind the call, a UUID. Absent when the call was refused without one.
	ApprovalID string `json:"approvalId,omitempty"`
	// The short name of the request, for people: "K7Q4".
	ID string `json:"id,omitempty"`
	// SHA-256 of the canonical call.
	ToolCallHash string `json:"toolCallHash,omitempty"`
	// Who performs it.
	Executor Executor `json:"executor,omitempty"`
	// Deadline for a decision and for the start.
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
	// The server's clock when it answered.
	ServerNow time.Time `json:"serverNow"`
	// The page on which people decide. It is no secret and grants nothing.
	URL string `json:"url,omitempty"`
	// The same request was asked before; this asked for it again.
	Attached bool `json:"attached,omitempty"`
	// What to tell the model: what did not happen, why, what to do next.
	Text string `json:"text,omitempty"`
	// The same as an object: code, id, retry, ran and more.
	Told json.RawMessage `json:"told,omitempty"`
	// The tool says that it failed.
	IsError bool `json:"isError,omitempty"`
	// What the tool answered, unchanged. Absent when it is no longer kept.
	Result json.RawMessage `json:"result,omitempty"`
}

// AwaitRequest goes on waiting for a call (POST /v1/calls/{id}/await). When
// ayegate performs the call and it is approved, this is what makes it run.
type AwaitRequest struct {
	// How long to wait. At most five minutes.
	Wait Duration `json:"wait,omitzero"`
}

// ClaimRequest asks for the token of an approved call that the caller performs
// (POST /v1/calls/{id}/claim).
type ClaimRequest struct {
	// The device that was named when the call was asked, if one was.
	Device string `json:"device,omitempty"`
}

// Token is the right to perform one approved call once. The secret is told
// here and never again.
type Token struct {
	// A UUID that names the token without giving it away.
	TokenID string `json:"tokenId"`
	// The request that was approved.
	ApprovalID string `json:"approvalId"`
	// SHA-256 of the canonical call that may be performed.
	ToolCallHash string `json:"toolCallHash"`
	// The token must be redeemed before.
	ExpiresAt time.Time `json:"expiresAt"`
	// Always true.
	SingleUse bool `json:"singleUse"`
	// What was approved.
	Scope Scope `json:"scope"`
	// The only device on which the token is good. Absent for any.
	IssuedToClientDeviceID string `json:"issuedToClientDeviceId,omitempty"`
	// The secret, 256 random bits.
	Token string `json:"token"`
}

// RedeemRequest spends a token (POST /v1/calls/{id}/redeem). Only after the
// answer 200 may the effect start.
type RedeemRequest struct {
	// The secret of the token.
	Token string `json:"token"`
	// SHA-256 of the canonical call that is about to be performed.
	ToolCallHash string `json:"toolCallHash"`
	// The device that was named when the call was asked, if one was.
	Device string `json:"device,omitempty"`
}

// FinishRequest reports what a call came to that the caller performed
// (POST /v1/calls/{id}/finish).
type FinishRequest struct {
	// succeeded, errored, not_sent or in_doubt.
	Outcome Outcome `json:"outcome"`
	// What the tool answered, any JSON.
	Result json.RawMessage `json:"result,omitempty"`
	// Why there is no result, in words.
	Error string `json:"error,omitempty"`
}

// CancelRequest takes a call back (POST /v1/calls/{id}/cancel) or revokes a
// request (POST /v1/requests/{id}/cancel). It has no fields.
type CancelRequest struct{}
