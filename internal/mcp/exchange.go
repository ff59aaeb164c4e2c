package mcp

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// outlet is where the messages of one exchange go.
type outlet interface {
	// send delivers a notification or a request to the agent.
	send(ctx context.Context, kind eventKind, message []byte) error
	// reply delivers the response; status is its HTTP status where there is one.
	reply(message []byte, status int) error
}

// exchange is the [Exchange] of every transport.
type exchange struct {
	client  Client
	request Message
	out     outlet
	asks    *asks  // nil when the agent cannot be asked
	done    func() // called once, before the response goes out
	ended   atomic.Bool
}

func (x *exchange) Client() Client   { return x.client }
func (x *exchange) Request() Message { return x.request }

func (x *exchange) Notify(ctx context.Context, method string, params []byte) error {
	if x.ended.Load() {
		return ErrEnded
	}
	return x.out.send(ctx, eventNotification, NewNotification(method, params))
}

func (x *exchange) Ask(ctx context.Context, method string, params []byte) (Message, error) {
	switch {
	case x.ended.Load():
		return Message{}, ErrEnded
	case x.asks == nil:
		return Message{}, ErrNoAsk
	}
	return x.asks.ask(ctx, method, params, x.out.send)
}

func (x *exchange) Reply(result []byte) error {
	return x.end(NewResult(x.request.ID, result), http.StatusOK)
}

func (x *exchange) Fail(e *Error) error {
	return x.end(NewError(x.request.ID, e), statusOf(e, x.client.Version.Era()))
}

func (x *exchange) end(response []byte, status int) error {
	if !x.ended.CompareAndSwap(false, true) {
		return ErrEnded
	}
	x.done()
	return x.out.reply(response, status)
}

// serve lets s answer x, and answers in its place if it does not. A panic of s is
// handed to report: one request must not end the process for all others.
func (x *exchange) serve(ctx context.Context, s Server, report func(error)) {
	defer func() {
		if p := recover(); p != nil {
			report(fmt.Errorf("serving %s panicked: %v\n%s", x.request.Method, p, debug.Stack()))
		}
		if !x.ended.Load() {
			_ = x.Fail(&Error{Code: CodeInternal, Message: "internal error; whether anything ran is on the record"})
		}
	}()
	s.Serve(ctx, x)
}

// inflight are the requests of one agent that are being served, by id.
type inflight struct {
	mu   sync.Mutex
	open map[string]context.CancelCauseFunc
}

// begin reports whether the id was free.
func (f *inflight) begin(key string, cancel context.CancelCauseFunc) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.open[key]; ok {
		return false
	}
	if f.open == nil {
		f.open = make(map[string]context.CancelCauseFunc)
	}
	f.open[key] = cancel
	return true
}

func (f *inflight) end(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.open, key)
}

// cancel cancels a request. An id that is unknown or finished means nothing:
// some agents send the notification after the response.
func (f *inflight) cancel(key string) {
	f.mu.Lock()
	cancel := f.open[key]
	f.mu.Unlock()
	if cancel != nil {
		cancel(ErrCancelled)
	}
}

func (f *inflight) len() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.open)
}
