package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/ayegate/ayegate/internal/strictjson"
)

const (
	maxResumes   = 5 // in a row without an event
	firstDelay   = time.Second
	longestDelay = 30 * time.Second
	maxRetry     = 5 * time.Minute // that a server may ask for
	drainTime    = time.Second     // for a stream whose answer has come to end by itself
	eventSlack   = 4 << 10         // field names and ids of an event beside its message
)

// errStreamEnded says that a stream ended before the answer and cannot be resumed.
var errStreamEnded = errors.New("the server closed the stream before it answered")

// exchange sends the request and reads until its response.
func (x *remoteCall) exchange(h http.Header, message []byte) (Message, error) {
	resp, taken, err := x.r.post(x.ctx, h, message)
	if err != nil {
		return Message{}, &CallError{Sent: taken, Err: err}
	}
	if resp.StatusCode/100 != 2 {
		defer resp.Body.Close()
		return x.refused(resp)
	}
	if x.method == methodInitialize {
		if err := x.r.enter(resp); err != nil {
			resp.Body.Close()
			return Message{}, sent(err)
		}
	}
	switch kind := contentType(resp); kind {
	case typeJSON:
		defer resp.Body.Close()
		return x.document(resp)
	case typeEvents:
		return x.stream(resp)
	default:
		resp.Body.Close()
		return Message{}, sent(fmt.Errorf("%w: status %d and content type %q", ErrUnreadable, resp.StatusCode, kind))
	}
}

// refused reads an answer with a status other than 2xx.
func (x *remoteCall) refused(resp *http.Response) (Message, error) {
	if x.r.sessionOver(resp) {
		return Message{}, sent(ErrNoSession)
	}
	m, err := statusError(resp)
	if m.Error == nil || resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden {
		return Message{}, sent(err)
	}
	if id, ok := number(m.ID); m.ID != nil && (!ok || id != x.id) {
		return Message{}, sent(err)
	}
	return m, nil
}

// document reads an answer that is one JSON document.
func (x *remoteCall) document(resp *http.Response) (Message, error) {
	text, err := readAll(resp, x.r.t.MaxMessage)
	if err != nil {
		return Message{}, sent(err)
	}
	m, ok, err := x.take(text)
	if ok {
		return m, nil
	}
	if v, loose := looseError(text); loose {
		return Message{Raw: text, Error: v}, nil
	}
	if err == nil {
		err = errors.New("it is no response to this call")
	}
	return Message{}, sent(fmt.Errorf("%w: %w", ErrUnreadable, err))
}

// take reads what came for this call and reports whether it is the response.
// Responses to anything else are ignored (MCP-17).
func (x *remoteCall) take(raw []byte) (answer Message, ok bool, err error) {
	err = x.r.each(raw, func(m Message) {
		switch m.Kind() {
		case Response:
			id, ours := number(m.ID)
			ours = ours && id == x.id
			switch {
			case ok:
				x.r.t.Log.Warn("second response ignored", "id", string(m.ID))
			case ours || m.ID == nil:
				answer, ok = m, true
			default:
				x.r.t.Log.Warn("response to no call of this stream", "id", string(m.ID))
			}
		case Notification:
			x.notification(m)
		case Request:
			x.request(m)
		case NoMessage: // the parser refuses it
		}
	})
	return answer, ok, err
}

// each reads one message, or a batch in the revisions that have them.
func (r *Remote) each(raw []byte, visit func(Message)) error {
	one := func(_ int, raw []byte) error {
		m, err := parseServers(raw, r.t.MaxMessage)
		if err == nil {
			visit(m)
		}
		return err
	}
	if startsArray(raw) && r.About().Version <= V20250326 {
		return strictjson.Elements(raw, strictjson.Limits{Bytes: r.t.MaxMessage, Depth: maxResultDepth, Lax: true}, one)
	}
	return one(0, raw)
}

func (x *remoteCall) notification(m Message) {
	switch m.Method {
	case methodCancelled:
		x.r.asking.withdraw(cancelledID(m.Params))
	case methodProgress:
		token, ok := progressToken(m)
		if !ok || token != x.id || x.token == nil {
			x.r.t.Log.Debug("progress of another call")
			return
		}
		if m, ok = restored(m, x.token); ok {
			x.to.Notification(m)
		}
	default:
		x.to.Notification(m)
	}
}

// request answers a request that the server makes because of this call.
func (x *remoteCall) request(m Message) {
	if x.modern {
		x.r.t.Log.Warn("request of a modern server ignored", "method", m.Method)
		return
	}
	if x.askCtx == nil {
		x.askCtx, x.endAsks = context.WithCancel(x.ctx)
	}
	x.asks.Add(1)
	if !x.r.answer(x.askCtx, m, x.to, x.asks.Done) {
		x.asks.Done()
	}
}

// answer has a request of the server answered and sends the answer.
func (r *Remote) answer(ctx context.Context, m Message, to Answers, done func()) bool {
	if m.Method == methodPing {
		to = alive{}
	}
	ok := r.reply(func() {
		raw := r.asking.answer(ctx, m, to)
		done() // the call need not wait until its server takes the answer
		if raw == nil {
			return
		}
		if err := r.send(r.ctx, raw); err != nil {
			r.t.Log.Warn("answer to the server was not delivered", "method", m.Method, "error", err)
		}
	})
	if !ok {
		r.t.Log.Warn("request of the server dropped: too many at a time", "method", m.Method)
	}
	return ok
}

// place is where a stream stands.
type place struct {
	last  string        // id of the last event
	retry time.Duration // the server's wish; 0 when it has none
}

// delay is how long to wait before the stream is opened again.
func (p *place) delay(failures int) time.Duration {
	first := firstDelay
	if p.retry > 0 {
		first = min(p.retry, maxRetry)
	}
	return min(first<<min(failures, 5), max(first, longestDelay))
}

// events hands on what comes on a stream until visit wants no more (nil) or the
// stream ends (io.EOF, or what broke it).
func (r *Remote) events(resp *http.Response, p *place, visit func(data []byte) (more bool)) error {
	stream := NewEvents(resp.Body, r.t.MaxMessage+eventSlack)
	for {
		e, err := stream.Next()
		if err != nil {
			return err
		}
		if e.ID != "" {
			p.last = e.ID
		}
		if e.Retry > 0 {
			p.retry = e.Retry
		}
		if len(e.Data) == 0 || e.Name != "" && e.Name != "message" {
			continue
		}
		if !visit(e.Data) {
			return nil
		}
	}
}

// stream reads the answer from a stream, and resumes the stream when the server
// closes it early and has said how (2025-11-25, "polling").
func (x *remoteCall) stream(resp *http.Response) (answer Message, err error) {
	var at place
	failures := 0
	for {
		before := at.last
		answer, err = x.follow(resp, &at)
		if err == nil {
			return answer, nil
		}
		switch {
		case errors.Is(err, ErrEventTooLarge):
			return Message{}, sent(ErrTooLarge)
		case errors.Is(err, ErrUnreadable) || x.ctx.Err() != nil:
			return Message{}, sent(err)
		case x.modern || at.last == "":
			return Message{}, sent(fmt.Errorf("%w: %w", errStreamEnded, err))
		case at.last != before:
			failures = 0
		}
		if resp, err = x.resume(&at, &failures); err != nil { //nolint:bodyclose // follow closes it
			return Message{}, sent(err)
		}
	}
}

// follow reads one stream. When the answer has come it sees to the rest of the
// stream; otherwise it closes it.
func (x *remoteCall) follow(resp *http.Response, at *place) (answer Message, err error) {
	var found bool
	var problem error
	err = x.r.events(resp, at, func(data []byte) bool {
		if len(data) > x.r.t.MaxMessage {
			problem = ErrEventTooLarge
			return false
		}
		var fault error
		answer, found, fault = x.take(data)
		if fault != nil {
			x.r.t.Log.Warn("unusable message from server", "problem", fault)
			if id, ok := answered(data); ok && id == x.id {
				problem = fmt.Errorf("%w: %w", ErrUnreadable, fault)
			}
		}
		return !found && problem == nil
	})
	if found {
		x.drain(resp)
		return answer, nil
	}
	_ = resp.Body.Close()
	if problem != nil {
		err = problem
	}
	return Message{}, err
}

// drain reads a stream to its end after the answer, so that its connection can
// be used again; not for long, as nothing more is wanted from it.
func (x *remoteCall) drain(resp *http.Response) {
	x.draining = x.r.spawn(func() {
		timer := time.AfterFunc(drainTime, x.stop)
		defer timer.Stop()
		defer x.stop()
		shut(resp)
	})
	if !x.draining {
		_ = resp.Body.Close()
	}
}

// resume opens the stream again after the last event.
func (x *remoteCall) resume(at *place, failures *int) (*http.Response, error) {
	for ; *failures < maxResumes; *failures++ {
		if !pause(x.ctx, at.delay(*failures)) {
			return nil, context.Cause(x.ctx)
		}
		resp, err := x.r.get(x.ctx, at.last)
		switch {
		case err != nil:
			continue
		case resp.StatusCode == http.StatusOK && contentType(resp) == typeEvents:
			*failures++ // until an event comes
			return resp, nil
		}
		resp.Body.Close()
		if x.r.sessionOver(resp) {
			return nil, ErrNoSession
		}
		if resp.StatusCode < http.StatusInternalServerError {
			return nil, fmt.Errorf("%w: %w", errStreamEnded, &StatusError{Status: resp.StatusCode})
		}
	}
	return nil, fmt.Errorf("%w and could not be resumed", errStreamEnded)
}

// listen keeps the standing stream of a legacy session open, on which a server
// says what belongs to no call. Servers need not offer one.
func (r *Remote) listen() {
	to := orNobody(r.t.Stray)
	var at place
	for failures := 0; ; failures++ {
		resp, err := r.get(r.ctx, at.last)
		if err == nil {
			streams := resp.StatusCode == http.StatusOK && contentType(resp) == typeEvents
			if !streams && resp.StatusCode < http.StatusInternalServerError {
				resp.Body.Close() // 405 by the book, in practice anything
				return
			}
			if streams {
				err = r.events(resp, &at, func(data []byte) bool {
					failures = -1
					r.unrelated(data, to)
					return true
				})
			}
			_ = resp.Body.Close()
		}
		if err != nil && !errors.Is(err, io.EOF) {
			r.t.Log.Debug("standing stream broke", "error", err)
		}
		if !pause(r.ctx, at.delay(max(failures, 0))) {
			return
		}
	}
}

// unrelated takes a message that belongs to no call.
func (r *Remote) unrelated(data []byte, to Answers) {
	err := r.each(data, func(m Message) {
		switch {
		case m.Kind() == Response:
			r.t.Log.Warn("response on the standing stream ignored", "id", string(m.ID))
		case m.Kind() == Request:
			r.answer(r.ctx, m, to, func() {})
		case m.Method == methodCancelled:
			r.asking.withdraw(cancelledID(m.Params))
		case m.Method == methodProgress: // of no call that anybody could name
		default:
			to.Notification(m)
		}
	})
	if err != nil {
		r.t.Log.Warn("unusable message from server", "problem", err)
	}
}

// pause reports whether the time passed before ctx ended.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
