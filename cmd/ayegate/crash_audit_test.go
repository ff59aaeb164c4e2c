package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ayegate/ayegate/api"
	"github.com/ayegate/ayegate/internal/ledger"
)

// story is what the record says of one request.
type story struct {
	effect    string
	quorum    int
	claim     string
	began     bool // claimed, and redeemed where the caller acts
	caller    bool
	approvals map[string]bool
	decisions map[string]api.Verb
	stopped   bool // denied, cancelled or expired
	outcome   string
	lost      bool
}

// check holds the record against the effects and against what was told.
func (c *crash) check() {
	c.t.Helper()
	stories, effects := c.audit(), c.effects()
	for _, f := range slices.Sorted(slices.Values(faults(stories, effects, c.told))) {
		c.t.Error(f)
	}
	if c.t.Failed() {
		c.t.Fatalf("the store and its record are in %s", keep(c.t, c.dir))
	}
	if c.cycles < perStore {
		return
	}
	c.sum.asked += len(stories)
	c.sum.effects += len(effects)
	for _, s := range stories {
		switch {
		case s.lost && s.outcome == "":
			c.sum.unknown++
		case s.outcome == "expired":
			c.sum.expired++
		}
	}
}

// faults is every way in which a record, the effects and what was told disagree.
func faults(stories map[string]*story, effects map[string]int, t *told) (found []string) {
	fault := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	began := map[string]*story{}
	for id, s := range stories {
		key := s.claim
		if s.caller {
			key = "own:" + id
		}
		if s.began {
			began[key] = s
		}
		ran := s.began && effects[key] > 0
		switch {
		case s.outcome == "executed" && !ran:
			fault("request %s is executed on record and never ran", id)
		case s.outcome == "failed" && ran:
			fault("request %s ran and is recorded as failed", id)
		case s.began && !s.caller && s.outcome == "" && !s.lost:
			fault("request %s was in flight, and after the restart it is not unknown", id)
		}
	}
	for claim, n := range effects {
		s := began[claim]
		switch {
		case s == nil:
			fault("the effect of claim %s has no claim on record (P6)", claim)
		case n > 1:
			fault("claim %s ran %d times (P2)", claim, n)
		case s.stopped:
			fault("claim %s ran, and its request is denied, cancelled or expired (P3)", claim)
		case s.effect != "allow" && len(s.approvals) < max(s.quorum, 1):
			fault("claim %s ran with %d of %d approvals (P1)", claim, len(s.approvals), s.quorum)
		}
	}
	return append(found, t.lost(stories)...)
}

// lost is what was acknowledged and is not true any more (P4).
func (x *told) lost(stories map[string]*story) (found []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	is := func(id string, holds func(*story) bool) bool { s := stories[id]; return s != nil && holds(s) }
	for id, by := range x.decided {
		for who, d := range by {
			if !is(id, func(s *story) bool { return s.decisions["user:"+who] == d }) {
				found = append(found, fmt.Sprintf("the %s of %s on request %s was acknowledged and is lost (P4)", d, who, id))
			}
		}
	}
	for id := range x.denied {
		if !is(id, func(s *story) bool { return s.stopped }) {
			found = append(found, fmt.Sprintf("request %s was said to be denied, cancelled or expired, and is not (P3)", id))
		}
	}
	for id := range x.executed {
		if !is(id, func(s *story) bool { return s.outcome == "executed" }) {
			found = append(found, fmt.Sprintf("request %s was said to be executed, and is not on record as such (P4)", id))
		}
	}
	return found
}

// audit exports the record, verifies it as an auditor would, and reads it.
func (c *crash) audit() map[string]*story {
	var export bytes.Buffer
	must(c.t, c.client("ana").Export(c.t.Context(), &export))
	report, err := ledger.Verify(bytes.NewReader(export.Bytes()), ledger.VerifyOptions{})
	if err != nil {
		c.t.Fatalf("the record does not verify after the kill: %v: %v (%s)", err, report.FirstBad, keep(c.t, c.dir))
	}
	c.sum.entries += int(report.Entries)
	stories := map[string]*story{}
	for line := range bytes.Lines(export.Bytes()) {
		if e, err := ledger.ParseEntry(bytes.TrimSpace(line)); err == nil && strings.HasPrefix(string(e.Kind), "request.") {
			if stories[e.Subject] == nil {
				stories[e.Subject] = &story{approvals: map[string]bool{}, decisions: map[string]api.Verb{}}
			}
			stories[e.Subject].read(e)
		}
	}
	return stories
}

func (s *story) read(e ledger.Entry) {
	text := func(name string) string { v, _ := e.Text(name); return v }
	switch e.Kind {
	case ledger.RequestAsked:
		s.effect = text("effect")
		n, _ := e.Int("quorum")
		s.quorum = int(n)
	case ledger.RequestDecided:
		s.decisions[e.Actor.ID] = api.Verb(text("decision"))
		if text("decision") == string(api.Approve) {
			s.approvals[e.Actor.ID] = true
		} else {
			s.stopped = true
		}
	case ledger.RequestClaimed:
		s.claim, s.caller = text("claim"), text("executor") == "caller"
		s.began = !s.caller
	case ledger.RequestRedeemed:
		s.began = true
	case ledger.RequestFinished:
		s.outcome = text("outcome")
	case ledger.RequestLost:
		s.lost = true
	case ledger.RequestExpired, ledger.RequestCancelled, ledger.RequestDenied:
		s.stopped, s.outcome = true, strings.TrimPrefix(string(e.Kind), "request.")
	default: // says nothing of what ran
	}
}

// effects counts what ran, by claim.
func (c *crash) effects() map[string]int {
	text, err := os.ReadFile(filepath.Join(c.dir, "effects"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		c.t.Fatal(err)
	}
	out := map[string]int{}
	for line := range strings.Lines(string(text)) {
		claim, _, _ := strings.Cut(line, " ")
		out[claim]++
	}
	return out
}

// keep saves a store of a failed test from being removed.
func keep(t testing.TB, dir string) string {
	to, err := os.MkdirTemp("", "ayegate-crash-")
	must(t, err)
	must(t, os.CopyFS(filepath.Join(to, "store"), os.DirFS(dir)))
	return to
}

// TestCrashBites plants each thing that TestCrash is there to find.
func TestCrashBites(t *testing.T) {
	t.Parallel()
	good := func() (map[string]*story, map[string]int, *told) {
		x := newTold()
		x.decision("r", "ana", api.Approve)
		x.status("r", api.StatusExecuted)
		return map[string]*story{"r": {
			effect: "ask", quorum: 1, claim: "c", began: true, outcome: "executed",
			approvals: map[string]bool{"user:ana": true}, decisions: map[string]api.Verb{"user:ana": api.Approve},
		}}, map[string]int{"c": 1}, x
	}
	if s, e, x := good(); len(faults(s, e, x)) > 0 {
		t.Fatalf("a true record is found faulty: %v", faults(s, e, x))
	}
	for name, plant := range map[string]func(s map[string]*story, e map[string]int, x *told){
		"ran twice":               func(_ map[string]*story, e map[string]int, _ *told) { e["c"] = 2 },
		"ran without a claim":     func(_ map[string]*story, e map[string]int, _ *told) { e["d"] = 1 },
		"ran without an approval": func(s map[string]*story, _ map[string]int, _ *told) { s["r"].approvals = nil },
		"ran with one of two":     func(s map[string]*story, _ map[string]int, _ *told) { s["r"].quorum = 2 },
		"ran though denied":       func(s map[string]*story, _ map[string]int, _ *told) { s["r"].stopped = true },
		"never ran":               func(_ map[string]*story, e map[string]int, _ *told) { delete(e, "c") },
		"called failed":           func(s map[string]*story, _ map[string]int, _ *told) { s["r"].outcome = "failed" },
		"not called unknown":      func(s map[string]*story, _ map[string]int, _ *told) { s["r"].outcome = "" },
		"lost decision":           func(s map[string]*story, _ map[string]int, _ *told) { s["r"].decisions = nil },
		"lost request":            func(s map[string]*story, e map[string]int, _ *told) { delete(s, "r"); delete(e, "c") },
		"lost denial":             func(_ map[string]*story, _ map[string]int, x *told) { x.status("r", api.StatusDenied) },
	} {
		t.Run(name, func(t *testing.T) {
			s, e, x := good()
			plant(s, e, x)
			if len(faults(s, e, x)) == 0 {
				t.Error("it is not found")
			}
		})
	}
}
