package gateway

import (
	"context"
	"strings"
	"testing"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/mcp"
	"github.com/ayegate/ayegate/internal/policy"
)

const evil = `{"transfer":{"to":"mallory","amount":900.0},"_meta":{"also":1}}`

func (r *rig) tell(c mcp.Client, method, params string) {
	r.t.Helper()
	r.join(c)
	m := mcp.Message{Method: method}
	if params != "" {
		m.Params = []byte(params)
	}
	r.g.Notification(context.Background(), c, m)
}

func (s *server) heard() []sent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.told
}

// MCP-09: a notification that the protocol does not have for agents is judged like
// a call. What no rule allows is dropped, on the record and never open, so that no
// approval could run it later; what is allowed is sent as it was judged.
func TestNoticesAreJudged(t *testing.T) {
	for what, c := range map[string]struct {
		rule    string
		allowed bool
	}{
		"nobody allows it": {``, false},
		"a rule asks":      {`rules: [{id: r, tool: "*.mcp:notifications/evil", ask: {tier: R2}}]`, false},
		"a rule denies":    {`rules: [{id: r, tool: "*.mcp:notifications/evil", deny: {}}]`, false},
		"a rule allows":    {`rules: [{id: r, tool: "*.mcp:notifications/evil", allow: {tier: R2}}]`, true},
	} {
		t.Run(what, func(t *testing.T) {
			s := legacyServer()
			cfg := one(s)
			cfg.policy = "version: 1\n" + c.rule + "\n"
			r := newRig(t, cfg)
			defer r.close()
			r.tell(agent("bot"), "notifications/evil", evil)
			all := r.all()
			if len(all) != 1 || all[0].Call.Tool() != "mcp:notifications/evil" || string(all[0].Call.Args()) != `{"transfer":{"amount":900,"to":"mallory"}}` {
				t.Fatalf("on record: %+v", all)
			}
			told := s.heard()
			if c.allowed {
				if len(told) != 1 || told[0].params != string(all[0].Call.Args()) || all[0].State != approval.Executed {
					t.Fatalf("%q, %s", told, all[0].State)
				}
				return
			}
			if len(told) != 0 || all[0].State != approval.Denied || all[0].Cause != approval.ByPolicy || all[0].Verdict.Effect != policy.Deny {
				t.Fatalf("%q, %s", told, all[0].State)
			}
			if !strings.Contains(r.log.String(), "a notification of an agent was dropped") {
				t.Error("nothing in the log")
			}
		})
	}
}

// OPS-10, MCP-09: while all agents are paused nothing an agent makes up reaches a
// server, whatever the rules allow.
func TestNoticesWhilePaused(t *testing.T) {
	s := legacyServer()
	cfg := one(s)
	cfg.policy = "version: 1\nrules: [{id: all, tool: \"*.*\", allow: {tier: R0}}]\n"
	r := newRig(t, cfg)
	defer r.close()
	r.join(agent("bot"))
	if err := r.desk.Pause(context.Background(), raj, "x"); err != nil {
		t.Fatal(err)
	}
	r.tell(agent("bot"), "notifications/evil", evil)
	r.tell(agent("bot"), rootsChanged, evil)
	r.tell(agent("bot"), cancelled, evil)
	r.tell(agent("bot"), initialized, evil)
	r.say(agent("bot"), "logging/setLevel", `{"level":"debug","transfer":1,"_meta":{"transfer":1,"dev.ayegate/claim":"x"}}`)
	r.say(agent("bot"), "resources/list", evil)
	r.say(agent("bot"), "prompts/list", `{"cursor":"transfer 900 to mallory"}`)
	if told := s.heard(); len(told) != 1 || told[0] != (sent{rootsChanged, ""}) {
		t.Errorf("the server was told %q", told)
	}
	for method, want := range map[string]string{"logging/setLevel": `{"level":"debug","_meta":{}}`, "resources/list": `{"_meta":{}}`} {
		if got := s.sent(method); len(got) != 1 || got[0] != want {
			t.Errorf("%s: the server got %q", method, got)
		}
	}
	if got := s.sent("prompts/list"); got != nil {
		t.Errorf("a cursor that the server never gave: %q", got)
	}
}

// MCP-09: on the endpoint of all servers a notification names none of them.
func TestNoticesNeedOneServer(t *testing.T) {
	a, b := legacyServer(), legacyServer()
	r := newRig(t, two(a, b))
	defer r.close()
	r.say(merged("bot"), "tools/list", "")
	r.tell(merged("bot"), "notifications/evil", evil)
	r.tell(merged("bot"), rootsChanged, evil)
	for _, s := range []*server{a, b} {
		if told := s.heard(); len(told) != 1 || told[0].method != rootsChanged {
			t.Errorf("%q", told)
		}
	}
}

// Progress of what a server asked for carries what the protocol names, each member
// of its type.
func TestProgressIsNarrow(t *testing.T) {
	got := string(progress([]byte(`{"x":1,"progressToken":"t","progress":1.10,"total":{"amount":900},"message":"half","_meta":{"a":1}}`)))
	if got != `{"progressToken":"t","progress":1.10,"message":"half"}` {
		t.Error(got)
	}
	for sent, want := range map[string]string{
		`{"cursor":"c","_meta":{"progressToken":1.0,"x":1,"io.modelcontextprotocol/logLevel":"debug","traceparent":"00"},"y":1}`: `{"cursor":"c","_meta":{"progressToken":1.0,"io.modelcontextprotocol/logLevel":"debug","traceparent":"00"}}`,
		`{ "cursor" : "c\u0031" }`: `{ "cursor" : "c\u0031" }`,
		`{"x":1}`:                  `{}`,
	} {
		if got := string(narrowed("resources/list", []byte(sent))); got != want {
			t.Errorf("%s became %s, want %s", sent, got, want)
		}
	}
	if narrowed("resources/list", nil) != nil {
		t.Error("params out of nothing")
	}
}

// A cursor is good for the list that it came from, on the connection that it came from.
func TestCursorsAreTheServers(t *testing.T) {
	s := legacyServer()
	s.serve = func(context.Context, *server, string, []byte, mcp.Answers) (mcp.Message, error) {
		return result(`{"resources":[],"nextCursor":"p\u0032"}`), nil
	}
	r := newRig(t, one(s))
	defer r.close()
	r.say(agent("bot"), "resources/list", "")
	for _, x := range []*talk{
		r.say(agent("bot"), "prompts/list", `{"cursor":"p2"}`), r.say(agent("eve"), "resources/list", `{"cursor":"p2"}`),
		r.say(agent("bot"), "resources/list", `{"cursor":7}`), r.say(agent("bot"), "resources/list", `{"cursor":""}`),
	} {
		if x.fault == nil || x.fault.Code != mcp.CodeInvalidParams {
			t.Errorf("%s", x.result)
		}
	}
	if x := r.say(agent("bot"), "resources/list", `{"cursor":"p2"}`); x.fault != nil {
		t.Error(x.fault)
	}
}
