// Package web serves people and programs over HTTP: the JSON API, the pages,
// sign-in, and what machines watch.
//
// It owns the route table ([Web.Routes]), the two planes of credentials that
// never mix (agents ask, people decide), the checks that every request passes
// before a handler sees it (host, origin, credential, content type, size, strict
// JSON), the views of a request, server-sent events, and the pages. Everything a
// request's life depends on is asked of the desk; a handler turns bytes into one
// question for the desk and its answer into bytes.
//
// It does not own MCP (package mcp and gateway), the meaning of any move
// (approval), credentials at rest (subpackage credential), or how a call looks
// (subpackage page). Listeners, TLS and time limits of connections are the
// wiring's.
//
// Rules that hold for every route and are tested over the whole table: GET and
// HEAD change nothing; a change is a POST or DELETE from the same origin or with
// a bearer credential; a credential of the wrong class is refused whatever it
// may; what is foreign and what is absent look the same; nothing is cached;
// bodies are never logged.
package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/ayegate/ayegate/internal/desk"
	"github.com/ayegate/ayegate/internal/identity"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/store"
	"github.com/ayegate/ayegate/internal/web/credential"
)

// Executor performs calls for the servers that ayegate fronts.
type Executor interface {
	// Tool says how a call of a tool is performed for an agent and what is known of
	// the tool. extra is what the request sends beside the call; nil is nothing.
	// An error that wraps [ErrNoServer] means that ayegate does not front
	// the server; [ErrNoTool] that the server does not offer the tool to the agent;
	// [desk.ErrHeldTool] that its definition changed and waits for a person. The
	// function is run at most once, and must keep the promises of [desk.Do].
	Tool(ctx context.Context, from identity.Agent, server, tool string, extra []byte) (desk.Do, desk.Tool, error)
}

// Errors of an [Executor].
var (
	ErrNoServer = errors.New("no such server is configured")
	ErrNoTool   = errors.New("the server offers no such tool")
)

// Config is what a [Web] needs. Fields without a default are required.
type Config struct {
	Desk        *desk.Desk
	Store       store.Store
	Credentials *credential.Credentials
	Now         func() time.Time // the wall clock; deadlines of connections are set by it
	Rand        io.Reader        // names of incidents
	Log         *slog.Logger     // never sees bodies, arguments, results or secrets

	// BaseURL is where people reach the pages: "http://127.0.0.1:7777". With https
	// cookies are bound to it.
	BaseURL string
	// AllowedHosts are further values of the Host header that are served, with
	// their port where it is not the scheme's own. The host of BaseURL always is.
	AllowedHosts []string
	// Executor performs calls of the JSON API; nil where no server is fronted.
	Executor Executor
	// Signer signs heads of the record; nil where there is no key: then there are
	// no checkpoints and no proofs.
	Signer *ledger.Signer
	// MaxBody bounds request bodies; 0 means 1 MiB.
	MaxBody int64
	// Version of the program, for people.
	Version string
}

// Limits that are no matter of taste: each bounds what one caller can hold.
const (
	maxWait          = 5 * time.Minute  // of a long poll
	readTime         = 30 * time.Second // to send a body
	writeTime        = 30 * time.Second // to take an answer, or one event
	heartbeat        = 15 * time.Second // between signs of life on a stream
	streamsPerPerson = 8
	streamsTotal     = 256
	waitsPerAgent    = 256
)

// Web serves. It is safe for concurrent use.
type Web struct {
	cfg    Config
	desk   *desk.Desk
	store  store.Store
	creds  *credential.Credentials
	log    *slog.Logger
	base   *url.URL
	hosts  []string
	cookie string // its name
	secure bool   // the pages are reached over TLS

	routes []route
	mux    *http.ServeMux
	origin *http.CrossOriginProtection

	failures failures
	streams  quota
	waits    quota
	metrics  metrics

	random sync.Mutex // guards cfg.Rand
	done   chan struct{}
	close  sync.Once
}

// New makes a Web.
func New(cfg Config) (*Web, error) {
	if cfg.Desk == nil || cfg.Store == nil || cfg.Credentials == nil || cfg.Now == nil || cfg.Rand == nil || cfg.Log == nil {
		return nil, errors.New("web: desk, store, credentials, now, rand and log are required")
	}
	base, err := url.Parse(cfg.BaseURL)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || strings.Trim(base.Path, "/") != "" || base.RawQuery != "" || base.User != nil {
		return nil, fmt.Errorf("web: base URL %q: want http://host:port or https://host, without a path", cfg.BaseURL)
	}
	base.Path = ""
	if cfg.MaxBody <= 0 {
		cfg.MaxBody = 1 << 20
	}
	w := &Web{
		cfg: cfg, desk: cfg.Desk, store: cfg.Store, creds: cfg.Credentials, log: cfg.Log, base: base,
		secure: base.Scheme == "https", origin: http.NewCrossOriginProtection(), mux: http.NewServeMux(),
		streams: quota{each: streamsPerPerson, all: streamsTotal}, waits: quota{each: waitsPerAgent, all: 64 * waitsPerAgent},
		done: make(chan struct{}),
	}
	for _, h := range append([]string{base.Host}, cfg.AllowedHosts...) {
		w.hosts = append(w.hosts, strings.ToLower(h))
	}
	w.cookie = cookieName(base)
	w.routes = table()
	for _, rt := range w.routes {
		w.mux.Handle(rt.method+" "+rt.pattern, w.guard(rt))
	}
	return w, nil
}

// cookieName differs per port without TLS: browsers send a cookie of
// 127.0.0.1 to every port of it, and two servers must not sign each other out.
func cookieName(base *url.URL) string {
	if base.Scheme == "https" {
		return "__Host-aye_session"
	}
	if port := base.Port(); port != "" {
		return "aye_session_" + port
	}
	return "aye_session"
}

// Handler serves everything that Web owns. It bounds the time of each body and
// each answer by itself, because some answers take minutes: the http.Server
// around it should set ReadHeaderTimeout and IdleTimeout, and leave ReadTimeout
// and WriteTimeout alone.
func (w *Web) Handler() http.Handler { return http.HandlerFunc(w.serve) }

// Mount serves what no other pattern of mux does, such as /mcp.
func (w *Web) Mount(mux *http.ServeMux) { mux.Handle("/", w.Handler()) }

// Run keeps the metrics until ctx ends. Without it they stay at zero.
func (w *Web) Run(ctx context.Context) error { return w.metrics.follow(ctx, w.store) }

// Close ends streams and long polls, so that a server can shut down.
func (w *Web) Close() { w.close.Do(func() { close(w.done) }) }

// NewSignInLink makes a link that signs a person in, once, within ten minutes.
// Whoever has it is that person: print it where only they can read it.
func (w *Web) NewSignInLink(ctx context.Context, humanID string) (string, error) {
	secret, err := w.creds.NewLink(ctx, credential.System(), humanID)
	if err != nil {
		return "", err
	}
	return w.base.JoinPath("signin", secret).String(), nil
}

// pageURL is where people see a request. It grants nothing.
func (w *Web) pageURL(code string) string { return w.base.JoinPath("r", code).String() }

// quota bounds how much one principal, and all together, hold at a time.
type quota struct {
	each, all int

	mu    sync.Mutex
	by    map[string]int
	total int
}

func (q *quota) take(who string) (release func(), ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.by[who] >= q.each || q.total >= q.all {
		return nil, false
	}
	if q.by == nil {
		q.by = make(map[string]int)
	}
	q.by[who]++
	q.total++
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.by[who]--; q.by[who] == 0 {
			delete(q.by, who)
		}
		q.total--
	}, true
}

func (q *quota) held() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.total
}
