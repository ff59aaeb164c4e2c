// Package api holds what programs outside ayegate rely on: the types of the HTTP
// API, its stable error codes, and a client. It depends on nothing but the
// standard library, so that an agent or a tool can import it without the server.
package api

// Code names an outcome or an error. Codes are stable: add freely, change never.
type Code string

// What an agent can be told of a call.
const (
	BlockedPendingApproval Code = "TOOL_BLOCKED_PENDING_APPROVAL"
	ToolDenied             Code = "TOOL_DENIED"
	ApprovalExpired        Code = "TOOL_APPROVAL_EXPIRED"
	ApprovalWithdrawn      Code = "TOOL_APPROVAL_WITHDRAWN"
	OutcomeUnknown         Code = "TOOL_OUTCOME_UNKNOWN"
	RateLimited            Code = "TOOL_RATE_LIMITED"
	QueueFull              Code = "APPROVAL_QUEUE_FULL"
	SessionPaused          Code = "SESSION_PAUSED"
	DefinitionHeld         Code = "TOOL_DEFINITION_CHANGED"
)

// Errors of the API, the "code" of an application/problem+json answer.
const (
	BadRequest           Code = "bad_request"
	Unauthenticated      Code = "unauthenticated"
	WrongCredentialClass Code = "wrong_credential_class"
	Forbidden            Code = "forbidden"
	NotFound             Code = "not_found"
	TooLarge             Code = "too_large"
	UnsupportedMedia     Code = "unsupported_media_type"
	NotEntitled          Code = "not_entitled"
	OwnAgent             Code = "own_agent"
	ConfirmationRequired Code = "confirmation_required"
	Stale                Code = "stale"
	DecidedOtherwise     Code = "decided_otherwise"
	Expired              Code = "expired"
	NotPending           Code = "not_pending"
	NotApproved          Code = "not_approved"
	Claimed              Code = "already_claimed"
	NotClaimed           Code = "not_claimed"
	NotUnknown           Code = "not_unknown"
	PolicyChanged        Code = "policy_changed"
	DefinitionChanged    Code = "definition_changed"
	KeyReused            Code = "key_reused"
	TooManyExtensions    Code = "too_many_extensions"
	TokenUnknown         Code = "token_unknown"
	TokenExpired         Code = "token_expired"
	TokenCallMismatch    Code = "token_call_mismatch"
	TokenUsed            Code = "token_used"
	TokenDeviceMismatch  Code = "token_device_mismatch"
	Paused               Code = "paused"
	Unavailable          Code = "unavailable"
	NotRecorded          Code = "not_recorded"
	Internal             Code = "internal"
)
