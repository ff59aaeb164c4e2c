package web_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ayegate/ayegate/api"
	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/desk"
	"github.com/ayegate/ayegate/internal/identity"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/policy"
	"github.com/ayegate/ayegate/internal/store"
	"github.com/ayegate/ayegate/internal/store/memory"
	"github.com/ayegate/ayegate/internal/web"
	"github.com/ayegate/ayegate/internal/web/credential"
)

const testPolicy = `version: 1
defaults: {unmatched: ask, ttl: 5m, on_expiry: deny}
approvers:
  two: {any_of: ["user:ana", "user:raj"]}
  dba: {any_of: ["group:db-admins"]}
  notme: {any_of: ["user:ana", "user:raj"], not: [requester]}
rules:
  - id: reads
    tool: ["fs.read_*", "mail.read_*"]
    allow: {tier: R0}
  - id: never
    tool: fs.format
    deny: {}
    why: Disks are not formatted here.
  - id: writes
    tool: ["fs.write_*", "mail.*"]
    ask: {of: two, tier: R1}
    why: Changes files in the workspace. Git can undo it.
    undo: git checkout -- the file
    effects: ["Replaces {args.path}"]
  - id: shell
    tool: shell.run
    ask: {of: two, tier: R3}
    why: A shell can do anything the agent's user can do.
  - id: big-refund
    tool: payments.refund
    ask: {of: two, quorum: 2, tier: R4, confirm: [typed]}
    why: Money leaves the company and does not come back by itself.
    effects: ["Pays {args.amount_usd} USD to the holder of {args.charge}"]
  - id: not-mine
    tool: git.push
    ask: {of: notme, tier: R2}
  - id: tables
    tool: sql.run
    ask: {of: dba, tier: R3}
`

// world is a whole server over a real desk and store, and its upstream.
type world struct {
	t     *testing.T
	web   *web.Web
	desk  *desk.Desk
	store store.Store
	creds *credential.Credentials
	base  string            // address of the server
	via   http.RoundTripper // nil: the network
	tool  *upstream
	clock *clock
	logs  *lockedBuffer

	bot, other *api.Client // agents
	ana, raj   *api.Client // people
	keys       map[string]string
}

// clock is a wall that a test moves.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time          { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *clock) advance(d time.Duration) { c.ahead.Add(int64(d)) }

// upstream is the tool servers that ayegate fronts: it keeps what it was sent.
type upstream struct {
	desk   *desk.Desk
	mu     sync.Mutex
	calls  []string
	answer func(call.Call) (desk.Result, error)
	gate   chan struct{}   // when set, each call waits for it
	asker  context.Context // of the last asker
	beside string          // what the last asker wants sent beside the call
}

func (u *upstream) Tool(ctx context.Context, _ identity.Agent, server, tool string, extra []byte) (desk.Do, desk.Tool, error) {
	if server == "mail" { // mail is performed by its caller
		return nil, desk.Tool{}, web.ErrNoServer
	}
	u.mu.Lock()
	u.asker, u.beside = ctx, string(extra)
	u.mu.Unlock()
	known, held := u.desk.Tool(server, tool)
	if held {
		return nil, known, desk.ErrHeldTool
	}
	if known.Definition.IsZero() {
		known.Known = true
	}
	return u.do, known, nil
}

func (u *upstream) do(_ context.Context, c call.Call, _ string) (desk.Result, error) {
	if u.gate != nil {
		<-u.gate
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.calls = append(u.calls, string(c.Canonical()))
	if u.answer != nil {
		return u.answer(c)
	}
	return desk.Result{Bytes: []byte(`{"content":[{"type":"text","text":"done"}],"n":9007199254740993}`)}, nil
}

func (u *upstream) count() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.calls)
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// directory is the people and agents of every test.
func directory() credential.Directory {
	return credential.Directory{
		People: []identity.Human{{ID: "ana", Name: "Ana", Groups: []string{"db-admins"}}, {ID: "raj", Name: "Raj"}, {ID: "eve", Name: "Eve"}},
		Agents: []identity.Agent{{ID: "bot", Owner: "user:ana", Workspace: "shop"}, {ID: "other", Workspace: "shop"}},
	}
}

type option func(*web.Config)

// newWorld listens on a real port.
func newWorld(t *testing.T, opts ...option) *world {
	t.Helper()
	c := &clock{}
	s, err := memory.Open(memory.Config{Now: c.now})
	must(t, err)
	return worldOn(t, s, c, opts...)
}

func worldOn(t *testing.T, s store.Store, c *clock, opts ...option) *world {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	w := build(t, s, c, "http://"+server.Listener.Addr().String(), nil, opts...)
	server.Config.Handler = w.web.Handler()
	server.Start()
	t.Cleanup(func() { w.web.Close(); server.Close(); s.Close() })
	return w
}

// quietWorld has no network, for a bubble of testing/synctest.
func quietWorld(t *testing.T, opts ...option) *world {
	t.Helper()
	c := &clock{}
	s, err := memory.Open(memory.Config{Now: c.now})
	must(t, err)
	in := &inProcess{}
	w := build(t, s, c, "http://127.0.0.1:7777", in, opts...)
	in.handler = w.web.Handler()
	t.Cleanup(func() { w.web.Close(); s.Close() })
	return w
}

func build(t *testing.T, s store.Store, c *clock, base string, via http.RoundTripper, opts ...option) *world {
	t.Helper()
	w := &world{t: t, store: s, clock: c, base: base, via: via, tool: &upstream{}, logs: &lockedBuffer{}, keys: map[string]string{}}
	p, err := policy.Parse("test", []byte(testPolicy))
	must(t, err)
	log := slog.New(slog.NewTextHandler(w.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	w.desk, err = desk.New(desk.Config{Store: s, Policy: p, Rand: rand.Reader, Log: log})
	must(t, err)
	w.tool.desk = w.desk
	must(t, w.desk.Recover(t.Context(), "test"))
	w.creds, err = credential.New(s, rand.Reader, directory())
	must(t, err)
	signer, err := ledger.NewKey("log.example", rand.Reader)
	must(t, err)

	cfg := web.Config{
		Desk: w.desk, Store: s, Credentials: w.creds, Now: c.now, Rand: rand.Reader, Log: log,
		BaseURL: base, Executor: w.tool, Signer: signer, Version: "test",
	}
	for _, o := range opts {
		o(&cfg)
	}
	w.web, err = web.New(cfg)
	must(t, err)
	w.bot, w.other = w.client(credential.Agent, "bot"), w.client(credential.Agent, "other")
	w.ana, w.raj = w.client(credential.Human, "ana"), w.client(credential.Human, "raj")
	return w
}

// client makes a credential and a client that has it.
func (w *world) client(class credential.Class, who string) *api.Client {
	w.t.Helper()
	_, text, err := w.creds.Add(w.t.Context(), credential.System(), credential.Spec{Class: class, For: who})
	must(w.t, err)
	w.keys[who] = text
	c, err := api.NewClient(w.base, text, w.via)
	must(w.t, err)
	return c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// hold asks for a call that waits.
func (w *world) hold(server, tool, args string) *api.Call {
	w.t.Helper()
	c, err := w.bot.Call(w.t.Context(), api.CallRequest{Server: server, Tool: tool, Args: json.RawMessage(args)})
	must(w.t, err)
	if c.Status != api.StatusPending {
		w.t.Fatalf("%s.%s is %s, want pending", server, tool, c.Status)
	}
	return c
}

// say decides with the digest that is current.
func (w *world) say(by *api.Client, id string, verb api.Verb, reason string) *api.Request {
	w.t.Helper()
	r, err := by.Request(w.t.Context(), id)
	must(w.t, err)
	out, err := by.Decide(w.t.Context(), id, api.DecideRequest{Decision: verb, Digest: r.Digest, Reason: reason, Confirm: &api.Confirm{Typed: r.Confirm.Typed}})
	must(w.t, err)
	return out
}

// raw sends a request as it is written.
func (w *world) raw(method, path, body string, header ...string) *http.Response {
	w.t.Helper()
	var b io.Reader
	if body != "" {
		b = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.base+path, b)
	must(w.t, err)
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
			continue
		}
		r.Header.Add(header[i], header[i+1])
	}
	client := &http.Client{Transport: w.via, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(r)
	must(w.t, err)
	w.t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func bearer(text string) []string { return []string{"Authorization", "Bearer " + text} }

// problem reads an error answer.
func problem(t *testing.T, resp *http.Response) api.Problem {
	t.Helper()
	if got := resp.Header.Get("Content-Type"); got != "application/problem+json" {
		b, _ := io.ReadAll(resp.Body)
		t.Fatalf("content type %q (HTTP %d), want application/problem+json: %s", got, resp.StatusCode, b)
	}
	var p api.Problem
	must(t, json.NewDecoder(resp.Body).Decode(&p))
	return p
}

// kinds lists the kinds of the record, to see what was written.
func (w *world) kinds(kind ledger.Kind) []ledger.Entry {
	w.t.Helper()
	var out []ledger.Entry
	for line, err := range w.store.Entries(w.t.Context(), 0) {
		must(w.t, err)
		e, err := ledger.ParseEntry(line)
		must(w.t, err)
		if e.Kind == kind {
			out = append(out, e)
		}
	}
	return out
}

func answering(r desk.Result, err error) func(call.Call) (desk.Result, error) {
	return func(call.Call) (desk.Result, error) { return r, err }
}
