package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// The transcript of an allowed call: a session, one JSON object per answer.
func TestLegacyTranscript(t *testing.T) {
	e := newTestEndpoint(t, nil)
	res := e.do(http.MethodPost, fmt.Sprintf(initializeBody, "2025-11-25"))
	if got, want := e.read(res), `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"echo","version":"1"}}}`; got != want {
		t.Errorf("initialize: %s", got)
	}
	id := res.Header.Get(HeaderSession)
	if len(id) != 32 || !isHeaderText(id) {
		t.Errorf("session id %q", id)
	}
	h := []string{HeaderSession, id, HeaderVersion, "2025-11-25"}
	res = e.do(http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, h...)
	if body := e.read(res); res.StatusCode != http.StatusAccepted || body != "" {
		t.Errorf("initialized: %d %q", res.StatusCode, body)
	}
	if got := <-e.server.noted; got != "notifications/initialized" {
		t.Errorf("noted %s", got)
	}
	res = e.do(http.MethodPost, call(2, "echo", `{"b":9007199254740993,"a":[1.10,1E3,-0.0,"<x>&"]}`), h...)
	want := `{"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","content":[{"type":"text","text":"echo"}],"structuredContent":{"b":9007199254740993,"a":[1.10,1E3,-0.0,"<x>&"]}}}`
	if got := e.read(res); got != want || res.Header.Get("Content-Type") != "application/json" {
		t.Errorf("call: %s %s", res.Header, got)
	}
	if res.Header.Get(HeaderSession) != "" {
		t.Error("a session id where none was opened")
	}
}

// A held call answers as a stream; only clients of 2025-11-25 get the event that
// carries an id and nothing else.
func TestLegacyStream(t *testing.T) {
	for _, v := range []Version{V20251125, V20250618, V20250326} {
		t.Run(string(v), func(t *testing.T) {
			e := newTestEndpoint(t, nil)
			res := e.do(http.MethodPost, call(2, "progress", `{}`), e.session(v)...)
			if res.Header.Get("Content-Type") != "text/event-stream" || res.Header.Get("X-Accel-Buffering") != "no" {
				t.Errorf("headers %v", res.Header)
			}
			events := e.events(res, 10)
			if v == V20251125 {
				if len(events) == 0 || events[0].ID != "1-0" || len(events[0].Data) != 0 {
					t.Fatalf("no priming event: %+v", events)
				}
				events = events[1:]
			}
			if len(events) != 4 {
				t.Fatalf("events: %+v", events)
			}
			for i, ev := range events {
				if ev.ID != fmt.Sprintf("1-%d", i+1) || ev.Name != "message" {
					t.Errorf("event %d is %+v", i, ev)
				}
			}
			if want := `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":1,"message":"Held for approval"}}`; string(events[0].Data) != want {
				t.Errorf("progress: %s", events[0].Data)
			}
			if want := `{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"after progress"}]}}`; string(events[3].Data) != want {
				t.Errorf("result: %s", events[3].Data)
			}
		})
	}
}

func TestLegacyVersions(t *testing.T) {
	e := newTestEndpoint(t, nil)
	for asked, want := range map[string]Version{"2025-06-18": V20250618, "2024-11-05": V20251125, "2026-07-28": V20251125, "banana": V20251125} {
		res := e.do(http.MethodPost, fmt.Sprintf(initializeBody, asked))
		if body := e.read(res); !strings.Contains(body, fmt.Sprintf(`"protocolVersion":%q`, want)) {
			t.Errorf("asked for %s, got %s", asked, body)
		}
	}
	h := e.session(V20251125)
	if res := e.do(http.MethodPost, call(1, "echo", `{}`), h[:2]...); res.StatusCode != http.StatusOK {
		t.Errorf("without a version header: %s", res.Status)
	}
	e.refused(e.do(http.MethodPost, call(1, "echo", `{}`), HeaderSession, h[1], HeaderVersion, "2024-11-05"), http.StatusBadRequest, CodeInvalidRequest)
	e.refused(e.do(http.MethodPost, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}`), http.StatusBadRequest, CodeInvalidParams)
	e.refused(e.do(http.MethodPost, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":[]}}`), http.StatusBadRequest, CodeInvalidParams)
	e.refused(e.do(http.MethodPost, fmt.Sprintf(initializeBody, "2025-11-25"), h...), http.StatusBadRequest, CodeInvalidRequest)
	for _, method := range []string{"server/discover", "subscriptions/listen"} {
		res := e.do(http.MethodPost, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q}`, method), h...)
		if body := e.read(res); res.StatusCode != http.StatusOK || !strings.Contains(body, "-32601") {
			t.Errorf("%s: %d %s", method, res.StatusCode, body)
		}
	}
}

// TOK-13: a session belongs to one credential and one server path. Whoever else
// knows its id gets what an unknown id gets.
func TestLegacySessions(t *testing.T) {
	e := newTestEndpoint(t, nil)
	h := e.session(V20251125)
	body := call(1, "echo", `{}`)
	foreign := append([]string{"Authorization", "", "Authorization", "Bearer agent-2"}, h...)
	e.refused(e.do(http.MethodPost, body, foreign...), http.StatusNotFound, codeNoSession)
	e.refused(e.do(http.MethodGet, "", foreign...), http.StatusNotFound, codeNoSession)
	e.refused(e.do(http.MethodDelete, "", foreign...), http.StatusNotFound, codeNoSession)
	e.refused(e.do(http.MethodPost, body, append([]string{"path", "/mcp/payments"}, h...)...), http.StatusNotFound, codeNoSession)
	e.refused(e.do(http.MethodPost, body, HeaderSession, "unknown"), http.StatusNotFound, codeNoSession)
	e.refused(e.do(http.MethodPost, body), http.StatusBadRequest, CodeInvalidRequest)
	if got := e.server.calls(); len(got) != 0 {
		t.Fatalf("ran %v", got)
	}
	res := e.do(http.MethodDelete, "", h...)
	if res.StatusCode != http.StatusNoContent {
		t.Errorf("delete: %s", res.Status)
	}
	if c := <-e.server.closed; c.Session != h[1] || c.Principal != "agent-1" || string(c.Info) != `{"name":"claude-code","version":"2.1.328"}` {
		t.Errorf("closed %+v", c)
	}
	e.refused(e.do(http.MethodPost, body, h...), http.StatusNotFound, codeNoSession)
}

func TestLegacyInitializeRefused(t *testing.T) {
	e := newTestEndpoint(t, nil)
	e.server.initFail = &Error{Code: CodeInternal, Message: "no server; nothing ran"}
	res := e.do(http.MethodPost, fmt.Sprintf(initializeBody, "2025-11-25"))
	if body := e.read(res); res.Header.Get(HeaderSession) != "" || !strings.Contains(body, `"id":0,"error"`) {
		t.Errorf("%v %s", res.Header, body)
	}
	e.quota.mu.Lock()
	defer e.quota.mu.Unlock()
	if e.quota.total.sessions != 0 {
		t.Errorf("still counted: %+v", e.quota.total)
	}
}

// A legacy agent that hangs up has cancelled nothing: the call goes on, and the
// reply is there for it when it comes back.
func TestLegacyDisconnectAndResume(t *testing.T) {
	e := newTestEndpoint(t, nil)
	h := e.session(V20251125)
	res := e.do(http.MethodPost, call(5, "gate", `{}`), h...)
	events := e.events(res, 2)
	<-e.server.entered
	_ = res.Body.Close()
	e.server.gate <- "went on"
	res = e.do(http.MethodGet, "", append([]string{"Last-Event-ID", events[0].ID}, h...)...)
	again := e.events(res, 10)
	if len(again) != 3 || again[1].ID != events[1].ID || !strings.Contains(string(again[2].Data), `"id":5,"result":{"content":[{"type":"text","text":"went on"}]}`) {
		t.Fatalf("after resuming: %+v", again)
	}
	res = e.do(http.MethodGet, "", append([]string{"Last-Event-ID", again[2].ID}, h...)...)
	if rest := e.events(res, 10); len(rest) != 1 || len(rest[0].Data) != 0 {
		t.Errorf("after the end: %+v", rest)
	}
	for _, id := range []string{"1-99", "7-0", "x", "1-", "1--1", "1-1-1", "-1"} {
		e.refused(e.do(http.MethodGet, "", append([]string{"Last-Event-ID", id}, h...)...), http.StatusBadRequest, CodeInvalidRequest)
	}
	other := e.session(V20251125)
	e.refused(e.do(http.MethodGet, "", append([]string{"Last-Event-ID", events[0].ID}, other...)...), http.StatusBadRequest, CodeInvalidRequest)
}

// The connection that resumes takes over from one that is only believed alive.
func TestLegacyResumeTakesOver(t *testing.T) {
	e := newTestEndpoint(t, nil)
	h := e.session(V20251125)
	first := e.do(http.MethodPost, call(5, "gate", `{}`), h...)
	got := e.events(first, 2)
	<-e.server.entered
	second := e.do(http.MethodGet, "", append([]string{"Last-Event-ID", got[1].ID}, h...)...)
	if rest := e.events(first, 10); len(rest) != 0 {
		t.Errorf("the first connection got %+v", rest)
	}
	e.server.gate <- "done"
	if all := e.events(second, 10); len(all) != 2 || !strings.Contains(string(all[1].Data), "done") {
		t.Errorf("the second connection got %+v", all)
	}
}

func TestLegacyPolling(t *testing.T) {
	e := newTestEndpoint(t, func(c *EndpointConfig) { c.PollAfter = 20 * time.Millisecond })
	h := e.session(V20251125)
	res := e.do(http.MethodPost, call(5, "gate", `{}`), h...)
	events := e.events(res, 10)
	last := events[len(events)-1]
	if last.Retry != pollRetry || len(last.Data) != 0 {
		t.Fatalf("sent away with %+v", last)
	}
	<-e.server.entered
	e.server.gate <- "later"
	res = e.do(http.MethodGet, "", append([]string{"Last-Event-ID", last.ID}, h...)...)
	if all := e.events(res, 10); len(all) != 2 || !strings.Contains(string(all[1].Data), "later") {
		t.Errorf("after coming back: %+v", all)
	}
}

func TestLegacyKeepAlive(t *testing.T) {
	e := newTestEndpoint(t, func(c *EndpointConfig) { c.KeepAlive = 5 * time.Millisecond })
	res := e.do(http.MethodPost, call(5, "hold", `{}`), e.session(V20250618)...)
	if res.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("a silent call is answered with %v", res.Header)
	}
	buf := make([]byte, 2)
	if _, err := res.Body.Read(buf); err != nil || buf[0] != ':' {
		t.Errorf("%q, %v", buf, err)
	}
	<-e.server.entered
}

func TestLegacyStanding(t *testing.T) {
	e := newTestEndpoint(t, nil)
	h := e.session(V20251125)
	push := <-e.server.pushers
	if _, err := push.Ask(t.Context(), "roots/list", nil); !errors.Is(err, ErrNoAsk) {
		t.Errorf("asked without a stream: %v", err)
	}
	// What is sent before the stream is opened waits for it.
	if err := push.Notify(t.Context(), "notifications/tools/list_changed", nil); err != nil {
		t.Fatal(err)
	}
	res := e.do(http.MethodGet, "", h...)
	events := e.events(res, 2)
	if string(events[1].Data) != `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` {
		t.Fatalf("events: %+v", events)
	}
	answered := make(chan Message, 1)
	go func() {
		m, err := push.Ask(t.Context(), "roots/list", []byte(`{}`))
		if err != nil {
			t.Error(err)
		}
		answered <- m
	}()
	asked := e.events(res, 1)[0]
	if string(asked.Data) != `{"jsonrpc":"2.0","id":"aye-1","method":"roots/list","params":{}}` {
		t.Fatalf("asked %s", asked.Data)
	}
	// Another session cannot answer in its place.
	res2 := e.do(http.MethodPost, `{"jsonrpc":"2.0","id":"aye-1","result":{"forged":true}}`, e.session(V20251125)...)
	if res2.StatusCode != http.StatusAccepted {
		t.Error(res2.Status)
	}
	e.do(http.MethodPost, `{"jsonrpc":"2.0","id":"aye-1","result":{"roots":[]}}`, h...)
	if m := <-answered; string(m.Result) != `{"roots":[]}` {
		t.Errorf("answer %s", m.Raw)
	}
	e.do(http.MethodDelete, "", h...)
	if rest := e.events(res, 10); len(rest) != 0 {
		t.Errorf("after the end: %+v", rest)
	}
	if err := push.Notify(t.Context(), "notifications/tools/list_changed", nil); !errors.Is(err, ErrNoSession) {
		t.Errorf("notifying after the end: %v", err)
	}
}

// A question goes out on the stream of the call it belongs to; when the call
// stops waiting, the agent is told.
func TestLegacyAsk(t *testing.T) {
	e := newTestEndpoint(t, nil)
	h := e.session(V20250618)
	res := e.do(http.MethodPost, call(3, "ask", `{}`), h...)
	events := NewEvents(res.Body, 1<<20)
	ev, err := events.Next()
	if err != nil || !strings.HasPrefix(string(ev.Data), `{"jsonrpc":"2.0","id":"aye-1","method":"elicitation/create"`) {
		t.Fatalf("%+v, %v", ev, err)
	}
	e.do(http.MethodPost, `{"jsonrpc":"2.0","id":"aye-1","error":{"code":-32601,"message":"no elicitation"}}`, h...)
	if ev, err = events.Next(); err != nil || !strings.Contains(string(ev.Data), `no elicitation`) {
		t.Fatalf("%+v, %v", ev, err)
	}

	res = e.do(http.MethodPost, call(4, "ask", `{}`), h...)
	events = NewEvents(res.Body, 1<<20)
	if _, err := events.Next(); err != nil {
		t.Fatal(err)
	}
	e.do(http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4}}`, h...)
	if ev, err = events.Next(); err != nil || string(ev.Data) != `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"aye-2","reason":"no longer needed"}}` {
		t.Fatalf("%+v, %v", ev, err)
	}
	if ev, err = events.Next(); err != nil || !strings.Contains(string(ev.Data), ErrCancelled.Error()) {
		t.Fatalf("%+v, %v", ev, err)
	}
}

func TestLegacyCancel(t *testing.T) {
	e := newTestEndpoint(t, nil)
	h := e.session(V20251125)
	answered := make(chan string, 1)
	go func() { answered <- e.read(e.do(http.MethodPost, call(9, "hold", `{}`), h...)) }()
	<-e.server.entered
	e.refused(e.do(http.MethodPost, call(9, "echo", `{}`), h...), http.StatusBadRequest, CodeInvalidRequest)
	// The id of another session's request, an unknown one, the same digits as text:
	// none of them is this request.
	cancel := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`
	e.do(http.MethodPost, fmt.Sprintf(cancel, "9"), e.session(V20251125)...)
	e.do(http.MethodPost, fmt.Sprintf(cancel, `"9"`), h...)
	e.do(http.MethodPost, fmt.Sprintf(cancel, "10"), h...)
	select {
	case cause := <-e.server.causes:
		t.Fatalf("cancelled by somebody else: %v", cause)
	default:
	}
	if res := e.do(http.MethodPost, fmt.Sprintf(cancel, "9"), h...); res.StatusCode != http.StatusAccepted {
		t.Error(res.Status)
	}
	if cause := <-e.server.causes; !errors.Is(cause, ErrCancelled) {
		t.Errorf("cause %v", cause)
	}
	if got := <-answered; !strings.Contains(got, `"id":9,"error"`) {
		t.Errorf("answered %s", got)
	}
	// OpenCode sends it after the response. The id may be used again.
	if res := e.do(http.MethodPost, fmt.Sprintf(cancel, "9"), h...); res.StatusCode != http.StatusAccepted {
		t.Error(res.Status)
	}
	if got := e.read(e.do(http.MethodPost, call(9, "echo", `{}`), h...)); !strings.Contains(got, `"id":9,"result"`) {
		t.Errorf("answered %s", got)
	}
	if got := e.server.calls(); len(got) != 2 {
		t.Errorf("ran %v", got)
	}
}

// MCP-03: batches exist in one revision. There a faulty part keeps all from running.
func TestBatch(t *testing.T) {
	e := newTestEndpoint(t, func(c *EndpointConfig) { c.Limits.Batch = 3 })
	old := e.session(V20250326)
	res := e.do(http.MethodPost, "\n["+call(1, "echo", `{"a":1}`)+`,{"jsonrpc":"2.0","method":"notifications/roots/list_changed"},`+call(2, "echo", `{"a":2}`)+"]", old...)
	body := e.read(res)
	if res.Header.Get("Content-Type") != "application/json" || !strings.HasPrefix(body, "[{") || !strings.Contains(body, `"structuredContent":{"a":1}`) || !strings.Contains(body, `"structuredContent":{"a":2}`) {
		t.Errorf("batch: %s", body)
	}
	if got := <-e.server.noted; got != "notifications/roots/list_changed" {
		t.Errorf("noted %s", got)
	}
	res = e.do(http.MethodPost, "["+call(1, "echo", `{}`)+"]", old[:2]...)
	if body := e.read(res); !strings.HasPrefix(body, `[{"jsonrpc":"2.0","id":1`) {
		t.Errorf("batch of one: %s", body)
	}
	res = e.do(http.MethodPost, "["+call(1, "progress", `{}`)+","+call(2, "echo", `{}`)+"]", old...)
	if events := e.events(res, 10); len(events) != 5 {
		t.Errorf("batch as a stream: %+v", events)
	}
	res = e.do(http.MethodPost, `[{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}]`, old...)
	if res.StatusCode != http.StatusAccepted {
		t.Error(res.Status)
	}
	ran := len(e.server.calls())
	ok := call(1, "echo", `{}`)
	for _, bad := range []string{
		`[]`, `[[` + ok + `]]`, `[` + ok + `,7]`, `[` + ok + `,{"jsonrpc":"2.0","id":2,"method":"ping","METHOD":"x"}]`,
		`[` + ok + `,` + call(2, "delete", `{"a":1,"a":2}`) + `]`, `[` + ok + `,` + ok + `,` + ok + `,` + ok + `]`, `[` + ok + `,`, `[` + ok + `] `[1:],
		`[` + ok + `,{"jsonrpc":"2.0","method":"tools/call","params":{"name":"delete"}}]`,
		`[` + ok + `,` + fmt.Sprintf(initializeBody, "2025-11-25") + `]`,
		`[` + ok + `,` + ok + `]`,
	} {
		res := e.do(http.MethodPost, bad, old...)
		if body := e.read(res); res.StatusCode != http.StatusBadRequest || !strings.Contains(body, "nothing ran") {
			t.Errorf("%s: %d %s", bad, res.StatusCode, body)
		}
	}
	batch := "[" + ok + "]"
	e.refused(e.do(http.MethodPost, batch, e.session(V20251125)...), http.StatusBadRequest, CodeInvalidRequest)
	e.refused(e.do(http.MethodPost, batch, e.session(V20251125)[:2]...), http.StatusBadRequest, CodeInvalidRequest)
	e.refused(e.do(http.MethodPost, batch, e.session(V20250618)...), http.StatusBadRequest, CodeInvalidRequest)
	e.refused(e.do(http.MethodPost, batch, HeaderSession, old[1], HeaderVersion, "2025-06-18"), http.StatusBadRequest, CodeInvalidRequest)
	e.refused(e.do(http.MethodPost, batch), http.StatusBadRequest, CodeInvalidRequest)
	_, modernHeader := modern(1, "tools/call", "echo", "")
	e.refused(e.do(http.MethodPost, batch, append(modernHeader, HeaderSession, old[1])...), http.StatusBadRequest, CodeInvalidRequest)
	if got := len(e.server.calls()); got != ran {
		t.Errorf("%d calls ran out of refused batches", got-ran)
	}
}

// MCP-24: sessions are bounded per principal; the one idle longest makes room, and
// one in use never does.
func TestSessionBounds(t *testing.T) {
	now := time.Now()
	e := newTestEndpoint(t, func(c *EndpointConfig) {
		c.Limits.Sessions, c.Limits.SessionIdle = 2, time.Hour
		c.Now = func() time.Time { return now }
	})
	first := e.session(V20251125)
	now = now.Add(time.Second)
	second := e.session(V20251125)
	now = now.Add(time.Second)
	e.do(http.MethodPost, call(1, "echo", `{}`), first...)
	third := e.session(V20251125)
	if c := <-e.server.closed; c.Session != second[1] {
		t.Error("not the session that was idle longest had to go")
	}
	for _, h := range [][]string{first, third} {
		e.hold(call(1, "hold", `{}`), h...)
	}
	e.refused(e.do(http.MethodPost, fmt.Sprintf(initializeBody, "2025-11-25")), http.StatusTooManyRequests, CodeInternal)
	other := []string{"Authorization", "", "Authorization", "Bearer agent-2"}
	e.session(V20251125, other...)
	now = now.Add(2 * time.Hour)
	e.session(V20251125, other...)
	if c := <-e.server.closed; c.Principal != "agent-2" {
		t.Errorf("closed %+v", c)
	}
}

func TestShutdown(t *testing.T) {
	e := newTestEndpoint(t, nil)
	h := e.session(V20251125)
	answered := make(chan string, 1)
	go func() { answered <- e.read(e.do(http.MethodPost, call(9, "hold", `{}`), h...)) }()
	<-e.server.entered
	standing := e.do(http.MethodGet, "", h...)
	if err := e.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	if cause := <-e.server.causes; !errors.Is(cause, ErrShutdown) {
		t.Errorf("cause %v", cause)
	}
	if got := <-answered; !strings.Contains(got, `"id":9,"error"`) {
		t.Errorf("answered %s", got)
	}
	if rest := e.events(standing, 10); len(rest) > 1 {
		t.Errorf("standing stream: %+v", rest)
	}
	e.refused(e.do(http.MethodPost, fmt.Sprintf(initializeBody, "2025-11-25")), http.StatusServiceUnavailable, CodeInternal)
	if len(e.server.closed) != 1 {
		t.Error("the session was not closed")
	}
}
