package api

import "encoding/json"

// Verb is a person's word.
type Verb string

// The two words.
const (
	Approve Verb = "approve"
	Deny    Verb = "deny"
)

// DecideRequest is a person's decision (POST /v1/requests/{id}/decide).
type DecideRequest struct {
	// approve or deny.
	Decision Verb `json:"decision"`
	// The digest of the request as it was on the screen.
	Digest string `json:"digest"`
	// For how much the approval counts. Absent means once.
	Scope *Scope `json:"scope,omitempty"`
	// Why. The agent reads it word for word.
	Reason string `json:"reason,omitempty"`
	// What the request asks for beyond the word.
	Confirm *Confirm `json:"confirm,omitempty"`
}

// Scope says for how much an approval counts.
type Scope struct {
	// once.
	Kind string `json:"kind"`
	// How long a window lasts. Only with the kind "window".
	For Duration `json:"for,omitzero"`
}

// ScopeOnce is the scope of one call.
const ScopeOnce = "once"

// Confirm is a stronger confirmation of an approval.
type Confirm struct {
	// What was typed, where the request asks for it.
	Typed string `json:"typed,omitempty"`
	// An assertion by a passkey, where the request asks for it.
	Passkey json.RawMessage `json:"passkey,omitempty"`
}

// ExtendRequest moves the deadline by five minutes
// (POST /v1/requests/{id}/extend). It has no fields.
type ExtendRequest struct{}

// ResolveRequest is a person's word on an unknown outcome
// (POST /v1/requests/{id}/resolve).
type ResolveRequest struct {
	// What was found: succeeded, errored or not_sent.
	Outcome Outcome `json:"outcome"`
	// How it was found out.
	Note string `json:"note,omitempty"`
}

// PauseRequest stops agents (POST /v1/pause) or lets them go on
// (POST /v1/resume).
type PauseRequest struct {
	// One session, as GET /v1/sessions names it. Absent means all agents.
	Session string `json:"session,omitempty"`
	// Why.
	Reason string `json:"reason,omitempty"`
}

// Sessions is what is paused (GET /v1/sessions).
type Sessions struct {
	// All agents are paused.
	AllPaused bool `json:"allPaused"`
	// The sessions that are paused, as "agent/session".
	Paused []string `json:"paused"`
}

// Definition is a tool's definition that ayegate pinned.
type Definition struct {
	// Id of the server.
	Server string `json:"server"`
	// Name of the tool.
	Tool string `json:"tool"`
	// SHA-256 of the definition that is offered now.
	Definition string `json:"definition"`
	// It is the one that people know. When false, calls of the tool are refused.
	Accepted bool `json:"accepted"`
	// SHA-256 of the definition that was accepted before, while the new one is not.
	Was string `json:"was,omitempty"`
	// The tool as the server describes it now.
	Offered json.RawMessage `json:"offered"`
	// The tool as it was accepted before, while the new one is not.
	Before json.RawMessage `json:"before,omitempty"`
}

// Definitions lists pinned tools (GET /v1/definitions).
type Definitions struct {
	// By server and name.
	Definitions []Definition `json:"definitions"`
}

// AcceptRequest is a person's yes to a changed definition
// (POST /v1/definitions/accept).
type AcceptRequest struct {
	// Id of the server.
	Server string `json:"server"`
	// Name of the tool.
	Tool string `json:"tool"`
	// The definition as it was on the screen: SHA-256.
	Definition string `json:"definition"`
}

// ExplainRequest asks what the policy says of a call
// (POST /v1/policy/explain). Nothing runs and nothing is held.
type ExplainRequest struct {
	// Id of the server.
	Server string `json:"server"`
	// Name of the tool.
	Tool string `json:"tool"`
	// The arguments. Absent means {}.
	Args json.RawMessage `json:"args,omitempty"`
	// Id of the agent that would ask. Absent: nobody in particular.
	Agent string `json:"agent,omitempty"`
}

// Explanation is what a policy says of a call.
type Explanation struct {
	// deny, ask or allow.
	Effect string `json:"effect"`
	// R0 to R4.
	RiskTier string `json:"riskTier"`
	// The deciding rule, guard or limit.
	Rule string `json:"rule"`
	// Its own words.
	Why string `json:"why"`
	// What it says the call does.
	Effects []Effect `json:"effects"`
	// How to undo it, or that no way is known.
	Rollback string `json:"rollback"`
	// Who would decide.
	Approvers Approvers `json:"approvers"`
	// How many distinct people would have to approve.
	Quorum int `json:"quorum"`
	// What an approval would have to carry.
	Confirm ConfirmNeeded `json:"confirm"`
	// SHA-256 of the canonical call.
	ToolCallHash string `json:"toolCallHash"`
	// How it came to this.
	PolicyTrace PolicyTrace `json:"policyTrace"`
}

// Me says who the credential is (GET /v1/me).
type Me struct {
	// "user:ana".
	Subject string `json:"subject"`
	// How they are called.
	Name string `json:"name"`
	// The groups of the configuration.
	Groups []string `json:"groups"`
	// token, session or passkey.
	Strength string `json:"strength"`
	// Version of the server.
	Version string `json:"version"`
}
