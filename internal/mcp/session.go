package mcp

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
	"time"
)

// session is a legacy session over HTTP. It belongs to one principal and one
// server path; anybody else's use of its id is the use of an unknown id.
type session struct {
	client   Client
	ctx      context.Context // of what is served in the session
	cancel   context.CancelCauseFunc
	inflight inflight
	asks     asks
	standing *stream // what goes out on GET

	mu      sync.Mutex
	used    time.Time
	last    uint64    // number of the last stream
	streams []*stream // that the agent knows events of, oldest first
}

// Bounds of the finished streams that a session keeps for an agent who lost the
// connection before it had the reply. The newest stays whatever its size.
const (
	maxKept      = 16
	maxKeptBytes = 4 << 20
)

const standingID = "0"

// sessionIDBytes of randomness make an id that cannot be guessed.
const sessionIDBytes = 24

func (e *Endpoint) newSession(c Client) (*session, error) {
	random := make([]byte, sessionIDBytes)
	if _, err := io.ReadFull(e.c.Rand, random); err != nil {
		return nil, fmt.Errorf("minting a session id: %w", err)
	}
	c.Session = base64.RawURLEncoding.EncodeToString(random)
	s := &session{client: c, used: e.c.Now(), standing: newStream(standingID, 1)}
	s.ctx, s.cancel = context.WithCancelCause(e.ctx)
	return s, nil
}

// Notify sends a notification on the standing stream.
func (s *session) Notify(ctx context.Context, method string, params []byte) error {
	return s.standing.send(ctx, eventNotification, NewNotification(method, params))
}

// Ask sends a request on the standing stream, if the agent has ever opened it.
func (s *session) Ask(ctx context.Context, method string, params []byte) (Message, error) {
	if !s.standing.everAttached() {
		return Message{}, ErrNoAsk
	}
	return s.asks.ask(ctx, method, params, s.standing.send)
}

// openStream returns a stream for one POST.
func (s *session) openStream(replies int) *stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	return newStream(strconv.FormatUint(s.last, 10), replies)
}

// keep makes a stream known, so that an agent can resume it, and forgets
// finished ones.
func (s *session) keep(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams = append(s.streams, st)
	over, bytes := 0, 0
	for _, old := range s.streams {
		if old.over() {
			over++
			bytes += old.size()
		}
	}
	s.streams = slices.DeleteFunc(s.streams, func(old *stream) bool {
		if old == st || !old.over() || over <= maxKept && bytes <= maxKeptBytes {
			return false
		}
		over--
		bytes -= old.size()
		return true
	})
}

// stream finds a stream by the name that its event ids carry.
func (s *session) stream(id string) *stream {
	if id == standingID {
		return s.standing
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.streams {
		if st.id == id {
			return st
		}
	}
	return nil
}

func (s *session) touch(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = now
}

// idleSince returns since when nothing happened in the session, and false while
// something goes on in it.
func (s *session) idleSince() (time.Time, bool) {
	if s.inflight.len() > 0 || s.standing.attached() {
		return time.Time{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used, true
}

// addSession makes a session known. The caller holds its quota.
func (e *Endpoint) addSession(s *session) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sessions[s.client.Session] = s
}

// findSession returns the session with this id if it is the caller's.
func (e *Endpoint) findSession(id string, c Client) *session {
	e.mu.Lock()
	s := e.sessions[id]
	e.mu.Unlock()
	if s == nil || s.client.Principal != c.Principal || s.client.Server != c.Server {
		return nil
	}
	s.touch(e.c.Now())
	return s
}

// closeSession ends a session. What is being served in it is cancelled, and its
// answers still go out.
func (e *Endpoint) closeSession(s *session, why error) {
	e.mu.Lock()
	known := e.sessions[s.client.Session] == s
	delete(e.sessions, s.client.Session)
	e.mu.Unlock()
	s.cancel(why)
	s.asks.close()
	s.standing.close(why)
	if known {
		e.quota.give(s.client.Principal, use{sessions: 1})
		e.c.Server.Close(s.client)
	}
}

func (e *Endpoint) allSessions() []*session {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := make([]*session, 0, len(e.sessions))
	for _, s := range e.sessions {
		all = append(all, s)
	}
	return all
}

// sweepEvery is how often sessions are looked through for idle ones.
const sweepEvery = time.Minute

// sweep ends sessions that have been idle for too long, now and then.
func (e *Endpoint) sweep() {
	now := e.c.Now()
	e.mu.Lock()
	due := now.Sub(e.swept) >= sweepEvery
	if due {
		e.swept = now
	}
	e.mu.Unlock()
	if !due {
		return
	}
	for _, s := range e.allSessions() {
		if since, idle := s.idleSince(); idle && now.Sub(since) >= e.c.Limits.SessionIdle {
			e.closeSession(s, ErrNoSession)
		}
	}
}

// evict ends the principal's session that has been idle longest. Agents that
// crash leave sessions behind; they must not keep their principal out.
func (e *Endpoint) evict(principal string) {
	var oldest *session
	var since time.Time
	for _, s := range e.allSessions() {
		if s.client.Principal != principal {
			continue
		}
		if at, idle := s.idleSince(); idle && (oldest == nil || at.Before(since)) {
			oldest, since = s, at
		}
	}
	if oldest != nil {
		e.closeSession(oldest, ErrNoSession)
	}
}
