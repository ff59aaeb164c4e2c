package gateway

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/desk"
	"github.com/ayegate/ayegate/internal/identity"
	"github.com/ayegate/ayegate/internal/mcp"
	"github.com/ayegate/ayegate/internal/policy"
	"github.com/ayegate/ayegate/internal/store"
	"github.com/ayegate/ayegate/internal/store/memory"
)

const testPolicy = `
version: 1
defaults: {unmatched: ask, ttl: 20m}
rules:
  - {id: never, tool: ["*.wipe"], deny: {}, why: "wiping is not for agents"}
  - {id: reads, tool: ["*.echo", "*.ask", "*.mcp:prompts/get", "*.mcp:resources/subscribe"], allow: {tier: R0}}
`

// rig is a gateway with a real desk over a memory store. The servers behind it
// are dialled through dial.
type rig struct {
	t    testing.TB
	g    *Gateway
	desk *desk.Desk
	mem  *memory.Store
	log  *safeBuffer
	stop context.CancelFunc

	endpoint *mcp.Endpoint // after wire
}

type rigConfig struct {
	policy  string
	servers map[string]Server
	dial    func(context.Context, mcp.Target) (mcp.Upstream, error)
	hold    Hold
	limits  Limits
	noURL   bool
}

func newRig(t testing.TB, c rigConfig) *rig {
	t.Helper()
	if c.policy == "" {
		c.policy = testPolicy
	}
	p, err := policy.Parse("test.yaml", []byte(c.policy))
	if err != nil {
		t.Fatal(err)
	}
	mem, err := memory.Open(memory.Config{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, mem: mem, log: &safeBuffer{}}
	log := slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	r.desk, err = desk.New(desk.Config{Store: mem, Policy: p, Rand: rand.Reader, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	if err := r.desk.Recover(ctx, "test"); err != nil {
		t.Fatal(err)
	}
	base := "https://aye.example"
	if c.noURL {
		base = ""
	}
	r.g, err = New(ctx, Config{
		Desk: r.desk, Servers: c.servers, BaseURL: base, Hold: c.hold, Limits: c.limits, Version: "1.2.3",
		Identify: func(principal string) (identity.Agent, error) {
			if principal == "" || strings.HasPrefix(principal, "nobody") {
				return identity.Agent{}, errors.New("no such agent")
			}
			return identity.Agent{ID: principal, Owner: "user:ana", Workspace: "shop"}, nil
		},
		Now: time.Now, Rand: rand.Reader, Log: log, Dial: c.dial,
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) close() {
	r.g.Shutdown()
	r.stop()
	_ = r.mem.Close()
}

var raj = identity.Human{ID: "raj", Name: "Raj", Strength: identity.Session}

// open waits until exactly one request is pending and returns it.
func (r *rig) pending() *approval.Request {
	r.t.Helper()
	for range 2000 {
		var found []*approval.Request
		for q, err := range r.mem.List(context.Background(), store.Filter{States: []approval.State{approval.Pending}}) {
			if err != nil {
				r.t.Fatal(err)
			}
			found = append(found, q)
		}
		if len(found) == 1 {
			return found[0]
		}
		time.Sleep(time.Millisecond)
	}
	r.t.Fatal("no single pending request")
	return nil
}

func (r *rig) decide(q *approval.Request, approve bool) *approval.Request {
	r.t.Helper()
	out, err := r.desk.Decide(context.Background(), raj, q.ID, approval.Decision{Approve: approve, Digest: q.Digest, Reason: "because"})
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}

// last is the request that was made last.
func (r *rig) last() *approval.Request {
	r.t.Helper()
	var last *approval.Request
	for q, err := range r.mem.List(context.Background(), store.Filter{}) {
		if err != nil {
			r.t.Fatal(err)
		}
		if last == nil || q.AskedAt.After(last.AskedAt) {
			last = q
		}
	}
	return last
}

func (r *rig) all() (all []*approval.Request) {
	for q, err := range r.mem.List(context.Background(), store.Filter{}) {
		if err != nil {
			r.t.Fatal(err)
		}
		all = append(all, q)
	}
	return all
}

// --- a server in this process ---

// server stands in for a dialled connection where a test needs a fake clock: it
// keeps the contract of mcp.Upstream and logs the bytes it is sent.
type server struct {
	about mcp.About
	serve func(ctx context.Context, s *server, method string, params []byte, to mcp.Answers) (mcp.Message, error)

	mu     sync.Mutex
	target mcp.Target
	tools  string // elements of the list
	calls  []sent
	told   []sent
	conns  []*dialled

	listening mcp.Answers // of the open subscription
	filter    string
}

type sent struct{ method, params string }

const twoTools = `{"name":"write","description":"writes","inputSchema":{"type":"object"}},{"name":"echo","inputSchema":{"type":"object"}},` +
	`{"name":"ask","inputSchema":{"type":"object"}},{"name":"wipe","inputSchema":{"type":"object"}}`

func legacyServer() *server {
	about := `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true},"logging":{},"tasks":{"list":{}}},"serverInfo":{"name":"fs","version":"9"},"instructions":"Be gentle.","x-odd":1.10}`
	return &server{
		tools: twoTools,
		about: mcp.About{
			Version: mcp.V20251125, Capabilities: get([]byte(about), "capabilities"), Info: get([]byte(about), "serverInfo"),
			Instructions: "Be gentle.", Raw: []byte(about),
		},
	}
}

func modernServer() *server {
	s := legacyServer()
	raw := `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true},"extensions":{"io.modelcontextprotocol/tasks":{},"x/y":{}}},"ttlMs":99,"cacheScope":"public"}`
	s.about = mcp.About{Version: mcp.V20260728, Capabilities: get([]byte(raw), "capabilities"), Instructions: "Be modern.", Raw: []byte(raw)}
	return s
}

// dial opens a connection to the server. Killing the server ends them all.
func (s *server) dial(_ context.Context, t mcp.Target) (mcp.Upstream, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.target = t
	c := &dialled{s: s, done: make(chan struct{})}
	s.conns = append(s.conns, c)
	return c, nil
}

func (s *server) kill() {
	s.mu.Lock()
	conns := s.conns
	s.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
	}
}

// open counts the connections that live.
func (s *server) open() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		select {
		case <-c.done:
		default:
			n++
		}
	}
	return n
}

// dialled is one connection to a server.
type dialled struct {
	s    *server
	once sync.Once
	done chan struct{}
}

func (c *dialled) About() mcp.About      { return c.s.about }
func (c *dialled) Done() <-chan struct{} { return c.done }
func (c *dialled) Err() error            { return nil }

func (c *dialled) Close() error {
	c.once.Do(func() { close(c.done) })
	return nil
}

func (c *dialled) Call(ctx context.Context, method string, params []byte, to mcp.Answers) (mcp.Message, error) {
	s := c.s
	if ctx.Err() != nil {
		return mcp.Message{}, &mcp.CallError{Err: context.Cause(ctx)}
	}
	s.mu.Lock()
	if method != "tools/list" && method != "subscriptions/listen" {
		s.calls = append(s.calls, sent{method, string(params)})
	}
	tools := s.tools
	if method == "subscriptions/listen" {
		s.listening, s.filter = to, string(get(params, "notifications"))
	}
	s.mu.Unlock()
	if method == "tools/list" {
		return result(`{"tools":[` + tools + `]}`), nil
	}
	type answer struct {
		m   mcp.Message
		err error
	}
	answered := make(chan answer, 1)
	switch {
	case method == "subscriptions/listen":
	case s.serve == nil:
		return result(`{"content":[{"type":"text","text":"done"}],"isError":false,"n":1.10}`), nil
	default:
		go func() {
			m, err := s.serve(ctx, s, method, params, to)
			answered <- answer{m, err}
		}()
	}
	select {
	case a := <-answered:
		return a.m, a.err
	case <-ctx.Done():
		return mcp.Message{}, &mcp.CallError{Sent: true, Err: context.Cause(ctx)}
	case <-c.done:
		return mcp.Message{}, &mcp.CallError{Sent: true, Err: errors.New("the connection broke")}
	}
}

func (c *dialled) Notify(_ context.Context, method string, params []byte) error {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.s.told = append(c.s.told, sent{method, string(params)})
	return nil
}

func (s *server) sent(method string) (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		if c.method == method {
			all = append(all, c.params)
		}
	}
	return all
}

// subscription is what the gateway listens for, and where news of it go.
func (s *server) subscription() (mcp.Answers, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listening, s.filter
}

func result(r string) mcp.Message { return mcp.Message{Result: []byte(r)} }

func rpcError(e string) mcp.Message { return mcp.Message{Error: []byte(e)} }

// --- an agent in this process ---

// talk is an exchange of an agent that keeps the contract of mcp.Exchange.
type talk struct {
	client mcp.Client
	m      mcp.Message
	ask    func(method string, params []byte) mcp.Message

	mu     sync.Mutex
	notes  []sent
	asked  []sent
	result string
	fault  *mcp.Error
	dead   bool // what is sent does not arrive
	done   chan struct{}
}

func agent(name string) mcp.Client {
	return mcp.Client{
		Principal: name, Session: "s-" + name, Server: "fs", Version: mcp.V20251125, Transport: "http",
		Info: []byte(`{"name":"tester","version":"0"}`), Capabilities: []byte(`{}`),
	}
}

func modernAgent(name, capabilities string) mcp.Client {
	c := agent(name)
	c.Session, c.Version, c.Capabilities = "", mcp.V20260728, []byte(capabilities)
	return c
}

func newTalk(c mcp.Client, method, params string) *talk {
	x := &talk{client: c, m: mcp.Message{ID: []byte("7"), Method: method}, done: make(chan struct{})}
	if params != "" {
		x.m.Params = []byte(params)
	}
	return x
}

func (x *talk) Client() mcp.Client   { return x.client }
func (x *talk) Request() mcp.Message { return x.m }

func (x *talk) Notify(_ context.Context, method string, params []byte) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.dead {
		return errors.New("gone")
	}
	x.notes = append(x.notes, sent{method, string(params)})
	return nil
}

func (x *talk) Ask(ctx context.Context, method string, params []byte) (mcp.Message, error) {
	if x.client.Version.Era() == mcp.Modern {
		return mcp.Message{}, mcp.ErrNoAsk
	}
	x.mu.Lock()
	x.asked = append(x.asked, sent{method, string(params)})
	x.mu.Unlock()
	if x.ask == nil {
		<-ctx.Done()
		return mcp.Message{}, context.Cause(ctx)
	}
	return x.ask(method, params), nil
}

func (x *talk) Reply(result []byte) error { return x.end(string(result), nil) }
func (x *talk) Fail(e *mcp.Error) error   { return x.end("", e) }

func (x *talk) end(result string, e *mcp.Error) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	select {
	case <-x.done:
		return mcp.ErrEnded
	default:
	}
	if x.dead {
		close(x.done)
		return errors.New("gone")
	}
	x.result, x.fault = result, e
	close(x.done)
	return nil
}

// say sends a request and returns when it is answered.
func (r *rig) say(c mcp.Client, method, params string) *talk {
	x := newTalk(c, method, params)
	r.join(c)
	r.g.Serve(context.Background(), x)
	return x
}

// join opens a legacy client's session unless it is open.
func (r *rig) join(c mcp.Client) {
	if _, err := r.g.findParty(c, false); c.Version.Era() == mcp.Legacy && errors.Is(err, errNoSession) {
		_, _ = r.g.Initialize(context.Background(), c, nil, &pushed{})
		r.g.Notification(context.Background(), c, mcp.Message{Method: "notifications/initialized"})
	}
}

// start sends a request whose answer comes later. cancel ends it with a cause.
func (r *rig) start(c mcp.Client, method, params string) (x *talk, cancel context.CancelCauseFunc) {
	x = newTalk(c, method, params)
	return x, r.serve(x)
}

func (r *rig) serve(x *talk) context.CancelCauseFunc {
	ctx, cancel := context.WithCancelCause(context.Background())
	r.join(x.client)
	go func() {
		r.g.Serve(ctx, x)
		cancel(nil)
	}()
	return cancel
}

func (x *talk) told(method string) (all []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, n := range x.notes {
		if n.method == method {
			all = append(all, n.params)
		}
	}
	return all
}

// texts are the text blocks of a tool result.
func (x *talk) texts() (all []string) {
	for _, b := range elements(get([]byte(x.result), "content")) {
		all = append(all, textAt(b, "text"))
	}
	return all
}

func (x *talk) contains(t testing.TB, parts ...string) {
	t.Helper()
	all := x.result
	if x.fault != nil {
		all = x.fault.Message + string(x.fault.Raw) + string(x.fault.Data)
	}
	for _, p := range parts {
		if !strings.Contains(all, p) {
			t.Errorf("want %q in the answer, got %s", p, all)
		}
	}
}

// sleep lets time pass and everything that it causes happen.
func sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

type safeBuffer struct {
	off bool
	mu  sync.Mutex
	b   bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.off {
		return len(p), nil
	}
	return b.b.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func one(s *server) rigConfig {
	return rigConfig{servers: map[string]Server{"fs": {}}, dial: s.dial}
}

func TestMain(m *testing.M) {
	if how := os.Getenv(peerVariable); how != "" {
		peerMain(how)
		return
	}
	goleak.VerifyTestMain(m)
}
