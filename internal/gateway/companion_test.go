package gateway

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/mcp"
	"github.com/ayegate/ayegate/internal/store"
)

func awaiting(id string) string { return `{"name":"await_approval","arguments":{"id":"` + id + `"}}` }

// held makes a request that waits and whose agent was told to come back.
func (r *rig) held(c mcp.Client, method, params string) *approval.Request {
	r.t.Helper()
	r.say(c, method, params).contains(r.t, "TOOL_BLOCKED_PENDING_APPROVAL")
	return r.pending()
}

func TestAwaitApproval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := legacyServer()
		r := newRig(t, one(s))
		defer r.close()
		q := r.held(agent("bot"), "tools/call", write)
		x, _ := r.start(agent("bot"), "tools/call", `{"name":"await_approval","arguments":{"id":"`+strings.ToLower(q.Code)+`"},"_meta":{"progressToken":"p"}}`)
		sleep(11 * time.Second)
		r.decide(q, true)
		<-x.done
		if x.result != `{"content":[{"type":"text","text":"done"}],"isError":false,"n":1.10}` {
			t.Errorf("not the tool's own result: %s %v", x.result, x.fault)
		}
		if len(x.told("notifications/progress")) != 2 {
			t.Errorf("progress %q", x.notes)
		}
		// The judged part is what runs, with the waiting exchange's own token.
		if got := s.sent("tools/call"); len(got) != 1 || got[0] != `{"name":"write","arguments":{"p":"x"},"_meta":{"progressToken":"p"}}` {
			t.Errorf("the server got %q", got)
		}
		// An agent that forgot the result may read it again while it is kept.
		r.say(agent("bot"), "tools/call", awaiting(string(q.ID))).contains(t, `"text":"done"`)
		if len(s.sent("tools/call")) != 1 {
			t.Error("ran twice")
		}
	})
}

func TestAwaitApprovalOfAnotherMethodIsAToolResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := legacyServer()
		s.serve = func(context.Context, *server, string, []byte, mcp.Answers) (mcp.Message, error) {
			return result(peerRead), nil
		}
		r := newRig(t, one(s))
		defer r.close()
		q := r.held(agent("bot"), "resources/read", `{"uri":"file:///a"}`)
		r.decide(q, true)
		x := r.say(agent("bot"), "tools/call", awaiting(q.Code))
		if got := x.texts(); len(got) != 1 || got[0] != peerRead {
			t.Errorf("%s", x.result)
		}
		if got := s.sent("resources/read"); len(got) != 1 || got[0] != `{"uri":"file:///a"}` {
			t.Errorf("the server got %q", got)
		}
	})
}

func TestAwaitApprovalWaitsAsLongAsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, one(legacyServer()))
		defer r.close()
		q := r.held(agent("bot"), "tools/call", write)
		for seconds, want := range map[string]time.Duration{"0": 0, "7": 7 * time.Second, "900": 45 * time.Second} {
			began := time.Now()
			x := r.say(agent("bot"), "tools/call", `{"name":"await_approval","arguments":{"id":"`+q.Code+`","wait_seconds":`+seconds+`}}`)
			x.contains(t, "TOOL_BLOCKED_PENDING_APPROVAL")
			if took := time.Since(began); took != want {
				t.Errorf("wait_seconds %s: waited %s", seconds, took)
			}
		}
	})
}

func TestCompanionsTakeNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := legacyServer()
		r := newRig(t, one(s))
		defer r.close()
		q := r.held(agent("bot"), "tools/call", write)
		for _, args := range []string{
			`{}`, `[]`, `"x"`, `{"id":7}`, `{"id":"` + q.Code + `","arguments":{"p":"y"}}`, `{"id":"` + q.Code + `","approve":true}`,
			`{"id":"` + q.Code + `","wait_seconds":-1}`, `{"id":"` + q.Code + `","wait_seconds":"9"}`,
		} {
			for _, name := range []string{"await_approval", "cancel_approval"} {
				x := r.say(agent("bot"), "tools/call", `{"name":"`+name+`","arguments":`+args+`}`)
				if x.fault == nil || x.fault.Code != mcp.CodeInvalidParams {
					t.Errorf("%s %s: %s", name, args, x.result)
				}
			}
		}
		if r.pending().State != approval.Pending {
			t.Error("the request moved")
		}
	})
}

// API-01, API-03: another agent's request and an absent one are the same.
func TestCompanionsReachOwnRequestsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, one(legacyServer()))
		defer r.close()
		q := r.held(agent("bot"), "tools/call", write)
		for _, name := range []string{"await_approval", "cancel_approval"} {
			for _, id := range []string{q.Code, string(q.ID)} {
				foreign := r.say(agent("eve"), "tools/call", `{"name":"`+name+`","arguments":{"id":"`+id+`"}}`)
				absent := strings.Repeat("Z", len(id))
				none := r.say(agent("eve"), "tools/call", `{"name":"`+name+`","arguments":{"id":"`+absent+`"}}`)
				if strings.ReplaceAll(foreign.result, id, "") != strings.ReplaceAll(none.result, absent, "") || foreign.result == "" {
					t.Errorf("%s tells them apart:\n%s\n%s", name, foreign.result, none.result)
				}
			}
		}
		if r.pending().State != approval.Pending {
			t.Error("somebody else's request moved")
		}
	})
}

func TestCancelApproval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := legacyServer()
		hold := make(chan struct{})
		s.serve = func(context.Context, *server, string, []byte, mcp.Answers) (mcp.Message, error) {
			<-hold
			return result(`{"content":[]}`), nil
		}
		r := newRig(t, one(s))
		defer r.close()
		q := r.held(agent("bot"), "tools/call", write)
		x := r.say(agent("bot"), "tools/call", `{"name":"cancel_approval","arguments":{"id":"`+q.Code+`"}}`)
		x.contains(t, "TOOL_APPROVAL_WITHDRAWN", "did not run", `"status":"cancelled"`)
		if strings.Contains(x.result, `"isError":true`) {
			t.Errorf("withdrawing is no error: %s", x.result)
		}
		if got, err := r.desk.Get(context.Background(), raj, q.ID); err != nil || got.State != approval.Cancelled {
			t.Errorf("%v %v", got.State, err)
		}
		// Once it runs it is too late.
		y, _ := r.start(agent("bot"), "tools/call", `{"name":"write","arguments":{"n":2}}`)
		sleep(time.Second)
		q = r.pending()
		r.decide(q, true)
		sleep(time.Second)
		r.say(agent("bot"), "tools/call", `{"name":"cancel_approval","arguments":{"id":"`+q.Code+`"}}`).contains(t, "Too late", `"isError":true`)
		close(hold)
		<-y.done
	})
}

// API-01: whatever an agent sends, none of it decides. Every method and every tool
// name that sounds like a decision is tried against a waiting request.
func TestNoMethodDecides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := one(legacyServer())
		c.hold = Hold{Default: time.Millisecond}
		r := newRig(t, c)
		defer r.close()
		q := r.held(agent("bot"), "tools/call", write)
		args := `{"id":"` + string(q.ID) + `","code":"` + q.Code + `","approve":true,"decision":"approve","digest":"` + q.Digest.String() + `"}`
		for _, name := range []string{
			"approve", "approve_approval", "decide", "ayegate__approve", "ayegate__await_approval", "ayegate__decide", "gateway__approve", "mcp:approve", "confirm", "grant",
		} {
			r.say(agent("bot"), "tools/call", `{"name":"`+name+`","arguments":`+args+`}`)
			r.say(modernAgent("bot", `{}`), "tools/call", `{"name":"`+name+`","arguments":`+args+`}`)
		}
		for _, method := range []string{"approvals/decide", "approve", "ayegate/approve", "requests/decide", "elicitation/create", "tasks/update", "dev.ayegate/approve"} {
			r.say(agent("bot"), method, args)
			r.g.Notification(context.Background(), agent("bot"), mcp.Message{Method: "notifications/" + method, Params: []byte(args)})
		}
		got, err := r.desk.Get(context.Background(), raj, q.ID)
		if err != nil || got.State != approval.Pending || len(got.Decisions) != 0 {
			t.Fatalf("%v: %s, %v", err, got.State, got.Decisions)
		}
		for q, err := range r.mem.List(context.Background(), store.Filter{}) {
			if err != nil || len(q.Decisions) > 0 || q.State == approval.Approved || q.State == approval.Executed {
				t.Errorf("%s is %s", q.Call.Tool(), q.State)
			}
		}
	})
}

func TestCompanionsAreListedAndAnnotated(t *testing.T) {
	s := legacyServer()
	r := newRig(t, one(s))
	defer r.close()
	list := []byte(r.say(agent("bot"), "tools/list", "").result)
	tools := elements(get(list, "tools"))
	if len(tools) != 6 || textAt(tools[4], "name") != "await_approval" || textAt(tools[5], "name") != "cancel_approval" {
		t.Fatalf("%s", list)
	}
	for name, want := range map[string]string{"readOnlyHint": "true", "destructiveHint": "false", "idempotentHint": "true", "openWorldHint": "false"} {
		if got := string(get(tools[4], "annotations", name)); got != want {
			t.Errorf("%s is %s", name, got)
		}
	}
}

func TestCompanionsGiveWayToAServersTool(t *testing.T) {
	s := legacyServer()
	s.tools = `{"name":"await_approval","inputSchema":{"type":"object"}},{"name":"ayegate__await_approval","inputSchema":{"type":"object"}}`
	c := one(s)
	c.policy = "version: 1\ndefaults: {unmatched: ask}\nrules:\n  - {id: all, tool: [\"fs.await_approval\"], allow: {tier: R0}}\n"
	r := newRig(t, c)
	defer r.close()
	var names []string
	for _, tool := range elements(get([]byte(r.say(agent("bot"), "tools/list", "").result), "tools")) {
		names = append(names, textAt(tool, "name"))
	}
	if got := strings.Join(names, " "); got != "await_approval ayegate__await_approval cancel_approval" {
		t.Errorf("listed %s", got)
	}
	r.say(agent("bot"), "tools/call", `{"name":"await_approval","arguments":{"id":"X"}}`)
	if got := s.sent("tools/call"); len(got) != 1 {
		t.Errorf("the server's own tool got %q", got)
	}
	r.say(agent("bot"), "tools/call", `{"name":"ayegate__await_approval","arguments":{"id":"XXXX"}}`).contains(t, "There is no such request")
	if got := s.sent("tools/call"); len(got) != 1 {
		t.Errorf("the server got %q", got)
	}
}
