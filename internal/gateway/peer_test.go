package gateway

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ayegate/ayegate/internal/mcp"
	"github.com/ayegate/ayegate/internal/strictjson"
)

// The servers of the tests that go over the wire. They log every byte they get
// and answer with bytes that a decoder would not give back.

const (
	peerVariable = "AYEGATE_GATEWAY_PEER" // "legacy:FILE" or "modern:FILE"

	peerTool = `{"x-unknown":{"z":1,"a":1.10},"name":"echo","title":"Echo <x>&","description":"says \u0041 again","inputSchema":{"type":"object","properties":{"z":{"type":"integer","maximum":12345678901234567890},"a":{"type":"number","multipleOf":1.10}},"x-s":1E3},"execution":{"taskSupport":"optional"},"annotations":{"readOnlyHint":true,"x-ann":[1.0]},"_meta":{"n":9007199254740993}}`

	peerResult = `{"structuredContent":{"z":9007199254740993,"a":1.10,"m":1e3},"content":[{"type":"text","text":"<x>& \u0041","x-c":1.0},{"type":"x-unheard-of","blob":{"n":12345678901234567890}}],"isError":false,"x-r":-0.0,"_meta":{"n":9007199254740993,"k":1.10}}`

	peerRead  = `{"contents":[{"uri":"file:///a","text":"1.10","x":1.0}],"x-l":1E2}`
	peerError = `{"code":-32077,"message":"no \u0041","data":{"n":9007199254740993,"k":1.10},"x-e":1.0}`
)

// peerAnswer is what a peer answers to a request: a result or an error object.
func peerAnswer(method string, params []byte) (result, fault string) {
	switch method {
	case "tools/list":
		return `{"tools":[` + peerTool + `,{"name":"write","inputSchema":{"type":"object"}}],"x-page":1.10}`, ""
	case "resources/list":
		return `{"resources":[{"uri":"file:///a","name":"a","size":9007199254740993,"x":1.10}],"nextCursor":"c\u0031","x-page":1.10}`, ""
	case "tools/call":
		if textAt(params, "arguments", "fail") == "yes" {
			return "", peerError
		}
		return peerResult, ""
	case "resources/read":
		return peerRead, ""
	case "prompts/get":
		return `{"messages":[{"role":"user","content":{"type":"text","text":"hi","x":1.10}}]}`, ""
	}
	return "", `{"code":-32601,"message":"no such method"}`
}

const (
	peerCapabilities = `"capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true},"prompts":{},"x-cap":{"n":1.10},"tasks":{"list":{}}}`
	peerInitialize   = `{"protocolVersion":"2025-11-25",` + peerCapabilities + `,"serverInfo":{"name":"peer","version":"1.10"},"instructions":"Be exact.","x-init":1.10}`
	peerDiscover     = `{"resultType":"complete","supportedVersions":["2026-07-28"],` + peerCapabilities + `,"ttlMs":1000,"cacheScope":"public","instructions":"Be exact.","x-init":1.10,"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"peer","version":"1.10"}}}`
)

// peerSpeak answers one message as a server of an era; nil to a notification.
func peerSpeak(era string, raw []byte) []byte {
	m, err := mcp.Parse(raw, strictjson.Limits{})
	if err != nil || m.Kind() != mcp.Request {
		return nil
	}
	switch {
	case m.Method == "initialize" && era == "legacy":
		return mcp.NewResult(m.ID, []byte(peerInitialize))
	case m.Method == "server/discover" && era == "modern":
		return mcp.NewResult(m.ID, []byte(peerDiscover))
	}
	result, fault := peerAnswer(m.Method, m.Params)
	if fault != "" {
		return mcp.NewError(m.ID, &mcp.Error{Raw: []byte(fault)})
	}
	return mcp.NewResult(m.ID, []byte(result))
}

// peerMain is this test binary as a server over stdio.
func peerMain(how string) {
	era, file, _ := strings.Cut(how, ":")
	log, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		_, _ = log.Write(line)
		if answer := peerSpeak(era, bytes.TrimSpace(line)); answer != nil {
			_, _ = os.Stdout.Write(append(answer, '\n'))
		}
	}
}

// peer is a server of a test that goes over the wire.
type peer struct {
	target mcp.Target
	file   string // where a child logs

	mu      sync.Mutex
	bodies  [][]byte
	headers []http.Header
}

// newPeer starts a server: transport "http" or "stdio", era "legacy" or "modern".
func newPeer(t testing.TB, transport, era string) *peer {
	t.Helper()
	p := &peer{}
	if transport == "stdio" {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		p.file = filepath.Join(t.TempDir(), "log")
		p.target = mcp.Target{Probe: 200 * time.Millisecond, Command: &mcp.Command{
			Path: self, Environ: os.Environ(), Env: []string{peerVariable + "=" + era + ":" + p.file, "GORACE=atexit_sleep_ms=0"},
		}}
		return p
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		p.mu.Lock()
		p.bodies, p.headers = append(p.bodies, body), append(p.headers, r.Header)
		p.mu.Unlock()
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		answer := peerSpeak(era, body)
		if answer == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(answer)
	}))
	t.Cleanup(srv.Close)
	p.target = mcp.Target{URL: srv.URL}
	return p
}

// got are the params of all requests of a method, as they arrived.
func (p *peer) got(t testing.TB, method string) (all []string) {
	t.Helper()
	p.mu.Lock()
	bodies := p.bodies
	p.mu.Unlock()
	if p.file != "" {
		log, err := os.ReadFile(p.file)
		if err != nil {
			t.Fatal(err)
		}
		bodies = bytes.Split(bytes.TrimSpace(log), []byte("\n"))
	}
	for _, b := range bodies {
		if textAt(b, "method") == method {
			all = append(all, string(get(b, "params")))
		}
	}
	return all
}

// --- agents over the wire ---

// caller is an agent over HTTP that sends and returns raw bytes.
type caller struct {
	t       testing.TB
	url     string
	session string
	modern  bool
	caps    string
	last    int
	notes   []mcp.Message // notifications on the streams of calls
}

const modernMeta = `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":%s,"io.modelcontextprotocol/clientInfo":{"name":"raw","version":"0"}`

// wire puts a real endpoint before the gateway and returns its address.
func (r *rig) wire(t testing.TB) string {
	t.Helper()
	e := mcp.NewEndpoint(t.Context(), mcp.EndpointConfig{
		Server: r.g, Now: time.Now, Rand: randomness, Bound: r.g.Bound,
		Authenticate: func(q *http.Request) (string, error) {
			return strings.TrimPrefix(q.Header.Get("Authorization"), "Bearer "), nil
		},
	})
	r.endpoint = e
	srv := httptest.NewServer(e)
	t.Cleanup(func() {
		_ = e.Shutdown(t.Context())
		srv.Close()
		r.close()
	})
	return srv.URL
}

func (c *caller) initialize() []byte {
	c.t.Helper()
	return c.call("initialize", `{"protocolVersion":"2025-11-25","capabilities":`+c.caps+`,"clientInfo":{"name":"raw","version":"0"}}`)
}

// call sends a request and returns the whole response.
func (c *caller) call(method, params string) []byte {
	c.t.Helper()
	resp, err := c.post(c.request(method, params), method, params)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	if s := resp.Header.Get("Mcp-Session-Id"); s != "" {
		c.session = s
	}
	return c.read(resp)
}

func (c *caller) request(method, params string) string {
	c.last++
	if c.modern {
		if params == "" {
			params = "{}"
		}
		meta := fmt.Sprintf(modernMeta, c.caps)
		if strings.Contains(params, `"_meta":{`) {
			params = strings.Replace(params, `"_meta":{`, `"_meta":{`+meta+`,`, 1)
		} else {
			params = strings.Replace(params, "{", `{"_meta":{`+meta+`},`, 1)
			params = strings.Replace(params, ",}", "}", 1)
		}
	}
	if params != "" {
		params = `,"params":` + params
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q%s}`, c.last, method, params)
}

func (c *caller) post(body, method, params string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	c.headers(req, method, params)
	return http.DefaultTransport.RoundTrip(req)
}

func (c *caller) headers(req *http.Request, method, params string) {
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Authorization", "Bearer bot")
	if c.modern {
		req.Header.Set("MCP-Protocol-Version", "2026-07-28")
		req.Header.Set("Mcp-Method", method)
		for _, member := range []string{"name", "uri"} {
			if v := textAt([]byte(params), member); params != "" && v != "" {
				req.Header.Set("Mcp-Name", v)
			}
		}
	} else if c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
		req.Header.Set("MCP-Protocol-Version", "2025-11-25")
	}
}

// read returns the response out of a body or a stream.
func (c *caller) read(resp *http.Response) []byte {
	c.t.Helper()
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			c.t.Fatal(err)
		}
		return body
	}
	in := bufio.NewScanner(resp.Body)
	in.Buffer(nil, 1<<24)
	for in.Scan() {
		data, ok := strings.CutPrefix(in.Text(), "data: ")
		if !ok || data == "" {
			continue
		}
		m, err := mcp.Parse([]byte(data), strictjson.Limits{Lax: true})
		if err != nil {
			c.t.Fatalf("%s: %v", data, err)
		}
		if m.Kind() == mcp.Response {
			return m.Raw
		}
		c.notes = append(c.notes, m)
	}
	c.t.Fatal("the stream ended without a response")
	return nil
}
