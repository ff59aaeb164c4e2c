package desk

import (
	"context"
	"time"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/identity"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/policy"
)

// PauseSession stops one session, "agent/session", until a person resumes it; it
// may still read. A session that is paused stays as it is.
func (d *Desk) PauseSession(ctx context.Context, by identity.Human, session, reason string) error {
	if by.IsZero() {
		return approval.ErrNoPerson
	}
	return d.store.Update(ctx, kindSessionPause, session, func(old []byte, _ time.Time) ([]byte, ledger.Event, error) {
		if old != nil {
			return old, ledger.Event{}, nil
		}
		return []byte("1"), pauseEvent(ledger.SessionPaused, session, human(by), reason), nil
	})
}

// Explain tells a person what the policy in force says of a call that from would
// ask for now. It counts for no limit and leaves no trace.
func (d *Desk) Explain(ctx context.Context, by identity.Human, from identity.Agent, c call.Call) (policy.Verdict, error) {
	if by.IsZero() {
		return policy.Verdict{}, approval.ErrNoPerson
	}
	t, _ := d.Tool(c.Server(), c.Tool())
	v, _, settle, err := d.judge(ctx, from, c, t)
	if err != nil {
		return policy.Verdict{}, err
	}
	settle()
	return v, nil
}
