package api

import (
	"errors"
	"time"
)

// Status is where a request stands.
type Status string

// The states of a request.
const (
	StatusPending   Status = "pending"   // waits for people
	StatusApproved  Status = "approved"  // may run, has not started
	StatusExecuting Status = "executing" // was started, no outcome yet
	StatusExecuted  Status = "executed"  // the tool answered
	StatusFailed    Status = "failed"    // the tool answered with an error, or nothing reached it
	StatusUnknown   Status = "unknown"   // it may have run; a person must look
	StatusDenied    Status = "denied"    // a person or the policy said no; nothing ran
	StatusExpired   Status = "expired"   // the deadline passed; nothing ran
	StatusCancelled Status = "cancelled" // withdrawn, revoked or void; nothing ran
)

// Executor says who performs a call after it was approved.
type Executor string

// Executors.
const (
	ByGateway Executor = "gateway" // ayegate sends it to a server it fronts
	ByCaller  Executor = "caller"  // the asker performs it, with a token
)

// Outcome is what became of an effect.
type Outcome string

// Outcomes.
const (
	Succeeded Outcome = "succeeded" // the tool answered without an error mark
	Errored   Outcome = "errored"   // the tool answered with an error: it may have done part of its work
	NotSent   Outcome = "not_sent"  // nothing reached the tool
	InDoubt   Outcome = "in_doubt"  // nobody can know
)

// Duration is a span of time that travels as text: "30s", "5m". It is never
// negative.
type Duration time.Duration

// Std is the duration as the standard library has it.
func (d Duration) Std() time.Duration { return time.Duration(d) }

func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText writes "30s".
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what [time.ParseDuration] reads, without a sign.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return err
	}
	if v < 0 {
		return errors.New("a duration must not be negative")
	}
	*d = Duration(v)
	return nil
}
