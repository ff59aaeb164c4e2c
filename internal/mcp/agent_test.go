package mcp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ayegate/ayegate/internal/strictjson"
)

// echoServer is a small [Server]: tools/call names what it is to do.
type echoServer struct {
	mu       sync.Mutex
	ran      []string    // names of the tools called
	noted    chan string // methods of notifications received
	causes   chan error  // why "hold" ended
	closed   chan Client
	entered  chan Exchange // "hold" and "listen" say that they wait
	pushers  chan Pusher
	gate     chan string // what "gate" replies
	initFail *Error
}

func newEchoServer() *echoServer {
	return &echoServer{
		noted: make(chan string, 100), causes: make(chan error, 1000), closed: make(chan Client, 1000),
		entered: make(chan Exchange, 1000), pushers: make(chan Pusher, 1000),
		gate: make(chan string),
	}
}

func (s *echoServer) calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.ran...)
}

func (s *echoServer) Initialize(_ context.Context, c Client, _ []byte, push Pusher) ([]byte, *Error) {
	if s.initFail != nil {
		return nil, s.initFail
	}
	s.pushers <- push
	return fmt.Appendf(nil, `{"protocolVersion":%q,"capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"echo","version":"1"}}`, c.Version), nil
}

func (s *echoServer) Notification(_ context.Context, _ Client, m Message) { s.noted <- m.Method }
func (s *echoServer) Close(c Client)                                      { s.closed <- c }

func (s *echoServer) Serve(ctx context.Context, x Exchange) {
	switch m := x.Request(); m.Method {
	case "ping":
		_ = x.Reply([]byte(`{}`))
	case "server/discover":
		_ = x.Reply([]byte(`{"resultType":"complete","supportedVersions":["2026-07-28","2025-11-25","2025-06-18","2025-03-26"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"echo","version":"1"}}}`))
	case "tools/list":
		_ = x.Reply([]byte(`{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{"name":"echo","inputSchema":{"type":"object"}}]}`))
	case "tools/call":
		name, _ := textMember(m.Params, "name")
		s.mu.Lock()
		s.ran = append(s.ran, name)
		s.mu.Unlock()
		s.call(ctx, x, name)
	case "subscriptions/listen":
		_ = x.Notify(ctx, "notifications/subscriptions/acknowledged", fmt.Appendf(nil, `{"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}`, m.ID))
		s.hold(ctx, x)
	default:
		_ = x.Fail(&Error{Code: CodeMethodNotFound, Message: "method not found; nothing ran"})
	}
}

func (s *echoServer) call(ctx context.Context, x Exchange, name string) {
	params := x.Request().Params
	switch name {
	case "progress":
		for i := range 3 {
			_ = x.Notify(ctx, "notifications/progress", fmt.Appendf(nil, `{"progressToken":%s,"progress":%d,"message":"Held for approval"}`, ProgressToken(params), i+1))
		}
		_ = x.Reply(textResult("after progress"))
	case "ask":
		m, err := x.Ask(ctx, "elicitation/create", []byte(`{"mode":"form","message":"Why?","requestedSchema":{"type":"object","properties":{}}}`))
		if err != nil {
			_ = x.Fail(&Error{Code: CodeInternal, Message: err.Error()})
			return
		}
		_ = x.Reply(textResult(string(m.Result) + string(m.Error)))
	case "hold":
		s.hold(ctx, x)
	case "gate":
		_ = x.Notify(ctx, "notifications/progress", []byte(`{"progressToken":1,"progress":1}`))
		s.entered <- x
		select {
		case got := <-s.gate:
			_ = x.Reply(textResult(got))
		case <-ctx.Done():
			s.causes <- context.Cause(ctx)
			_ = x.Fail(&Error{Code: CodeInternal, Message: "cancelled; nothing ran"})
		}
	case "wait":
		s.entered <- x
		_ = x.Reply(textResult(<-s.gate))
	case "flood":
		s.entered <- x
		for i := 0; ; i++ {
			if err := x.Notify(ctx, "notifications/message", fmt.Appendf(nil, `{"level":"info","data":"%d %s"}`, i, strings.Repeat("x", 64<<10))); err != nil {
				s.causes <- err
				return
			}
		}
	case "lines":
		_ = x.Notify(ctx, "notifications/message", []byte("{\n\"level\":\"info\",\r\n\"data\":\"a\\ndata: b\"}"))
		_ = x.Reply([]byte("{\"content\":[{\"type\":\"text\",\n\"text\":\"x\\n\\ndata: {\\\"forged\\\":1}\\n\\n\"}]}"))
	case "panic":
		panic("a bug in the server")
	case "silent":
	case "twice":
		_ = x.Reply(textResult("first"))
		if err := x.Reply(textResult("second")); !errors.Is(err, ErrEnded) {
			panic(err)
		}
		if err := x.Notify(ctx, "notifications/message", nil); !errors.Is(err, ErrEnded) {
			panic(err)
		}
	case "unknown-tool":
		_ = x.Fail(&Error{Raw: []byte(`{"code":-32602,"message":"Unknown tool","data":{"n":9007199254740993}}`)})
	default:
		args, _ := get(params, "arguments")
		if args == nil {
			args = []byte("null")
		}
		_ = x.Reply(fmt.Appendf(nil, `{"resultType":"complete","content":[{"type":"text","text":"echo"}],"structuredContent":%s}`, args))
	}
}

// hold waits until the exchange is cancelled or released by the test.
func (s *echoServer) hold(ctx context.Context, x Exchange) {
	s.entered <- x
	<-ctx.Done()
	s.causes <- context.Cause(ctx)
	_ = x.Fail(&Error{Code: CodeInternal, Message: "cancelled; nothing ran"})
}

func textResult(s string) []byte {
	b, _ := json.Marshal(s)
	return fmt.Appendf(nil, `{"content":[{"type":"text","text":%s}]}`, b)
}

// testEndpoint is an endpoint on a real listener.
type testEndpoint struct {
	*Endpoint
	server *echoServer
	http   *httptest.Server
	t      *testing.T
}

func newTestEndpoint(t *testing.T, change func(*EndpointConfig)) *testEndpoint {
	t.Helper()
	return newTestEndpointOn(t, change, &http.Server{})
}

// newTestEndpointOn is on a server with settings of its own.
func newTestEndpointOn(t *testing.T, change func(*EndpointConfig), settings *http.Server) *testEndpoint {
	t.Helper()
	s := newEchoServer()
	c := EndpointConfig{
		Server: s, Now: time.Now, Rand: rand.Reader,
		Authenticate: func(r *http.Request) (string, error) {
			p, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
			if !ok {
				return "", errors.New("no credential")
			}
			return p, nil
		},
	}
	if change != nil {
		change(&c)
	}
	e := NewEndpoint(t.Context(), c)
	h := httptest.NewUnstartedServer(e)
	h.Config.ReadTimeout, h.Config.WriteTimeout, h.Config.IdleTimeout = settings.ReadTimeout, settings.WriteTimeout, time.Minute
	h.Start()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := e.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		h.CloseClientConnections()
		h.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return &testEndpoint{e, s, h, t}
}

// do sends a request with the headers every client sends; header adds to them or,
// with an empty value, takes away.
func (e *testEndpoint) do(method, body string, header ...string) *http.Response {
	e.t.Helper()
	res, err := http.DefaultClient.Do(e.request(method, body, header...))
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

// hold sends a call that does not end before the test does.
func (e *testEndpoint) hold(body string, header ...string) {
	e.t.Helper()
	r := e.request(http.MethodPost, body, header...)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if res, err := http.DefaultClient.Do(r); err == nil {
			_ = res.Body.Close()
		}
	}()
	e.t.Cleanup(func() { <-ended })
	<-e.server.entered
}

func (e *testEndpoint) request(method, body string, header ...string) *http.Request {
	e.t.Helper()
	r, err := http.NewRequestWithContext(e.t.Context(), method, e.http.URL+"/mcp", strings.NewReader(body))
	if err != nil {
		e.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer agent-1")
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(header); i += 2 {
		switch {
		case header[i] == "path":
			r.URL.Path, r.URL.RawPath = "", ""
			u, err := r.URL.Parse(e.http.URL + header[i+1])
			if err != nil {
				e.t.Fatal(err)
			}
			r.URL = u
		case header[i] == "Host":
			r.Host = header[i+1]
		case header[i+1] == "":
			r.Header.Del(header[i])
		default:
			r.Header.Add(header[i], header[i+1])
		}
	}
	return r
}

func (e *testEndpoint) read(res *http.Response) string {
	e.t.Helper()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		e.t.Fatal(err)
	}
	return string(b)
}

const initializeBody = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{"elicitation":{"form":{},"url":{}}},"clientInfo":{"name":"claude-code","version":"2.1.328"}}}`

// session opens a legacy session and returns its header.
func (e *testEndpoint) session(v Version, header ...string) (h []string) {
	e.t.Helper()
	res := e.do(http.MethodPost, fmt.Sprintf(initializeBody, v), header...)
	if body := e.read(res); res.StatusCode != http.StatusOK || !strings.Contains(body, string(v)) {
		e.t.Fatalf("initialize: %d %s", res.StatusCode, body)
	}
	return append([]string{HeaderSession, res.Header.Get(HeaderSession), HeaderVersion, string(v)}, header...)
}

// modern returns the body of a modern request and its headers.
func modern(id int, method, name, params string) (body string, header []string) {
	if params != "" {
		params += ","
	}
	body = fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`, id, method, params)
	header = []string{HeaderVersion, "2026-07-28", HeaderMethod, method}
	if name != "" {
		header = append(header, HeaderName, name)
	}
	return body, header
}

func call(id int, tool, args string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{"progressToken":%d}}}`, id, tool, args, id)
}

// events reads a whole stream, or up to its first max events.
func (e *testEndpoint) events(res *http.Response, max int) []Event {
	e.t.Helper()
	var all []Event
	r := NewEvents(res.Body, 1<<20)
	for len(all) < max {
		ev, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			e.t.Fatalf("after %d events: %v", len(all), err)
		}
		all = append(all, ev)
	}
	return all
}

// quiet waits until no HTTP request is being answered.
func (e *testEndpoint) quiet() {
	for {
		e.quota.mu.Lock()
		streams := e.quota.total.streams
		e.quota.mu.Unlock()
		if streams == 0 {
			return
		}
		runtime.Gosched()
	}
}

// refused checks that a request was refused with this status and code, and that
// the answer says that nothing ran.
func (e *testEndpoint) refused(res *http.Response, status, code int) {
	e.t.Helper()
	body := e.read(res)
	m, err := Parse([]byte(body), strictjson.Limits{})
	if err != nil {
		e.t.Fatalf("the answer %q is no message: %v", body, err)
	}
	got := (&Error{Raw: m.Error}).code()
	if res.StatusCode != status || got != code || !strings.Contains(body, "nothing ran") {
		e.t.Errorf("answered %d %s; want %d, %d", res.StatusCode, body, status, code)
	}
}
