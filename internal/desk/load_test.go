package desk_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ayegate/ayegate/api"
	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/desk"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/policy"
)

// constant is a source of randomness that always gives the same.
type constant struct{}

func (constant) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// nothing is a source that dries up.
type nothing struct{ after int }

func (nothing) Read([]byte) (int, error) { return 0, errors.New("no entropy") }

func (f *fixture) withRand(t *testing.T, r io.Reader) *desk.Desk {
	t.Helper()
	if n, ok := r.(nothing); ok {
		r = io.MultiReader(io.LimitReader(rand.Reader, int64(n.after)), n)
	}
	d, err := desk.New(desk.Config{Store: f.store, Policy: f.Policy(), Rand: r, Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	return d
}

// POL-12: a thousand reloads while calls run. Every claim cites the policy that
// was in force, and a deny that is in force is followed by no claim.
func TestReloadsUnderLoad(t *testing.T) {
	f := setup(t, rules)
	policies := []*policy.Policy{
		parse(t, rules), parse(t, rules+"# the same under another name\n"),
		parse(t, "version: 1\nrules:\n  - {id: none, tool: fs.touch, deny: {}}\n"),
	}
	var wg sync.WaitGroup
	var n, over atomic.Int64
	for range 4 {
		wg.Go(func() {
			defer over.Add(1)
			for range 1000 {
				tk, err := f.Submit(t.Context(), ask(t, "fs", "touch", fmt.Sprintf(`{"n":%d}`, n.Add(1))))
				if err != nil {
					t.Error(err)
					return
				}
				if tk.Claim != "" {
					if _, _, err := f.Execute(t.Context(), bot, tk, f.do); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	for i := range 1000 {
		must(t, f.SetPolicy(t.Context(), "p", policies[(i+1)%3]))
		for was := n.Load(); n.Load() < was+2 && over.Load() < 4; {
			runtime.Gosched()
		}
	}
	wg.Wait()
	inForce, claims := policies[0].Revision(), 0
	for _, e := range f.recorded(t, ledger.PolicyLoaded, ledger.RequestClaimed) {
		rev, _ := e.Text(ledger.FieldPolicy)
		if e.Kind == ledger.PolicyLoaded {
			inForce = rev
			continue
		}
		claims++
		if rev != inForce {
			t.Fatalf("entry %d: a claim judged by %s while %s was in force", e.Seq, rev, inForce)
		}
		if rev == policies[2].Revision() {
			t.Fatalf("entry %d: a claim under a policy that denies", e.Seq)
		}
	}
	t.Logf("%d claims", claims)
	if claims == 0 {
		t.Error("nothing ran")
	}
}

// OPS-10: no claim starts after Pause returned, whatever the load.
func TestKillSwitchUnderLoad(t *testing.T) {
	f := setup(t, rules)
	approved := f.submit(t, write(t, "approved"))
	f.approve(t, ana, approved.Request)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var n atomic.Int64
	for range 8 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				tk, err := f.Submit(t.Context(), ask(t, "fs", "touch", fmt.Sprintf(`{"n":%d}`, n.Add(1))))
				if err == nil {
					_, _, _ = f.Execute(t.Context(), bot, tk, f.do)
				}
			}
		})
	}
	for range 20 {
		for was := n.Load(); n.Load() < was+20; {
			runtime.Gosched()
		}
		must(t, f.Pause(t.Context(), ana, "stop"))
		must(t, f.Pause(t.Context(), raj, "stop, stop"))
		head, err := f.store.Head(t.Context())
		must(t, err)
		_, err = f.Submit(t.Context(), ask(t, "fs", "read_file", `{}`))
		refused(t, err, api.SessionPaused)
		_, _, err = f.Execute(t.Context(), bot, approved, f.do)
		refused(t, err, api.SessionPaused)
		for was := n.Load(); n.Load() < was+20; {
			runtime.Gosched()
		}
		for line, err := range f.store.Entries(t.Context(), head.Size) {
			must(t, err)
			if e, err := ledger.ParseEntry(line); err != nil || e.Kind == ledger.RequestClaimed {
				t.Fatalf("entry %d: claimed after the pause (%v)", e.Seq, err)
			}
		}
		if !f.Paused() {
			t.Fatal("not paused")
		}
		must(t, f.Resume(t.Context(), ana, "go"))
	}
	close(stop)
	wg.Wait()
	if _, _, err := f.Execute(t.Context(), bot, approved, f.do); err != nil {
		t.Fatalf("what was approved runs after the pause: %v", err)
	}
}

// A pause outlives the process, and only people pause and resume.
func TestPauseIsKept(t *testing.T) {
	f := setup(t, rules)
	must(t, f.Pause(t.Context(), ana, "stop"))
	next := over(t, f.store, rules)
	_, err := next.Submit(t.Context(), ask(t, "fs", "read_file", `{}`))
	refused(t, err, api.SessionPaused)
	must(t, next.Resume(t.Context(), ana, "go"))
	must(t, next.Resume(t.Context(), ana, "go"))
	next.submit(t, ask(t, "fs", "read_file", `{}`))
	for _, err := range []error{
		f.Pause(t.Context(), nobody, ""), f.Resume(t.Context(), nobody, ""),
		f.PauseSession(t.Context(), nobody, "x", ""), f.ResumeSession(t.Context(), nobody, "x", ""),
	} {
		wants(t, err, approval.ErrNoPerson)
	}
}

const limited = `
version: 1
rules:
  - {id: get, tool: api.get, allow: {tier: R0}}
  - {id: pay, tool: bank.pay, allow: {tier: R2}}
limits:
  - {id: burst, tool: api.get, count: 10, per: 1m, by: session, then: deny}
  - {id: spend, tool: bank.pay, sum: args.usd, per: 24h, by: workspace, above: 100, then: deny}
`

// POL-16: calls that arrive together do not overrun a limit that has room for some.
func TestLimitsUnderLoad(t *testing.T) {
	for _, c := range []struct {
		server, tool string
		room         int
	}{{"api", "get", 10}, {"bank", "pay", 10}} {
		f := setup(t, limited)
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				tk, err := f.Submit(t.Context(), ask(t, c.server, c.tool, fmt.Sprintf(`{"usd":10,"n":%d}`, i)))
				if err != nil {
					t.Error(err)
					return
				}
				if tk.Claim != "" {
					if _, _, err := f.Execute(t.Context(), bot, tk, f.do); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if got := int(f.runs.Load()); got > c.room || got == 0 {
			t.Errorf("%s.%s: %d ran, there was room for %d", c.server, c.tool, got, c.room)
		}
		for i := range c.room { // one after the other exactly as many as there is room for
			if tk := f.submit(t, ask(t, c.server, c.tool, fmt.Sprintf(`{"usd":10,"n":%d}`, 1000+i))); tk.Claim != "" {
				_, _, err := f.Execute(t.Context(), bot, tk, f.do)
				must(t, err)
			}
		}
		f.ran(t, int32(c.room))
	}
}

// OPS-01: the flood of one agent stops at its cap, also when it comes at once,
// and other agents are not affected.
func TestQueueIsCapped(t *testing.T) {
	s := onDisk(t, time.Now) // where a commit takes its time
	defer s.Close()
	f := over(t, s, rules)
	var wg sync.WaitGroup
	var full atomic.Int32
	for i := range 300 {
		wg.Go(func() {
			_, err := f.Submit(t.Context(), write(t, fmt.Sprint(i)))
			var ref *desk.Refusal
			if errors.As(err, &ref) && ref.Code == api.QueueFull {
				full.Add(1)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	n, err := f.store.Counts(t.Context())
	must(t, err)
	if n.Pending > 50 || n.Pending+int(full.Load()) != 300 {
		t.Fatalf("%d wait, %d were refused", n.Pending, full.Load())
	}
	for i := range 50 {
		_, _ = f.Submit(t.Context(), write(t, fmt.Sprint("one by one ", i)))
	}
	if n, err = f.store.Counts(t.Context()); err != nil || n.Pending != 50 {
		t.Fatalf("%d wait, %v", n.Pending, err)
	}
	other := write(t, "x")
	other.From.ID = "other"
	f.submit(t, other)
	if tk := f.submit(t, ask(t, "fs", "touch", `{}`)); tk.Claim == "" {
		t.Fatal("what a rule allows needs no place in the queue")
	}
}
