package mcp

import (
	"errors"
	"net/http"
	"strings"
	"testing"
)

func TestModernTranscript(t *testing.T) {
	e := newTestEndpoint(t, nil)
	body, h := modern(1, "tools/call", "echo", `"name":"echo","arguments":{"n":9007199254740993}`)
	res := e.do(http.MethodPost, body, append(h, HeaderSession, "whatever")...)
	want := `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[{"type":"text","text":"echo"}],"structuredContent":{"n":9007199254740993}}}`
	if got := e.read(res); got != want || res.Header.Get("Content-Type") != "application/json" || res.Header.Get(HeaderSession) != "" {
		t.Errorf("%v %s", res.Header, got)
	}
	body, h = modern(2, "tools/call", "progress", `"name":"progress"`)
	body = strings.Replace(body, `"_meta":{`, `"_meta":{"progressToken":"p-2",`, 1)
	res = e.do(http.MethodPost, body, h...)
	events := e.events(res, 10)
	if len(events) != 4 || events[0].ID != "" || !strings.Contains(string(events[0].Data), `"progressToken":"p-2"`) {
		t.Errorf("events %+v", events)
	}
	if res.Header.Get("X-Accel-Buffering") != "no" || res.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("headers %v", res.Header)
	}
	body, h = modern(3, "server/discover", "", "")
	if got := e.read(e.do(http.MethodPost, body, h...)); !strings.Contains(got, `"supportedVersions":["2026-07-28"`) {
		t.Errorf("discover: %s", got)
	}
	body, h = modern(4, "tools/call", "ask", `"name":"ask"`)
	if got := e.read(e.do(http.MethodPost, body, h...)); !strings.Contains(got, ErrNoAsk.Error()) {
		t.Errorf("a modern client was asked: %s", got)
	}
	for _, method := range []string{http.MethodGet, http.MethodDelete, http.MethodHead, http.MethodPut, http.MethodOptions} {
		res := e.do(method, "", HeaderVersion, "2026-07-28", HeaderSession, "whatever")
		if res.StatusCode != http.StatusMethodNotAllowed || res.Header.Get("Allow") != "POST" {
			t.Errorf("%s: %s %v", method, res.Status, res.Header)
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		if res := e.do(method, ""); res.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s without anything: %s", method, res.Status)
		}
	}
}

// MCP-01, MCP-02, MCP-23: the order of the checks, and that a header is never
// believed, whichever revision it claims.
func TestModernValidation(t *testing.T) {
	e := newTestEndpoint(t, func(c *EndpointConfig) {
		c.Bound = func(_ Client, tool string) []ParamHeader {
			if tool == "execute_sql" {
				return []ParamHeader{{Path: []string{"region"}, Name: "Mcp-Param-Region"}}
			}
			return nil
		}
	})
	good, h := modern(1, "tools/call", "echo", `"name":"echo"`)
	with := func(header ...string) []string { return append(append([]string(nil), h...), header...) }
	set := func(name, value string) []string {
		var out []string
		for i := 0; i < len(h); i += 2 {
			if h[i] != name {
				out = append(out, h[i], h[i+1])
			}
		}
		if value != "" {
			out = append(out, name, value)
		}
		return out
	}
	noMeta := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}`
	future := strings.ReplaceAll(good, "2026-07-28", "2027-03-01")
	unknown, unknownHeader := modern(1, "tools/destroy", "", "")
	ping, pingHeader := modern(1, "ping", "", "")
	tasks, tasksHeader := modern(1, "tasks/get", "t-2", `"taskId":"t-1"`)
	list, listHeader := modern(1, "tools/list", "echo", "")
	sql, sqlHeader := modern(1, "tools/call", "execute_sql", `"name":"execute_sql","arguments":{"region":"us-west1"}`)
	tests := []struct {
		name         string
		body         string
		header       []string
		status, code int
	}{
		{"no _meta", noMeta, h, 400, CodeInvalidParams},
		{"_meta comes before headers", noMeta, set(HeaderMethod, "x"), 400, CodeInvalidParams},
		{"version is no text", strings.ReplaceAll(good, `"2026-07-28"`, `20260728`), h, 400, CodeInvalidParams},
		{"capabilities missing", strings.ReplaceAll(good, "clientCapabilities", "clientStuff"), h, 400, CodeInvalidParams},
		{"capabilities are no object", strings.ReplaceAll(good, `clientCapabilities":{}`, `clientCapabilities":true`), h, 400, CodeInvalidParams},
		{"info is no object", strings.ReplaceAll(good, `{"name":"t","version":"1"}`, `"t"`), h, 400, CodeInvalidParams},
		{"MCP-01 version header missing", good, set(HeaderVersion, ""), 400, CodeHeaderMismatch},
		{"MCP-23 version header is older", good, set(HeaderVersion, "2025-03-26"), 400, CodeHeaderMismatch},
		{"MCP-01 version differs from _meta", future, h, 400, CodeHeaderMismatch},
		{"MCP-23 _meta is older than the header", strings.ReplaceAll(good, "2026-07-28", "2025-11-25"), h, 400, CodeHeaderMismatch},
		{"MCP-01 Mcp-Method missing", good, set(HeaderMethod, ""), 400, CodeHeaderMismatch},
		{"MCP-01 Mcp-Method differs", good, set(HeaderMethod, "tools/list"), 400, CodeHeaderMismatch},
		{"MCP-01 Mcp-Method in another case", good, set(HeaderMethod, "Tools/Call"), 400, CodeHeaderMismatch},
		{"MCP-01 Mcp-Name missing", good, set(HeaderName, ""), 400, CodeHeaderMismatch},
		{"MCP-01 Mcp-Name differs", good, set(HeaderName, "delete"), 400, CodeHeaderMismatch},
		{"MCP-01 Mcp-Name in another case", good, set(HeaderName, "Echo"), 400, CodeHeaderMismatch},
		{"MCP-01 orphan Mcp-Name", list, listHeader, 400, CodeHeaderMismatch},
		{"MCP-01 task of another name", tasks, tasksHeader, 400, CodeHeaderMismatch},
		{"MCP-02 Mcp-Name twice", good, with(HeaderName, "delete"), 400, CodeInvalidRequest},
		{"MCP-02 Mcp-Name twice, the same", good, with(HeaderName, "echo"), 400, CodeInvalidRequest},
		{"MCP-02 Mcp-Method twice", good, with(HeaderMethod, "tools/list"), 400, CodeInvalidRequest},
		{"MCP-02 version twice", good, with(HeaderVersion, "2025-03-26"), 400, CodeInvalidRequest},
		{"MCP-02 underscore", good, with("Mcp_Name", "delete"), 400, CodeInvalidRequest},
		{"MCP-02 bad Base64", good, set(HeaderName, "=?base64?ZWNo%%?="), 400, CodeHeaderMismatch},
		{"MCP-02 Base64 without padding", good, set(HeaderName, "=?base64?ZWNobw?="), 400, CodeHeaderMismatch},
		{"MCP-02 Base64 that is not canonical", good, set(HeaderName, "=?base64?ZWNobx==?="), 400, CodeHeaderMismatch},
		{"MCP-02 overlong UTF-8 in Base64", good, set(HeaderName, "=?base64?wK8=?="), 400, CodeHeaderMismatch},
		{"MCP-02 raw UTF-8", good, set(HeaderName, "\u0435cho"), 400, CodeInvalidRequest},
		{"MCP-02 a tab in the middle", good, set(HeaderName, "ec\tho"), 400, CodeInvalidRequest},
		{"MCP-02 Mcp-Param twice", sql, append(sqlHeader[:6:6], "Mcp-Param-Region", "us-west1", "Mcp-Param-Region", "eu"), 400, CodeInvalidRequest},
		{"MCP-01 Mcp-Param differs", sql, append(sqlHeader[:6:6], "Mcp-Param-Region", "eu"), 400, CodeHeaderMismatch},
		{"MCP-01 Mcp-Param missing", sql, sqlHeader, 400, CodeHeaderMismatch},
		{"version unknown", future, set(HeaderVersion, "2027-03-01"), 400, CodeVersion},
		{"version before method", strings.ReplaceAll(unknown, "2026-07-28", "2027-03-01"), []string{HeaderVersion, "2027-03-01", HeaderMethod, "tools/destroy"}, 400, CodeVersion},
		{"method unknown", unknown, unknownHeader, 404, CodeMethodNotFound},
		{"method of the other era", ping, pingHeader, 404, CodeMethodNotFound},
		{"a response", `{"jsonrpc":"2.0","id":"aye-1","result":{}}`, h, 400, CodeInvalidRequest},
		{"MCP-08 a call as a notification", strings.Replace(good, `"id":1,`, "", 1), h, 400, CodeInvalidRequest},
		{"MCP-08 a notification as a call", `{"jsonrpc":"2.0","id":1,"method":"notifications/cancelled","params":{"requestId":1}}`, h, 400, CodeInvalidRequest},
		{"MCP-03 a batch", "[" + good + "]", h, 400, CodeInvalidRequest},
		{"CAN-01 a duplicate", strings.Replace(good, `"name":"echo"`, `"name":"echo","name":"delete"`, 1), h, 400, CodeParse},
		{"CAN-08 trailing data", good + good, h, 400, CodeParse},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			sub := *e
			sub.t = t
			sub.refused(sub.do(http.MethodPost, test.body, test.header...), test.status, test.code)
		})
	}
	if got := e.server.calls(); len(got) != 0 {
		t.Errorf("ran %v", got)
	}
	for _, name := range []string{"echo", " echo\t", "=?base64?ZWNobw==?="} {
		if got := e.read(e.do(http.MethodPost, good, set(HeaderName, name)...)); !strings.Contains(got, `"result"`) {
			t.Errorf("name %q: %s", name, got)
		}
	}
	res := e.do(http.MethodPost, sql, append(sqlHeader, "Mcp-Param-Region", "us-west1", "Mcp-Param-Other", "ignored")...)
	if got := e.read(res); !strings.Contains(got, `"result"`) {
		t.Errorf("with parameters: %s", got)
	}
}

// What a server upstream says of a call keeps its bytes and gets its status.
func TestModernErrors(t *testing.T) {
	e := newTestEndpoint(t, nil)
	body, h := modern(1, "tools/call", "unknown-tool", `"name":"unknown-tool"`)
	res := e.do(http.MethodPost, body, h...)
	if got := e.read(res); res.StatusCode != http.StatusBadRequest || got != `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Unknown tool","data":{"n":9007199254740993}}}` {
		t.Errorf("%d %s", res.StatusCode, got)
	}
	e2 := MissingCapability([]byte(`{"extensions":{"io.modelcontextprotocol/tasks":{}}}`))
	if got := string(NewError([]byte("1"), e2)); statusOf(e2, Modern) != 400 || !strings.Contains(got, `"code":-32021`) || !strings.Contains(got, `"data":{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`) {
		t.Errorf("missing capability: %s", got)
	}
	body, h = modern(1, "tools/call", "panic", `"name":"panic"`)
	res = e.do(http.MethodPost, body, h...)
	if got := e.read(res); !strings.Contains(got, "-32603") || strings.Contains(got, "a bug in the server") {
		t.Errorf("a panic: %s", got)
	}
}

// In this era closing the stream is the cancellation, before and after the answer
// has begun.
func TestModernDisconnectCancels(t *testing.T) {
	e := newTestEndpoint(t, nil)
	for _, tool := range []string{"gate", "subscription"} {
		body, h := modern(1, "tools/call", "gate", `"name":"gate"`)
		if tool == "subscription" {
			body, h = modern(1, "subscriptions/listen", "", `"notifications":{"toolsListChanged":true}`)
		}
		res := e.do(http.MethodPost, body, h...)
		events := e.events(res, 1)
		x := <-e.server.entered
		if tool == "subscription" && string(events[0].Data) != `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}` {
			t.Errorf("first message %s", events[0].Data)
		}
		_ = res.Body.Close()
		if cause := <-e.server.causes; !errors.Is(cause, ErrDisconnected) {
			t.Errorf("%s: cause %v", tool, cause)
		}
		if err := x.Notify(t.Context(), "notifications/message", nil); err == nil {
			t.Errorf("%s: a message for nobody was accepted", tool)
		}
	}
}

func TestModernNotification(t *testing.T) {
	e := newTestEndpoint(t, nil)
	note := `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`
	if res := e.do(http.MethodPost, note, HeaderVersion, "2026-07-28", HeaderMethod, "notifications/progress"); res.StatusCode != http.StatusAccepted {
		t.Error(res.Status)
	}
	if got := <-e.server.noted; got != "notifications/progress" {
		t.Errorf("noted %s", got)
	}
	e.refused(e.do(http.MethodPost, note, HeaderVersion, "2026-07-28", HeaderMethod, "notifications/cancelled"), http.StatusBadRequest, CodeHeaderMismatch)
	e.refused(e.do(http.MethodPost, note, HeaderVersion, "2027-07-28"), http.StatusBadRequest, CodeVersion)
	if res := e.do(http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, HeaderVersion, "2026-07-28"); res.StatusCode != http.StatusAccepted {
		t.Error(res.Status)
	}
}
