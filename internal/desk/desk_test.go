package desk_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/ayegate/ayegate/api"
	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/desk"
)

func TestAllowedRunsAtOnce(t *testing.T) {
	f := setup(t, rules)
	tk := f.submit(t, ask(t, "fs", "read_file", `{"path":"a"}`))
	if tk.Claim == "" || tk.Request.State != approval.Executing {
		t.Fatalf("state %s, claim %q", tk.Request.State, tk.Claim)
	}
	r, res, err := f.Execute(t.Context(), bot, tk, f.do)
	if err != nil || r.State != approval.Executed || string(res.Bytes) != `{"content":[]}` || f.runs.Load() != 1 {
		t.Fatalf("%v %v %q %d", err, r.State, res.Bytes, f.runs.Load())
	}
}

func TestDeniedByPolicyNeverRuns(t *testing.T) {
	f := setup(t, rules)
	tk := f.submit(t, ask(t, "fs", "wipe", `{}`))
	if tk.Request.State != approval.Denied {
		t.Fatal(tk.Request.State)
	}
	if _, _, err := f.Execute(t.Context(), bot, tk, f.do); !errors.Is(err, approval.ErrEnded) || f.runs.Load() != 0 {
		t.Fatalf("%v, %d runs", err, f.runs.Load())
	}
}

func TestHeldApprovedRunsOnce(t *testing.T) {
	f := setup(t, rules)
	tk := f.submit(t, ask(t, "fs", "write_file", `{"path":"a"}`))
	if tk.Request.State != approval.Pending {
		t.Fatal(tk.Request.State)
	}
	if _, _, err := f.Execute(t.Context(), bot, tk, f.do); !errors.Is(err, approval.ErrNotApproved) {
		t.Fatal(err)
	}
	f.approve(t, ana, tk.Request)
	var wg sync.WaitGroup
	for range 100 { // RACE-02
		wg.Go(func() {
			again, err := f.Submit(t.Context(), ask(t, "fs", "write_file", `{"path":"a"}`))
			if err != nil {
				t.Error(err)
				return
			}
			r, res, err := f.Execute(t.Context(), bot, again, f.do)
			if err != nil || r.State != approval.Executed || len(res.Bytes) == 0 {
				t.Errorf("%v %v %q", err, r.State, res.Bytes)
			}
		})
	}
	wg.Wait()
	if n := f.runs.Load(); n != 1 {
		t.Fatalf("%d runs", n)
	}
}

func TestRepeatOfDeniedIsNotShownAgain(t *testing.T) {
	f := setup(t, rules)
	tk := f.submit(t, ask(t, "fs", "write_file", `{"path":"a"}`))
	if _, err := f.Decide(t.Context(), ana, tk.Request.ID, approval.Decision{Digest: tk.Request.Digest, Reason: "no"}); err != nil {
		t.Fatal(err)
	}
	_, err := f.Submit(t.Context(), ask(t, "fs", "write_file", `{"path":"a"}`))
	var ref *desk.Refusal
	if !errors.As(err, &ref) || ref.Code != api.ToolDenied || ref.Of.ID != tk.Request.ID {
		t.Fatal(err)
	}
}

func TestThreeDenialsPauseTheSession(t *testing.T) {
	f := setup(t, rules)
	for _, path := range []string{"a", "b", "c"} {
		tk := f.submit(t, ask(t, "fs", "write_file", `{"path":"`+path+`"}`))
		if _, err := f.Decide(t.Context(), ana, tk.Request.ID, approval.Decision{Digest: tk.Request.Digest}); err != nil {
			t.Fatal(err)
		}
	}
	_, err := f.Submit(t.Context(), ask(t, "fs", "write_file", `{"path":"d"}`))
	var ref *desk.Refusal
	if !errors.As(err, &ref) || ref.Code != api.SessionPaused {
		t.Fatal(err)
	}
	if _, err := f.Submit(t.Context(), ask(t, "fs", "read_file", `{"path":"d"}`)); err != nil {
		t.Fatalf("reading is still allowed: %v", err)
	}
	paused, err := f.PausedSessions(t.Context())
	if err != nil || len(paused) != 1 {
		t.Fatal(paused, err)
	}
	if err := f.ResumeSession(t.Context(), ana, paused[0], "talked to it"); err != nil {
		t.Fatal(err)
	}
	f.submit(t, ask(t, "fs", "write_file", `{"path":"d"}`))
}
