package desk_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ayegate/ayegate/api"
	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/desk"
	"github.com/ayegate/ayegate/internal/identity"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/store"
)

// held is a caller's call that was approved.
func held(t *testing.T, f *fixture, path string) *approval.Request {
	t.Helper()
	a := write(t, path)
	a.Executor = approval.Caller
	r := f.submit(t, a).Request
	f.approve(t, ana, r)
	return r
}

func redemption(r *approval.Request, token desk.Token) approval.Redemption {
	return approval.Redemption{Secret: []byte(token.Secret), Call: r.Call.Hash()}
}

// TOK-01: a token starts one effect, a claim gives one token, an outcome is told
// once; saying the same again is no error, saying another thing is.
func TestTokenOnce(t *testing.T) {
	f := setup(t, rules)
	r := held(t, f, "a")
	_, err := f.Redeem(t.Context(), bot, r.ID, approval.Redemption{Secret: nil, Call: r.Call.Hash()})
	wants(t, err, approval.ErrTokenUnknown)
	r, token, err := f.Claim(t.Context(), bot, r.ID)
	must(t, err)
	if r.State != approval.Executing || len(token.Secret) != 43 || token.ExpiresAt.Sub(f.wall.Now()) != desk.TokenTTL || token.ID != r.Claimed.TokenID {
		t.Fatalf("%+v", token)
	}
	_, _, err = f.Claim(t.Context(), bot, r.ID)
	wants(t, err, approval.ErrClaimed)
	_, err = f.Finish(t.Context(), bot, r.ID, approval.Execution{Outcome: approval.Succeeded})
	wants(t, err, approval.ErrNotClaimed)
	_, err = f.Redeem(t.Context(), bot, r.ID, redemption(r, token))
	must(t, err)
	_, err = f.Redeem(t.Context(), bot, r.ID, redemption(r, token))
	wants(t, err, approval.ErrTokenUsed)
	_, err = f.Finish(t.Context(), bot, r.ID, approval.Execution{Outcome: "perhaps"})
	wants(t, err, approval.ErrOutcome)
	for range 2 {
		r, err = f.Finish(t.Context(), bot, r.ID, approval.Execution{
			Outcome: approval.Succeeded, Result: []byte("1"), Hash: call.Hash{1}, Size: 9, By: "user:eve", PickedUp: f.wall.Now(),
		})
		must(t, err)
	}
	if e := r.Execution; r.State != approval.Executed || e.Size != 1 || e.Hash == (call.Hash{1}) || e.By != "" || !e.PickedUp.IsZero() {
		t.Fatalf("a caller says more than its outcome: %+v", e)
	}
	_, err = f.Finish(t.Context(), bot, r.ID, approval.Execution{Outcome: approval.Errored})
	wants(t, err, approval.ErrNotClaimed)
	if n := len(f.recorded(t, ledger.RequestRedeemed, ledger.RequestFinished)); n != 2 {
		t.Fatalf("%d events", n)
	}
}

// TOK-02, TOK-03, TOK-07: a token is for one call, one principal, one moment.
func TestTokenErrors(t *testing.T) {
	other, elsewhere, phone := bot, bot, bot
	other.ID, elsewhere.Workspace, phone.Device = "other", "w2", "phone"
	changed := ask(t, "fs", "write_file", `{"path":"A"}`).Call.Hash()
	for name, c := range map[string]struct {
		from   identity.Agent
		change func(*approval.Redemption)
		after  time.Duration
		want   error
	}{
		"half of it":         {bot, func(x *approval.Redemption) { x.Secret = x.Secret[:20] }, 0, approval.ErrTokenUnknown},
		"more than it":       {bot, func(x *approval.Redemption) { x.Secret = append(x.Secret, '=') }, 0, approval.ErrTokenUnknown},
		"nothing":            {bot, func(x *approval.Redemption) { x.Secret = nil }, 0, approval.ErrTokenUnknown},
		"another call":       {bot, func(x *approval.Redemption) { x.Call = changed }, 0, approval.ErrTokenCallMismatch},
		"no call":            {bot, func(x *approval.Redemption) { x.Call = call.Hash{} }, 0, approval.ErrTokenCallMismatch},
		"too late":           {bot, func(*approval.Redemption) {}, desk.TokenTTL, approval.ErrTokenExpired},
		"another agent":      {other, func(*approval.Redemption) {}, 0, store.ErrNotFound},
		"another workspace":  {elsewhere, func(*approval.Redemption) {}, 0, store.ErrNotFound},
		"another device":     {phone, func(*approval.Redemption) {}, 0, store.ErrNotFound},
		"no agent":           {identity.Agent{}, func(*approval.Redemption) {}, 0, store.ErrNotFound},
		"a device it claims": {bot, func(x *approval.Redemption) { x.Device = "phone" }, 0, nil}, // what it says of itself counts for nothing
	} {
		t.Run(name, func(t *testing.T) {
			f := setup(t, rules)
			r, token, err := f.Claim(t.Context(), bot, held(t, f, "a").ID)
			must(t, err)
			with := redemption(r, token)
			c.change(&with)
			f.wall.Move(c.after)
			if _, err = f.Redeem(t.Context(), c.from, r.ID, with); !errors.Is(err, c.want) {
				t.Fatalf("error is %v, want %v", err, c.want)
			}
			if c.want == nil {
				return
			}
			if _, err := f.Finish(t.Context(), c.from, r.ID, approval.Execution{Outcome: approval.Succeeded}); err == nil {
				t.Fatal("finished what never started")
			}
			f.wall.Move(desk.TokenTTL)
			must(t, f.Sweep(t.Context()))
			if got := f.get(t, r.ID); got.State != approval.Expired {
				t.Fatalf("a token that was not redeemed: %s", got.State)
			}
		})
	}
}

// TOK-03: what belongs to somebody else looks like what does not exist.
func TestOthersSeeNothing(t *testing.T) {
	f := setup(t, rules)
	r := held(t, f, "a")
	other := bot
	other.ID = "other"
	_, _, claim := f.Claim(t.Context(), other, r.ID)
	_, absent := f.GetOwn(t.Context(), other, "11111111-1111-4111-8111-111111111111")
	_, get := f.GetOwn(t.Context(), other, r.ID)
	_, byCode := f.FindOwn(t.Context(), other, r.Code)
	_, byID := f.FindOwn(t.Context(), other, string(r.ID))
	_, withdraw := f.Withdraw(t.Context(), other, r.ID)
	_, _, execute := f.Execute(t.Context(), other, &desk.Ticket{Request: r}, f.do)
	_, await := f.Await(t.Context(), other, r.ID)
	_, finish := f.Finish(t.Context(), other, r.ID, approval.Execution{})
	for _, err := range []error{absent, claim, get, byCode, byID, withdraw, execute, await, finish} {
		wants(t, err, store.ErrNotFound)
		if desk.FaultOf(err) != desk.FaultOf(absent) {
			t.Errorf("%v tells more than %v", err, absent)
		}
	}
	for _, name := range []string{string(r.ID), strings.ToUpper(string(r.ID)), r.Code, strings.ToLower(r.Code)} {
		if got, err := f.FindOwn(t.Context(), bot, name); err != nil || got.ID != r.ID {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := f.FindOwn(t.Context(), bot, "none"); !errors.Is(err, store.ErrNotFound) {
		t.Error(err)
	}
	// The same agent's next session finds it again.
	next := bot
	next.Session = "s2"
	if _, err := f.GetOwn(t.Context(), next, r.ID); err != nil {
		t.Error(err)
	}
}

// TOK-05, TOK-06: the gateway's claim has no token; there is none to leak.
func TestGatewayHasNoToken(t *testing.T) {
	f := setup(t, rules)
	r := f.submit(t, write(t, "a")).Request
	f.approve(t, ana, r)
	_, _, err := f.Claim(t.Context(), bot, r.ID)
	wants(t, err, desk.ErrNotCaller)
	_, err = f.Finish(t.Context(), bot, r.ID, approval.Execution{Outcome: approval.Succeeded})
	wants(t, err, desk.ErrNotCaller)
	got, _, err := f.Execute(t.Context(), bot, &desk.Ticket{Request: r}, f.do)
	must(t, err)
	if !got.Claimed.Secret.IsZero() || !got.Claimed.Until.IsZero() {
		t.Fatalf("%+v", got.Claimed)
	}
}

// P8: a caller that goes silent after it started leaves an outcome in doubt, and
// hundreds of them do not keep the sweeper busy for ever.
func TestSilentCallers(t *testing.T) {
	f := setup(t, rules)
	var ids []approval.ID
	for i := range 130 {
		r, token, err := f.Claim(t.Context(), bot, held(t, f, fmt.Sprint(i)).ID)
		must(t, err)
		_, err = f.Redeem(t.Context(), bot, r.ID, redemption(r, token))
		must(t, err)
		ids = append(ids, r.ID)
	}
	f.wall.Move(desk.TokenTTL)
	must(t, f.Sweep(t.Context()))
	if got := f.get(t, ids[0]); got.State != approval.Executing {
		t.Fatalf("it may still answer: %s", got.State)
	}
	f.wall.Move(approval.Silence)
	must(t, f.Sweep(t.Context()))
	for _, id := range ids {
		if got := f.get(t, id); got.State != approval.Unknown || got.Cause != approval.ByTimeout {
			t.Fatalf("%s %s", got.State, got.Cause)
		}
	}
	// The answer comes after all.
	got, err := f.Finish(t.Context(), bot, ids[0], approval.Execution{Outcome: approval.Succeeded, Result: []byte("1")})
	if err != nil || got.State != approval.Executed {
		t.Fatalf("%v %v", err, got)
	}
}

// POL-12, OPS-10, MCP-10: what is forbidden after the claim does not start.
func TestForbiddenBeforeTheStart(t *testing.T) {
	for name, c := range map[string]struct {
		forbid func(*fixture) error
		want   error
		code   api.Code
	}{
		"kill switch": {func(f *fixture) error { return f.Pause(t.Context(), ana, "") }, desk.ErrPaused, ""},
		"session":     {func(f *fixture) error { return f.PauseSession(t.Context(), ana, "bot/s1", "") }, nil, api.SessionPaused},
		"policy": {func(f *fixture) error {
			return f.SetPolicy(t.Context(), "p", parse(t, "version: 1\ndefaults: {unmatched: deny}\n"))
		}, approval.ErrPolicyDenies, ""},
		"definition": {func(f *fixture) error {
			_, err := f.Offer(t.Context(), "fs", "write_file", []byte(`{"name":"write_file"}`))
			return err
		}, approval.ErrDefinition, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := setup(t, rules)
			r, token, err := f.Claim(t.Context(), bot, held(t, f, "a").ID)
			must(t, err)
			must(t, c.forbid(f))
			_, err = f.Redeem(t.Context(), bot, r.ID, redemption(r, token))
			if c.want == nil {
				refused(t, err, c.code)
			} else {
				wants(t, err, c.want)
			}
			f.wall.Move(desk.TokenTTL)
			must(t, f.Sweep(t.Context()))
			if got := f.get(t, r.ID); got.State != approval.Expired {
				t.Fatal(got.State)
			}
		})
	}
}

// The sweeper keeps a caller's result for as long as it can be fetched.
func TestResultsAreKept(t *testing.T) {
	f := setup(t, rules)
	r, token, err := f.Claim(t.Context(), bot, held(t, f, "a").ID)
	must(t, err)
	_, err = f.Redeem(t.Context(), bot, r.ID, redemption(r, token))
	must(t, err)
	f.wall.Move(10 * time.Minute) // it works for a while
	r, err = f.Finish(t.Context(), bot, r.ID, approval.Execution{Outcome: approval.Succeeded, Result: []byte("1")})
	must(t, err)
	again := write(t, "a")
	again.Executor = approval.Caller
	f.wall.Move(10*time.Minute - 1)
	must(t, f.Sweep(t.Context()))
	if tk := f.submit(t, again); !tk.Attached || string(tk.Request.Execution.Result) != "1" {
		t.Fatalf("%v", tk.Request.State)
	}
	f.wall.Move(2)
	must(t, f.Sweep(t.Context()))
	got := f.get(t, r.ID)
	if got.Execution.Result != nil || got.Execution.Hash.IsZero() {
		t.Fatalf("%+v", got.Execution)
	}
	if tk := f.submit(t, again); tk.Attached {
		t.Fatal("joined a request whose result is gone")
	}
	if n := len(f.recorded(t, ledger.ResultReplayed)); n != 1 {
		t.Fatalf("%d replays on record", n)
	}
	if !slices.Contains(approval.States, got.State) {
		t.Fatal(got.State)
	}
}
