package desk

import (
	"context"
	"errors"
	"time"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/identity"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/store"
)

// Kinds and ids of records the desk keeps.
const (
	kindPause        = "pause"
	kindSessionPause = "session_pause"
	allAgents        = "all"
)

// ErrPaused says that the kill switch is on: nothing starts.
var ErrPaused = errors.New("all agents are paused")

// Pause stops everything: from the moment it returns no claim starts and no
// token is redeemed. What is running already runs on.
func (d *Desk) Pause(ctx context.Context, by identity.Human, reason string) error {
	if by.IsZero() {
		return approval.ErrNoPerson
	}
	was := d.paused.Swap(true) // first the effect, then the record: stopping must not wait for a disk
	err := d.store.Update(ctx, kindPause, allAgents, func(old []byte, _ time.Time) ([]byte, ledger.Event, error) {
		if old != nil {
			return old, ledger.Event{}, nil
		}
		return []byte("1"), pauseEvent(ledger.PauseSet, allAgents, human(by), reason), nil
	})
	if err != nil && !was {
		d.log.Error("paused, but the pause is not on record and would not survive a restart", "err", err)
	}
	return err
}

// Resume lets claims start again. It is recorded before it takes effect.
func (d *Desk) Resume(ctx context.Context, by identity.Human, reason string) error {
	if by.IsZero() {
		return approval.ErrNoPerson
	}
	err := d.store.Update(ctx, kindPause, allAgents, func(old []byte, _ time.Time) ([]byte, ledger.Event, error) {
		if old == nil {
			return nil, ledger.Event{}, nil
		}
		return nil, pauseEvent(ledger.PauseCleared, allAgents, human(by), reason), nil
	})
	if err == nil {
		d.paused.Store(false)
	}
	return err
}

// Paused reports whether the kill switch is on.
func (d *Desk) Paused() bool { return d.paused.Load() }

func pauseEvent(k ledger.Kind, what string, by ledger.Actor, reason string) ledger.Event {
	return ledger.Event{Kind: k, Subject: what, Actor: by, Data: []ledger.Field{ledger.String(ledger.FieldReason, clip(reason, 2000))}}
}

func (d *Desk) loadPauses(ctx context.Context) error {
	_, err := d.store.Load(ctx, kindPause, allAgents)
	switch {
	case err == nil:
		d.paused.Store(true)
	case !errors.Is(err, store.ErrNotFound):
		return err
	}
	return nil
}

// sessionKey names a session of an agent: a session id alone is a label that two
// agents could share.
func sessionKey(agentID, session string) string { return agentID + "/" + session }

// pauseSession stops a session until a person resumes it; it may still read.
func (d *Desk) pauseSession(ctx context.Context, from identity.Agent, rule string) error {
	key := sessionKey(from.ID, from.Session)
	return d.store.Update(ctx, kindSessionPause, key, func(old []byte, _ time.Time) ([]byte, ledger.Event, error) {
		if old != nil {
			return old, ledger.Event{}, nil
		}
		return []byte("1"), ledger.Event{
			Kind: ledger.SessionPaused, Subject: key, Actor: system(), Data: []ledger.Field{ledger.String(ledger.FieldRule, rule)},
		}, nil
	})
}

func (d *Desk) sessionPaused(ctx context.Context, from identity.Agent) (bool, error) {
	_, err := d.store.Load(ctx, kindSessionPause, sessionKey(from.ID, from.Session))
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// PausedSessions lists the sessions that wait for a person, as "agent/session".
func (d *Desk) PausedSessions(ctx context.Context) ([]string, error) {
	var out []string
	for r, err := range d.store.Records(ctx, kindSessionPause) {
		if err != nil {
			return nil, err
		}
		out = append(out, r.ID)
	}
	return out, nil
}

// ResumeSession lets a session, "agent/session", ask again. Its row of denials
// starts anew.
func (d *Desk) ResumeSession(ctx context.Context, by identity.Human, session, reason string) error {
	if by.IsZero() {
		return approval.ErrNoPerson
	}
	return d.store.Update(ctx, kindSessionPause, session, func(old []byte, _ time.Time) ([]byte, ledger.Event, error) {
		if old == nil {
			return nil, ledger.Event{}, store.ErrNotFound
		}
		return nil, pauseEvent(ledger.SessionResumed, session, human(by), reason), nil
	})
}
