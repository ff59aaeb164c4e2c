package approval

import "errors"

// Errors of moves. Each means that the move changed nothing.
var (
	ErrNotPending   = errors.New("the request is not waiting for a decision")
	ErrDecided      = errors.New("the request was decided otherwise")
	ErrStale        = errors.New("the decision is about another version of the request than the current one")
	ErrExpired      = errors.New("the deadline of the request has passed")
	ErrNoPerson     = errors.New("only a verified person may decide")
	ErrNotEntitled  = errors.New("this person may not decide this request")
	ErrOwnAgent     = errors.New("the person whose agent asked may not approve this request")
	ErrTyped        = errors.New("approving this request needs the confirmation to be typed")
	ErrNotApproved  = errors.New("the request is not approved")
	ErrClaimed      = errors.New("the request was claimed before")
	ErrNotClaimed   = errors.New("the request has not been claimed")
	ErrEnded        = errors.New("the request has ended")
	ErrWrongClaim   = errors.New("the claim belongs to another executor")
	ErrDefinition   = errors.New("the tool's definition changed since the request was made")
	ErrStricter     = errors.New("the policy now asks for more than was given")
	ErrPolicyDenies = errors.New("the policy now denies the call")
	ErrExtensions   = errors.New("the deadline cannot be moved any further")
	ErrOutcome      = errors.New("the outcome is none of succeeded, errored, not_sent and in_doubt")
	ErrNotUnknown   = errors.New("the outcome of the request is not in doubt")

	ErrTokenUnknown      = errors.New("no such token")
	ErrTokenExpired      = errors.New("the token has expired")
	ErrTokenCallMismatch = errors.New("the token is for another call")
	ErrTokenUsed         = errors.New("the token was used before")
	ErrTokenDevice       = errors.New("the token is for another device")
)
