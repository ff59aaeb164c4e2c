package mcp

import (
	"context"
	"errors"
	"net/http"
)

// codeNoSession is what clients of the legacy era look for, beside status 404,
// to start a new session.
const codeNoSession = -32001

// legacy serves a message by the rules of 2025-03-26 to 2025-11-25.
func (q *request) legacy(m Message) {
	if v := q.r.Header.Get(HeaderVersion); v != "" && !Version(v).Supported() {
		q.refuse(http.StatusBadRequest, m.ID, invalid("", "unsupported MCP-Protocol-Version"))
		return
	}
	if m.Kind() == Request && m.Method == "initialize" {
		q.initialize(m)
		return
	}
	s := q.session(m.ID)
	if s == nil {
		return
	}
	if m.Kind() != Request {
		q.receive(s, m)
		q.w.WriteHeader(http.StatusAccepted)
		return
	}
	if e := notInEra(m.Method, Legacy); e != nil {
		q.refuse(statusOf(e, Legacy), m.ID, e)
		return
	}
	q.legacyExchange(s, []Message{m}, false)
}

// session returns the session that the request names, or answers why there is none.
func (q *request) session(id []byte) *session {
	name := q.r.Header.Get(HeaderSession)
	if name == "" {
		q.refuse(http.StatusBadRequest, id, invalid("", "Mcp-Session-Id is missing; start with initialize"))
		return nil
	}
	s := q.e.findSession(name, q.client)
	if s == nil {
		q.refuse(http.StatusNotFound, id, &Error{Code: codeNoSession, Message: nothingRan("session not found")})
		return nil
	}
	q.client = s.client
	return s
}

// receive handles a notification or a response.
func (q *request) receive(s *session, m Message) {
	switch {
	case m.Kind() == Response:
		s.asks.answer(m)
	case m.Method == methodCancelled:
		if id := cancelledID(m.Params); id != nil {
			s.inflight.cancel(IDKey(id))
		}
	default:
		q.e.c.Server.Notification(s.ctx, s.client, m)
	}
}

// initialize opens a session.
func (q *request) initialize(m Message) {
	if q.r.Header.Get(HeaderSession) != "" {
		if q.session(m.ID) != nil {
			q.refuse(http.StatusBadRequest, m.ID, invalid("", "this session is already initialized"))
		}
		return
	}
	c, e := initializing(q.client, m.Params)
	if e != nil {
		q.refuse(http.StatusBadRequest, m.ID, e)
		return
	}
	q.e.sweep()
	if !q.e.quota.take(c.Principal, use{sessions: 1}) {
		q.e.evict(c.Principal)
		if !q.hold(use{sessions: 1}) {
			return
		}
	}
	q.openSession(m, c)
}

// openSession asks the server for its part of the handshake. The session exists
// once the server has agreed.
func (q *request) openSession(m Message, c Client) {
	s, err := q.e.newSession(c)
	if err != nil {
		q.letGo(use{sessions: 1})
		q.e.c.Log.Error("no session", "error", err)
		q.refuse(http.StatusInternalServerError, m.ID, &Error{Code: CodeInternal, Message: nothingRan("internal error")})
		return
	}
	ctx, cancel := context.WithCancelCause(s.ctx)
	defer cancel(nil)
	defer context.AfterFunc(q.r.Context(), func() { cancel(ErrDisconnected) })()
	result, e := q.e.c.Server.Initialize(ctx, s.client, m.Params, s)
	if e != nil {
		q.letGo(use{sessions: 1})
		s.cancel(ErrNoSession)
		s.standing.close(ErrNoSession)
		q.refuse(statusOf(e, Legacy), m.ID, e)
		return
	}
	q.e.addSession(s)
	if q.e.ctx.Err() != nil {
		q.e.closeSession(s, ErrShutdown)
	}
	q.w.Header()[HeaderSession] = []string{s.client.Session}
	q.answerJSON(http.StatusOK, NewResult(m.ID, result))
}

// initializing completes c by the params of initialize. The version it gets is
// the client's if we speak it, and the newest of the era otherwise.
func initializing(c Client, params []byte) (Client, *Error) {
	stated, err := textMember(params, "protocolVersion")
	if err != nil {
		return c, &Error{Code: CodeInvalidParams, Message: nothingRan(err.Error())}
	}
	c.Version = NewestLegacy
	if v := Version(stated); v.Supported() && v.Era() == Legacy {
		c.Version = v
	}
	c.Capabilities, _ = get(params, "capabilities")
	c.Info, _ = get(params, "clientInfo")
	for name, v := range map[string][]byte{"capabilities": c.Capabilities, "clientInfo": c.Info} {
		if v != nil && !isObject(v) {
			return c, &Error{Code: CodeInvalidParams, Message: nothingRan("/params/" + name + " must be an object")}
		}
	}
	return c, nil
}

// legacyExchange serves the requests of one POST, each an exchange of its own, on
// one stream. An agent that hangs up has not cancelled them: they go on, and
// their replies wait in the session.
func (q *request) legacyExchange(s *session, requests []Message, batch bool) {
	if !q.hold(use{exchanges: len(requests)}) {
		return
	}
	st, rd := s.openStream(len(requests)), newReader()
	st.attach(rd, 0)
	all := make([]begun, 0, len(requests))
	for _, m := range requests {
		b, ok := q.begin(s, st, m)
		if !ok {
			for _, b := range all {
				b.cancel(nil)
				b.x.done()
			}
			q.letGo(use{exchanges: len(requests)})
			q.refuse(http.StatusBadRequest, m.ID, invalid("/id", "is the id of a request that is still being served"))
			return
		}
		all = append(all, b)
	}
	for _, b := range all {
		q.start(b.ctx, b.cancel, b.x)
	}
	q.answer(st, rd, s, batch)
	st.detach(rd)
}

// begun is an exchange whose id is taken and that has not been started.
type begun struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	x      *exchange
}

// begin takes the id of a request, unless one with the same id is being served.
func (q *request) begin(s *session, st *stream, m Message) (b begun, ok bool) {
	key := IDKey(m.ID)
	b.ctx, b.cancel = context.WithCancelCause(s.ctx)
	if !s.inflight.begin(key, b.cancel) {
		b.cancel(nil)
		return b, false
	}
	b.x = &exchange{client: s.client, request: m, out: st, asks: &s.asks, done: func() { s.inflight.end(key) }}
	return b, true
}

// mayBatch reports whether the session is of the one revision that has batches.
func (q *request) mayBatch() bool {
	if v := q.r.Header.Get(HeaderVersion); v != "" && Version(v) != V20250326 {
		return false
	}
	s := q.e.findSession(q.r.Header.Get(HeaderSession), q.client)
	return s != nil && s.client.Version == V20250326
}

// batch serves a JSON array. It runs whole or, when any part is at fault, not at all.
func (q *request) batch(body []byte) {
	messages, _, err := ParseBatch(body, q.e.c.JSON, q.e.c.Limits.Batch)
	if err != nil {
		q.refuse(http.StatusBadRequest, nil, refusal(err))
		return
	}
	var requests []Message
	for _, m := range messages {
		e := CheckShape(m)
		if e == nil && m.Method == "initialize" {
			e = invalid("/method", "initialize cannot be part of a batch")
		}
		if e == nil && m.Kind() == Request {
			e = notInEra(m.Method, Legacy)
		}
		if e != nil {
			q.refuse(http.StatusBadRequest, m.ID, e)
			return
		}
		if m.Kind() == Request {
			requests = append(requests, m)
		}
	}
	s := q.session(nil)
	if s == nil {
		return
	}
	for _, m := range messages {
		if m.Kind() != Request {
			q.receive(s, m)
		}
	}
	if len(requests) == 0 {
		q.w.WriteHeader(http.StatusAccepted)
		return
	}
	q.legacyExchange(s, requests, true)
}

// get opens the standing stream of a session, or resumes any of its streams.
func (q *request) get() {
	if !accepts(q.r.Header, "text/event-stream") {
		q.refuse(http.StatusNotAcceptable, nil, invalid("", "Accept must allow text/event-stream"))
		return
	}
	s := q.session(nil)
	if s == nil || !q.hold(use{streams: 1}) {
		return
	}
	defer q.letGo(use{streams: 1})
	q.liftWrite()
	defer q.beforeWrite()
	st, last := s.standing, s.standing.lastTaken()
	if id := q.r.Header.Get(HeaderLastEvent); id != "" {
		var err error
		if st, last, err = s.resume(id); err != nil {
			q.refuse(http.StatusBadRequest, nil, invalid("", err.Error()))
			return
		}
	}
	rd := newReader()
	st.attach(rd, last)
	q.follow(st, rd)
	st.detach(rd)
	s.touch(q.e.c.Now())
}

// resume finds where an event id points.
func (s *session) resume(id string) (st *stream, last int, err error) {
	name, last, ok := cutEventID(id)
	if ok {
		st = s.stream(name)
	}
	if st == nil || !st.knows(last) {
		return nil, 0, errors.New("Last-Event-ID names no stream that is kept")
	}
	return st, last, nil
}

// delete ends a session.
func (q *request) delete() {
	if s := q.session(nil); s != nil {
		q.e.closeSession(s, ErrNoSession)
		q.w.WriteHeader(http.StatusNoContent)
	}
}
