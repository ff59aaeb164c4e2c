package web_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ayegate/ayegate/api"
	"github.com/ayegate/ayegate/internal/desk"
	"github.com/ayegate/ayegate/internal/web/credential"
)

// askMail asks for a call that the caller performs itself.
func (w *world) askMail(args string, more ...func(*api.CallRequest)) *api.Call {
	w.t.Helper()
	r := api.CallRequest{Server: "mail", Tool: "send", Args: json.RawMessage(args), Executor: api.ByCaller}
	for _, m := range more {
		m(&r)
	}
	c, err := w.bot.Call(w.t.Context(), r)
	must(w.t, err)
	return c
}

func (w *world) claimMail(args string, more ...func(*api.CallRequest)) (*api.Call, *api.Token) {
	w.t.Helper()
	c := w.askMail(args, more...)
	w.say(w.ana, c.ID, api.Approve, "")
	tok, err := w.bot.Claim(w.t.Context(), c.ApprovalID, api.ClaimRequest{Device: ""})
	must(w.t, err)
	return c, tok
}

func TestCallerPerformsItsCall(t *testing.T) {
	w := newWorld(t)
	c, tok := w.claimMail(`{"to":"x"}`)
	if !tok.SingleUse || tok.Scope.Kind != "once" || tok.ToolCallHash != c.ToolCallHash || tok.ApprovalID != c.ApprovalID || len(tok.Token) < 43 {
		t.Fatalf("got %+v", tok)
	}
	if _, err := w.bot.Finish(t.Context(), c.ApprovalID, api.FinishRequest{Outcome: api.Succeeded}); !errors.Is(err, api.NotClaimed) {
		t.Fatalf("finished before it was redeemed: %v", err)
	}
	run, err := w.bot.Redeem(t.Context(), c.ApprovalID, api.RedeemRequest{Token: tok.Token, ToolCallHash: c.ToolCallHash})
	must(t, err)
	if run.Status != api.StatusExecuting {
		t.Fatalf("got %+v", run)
	}
	end, err := w.bot.Finish(t.Context(), c.ApprovalID, api.FinishRequest{Outcome: api.Succeeded, Result: json.RawMessage(` {"id": 9007199254740993 , "s":"<&>"} `)})
	must(t, err)
	if end.Status != api.StatusExecuted || string(end.Result) != `{"id":9007199254740993,"s":"<&>"}` {
		t.Fatalf("got %+v %s", end, end.Result)
	}
	if _, err := w.bot.Finish(t.Context(), c.ApprovalID, api.FinishRequest{Outcome: api.Errored}); err == nil {
		t.Fatal("finished twice")
	}
}

// TOK-01, TOK-07, TOK-09: a token is spent once, by the right text only, however
// many try at once.
func TestTokenIsSpentOnce(t *testing.T) {
	w := newWorld(t)
	c, tok := w.claimMail(`{"to":"x"}`)
	redeem := func(token, hash string) error {
		_, err := w.bot.Redeem(t.Context(), c.ApprovalID, api.RedeemRequest{Token: token, ToolCallHash: hash})
		return err
	}
	for name, token := range map[string]string{
		"empty": "", "truncated": tok.Token[:40], "longer": tok.Token + "A", "its id": tok.TokenID, "another": strings.Repeat("A", 43), "an agent key": w.keys["bot"],
	} {
		if err := redeem(token, c.ToolCallHash); !errors.Is(err, api.TokenUnknown) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := redeem(tok.Token, "sha256:"+strings.Repeat("ab", 32)); !errors.Is(err, api.TokenCallMismatch) {
		t.Errorf("another call: %v", err)
	}
	var group sync.WaitGroup
	var mu sync.Mutex
	spent, used := 0, 0
	for range 50 {
		group.Go(func() {
			err := redeem(tok.Token, c.ToolCallHash)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				spent++
			case errors.Is(err, api.TokenUsed):
				used++
			default:
				t.Errorf("got %v", err)
			}
		})
	}
	group.Wait()
	if spent != 1 || used != 49 {
		t.Fatalf("spent %d times, refused %d times", spent, used)
	}
	if _, err := w.bot.Claim(t.Context(), c.ApprovalID, api.ClaimRequest{}); !errors.Is(err, api.Claimed) {
		t.Errorf("a second token: %v", err)
	}
}

func TestTokenExpires(t *testing.T) {
	w := newWorld(t)
	c, tok := w.claimMail(`{"to":"x"}`)
	w.clock.advance(desk.TokenTTL)
	_, err := w.bot.Redeem(t.Context(), c.ApprovalID, api.RedeemRequest{Token: tok.Token, ToolCallHash: c.ToolCallHash})
	if !errors.Is(err, api.TokenExpired) {
		t.Fatalf("got %v", err)
	}
}

// TOK-03, TOK-04: a token is for the agent, and for the device when one was named.
func TestTokenIsBound(t *testing.T) {
	w := newWorld(t)
	c := w.askMail(`{"to":"x"}`, func(r *api.CallRequest) { r.Device = "laptop" })
	w.say(w.ana, c.ID, api.Approve, "")
	for _, device := range []string{"", "phone"} {
		if _, err := w.bot.Claim(t.Context(), c.ApprovalID, api.ClaimRequest{Device: device}); !errors.Is(err, api.TokenDeviceMismatch) {
			t.Errorf("claimed on %q: %v", device, err)
		}
	}
	tok, err := w.bot.Claim(t.Context(), c.ApprovalID, api.ClaimRequest{Device: "laptop"})
	must(t, err)
	if tok.IssuedToClientDeviceID != "laptop" {
		t.Errorf("got %+v", tok)
	}
	redeem := func(by *api.Client, device, token string) error {
		_, err := by.Redeem(t.Context(), c.ApprovalID, api.RedeemRequest{Token: token, ToolCallHash: c.ToolCallHash, Device: device})
		return err
	}
	if err := redeem(w.bot, "phone", tok.Token); !errors.Is(err, api.TokenDeviceMismatch) {
		t.Errorf("on another device: %v", err)
	}
	if err := redeem(w.bot, "phone", "wrong"); !errors.Is(err, api.TokenUnknown) {
		t.Errorf("a wrong token on another device: %v", err)
	}
	if err := redeem(w.other, "laptop", tok.Token); !errors.Is(err, api.NotFound) {
		t.Errorf("by another agent: %v", err)
	}
	must(t, redeem(w.bot, "laptop", tok.Token))

	_, text, err := w.creds.Add(t.Context(), credential.System(), credential.Spec{Class: credential.Agent, For: "bot", Device: "phone"})
	must(t, err)
	phone, err := api.NewClient(w.base, text, nil)
	must(t, err)
	if _, err := phone.GetCall(t.Context(), c.ApprovalID, 0); !errors.Is(err, api.NotFound) {
		t.Errorf("a key of another device sees it: %v", err)
	}
	if _, err := phone.Call(t.Context(), api.CallRequest{Server: "fs", Tool: "read_x", Device: "laptop"}); !errors.Is(err, api.TokenDeviceMismatch) {
		t.Errorf("a key of one device for another: %v", err)
	}
}

// TOK-02: another value is another call; another order of names is the same.
func TestOneByteChanged(t *testing.T) {
	w := newWorld(t)
	one := w.hold("fs", "write_file", `{"amount":82000,"path":"a"}`)
	same := w.hold("fs", "write_file", ` { "path":"a" , "amount" : 8.2e4 } `)
	if same.ApprovalID != one.ApprovalID || !same.Attached {
		t.Errorf("another spelling became another request")
	}
	for _, args := range []string{`{"amount":820000,"path":"a"}`, `{"amount":82000,"path":"a "}`, `{"amount":"82000","path":"a"}`, `{"amount":82000,"path":"A"}`} {
		if c := w.hold("fs", "write_file", args); c.ApprovalID == one.ApprovalID {
			t.Errorf("%s joined another call", args)
		}
	}
	w.say(w.ana, one.ID, api.Approve, "")
	if c := w.hold("fs", "write_file", `{"amount":82001,"path":"a"}`); c.Status != api.StatusPending || w.tool.count() != 0 {
		t.Errorf("an approval was good for another call")
	}
}

// TOK-05, TOK-06: the gateway's own claim gives no token out, and none is in any
// answer, event, log or record.
func TestTokensDoNotLeak(t *testing.T) {
	w := newWorld(t)
	held := w.hold("fs", "write_file", `{"path":"a"}`)
	w.say(w.ana, held.ID, api.Approve, "")
	if _, err := w.bot.Claim(t.Context(), held.ApprovalID, api.ClaimRequest{}); !errors.Is(err, api.NotClaimed) {
		t.Errorf("a token for a call of the gateway: %v", err)
	}
	c, tok := w.claimMail(`{"to":"secret-argument-value"}`)
	_, err := w.bot.Redeem(t.Context(), c.ApprovalID, api.RedeemRequest{Token: tok.Token, ToolCallHash: c.ToolCallHash})
	must(t, err)
	var all strings.Builder
	for line, err := range w.store.Entries(t.Context(), 0) {
		must(t, err)
		all.Write(line)
	}
	all.WriteString(w.logs.String())
	got, err := w.bot.GetCall(t.Context(), c.ApprovalID, 0)
	must(t, err)
	r, err := w.ana.Request(t.Context(), c.ApprovalID)
	must(t, err)
	b, _ := json.Marshal([]any{got, r})
	text := all.String()
	if strings.Contains(text+string(b), tok.Token) {
		t.Error("the token's secret is somewhere else than in the answer to the claim")
	}
	if strings.Contains(text, "secret-argument-value") {
		t.Error("an argument is in the record or the log")
	}
	for who, k := range w.keys {
		if strings.Contains(text+string(b), k) {
			t.Errorf("the credential of %s leaked", who)
		}
	}
}

// TOK-08, TOK-09: an approval is of one request by its id. Of equal calls under
// different keys one is approved, and one runs.
func TestApprovalIsByID(t *testing.T) {
	w := newWorld(t)
	a := w.askMail(`{"to":"x"}`, func(r *api.CallRequest) { r.Device = "d1" })
	b := w.askMail(`{"to":"x"}`, func(r *api.CallRequest) { r.Device = "d2" })
	if a.ApprovalID == b.ApprovalID || a.ToolCallHash != b.ToolCallHash {
		t.Fatalf("%+v %+v", a, b)
	}
	w.say(w.ana, a.ApprovalID, api.Approve, "")
	if _, err := w.bot.Claim(t.Context(), b.ApprovalID, api.ClaimRequest{Device: "d2"}); !errors.Is(err, api.NotApproved) {
		t.Errorf("the other one: %v", err)
	}
	tok, err := w.bot.Claim(t.Context(), a.ApprovalID, api.ClaimRequest{Device: "d1"})
	must(t, err)
	if _, err := w.bot.Redeem(t.Context(), b.ApprovalID, api.RedeemRequest{Token: tok.Token, ToolCallHash: b.ToolCallHash, Device: "d2"}); !errors.Is(err, api.TokenUnknown) {
		t.Errorf("the token of one for the other: %v", err)
	}
}

// TOK-13, TOK-18: what a caller says of session and workspace widens nothing.
func TestLabelsAreLabels(t *testing.T) {
	w := newWorld(t)
	c, err := w.bot.Call(t.Context(), api.CallRequest{Server: "fs", Tool: "write_file", Args: json.RawMessage(`{"path":"a"}`), Session: "admin", Run: "7", Workspace: "shop"})
	must(t, err)
	r, err := w.ana.Request(t.Context(), c.ID)
	must(t, err)
	if !strings.HasPrefix(r.SessionID, "key:") || r.RunID != "admin / 7" || r.WorkspaceID != "shop" {
		t.Errorf("got session %q, run %q, workspace %q", r.SessionID, r.RunID, r.WorkspaceID)
	}
	for _, workspace := range []string{"/w/a/../b", "Shop", "other"} {
		_, err := w.bot.Call(t.Context(), api.CallRequest{Server: "fs", Tool: "read_x", Workspace: workspace})
		if !errors.Is(err, api.Forbidden) {
			t.Errorf("workspace %q: %v", workspace, err)
		}
	}
}

func TestWhoPerforms(t *testing.T) {
	w := newWorld(t)
	for name, c := range map[string]struct {
		in   api.CallRequest
		code api.Code
	}{
		"a caller around the gate": {api.CallRequest{Server: "fs", Tool: "read_x", Executor: api.ByCaller}, api.BadRequest},
		"a server that is not":     {api.CallRequest{Server: "mail", Tool: "send"}, api.NotFound},
		"nobody":                   {api.CallRequest{Server: "mail", Tool: "send", Executor: "me"}, api.BadRequest},
		"no server":                {api.CallRequest{Server: "No Server", Tool: "x", Executor: api.ByCaller}, api.BadRequest},
		"args that are no object":  {api.CallRequest{Server: "fs", Tool: "x", Args: json.RawMessage(`[1]`)}, api.BadRequest},
		"a long wait":              {api.CallRequest{Server: "fs", Tool: "x", Wait: api.Duration(time.Hour)}, api.BadRequest},
		"a long label":             {api.CallRequest{Server: "fs", Tool: "x", Run: strings.Repeat("x", 201)}, api.BadRequest},
	} {
		if _, err := w.bot.Call(t.Context(), c.in); !errors.Is(err, c.code) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if w.tool.count() != 0 {
		t.Error("something ran")
	}
}

// What a call came to, as programs see it.
func TestOutcomes(t *testing.T) {
	w := newWorld(t)
	run := func(path string) (*api.Call, error) {
		held := w.hold("fs", "write_file", `{"path":"`+path+`"}`)
		w.say(w.ana, held.ID, api.Approve, "")
		return w.bot.Await(t.Context(), held.ApprovalID, 0)
	}
	for name, c := range map[string]struct {
		answer desk.Result
		err    error
		status api.Status
		code   api.Code
		http   int
	}{
		"good":     {answer: desk.Result{Bytes: []byte(`{}`)}, status: api.StatusExecuted},
		"error":    {answer: desk.Result{Bytes: []byte(`{"isError":true}`), IsError: true}, status: api.StatusFailed},
		"no json":  {answer: desk.Result{Bytes: []byte("plain \x00 text")}, status: api.StatusExecuted},
		"not sent": {err: desk.ErrNotSent, status: api.StatusFailed, code: api.ToolNotReached, http: http.StatusBadGateway},
		"silence":  {err: desk.ErrNoAnswer, status: api.StatusUnknown, code: api.OutcomeUnknown, http: http.StatusConflict},
	} {
		w.tool.answer = answering(c.answer, c.err)
		got, err := run(name)
		var p *api.Problem
		if errors.As(err, &p) && (p.Status != c.http || p.Code != c.code) || c.code == "" && err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got == nil || got.Status != c.status || got.Code != c.code || got.IsError != c.answer.IsError || c.code != "" && got.Text == "" {
			t.Errorf("%s: %+v", name, got)
		}
		if name == "no json" && string(got.Result) != `"plain \u0000 text"` {
			t.Errorf("%s: %s", name, got.Result)
		}
	}
	// An outcome nobody knows is settled by a person, and only then.
	list, err := w.ana.Requests(t.Context(), api.RequestFilter{Status: []api.Status{api.StatusUnknown}})
	must(t, err)
	if len(list.Requests) != 1 {
		t.Fatalf("%d in doubt", len(list.Requests))
	}
	done, err := w.ana.Resolve(t.Context(), list.Requests[0].ApprovalID, api.ResolveRequest{Outcome: api.Succeeded, Note: "the file is there"})
	must(t, err)
	if done.Status != api.StatusExecuted || done.Execution.ResolvedBy != "user:ana" {
		t.Errorf("got %+v", done)
	}
	if _, err := w.ana.Resolve(t.Context(), done.ApprovalID, api.ResolveRequest{Outcome: api.Errored}); !errors.Is(err, api.NotUnknown) {
		t.Errorf("settled twice: %v", err)
	}
}

func TestIdempotencyKey(t *testing.T) {
	w := newWorld(t)
	ask := func(args string) (*api.Call, error) {
		return w.bot.Call(t.Context(), api.CallRequest{Server: "fs", Tool: "write_file", Args: json.RawMessage(args), Key: "k1"})
	}
	one, err := ask(`{"path":"a"}`)
	must(t, err)
	two, err := ask(`{"path":"a"}`)
	must(t, err)
	if one.ApprovalID != two.ApprovalID || !two.Attached {
		t.Errorf("%+v %+v", one, two)
	}
	if _, err := ask(`{"path":"b"}`); !errors.Is(err, api.KeyReused) {
		t.Errorf("got %v", err)
	}
}

func TestWithdrawExtendRevoke(t *testing.T) {
	w := newWorld(t)
	one := w.hold("fs", "write_file", `{"path":"1"}`)
	gone, err := w.bot.Withdraw(t.Context(), one.ID)
	must(t, err)
	if gone.Status != api.StatusCancelled || gone.Code != api.ApprovalWithdrawn {
		t.Errorf("got %+v", gone)
	}
	two := w.hold("fs", "write_file", `{"path":"2"}`)
	later, err := w.ana.Extend(t.Context(), two.ID)
	must(t, err)
	if !later.ExpiresAt.Equal(two.ExpiresAt.Add(5*time.Minute)) || later.ExtensionsLeft != 9 {
		t.Errorf("got %v, %d left", later.ExpiresAt, later.ExtensionsLeft)
	}
	w.say(w.ana, two.ID, api.Approve, "")
	ended, err := w.raj.Revoke(t.Context(), two.ID)
	must(t, err)
	if ended.Status != api.StatusCancelled || ended.Cause != "person" {
		t.Errorf("got %+v", ended)
	}
	c, err := w.bot.Await(t.Context(), two.ApprovalID, 0)
	if err == nil || c.Status != api.StatusCancelled || w.tool.count() != 0 {
		t.Errorf("after revoking: %+v %v", c, err)
	}
	three := w.hold("fs", "write_file", `{"path":"3"}`)
	w.clock.advance(6 * time.Minute)
	_, err = w.ana.Decide(t.Context(), three.ID, api.DecideRequest{Decision: api.Approve, Digest: mustDigest(t, w, three.ID)})
	if !errors.Is(err, api.Expired) {
		t.Errorf("too late: %v", err)
	}
}

func mustDigest(t *testing.T, w *world, id string) string {
	t.Helper()
	r, err := w.ana.Request(t.Context(), id)
	must(t, err)
	return r.Digest
}
