package desk_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/desk"
	"github.com/ayegate/ayegate/internal/identity"
	"github.com/ayegate/ayegate/internal/store"
	"github.com/ayegate/ayegate/internal/store/memory"
	"github.com/ayegate/ayegate/internal/store/storetest"
)

// world is a desk whose store fails at one write, and what everybody was told.
type world struct {
	*desk.Desk
	t      *testing.T
	inner  store.Store
	faulty *storetest.Faulty
	began  map[string]int                  // effects, by the call's arguments
	done   map[string]bool                 // effects that the tool confirmed
	none   map[approval.ID]string          // requests of which somebody was told that nothing ran or will
	said   map[approval.ID]map[string]bool // acknowledged decisions, by person: approve
	wrong  []string
}

// scenario is what an agent and people do. Whoever gets an error gives up there.
var scenarios = map[string]func(w *world){
	"a rule allows":       func(w *world) { w.run(w.submit("fs", "touch", "a")) },
	"an agent reads":      func(w *world) { w.run(w.submit("fs", "read_file", "a")) },
	"the policy denies":   func(w *world) { w.submit("fs", "wipe", "a") },
	"the tool fails":      func(w *world) { w.runWith(w.submit("fs", "touch", "a"), fmt.Errorf("broken: %w", desk.ErrNotSent)) },
	"no answer comes":     func(w *world) { w.resolve(w.runWith(w.submit("fs", "touch", "a"), desk.ErrNoAnswer)) },
	"the executor panics": func(w *world) { w.panics(w.submit("fs", "touch", "a")) },
	"approved, executed":  func(w *world) { w.pickUp(w.run(w.decide(ana, true, w.submit("fs", "write_file", "a")))) },
	"two people":          func(w *world) { w.run(w.decide(raj, true, w.decide(ana, true, w.submit("bank", "pay", "a")))) },
	"one of two denies":   func(w *world) { w.run(w.decide(raj, false, w.decide(ana, true, w.submit("bank", "pay", "a")))) },
	"denied and asked anew": func(w *world) {
		w.decide(ana, false, w.submit("fs", "write_file", "a"))
		w.run(w.submit("fs", "write_file", "a"))
	},
	"withdrawn": func(w *world) { w.run(w.withdraw(w.decide(ana, true, w.submit("fs", "write_file", "a")))) },
	"revoked":   func(w *world) { w.run(w.revoke(w.decide(ana, true, w.submit("fs", "write_file", "a")))) },
	"nobody decides": func(w *world) {
		tk := w.submit("fs", "write_file", "a")
		w.pass(10 * time.Minute)
		w.run(w.decide(ana, true, tk))
	},
	"nobody claims": func(w *world) {
		tk := w.decide(ana, true, w.submit("fs", "write_file", "a"))
		w.pass(10 * time.Minute)
		w.run(tk)
	},
	"asked twice": func(w *world) {
		w.submit("fs", "write_file", "a")
		w.run(w.decide(ana, true, w.submit("fs", "write_file", "a")))
	},
	"result fetched later": func(w *world) {
		w.run(w.decide(ana, true, w.submit("fs", "write_file", "a")))
		w.run(w.submit("fs", "write_file", "a"))
	},
	"more time": func(w *world) {
		tk := w.submit("fs", "write_file", "a")
		if tk != nil {
			_, _ = w.Extend(w.ctx(), ana, tk.Request.ID)
		}
		w.run(w.decide(ana, true, tk))
	},
	"a newer policy asks more": func(w *world) {
		tk := w.decide(ana, true, w.submit("fs", "write_file", "a"))
		_ = w.SetPolicy(w.ctx(), "p", parse(w.t, rules+"# newer\n"))
		w.run(tk)
	},
	"a newer policy denies": func(w *world) {
		tk := w.decide(ana, true, w.submit("fs", "write_file", "a"))
		if w.SetPolicy(w.ctx(), "p", parse(w.t, "version: 1\ndefaults: {unmatched: deny}\n")) == nil && tk != nil {
			w.none[tk.Request.ID] = "a deny is in force"
		}
		w.run(tk)
	},
	"a newer policy before the decision": func(w *world) {
		tk := w.submit("fs", "write_file", "a")
		_ = w.SetPolicy(w.ctx(), "p", parse(w.t, rules+"# newer\n"))
		w.run(w.decide(ana, true, w.decide(ana, true, tk)))
	},
	"the tool changes": func(w *world) {
		first, err := w.Offer(w.ctx(), "fs", "write_file", []byte(`{"name":"write_file","inputSchema":{"type":"object"}}`))
		if err != nil {
			return
		}
		tk := w.decide(ana, true, w.submitTo("fs", "write_file", "a", first.Definition))
		changed, err := w.Offer(w.ctx(), "fs", "write_file", []byte(`{"name":"write_file","title":"new","inputSchema":{"type":"object"}}`))
		if err == nil && tk != nil {
			w.none[tk.Request.ID] = "its tool changed"
		}
		w.run(tk)
		if err == nil {
			_, _ = w.Accept(w.ctx(), ana, "fs", "write_file", changed.Definition)
			w.run(w.decide(ana, true, w.submitTo("fs", "write_file", "b", changed.Definition)))
		}
	},
	"the kill switch": func(w *world) {
		tk := w.decide(ana, true, w.submit("fs", "write_file", "a"))
		_ = w.Pause(w.ctx(), ana, "stop")
		before := len(w.began)
		w.run(tk)
		w.run(w.submit("fs", "touch", "b"))
		if len(w.began) != before {
			w.wrong = append(w.wrong, "ran while everything was paused")
		}
		if w.Resume(w.ctx(), ana, "go") == nil {
			w.run(tk)
		}
	},
	"three denials": func(w *world) {
		for _, arg := range []string{"a", "b", "c"} {
			w.decide(ana, false, w.submit("fs", "write_file", arg))
		}
		w.run(w.submit("fs", "touch", "d"))
		_ = w.ResumeSession(w.ctx(), ana, "bot/s1", "")
		w.run(w.submit("fs", "touch", "e"))
	},
	"a caller executes": func(w *world) {
		tk := w.decide(ana, true, w.submitBy(approval.Caller, "fs", "write_file", "a"))
		w.callerRuns(tk)
	},
	"a caller goes away": func(w *world) {
		tk := w.decide(ana, true, w.submitBy(approval.Caller, "fs", "write_file", "a"))
		if tk != nil {
			_, _, _ = w.Claim(w.ctx(), bot, tk.Request.ID)
		}
	},
	"the store is known to have lost something": func(w *world) {
		tk := w.decide(ana, true, w.submit("fs", "write_file", "a"))
		if _, err := w.VoidAll(w.ctx(), "restored"); err == nil && tk != nil {
			w.none[tk.Request.ID] = "everything open is void"
		}
		w.run(tk)
	},
}

// TestFaultAtEveryWrite: T2, and with it RACE-08 to RACE-11 and OPS-02. For every
// operation, every write of it and every way a write goes wrong the promises hold
// afterwards, both when the process lives on and when the next one takes over.
func TestFaultAtEveryWrite(t *testing.T) {
	stores := map[string]func(*testing.T) store.Store{
		"memory": func(t *testing.T) store.Store {
			s, err := memory.Open(memory.Config{Now: time.Now})
			must(t, err)
			return s
		},
		"sqlite": func(t *testing.T) store.Store { return onDisk(t, time.Now) },
	}
	for kind, open := range stores {
		t.Run(kind, func(t *testing.T) {
			if kind == "sqlite" && testing.Short() {
				t.Skip("makes hundreds of databases; run without -short")
			}
			points, hit, faults := make(map[string]bool), 0, storetest.Faults
			if kind == "sqlite" { // each fault is a database of its own; the memory store meets all six kinds
				faults = []storetest.Fault{storetest.NotWritten, storetest.Unconfirmed, storetest.DiesAfter}
			}
			for _, name := range slices.Sorted(maps.Keys(scenarios)) {
				for _, fault := range faults {
					for n := 1; ; n++ {
						var more bool
						var at string
						t.Run(fmt.Sprintf("%s/%s/%d", name, fault, n), func(t *testing.T) {
							synctest.Test(t, func(t *testing.T) { at, more = oneFault(t, open(t), scenarios[name], n, fault) })
						})
						if t.Failed() {
							return
						}
						if !more {
							break
						}
						points[name+": "+at] = true
						hit++
					}
				}
			}
			t.Logf("%d labelled points, %d faults", len(points), hit)
		})
	}
}

// oneFault plays a scenario whose n-th write goes wrong, and checks the promises.
// It reports which write that was, and whether there was one.
func oneFault(t *testing.T, inner store.Store, play func(*world), n int, fault storetest.Fault) (at string, hit bool) {
	defer inner.Close()
	w := &world{
		t: t, inner: inner, faulty: storetest.NewFaulty(inner), began: make(map[string]int), done: make(map[string]bool),
		none: make(map[approval.ID]string), said: make(map[approval.ID]map[string]bool),
	}
	w.Desk = w.desk(w.faulty)
	must(t, w.Recover(t.Context(), "test"))
	w.faulty.FailAt(n, fault)
	play(w)
	points := w.faulty.Points()
	if hit = len(points) >= n; hit {
		at = points[n-1]
	}
	if fault != storetest.DiesBefore && fault != storetest.DiesAfter || !hit {
		// The process lives on, and so does the store: the sweeper brings everything
		// to an end that needs no restart.
		w.faulty.FailAt(0, 0)
		for range 30 {
			w.pass(time.Minute)
		}
		w.check(fmt.Sprintf("after the sweeper (%s)", at), false)
	}
	w.faulty.FailAt(0, 0)
	w.Desk = w.desk(inner)
	must(t, w.Recover(t.Context(), "test"))
	for range 30 {
		w.pass(time.Minute)
	}
	w.check(fmt.Sprintf("after a restart (%s)", at), true)
	must(t, audit(inner))
	return at, hit
}

func (w *world) desk(s store.Store) *desk.Desk {
	d, err := desk.New(desk.Config{Store: s, Policy: parse(w.t, rules), Rand: rand.Reader, Log: slog.New(slog.DiscardHandler)})
	must(w.t, err)
	return d
}

// check holds the world to the promises.
func (w *world) check(when string, restarted bool) {
	w.t.Helper()
	for _, wrong := range w.wrong {
		w.t.Errorf("%s: %s", when, wrong)
	}
	for args, n := range w.began {
		if n > 1 {
			w.t.Errorf("%s: %s ran %d times", when, args, n) // P2
		}
	}
	for r, err := range w.inner.List(w.t.Context(), store.Filter{}) {
		must(w.t, err)
		began := w.began[string(r.Call.Args())] > 0
		if why := w.none[r.ID]; why != "" && began {
			w.t.Errorf("%s: ran, though %s", when, why) // P3
		}
		if !r.State.Final() && r.State != approval.Unknown {
			w.t.Errorf("%s: still %s", when, r.State) // P8
		}
		if w.only(r) && !w.honest(r, began, restarted) {
			w.t.Errorf("%s: it is %s (%s), and it ran: %t", when, r.State, r.Execution.Outcome, began) // P2
		}
		for who, yes := range w.said[r.ID] {
			if !slices.ContainsFunc(r.Decisions, func(d approval.Decision) bool { return d.By.ID == who && d.Approve == yes }) {
				w.t.Errorf("%s: the word of %s is gone", when, who) // P4
			}
		}
	}
}

// honest reports whether the record says of an effect what is known: what began is
// never said not to have run, and what did not begin is in doubt only where a
// process died, or a caller alone knows.
func (w *world) honest(r *approval.Request, began, restarted bool) bool {
	ran := r.State == approval.Executed || r.State == approval.Failed && r.Execution.Outcome != approval.NotSent
	if r.State == approval.Unknown {
		return began || restarted || r.Executor == approval.Caller
	}
	return began == ran
}

// only reports whether a request is the only one for its call, so that what ran
// is surely its doing.
func (w *world) only(r *approval.Request) bool {
	n := 0
	for range w.inner.List(w.t.Context(), store.Filter{Agent: "bot", CallHash: r.Call.Hash()}) {
		n++
	}
	return n == 1 && r.Execution.By == ""
}

func (w *world) ctx() context.Context {
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*time.Second)
	w.t.Cleanup(cancel)
	return ctx
}

func (w *world) pass(d time.Duration) {
	time.Sleep(d)
	_ = w.Sweep(w.ctx())
}

func (w *world) submit(server, tool, arg string) *desk.Ticket {
	return w.submitBy(approval.Gateway, server, tool, arg)
}

func (w *world) submitTo(server, tool, arg string, def call.Hash) *desk.Ticket {
	a := ask(w.t, server, tool, fmt.Sprintf(`{"path":%q}`, arg))
	a.Tool.Definition = def
	return w.asked(w.Submit(w.ctx(), a))
}

func (w *world) submitBy(by approval.Executor, server, tool, arg string) *desk.Ticket {
	a := ask(w.t, server, tool, fmt.Sprintf(`{"path":%q}`, arg))
	a.Executor = by
	return w.asked(w.Submit(w.ctx(), a))
}

func (w *world) asked(tk *desk.Ticket, err error) *desk.Ticket {
	if err != nil {
		return nil
	}
	w.tell(tk.Request)
	return tk
}

// tell notes what somebody was told without an error.
func (w *world) tell(r *approval.Request) {
	switch r.State {
	case approval.Denied, approval.Cancelled, approval.Expired:
		w.none[r.ID] = "somebody was told " + string(r.State)
	}
}

func (w *world) decide(by identity.Human, yes bool, tk *desk.Ticket) *desk.Ticket {
	if tk == nil {
		return nil
	}
	shown, err := w.inner.Get(w.t.Context(), tk.Request.ID)
	must(w.t, err)
	r, err := w.Decide(w.ctx(), by, shown.ID, approval.Decision{Approve: yes, Digest: shown.Digest})
	if err == nil {
		if w.said[r.ID] == nil {
			w.said[r.ID] = make(map[string]bool)
		}
		w.said[r.ID][by.ID] = yes
		if !yes {
			w.none[r.ID] = "somebody was told that it is denied"
		}
		w.tell(r)
	}
	return tk
}

func (w *world) withdraw(tk *desk.Ticket) *desk.Ticket {
	if tk != nil {
		if r, err := w.Withdraw(w.ctx(), bot, tk.Request.ID); err == nil {
			w.none[r.ID] = "the agent was told that it is withdrawn"
		}
	}
	return tk
}

func (w *world) revoke(tk *desk.Ticket) *desk.Ticket {
	if tk != nil {
		if r, err := w.Revoke(w.ctx(), ana, tk.Request.ID); err == nil {
			w.none[r.ID] = "a person was told that it is revoked"
		}
	}
	return tk
}

func (w *world) run(tk *desk.Ticket) *desk.Ticket { return w.runWith(tk, nil) }

// effect is the tool: it notes that it ran, and that the record was there before.
func (w *world) effect(id approval.ID, answer error) desk.Do {
	return func(_ context.Context, c call.Call, claim string) (desk.Result, error) {
		r, err := w.inner.Get(w.t.Context(), id)
		if err != nil || r.State != approval.Executing || r.Claimed.ID != claim {
			w.wrong = append(w.wrong, fmt.Sprintf("ran without a claim on record: %v", err)) // P6
		} else if r.Quorum() > len(r.Approvals()) || r.Call != c {
			w.wrong = append(w.wrong, "ran what nobody approved") // P1, P5
		}
		if answer == nil || !isNotSent(answer) {
			w.began[string(c.Args())]++
		}
		return desk.Result{Bytes: []byte(`{"ok":true}`)}, answer
	}
}

func isNotSent(err error) bool { return fmt.Sprint(err) == fmt.Sprintf("broken: %v", desk.ErrNotSent) }

func (w *world) runWith(tk *desk.Ticket, answer error) *desk.Ticket {
	if tk == nil {
		return nil
	}
	for range 2 { // an agent that got no answer asks again
		r, _, err := w.Execute(w.ctx(), bot, tk, w.effect(tk.Request.ID, answer))
		if err == nil {
			w.tell(r)
			break
		}
	}
	return tk
}

func (w *world) panics(tk *desk.Ticket) {
	if tk == nil {
		return
	}
	defer func() { _ = recover() }()
	_, _, _ = w.Execute(w.ctx(), bot, tk, func(_ context.Context, c call.Call, _ string) (desk.Result, error) {
		w.began[string(c.Args())]++
		panic("a bug in the executor")
	})
}

func (w *world) pickUp(tk *desk.Ticket) {
	if tk != nil {
		_ = w.PickedUp(w.ctx(), tk.Request.ID)
	}
}

func (w *world) resolve(tk *desk.Ticket) {
	if tk != nil {
		_, _ = w.Resolve(w.ctx(), ana, tk.Request.ID, approval.Succeeded, "seen")
	}
}

func (w *world) callerRuns(tk *desk.Ticket) {
	if tk == nil {
		return
	}
	for range 2 {
		r, token, err := w.Claim(w.ctx(), bot, tk.Request.ID)
		if err != nil {
			continue
		}
		for range 2 {
			_, err := w.Redeem(w.ctx(), bot, r.ID, approval.Redemption{Secret: []byte(token.Secret), Call: r.Call.Hash()})
			if err != nil {
				continue
			}
			w.began[string(r.Call.Args())]++
			for range 2 {
				if _, err := w.Finish(w.ctx(), bot, r.ID, approval.Execution{Outcome: approval.Succeeded, Result: []byte(`1`)}); err == nil {
					return
				}
			}
			return
		}
	}
}
