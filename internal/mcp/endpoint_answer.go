package mcp

import (
	"net/http"
	"time"
)

// answer writes what becomes of a request: the reply alone as JSON when nothing
// else was sent and it came soon, a stream otherwise. It returns when everything
// is written, when the agent has gone, or when another connection reads on. A
// stream of a legacy session is kept there, from before its first event.
func (q *request) answer(s *stream, rd *reader, in *session, batch bool) {
	silent := time.NewTimer(q.e.c.KeepAlive)
	defer silent.Stop()
	for waiting := true; waiting; {
		select {
		case <-rd.wake:
			events, status, wait := s.replies()
			if events != nil {
				q.answerReplies(events, status, batch)
				return
			}
			waiting = wait
		case <-silent.C:
			waiting = false
		case <-q.r.Context().Done():
			return
		}
	}
	if in != nil {
		in.keep(s)
	}
	rd.nudge()
	q.follow(s, rd)
}

// answerReplies writes replies without a stream. A reply of an exchange that could
// not be served at all has its own status.
func (q *request) answerReplies(events []event, status int, batch bool) {
	if !batch {
		q.answerJSON(status, events[0].message)
		return
	}
	body := []byte{'['}
	for i, e := range events {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, e.message...)
	}
	q.answerJSON(http.StatusOK, append(body, ']'))
}

// follow writes a stream until it is over for rd or the agent has gone.
func (q *request) follow(s *stream, rd *reader) {
	q.openStream()
	if q.polls() && !q.write(AppendEvent(nil, Event{ID: s.eventID(s.lastTaken())})) {
		return
	}
	if !q.flush() {
		return
	}
	silent := time.NewTicker(q.e.c.KeepAlive)
	defer silent.Stop()
	enough := q.pollTimer()
	for {
		select {
		case <-rd.wake:
			if !q.writeEvents(s, rd) {
				return
			}
			silent.Reset(q.e.c.KeepAlive)
		case <-silent.C:
			if !q.write(keepAlive) || !q.flush() {
				return
			}
		case <-enough:
			if q.write(AppendEvent(nil, Event{ID: s.eventID(s.lastTaken()), Retry: pollRetry})) {
				q.flush()
			}
			return
		case <-q.r.Context().Done():
			return
		}
	}
}

// writeEvents writes what there is and reports whether more may come.
func (q *request) writeEvents(s *stream, rd *reader) bool {
	events, more := s.take(rd)
	for _, e := range events {
		text := AppendEvent(nil, Event{Name: "message", ID: s.eventID(e.index), Data: e.message})
		if !q.write(text) {
			return false
		}
	}
	return q.flush() && more
}

func (q *request) openStream() {
	h := q.w.Header()
	h["Content-Type"] = sseType
	h["Cache-Control"] = noStore
	h["X-Accel-Buffering"] = noBuffer
	h["X-Content-Type-Options"] = noSniff
	q.w.WriteHeader(http.StatusOK)
}

func (q *request) write(b []byte) bool {
	q.beforeWrite()
	_, err := q.w.Write(b)
	return err == nil
}

func (q *request) flush() bool {
	q.beforeWrite()
	defer q.liftWrite()
	return q.rc.Flush() == nil
}

// pollRetry is when a client that was sent away comes back.
const pollRetry = time.Second

// polls reports whether the client knows events that carry an id only; older
// clients choke on them.
func (q *request) polls() bool {
	return q.client.Version >= V20251125 && q.client.Version.Era() == Legacy
}

// pollTimer fires when the connection is to be closed for the client to come back.
func (q *request) pollTimer() <-chan time.Time {
	if q.e.c.PollAfter <= 0 || !q.polls() {
		return nil
	}
	return time.After(q.e.c.PollAfter)
}
