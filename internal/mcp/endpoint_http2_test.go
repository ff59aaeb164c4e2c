package mcp

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// Over HTTP/2 many requests share a connection: hanging up on one cancels that
// one, and the deadlines of one are not those of another.
func TestHTTP2(t *testing.T) {
	t.Parallel()
	s := newEchoServer()
	e := NewEndpoint(t.Context(), EndpointConfig{
		Server: s, Now: time.Now, Rand: rand.Reader,
		Authenticate: func(*http.Request) (string, error) { return "agent-1", nil },
		Limits:       EndpointLimits{BodyTime: 300 * time.Millisecond, WriteTime: 300 * time.Millisecond},
	})
	h := httptest.NewUnstartedServer(e)
	h.EnableHTTP2 = true
	h.Config.WriteTimeout = 300 * time.Millisecond
	h.StartTLS()
	defer h.Close()
	post := func(body string, header ...string) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.URL+"/mcp", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		for i := 0; i < len(header); i += 2 {
			r.Header.Add(header[i], header[i+1])
		}
		res, err := h.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	res := post(fmt.Sprintf(initializeBody, "2025-06-18"))
	if res.ProtoMajor != 2 || res.StatusCode != http.StatusOK {
		t.Fatalf("%s %s", res.Proto, res.Status)
	}
	session := res.Header.Get(HeaderSession)
	_ = res.Body.Close()

	held := post(call(1, "gate", `{}`), HeaderSession, session)
	<-s.entered
	body, header := modern(1, "tools/call", "gate", `"name":"gate"`)
	gone := post(body, header...)
	<-s.entered
	_ = gone.Body.Close()
	if cause := <-s.causes; !errors.Is(cause, ErrDisconnected) {
		t.Errorf("cause %v", cause)
	}
	<-time.After(400 * time.Millisecond)
	s.gate <- "still here"
	silent := make(chan string, 1)
	te := &testEndpoint{t: t}
	go func() {
		res := post(call(2, "wait", `{}`), HeaderSession, session)
		silent <- te.read(res)
		_ = res.Body.Close()
	}()
	<-s.entered
	<-time.After(400 * time.Millisecond)
	s.gate <- "silent"
	if got := <-silent; !strings.Contains(got, `"text":"silent"`) {
		t.Errorf("after silence: %s", got)
	}
	if events := te.events(held, 10); len(events) != 2 || !strings.Contains(string(events[1].Data), "still here") {
		t.Errorf("events %+v", events)
	}
	_ = held.Body.Close()
	if err := e.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}
