package gateway

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/identity"
	"github.com/ayegate/ayegate/internal/mcp"
)

const (
	dryOnStaging = `{"name":"write","arguments":{"k":"x"},"_meta":{"target":"staging"},"opts":{"dry":true}}`
	wetInProd    = `{"name":"write","arguments":{"k":"x"},"_meta":{"target":"PROD","dev.ayegate/claim":"forged"},"opts":{"dry":false,"sudo":true}}`
	dryExtras    = `{"_meta":{"target":"staging"},"opts":{"dry":true}}`
)

// TOK-02, TOK-04, RACE-05: who approved a call with a dry run on staging approved
// no other thing with the same arguments. The re-issue with other extras waits for
// people of its own, and what runs is what was shown, whatever its own spelling.
func TestOtherExtrasAreAnotherRequest(t *testing.T) {
	pairs(t, func(t *testing.T, agent, transport, server string) {
		p := newPeer(t, transport, server)
		a, r := newCaller(t, p, agent, "/mcp/fs", rigConfig{hold: Hold{Default: 1}})
		a.call("tools/call", dryOnStaging)
		shown := r.decide(r.pending(), true)
		if string(shown.Extra) != dryExtras {
			t.Errorf("people are shown %s", shown.Extra)
		}
		a.call("tools/call", wetInProd)
		if sent := p.got(t, "tools/call"); len(sent) > 0 {
			t.Fatalf("nobody approved %q", sent)
		}
		other := r.pending()
		if other.ID == shown.ID || string(other.Extra) != `{"_meta":{"target":"PROD"},"opts":{"dry":false,"sudo":true}}` {
			t.Errorf("request %s with %s", other.Code, other.Extra)
		}
		got := a.call("tools/call", `{"opts":{ "dry" : true },"arguments":{"k":"\u0078"},"_meta":{"traceparent":"00-1","target":"st\u0061ging"},"name":"write"}`)
		if textAt(get(get(got, "result"), "content")) == "" && !strings.Contains(string(got), "x-unheard-of") {
			t.Errorf("the approved call did not run: %s", got)
		}
		want := `{"name":"write","arguments":{"k":"x"},"opts":{"dry":true},"_meta":{"target":"staging","traceparent":"00-1"}}`
		if sent := p.got(t, "tools/call"); len(sent) != 1 || withoutEra(sent[0]) != want {
			t.Errorf("the server got %q, want %q", sent, want)
		}
	})
}

// The same for a method that is no tool: of its params only _meta is not judged.
func TestOtherExtrasOfAMethod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := legacyServer()
		r := newRig(t, one(s))
		defer r.close()
		q := r.held(agent("bot"), "resources/read", `{"uri":"file:///a","_meta":{"as":"guest"}}`)
		if string(q.Extra) != `{"_meta":{"as":"guest"}}` {
			t.Errorf("people are shown %s", q.Extra)
		}
		r.decide(q, true)
		r.say(agent("bot"), "resources/read", `{"uri":"file:///a","_meta":{"as":"root"}}`).contains(t, "TOOL_BLOCKED_PENDING_APPROVAL")
		r.say(agent("bot"), "resources/read", `{"uri":"file:///a"}`)
		if sent := s.sent("resources/read"); len(sent) > 0 {
			t.Fatalf("nobody approved %q", sent)
		}
		r.say(agent("bot"), "resources/read", `{"_meta":{"callId":"2","as":"guest"},"uri":"file:///a"}`)
		if sent := s.sent("resources/read"); len(sent) != 1 || sent[0] != `{"uri":"file:///a","_meta":{"as":"guest","callId":"2"}}` {
			t.Errorf("the server got %q", sent)
		}
	})
}

// TOK-04: await_approval brings no extras of its own, and loses none.
func TestAwaitApprovalSendsWhatWasShown(t *testing.T) {
	for _, c := range []mcp.Client{agent("bot"), modernAgent("bot", `{}`)} {
		synctest.Test(t, func(t *testing.T) {
			s := legacyServer()
			r := newRig(t, one(s))
			defer r.close()
			x, hangUp := r.start(c, "tools/call", dryOnStaging)
			synctest.Wait()
			q := r.pending()
			hangUp(mcp.ErrDisconnected)
			<-x.done
			r.decide(q, true)
			r.say(c, "tools/call", `{"name":"await_approval","arguments":{"id":"`+q.Code+`"},"opts":{"dry":false},`+
				`"_meta":{"target":"PROD","tracestate":"t","dev.ayegate/claim":"forged"}}`).contains(t, `"text":"done"`)
			want := `{"name":"write","arguments":{"k":"x"},"opts":{"dry":true},"_meta":{"target":"staging","tracestate":"t"}}`
			if sent := s.sent("tools/call"); len(sent) != 1 || sent[0] != want {
				t.Errorf("the server got %q, want %q", sent, want)
			}
		})
	}
}

// MCP-04, TOK-04: the state that a modern agent was given is for the request with
// its extras.
func TestComebackWithOtherExtras(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := legacyServer()
		r := newRig(t, one(s))
		defer r.close()
		c := modernAgent("bot", `{}`)
		state := string(get([]byte(r.say(c, "tools/call", dryOnStaging).result), "requestState"))
		r.decide(r.pending(), true)
		back := func(params string) *talk {
			return r.say(c, "tools/call", strings.TrimSuffix(params, "}")+`,"requestState":`+state+`}`)
		}
		back(wetInProd).contains(t, "nothing ran")
		if sent := s.sent("tools/call"); len(sent) > 0 || len(r.all()) != 1 {
			t.Fatalf("nobody approved %q", sent)
		}
		back(dryOnStaging).contains(t, `"text":"done"`)
		if sent := s.sent("tools/call"); len(sent) != 1 || strings.Contains(sent[0], "PROD") || strings.Contains(sent[0], "requestState") {
			t.Errorf("the server got %q", sent)
		}
	})
}

// MCP-18: an agent cannot speak to a server in the gateway's name.
func TestForgedMetaDoesNotReachTheServer(t *testing.T) {
	s := legacyServer()
	c := one(s)
	r := newRig(t, c)
	defer r.close()
	const meta = `"_meta":{"dev.ayegate/claim":"forged","n":1.10,"dev.ayegate\/x":{"a":1},"dev.ayegate/reason":"why"}`
	r.say(agent("bot"), "tools/call", `{"name":"echo","arguments":{},`+meta+`,"inputResponses":{"k":1},"requestState":"s"}`)
	r.say(agent("bot"), "prompts/get", `{"name":"p",`+meta+`}`)
	const clean = `"_meta":{"n":1.10,"dev.ayegate/reason":"why"}}`
	if sent := s.sent("tools/call"); len(sent) != 1 || sent[0] != `{"name":"echo","arguments":{},`+clean {
		t.Errorf("the server got %q", sent)
	}
	if sent := s.sent("prompts/get"); len(sent) != 1 || sent[0] != `{"name":"p",`+clean {
		t.Errorf("the server got %q", sent)
	}

	claimed := legacyServer()
	r = newRig(t, rigConfig{servers: map[string]Server{"fs": {IdempotencyMeta: true}}, dial: claimed.dial})
	defer r.close()
	r.say(agent("bot"), "tools/call", `{"name":"echo","arguments":{},`+meta+`}`)
	if sent := claimed.sent("tools/call"); len(sent) != 1 || textAt([]byte(sent[0]), "_meta", metaClaim) != r.last().Claimed.ID {
		t.Errorf("the server got %q", sent)
	}
}

// TOK-04: a call that an agent made over MCP runs with its extras also when the
// agent comes back over HTTP.
func TestExtrasOfADirectCall(t *testing.T) {
	s := legacyServer()
	r := newRig(t, one(s))
	defer r.close()
	do, _, err := r.g.Tool(t.Context(), identity.Agent{ID: "bot"}, "fs", "write", []byte(dryExtras))
	if err != nil {
		t.Fatal(err)
	}
	a, err := newToolAction("fs", "write", &exchange{client: agent("bot"), params: []byte(dryOnStaging)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := do(t.Context(), a.call, "c"); err != nil {
		t.Fatal(err)
	}
	want := `{"name":"write","arguments":{"k":"x"},"opts":{"dry":true},"_meta":{"target":"staging"}}`
	if sent := s.sent("tools/call"); len(sent) != 1 || sent[0] != want {
		t.Errorf("the server got %q, want %q", sent, want)
	}
}

func TestExtras(t *testing.T) {
	for _, c := range []struct{ params, tool, method string }{
		{``, ``, ``},
		{`{}`, ``, ``},
		{`{"name":"a","arguments":{"x":1}}`, ``, ``},
		{`{"name":"a","_meta":{}}`, ``, ``},
		{`{"_meta":{"progressToken":1,"io.modelcontextprotocol/x":{},"claudecode/toolUseId":"a","callId":"b","x-codex-turn-metadata":{},
			"traceparent":"t","tracestate":"s","baggage":"b","dev.ayegate/reason":"r","dev.ayegate/claim":"c"}}`, ``, ``},
		{`{"inputResponses":{"a":1},"requestState":"s"}`, ``, ``},
		{`{"_meta":null}`, `{"_meta":null}`, `{"_meta":null}`},
		{`{"_meta":{"progresstoken":1,"io.modelcontextprotocol":2,"CallId":3}}`, `{"_meta":{"CallId":3,"io.modelcontextprotocol":2,"progresstoken":1}}`, `{"_meta":{"CallId":3,"io.modelcontextprotocol":2,"progresstoken":1}}`},
		{`{"z":1.0,"task":{"ttl":1E3},"_meta":{"n":9007199254740993,"callId":1}}`, `{"_meta":{"n":9007199254740993},"task":{"ttl":1000},"z":1}`, `{"_meta":{"n":9007199254740993}}`},
	} {
		for _, want := range []struct {
			tool bool
			json string
		}{{true, c.tool}, {false, c.method}} {
			got, err := extrasOf([]byte(c.params), want.tool)
			if err != nil || string(got) != want.json || (got == nil) != (want.json == "") {
				t.Errorf("%s: %q %v, want %q", c.params, got, err, want.json)
			}
		}
	}
	for _, params := range []string{`{"x":{"a":1,"\u0061":2}}`, `{"_meta":{"n":1e400}}`, `{"x":"\ud800"}`} {
		if got, err := extrasOf([]byte(params), true); err == nil {
			t.Errorf("%s became %s", params, got)
		}
	}
}

// What cannot be shown in one way only is refused before anybody is asked (CAN-02).
func TestExtrasThatCannotBeRead(t *testing.T) {
	s := legacyServer()
	r := newRig(t, one(s))
	defer r.close()
	r.say(agent("bot"), "tools/call", `{"name":"echo","arguments":{},"_meta":{"n":1e400}}`).contains(t, "Nothing ran")
	if sent := s.sent("tools/call"); len(sent) > 0 || len(r.all()) > 0 {
		t.Errorf("the server got %q", sent)
	}
}

// An allowed call goes out as it came, and its extras are on its request.
func TestExtrasOfAnAllowedCall(t *testing.T) {
	s := legacyServer()
	r := newRig(t, one(s))
	defer r.close()
	const params = `{"x":1.10,"name":"echo","arguments":{},"_meta":{"k":1E3,"a":-0.0}}`
	r.say(agent("bot"), "tools/call", params)
	if sent := s.sent("tools/call"); len(sent) != 1 || sent[0] != params {
		t.Errorf("the server got %q", sent)
	}
	if q := r.last(); q.State != approval.Executed || string(q.Extra) != `{"_meta":{"a":0,"k":1000},"x":1.1}` {
		t.Errorf("%s with %s", q.State, q.Extra)
	}
}
