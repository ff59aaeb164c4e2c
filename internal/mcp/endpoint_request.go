package mcp

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strconv"
	"time"
)

// request is one HTTP request at an [Endpoint].
type request struct {
	e      *Endpoint
	w      http.ResponseWriter
	r      *http.Request
	rc     *http.ResponseController
	client Client // principal, server and transport; the rest once it is known
}

// post serves the messages of one POST.
func (q *request) post() {
	if status, problem := checkContent(q.r.Header); status != 0 {
		q.refuse(status, nil, invalid("", problem))
		return
	}
	if !accepts(q.r.Header, "application/json") || !accepts(q.r.Header, "text/event-stream") {
		q.refuse(http.StatusNotAcceptable, nil, invalid("", "Accept must allow application/json and text/event-stream"))
		return
	}
	if !q.hold(use{streams: 1}) {
		return
	}
	defer q.letGo(use{streams: 1})
	q.liftWrite()
	defer q.beforeWrite()
	body, err := q.readBody()
	if err != nil {
		q.refuseBody(err)
		return
	}
	if startsArray(body) && q.mayBatch() {
		q.batch(body)
		return
	}
	m, err := parseAgent(body, q.e.c.JSON, q.r.Header.Get(HeaderSession) != "")
	if err != nil {
		q.refuse(http.StatusBadRequest, m.ID, refusal(err))
		return
	}
	if q.isModern(m) {
		q.modern(m)
	} else {
		q.legacy(m)
	}
}

// isModern tells the era of a message by everything that states one. A request
// that states a modern revision anywhere cannot escape the modern checks.
func (q *request) isModern(m Message) bool {
	if Version(q.r.Header.Get(HeaderVersion)).Era() == Modern {
		return true
	}
	stated, ok := metaText(m.Params, MetaVersion)
	return ok && Version(stated).Era() == Modern
}

// refusal returns the error to send for one of [Parse].
func refusal(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Code: CodeInternal, Message: nothingRan("internal error")}
}

func (q *request) refuseBody(err error) {
	status, problem := http.StatusBadRequest, "the body cannot be read"
	switch {
	case errors.Is(err, errBodyTooLarge):
		status, problem = http.StatusRequestEntityTooLarge, errBodyTooLarge.Error()
	case errors.Is(err, os.ErrDeadlineExceeded):
		status, problem = http.StatusRequestTimeout, "the body did not arrive in time"
	}
	q.refuse(status, nil, invalid("", problem))
}

// hold counts v towards the caller's quota, or refuses the request.
func (q *request) hold(v use) bool {
	if q.e.quota.take(q.client.Principal, v) {
		return true
	}
	status, problem := http.StatusTooManyRequests, "too many requests or sessions are open; try again later"
	if q.e.ctx.Err() != nil {
		status, problem = http.StatusServiceUnavailable, ErrShutdown.Error()
	}
	q.w.Header().Set("Retry-After", "1")
	q.refuse(status, nil, &Error{Code: CodeInternal, Message: nothingRan(problem)})
	return false
}

func (q *request) letGo(v use) { q.e.quota.give(q.client.Principal, v) }

// liftWrite takes the write deadline away. That of the server counts from the
// arrival of a request and would cut a call that is held; over HTTP/2 one that
// passes ends the stream even if nothing waits to be written.
func (q *request) liftWrite() {
	_ = q.rc.SetWriteDeadline(time.Time{})
}

// beforeWrite gives the agent so long to take what is written next. What net/http
// writes after the handler has its time too: it takes the deadline from a
// connection before the next request.
func (q *request) beforeWrite() {
	_ = q.rc.SetWriteDeadline(q.e.c.Now().Add(q.e.c.Limits.WriteTime))
}

// refuse answers with an error. id is nil when it is not known.
func (q *request) refuse(status int, id []byte, e *Error) {
	q.answerJSON(status, NewError(id, e))
}

func (q *request) answerJSON(status int, body []byte) {
	h := q.w.Header()
	h["Content-Type"] = jsonType
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	h["X-Content-Type-Options"] = noSniff
	q.beforeWrite()
	q.w.WriteHeader(status)
	_, _ = q.w.Write(body)
}

// Header values that never change, shared by all answers.
var (
	jsonType = []string{"application/json"}
	sseType  = []string{"text/event-stream"}
	noSniff  = []string{"nosniff"}
	noStore  = []string{"no-cache, no-transform"}
	noBuffer = []string{"no"}
)

// start serves x in a goroutine of its own: it may outlive the connection. The
// caller holds a use of one exchange, which ends with it.
func (q *request) start(ctx context.Context, cancel context.CancelCauseFunc, x *exchange) {
	e, principal := q.e, q.client.Principal
	go func() {
		roomy(0)
		defer e.quota.give(principal, use{exchanges: 1})
		defer cancel(nil)
		x.serve(ctx, e.c.Server, func(err error) { e.c.Log.Error("a bug in answering an agent", "error", err) })
	}()
}

// roomy makes the stack of a new goroutine large at once. Judging and answering a
// call needs some 12 KB; to get there by doubling copies the stack three times,
// each time with more frames in it, which costs more than parsing the call.
//
//go:noinline
func roomy(i int) byte {
	var room [10 << 10]byte
	room[i] = 1
	return room[i>>1]
}
