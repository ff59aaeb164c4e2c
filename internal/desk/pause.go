package desk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
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
// token is redeemed, also when it returns an error. What is running runs on. The
// error says that the pause is not on record and would not survive a restart.
func (d *Desk) Pause(ctx context.Context, by identity.Human, reason string) error {
	if by.IsZero() {
		return approval.ErrNoPerson
	}
	d.paused.Store(true) // first the effect, then the record: stopping must not wait for a disk
	open, err := d.inForce.shut(ctx)
	if err != nil {
		return err
	}
	defer open()
	d.paused.Store(true) // a resumption that was inside before is over now
	return d.store.Update(ctx, kindPause, allAgents, func(old []byte, _ time.Time) ([]byte, ledger.Event, error) {
		if old != nil {
			return old, ledger.Event{}, nil
		}
		return []byte("1"), pauseEvent(ledger.PauseSet, allAgents, human(by), reason), nil
	})
}

// Resume lets claims start again. It is recorded before it takes effect.
func (d *Desk) Resume(ctx context.Context, by identity.Human, reason string) error {
	if by.IsZero() {
		return approval.ErrNoPerson
	}
	open, err := d.inForce.shut(ctx)
	if err != nil {
		return err
	}
	defer open()
	err = d.store.Update(ctx, kindPause, allAgents, func(old []byte, _ time.Time) ([]byte, ledger.Event, error) {
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

// loadPauses reads what was paused when the last process ended.
func (d *Desk) loadPauses(ctx context.Context) error {
	_, err := d.store.Load(ctx, kindPause, allAgents)
	switch {
	case err == nil:
		d.paused.Store(true)
	case !errors.Is(err, store.ErrNotFound):
		return err
	}
	for r, err := range d.store.Records(ctx, kindSessionPause) {
		if err != nil {
			return err
		}
		keys, err := decodeKeys(r.Value)
		if err != nil {
			return err
		}
		d.sessions.set(r.ID, keys)
	}
	return nil
}

// sessions are those that wait for a person, each with the tallies that start
// anew when it is resumed. The store has the truth; the desk makes all changes,
// so what is here is never behind it, and no call has to look it up.
type sessions struct {
	change sync.Mutex // one change at a time, store and memory together
	mu     sync.RWMutex
	by     map[string][]string
}

func (s *sessions) paused(from identity.Agent) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if len(s.by) == 0 {
		return false
	}
	_, ok := s.by[sessionKey(from)]
	return ok
}

func (s *sessions) get(key string) (tallies []string, paused bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	tallies, paused = s.by[key]
	return tallies, paused
}

func (s *sessions) set(key string, tallies []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by == nil {
		s.by = make(map[string][]string)
	}
	s.by[key] = tallies
}

func (s *sessions) drop(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.by, key)
}

// sessionKey names a session of an agent: a session id alone is a label that two
// agents could share.
func sessionKey(a identity.Agent) string { return a.ID + "/" + a.Session }

// pauseSession stops a session because a limit wants it.
func (d *Desk) pauseSession(ctx context.Context, from identity.Agent, j judgement) error {
	var limit string
	var keys []string
	for _, ch := range j.charges {
		if ch.Pauses {
			limit, keys = ch.Limit, append(keys, ch.Key)
		}
	}
	return d.stop(ctx, sessionKey(from), keys, ledger.Event{
		Kind: ledger.SessionPaused, Subject: sessionKey(from), Actor: system(),
		Data: []ledger.Field{ledger.String(ledger.FieldRule, limit)},
	})
}

// PauseSession stops one session, "agent/session", until a person resumes it; it
// may still read. A session that is paused stays as it is.
func (d *Desk) PauseSession(ctx context.Context, by identity.Human, session, reason string) error {
	if by.IsZero() {
		return approval.ErrNoPerson
	}
	return d.stop(ctx, session, nil, pauseEvent(ledger.SessionPaused, session, human(by), reason))
}

// stop records a session as paused, with the tallies that led to it. The session
// is stopped also when that fails.
func (d *Desk) stop(ctx context.Context, session string, tallies []string, e ledger.Event) error {
	d.sessions.change.Lock()
	defer d.sessions.change.Unlock()
	known, paused := d.sessions.get(session)
	if paused && !slices.ContainsFunc(tallies, func(k string) bool { return !slices.Contains(known, k) }) {
		return nil
	}
	all := slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(known), tallies...))))
	d.sessions.set(session, all)
	value, err := json.Marshal(all)
	if err != nil {
		return err
	}
	err = d.store.Update(ctx, kindSessionPause, session, func([]byte, time.Time) ([]byte, ledger.Event, error) { return value, e, nil })
	if err != nil {
		d.sessions.set(session, known) // it stays paused, and the next call that wants it so writes it again
	}
	return err
}

// PausedSessions lists the sessions that wait for a person, as "agent/session".
func (d *Desk) PausedSessions(context.Context) ([]string, error) {
	d.sessions.mu.RLock()
	defer d.sessions.mu.RUnlock()
	return slices.Sorted(maps.Keys(d.sessions.by)), nil
}

// ResumeSession lets a session, "agent/session", ask again. The tallies that
// stopped it, its denials in a row, start anew in the same commit.
func (d *Desk) ResumeSession(ctx context.Context, by identity.Human, session, reason string) error {
	if by.IsZero() {
		return approval.ErrNoPerson
	}
	d.sessions.change.Lock()
	defer d.sessions.change.Unlock()
	tallies, paused := d.sessions.get(session)
	if !paused {
		return fmt.Errorf("paused session %w", store.ErrNotFound)
	}
	var anew []store.Charge
	for _, key := range tallies {
		anew = append(anew, store.Charge{Key: key, Reset: true})
	}
	err := d.store.Update(ctx, kindSessionPause, session, func([]byte, time.Time) ([]byte, ledger.Event, error) {
		return nil, pauseEvent(ledger.SessionResumed, session, human(by), reason), nil
	}, anew...)
	d.tallies.moved()
	if err != nil {
		return err
	}
	d.sessions.drop(session)
	return nil
}

// decodeKeys reads the value of a paused session: our own bytes.
func decodeKeys(value []byte) (keys []string, err error) {
	if err := json.Unmarshal(value, &keys); err != nil {
		return nil, fmt.Errorf("the record of a paused session cannot be read: %w", err)
	}
	return keys, nil
}
