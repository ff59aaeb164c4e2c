package mcp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestRemoteNegotiation(t *testing.T) {
	plain := func(status int, kind, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			io.WriteString(w, body)
		}
	}
	rpc := func(status, code int, data string) http.HandlerFunc {
		return plain(status, "application/json", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"error":{"code":%d,"message":"m","data":%s}}`, code, data))
	}
	for name, discover := range map[string]http.HandlerFunc{
		"plain 400":              plain(400, "text/plain", "no session"),
		"404":                    plain(404, "text/html", "<html>"),
		"405":                    plain(405, "", ""),
		"415":                    plain(415, "", ""),
		"500":                    plain(500, "text/plain", "oops"),
		"null id":                plain(400, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request"}}`),
		"no id":                  plain(400, "application/json", `{"jsonrpc":"2.0","error":{"code":-32600,"message":"Bad Request"}}`),
		"method not found":       rpc(200, -32601, `null`),
		"unsupported version":    rpc(400, CodeVersion, `{"supported":["2025-11-25"],"requested":"2026-07-28"}`),
		"accepted":               plain(202, "", ""),
		"web page":               plain(200, "text/html", "<html>"),
		"discovers legacy":       plain(200, "application/json", `{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2025-11-25"],"capabilities":{}}}`),
		"stream without answer":  plain(200, "text/event-stream", ": hello\n\n"),
		"a result of the future": plain(200, "application/json", `{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2099-01-01",7]}}`),
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, &site{discover: discover})
			if v := dial(t, s.target()).About().Version; v != V20251125 {
				t.Errorf("version %s", v)
			}
		})
	}
	for name, discover := range map[string]http.HandlerFunc{
		"401":                plain(401, "application/json", `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"token"}}`),
		"403":                plain(403, "", ""),
		"503":                plain(503, "", ""),
		"header mismatch":    rpc(400, CodeHeaderMismatch, `null`),
		"missing capability": rpc(400, CodeMissingCapability, `{}`),
	} {
		t.Run("no hope: "+name, func(t *testing.T) {
			s := newSite(t, &site{discover: discover})
			if _, err := Dial(t.Context(), s.target()); err == nil {
				t.Error("dialled")
			}
			if len(s.visits(methodInitialize)) > 0 {
				t.Error("initialize was tried")
			}
		})
	}
	t.Run("modern", func(t *testing.T) {
		s := newSite(t, &site{modern: true})
		about := dial(t, s.target()).About()
		if about.Version != V20260728 || string(about.Info) != `{"name":"peer"}` || string(about.Raw) != peerDiscovered {
			t.Errorf("about %+v", about)
		}
	})
	t.Run("silence", func(t *testing.T) {
		s := newSite(t, &site{discover: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }})
		target := s.target()
		target.Probe = 10 * time.Millisecond
		if v := dial(t, target).About().Version; v != V20251125 {
			t.Errorf("version %s", v)
		}
	})
	t.Run("pinned", func(t *testing.T) {
		s := newSite(t, &site{modern: true})
		target := s.target()
		target.Version = V20250618
		dial(t, target)
		if len(s.visits(methodDiscover)) > 0 {
			t.Error("a pinned legacy server was probed")
		}
		contains(t, "initialize", []byte(s.visits(methodInitialize)[0].body), `"protocolVersion":"2025-06-18"`)
	})
}

func TestRemoteHeaders(t *testing.T) {
	secret := http.Header{"authorization": {"Bearer ours"}, "X-Tenant": {"a", "b"}}
	t.Run("legacy", func(t *testing.T) {
		s := newSite(t, &site{session: "s-1"})
		target := s.target()
		target.Header = secret
		mustCall(t, dial(t, target), tool("echo"), nil)
		v := s.visits("tools/call")[0]
		for name, want := range map[string][]string{
			"Authorization": {"Bearer ours"}, "X-Tenant": {"a", "b"}, "Mcp-Session-Id": {"s-1"}, "Mcp-Protocol-Version": {"2025-11-25"},
			"Accept": {"application/json, text/event-stream"}, "Content-Type": {"application/json"}, "Accept-Encoding": {"identity"},
			"Mcp-Method": nil, "Mcp-Name": nil,
		} {
			if !slices.Equal(v.header[name], want) {
				t.Errorf("%s: %q, want %q", name, v.header[name], want)
			}
		}
		if h := s.visits(methodInitialize)[0].header; h["Mcp-Session-Id"] != nil || h["Mcp-Protocol-Version"] != nil {
			t.Errorf("initialize came with %v", h)
		}
	})
	t.Run("2025-03-26 has no version header", func(t *testing.T) {
		s := newSite(t, &site{version: V20250326})
		mustCall(t, dial(t, s.target()), tool("echo"), nil)
		if h := s.visits("tools/call")[0].header; h["Mcp-Protocol-Version"] != nil {
			t.Errorf("came with %v", h)
		}
	})
	t.Run("modern", func(t *testing.T) {
		s := newSite(t, &site{modern: true})
		target := s.target()
		target.Header = secret
		target.Schema = func(name string) []byte {
			if name != "zoë" {
				return nil
			}
			return []byte(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"n":{"type":"object","properties":{"deep":{"type":"integer","x-mcp-header":"Deep"}}},"absent":{"type":"boolean","x-mcp-header":"Absent"}}}`)
		}
		u := dial(t, target)
		for range 2 {
			mustCall(t, u, []byte(`{"name":"zoë","arguments":{"region":"eu ","n":{"deep":42},"Authorization":"Bearer theirs"}}`), nil)
		}
		v := s.visits("tools/call")[1]
		for name, want := range map[string][]string{
			"Authorization": {"Bearer ours"}, "Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"},
			"Mcp-Name": {"=?base64?em/Dqw==?="}, "Mcp-Param-Region": {"=?base64?ZXUg?="}, "Mcp-Param-Deep": {"42"},
			"Mcp-Param-Absent": nil, "Mcp-Session-Id": nil,
		} {
			if !slices.Equal(v.header[name], want) {
				t.Errorf("%s: %q, want %q", name, v.header[name], want)
			}
		}
		mustCall(t, u, tool("plain"), nil)
		if h := s.visits("tools/call")[2].header; h["Mcp-Param-Region"] != nil || h.Get("Mcp-Name") != "plain" {
			t.Errorf("came with %v", h)
		}
		_, err := u.Call(t.Context(), "tools/call", []byte(`{}`), nil)
		wantLost(t, err, false, nil)
	})
	t.Run("schema that forbids HTTP", func(t *testing.T) {
		s := newSite(t, &site{modern: true})
		target := s.target()
		target.Schema = func(string) []byte { return []byte(`{"properties":{"a":{"type":"object","x-mcp-header":"A"}}}`) }
		_, err := dial(t, target).Call(t.Context(), "tools/call", tool("x"), nil)
		wantLost(t, err, false, nil)
	})
}

// MCP-19: credentials come from the target alone, and go to its origin alone.
func TestRemoteKeepsCredentials(t *testing.T) {
	t.Run("redirects", func(t *testing.T) {
		var stolen []http.Header
		thief := newSite(t, &site{discover: func(_ http.ResponseWriter, r *http.Request) { stolen = append(stolen, r.Header) }})
		for _, status := range []int{301, 302, 303, 307, 308} {
			s := newSite(t, &site{discover: func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, thief.URL, status)
			}})
			target := s.target()
			target.Version = V20260728
			target.Header = http.Header{"Authorization": {"Bearer ours"}}
			var refused *StatusError
			if _, err := Dial(t.Context(), target); !errors.As(err, &refused) || refused.Status != status {
				t.Errorf("%d: got %v", status, err)
			}
		}
		if len(stolen) > 0 || len(thief.seen) > 0 {
			t.Errorf("another origin was asked: %v", thief.seen)
		}
	})
	t.Run("same origin", func(t *testing.T) {
		s := newSite(t, &site{modern: true})
		inner := s.Config.Handler
		s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/mcp" {
				http.Redirect(w, r, "/mcp/", http.StatusPermanentRedirect)
				return
			}
			inner.ServeHTTP(w, r)
		})
		mustCall(t, dial(t, s.target()), tool("echo"), nil)
	})
	t.Run("round in circles", func(t *testing.T) {
		s := newSite(t, &site{discover: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/mcp", http.StatusTemporaryRedirect)
		}})
		target := s.target()
		target.Version = V20260728
		if _, err := Dial(t.Context(), target); err == nil {
			t.Error("dialled")
		}
	})
	t.Run("no proxy of the environment", func(t *testing.T) {
		t.Setenv("HTTP_PROXY", "http://192.0.2.1:1")
		t.Setenv("http_proxy", "http://192.0.2.1:1")
		s := newSite(t, &site{modern: true})
		target := s.target()
		target.URL = "http://upstream.example/mcp"
		target.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if addr != "upstream.example:80" {
				t.Errorf("dialled %s", addr)
			}
			return (&net.Dialer{}).DialContext(ctx, network, s.Listener.Addr().String())
		}
		u := dial(t, target)
		mustCall(t, u, tool("echo"), nil)
		if u.(*Remote).transport.Proxy != nil { // http.ProxyFromEnvironment reads the environment once only
			t.Error("a proxy nobody configured")
		}
	})
}

func TestRemoteTargetRefusals(t *testing.T) {
	for name, target := range map[string]Target{
		"nothing":         {},
		"both":            {URL: "http://localhost/", Command: &Command{Path: "/bin/true"}},
		"scheme":          {URL: "file:///etc/passwd"},
		"no host":         {URL: "http:///x"},
		"opaque":          {URL: "http:localhost"},
		"credentials":     {URL: "http://u:p@localhost/"},
		"fragment":        {URL: "http://localhost/#x"},
		"unreadable":      {URL: "http://local\x7fhost/"},
		"session header":  {URL: "http://localhost/", Header: http.Header{"mcp-session-id": {"x"}}},
		"param header":    {URL: "http://localhost/", Header: http.Header{"mcp-param-x": {"x"}}},
		"idempotency key": {URL: "http://localhost/", Header: http.Header{"Idempotency-Key": {"x"}}},
		"line break":      {URL: "http://localhost/", Header: http.Header{"X-A": {"a\r\nB: c"}}},
		"header name":     {URL: "http://localhost/", Header: http.Header{"X A": {"a"}}},
	} {
		if _, err := Dial(t.Context(), target); err == nil {
			t.Errorf("%s: dialled", name)
		} else if strings.Contains(err.Error(), "u:p") {
			t.Errorf("%s: the error tells the secret: %v", name, err)
		}
	}
}

func TestRemoteFidelity(t *testing.T) {
	const era = `{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"ayegate","version":"0"},"io.modelcontextprotocol/clientCapabilities":{}}`
	for _, streams := range []bool{false, true} {
		t.Run(fmt.Sprintf("stream=%v", streams), func(t *testing.T) {
			both(t, func(t *testing.T, s *site) {
				const result = `{"content":[{"type":"hologram","z":1.10}],"isError":false,"structuredContent":{"b":9007199254740993,"a":1e3,"a":2},"_meta":{"k":12345678901234567890},"s":"\ud800<x>&"}`
				s.call = func(w http.ResponseWriter, _ *http.Request, m peerMessage) {
					if !streams {
						answerJSON(w, m.ID, result)
						return
					}
					say := says(w)
					say(noteLine("notifications/message", `{"n":1.10}`))
					say("event: other", resultLine(m.ID, `"not a message"`))
					say("id: 7", resultLine(m.ID, result))
				}
				u := dial(t, newSite(t, s).target())
				for _, params := range fidelityParams {
					var heard listener
					m := mustCall(t, u, []byte(params), &heard)
					if string(m.Result) != result {
						t.Errorf("result %s\nwant   %s", m.Result, result)
					}
					if want := []string{`{"jsonrpc":"2.0","method":"notifications/message","params":{"n":1.10}}`}; streams && !slices.Equal(heard.raw(), want) {
						t.Errorf("heard %q", heard.raw())
					}
				}
				for i, v := range s.visits("tools/call") {
					got := string(v.Params)
					if s.modern {
						got = strings.Replace(got, `,"_meta":`+era, "", 1)
					}
					if got != fidelityParams[i] {
						t.Errorf("the server saw %s\nwant %s", v.Params, fidelityParams[i])
					}
				}
			})
		})
	}
}

func TestRemoteStreamBelongsToItsCall(t *testing.T) {
	both(t, func(t *testing.T, s *site) {
		s.call = func(w http.ResponseWriter, _ *http.Request, m peerMessage) {
			token := Meta(m.Params, "progressToken")
			say := says(w)
			say(noteLine("notifications/progress", `{"progressToken":`+string(token)+`,"progress":1.0}`))
			say(noteLine("notifications/progress", `{"progressToken":"agent","progress":2}`)) // guessed
			say(noteLine("notifications/progress", `{"progressToken":424242,"progress":3}`))  // another call's
			say("data: this is no JSON")
			say(`data: {"jsonrpc":"2.0","id":424242,"result":{"wrong":true}}`)
			say("data: {\"jsonrpc\":\"2.0\",", "data: \"id\":"+string(m.ID)+",\"result\":{\"first\":true}}")
			say(resultLine(m.ID, `{"second":true}`))
		}
		u := dial(t, newSite(t, s).target())
		var heard listener
		m := mustCall(t, u, []byte(`{"name":"x","_meta":{"progressToken":"agent"}}`), &heard)
		contains(t, "result", m.Result, `{"first":true}`)
		want := []string{`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"agent","progress":1.0}}`}
		if !slices.Equal(heard.raw(), want) {
			t.Errorf("heard %q", heard.raw())
		}
	})
}

func TestRemoteAsk(t *testing.T) {
	s := &site{session: "s-1", came: make(chan visit, 8)}
	s.call = func(w http.ResponseWriter, _ *http.Request, m peerMessage) {
		say := says(w)
		say(`data: {"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"n":1.10}}`)
		v := <-s.came
		say(resultLine(m.ID, v.body))
	}
	u := dial(t, newSite(t, s).target())
	<-s.came // initialized
	to := &listener{ask: func(_ context.Context, m Message) ([]byte, *Error) {
		if string(m.Params) != `{"n":1.10}` {
			t.Errorf("asked %s", m.Raw)
		}
		return []byte(`{"action":"accept","n":1.10}`), nil
	}}
	m := mustCall(t, u, tool("x"), to)
	if want := `{"jsonrpc":"2.0","id":"q","result":{"action":"accept","n":1.10}}`; string(m.Result) != want {
		t.Errorf("the server got %s", m.Result)
	}
	for _, v := range s.visits("") {
		if v.header.Get("Mcp-Session-Id") != "s-1" {
			t.Errorf("the answer came without the session: %v", v.header)
		}
	}
	t.Run("ends with its call", func(t *testing.T) {
		s.call = func(w http.ResponseWriter, _ *http.Request, m peerMessage) {
			say := says(w)
			say(`data: {"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{}}`)
			say(resultLine(m.ID, `{}`))
		}
		var ended bool
		mustCall(t, u, tool("x"), &listener{ask: func(ctx context.Context, _ Message) ([]byte, *Error) {
			<-ctx.Done()
			ended = true
			return nil, &Error{Message: "gone"}
		}})
		if !ended {
			t.Error("the question outlived its call")
		}
	})
	t.Run("does not hold its call once it is answered", func(t *testing.T) {
		s := &site{session: "s-1", came: make(chan visit)} // which keeps what reports to it waiting
		answered := make(chan struct{})
		s.call = func(w http.ResponseWriter, _ *http.Request, m peerMessage) {
			say := says(w)
			say(`data: {"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{}}`)
			<-answered
			say(resultLine(m.ID, `{}`))
		}
		newSite(t, s)
		go func() { <-s.came }() // initialized
		u := dial(t, s.target())
		mustCall(t, u, tool("x"), &listener{ask: func(context.Context, Message) ([]byte, *Error) {
			defer close(answered)
			return []byte(`{}`), nil
		}})
		if v := <-s.came; v.Method != "" {
			t.Errorf("came %s", v.body)
		}
	})
	t.Run("withdrawn", func(t *testing.T) {
		withdrawn := make(chan struct{})
		s.call = func(w http.ResponseWriter, _ *http.Request, m peerMessage) {
			say := says(w)
			say(`data: {"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{}}`)
			<-withdrawn
			say(noteLine("notifications/cancelled", `{"requestId":7}`))
			<-withdrawn
			say(resultLine(m.ID, `{}`))
		}
		mustCall(t, u, tool("x"), &listener{ask: func(ctx context.Context, _ Message) ([]byte, *Error) {
			withdrawn <- struct{}{}
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), errWithdrawn) {
				t.Errorf("ended with %v", context.Cause(ctx))
			}
			withdrawn <- struct{}{}
			return nil, nil
		}})
	})
}

func TestRemoteModernAsksNothing(t *testing.T) {
	s := newSite(t, &site{modern: true, call: func(w http.ResponseWriter, _ *http.Request, m peerMessage) {
		say := says(w)
		say(`data: {"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{}}`)
		say(resultLine(m.ID, `{}`))
	}})
	mustCall(t, dial(t, s.target()), tool("x"), &listener{ask: func(context.Context, Message) ([]byte, *Error) {
		t.Error("a modern server's request was passed on")
		return nil, nil
	}})
}

func TestRemoteResume(t *testing.T) {
	var id json.RawMessage
	s := &site{session: "s-1"}
	s.call = func(w http.ResponseWriter, _ *http.Request, m peerMessage) {
		id = m.ID
		say := says(w)
		say("id: a1", "data:")
		say("id: a2", "retry: 1", noteLine("notifications/message", `{"n":1}`))
	}
	var resumed []string
	s.standing = func(w http.ResponseWriter, r *http.Request) {
		last := r.Header.Get("Last-Event-ID")
		if last == "" {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		resumed = append(resumed, last)
		switch len(resumed) {
		case 1:
			w.WriteHeader(http.StatusBadGateway)
		case 2:
			says(w)("id: a3", noteLine("notifications/message", `{"n":2}`))
		default:
			says(w)("id: a4", resultLine(id, `{"done":true}`))
		}
	}
	u := dial(t, newSite(t, s).target())
	var heard listener
	m := mustCall(t, u, tool("x"), &heard)
	if string(m.Result) != `{"done":true}` || len(heard.notes) != 2 || !slices.Equal(resumed, []string{"a2", "a2", "a3"}) {
		t.Errorf("result %s, heard %q, resumed after %q", m.Result, heard.raw(), resumed)
	}
	t.Run("refused", func(t *testing.T) {
		s.standing = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) }
		_, err := u.Call(t.Context(), "tools/call", tool("x"), nil)
		wantLost(t, err, true, errStreamEnded)
	})
	t.Run("not without an id", func(t *testing.T) {
		s.call = func(w http.ResponseWriter, _ *http.Request, _ peerMessage) {
			says(w)(noteLine("notifications/x", `{}`))
		}
		_, err := u.Call(t.Context(), "tools/call", tool("x"), nil)
		wantLost(t, err, true, errStreamEnded)
	})
	t.Run("not in the modern era", func(t *testing.T) {
		s := newSite(t, &site{modern: true, call: func(w http.ResponseWriter, _ *http.Request, _ peerMessage) {
			says(w)("id: 1", "data:")
		}})
		_, err := dial(t, s.target()).Call(t.Context(), "tools/call", tool("x"), nil)
		wantLost(t, err, true, errStreamEnded)
	})
}

func TestRemoteCancel(t *testing.T) {
	both(t, func(t *testing.T, s *site) {
		arrived, left := make(chan json.RawMessage), make(chan struct{})
		s.came = make(chan visit, 8)
		s.call = func(w http.ResponseWriter, r *http.Request, m peerMessage) {
			says(w)
			arrived <- m.ID
			<-r.Context().Done()
			close(left)
		}
		u := dial(t, newSite(t, s).target())
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := u.Call(ctx, "tools/call", tool("x"), nil)
			ended <- err
		}()
		id := <-arrived
		cancel(ErrCancelled)
		wantLost(t, <-ended, true, ErrCancelled)
		<-left
		_, err := u.Call(ctx, "tools/call", tool("x"), nil)
		wantLost(t, err, false, ErrCancelled)
		if s.modern {
			if got := s.visits(methodCancelled); len(got) > 0 {
				t.Errorf("a modern server was told %v", got)
			}
			return
		}
		for v := range s.came {
			if v.Method == methodCancelled {
				contains(t, "cancelled", v.Params, `"requestId":`+string(id)+`,`)
				break
			}
		}
	})
}

// MCP-16: hung, dripping and endlessly busy servers cost a bounded time.
func TestRemoteTimeLimit(t *testing.T) {
	for name, call := range map[string]func(w http.ResponseWriter, r *http.Request, m peerMessage){
		"silent":  func(_ http.ResponseWriter, r *http.Request, _ peerMessage) { <-r.Context().Done() },
		"headers": func(w http.ResponseWriter, r *http.Request, _ peerMessage) { says(w); <-r.Context().Done() },
		"drip": func(w http.ResponseWriter, r *http.Request, _ peerMessage) {
			w.Header().Set("Content-Type", "application/json")
			for r.Context().Err() == nil {
				io.WriteString(w, " ")
				http.NewResponseController(w).Flush()
				pause(r.Context(), time.Millisecond)
			}
		},
		"progress": func(w http.ResponseWriter, r *http.Request, m peerMessage) {
			say := says(w)
			for r.Context().Err() == nil {
				say(noteLine("notifications/progress", `{"progressToken":`+string(m.ID)+`,"progress":1}`))
				pause(r.Context(), time.Millisecond)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, s *site) {
				s.call = call
				target := newSite(t, s).target()
				target.CallLimit = 50 * time.Millisecond
				u := dial(t, target)
				_, err := u.Call(t.Context(), "tools/call", []byte(`{"name":"x","_meta":{"progressToken":1}}`), &listener{})
				wantLost(t, err, true, ErrCallLimit)
			})
		})
	}
}

// MCP-17: every answer that cannot be used says that the call may have run.
func TestRemoteStrangeAnswers(t *testing.T) {
	large := strings.Repeat("a", 300<<10)
	write := func(kind, text string) func(http.ResponseWriter, *http.Request, peerMessage) {
		return func(w http.ResponseWriter, _ *http.Request, m peerMessage) {
			w.Header().Set("Content-Type", kind)
			io.WriteString(w, strings.ReplaceAll(text, "ID", string(m.ID)))
		}
	}
	const answer = `{"jsonrpc":"2.0","id":ID,"result":{}}`
	for name, c := range map[string]struct {
		call  func(http.ResponseWriter, *http.Request, peerMessage)
		cause error
	}{
		"too large": {write("application/json", `{"jsonrpc":"2.0","id":ID,"result":{"a":"`+large+`"}}`), ErrTooLarge},
		"too large, told": {func(w http.ResponseWriter, _ *http.Request, _ peerMessage) {
			w.Header().Set("Content-Type", typeJSON)
			w.Header().Set("Content-Length", "1000000000000")
		}, ErrTooLarge},
		"too large event": {write("text/event-stream", `data: {"jsonrpc":"2.0","id":ID,"result":{"a":"`+large+`"}}`+"\n\n"), ErrTooLarge},
		"endless event":   {write("text/event-stream", "data: "+large), ErrTooLarge},
		"wrong id":        {write("application/json", `{"jsonrpc":"2.0","id":424242,"result":{}}`), ErrUnreadable},
		"id as a string":  {write("application/json", `{"jsonrpc":"2.0","id":"ID","result":{}}`), ErrUnreadable},
		"cut short":       {write("application/json", `{"jsonrpc":"2.0","id":ID,"result":{`), ErrUnreadable},
		"cut short event": {write("text/event-stream", `data: {"jsonrpc":"2.0","id":ID,"result":{`+"\n\n"), ErrUnreadable},
		"batch":           {write("application/json", `[`+answer+`]`), ErrUnreadable},
		"empty":           {write("application/json", ``), ErrUnreadable},
		"not UTF-8":       {write("application/json", "{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"a\":\"\xff\"}}"), ErrUnreadable},
		"web page":        {write("text/html", `<html>`), ErrUnreadable},
		"no type":         {write("", answer), ErrUnreadable},
		"accepted":        {func(w http.ResponseWriter, _ *http.Request, _ peerMessage) { w.WriteHeader(http.StatusAccepted) }, ErrUnreadable},
		"a notification":  {write("application/json", `{"jsonrpc":"2.0","method":"notifications/x"}`), ErrUnreadable},
		"compressed": {func(w http.ResponseWriter, _ *http.Request, m peerMessage) {
			w.Header().Set("Content-Encoding", "br")
			answerJSON(w, m.ID, `{}`)
		}, ErrUnreadable},
		"connection closed": {func(w http.ResponseWriter, _ *http.Request, _ peerMessage) { panic(http.ErrAbortHandler) }, nil},
		"stream closed":     {write("text/event-stream", ": nothing\n\n"), errStreamEnded},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, s *site) {
				s.call = c.call
				target := newSite(t, s).target()
				target.MaxMessage = 256 << 10
				_, err := dial(t, target).Call(t.Context(), "tools/call", tool("x"), nil)
				wantLost(t, err, true, c.cause)
			})
		})
	}
	t.Run("sloppy but clear", func(t *testing.T) {
		both(t, func(t *testing.T, s *site) {
			s.call = write("application/json; charset=UTF-8", ` {"id":ID,"error":null,"result":{"a":1,"a":2} } `)
			m := mustCall(t, dial(t, newSite(t, s).target()), tool("x"), nil)
			if string(m.Result) != `{"a":1,"a":2}` {
				t.Errorf("result %s", m.Result)
			}
		})
	})
	t.Run("batch where there are batches", func(t *testing.T) {
		s := newSite(t, &site{version: V20250326, call: write("application/json", `[{"jsonrpc":"2.0","method":"notifications/x"},`+answer+`,`+answer+`]`)})
		var heard listener
		m := mustCall(t, dial(t, s.target()), tool("x"), &heard)
		if string(m.Result) != `{}` || len(heard.notes) != 1 {
			t.Errorf("result %s, heard %q", m.Result, heard.raw())
		}
	})
}

func TestRemoteStatus(t *testing.T) {
	status := func(code int, kind, body string) func(http.ResponseWriter, *http.Request, peerMessage) {
		return func(w http.ResponseWriter, _ *http.Request, m peerMessage) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(code)
			io.WriteString(w, strings.ReplaceAll(body, "ID", string(m.ID)))
		}
	}
	both(t, func(t *testing.T, s *site) {
		newSite(t, s)
		u := dial(t, s.target())
		for name, body := range map[string]string{
			"own id": `{"jsonrpc":"2.0","id":ID,"error":{"code":-32021,"message":"m","data":{"n":1.10}}}`,
			"no id":  `{"jsonrpc":"2.0","error":{"code":-32021,"message":"m","data":{"n":1.10}}}`,
			"null":   `{"jsonrpc":"2.0","id":null,"error":{"code":-32021,"message":"m","data":{"n":1.10}}}`,
		} {
			s.call = status(400, "application/json", body)
			m := mustCall(t, u, tool("x"), nil)
			if string(m.Error) != `{"code":-32021,"message":"m","data":{"n":1.10}}` {
				t.Errorf("%s: error %s", name, m.Error)
			}
		}
		for _, code := range []int{400, 401, 403, 413, 429, 500, 503} {
			s.call = status(code, "text/plain", "sorry \xff")
			_, err := u.Call(t.Context(), "tools/call", tool("x"), nil)
			var got *StatusError
			wantLost(t, err, true, nil)
			if !errors.As(err, &got) || got.Status != code || got.Text != "sorry " {
				t.Errorf("%d: %#v", code, got)
			}
		}
		s.call = status(401, "application/json", `{"jsonrpc":"2.0","id":ID,"error":{"code":1,"message":"m"}}`)
		_, err := u.Call(t.Context(), "tools/call", tool("x"), nil)
		wantLost(t, err, true, nil)
		s.call = status(400, "application/json", `{"jsonrpc":"2.0","id":424242,"error":{"code":1,"message":"m"}}`)
		_, err = u.Call(t.Context(), "tools/call", tool("x"), nil)
		wantLost(t, err, true, nil)
	})
}

func TestRemoteSession(t *testing.T) {
	t.Run("ended by the server", func(t *testing.T) {
		arrived, release := make(chan struct{}), make(chan struct{})
		s := newSite(t, &site{session: "s-1", call: func(w http.ResponseWriter, r *http.Request, m peerMessage) {
			if strings.Contains(string(m.Params), "slow") {
				close(arrived)
				<-release
				answerJSON(w, m.ID, `{"late":true}`)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprintf(w, `{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":%s}`, m.ID)
		}})
		u := dial(t, s.target())
		slow := make(chan error, 1)
		go func() {
			m, err := u.Call(t.Context(), "tools/call", tool("slow"), nil)
			if err == nil && string(m.Result) != `{"late":true}` {
				t.Errorf("result %s", m.Result)
			}
			slow <- err
		}()
		<-arrived
		_, err := u.Call(t.Context(), "tools/call", tool("x"), nil)
		wantLost(t, err, true, ErrNoSession)
		<-u.Done()
		if !errors.Is(u.Err(), ErrNoSession) {
			t.Errorf("Err() = %v", u.Err())
		}
		close(release)
		if err := <-slow; err != nil {
			t.Errorf("the call that was in flight: %v", err)
		}
		_, err = u.Call(t.Context(), "tools/call", tool("x"), nil)
		wantLost(t, err, false, ErrNoSession)
		_ = u.Close()
		if got := s.visits(http.MethodDelete); len(got) > 0 {
			t.Error("a session that is over was deleted")
		}
	})
	t.Run("ended by us", func(t *testing.T) {
		arrived := make(chan struct{})
		s := newSite(t, &site{session: "s-1", call: func(w http.ResponseWriter, r *http.Request, _ peerMessage) {
			close(arrived)
			<-r.Context().Done()
		}})
		u := dial(t, s.target())
		ended := make(chan error, 1)
		go func() {
			_, err := u.Call(t.Context(), "tools/call", tool("x"), nil)
			ended <- err
		}()
		<-arrived
		if err := u.Close(); err != nil {
			t.Error(err)
		}
		wantLost(t, <-ended, true, ErrUpstreamClosed)
		_ = u.Close()
		if got := s.visits(http.MethodDelete); len(got) != 1 || got[0].header.Get("Mcp-Session-Id") != "s-1" {
			t.Errorf("deleted %v", got)
		}
	})
	t.Run("404 without a session is an answer", func(t *testing.T) {
		s := newSite(t, &site{modern: true, call: func(w http.ResponseWriter, _ *http.Request, m peerMessage) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, m.ID)
		}})
		m := mustCall(t, dial(t, s.target()), tool("x"), nil)
		contains(t, "error", m.Error, `-32601`)
	})
	t.Run("id that is no header", func(t *testing.T) {
		s := newSite(t, &site{session: "caf\u00e9"})
		if _, err := Dial(t.Context(), s.target()); err == nil {
			t.Error("accepted")
		}
	})
}

// Sent is false only when nothing was written.
func TestRemoteSent(t *testing.T) {
	s := newSite(t, &site{modern: true})
	s.Config.SetKeepAlivesEnabled(false) // a connection for every message
	target := s.target()
	var refuse atomic.Bool
	target.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if refuse.Load() {
			return nil, errors.New("refused")
		}
		return (&net.Dialer{}).DialContext(ctx, network, addr)
	}
	u := dial(t, target)
	refuse.Store(true)
	_, err := u.Call(t.Context(), "tools/call", tool("x"), nil)
	wantLost(t, err, false, nil)
	wantLost(t, u.Notify(t.Context(), "notifications/x", nil), false, nil)
	refuse.Store(false)
	mustCall(t, u, tool("x"), nil)
	if err := u.Notify(t.Context(), "notifications/x", []byte(`{"n":1.10}`)); err != nil {
		t.Fatal(err)
	}
	v := s.visits("notifications/x")[0]
	if string(v.Params) != `{"n":1.10}` || v.header.Get("Mcp-Method") != "notifications/x" || v.header.Get("Mcp-Protocol-Version") != "2026-07-28" {
		t.Errorf("came %s with %v", v.body, v.header)
	}
}

func TestRemoteStandingStream(t *testing.T) {
	var opened []string
	s := &site{session: "s-1", came: make(chan visit, 8)}
	s.standing = func(w http.ResponseWriter, r *http.Request) {
		opened = append(opened, r.Header.Get("Last-Event-ID"))
		say := says(w)
		if len(opened) == 1 {
			say("id: e1", "retry: 1", noteLine("notifications/tools/list_changed", `{"n":1.10}`))
			return
		}
		say(`data: {"jsonrpc":"2.0","id":"r","method":"roots/list"}`)
		say(`data: {"jsonrpc":"2.0","id":"p","method":"ping"}`)
		<-r.Context().Done()
	}
	target := newSite(t, s).target()
	stray := &listener{noted: make(chan Message, 8), ask: func(context.Context, Message) ([]byte, *Error) {
		return []byte(`{"roots":[]}`), nil
	}}
	target.Stray = stray
	u := dial(t, target)
	if m := <-stray.noted; m.Method != "notifications/tools/list_changed" || string(m.Params) != `{"n":1.10}` {
		t.Errorf("got %s", m.Raw)
	}
	var got []string
	for len(got) < 2 {
		if v := <-s.came; v.Method == "" {
			got = append(got, v.body)
		}
	}
	slices.Sort(got)
	if want := []string{`{"jsonrpc":"2.0","id":"p","result":{}}`, `{"jsonrpc":"2.0","id":"r","result":{"roots":[]}}`}; !slices.Equal(got, want) {
		t.Errorf("answered %q", got)
	}
	_ = u.Close()
	if !slices.Equal(opened, []string{"", "e1"}) {
		t.Errorf("opened after %q", opened)
	}
}

// A stream whose answer has come gives its connection back.
func TestRemoteReusesConnections(t *testing.T) {
	both(t, func(t *testing.T, s *site) {
		answered := make(chan struct{})
		s.call = func(w http.ResponseWriter, _ *http.Request, m peerMessage) {
			says(w)(resultLine(m.ID, `{}`))
			<-answered // the stream ends only when the call is over
		}
		newSite(t, s)
		target := s.target()
		var dials atomic.Int32
		target.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials.Add(1)
			return (&net.Dialer{}).DialContext(ctx, network, addr)
		}
		u := dial(t, target)
		for range 50 {
			ctx, cancel := context.WithCancel(t.Context())
			if _, err := u.Call(ctx, "tools/call", tool("x"), nil); err != nil {
				t.Fatal(err)
			}
			cancel() // the end of the call's context must not close the connection
			answered <- struct{}{}
		}
		if n := dials.Load(); n > 10 {
			t.Errorf("%d connections for 50 calls", n)
		}
	})
}

func TestRemoteTLS(t *testing.T) {
	s := &site{t: t, modern: true}
	arrived, left := make(chan struct{}), make(chan struct{})
	s.call = func(w http.ResponseWriter, r *http.Request, m peerMessage) {
		if r.ProtoMajor != 2 {
			t.Errorf("spoke %s", r.Proto)
		}
		if !strings.Contains(string(m.Params), "hang") {
			answerJSON(w, m.ID, `{}`)
			return
		}
		says(w)
		close(arrived)
		<-r.Context().Done()
		close(left)
	}
	s.Server = httptest.NewUnstartedServer(s)
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)

	if _, err := Dial(t.Context(), s.target()); err == nil {
		t.Fatal("an unknown certificate was accepted")
	}
	target := s.target()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	target.TLS = &tls.Config{RootCAs: roots}
	u := dial(t, target)
	mustCall(t, u, tool("x"), nil)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := u.Call(ctx, "tools/call", tool("hang"), nil)
		ended <- err
	}()
	<-arrived
	cancel()
	wantLost(t, <-ended, true, context.Canceled)
	<-left
	mustCall(t, u, tool("x"), nil)
}
