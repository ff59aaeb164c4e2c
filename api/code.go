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
	ToolNotReached         Code = "TOOL_NOT_REACHED"
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
	MethodNotAllowed     Code = "method_not_allowed"
	WrongHost            Code = "wrong_host"
	CrossOrigin          Code = "cross_origin"
	TooManyAttempts      Code = "too_many_attempts"
	TooManyStreams       Code = "too_many_streams"
	ScopeNotOffered      Code = "scope_not_offered"
	AlreadyExists        Code = "already_exists"
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
