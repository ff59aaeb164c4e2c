package mcp

import (
	"context"
	"net/http"
)

// modern judges a message by the rules of 2026-07-28, in the order: _meta, headers
// against body, revision, method. What a method needs is for the [Server] to say.
func (q *request) modern(m Message) {
	switch m.Kind() {
	case Request:
		q.modernRequest(m)
	case Notification:
		q.modernNotification(m)
	default:
		q.refuse(http.StatusBadRequest, m.ID, invalid("", "in this protocol revision an agent sends no responses"))
	}
}

func (q *request) modernRequest(m Message) {
	c, e := modernClient(m)
	if e == nil {
		e = q.checkModern(m, c.Version)
	}
	if e != nil {
		q.refuse(statusOf(e, Modern), m.ID, e)
		return
	}
	q.client.Version, q.client.Info, q.client.Capabilities = c.Version, c.Info, c.Capabilities
	if e := q.checkBound(m); e != nil {
		q.refuse(statusOf(e, Modern), m.ID, e)
		return
	}
	q.modernExchange(m)
}

func (q *request) checkModern(m Message, stated Version) *Error {
	header, err := oneHeader(q.r.Header, HeaderVersion)
	switch {
	case err != nil:
		return headerError("MCP-Protocol-Version", err.Error())
	case header != string(stated):
		return headerError("MCP-Protocol-Version", "differs from the revision in /params/_meta")
	}
	if e := CheckHeaders(q.r.Header, m); e != nil {
		return e
	}
	if !stated.Supported() || stated.Era() != Modern {
		return unsupported(stated)
	}
	return notInEra(m.Method, Modern)
}

// checkBound compares the headers that repeat arguments.
func (q *request) checkBound(m Message) *Error {
	if q.e.c.Bound == nil || m.Method != "tools/call" {
		return nil
	}
	tool, err := textMember(m.Params, "name")
	if err != nil {
		return &Error{Code: CodeInvalidParams, Message: nothingRan(err.Error())}
	}
	return CheckParamHeaders(q.r.Header, q.e.c.Bound(q.client, tool), m.Params)
}

// modernNotification takes a notification; the revision defines none over HTTP,
// so it is not told apart further. Cancelling is done by closing the stream.
func (q *request) modernNotification(m Message) {
	if values := q.r.Header[HeaderMethod]; len(values) > 0 && values[0] != m.Method {
		q.refuse(http.StatusBadRequest, nil, headerError(HeaderMethod, "differs from the body's method"))
		return
	}
	v := Version(q.r.Header.Get(HeaderVersion))
	if !v.Supported() {
		q.refuse(http.StatusBadRequest, nil, unsupported(v))
		return
	}
	q.client.Version = v
	if m.Method != methodCancelled {
		q.e.c.Server.Notification(q.r.Context(), q.client, m)
	}
	q.w.WriteHeader(http.StatusAccepted)
}

// modernExchange serves a request. The end of its connection is its cancellation.
func (q *request) modernExchange(m Message) {
	if !q.hold(use{exchanges: 1}) {
		return
	}
	ctx, cancel := context.WithCancelCause(q.e.ctx)
	s, rd := newStream("", 1), newReader()
	s.attach(rd, 0)
	x := &exchange{client: q.client, request: m, out: s, done: func() {}}
	q.start(ctx, cancel, x)
	q.answer(s, rd, nil, false)
	s.close(ErrDisconnected)
	if !x.ended.Load() {
		cancel(ErrDisconnected)
	}
}
