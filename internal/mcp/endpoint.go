package mcp

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/ayegate/ayegate/internal/strictjson"
)

// EndpointConfig is what an [Endpoint] needs.
type EndpointConfig struct {
	// Server answers the agents. Required.
	Server Server
	// Authenticate returns who sends a request. Required. An error is a 401, or what
	// an [*AuthError] says. It sees the request before its body is read.
	Authenticate func(*http.Request) (principal string, err error)
	// AllowedHosts are the values of Host that are served, "name" for any port or
	// "name:port". Empty means loopback names only.
	AllowedHosts []string
	// AllowedOrigins are the values of Origin that are served. Empty means the
	// origin of the endpoint itself. A request without Origin is no browser's.
	AllowedOrigins []string
	// Bound returns the headers that repeat arguments of a tool (modern era), so
	// that they are compared with the body. Nil compares none: nothing here ever
	// reads one.
	Bound func(c Client, tool string) []ParamHeader
	// JSON bounds messages below the limit of their size.
	JSON strictjson.Limits
	// Limits bound the rest; zero fields mean the defaults.
	Limits EndpointLimits
	// KeepAlive is how often a silent stream carries a comment, and how long a
	// request may be silent before its answer becomes a stream. Default 15 s.
	KeepAlive time.Duration
	// PollAfter closes the connection of a stream of a 2025-11-25 client after so
	// long, telling it to come back (SEP-1699). 0 keeps it open.
	PollAfter time.Duration
	// Now is the wall clock; deadlines of connections are set by it. Required.
	Now func() time.Time
	// Rand is the source of session ids. Required.
	Rand io.Reader
	// Log takes what no caller is told. Nil discards.
	Log *slog.Logger
}

// EndpointLimits bound what agents can make an [Endpoint] hold. Each has a
// default; there is no way to say "no limit".
type EndpointLimits struct {
	Body          int64         // bytes of a request body; 1 MiB
	BodyTime      time.Duration // to read a body; 30 s
	WriteTime     time.Duration // to write an answer, or one event of a stream; 30 s
	Batch         int           // messages in a batch of 2025-03-26; 32
	Sessions      int           // legacy sessions of one principal, the least used idle one makes room; 256
	SessionsTotal int           // of all; 16384
	SessionIdle   time.Duration // after which an idle session ends; 24 h
	Streams       int           // requests being answered, and as many being served, of one principal; 512
	StreamsTotal  int           // of all; 16384
}

func (l EndpointLimits) orDefaults() EndpointLimits {
	return EndpointLimits{
		Body:          orElse(l.Body, 1<<20),
		BodyTime:      orElse(l.BodyTime, 30*time.Second),
		WriteTime:     orElse(l.WriteTime, 30*time.Second),
		Batch:         orElse(l.Batch, 32),
		Sessions:      orElse(l.Sessions, 256),
		SessionsTotal: orElse(l.SessionsTotal, 16384),
		SessionIdle:   orElse(l.SessionIdle, 24*time.Hour),
		Streams:       orElse(l.Streams, 512),
		StreamsTotal:  orElse(l.StreamsTotal, 16384),
	}
}

func orElse[T int | int64 | time.Duration](v, otherwise T) T {
	if v <= 0 {
		return otherwise
	}
	return v
}

// AuthError lets [EndpointConfig.Authenticate] choose the answer.
type AuthError struct {
	Status    int    // 401 or 403; 0 means 401
	Challenge string // value of WWW-Authenticate; empty means "Bearer"
	Err       error  // told to the agent
}

func (e *AuthError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *AuthError) Unwrap() error { return e.Err }

// Endpoint serves agents over streamable HTTP, in both eras, at /mcp and
// /mcp/{server}. The era is chosen per request: a request that states a modern
// revision, in its header or its body, is judged by the modern rules, any other
// by the legacy ones. Which era it is never changes what a call means: headers
// are compared with the body and otherwise believed by nobody (MCP-23).
//
// Put it on an [http.Server] with ReadHeaderTimeout, IdleTimeout and WriteTimeout
// set: the endpoint moves the deadlines of the bodies and streams it serves, and
// the server's own, which would cut a call that is held, cover the rest of the
// connection's life (OPS-03).
type Endpoint struct {
	c     EndpointConfig
	quota quota
	ctx   context.Context // of everything that is being served
	stop  context.CancelCauseFunc

	mu       sync.Mutex
	sessions map[string]*session
	swept    time.Time
}

// NewEndpoint returns an endpoint that serves until ctx ends.
func NewEndpoint(ctx context.Context, c EndpointConfig) *Endpoint {
	c.Limits = c.Limits.orDefaults()
	c.KeepAlive = orElse(c.KeepAlive, 15*time.Second)
	if c.JSON.Bytes <= 0 {
		c.JSON.Bytes = int(c.Limits.Body)
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	l := c.Limits
	e := &Endpoint{c: c, sessions: make(map[string]*session)}
	e.quota.each = use{l.Sessions, l.Streams, l.Streams}
	e.quota.all = use{l.SessionsTotal, l.StreamsTotal, l.StreamsTotal}
	e.ctx, e.stop = context.WithCancelCause(ctx)
	return e
}

// Shutdown refuses what comes from now on, cancels what is being served with
// [ErrShutdown], ends all sessions, and returns when all is answered or ctx has ended.
func (e *Endpoint) Shutdown(ctx context.Context) error {
	e.quota.shut()
	e.stop(ErrShutdown)
	for _, s := range e.allSessions() {
		e.closeSession(s, ErrShutdown)
	}
	ended := make(chan struct{})
	go func() {
		e.quota.running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ServeHTTP serves one HTTP request.
func (e *Endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := &request{e: e, w: w, r: r, rc: http.NewResponseController(w)}
	q.limitBody()
	server, ok := serverOf(r)
	if !ok {
		q.refuse(http.StatusNotFound, nil, invalid("", "no such endpoint"))
		return
	}
	if problem := e.checkHost(r); problem != "" {
		q.refuse(http.StatusForbidden, nil, invalid("", problem))
		return
	}
	if problem := checkHeaderForm(r.Header); problem != "" {
		q.refuse(http.StatusBadRequest, nil, invalid("", problem))
		return
	}
	principal, err := e.c.Authenticate(r)
	if err != nil {
		q.unauthenticated(err)
		return
	}
	q.client = Client{Principal: principal, Server: server, Transport: "http"}
	q.route()
}

// route chooses by HTTP method and, where there is no body, by era.
func (q *request) route() {
	modern := Version(q.r.Header.Get(HeaderVersion)).Era() == Modern
	session := q.r.Header.Get(HeaderSession) != ""
	switch {
	case q.r.Method == http.MethodPost:
		q.post()
	case q.r.ContentLength != 0:
		q.refuse(http.StatusBadRequest, nil, invalid("", "only POST has a body"))
	case q.r.Method == http.MethodGet && !modern && session:
		q.get()
	case q.r.Method == http.MethodDelete && !modern && session:
		q.delete()
	default:
		q.w.Header().Set("Allow", "POST")
		q.refuse(http.StatusMethodNotAllowed, nil, invalid("", "this method needs a session of an older protocol revision; use POST"))
	}
}

// serverOf returns the path element behind /mcp/. The path is compared as it was
// sent, so that no escape can hide a slash.
func serverOf(r *http.Request) (server string, ok bool) {
	rest, ok := strings.CutPrefix(r.URL.EscapedPath(), "/mcp")
	if !ok || rest == "" {
		return "", ok
	}
	server, ok = strings.CutPrefix(rest, "/")
	return server, ok && isServerName(server)
}

func isServerName(s string) bool {
	if s == "" || len(s) > 128 || s[0] == '.' {
		return false
	}
	for i := range len(s) {
		if !isAlphanumeric(s[i]) && strings.IndexByte("-_.", s[i]) < 0 {
			return false
		}
	}
	return true
}

// unauthenticated answers a failed [EndpointConfig.Authenticate].
func (q *request) unauthenticated(err error) {
	status, challenge, text := http.StatusUnauthorized, "Bearer", "a valid credential is needed"
	var auth *AuthError
	if errors.As(err, &auth) {
		if auth.Status != 0 {
			status = auth.Status
		}
		if auth.Challenge != "" {
			challenge = auth.Challenge
		}
		text = auth.Error()
	}
	if status == http.StatusUnauthorized || auth.Challenge != "" {
		q.w.Header().Set("WWW-Authenticate", challenge)
	}
	q.refuse(status, nil, invalid("", text))
}
