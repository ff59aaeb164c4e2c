package approval_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/identity"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/policy"
)

// history is one request under random moves, with all that the promises are about.
type history struct {
	r      *approval.Request
	events []ledger.Event
	now    time.Time
	claims int
	starts int         // effects that may have begun
	ended  bool        // somebody was told that nothing ran or will
	seen   []call.Hash // digests that were on a screen
	agreed map[call.Hash]map[string]bool
}

// TestHistories: whatever comes in whatever order, the promises hold after each
// move, and an auditor accepts the record of every history (AUD-07, RACE-01,
// RACE-03, RACE-05, TOK-01).
func TestHistories(t *testing.T) {
	reached := make(map[approval.State]int)
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(t)
		for range rapid.IntRange(1, 60).Draw(t, "moves") {
			h.step(t)
			h.check(t)
			reached[h.r.State]++
		}
		if err := verify(h.events); err != nil {
			t.Fatal(err)
		}
	})
	if reached[approval.Executing] == 0 || reached[approval.Denied] == 0 {
		t.Errorf("the histories go nowhere: %v", reached)
	}
}

func newHistory(t *rapid.T) *history {
	v := verdict(t, "p0")
	by := rapid.SampledFrom([]approval.Executor{approval.Gateway, approval.Caller}).Draw(t, "executor")
	r, e := approval.Open(opening(v, by), epoch)
	h := &history{r: r, events: []ledger.Event{e}, now: epoch, agreed: make(map[call.Hash]map[string]bool)}
	h.look()
	return h
}

func verdict(t *rapid.T, revision string) policy.Verdict {
	v := rapid.SampledFrom([]policy.Verdict{asks(), asks(), asks(), asks(), allows(), allows(), denies()}).Draw(t, "verdict")
	if v.Effect == policy.Ask {
		v.Quorum = rapid.IntRange(1, 2).Draw(t, "quorum")
		v.Of = rapid.SampledFrom([]policy.Approvers{{}, rights, {Not: []string{"requester"}}}).Draw(t, "of")
	}
	v.Revision = revision
	return v
}

func (h *history) look() {
	if !slices.Contains(h.seen, h.r.Digest) {
		h.seen = append(h.seen, h.r.Digest)
	}
}

func (h *history) step(t *rapid.T) {
	was := h.r.Clone()
	e, err := h.move(t)
	if err != nil || e.IsZero() {
		if d := diff(was, h.r); d != "" {
			t.Fatalf("a move without an event changed something:\n%s", d)
		}
		return
	}
	h.events = append(h.events, e)
	if len(h.r.Decisions) < len(was.Decisions) {
		t.Fatal("a decision is gone")
	}
	for i, d := range was.Decisions {
		have := h.r.Decisions[i]
		have.Void = d.Void
		if diffDecision(d, have) || d.Void && !h.r.Decisions[i].Void {
			t.Fatal("a decision was rewritten")
		}
	}
	if h.ended && (h.r.State != was.State) {
		t.Fatalf("%s became %s", was.State, h.r.State)
	}
	switch h.r.State {
	case approval.Denied, approval.Cancelled, approval.Expired:
		h.ended = true
	}
	switch e.Kind {
	case ledger.RequestClaimed:
		h.claims++
		if h.r.Executor == approval.Gateway {
			h.starts++
		}
		if !h.now.Before(was.ExpiresAt) || was.State != approval.Approved {
			t.Fatalf("claimed %s at %v, the deadline was %v", was.State, h.now, was.ExpiresAt)
		}
		if h.r.Verdict.Effect != policy.Allow && len(h.agreed[h.r.Digest]) < h.r.Quorum() {
			t.Fatalf("claimed what %v approved", h.agreed[h.r.Digest])
		}
	case ledger.RequestRedeemed:
		h.starts++
	}
}

func diffDecision(a, b approval.Decision) bool {
	return a.By.ID != b.By.ID || a.Approve != b.Approve || a.Digest != b.Digest || !a.At.Equal(b.At)
}

func (h *history) check(t *rapid.T) {
	r := h.r
	switch {
	case h.claims > 1 || h.starts > 1:
		t.Fatalf("%d claims, %d starts", h.claims, h.starts)
	case h.ended && h.starts > 0:
		t.Fatalf("it may have run, and it is %s", r.State)
	case h.starts == 0 && (r.State == approval.Executed || r.State == approval.Unknown):
		t.Fatalf("nothing started, and it is %s", r.State)
	case r.State.Final() == r.EndedAt.IsZero():
		t.Fatalf("%s, ended at %v", r.State, r.EndedAt)
	case !slices.Contains(approval.States, r.State), r.Cause != "" && !slices.Contains(approval.Causes, r.Cause):
		t.Fatalf("%s %s", r.State, r.Cause)
	}
}

func (h *history) move(t *rapid.T) (ledger.Event, error) {
	r := h.r
	who := rapid.SampledFrom([]identity.Human{ana, raj, eve, nobody}).Draw(t, "who")
	seen := rapid.SampledFrom(h.seen).Draw(t, "seen")
	switch name := rapid.SampledFrom([]string{
		"approve", "approve", "approve", "deny", "amend", "rejudge", "extend", "attach", "cancel", "refuse", "expire",
		"claim", "claim", "claim", "redeem", "redeem", "finish", "finish", "lose", "resolve", "pickup", "time", "look",
	}).Draw(t, "move"); name {
	case "approve", "deny":
		e, err := r.Decide(approval.Decision{By: who, Approve: name == "approve", Digest: seen}, h.now)
		if err == nil && name == "approve" && !e.IsZero() {
			if h.agreed[seen] == nil {
				h.agreed[seen] = make(map[string]bool)
			}
			h.agreed[seen][who.ID] = true
		}
		return e, err
	case "amend":
		c := mustCall("pay", fmt.Sprintf(`{"amount":%d}`, rapid.IntRange(1, 3).Draw(t, "amount")))
		e, err := r.Amend(who, seen, c, verdict(t, r.Verdict.Revision), h.now)
		if err == nil {
			delete(h.agreed, r.Digest) // the same call as before an edit has the same digest, and needs new approvals
		}
		return e, err
	case "rejudge":
		e, err := r.Rejudge(verdict(t, fmt.Sprintf("p%d", rapid.IntRange(0, 2).Draw(t, "policy"))), h.now)
		if err == nil && !e.IsZero() {
			delete(h.agreed, r.Digest)
		}
		return e, err
	case "extend":
		return r.Extend(who, h.now)
	case "attach":
		return r.Attach("s2")
	case "cancel":
		return r.Cancel(ledger.Actor{Kind: ledger.Agent, ID: "bot"}, approval.ByAgent, h.now)
	case "refuse":
		return r.Refuse(denies(), h.now)
	case "expire":
		return r.Expire(h.now)
	case "claim":
		v := r.Verdict
		if rapid.IntRange(0, 3).Draw(t, "judged anew") == 0 {
			v = verdict(t, "p3")
		}
		return r.Claim(claimOf(r, h.now), v, pinned, h.now)
	case "redeem":
		return r.Redeem(redemption(r), h.now)
	case "finish":
		o := rapid.SampledFrom([]approval.Outcome{approval.Succeeded, approval.Errored, approval.NotSent, approval.InDoubt, ""}).Draw(t, "outcome")
		return r.Finish(rapid.SampledFrom([]string{"c1", "c1", "c2"}).Draw(t, "claim"), approval.Execution{Outcome: o, Hash: call.Hash{1}}, h.now)
	case "lose":
		return r.Lose(approval.ByCrash, h.now)
	case "resolve":
		return r.Resolve(who, rapid.SampledFrom([]approval.Outcome{approval.Succeeded, approval.NotSent}).Draw(t, "outcome"), "", h.now)
	case "pickup":
		return r.PickUp(h.now)
	case "time":
		h.now = h.now.Add(time.Duration(rapid.IntRange(1, 120).Draw(t, "seconds")) * time.Second)
	default:
		h.look()
	}
	return ledger.Event{}, nil
}
