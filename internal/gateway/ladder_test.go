package gateway

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/mcp"
)

const write = `{"name":"write","arguments":{"p":"x"}}`

func writeWith(extra string) string {
	return strings.TrimSuffix(write, "}") + "," + extra + "}"
}

func TestBudgets(t *testing.T) {
	h := Hold{Clients: map[string]time.Duration{"slow": time.Hour}}.orDefaults()
	for _, c := range []struct {
		name, transport string
		progress        bool
		want            time.Duration
	}{
		{"claude-code", "http", true, 270 * time.Second},
		{"claude-code", "stdio", true, 15 * time.Minute},
		{"claude-code", "http", false, 45 * time.Second},
		{"codex-mcp-client", "stdio", true, 240 * time.Second},
		{"gemini-cli-mcp-client-v1", "http", true, 540 * time.Second},
		{"opencode", "http", true, 15 * time.Minute},
		{"opencode", "http", false, 45 * time.Second},
		{"Visual Studio Code - Insiders", "http", true, 15 * time.Minute},
		{"claude-ai", "http", true, 45 * time.Second},
		{"", "http", true, 45 * time.Second},
		{"openai-agents", "http", false, 4 * time.Second},
		{"slow-and-steady", "http", true, time.Hour},
	} {
		client := mcp.Client{Transport: c.transport, Info: (&object{}).add("name", quoted(c.name)).bytes()}
		if got := h.budget(client, c.progress); got != c.want {
			t.Errorf("%s over %s, progress %v: held for %s, want %s", c.name, c.transport, c.progress, got, c.want)
		}
	}
}

func TestProgressOfTheHoldAndOfTheServerAreOneSequence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := legacyServer()
		s.serve = func(_ context.Context, _ *server, _ string, params []byte, to mcp.Answers) (mcp.Message, error) {
			token := string(mcp.ProgressToken(params))
			to.Notification(mcp.Message{Method: "notifications/progress", Params: []byte(`{"progressToken":` + token + `,"progress":1,"total":4,"x":1.10}`)})
			to.Notification(mcp.Message{Method: "notifications/progress", Params: []byte(`{"progressToken":` + token + `,"progress":2.5}`)})
			to.Notification(mcp.Message{Method: "notifications/message", Params: []byte(`{"level":"info","data":1.10}`)})
			return result(`{"content":[]}`), nil
		}
		r := newRig(t, one(s))
		defer r.close()
		x, _ := r.start(agent("bot"), "tools/call", writeWith(`"_meta":{"progressToken":9007199254740993}`))
		sleep(21 * time.Second)
		q := r.pending()
		r.decide(q, true)
		<-x.done
		got := x.told("notifications/progress")
		if len(got) != 5 {
			t.Fatalf("%d notifications: %q", len(got), got)
		}
		for i, want := range []string{"1", "2", "3", "4", "5.5"} {
			if have := string(get([]byte(got[i]), "progress")); have != want {
				t.Errorf("progress %d is %s, want %s", i, have, want)
			}
			if have := string(get([]byte(got[i]), "progressToken")); have != "9007199254740993" {
				t.Errorf("token %s", have)
			}
		}
		if text := textAt([]byte(got[0]), "message"); !strings.HasPrefix(text, "https://aye.example/r/"+q.Code+" ") {
			t.Errorf("the link does not come first: %q", text)
		}
		if want := `{"progressToken":9007199254740993,"progress":4,"total":7,"x":1.10}`; got[3] != want {
			t.Errorf("got %s, want %s", got[3], want)
		}
		if m := x.told("notifications/message"); len(m) != 1 || m[0] != `{"level":"info","data":1.10}` {
			t.Errorf("log messages %q", m)
		}
	})
}

func TestHoldWithoutProgressTokenIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, one(legacyServer()))
		defer r.close()
		x := r.say(agent("bot"), "tools/call", write)
		if len(x.notes) != 0 {
			t.Errorf("told %q", x.notes)
		}
	})
}

// MCP-05, MCP-06: a client that accepts, declines or cancels every elicitation has
// approved nothing and denied nothing.
func TestElicitationIsNoDecision(t *testing.T) {
	for _, action := range []string{`{"action":"accept","content":{"approve":true}}`, `{"action":"decline"}`, `{"action":"cancel"}`} {
		synctest.Test(t, func(t *testing.T) {
			s := legacyServer()
			r := newRig(t, one(s))
			defer r.close()
			c := agent("bot")
			c.Capabilities = []byte(`{"elicitation":{"url":{}}}`)
			x := newTalk(c, "tools/call", writeWith(`"_meta":{"progressToken":1}`))
			x.ask = func(string, []byte) mcp.Message { return result(action) }
			r.serve(x)
			sleep(15 * time.Second)
			q := r.pending()
			if len(x.asked) != 1 || x.asked[0].method != "elicitation/create" {
				t.Fatalf("asked %q", x.asked)
			}
			p := []byte(x.asked[0].params)
			if textAt(p, "mode") != "url" || textAt(p, "url") != "https://aye.example/r/"+q.Code || textAt(p, "elicitationId") != string(q.ID) {
				t.Errorf("asked %s", p)
			}
			if s.sent("tools/call") != nil {
				t.Error("an answer to an elicitation ran the call")
			}
			r.decide(q, true)
			<-x.done
			x.contains(t, `"text":"done"`)
			if n := x.told("notifications/elicitation/complete"); len(n) != 1 || textAt([]byte(n[0]), "elicitationId") != string(q.ID) {
				t.Errorf("completed %q", n)
			}
		})
	}
}

func TestOnlyTheNewestLegacyRevisionIsElicited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, one(legacyServer()))
		defer r.close()
		c := agent("bot")
		c.Version, c.Capabilities = mcp.V20250618, []byte(`{"elicitation":{"url":{}}}`)
		if x := r.say(c, "tools/call", write); len(x.asked) != 0 {
			t.Errorf("asked %q", x.asked)
		}
	})
}

// back is the retry that an agent makes of an input_required result.
func back(t *testing.T, x *talk, responses string) string {
	t.Helper()
	res := []byte(x.result)
	if textAt(res, "resultType") != "input_required" {
		t.Fatalf("no input_required: %s %v", res, x.fault)
	}
	return writeWith(`"inputResponses":` + responses + `,"requestState":` + string(get(res, "requestState")))
}

func TestMultiRoundTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := modernServer()
		r := newRig(t, one(s))
		defer r.close()
		c := modernAgent("bot", `{"elicitation":{"url":{}}}`)
		began := time.Now()
		x := r.say(c, "tools/call", write)
		if time.Since(began) != 0 {
			t.Error("the invitation was held back")
		}
		req := get([]byte(x.result), "inputRequests", "approval")
		q := r.pending()
		if textAt(req, "method") != "elicitation/create" || textAt(req, "params", "url") != "https://aye.example/r/"+q.Code {
			t.Errorf("invited with %s", x.result)
		}
		// MCP-05: what the client answers is not an approval.
		rounds := 0
		retry := back(t, x, `{"approval":{"action":"accept","content":{"approve":true}}}`)
		for {
			at := time.Now()
			x = r.say(c, "tools/call", retry)
			if held := time.Since(at); held != 45*time.Second {
				t.Errorf("a round was held for %s", held)
			}
			if !strings.Contains(x.result, "input_required") {
				break
			}
			if string(get([]byte(x.result), "inputRequests")) != "{}" {
				t.Errorf("asked again: %s", x.result)
			}
			rounds++
			retry = back(t, x, `{}`)
		}
		if rounds != 2 {
			t.Errorf("%d rounds that ask for nothing", rounds)
		}
		x.contains(t, "TOOL_BLOCKED_PENDING_APPROVAL", `"resultType":"complete"`)
		if s.sent("tools/call") != nil || r.pending().ID != q.ID || r.pending().Asks != 1 {
			t.Errorf("the rounds were not one request: %+v", r.pending())
		}
	})
}

func TestMultiRoundTripEndsWithTheResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := modernServer()
		r := newRig(t, one(s))
		defer r.close()
		c := modernAgent("bot", `{"elicitation":{"url":{}}}`)
		x := r.say(c, "tools/call", write)
		retry := back(t, x, `{"approval":{"action":"accept"}}`)
		y, _ := r.start(c, "tools/call", retry)
		sleep(5 * time.Second)
		r.decide(r.pending(), true)
		<-y.done
		if want := `{"content":[{"type":"text","text":"done"}],"isError":false,"n":1.10,"resultType":"complete"}`; y.result != want {
			t.Errorf("got %s", y.result)
		}
		// What is sent on has neither our state nor the answers to us.
		if got := s.sent("tools/call"); len(got) != 1 || got[0] != write {
			t.Errorf("the server got %q", got)
		}
		synctest.Wait()
		// MCP-04: the state after completion runs nothing again.
		z := r.say(c, "tools/call", retry)
		z.contains(t, "ran before")
		if got := s.sent("tools/call"); len(got) != 1 {
			t.Errorf("ran %d times", len(got))
		}
	})
}

func TestModernClientWithoutElicitationIsHeldFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, one(modernServer()))
		defer r.close()
		c := modernAgent("bot", `{}`)
		began := time.Now()
		x := r.say(c, "tools/call", write)
		if time.Since(began) != 45*time.Second || string(get([]byte(x.result), "inputRequests")) != "{}" {
			t.Errorf("after %s: %s", time.Since(began), x.result)
		}
		for range 2 {
			x = r.say(c, "tools/call", back(t, x, `{}`))
		}
		x.contains(t, "TOOL_BLOCKED_PENDING_APPROVAL")
	})
}

// MCP-04: a state that was altered, is brought by somebody else, with other
// arguments, for another method or too late is refused, and nothing runs.
func TestRequestStateIsBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := modernServer()
		c := one(s)
		c.policy = strings.Replace(testPolicy, "ttl: 20m", "ttl: 48h", 1)
		r := newRig(t, c)
		defer r.close()
		bot := modernAgent("bot", `{"elicitation":{"url":{}}}`)
		x := r.say(bot, "tools/call", write)
		good := textAt([]byte(x.result), "requestState")
		with := func(state string) string { return writeWith(`"requestState":` + string(quoted(state))) }
		refused := func(why string, y *talk) {
			t.Helper()
			if y.fault == nil || y.fault.Code != mcp.CodeInvalidParams || !strings.Contains(y.fault.Message, "nothing ran") {
				t.Errorf("%s: %s %+v", why, y.result, y.fault)
			}
		}
		r.decide(r.pending(), true)
		raw, _ := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(good, sealPrefix))
		for i := range raw {
			flipped := append([]byte(nil), raw...)
			flipped[i] ^= 1
			refused("a flipped bit", r.say(bot, "tools/call", with(sealPrefix+base64.RawURLEncoding.EncodeToString(flipped))))
		}
		refused("garbage", r.say(bot, "tools/call", with("v1.x")))
		refused("empty", r.say(bot, "tools/call", with("")))
		refused("a number", r.say(bot, "tools/call", writeWith(`"requestState":1`)))
		refused("cut", r.say(bot, "tools/call", with(good[:20])))
		refused("other arguments", r.say(bot, "tools/call", `{"name":"write","arguments":{"p":"y"},"requestState":`+string(quoted(good))+`}`))
		refused("another tool", r.say(bot, "tools/call", `{"name":"echo","arguments":{"p":"x"},"requestState":`+string(quoted(good))+`}`))
		refused("another method", r.say(bot, "resources/read", `{"uri":"x","requestState":`+string(quoted(good))+`}`))
		refused("another principal", r.say(modernAgent("eve", `{}`), "tools/call", with(good)))
		if s.sent("tools/call") != nil {
			t.Error("something ran")
		}
		sleep(25 * time.Hour)
		refused("too old", r.say(bot, "tools/call", with(good)))
		if s.sent("tools/call") != nil {
			t.Error("something ran")
		}
	})
}

// MCP-05: answers that nobody asked for go nowhere.
func TestUnaskedAnswersAreDropped(t *testing.T) {
	s := modernServer()
	r := newRig(t, one(s))
	defer r.close()
	r.say(modernAgent("bot", `{}`), "tools/call", `{"name":"echo","inputResponses":{"approval":{"action":"accept"}}}`).contains(t, "done")
	if got := s.sent("tools/call"); len(got) != 1 || got[0] != `{"name":"echo"}` {
		t.Errorf("the server got %q", got)
	}
}

// Modern: closing the stream takes the call back. An approval that comes later
// runs nothing until the agent asks again (RACE-07, mcp.md 2.7).
func TestDisconnectWhileHeldNeverRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := modernServer()
		r := newRig(t, one(s))
		defer r.close()
		c := modernAgent("bot", `{}`)
		x, cancel := r.start(c, "tools/call", write)
		sleep(time.Second)
		q := r.pending()
		cancel(mcp.ErrDisconnected)
		<-x.done
		synctest.Wait()
		r.decide(q, true)
		sleep(time.Minute)
		if s.sent("tools/call") != nil {
			t.Fatal("it ran without its agent")
		}
		y := r.say(c, "tools/call", write)
		y.contains(t, `"text":"done"`)
		if r.last().ID != q.ID || len(s.sent("tools/call")) != 1 {
			t.Error("the agent's return did not join its request")
		}
	})
}

// The approval and the hanging up in the same moment.
func TestDisconnectAndApprovalTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := modernServer()
		r := newRig(t, one(s))
		defer r.close()
		x, cancel := r.start(modernAgent("bot", `{}`), "tools/call", write)
		sleep(time.Second)
		cancel(mcp.ErrDisconnected)
		r.decide(r.pending(), true)
		<-x.done
		sleep(time.Minute)
		if s.sent("tools/call") != nil {
			t.Error("it ran after the agent had gone")
		}
	})
}

func TestLegacyCancelWhileHeldKeepsTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := legacyServer()
		r := newRig(t, one(s))
		defer r.close()
		x, cancel := r.start(agent("bot"), "tools/call", write)
		sleep(time.Second)
		q := r.pending()
		cancel(mcp.ErrCancelled)
		<-x.done
		x.contains(t, "nothing ran", q.Code)
		if r.pending().State != approval.Pending {
			t.Error("the request did not stay")
		}
		// Another session of the same agent finds it again.
		again := agent("bot")
		again.Session = "s-2"
		y, _ := r.start(again, "tools/call", write)
		sleep(time.Second)
		r.decide(r.pending(), true)
		<-y.done
		y.contains(t, "done")
	})
}

// RACE-06: after the claim it is too late. A closed stream changes nothing: the
// call goes on and its result is recorded; the return of the agent gets it
// (RACE-07), and nothing runs twice.
func TestDisconnectAfterTheClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := modernServer()
		s.serve = func(ctx context.Context, _ *server, _ string, _ []byte, _ mcp.Answers) (mcp.Message, error) {
			select {
			case <-time.After(40 * time.Second):
			case <-ctx.Done():
				t.Error("the call was cancelled")
			}
			return result(`{"content":[{"type":"text","text":"slow"}]}`), nil
		}
		r := newRig(t, one(s))
		defer r.close()
		c := modernAgent("bot", `{}`)
		x, cancel := r.start(c, "tools/call", write)
		sleep(time.Second)
		q := r.pending()
		r.decide(q, true)
		sleep(time.Second)
		cancel(mcp.ErrDisconnected)
		<-x.done
		x.contains(t, "too late")
		// While it runs, the agent's return waits for it.
		y, _ := r.start(c, "tools/call", write)
		sleep(30 * time.Second)
		select {
		case <-y.done:
			t.Errorf("the return did not wait: %s", y.result)
		default:
		}
		<-y.done
		y.contains(t, "slow")
		synctest.Wait()
		got, err := r.desk.Get(context.Background(), raj, q.ID)
		if err != nil || got.State != approval.Executed || got.Execution.PickedUp.IsZero() || len(s.sent("tools/call")) != 1 {
			t.Errorf("%v, %d runs, %+v", err, len(s.sent("tools/call")), got.Execution)
		}
	})
}

// RACE-06: a cancel after the claim reaches the server; what came of the call
// nobody can know, and the record says so.
func TestCancelAfterTheClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := legacyServer()
		told := make(chan error, 1)
		s.serve = func(ctx context.Context, _ *server, _ string, _ []byte, _ mcp.Answers) (mcp.Message, error) {
			<-ctx.Done()
			told <- context.Cause(ctx)
			return mcp.Message{}, &mcp.CallError{Sent: true, Err: context.Cause(ctx)}
		}
		r := newRig(t, one(s))
		defer r.close()
		x, cancel := r.start(agent("bot"), "tools/call", write)
		sleep(time.Second)
		q := r.pending()
		r.decide(q, true)
		sleep(time.Second)
		cancel(mcp.ErrCancelled)
		<-x.done
		if err := <-told; !errors.Is(err, mcp.ErrCancelled) {
			t.Errorf("the server was told %v", err)
		}
		x.contains(t, "too late")
		if got := r.last(); got.State != approval.Unknown {
			t.Errorf("state %s", got.State)
		}
		r.say(agent("bot"), "tools/call", write).contains(t, "TOOL_OUTCOME_UNKNOWN")
		if len(s.sent("tools/call")) != 1 {
			t.Error("it was sent again")
		}
	})
}

// RACE-07: the answer was lost on its way. The same call with a new id gets the
// stored result, once; the next one is a new request.
func TestLostAnswerIsReplayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := legacyServer()
		r := newRig(t, one(s))
		defer r.close()
		x := newTalk(agent("bot"), "tools/call", write)
		r.serve(x)
		sleep(time.Second)
		x.mu.Lock()
		x.dead = true
		x.mu.Unlock()
		r.decide(r.pending(), true)
		<-x.done
		synctest.Wait()
		y := r.say(agent("bot"), "tools/call", write)
		if y.result != `{"content":[{"type":"text","text":"done"}],"isError":false,"n":1.10}` || len(s.sent("tools/call")) != 1 {
			t.Errorf("replayed %s after %d runs", y.result, len(s.sent("tools/call")))
		}
		synctest.Wait()
		z := r.say(agent("bot"), "tools/call", write)
		z.contains(t, "TOOL_BLOCKED_PENDING_APPROVAL")
	})
}

// RACE-02: many retries of an approved call at once, one run, one result for all.
func TestManyRetriesOneRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := legacyServer()
		s.serve = func(context.Context, *server, string, []byte, mcp.Answers) (mcp.Message, error) {
			time.Sleep(time.Second)
			return result(`{"content":[{"type":"text","text":"once"}]}`), nil
		}
		r := newRig(t, one(s))
		defer r.close()
		var all []*talk
		for range 100 {
			x, _ := r.start(agent("bot"), "tools/call", write)
			all = append(all, x)
		}
		sleep(time.Second)
		r.decide(r.pending(), true)
		for _, x := range all {
			<-x.done
			x.contains(t, "once")
		}
		if n := len(s.sent("tools/call")); n != 1 {
			t.Errorf("%d runs", n)
		}
	})
}

func TestExpiryAndPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := one(legacyServer())
		c.policy = strings.Replace(testPolicy, "ttl: 20m", "ttl: 30s", 1)
		r := newRig(t, c)
		defer r.close()
		ctx, stop := context.WithCancel(context.Background())
		go r.desk.Run(ctx)
		defer stop()
		r.say(agent("bot"), "tools/call", write).contains(t, "TOOL_APPROVAL_EXPIRED", "Nobody said no", `"isError":true`)
		x, _ := r.start(agent("bot"), "tools/call", `{"name":"write","arguments":{"n":2}}`)
		sleep(time.Second)
		if err := r.desk.Pause(context.Background(), raj, "fire"); err != nil {
			t.Fatal(err)
		}
		r.decide(r.pending(), true)
		<-x.done
		x.contains(t, "SESSION_PAUSED", `"isError":true`)
		r.say(agent("bot"), "tools/call", write).contains(t, "SESSION_PAUSED")
		r.say(agent("bot"), "resources/read", `{"uri":"x"}`).contains(t, "SESSION_PAUSED", `"retry":"after_resume"`)
	})
}

// TOK-06: neither the token nor the claim of an approved call is in anything that
// an agent gets to see.
func TestNoTokenReachesTheAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := legacyServer()
		r := newRig(t, one(s))
		defer r.close()
		c := agent("bot")
		c.Capabilities = []byte(`{"elicitation":{"url":{}}}`)
		x, _ := r.start(c, "tools/call", writeWith(`"_meta":{"progressToken":1}`))
		sleep(time.Second)
		r.decide(r.pending(), true)
		<-x.done
		synctest.Wait()
		q := r.last()
		y := r.say(c, "tools/call", `{"name":"await_approval","arguments":{"id":"`+string(q.ID)+`"}}`)
		seen := x.result + y.result
		for _, n := range append(x.notes, x.asked...) {
			seen += n.params
		}
		for _, secret := range []string{q.Claimed.ID, q.Claimed.TokenID} {
			if secret == "" || strings.Contains(seen, secret) {
				t.Errorf("%q is in %s", secret, seen)
			}
		}
		if sent := s.sent("tools/call"); strings.Contains(sent[0], q.Claimed.TokenID) {
			t.Error("the token went upstream")
		}
	})
}

func TestIdempotencyMeta(t *testing.T) {
	s := legacyServer()
	c := one(s)
	c.servers["fs"] = Server{IdempotencyMeta: true}
	r := newRig(t, c)
	defer r.close()
	r.say(agent("bot"), "tools/call", `{"name":"echo","arguments":{}}`)
	want := `{"name":"echo","arguments":{},"_meta":{"dev.ayegate/claim":"` + r.last().Claimed.ID + `"}}`
	if got := s.sent("tools/call"); len(got) != 1 || got[0] != want {
		t.Errorf("the server got %q, want %q", got, want)
	}
}

// A person who changes the call before it runs changes what the agent believes.
func TestApprovedWithEdits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := legacyServer()
		r := newRig(t, one(s))
		defer r.close()
		x, _ := r.start(agent("bot"), "tools/call", writeWith(`"x":1.10`))
		sleep(time.Second)
		q := r.pending()
		edited, err := call.New("fs", "write", []byte(`{"p":"safe"}`))
		if err != nil {
			t.Fatal(err)
		}
		q, err = r.mem.Change(context.Background(), q.ID, func(q *approval.Request, now time.Time) (ledger.Event, error) {
			return q.Amend(raj, q.Digest, edited, q.Verdict, now)
		})
		if err != nil {
			t.Fatal(err)
		}
		r.decide(q, true)
		<-x.done
		if got := s.sent("tools/call"); len(got) != 1 || got[0] != `{"name":"write","arguments":{"p":"safe"},"x":1.1}` {
			t.Errorf("the server got %q", got)
		}
		texts := x.texts()
		if len(texts) != 2 || !strings.HasPrefix(texts[0], "TOOL_APPROVED_WITH_EDITS") || texts[1] != "done" {
			t.Errorf("%s", x.result)
		}
		meta := get([]byte(x.result), "_meta", metaApproval)
		if string(get(meta, "asked")) != `{"p":"x"}` || string(get(meta, "ran")) != `{"p":"safe"}` {
			t.Errorf("%s", meta)
		}
	})
}

// P5: an approval of another tool's call never goes out under this one's name.
func TestAnotherToolsCallIsNotSent(t *testing.T) {
	a := &action{server: "fs", method: "tools/call", params: []byte(write)}
	a.call, _ = call.New("fs", "write", nil)
	for _, other := range [][2]string{{"fs", "wipe"}, {"db", "write"}} {
		c, err := call.New(other[0], other[1], nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.outgoing(c, "claim", false); err == nil {
			t.Errorf("%v was sent as fs.write", other)
		}
	}
}
