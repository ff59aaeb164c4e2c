package desk

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/ayegate/ayegate/api"
	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/store"
	"github.com/ayegate/ayegate/internal/strictjson"
)

// Fault is an error as the outside sees it.
type Fault struct {
	Code   api.Code
	Status int    // HTTP
	Text   string // a sentence for people: what happened, whether anything ran, what to do
}

// faults is the one table from the sentinels, which live beside the rules they
// break, to what programs and people are told. The first match counts.
var faults = []struct {
	err error
	Fault
}{
	{approval.ErrNoPerson, Fault{api.Unauthenticated, http.StatusUnauthorized, "Only a signed-in person may do this. Nothing ran."}},
	{ErrNoAgent, Fault{api.Unauthenticated, http.StatusUnauthorized, "Only an agent with its own key may ask. Nothing ran."}},
	{approval.ErrNotEntitled, Fault{api.NotEntitled, http.StatusForbidden, "You may not decide this request; the policy names other people. Nothing ran."}},
	{approval.ErrOwnAgent, Fault{api.OwnAgent, http.StatusForbidden, "The agent that asks is yours, so another person must decide. Nothing ran."}},
	{approval.ErrTyped, Fault{api.ConfirmationRequired, http.StatusForbidden, "This approval must be confirmed by typing what the request names. Nothing ran."}},
	{approval.ErrStale, Fault{api.Stale, http.StatusConflict, "The request changed after you looked. Read it again, then decide. Nothing ran."}},
	{approval.ErrDecided, Fault{api.DecidedOtherwise, http.StatusConflict, "The request was decided already. Your decision changed nothing."}},
	{approval.ErrExpired, Fault{api.Expired, http.StatusConflict, "The deadline passed before this. Nothing ran."}},
	{approval.ErrNotPending, Fault{api.NotPending, http.StatusConflict, "The request does not wait for a decision."}},
	{approval.ErrNotApproved, Fault{api.NotApproved, http.StatusConflict, "Nobody has approved the request. Nothing ran."}},
	{approval.ErrClaimed, Fault{api.Claimed, http.StatusConflict, "Too late: the call was started before."}},
	{approval.ErrWrongClaim, Fault{api.NotClaimed, http.StatusConflict, "The claim is not this one."}},
	{approval.ErrNotClaimed, Fault{api.NotClaimed, http.StatusConflict, "The call has not been started; claim and redeem it first."}},
	{approval.ErrEnded, Fault{api.NotPending, http.StatusConflict, "The request has ended. Nothing ran because of this."}},
	{approval.ErrPolicyDenies, Fault{api.PolicyChanged, http.StatusConflict, "The policy now denies the call. Nothing ran."}},
	{approval.ErrStricter, Fault{api.PolicyChanged, http.StatusConflict, "The policy now asks for more than was given, so the approval is void. Nothing ran; ask again."}},
	{approval.ErrDefinition, Fault{api.DefinitionChanged, http.StatusConflict, "The tool's definition changed, so the approval is void. Nothing ran."}},
	{approval.ErrExtensions, Fault{api.TooManyExtensions, http.StatusConflict, "The deadline was moved as often as it can be."}},
	{approval.ErrNotUnknown, Fault{api.NotUnknown, http.StatusConflict, "The outcome of this request is not in doubt."}},
	{approval.ErrOutcome, Fault{api.BadRequest, http.StatusBadRequest, "The outcome must be one of succeeded, errored, not_sent and in_doubt."}},
	{approval.ErrTokenUnknown, Fault{api.TokenUnknown, http.StatusForbidden, "No such token. The call must not start."}},
	{approval.ErrTokenExpired, Fault{api.TokenExpired, http.StatusForbidden, "The token has expired. The call must not start."}},
	{approval.ErrTokenCallMismatch, Fault{api.TokenCallMismatch, http.StatusForbidden, "The token is for another call. The call must not start."}},
	{approval.ErrTokenUsed, Fault{api.TokenUsed, http.StatusConflict, "The token was used before. The call must not start again."}},
	{approval.ErrTokenDevice, Fault{api.TokenDeviceMismatch, http.StatusForbidden, "The token is for another device. The call must not start."}},
	{ErrVoid, Fault{api.NotPending, http.StatusConflict, "The record had to be restored, which voids everything that was open. Nothing ran; ask again."}},
	{ErrNotCaller, Fault{api.NotClaimed, http.StatusConflict, "ayegate itself executes this call; there is no token to give out."}},
	{ErrKeyReused, Fault{api.KeyReused, http.StatusConflict, "The key was used for another call. Nothing ran; choose a new key."}},
	{ErrNoExecutor, Fault{api.BadRequest, http.StatusBadRequest, "The call does not say who executes it. Nothing ran."}},
	{ErrHeldTool, Fault{api.DefinitionHeld, http.StatusForbidden, "The tool's definition changed and waits for a person's acceptance. Nothing ran."}},
	{ErrPaused, Fault{api.Paused, http.StatusForbidden, "All agents are paused. Nothing started."}},
	{ErrNotRecorded, Fault{api.NotRecorded, http.StatusInternalServerError, "The call may have run, but its outcome could not be recorded. Do not repeat it; look first."}},
	{store.ErrNotFound, Fault{api.NotFound, http.StatusNotFound, "There is no such request."}},
	{store.ErrInDoubt, Fault{api.NotRecorded, http.StatusServiceUnavailable, "The store did not confirm. Look at the request again before you repeat this."}},
	{store.ErrUnavailable, Fault{api.Unavailable, http.StatusServiceUnavailable, "The store cannot take changes now, so nothing ran and nothing was decided."}},
	{context.DeadlineExceeded, Fault{api.Unavailable, http.StatusServiceUnavailable, "It took too long. Look at the request again before you repeat this."}},
}

// FaultOf says how an error is told to the outside. What is not in the table is
// internal: its text goes to the log, not out.
func FaultOf(err error) Fault {
	var ref *Refusal
	if errors.As(err, &ref) {
		return Fault{Code: ref.Code, Status: refusalStatus(ref.Code), Text: "Refused: " + ref.Detail + ". Nothing ran."}
	}
	if malformed(err) {
		return Fault{Code: api.BadRequest, Status: http.StatusBadRequest, Text: sentence(err.Error()) + " Nothing ran."}
	}
	for _, f := range faults {
		if errors.Is(err, f.err) {
			return f.Fault
		}
	}
	return Fault{api.Internal, http.StatusInternalServerError, "Something failed inside ayegate. Look at the request before you repeat this."}
}

// malformed reports whether the fault is in what was sent; its text names the
// place and never the value, so it may be told.
func malformed(err error) bool {
	var syntax *strictjson.Error
	return errors.As(err, &syntax) || errors.Is(err, call.ErrServer) || errors.Is(err, call.ErrTool) || errors.Is(err, call.ErrArgs)
}

func sentence(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + strings.TrimSuffix(s[1:], ".") + "."
}

func refusalStatus(c api.Code) int {
	switch c {
	case api.QueueFull, api.RateLimited:
		return http.StatusTooManyRequests
	case api.OutcomeUnknown:
		return http.StatusConflict
	default:
		return http.StatusForbidden
	}
}
