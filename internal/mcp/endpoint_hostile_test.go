package mcp

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ayegate/ayegate/internal/strictjson"
)

// MCP-07: DNS rebinding. Only our own names are served, whatever the address.
func TestHostAndOrigin(t *testing.T) {
	e := newTestEndpoint(t, nil)
	h := e.session(V20251125)
	own := e.http.Listener.Addr().String()
	body := call(1, "echo", `{}`)
	for _, bad := range [][]string{
		{"Host", "evil.example"},
		{"Host", "evil.example:80"},
		{"Host", "127.0.0.1.nip.io"},
		{"Host", "localhost.evil.example"},
		{"Host", "2130706433"},
		{"Host", "0.0.0.0"},
		{"Origin", "http://evil.example"},
		{"Origin", "null"},
		{"Origin", "http://127.0.0.1:1"},
		{"Origin", "http://" + own + ".evil.example"},
		{"Origin", "http://" + own, "Origin", "http://evil.example"},
	} {
		e.refused(e.do(http.MethodPost, body, append(bad, h...)...), http.StatusForbidden, CodeInvalidRequest)
	}
	if got := e.server.calls(); len(got) != 0 {
		t.Errorf("ran %v", got)
	}
	for _, good := range [][]string{{"Host", "localhost"}, {"Host", "[::1]:7777"}, {"Host", "127.9.9.9:1"}, {"Origin", "http://" + own}} {
		if res := e.do(http.MethodPost, body, append(good, h...)...); res.StatusCode != http.StatusOK {
			t.Errorf("%v: %s", good, res.Status)
		}
	}
	for target, host := range map[string]string{"evil.example": "127.0.0.1", "127.0.0.1": "evil.example"} {
		if got := raw(t, e, "POST http://"+target+"/mcp HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 403") {
			t.Errorf("absolute form, %s: %s", target, got)
		}
	}

	named := newTestEndpoint(t, func(c *EndpointConfig) {
		c.AllowedHosts = []string{"gw.example", "other.example:8443"}
		c.AllowedOrigins = []string{"https://gw.example"}
	})
	for _, c := range []struct {
		header []string
		status int
	}{
		{[]string{"Host", "GW.example"}, 200},
		{[]string{"Host", "gw.example:9"}, 200},
		{[]string{"Host", "other.example:8443"}, 200},
		{[]string{"Host", "other.example"}, 403},
		{[]string{"Host", "127.0.0.1"}, 403},
		{[]string{"Host", "gw.example", "Origin", "https://gw.example"}, 200},
		{[]string{"Host", "gw.example", "Origin", "http://gw.example"}, 403},
	} {
		res := named.do(http.MethodPost, fmt.Sprintf(initializeBody, "2025-11-25"), c.header...)
		if res.StatusCode != c.status {
			t.Errorf("%v: %s", c.header, res.Status)
		}
	}
}

func TestAuthentication(t *testing.T) {
	e := newTestEndpoint(t, func(c *EndpointConfig) {
		c.Authenticate = func(r *http.Request) (string, error) {
			switch r.Header.Get("Authorization") {
			case "Bearer aye_human_x":
				return "", &AuthError{Status: http.StatusForbidden, Err: errors.New("wrong class of credential")}
			case "Bearer expired":
				return "", &AuthError{Challenge: `Bearer resource_metadata="https://gw.example/x"`, Err: errors.New("expired")}
			}
			return "", errors.New("secret detail")
		}
	})
	body := call(1, "echo", `{}`)
	res := e.do(http.MethodPost, body, "Authorization", "")
	if res.Header.Get("WWW-Authenticate") != "Bearer" {
		t.Errorf("challenge %v", res.Header)
	}
	if got := e.read(res); res.StatusCode != http.StatusUnauthorized || strings.Contains(got, "secret detail") {
		t.Errorf("%d %s", res.StatusCode, got)
	}
	res = e.do(http.MethodPost, body, "Authorization", "", "Authorization", "Bearer expired")
	if res.StatusCode != http.StatusUnauthorized || res.Header.Get("WWW-Authenticate") != `Bearer resource_metadata="https://gw.example/x"` {
		t.Errorf("%d %v", res.StatusCode, res.Header)
	}
	res = e.do(http.MethodPost, body, "Authorization", "", "Authorization", "Bearer aye_human_x")
	if res.StatusCode != http.StatusForbidden || res.Header.Get("WWW-Authenticate") != "" {
		t.Errorf("%d %v", res.StatusCode, res.Header)
	}
}

// MCP-02: two credentials are none.
func TestDuplicateHeaders(t *testing.T) {
	e := newTestEndpoint(t, nil)
	h := e.session(V20251125)
	for _, twice := range [][]string{
		{"Authorization", "Bearer agent-2"}, {HeaderSession, "x"}, {HeaderVersion, "2025-11-25"}, {"Content-Type", "text/plain"},
	} {
		e.refused(e.do(http.MethodPost, call(1, "echo", `{}`), append(twice, h...)...), http.StatusBadRequest, CodeInvalidRequest)
	}
}

func TestPaths(t *testing.T) {
	e := newTestEndpoint(t, nil)
	for path, status := range map[string]int{
		"/mcp": 200, "/mcp/payments": 200, "/mcp/a.b_c-D9": 200,
		"/": 404, "/mcpx": 404, "/mcp/": 404, "/mcp/a/b": 404, "/mcp/..": 404, "/mcp/.": 404, "/mcp/%2e%2e": 404, "/mcp/1%2F..%2F2": 404,
		"/mcp%2Fpayments": 404, "/mcp/gіthub": 404, "/mcp/a%20": 404, "/mcp/" + strings.Repeat("a", 129): 404,
	} {
		if res := e.do(http.MethodPost, fmt.Sprintf(initializeBody, "2025-11-25"), "path", path); res.StatusCode != status {
			t.Errorf("%s: %s", path, res.Status)
		}
	}
	e.do(http.MethodPost, fmt.Sprintf(initializeBody, "2025-11-25"), "path", "/mcp/payments")
}

// CAN-10: what is too large is refused before it is read, compressed bodies always.
func TestBodies(t *testing.T) {
	e := newTestEndpoint(t, nil)
	h := e.session(V20251125)
	e.refused(e.do(http.MethodPost, strings.Repeat(" ", 1<<20+1), h...), http.StatusRequestEntityTooLarge, CodeInvalidRequest)
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write([]byte(call(1, "echo", `{}`)))
	_ = z.Close()
	e.refused(e.do(http.MethodPost, zipped.String(), append([]string{"Content-Encoding", "gzip"}, h...)...), http.StatusUnsupportedMediaType, CodeInvalidRequest)
	for _, kind := range []string{"text/plain", "application/json; charset=utf-16", "application/x-www-form-urlencoded", "application/json;;"} {
		e.refused(e.do(http.MethodPost, call(1, "echo", `{}`), append([]string{"Content-Type", "", "Content-Type", kind}, h...)...), http.StatusUnsupportedMediaType, CodeInvalidRequest)
	}
	for _, accept := range []string{"application/json", "text/event-stream", "text/html", "application/json;q=0, text/event-stream", "application/json;q=0.0, text/event-stream"} {
		e.refused(e.do(http.MethodPost, call(1, "echo", `{}`), append([]string{"Accept", "", "Accept", accept}, h...)...), http.StatusNotAcceptable, CodeInvalidRequest)
	}
	e.refused(e.do(http.MethodGet, "", append([]string{"Accept", "", "Accept", "application/json"}, h...)...), http.StatusNotAcceptable, CodeInvalidRequest)
	if got := e.server.calls(); len(got) != 0 {
		t.Errorf("ran %v", got)
	}
	large := call(2, "echo", `{"a":"`+strings.Repeat("x", 900<<10)+`"}`)
	if got := e.read(e.do(http.MethodPost, large, h...)); !strings.Contains(got, `"id":2,"result"`) {
		t.Errorf("a large call: %.100s", got)
	}
	for _, fine := range [][]string{
		{"Content-Type", "", "Content-Type", "application/json; charset=UTF-8"},
		{"Accept", ""},
		{"Accept", "", "Accept", "*/*"},
		{"Accept", "", "Accept", "application/*;q=0.5", "Accept", "text/*"},
		{"Content-Encoding", "identity"},
	} {
		if res := e.do(http.MethodPost, call(1, "echo", `{}`), append(fine, h...)...); res.StatusCode != http.StatusOK {
			t.Errorf("%v: %s", fine, res.Status)
		}
	}
	// CAN-10: a length that is too large is answered before a byte has come.
	if got := raw(t, e, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer x\r\nContent-Type: application/json\r\nContent-Length: 104857600\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 413") {
		t.Errorf("100 MB: %s", got)
	}
	// CAN-10: chunked for ever.
	req := "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" +
		strings.Repeat("10000\r\n"+strings.Repeat("[", 0x10000)+"\r\n", 20)
	if got := raw(t, e, req); !strings.HasPrefix(got, "HTTP/1.1 413") {
		t.Errorf("chunked: %s", got)
	}
}

// CAN-11: a million keys, and a million elements, cost little and run nothing.
func TestFloods(t *testing.T) {
	e := newTestEndpoint(t, func(c *EndpointConfig) { c.JSON = strictjson.Limits{Nodes: 10_000} })
	h := e.session(V20251125)
	var keys strings.Builder
	for i := range 60_000 {
		fmt.Fprintf(&keys, `"k%d":0,`, i)
	}
	for _, args := range []string{`{` + keys.String() + `"z":0}`, `{"a":[` + strings.Repeat("0,", 400_000) + `0]}`, `{"a":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `}`} {
		e.refused(e.do(http.MethodPost, call(1, "echo", args), h...), http.StatusBadRequest, CodeParse)
	}
}

// raw sends bytes on a connection of their own and returns all that comes back.
func raw(t *testing.T, e *testEndpoint, request string) string {
	t.Helper()
	c, err := net.Dial("tcp", e.http.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	go func() { _, _ = io.WriteString(c, request) }()
	_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
	got, err := io.ReadAll(c)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection stays open after %s", got)
	}
	return string(got)
}

// MCP-25: with both a length and chunks, what one party takes for the rest of the
// body is the next request for the other. It is never served.
func TestSmuggling(t *testing.T) {
	e := newTestEndpoint(t, nil)
	h := e.session(V20251125)
	head := "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer agent-1\r\nContent-Type: application/json\r\nMcp-Session-Id: " + h[1] + "\r\n"
	hidden := call(2, "delete", `{}`)
	smuggled := head + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(hidden), hidden)
	open := call(1, "echo", `{}`)
	chunk := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(open), open)
	for name, request := range map[string]string{
		"length and chunks":  head + fmt.Sprintf("Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n%s%s", len(chunk)+len(smuggled), chunk, smuggled),
		"chunks and length":  head + fmt.Sprintf("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n%s%s", chunk, smuggled),
		"two lengths":        head + fmt.Sprintf("Content-Length: %d\r\nContent-Length: 5\r\n\r\n%s%s", len(open), open, smuggled),
		"an odd coding":      head + fmt.Sprintf("Transfer-Encoding: xchunked\r\nContent-Length: %d\r\n\r\n%s%s", len(open), open, smuggled),
		"space before colon": head + fmt.Sprintf("Content-Length : %d\r\n\r\n%s%s", len(open), open, smuggled),
	} {
		got := raw(t, e, request)
		if n := strings.Count(got, "HTTP/1.1 "); n != 1 {
			t.Errorf("%s: %d answers: %s", name, n, got)
		}
	}
	for _, tool := range e.server.calls() {
		if tool != "echo" {
			t.Errorf("%s was smuggled in", tool)
		}
	}
}

// OPS-03: a body that trickles in is given up on.
func TestSlowBody(t *testing.T) {
	e := newTestEndpoint(t, func(c *EndpointConfig) { c.Limits.BodyTime = 20 * time.Millisecond })
	got := raw(t, e, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
	if !strings.HasPrefix(got, "HTTP/1.1 408") {
		t.Errorf("got %s", got)
	}
	// Nor does a request that is refused at once keep its connection by sending no more.
	got = raw(t, e, "POST /elsewhere HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
	if !strings.HasPrefix(got, "HTTP/1.1 404") {
		t.Errorf("got %s", got)
	}
	// The deadline of a body is not that of the call that it asks for.
	h := e.session(V20251125)
	res := e.do(http.MethodPost, call(1, "gate", `{}`), h...)
	<-e.server.entered
	<-time.After(30 * time.Millisecond)
	e.server.gate <- "in time"
	if events := e.events(res, 10); len(events) != 3 {
		t.Errorf("events %+v", events)
	}
}

// MCP-24: an agent that opens a stream and never reads it loses it; meanwhile no
// more than a log's worth is held for it.
func TestSlowReader(t *testing.T) {
	e := newTestEndpoint(t, func(c *EndpointConfig) { c.Limits.WriteTime = 50 * time.Millisecond })
	c, err := net.Dial("tcp", e.http.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	body, _ := modern(1, "tools/call", "flood", `"name":"flood"`)
	_, err = fmt.Fprintf(c, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer x\r\nContent-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: flood\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	if err != nil {
		t.Fatal(err)
	}
	if cause := <-e.server.causes; !errors.Is(cause, ErrDisconnected) {
		t.Errorf("ended with %v", cause)
	}
}

// The deadlines of the server do not cut a call that is held, nor a standing stream.
func TestServerDeadlines(t *testing.T) {
	e := newTestEndpointOn(t, nil, &http.Server{ReadTimeout: 30 * time.Millisecond, WriteTimeout: 30 * time.Millisecond})
	h := e.session(V20251125)
	standing := e.do(http.MethodGet, "", h...)
	res := e.do(http.MethodPost, call(1, "gate", `{}`), h...)
	<-e.server.entered
	<-time.After(60 * time.Millisecond)
	e.server.gate <- "still here"
	if events := e.events(res, 10); len(events) != 3 || !strings.Contains(string(events[2].Data), "still here") {
		t.Errorf("events %+v", events)
	}
	if err := (<-e.server.pushers).Notify(t.Context(), "notifications/tools/list_changed", nil); err != nil {
		t.Error(err)
	}
	if events := e.events(standing, 2); len(events) != 2 {
		t.Errorf("standing stream: %+v", events)
	}
}

// A connection that has served a call serves whoever shares the server, however
// late: no deadline of ours stays behind.
func TestNoDeadlineStaysBehind(t *testing.T) {
	e := newTestEndpoint(t, func(c *EndpointConfig) { c.Limits.WriteTime = 20 * time.Millisecond })
	mux := http.NewServeMux()
	mux.Handle("/mcp", e.Endpoint)
	mux.HandleFunc("/other", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "fine") })
	s := httptest.NewServer(mux)
	defer s.Close()
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	r := bufio.NewReader(c)
	body := fmt.Sprintf(initializeBody, "2025-11-25")
	for _, request := range []string{
		fmt.Sprintf("POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body),
		"GET /other HTTP/1.1\r\nHost: localhost\r\n\r\n",
	} {
		if _, err := io.WriteString(c, request); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(r, nil)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%v, %v", res, err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		<-time.After(40 * time.Millisecond)
	}
}

// MCP-24: streams are bounded per principal and together, and a principal that is
// at its bound keeps nobody else out.
func TestStreamBounds(t *testing.T) {
	e := newTestEndpoint(t, func(c *EndpointConfig) { c.Limits.Streams, c.Limits.StreamsTotal = 2, 3 })
	listen, h := modern(1, "subscriptions/listen", "", "")
	one := func(principal string) *http.Response {
		return e.do(http.MethodPost, listen, append([]string{"Authorization", "", "Authorization", "Bearer " + principal}, h...)...)
	}
	var open []*http.Response
	for _, p := range []string{"a", "a", "b"} {
		res := one(p)
		if res.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s", p, res.Status)
		}
		<-e.server.entered
		open = append(open, res)
	}
	e.refused(one("a"), http.StatusTooManyRequests, CodeInternal)
	e.refused(one("c"), http.StatusTooManyRequests, CodeInternal)
	for _, res := range open {
		_ = res.Body.Close()
		<-e.server.causes
	}
	for {
		if res := one("c"); res.StatusCode == http.StatusOK {
			return
		}
	}
}

// A legacy agent that hangs up and calls again still holds what it left behind.
func TestDetachedCallsAreCounted(t *testing.T) {
	e := newTestEndpoint(t, func(c *EndpointConfig) { c.Limits.Streams = 3 })
	h := e.session(V20251125)
	for i := range 3 {
		res := e.do(http.MethodPost, call(i, "gate", `{}`), h...)
		<-e.server.entered
		_ = res.Body.Close()
	}
	e.quiet()
	e.refused(e.do(http.MethodPost, call(9, "echo", `{}`), h...), http.StatusTooManyRequests, CodeInternal)
	for range 3 {
		e.server.gate <- "done"
	}
}

// MCP-17: nothing a server says can become an event of its own.
func TestNoInjectionIntoStreams(t *testing.T) {
	e := newTestEndpoint(t, nil)
	res := e.do(http.MethodPost, call(1, "lines", `{}`), e.session(V20250618)...)
	text := e.read(res)
	events := 0
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "data:") {
			events++
		}
	}
	if events != 2 || strings.Contains(text, "\ndata: {\"forged") || strings.ContainsRune(text, '\r') {
		t.Errorf("stream:\n%s", text)
	}
	r := bufio.NewReader(strings.NewReader(text))
	for r := NewEvents(r, 1<<20); ; {
		ev, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse(ev.Data, strictjson.Limits{}); err != nil {
			t.Errorf("event %s: %v", ev.Data, err)
		}
	}
}
