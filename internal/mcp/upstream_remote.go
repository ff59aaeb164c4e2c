package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// postLimit bounds messages of ours that expect no response.
const postLimit = 30 * time.Second

// Remote is a connection to a server over streamable HTTP. In the modern era it
// is no more than an address and what was learned about it. In the legacy era it
// is a session, which the server may end: calls then fail with [ErrNoSession],
// before anything ran, Done is closed, and the caller dials again.
type Remote struct {
	*lifetime
	t         Target
	links     *links
	transport *http.Transport
	url       atomic.Pointer[url.URL]
	header    http.Header           // of every request; complete once the terms are agreed
	session   string                // legacy, may be empty
	terms     atomic.Pointer[terms] // nil until agreed
	last      atomic.Uint64
	asking    serverAsks
	bindings  bindings
	closing   sync.Once

	// wire ends at Close. A session that is over does not end the calls still
	// in flight: their answers may come yet.
	wire context.Context
	cut  context.CancelFunc
}

// About describes the server as it introduced itself.
func (r *Remote) About() About { return r.terms.Load().aboutServer() }

// Call implements [Upstream]. A [StatusError] in the cause of a [CallError]
// says that the server answered in HTTP only.
func (r *Remote) Call(ctx context.Context, method string, params []byte, to Answers) (Message, error) {
	return r.call(ctx, r.terms.Load().meta, method, params, to)
}

// remoteCall is one call and the stream that its answer comes on.
type remoteCall struct {
	r      *Remote
	ctx    context.Context // ends with the caller's, the time limit, or the connection
	stop   context.CancelFunc
	id     uint64
	method string
	modern bool
	token  []byte // the agent's progress token or nil
	to     Answers

	draining bool // the rest of the stream is being read and stops ctx itself

	askCtx  context.Context // of the requests the server makes because of the call
	endAsks context.CancelFunc
	asks    sync.WaitGroup
}

func (r *Remote) call(ctx context.Context, meta *introduction, method string, params []byte, to Answers) (Message, error) {
	if ctx.Err() != nil {
		return Message{}, unsent(context.Cause(ctx))
	}
	if err := r.Err(); err != nil {
		return Message{}, unsent(err)
	}
	x := &remoteCall{r: r, id: r.last.Add(1), method: method, modern: meta != nil, to: orNobody(to)}
	params, token, err := outgoing(params, meta, x.id)
	if err != nil {
		return Message{}, unsent(err)
	}
	h, err := r.headerOf(meta, method, params)
	if err != nil {
		return Message{}, unsent(err)
	}
	x.token = token
	// The request does not run in ctx itself: a stream that is over is read to its
	// end after the call, so that its connection can be used again.
	x.ctx, x.stop = r.t.within(r.wire, method)
	release := context.AfterFunc(ctx, x.stop)
	defer release()
	m, err := x.exchange(h, NewRequest(strconv.AppendUint(nil, x.id, 10), method, params))
	if err != nil {
		err = x.lost(ctx, err)
	}
	if !x.draining {
		x.stop()
	}
	if x.endAsks != nil {
		x.endAsks()
		x.asks.Wait()
	}
	return m, err
}

// lost gives a failed call its cause and, where the server would go on working
// for nobody, tells it. In the modern era the end of the stream says so.
func (x *remoteCall) lost(ctx context.Context, err error) error {
	var failed *CallError
	if !errors.As(err, &failed) {
		failed = &CallError{Sent: true, Err: err}
	}
	switch {
	case ctx.Err() != nil:
		failed.Err = context.Cause(ctx)
	case x.r.wire.Err() != nil:
		failed.Err = ErrUpstreamClosed
		return failed
	case x.ctx.Err() != nil:
		failed.Err = context.Cause(x.ctx)
	default:
		return failed
	}
	if failed.Sent && !x.modern && x.method != methodInitialize {
		params := cancelledParams(strconv.AppendUint(nil, x.id, 10))
		x.r.spawn(func() { _ = x.r.send(x.r.ctx, NewNotification(methodCancelled, params)) })
	}
	return failed
}

// Notify implements [Upstream].
func (r *Remote) Notify(ctx context.Context, method string, params []byte) error {
	if err := r.Err(); err != nil {
		return unsent(err)
	}
	h, err := r.headerOf(r.terms.Load().meta, method, params)
	if err != nil {
		return unsent(err)
	}
	return r.deliver(ctx, h, NewNotification(method, params))
}

// send delivers a message that expects no response, in the legacy era.
func (r *Remote) send(ctx context.Context, message []byte) error {
	return r.deliver(ctx, r.header, message)
}

func (r *Remote) deliver(ctx context.Context, h http.Header, message []byte) error {
	ctx, stop := context.WithTimeout(ctx, postLimit)
	defer stop()
	resp, taken, err := r.post(ctx, h, message)
	if err != nil {
		return &CallError{Sent: taken, Err: err}
	}
	defer shut(resp)
	if resp.StatusCode/100 == 2 {
		return nil
	}
	if r.sessionOver(resp) {
		return sent(ErrNoSession)
	}
	return sent(&StatusError{Status: resp.StatusCode})
}

// sessionOver reports whether a response says that the session does not exist
// any more, and ends the connection if so.
func (r *Remote) sessionOver(resp *http.Response) bool {
	if resp.StatusCode != http.StatusNotFound || r.session == "" {
		return false
	}
	r.finish(ErrNoSession)
	return true
}

// Close ends the session, if there is one, and all calls in flight. It must not
// be called from within Answers.
func (r *Remote) Close() error {
	r.closing.Do(func() {
		ended := errors.Is(r.Err(), ErrNoSession)
		r.finish(ErrUpstreamClosed)
		r.cut()
		if r.session != "" && !ended {
			r.endSession()
		}
		r.wg.Wait()
		r.transport.CloseIdleConnections()
		r.links.close()
	})
	return nil
}

// endSession tells the server that the session is over. Some servers do not
// allow that, and none has to.
func (r *Remote) endSession() {
	ctx, stop := context.WithTimeout(context.WithoutCancel(r.ctx), r.t.Grace)
	defer stop()
	resp, err := r.transport.RoundTrip(r.request(ctx, http.MethodDelete, r.url.Load(), r.header))
	if err == nil {
		shut(resp)
	}
}

// headerOf returns the headers of a message. Legacy messages share one set.
func (r *Remote) headerOf(meta *introduction, method string, params []byte) (http.Header, error) {
	if meta == nil {
		return r.header, nil
	}
	h := maps.Clone(r.header)
	if err := SetHeaders(h, meta.revision, method, params); err != nil {
		return nil, err
	}
	if method == "tools/call" && r.t.Schema != nil {
		name, err := textMember(params, "name")
		if err != nil {
			return nil, err
		}
		bound, err := r.bindings.of(name, r.t.Schema(name))
		if err != nil {
			return nil, fmt.Errorf("tool %q cannot be called over HTTP: %w", name, err)
		}
		SetParamHeaders(h, bound, params)
	}
	return h, nil
}

// maxBindings bounds how many tools' header bindings are remembered.
const maxBindings = 1024

// bindings remembers which arguments of a tool are repeated in headers.
type bindings struct {
	mu    sync.Mutex
	tools map[string]binding
}

type binding struct {
	schema []byte
	bound  []ParamHeader
	err    error
}

func (b *bindings) of(tool string, schema []byte) ([]ParamHeader, error) {
	if schema == nil {
		return nil, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if known, ok := b.tools[tool]; ok && bytes.Equal(known.schema, schema) {
		return known.bound, known.err
	}
	if b.tools == nil || len(b.tools) >= maxBindings {
		b.tools = make(map[string]binding)
	}
	bound, err := ParamHeaders(schema)
	b.tools[tool] = binding{schema: bytes.Clone(schema), bound: bound, err: err}
	return bound, err
}
