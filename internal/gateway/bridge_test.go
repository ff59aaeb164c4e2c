package gateway

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/mcp"
)

const askTool = `{"name":"ask","arguments":{}}`

// asker is a legacy server that asks before it answers.
func asker(asks ...mcp.Message) func(context.Context, *server, string, []byte, mcp.Answers) (mcp.Message, error) {
	return func(ctx context.Context, _ *server, _ string, _ []byte, to mcp.Answers) (mcp.Message, error) {
		var got []string
		for _, m := range asks {
			result, e := to.Ask(ctx, m)
			if e != nil {
				got = append(got, "error "+e.Message+string(e.Raw))
				continue
			}
			got = append(got, string(result))
		}
		return result(`{"content":[{"type":"text","text":` + string(quoted(strings.Join(got, "|"))) + `}]}`), nil
	}
}

var (
	elicit = mcp.Message{Method: "elicitation/create", Params: []byte(`{"message":"sure?","requestedSchema":{"x":1.10}}`)}
	sample = mcp.Message{Method: "sampling/createMessage", Params: []byte(`{"messages":[],"n":9007199254740993}`)}
	roots  = mcp.Message{Method: "roots/list"}
)

func TestServersRequestsReachTheAgent(t *testing.T) {
	s := legacyServer()
	s.serve = asker(elicit, sample, roots, mcp.Message{Method: "x/odd", Params: []byte(`{"k":1.10}`)})
	r := newRig(t, one(s))
	defer r.close()
	c := agent("bot")
	c.Capabilities = []byte(`{"elicitation":{},"sampling":{},"roots":{}}`)
	x := newTalk(c, "tools/call", askTool)
	x.ask = func(method string, params []byte) mcp.Message {
		if method == "x/odd" {
			return rpcError(`{"code":-32601,"message":"what?","k":1.10}`)
		}
		return result(`{"to":"` + method + `","k":1.10}`)
	}
	r.join(c)
	r.g.Serve(context.Background(), x)
	want := `{"to":"elicitation/create","k":1.10}|{"to":"sampling/createMessage","k":1.10}|{"to":"roots/list","k":1.10}|error {"code":-32601,"message":"what?","k":1.10}`
	if got := x.texts(); len(got) != 1 || got[0] != want {
		t.Errorf("the server heard %q", got)
	}
	for i, m := range []mcp.Message{elicit, sample, roots} {
		if x.asked[i].method != m.Method || x.asked[i].params != string(m.Params) {
			t.Errorf("asked %q, want %s", x.asked[i], m.Params)
		}
	}
}

func TestWhatAnAgentCannotDoIsNotAsked(t *testing.T) {
	url := mcp.Message{Method: "elicitation/create", Params: []byte(`{"mode":"url","url":"https://x"}`)}
	for _, capabilities := range []string{`{}`, `{"elicitation":{"form":{}}}`} {
		for _, c := range []mcp.Client{agent("bot"), modernAgent("bot", capabilities)} {
			s := legacyServer()
			s.serve = asker(url, sample, roots)
			r := newRig(t, one(s))
			c.Capabilities = []byte(capabilities)
			x := r.say(c, "tools/call", askTool)
			if got := x.texts(); len(got) != 1 || strings.Count(got[0], "cannot be asked") != 3 {
				t.Errorf("%s: %s %v", capabilities, x.result, x.fault)
			}
			r.close()
		}
	}
}

// A modern agent in front of a legacy server that asks: the call is parked, the
// agent's request ends with what is needed, and its retry resumes the same run.
func TestParkedCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := legacyServer()
		s.serve = asker(elicit, sample)
		r := newRig(t, one(s))
		defer r.close()
		c := modernAgent("bot", `{"elicitation":{},"sampling":{}}`)
		x := r.say(c, "tools/call", askTool)
		if got := string(get([]byte(x.result), "inputRequests")); got != `{"aye-1":{"method":"elicitation/create","params":{"message":"sure?","requestedSchema":{"x":1.10}}}}` {
			t.Fatalf("%s %v", x.result, x.fault)
		}
		state := func(x *talk) string { return string(get([]byte(x.result), "requestState")) }
		// An answer that is missing is asked for again.
		x = r.say(c, "tools/call", `{"name":"ask","arguments":{},"inputResponses":{"other":{}},"requestState":`+state(x)+`}`)
		if !has([]byte(x.result), "inputRequests", "aye-1") {
			t.Fatalf("%s %v", x.result, x.fault)
		}
		sleep(time.Minute)
		used := state(x)
		x = r.say(c, "tools/call", `{"name":"ask","arguments":{},"inputResponses":{"aye-1":{"action":"accept","k":1.10}},"requestState":`+used+`}`)
		if !has([]byte(x.result), "inputRequests", "aye-2") {
			t.Fatalf("%s %v", x.result, x.fault)
		}
		// MCP-04: a state that was used is not taken twice, nor with other arguments,
		// nor by another principal.
		r.say(modernAgent("eve", `{}`), "tools/call", `{"name":"ask","arguments":{},"inputResponses":{"aye-2":{}},"requestState":`+state(x)+`}`).contains(t, "requestState")
		r.say(c, "tools/call", `{"name":"ask","arguments":{"n":1},"inputResponses":{"aye-2":{}},"requestState":`+state(x)+`}`).contains(t, "requestState")
		x = r.say(c, "tools/call", `{"name":"ask","arguments":{},"inputResponses":{"aye-2":{"k":2}},"requestState":`+state(x)+`}`)
		if got := x.texts(); len(got) != 1 || got[0] != `{"action":"accept","k":1.10}|{"k":2}` {
			t.Errorf("%s %v", x.result, x.fault)
		}
		if n := len(s.sent("tools/call")); n != 1 || len(r.all()) != 1 {
			t.Errorf("%d runs of %d requests", n, len(r.all()))
		}
		// MCP-04: after completion the old state runs nothing.
		y := r.say(c, "tools/call", `{"name":"ask","arguments":{},"inputResponses":{"aye-1":{}},"requestState":`+used+`}`)
		if len(s.sent("tools/call")) != 1 || strings.Contains(y.result, "accept") {
			t.Errorf("%s", y.result)
		}
	})
}

func TestParkedCallsAreBoundedInTimeAndNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := legacyServer()
		s.serve = asker(elicit)
		c := one(s)
		c.limits = Limits{Parked: 2, ParkedFor: time.Minute}
		r := newRig(t, c)
		defer r.close()
		a := modernAgent("bot", `{"elicitation":{}}`)
		var last *talk
		for range 2 {
			if last = r.say(a, "tools/call", askTool); !strings.Contains(last.result, "input_required") {
				t.Fatalf("%s", last.result)
			}
		}
		if x := r.say(a, "tools/call", askTool); strings.Contains(x.result, "input_required") {
			t.Errorf("a third was parked: %s", x.result)
		}
		sleep(2 * time.Minute)
		if n := len(r.g.parked); n != 0 {
			t.Errorf("%d are still parked", n)
		}
		for _, q := range r.all() {
			if q.State == approval.Executing {
				t.Errorf("request %s is still running", q.Code)
			}
		}
		// The agent comes back too late: it ran to its end without the answer.
		x := r.say(a, "tools/call", `{"name":"ask","arguments":{},"inputResponses":{"aye-1":{}},"requestState":`+string(get([]byte(last.result), "requestState"))+`}`)
		x.contains(t, "ran before")
		// There is room again.
		r.say(a, "tools/call", askTool).contains(t, "input_required")
	})
}

// A modern server asks by ending its request; a legacy agent is asked one by one,
// and the call is sent again with the answers, the state and nothing else changed.
func TestRoundsForALegacyAgent(t *testing.T) {
	s := modernServer()
	round := 0
	s.serve = func(context.Context, *server, string, []byte, mcp.Answers) (mcp.Message, error) {
		if round++; round < 3 {
			return result(`{"resultType":"input_required","inputRequests":{"b":{"method":"elicitation/create","params":{"message":"1.10"}},"a":{"method":"roots/list"}},"requestState":"s` + strings.Repeat("\\u0041", round) + `"}`), nil
		}
		return result(`{"resultType":"complete","content":[],"k":1.10}`), nil
	}
	r := newRig(t, one(s))
	defer r.close()
	c := agent("bot")
	c.Capabilities = []byte(`{"elicitation":{},"roots":{}}`)
	x := newTalk(c, "tools/call", `{"name":"ask","arguments":{},"x":1.10}`)
	x.ask = func(method string, params []byte) mcp.Message { return result(`{"m":"` + method + `","k":1.10}`) }
	r.join(c)
	r.g.Serve(context.Background(), x)
	if x.result != `{"resultType":"complete","content":[],"k":1.10}` {
		t.Errorf("%s %v", x.result, x.fault)
	}
	answers := `"inputResponses":{"b":{"m":"elicitation/create","k":1.10},"a":{"m":"roots/list","k":1.10}}`
	want := []string{
		`{"name":"ask","arguments":{},"x":1.10}`,
		`{"name":"ask","arguments":{},"x":1.10,` + answers + `,"requestState":"s\u0041"}`,
		`{"name":"ask","arguments":{},"x":1.10,` + answers + `,"requestState":"s\u0041\u0041"}`,
	}
	got := s.sent("tools/call")
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			t.Errorf("round %d: %q, want %q", i, got, want[i])
			break
		}
	}
	if q := r.all(); len(q) != 1 || q[0].State != approval.Executed {
		t.Errorf("%d requests", len(q))
	}
}

func TestRoundsThatAskForWhatTheAgentRefuses(t *testing.T) {
	s := modernServer()
	s.serve = func(_ context.Context, _ *server, _ string, params []byte, _ mcp.Answers) (mcp.Message, error) {
		if has(params, "inputResponses") {
			return result(`{"resultType":"complete","content":[{"type":"text","text":` + string(quoted(string(get(params, "inputResponses")))) + `}]}`), nil
		}
		kind := textAt(params, "arguments", "kind")
		return result(`{"resultType":"input_required","inputRequests":{"a":{"method":"` + kind + `","params":{}}},"requestState":"s"}`), nil
	}
	r := newRig(t, one(s))
	defer r.close()
	x := r.say(agent("bot"), "tools/call", `{"name":"ask","arguments":{"kind":"elicitation/create"}}`)
	x.contains(t, `{\"a\":{\"action\":\"cancel\"}}`)
	y := r.say(agent("bot"), "tools/call", `{"name":"ask","arguments":{"kind":"sampling/createMessage"}}`)
	y.contains(t, "needs input that it did not get")
	if q := r.last(); q.State != approval.Failed || q.Execution.Outcome != approval.Errored {
		t.Errorf("%s %s", q.State, q.Execution.Outcome)
	}
}

func TestRoundsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := modernServer()
		s.serve = func(context.Context, *server, string, []byte, mcp.Answers) (mcp.Message, error) {
			return result(`{"resultType":"input_required","requestState":"busy"}`), nil
		}
		r := newRig(t, one(s))
		defer r.close()
		for _, c := range []mcp.Client{agent("bot"), modernAgent("bot", `{}`)} {
			before := len(s.sent("tools/call"))
			r.say(c, "tools/call", askTool).contains(t, "too often")
			if n := len(s.sent("tools/call")) - before; n != 1+maxRounds {
				t.Errorf("sent %d times", n)
			}
		}
	})
}

// A modern agent in front of a modern server: the server's questions pass byte for
// byte, its state stays here, and a held call that asks is still one approval.
func TestRoundsForAModernAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := modernServer()
		s.serve = func(_ context.Context, _ *server, _ string, params []byte, _ mcp.Answers) (mcp.Message, error) {
			if has(params, "requestState") {
				return result(`{"resultType":"complete","content":[],"k":1.10}`), nil
			}
			return result(`{"resultType":"input_required","inputRequests":{"k1":{"method":"elicitation/create","params":{"x":1.10}}},"requestState":"the server's own"}`), nil
		}
		r := newRig(t, one(s))
		defer r.close()
		c := modernAgent("bot", `{"elicitation":{}}`)
		x, _ := r.start(c, "tools/call", write)
		sleep(time.Second)
		r.decide(r.pending(), true)
		<-x.done
		if got := string(get([]byte(x.result), "inputRequests")); got != `{"k1":{"method":"elicitation/create","params":{"x":1.10}}}` {
			t.Fatalf("%s %v", x.result, x.fault)
		}
		if strings.Contains(x.result, "the server's own") {
			t.Error("the server's state reached the agent")
		}
		y := r.say(c, "tools/call", writeWith(`"inputResponses":{"k1":{"action":"accept","z":1.10}},"requestState":`+string(get([]byte(x.result), "requestState"))))
		if y.result != `{"resultType":"complete","content":[],"k":1.10}` {
			t.Errorf("%s %v", y.result, y.fault)
		}
		got := s.sent("tools/call")
		if len(got) != 2 || got[1] != writeWith(`"inputResponses":{"k1":{"action":"accept","z":1.10}},"requestState":"the server's own"`) {
			t.Errorf("the server got %q", got)
		}
		synctest.Wait()
		if q := r.all(); len(q) != 1 || q[0].State != approval.Executed || q[0].Execution.PickedUp.IsZero() {
			t.Errorf("%d requests, %s", len(q), q[0].State)
		}
	})
}

func TestProgressFollowsTheAgentsNextRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := legacyServer()
		s.serve = func(ctx context.Context, _ *server, _ string, params []byte, to mcp.Answers) (mcp.Message, error) {
			_, _ = to.Ask(ctx, elicit)
			to.Notification(mcp.Message{Method: "notifications/progress", Params: []byte(`{"progressToken":"first","progress":1}`)})
			return result(`{"content":[]}`), nil
		}
		r := newRig(t, one(s))
		defer r.close()
		c := modernAgent("bot", `{"elicitation":{}}`)
		x := r.say(c, "tools/call", `{"name":"ask","arguments":{},"_meta":{"progressToken":"first"}}`)
		y := r.say(c, "tools/call", `{"name":"ask","arguments":{},"_meta":{"progressToken":"second"},"inputResponses":{"aye-1":{}},"requestState":`+string(get([]byte(x.result), "requestState"))+`}`)
		if got := y.told("notifications/progress"); len(got) != 1 || got[0] != `{"progressToken":"second","progress":1}` {
			t.Errorf("%q after %s", got, y.result)
		}
		if got := x.told("notifications/progress"); len(got) != 0 {
			t.Errorf("the ended exchange was told %q", got)
		}
	})
}

// A tool that its server runs only as a task: the agent knows of no tasks, the
// gateway waits for it, and what the server asks meanwhile reaches the agent.
func TestToolsThatRunOnlyAsTasks(t *testing.T) {
	for _, fails := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := legacyServer()
			s.about.Capabilities = []byte(`{"tools":{},"tasks":{"requests":{"tools":{"call":{}}}}}`)
			s.tools = `{"name":"ask","execution":{"taskSupport":"required"}},{"name":"echo","execution":{"taskSupport":"optional"}}`
			s.serve = func(ctx context.Context, _ *server, method string, params []byte, to mcp.Answers) (mcp.Message, error) {
				switch {
				case method == "tools/call" && has(params, "task"):
					return result(`{"task":{"taskId":"t\u0031","status":"working"}}`), nil
				case method == "tasks/result" && fails:
					return mcp.Message{}, &mcp.CallError{Sent: false, Err: errRefused}
				case method == "tasks/result":
					answer, _ := to.Ask(ctx, roots)
					return result(`{"content":[],"k":1.10,"heard":` + string(answer) + `}`), nil
				}
				return result(`{"content":[]}`), nil
			}
			r := newRig(t, one(s))
			defer r.close()
			c := agent("bot")
			c.Capabilities = []byte(`{"roots":{}}`)
			x := newTalk(c, "tools/call", askTool)
			x.ask = func(string, []byte) mcp.Message { return result(`{"roots":[]}`) }
			r.join(c)
			r.g.Serve(context.Background(), x)
			synctest.Wait()
			if fails {
				x.contains(t, "TOOL_OUTCOME_UNKNOWN", "It may have run")
				if got := s.sent("tasks/cancel"); len(got) != 1 {
					t.Errorf("the server was told %q", got)
				}
				return
			}
			if x.result != `{"content":[],"k":1.10,"heard":{"roots":[]}}` {
				t.Errorf("%s %v", x.result, x.fault)
			}
			r.say(c, "tools/call", `{"name":"echo","arguments":{}}`)
			if got := s.sent("tools/call"); len(got) != 2 || got[0] != `{"name":"ask","arguments":{},"task":{"ttl":3600000}}` || got[1] != `{"name":"echo","arguments":{}}` {
				t.Errorf("the server got %q", got)
			}
			if got := s.sent("tasks/result"); len(got) != 1 || got[0] != `{"taskId":"t\u0031"}` {
				t.Errorf("the server got %q", got)
			}
		})
	}
}

func TestStrayTraffic(t *testing.T) {
	s := legacyServer()
	r := newRig(t, one(s))
	defer r.close()
	push := &pushed{}
	push.ask = func(method string, _ []byte) mcp.Message { return result(`{"roots":[],"k":1.10}`) }
	c := agent("bot")
	c.Capabilities = []byte(`{"roots":{}}`)
	if _, err := r.g.Initialize(context.Background(), c, nil, push); err != nil {
		t.Fatal(err)
	}
	r.g.Notification(context.Background(), c, mcp.Message{Method: "notifications/initialized"})
	if string(s.target.Capabilities) != `{"roots":{}}` || string(s.target.Info) != string(c.Info) || s.target.Version != c.Version {
		t.Errorf("the server was introduced to %+v", s.target)
	}
	for _, m := range []mcp.Message{
		{Method: resourcesChanged}, {Method: "notifications/message", Params: []byte(`{"k":1.10}`)}, {Method: "notifications/x-odd", Params: []byte(`{"k":1.10}`)},
	} {
		s.target.Stray.Notification(m)
		if got := push.told(m.Method); len(got) != 1 || got[0] != string(m.Params) {
			t.Errorf("%s: %q", m.Method, got)
		}
	}
	if got, e := s.target.Stray.Ask(context.Background(), roots); e != nil || string(got) != `{"roots":[],"k":1.10}` {
		t.Errorf("%s %v", got, e)
	}
	if _, e := s.target.Stray.Ask(context.Background(), sample); e == nil || e.Code != mcp.CodeMethodNotFound {
		t.Errorf("%v", e)
	}
	// And the other way: what the agent announces.
	r.g.Notification(context.Background(), c, mcp.Message{Method: "notifications/roots/list_changed", Params: []byte(`{"k":1.10}`)})
	r.g.Notification(context.Background(), c, mcp.Message{Method: "notifications/progress", Params: []byte(`{"progressToken":"nobody's","progress":1}`)})
	if len(s.told) != 1 || s.told[0].method != rootsChanged || s.told[0].params != "" {
		t.Errorf("the server was told %q", s.told)
	}
}

// A server that speaks before the agent's handshake is over is heard after it: its
// question about roots would otherwise fail, and it would work without them.
func TestServersThatSpeakTooEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := legacyServer()
		r := newRig(t, one(s))
		defer r.close()
		push := &pushed{refuse: 3}
		push.ask = func(string, []byte) mcp.Message { return result(`{"roots":[]}`) }
		c := agent("bot")
		c.Capabilities = []byte(`{"roots":{}}`)
		if _, err := r.g.Initialize(context.Background(), c, nil, push); err != nil {
			t.Fatal(err)
		}
		answer := make(chan string, 1)
		go s.target.Stray.Notification(mcp.Message{Method: promptsChanged})
		go func() {
			result, e := s.target.Stray.Ask(context.Background(), roots)
			answer <- fmt.Sprint(string(result), e)
		}()
		sleep(time.Second)
		if len(push.told(promptsChanged)) != 0 || len(push.asked) != 0 {
			t.Error("the agent heard of its server before its handshake was over")
		}
		r.g.Notification(context.Background(), c, mcp.Message{Method: "notifications/initialized"})
		if got := <-answer; got != `{"roots":[]}<nil>` {
			t.Errorf("%s", got)
		}
		if len(push.told(promptsChanged)) != 1 {
			t.Errorf("%q", push.notes)
		}
	})
}

// An agent that never says so is waited for once.
func TestAgentsThatNeverSayInitialized(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := legacyServer()
		r := newRig(t, one(s))
		defer r.close()
		push := &pushed{}
		if _, err := r.g.Initialize(context.Background(), agent("bot"), nil, push); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for range 3 {
			s.target.Stray.Notification(mcp.Message{Method: promptsChanged})
		}
		if took := time.Since(began); took != tellTime || len(push.told(promptsChanged)) != 3 {
			t.Errorf("%d told after %s", len(push.told(promptsChanged)), took)
		}
	})
}

func TestProgressOfAnAskedAgentGoesToWhoAsked(t *testing.T) {
	s := legacyServer()
	asked := mcp.Message{Method: "sampling/createMessage", Params: []byte(`{"_meta":{"progressToken":"t1"}}`)}
	s.serve = asker(asked)
	r := newRig(t, one(s))
	defer r.close()
	c := agent("bot")
	c.Capabilities = []byte(`{"sampling":{}}`)
	x := newTalk(c, "tools/call", askTool)
	x.ask = func(string, []byte) mcp.Message {
		r.g.Notification(context.Background(), c, mcp.Message{Method: "notifications/progress", Params: []byte(`{"progressToken":"t1","progress":1.10}`)})
		return result(`{}`)
	}
	r.join(c)
	r.g.Serve(context.Background(), x)
	if len(s.told) != 1 || s.told[0].params != `{"progressToken":"t1","progress":1.10}` {
		t.Errorf("%q", s.told)
	}
}

// subscriptions/listen of a modern agent, over a legacy and over a modern server.
func TestSubscriptionsOfAModernAgent(t *testing.T) {
	for name, s := range map[string]*server{"legacy": legacyServer(), "modern": modernServer()} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := one(s)
				// MCP-09: a resource that may not be read is not watched.
				c.policy = strings.Replace(testPolicy, "rules:", "rules:\n  - {id: secret, tool: [\"*.mcp:resources/subscribe\"], when: \"args.uri == 'file:///secret'\", deny: {}, why: no}", 1)
				r := newRig(t, c)
				defer r.close()
				a := modernAgent("bot", `{}`)
				x, cancel := r.start(a, "subscriptions/listen",
					`{"notifications":{"toolsListChanged":true,"resourcesListChanged":false,"resourceSubscriptions":["file:///a","file:///secret"]}}`)
				synctest.Wait()
				if got := x.told(acknowledged); len(got) != 1 ||
					got[0] != `{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["file:///a"]},"_meta":{"io.modelcontextprotocol/subscriptionId":7}}` {
					t.Fatalf("acknowledged %q, %s %v", got, x.result, x.fault)
				}
				from := s.target.Stray
				if name == "modern" {
					sleep(time.Second)
					var filter string
					if from, filter = s.subscription(); filter != `{"toolsListChanged":true,"resourceSubscriptions":["file:///a"]}` {
						t.Errorf("listening for %s", filter)
					}
				} else if got := s.sent("resources/subscribe"); len(got) != 1 || got[0] != `{"uri":"file:///a"}` {
					t.Errorf("subscribed %q", got)
				}
				for _, m := range []mcp.Message{
					{Method: toolsChanged},
					{Method: resourcesChanged},
					{Method: "notifications/message", Params: []byte(`{}`)},
					{Method: resourceUpdated, Params: []byte(`{"uri":"file:///a","k":1.10,"_meta":{"io.modelcontextprotocol/subscriptionId":99,"z":1}}`)},
					{Method: resourceUpdated, Params: []byte(`{"uri":"file:///b"}`)},
				} {
					from.Notification(m)
				}
				sleep(2 * time.Second)
				if got := x.told(toolsChanged); len(got) != 1 || got[0] != `{"_meta":{"io.modelcontextprotocol/subscriptionId":7}}` {
					t.Errorf("tools: %q", got)
				}
				if got := x.told(resourceUpdated); len(got) != 1 || got[0] != `{"uri":"file:///a","k":1.10,"_meta":{"z":1,"io.modelcontextprotocol/subscriptionId":7}}` {
					t.Errorf("resources: %q", got)
				}
				if len(x.told(resourcesChanged)) != 0 || len(x.told("notifications/message")) != 0 {
					t.Errorf("told what it did not ask for: %q", x.notes)
				}
				cancel(mcp.ErrDisconnected)
				<-x.done
				synctest.Wait()
				if name == "legacy" && len(s.sent("resources/unsubscribe")) != 1 {
					t.Error("the server was not told that nobody watches")
				}
			})
		})
	}
}

// A legacy agent in front of a modern server.
func TestSubscriptionsOfALegacyAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := modernServer()
		r := newRig(t, one(s))
		defer r.close()
		push := &pushed{}
		c := agent("bot")
		if _, err := r.g.Initialize(context.Background(), c, nil, push); err != nil {
			t.Fatal(err)
		}
		r.g.Notification(context.Background(), c, mcp.Message{Method: "notifications/initialized"})
		synctest.Wait()
		if _, filter := s.subscription(); filter != `{"toolsListChanged":true}` {
			t.Errorf("listening for %s", filter)
		}
		if x := r.say(c, "resources/subscribe", `{"uri":"file:///a"}`); x.result != `{}` {
			t.Errorf("%s %v", x.result, x.fault)
		}
		sleep(time.Second)
		to, filter := s.subscription()
		if filter != `{"toolsListChanged":true,"resourceSubscriptions":["file:///a"]}` {
			t.Errorf("listening for %s", filter)
		}
		to.Notification(mcp.Message{Method: resourceUpdated, Params: []byte(`{"uri":"file:///a","_meta":{"io.modelcontextprotocol/subscriptionId":4}}`)})
		if got := push.told(resourceUpdated); len(got) != 1 || got[0] != `{"uri":"file:///a","_meta":{}}` {
			t.Errorf("%q", got)
		}
		if s.sent("resources/subscribe") != nil {
			t.Error("a modern server got resources/subscribe")
		}
	})
}

func TestLogLevel(t *testing.T) {
	s := legacyServer()
	r := newRig(t, one(s))
	defer r.close()
	if x := r.say(agent("bot"), "logging/setLevel", `{"level":"debug","x":1.10}`); x.result != `{}` {
		t.Errorf("%s %v", x.result, x.fault)
	}
	if got := s.sent("logging/setLevel"); len(got) != 1 || got[0] != `{"level":"debug"}` {
		t.Errorf("%q", got)
	}
	for _, level := range []string{`"transfer 900"`, `{"amount":900}`, `null`} {
		if x := r.say(agent("bot"), "logging/setLevel", `{"level":`+level+`}`); x.fault == nil || x.fault.Code != mcp.CodeInvalidParams {
			t.Errorf("%s: %s", level, x.result)
		}
	}
	m := modernServer()
	r2 := newRig(t, one(m))
	defer r2.close()
	if x := r2.say(agent("bot"), "logging/setLevel", `{"level":"debug"}`); x.fault == nil || x.fault.Code != mcp.CodeMethodNotFound {
		t.Errorf("%s", x.result)
	}
}

var errRefused = errors.New("connection refused")

func TestAServerThatIsNotThere(t *testing.T) {
	r := newRig(t, rigConfig{
		servers: map[string]Server{"fs": {}},
		dial:    func(context.Context, mcp.Target) (mcp.Upstream, error) { return nil, errRefused },
	})
	defer r.close()
	r.say(modernAgent("bot", `{}`), "tools/call", write).contains(t, "server fs cannot be reached", "Nothing ran", `"isError":true`, `"ran\":false`)
	r.say(modernAgent("bot", `{}`), "tools/list", "").contains(t, "cannot be reached", "nothing ran")
	r.say(modernAgent("bot", `{}`), "resources/list", "").contains(t, "cannot be reached")
	r.say(modernAgent("bot", `{}`), "resources/read", `{"uri":"x"}`).contains(t, "cannot be reached", `"ran":false`)
	if _, err := r.g.Initialize(context.Background(), agent("bot"), nil, &pushed{}); err == nil || !strings.Contains(err.Message, "nothing ran") {
		t.Errorf("%v", err)
	}
	if n := len(r.all()); n != 0 {
		t.Errorf("%d requests were made for a server that is not there", n)
	}
}

// A dead connection fails the calls in flight on it and nothing else: what was
// sent is unknown, what was not is opened anew.
func TestRedialAfterDeath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := legacyServer()
		var mu sync.Mutex
		hang := true
		s.serve = func(ctx context.Context, _ *server, method string, _ []byte, _ mcp.Answers) (mcp.Message, error) {
			mu.Lock()
			wait := hang && method == "tools/call"
			mu.Unlock()
			if wait {
				<-ctx.Done()
			}
			return result(`{"content":[{"type":"text","text":"done"}]}`), nil
		}
		dials := 0
		c := one(s)
		c.dial = func(ctx context.Context, t mcp.Target) (mcp.Upstream, error) {
			dials++
			return s.dial(ctx, t)
		}
		r := newRig(t, c)
		defer r.close()
		r.say(agent("bot"), "resources/subscribe", `{"uri":"file:///a"}`)
		x, _ := r.start(agent("bot"), "tools/call", `{"name":"echo","arguments":{}}`)
		sleep(time.Second)
		s.kill()
		<-x.done
		x.contains(t, "TOOL_OUTCOME_UNKNOWN", "may have run")
		mu.Lock()
		hang = false
		mu.Unlock()
		r.say(agent("bot"), "tools/call", `{"name":"echo","arguments":{}}`).contains(t, "done")
		synctest.Wait()
		// What the agent had subscribed to is subscribed again.
		if n := len(s.sent("resources/subscribe")); dials != 2 || n != 2 {
			t.Errorf("dialled %d times, subscribed %d times", dials, n)
		}
	})
}

func TestIdleConnectionsAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := legacyServer()
		dials := 0
		c := one(s)
		c.dial = func(ctx context.Context, t mcp.Target) (mcp.Upstream, error) {
			dials++
			return s.dial(ctx, t)
		}
		c.limits.Idle = time.Minute
		r := newRig(t, c)
		defer r.close()
		for range 5 { // in use: not closed
			r.say(modernAgent("bot", `{}`), "tools/call", `{"name":"echo"}`)
			sleep(40 * time.Second)
		}
		if dials != 1 {
			t.Errorf("dialled %d times", dials)
		}
		sleep(3 * time.Minute)
		if s.open() != 0 {
			t.Error("an idle connection stays open")
		}
		r.say(modernAgent("bot", `{}`), "tools/call", `{"name":"echo"}`).contains(t, "done")
		if dials != 2 {
			t.Errorf("dialled %d times", dials)
		}
	})
}

// Every legacy session has its own connection; modern principals share one each.
func TestWhoSharesAConnection(t *testing.T) {
	var mu sync.Mutex
	dials := make(map[string]int)
	c := rigConfig{servers: map[string]Server{"fs": {}}, dial: func(ctx context.Context, t mcp.Target) (mcp.Upstream, error) {
		mu.Lock()
		defer mu.Unlock()
		dials[string(t.Capabilities)]++
		return legacyServer().dial(ctx, t)
	}}
	r := newRig(t, c)
	defer r.close()
	for _, session := range []string{"s1", "s2"} {
		a := agent("bot")
		a.Session, a.Capabilities = session, []byte(`{"of":"`+session+`"}`)
		if _, err := r.g.Initialize(context.Background(), a, nil, &pushed{}); err != nil {
			t.Fatal(err)
		}
		r.say(a, "tools/call", `{"name":"echo"}`)
		r.say(a, "tools/call", `{"name":"echo"}`)
	}
	for range 3 {
		r.say(modernAgent("bot", `{"x":1}`), "tools/call", `{"name":"echo"}`)
		r.say(modernAgent("eve", `{"x":2}`), "tools/call", `{"name":"echo"}`)
	}
	if dials[`{"of":"s1"}`] != 1 || dials[`{"of":"s2"}`] != 1 || dials[bridged] != 2 {
		t.Errorf("%v", dials)
	}
	a := agent("bot")
	a.Session = "s1"
	r.g.Close(a)
	if len(r.g.parties) != 3 {
		t.Errorf("%d parties", len(r.g.parties))
	}
}

// MCP-16: a server that does not answer in time frees its slot; what came of the
// call nobody knows, and the words say so.
func TestHungServer(t *testing.T) {
	for want, err := range map[approval.Cause]error{approval.ByTimeout: mcp.ErrCallLimit, approval.BySize: mcp.ErrTooLarge, approval.ByTransport: errRefused} {
		synctest.Test(t, func(t *testing.T) {
			s := legacyServer()
			s.serve = func(context.Context, *server, string, []byte, mcp.Answers) (mcp.Message, error) {
				return mcp.Message{}, &mcp.CallError{Sent: true, Err: err}
			}
			r := newRig(t, one(s))
			defer r.close()
			x, _ := r.start(agent("bot"), "tools/call", write)
			sleep(time.Second)
			r.decide(r.pending(), true)
			<-x.done
			x.contains(t, "TOOL_OUTCOME_UNKNOWN", "It may have run. Do not repeat it", `"isError":true`)
			if q := r.last(); q.State != approval.Unknown || q.Cause != want {
				t.Errorf("%s, %s", q.State, q.Cause)
			}
		})
	}
}

func TestNothingSentIsSaidSo(t *testing.T) {
	s := legacyServer()
	s.serve = func(context.Context, *server, string, []byte, mcp.Answers) (mcp.Message, error) {
		return mcp.Message{}, &mcp.CallError{Sent: false, Err: errRefused}
	}
	r := newRig(t, one(s))
	defer r.close()
	r.say(agent("bot"), "tools/call", `{"name":"echo"}`).contains(t, "did not reach the tool", "It did not run")
	if q := r.last(); q.State != approval.Failed || q.Execution.Outcome != approval.NotSent {
		t.Errorf("%s %s", q.State, q.Execution.Outcome)
	}
}

// OPS-01, MCP-24: one agent cannot fill the gateway, and the others do not notice.
func TestFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := one(legacyServer())
		c.limits.InFlight = 5
		r := newRig(t, c)
		defer r.close()
		for i := range 5 {
			r.start(agent("bot"), "tools/call", `{"name":"write","arguments":{"n":`+string(rune('0'+i))+`}}`)
		}
		synctest.Wait()
		r.say(agent("bot"), "tools/call", write).contains(t, "TOOL_RATE_LIMITED", `"isError":true`)
		r.say(agent("eve"), "tools/call", `{"name":"echo"}`).contains(t, "done")
		sleep(time.Minute)
		r.say(agent("bot"), "tools/call", `{"name":"echo"}`).contains(t, "done")
	})
}

func TestUnknownAgentsAndServers(t *testing.T) {
	r := newRig(t, one(legacyServer()))
	defer r.close()
	for _, x := range []*talk{r.say(modernAgent("nobody", `{}`), "tools/call", write), r.say(agent(""), "ping", "")} {
		if x.fault == nil || x.fault.Status != 403 {
			t.Errorf("%s %v", x.result, x.fault)
		}
	}
	c := agent("bot")
	c.Server = "other"
	if x := r.say(c, "tools/list", ""); x.fault == nil || x.fault.Status != 404 {
		t.Errorf("%s %v", x.result, x.fault)
	}
	if _, err := r.g.Initialize(context.Background(), c, nil, &pushed{}); err == nil || err.Status != 404 {
		t.Errorf("%v", err)
	}
	if _, err := r.g.Initialize(context.Background(), agent("nobody"), nil, &pushed{}); err == nil || err.Status != 403 {
		t.Errorf("%v", err)
	}
	if len(r.g.parties) != 0 {
		t.Errorf("%d parties", len(r.g.parties))
	}
}

// A session that ends does not undo a call that was sent: its connection lives
// until the call has been answered, and the outcome is known.
func TestASessionThatEndsWhileItsCallRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := legacyServer()
		s.serve = func(context.Context, *server, string, []byte, mcp.Answers) (mcp.Message, error) {
			time.Sleep(time.Minute)
			return result(`{"content":[]}`), nil
		}
		r := newRig(t, one(s))
		defer r.close()
		_, cancel := r.start(agent("bot"), "tools/call", `{"name":"echo"}`)
		sleep(time.Second)
		cancel(mcp.ErrNoSession)
		r.g.Close(agent("bot"))
		sleep(2 * time.Minute)
		if q := r.last(); q.State != approval.Executed {
			t.Errorf("%s, %s", q.State, q.Cause)
		}
		if s.open() != 0 {
			t.Error("the connection outlives its last call")
		}
	})
}

// A call that a rule allows and whose agent went away before it was sent is not
// sent, and the record says so.
func TestGoneBeforeItWasSent(t *testing.T) {
	s := legacyServer()
	r := newRig(t, one(s))
	defer r.close()
	r.say(agent("bot"), "tools/call", `{"name":"echo"}`)
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(mcp.ErrDisconnected)
	r.g.Serve(ctx, newTalk(agent("bot"), "tools/call", `{"name":"echo","arguments":{"n":2}}`))
	r.g.Shutdown()
	if n := len(s.sent("tools/call")); n != 1 {
		t.Errorf("sent %d times", n)
	}
	for _, q := range r.all() {
		if string(q.Call.Args()) == `{"n":2}` && q.Execution.Outcome != approval.NotSent {
			t.Errorf("%s %s", q.State, q.Execution.Outcome)
		}
	}
}

// A session that was never opened, or is over, serves nothing.
func TestASessionThatIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := legacyServer()
		r := newRig(t, one(s))
		defer r.close()
		for range 2 {
			x := newTalk(agent("bot"), "tools/call", write)
			r.g.Serve(context.Background(), x)
			x.contains(t, "no such session", "nothing ran")
			r.join(agent("bot"))
			r.g.Close(agent("bot"))
			synctest.Wait()
			if len(r.g.parties) != 0 || s.open() != 0 {
				t.Errorf("%d parties, %d connections", len(r.g.parties), s.open())
			}
		}
	})
}

// OPS-01: the queue of one agent is bounded; the next agent's is its own.
func TestQueueFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := one(legacyServer())
		c.hold = Hold{Default: time.Millisecond, Clients: map[string]time.Duration{"tester": time.Millisecond}}
		r := newRig(t, c)
		defer r.close()
		for i := range 51 {
			x := r.say(agent("bot"), "tools/call", fmt.Sprintf(`{"name":"write","arguments":{"n":%d}}`, i))
			if i == 50 {
				x.contains(t, "APPROVAL_QUEUE_FULL", `"isError":true`)
			}
		}
		r.say(agent("eve"), "tools/call", write).contains(t, "TOOL_BLOCKED_PENDING_APPROVAL")
	})
}

func TestAfterShutdown(t *testing.T) {
	r := newRig(t, one(legacyServer()))
	r.close()
	r.say(agent("bot"), "tools/call", write).contains(t, "shutting down", "nothing ran")
}

func TestShutdownRecordsWhatIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := legacyServer()
		s.serve = func(ctx context.Context, _ *server, _ string, _ []byte, _ mcp.Answers) (mcp.Message, error) {
			<-ctx.Done()
			return mcp.Message{}, &mcp.CallError{Sent: true, Err: context.Cause(ctx)}
		}
		r := newRig(t, one(s))
		x, _ := r.start(agent("bot"), "tools/call", `{"name":"echo"}`)
		sleep(time.Second)
		began := time.Now()
		r.g.Shutdown()
		<-x.done
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("a call that does not end was waited for for %s", took)
		}
		if q := r.last(); q.State != approval.Unknown {
			t.Errorf("%s", q.State)
		}
		r.close()
	})
}

// A call that ends soon after is not lost to a restart.
func TestShutdownWaitsForWhatWasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := legacyServer()
		s.serve = func(context.Context, *server, string, []byte, mcp.Answers) (mcp.Message, error) {
			time.Sleep(3 * time.Second)
			return result(`{"content":[]}`), nil
		}
		r := newRig(t, one(s))
		defer r.close()
		_, cancel := r.start(agent("bot"), "tools/call", `{"name":"echo"}`)
		sleep(time.Second)
		cancel(mcp.ErrShutdown)
		began := time.Now()
		r.g.Shutdown()
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("waited for %s", took)
		}
		if q := r.last(); q.State != approval.Executed {
			t.Errorf("%s, %s", q.State, q.Cause)
		}
	})
}

// TOK-13: the session of a request is the key's in every era, and the connection's
// over stdio; the protocol's session is a matter of the protocol.
func TestSessionsOfRequests(t *testing.T) {
	local := agent("bot")
	local.Session, local.Transport = "stdio-7", "stdio"
	for _, c := range []struct {
		client mcp.Client
		want   string
	}{{agent("bot"), "key:bot"}, {modernAgent("bot", `{}`), "key:bot"}, {local, "stdio-7"}} {
		r := newRig(t, one(legacyServer()))
		r.say(c.client, "tools/call", `{"name":"echo","arguments":{}}`)
		if got := r.last().From.Session; got != c.want {
			t.Errorf("session %q, want %q", got, c.want)
		}
		r.close()
	}
}

// TOK-13: a new initialize leaves neither the pause of a session behind nor what
// its limits have counted.
func TestANewSessionEscapesNothing(t *testing.T) {
	cfg := one(legacyServer())
	cfg.policy = `
version: 1
rules:
  - {id: reads, tool: "*.echo", allow: {tier: R1}}
limits:
  - {id: burst, count: 3, per: 1h, by: session, then: deny}
  - {id: denials, denials: 2, by: session, then: pause_session}
`
	cfg.hold = Hold{Default: time.Nanosecond}
	r := newRig(t, cfg)
	defer r.close()
	session := func(n int) mcp.Client {
		c := agent("bot")
		c.Session = fmt.Sprint("s-", n)
		return c
	}
	for n := range 2 {
		r.say(session(n), "tools/call", fmt.Sprintf(`{"name":"write","arguments":{"n":%d}}`, n)).contains(t, "TOOL_BLOCKED")
		r.decide(r.pending(), false)
	}
	r.say(session(2), "tools/call", `{"name":"echo"}`).contains(t, "SESSION_PAUSED")
	r.say(modernAgent("bot", `{}`), "tools/call", `{"name":"echo"}`).contains(t, "SESSION_PAUSED")
	r.say(agent("other"), "tools/call", `{"name":"echo"}`).contains(t, "done")
	if err := r.desk.ResumeSession(context.Background(), raj, "bot/key:bot", "go on"); err != nil {
		t.Fatal(err)
	}
	r.say(session(3), "tools/call", `{"name":"echo","arguments":{"n":1}}`).contains(t, "done")
	r.say(session(4), "tools/call", `{"name":"echo","arguments":{"n":2}}`).contains(t, "burst")
}
