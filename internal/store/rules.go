package store

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/identity"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/policy"
)

// ErrForm means that a request, as it was handed in or as it was found, is none
// that this version may act on: an unknown state, a newer form, damaged bytes.
var ErrForm = errors.New("not a request this version can act on")

// Events drops the zero events, which stand for nothing.
func Events(es []ledger.Event) []ledger.Event {
	return slices.DeleteFunc(slices.Clone(es), ledger.Event.IsZero)
}

// Admissible refuses requests that no backend may store and nobody may act on:
// nameless, with a value that is in no list, ended and not ended, with a time that
// its stored form would bend.
func Admissible(r *approval.Request) error {
	switch {
	case r.ID == "":
		return fmt.Errorf("%w: no id", ErrForm)
	case !slices.Contains(approval.States, r.State):
		return fmt.Errorf("%w: request %s in the state %q", ErrForm, r.ID, r.State)
	case r.Cause != "" && !slices.Contains(approval.Causes, r.Cause):
		return fmt.Errorf("%w: request %s with the cause %q", ErrForm, r.ID, r.Cause)
	case r.AskedAt.IsZero() || r.ExpiresAt.IsZero():
		return fmt.Errorf("%w: request %s without its times", ErrForm, r.ID)
	case r.State.Final() == r.EndedAt.IsZero():
		return fmt.Errorf("%w: request %s is %s and ended at %v", ErrForm, r.ID, r.State, r.EndedAt)
	}
	if len(r.Execution.Result) > 0 && !r.State.Final() {
		return fmt.Errorf("%w: request %s is %s and has a result", ErrForm, r.ID, r.State)
	}
	if what := unlisted(r); what != "" {
		return fmt.Errorf("%w: request %s with %s", ErrForm, r.ID, what)
	}
	for t := range times(r) {
		if !exact(t) {
			return fmt.Errorf("%w: request %s with the time %v", ErrForm, r.ID, t)
		}
	}
	return nil
}

// unlisted names a value of a request that this version has no meaning for.
func unlisted(r *approval.Request) string {
	v := &r.Verdict
	switch r.Executor {
	case "", approval.Gateway, approval.Caller:
	default:
		return fmt.Sprintf("the executor %q", r.Executor)
	}
	switch r.Execution.Outcome {
	case "", approval.Succeeded, approval.Errored, approval.NotSent, approval.InDoubt:
	default:
		return fmt.Sprintf("the outcome %q", r.Execution.Outcome)
	}
	if v.Effect > policy.Allow || v.Tier > policy.R4 {
		return fmt.Sprintf("effect %d and tier %d", v.Effect, v.Tier)
	}
	for _, c := range v.Confirm {
		if c != policy.Typed {
			return fmt.Sprintf("the confirmation %q", c)
		}
	}
	for i := range r.Decisions {
		if s := r.Decisions[i].By.Strength; s > identity.Passkey {
			return fmt.Sprintf("a decision of strength %d", s)
		}
	}
	return ""
}

// times yields every time of a request.
func times(r *approval.Request) func(func(time.Time) bool) {
	return func(yield func(time.Time) bool) {
		for _, t := range []time.Time{
			r.AskedAt, r.ExpiresAt, r.EndedAt, r.Claimed.At, r.Claimed.Until, r.Claimed.Redeemed, r.Execution.At, r.Execution.PickedUp,
		} {
			if !yield(t) {
				return
			}
		}
		for i := range r.Decisions {
			if !yield(r.Decisions[i].At) {
				return
			}
		}
	}
}

// Times are stored in nanoseconds since 1970; the least number stands for none.
var (
	earliest = time.Unix(0, math.MinInt64+1)
	latest   = time.Unix(0, math.MaxInt64)
)

// Nanos is the stored form of a time: nanoseconds since 1970, and the least
// number for the zero time.
func Nanos(t time.Time) int64 {
	if t.IsZero() {
		return math.MinInt64
	}
	return t.UnixNano()
}

// FromNanos is the time that [Nanos] stored, in UTC.
func FromNanos(n int64) time.Time {
	if n == math.MinInt64 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

func exact(t time.Time) bool {
	return t.IsZero() || !t.Before(earliest) && !t.After(latest)
}

// SameRequest refuses a move that made another request of one: what a store finds
// requests by never changes, and what is sent beside a call can be erased and
// never replaced, since people decide about it by the request's id.
func SameRequest(was, is *approval.Request) error {
	if was.ID != is.ID || was.Code != is.Code || was.Key != is.Key || was.From != is.From || !was.AskedAt.Equal(is.AskedAt) {
		return fmt.Errorf("%w: a move changed what request %s is found by", ErrForm, was.ID)
	}
	if len(is.Extra) > 0 && !bytes.Equal(was.Extra, is.Extra) {
		return fmt.Errorf("%w: a move changed what request %s sends beside its call", ErrForm, was.ID)
	}
	return nil
}

// DueAt is when time acts on a request next: the deadline of an open one, the end
// of the token of a claimed one. The zero time is never.
func DueAt(r *approval.Request) time.Time {
	switch {
	case r.State.Open():
		return r.ExpiresAt
	case r.State == approval.Executing:
		return r.Claimed.Until
	}
	return time.Time{}
}

// Add counts a request n times more, or less.
func (c *Counts) Add(r *approval.Request, n int) {
	switch r.State {
	case approval.Pending:
		c.Pending += n
		bump(&c.ByAgent, r.From.ID, n)
		bump(&c.ByTier, r.Verdict.Tier.String(), n)
	case approval.Approved:
		c.Approved += n
	case approval.Executing:
		c.Executing += n
	case approval.Unknown:
		c.Unknown += n
	case approval.Executed, approval.Failed, approval.Denied, approval.Expired, approval.Cancelled:
	}
}

func bump(m *map[string]int, key string, n int) {
	if *m == nil {
		*m = make(map[string]int)
	}
	if (*m)[key] += n; (*m)[key] == 0 {
		delete(*m, key) // an agent that waits for nothing costs nothing
	}
}

// Clone returns a copy that is the caller's own.
func (c Counts) Clone() Counts {
	c.ByAgent, c.ByTier = maps.Clone(c.ByAgent), maps.Clone(c.ByTier)
	return c
}

// Copy returns a copy of a request that shares no memory that anybody could
// write to: what a store hands out, and what it hands to a move.
func Copy(r *approval.Request) *approval.Request {
	c := r.Clone()
	c.Execution.Result = append([]byte(nil), r.Execution.Result...)
	for i := range c.Decisions {
		c.Decisions[i].By.Groups = slices.Clone(c.Decisions[i].By.Groups)
	}
	v := &c.Verdict
	v.Effects, v.Confirm, v.Scopes, v.Trace = slices.Clone(v.Effects), slices.Clone(v.Confirm), slices.Clone(v.Scopes), slices.Clone(v.Trace)
	v.Of.AnyOf, v.Of.Not = slices.Clone(v.Of.AnyOf), slices.Clone(v.Of.Not)
	return c
}
