package approval_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/identity"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/policy"
)

// refusal is one reason why a move changes nothing.
type refusal struct {
	name  string
	from  string
	shape func(*approval.Request) // of the request before the move
	do    func(*approval.Request, time.Time) (ledger.Event, error)
	after time.Duration
	want  error
}

func decideWith(by identity.Human, approve bool, change func(*approval.Decision)) func(*approval.Request, time.Time) (ledger.Event, error) {
	return func(r *approval.Request, now time.Time) (ledger.Event, error) {
		d := approval.Decision{By: by, Approve: approve, Digest: r.Digest}
		if change != nil {
			change(&d)
		}
		return r.Decide(d, now)
	}
}

func amendWith(by identity.Human, change func(*approval.Request, *policy.Verdict, *call.Hash)) func(*approval.Request, time.Time) (ledger.Event, error) {
	return func(r *approval.Request, now time.Time) (ledger.Event, error) {
		v, seen := asks(), r.Digest
		if change != nil {
			change(r, &v, &seen)
		}
		return r.Amend(by, seen, mustCall("pay", `{"amount":2}`), v, now)
	}
}

func claimWith(change func(*approval.Claim, *policy.Verdict, *call.Hash)) func(*approval.Request, time.Time) (ledger.Event, error) {
	return func(r *approval.Request, now time.Time) (ledger.Event, error) {
		c, v, def := claimOf(r, now), r.Verdict, pinned
		change(&c, &v, &def)
		return r.Claim(c, v, def, now)
	}
}

func redeemWith(change func(*approval.Redemption)) func(*approval.Request, time.Time) (ledger.Event, error) {
	return func(r *approval.Request, now time.Time) (ledger.Event, error) {
		with := redemption(r)
		change(&with)
		return r.Redeem(with, now)
	}
}

func finishWith(claim string, o approval.Outcome) func(*approval.Request, time.Time) (ledger.Event, error) {
	return func(r *approval.Request, now time.Time) (ledger.Event, error) {
		return r.Finish(claim, approval.Execution{Outcome: o}, now)
	}
}

func resolveWith(by identity.Human, o approval.Outcome) func(*approval.Request, time.Time) (ledger.Event, error) {
	return func(r *approval.Request, now time.Time) (ledger.Event, error) { return r.Resolve(by, o, "", now) }
}

func extendBy(by identity.Human) func(*approval.Request, time.Time) (ledger.Event, error) {
	return func(r *approval.Request, now time.Time) (ledger.Event, error) { return r.Extend(by, now) }
}

func notTheOwner(r *approval.Request) { r.Verdict.Of.Not = []string{"requester"} }

func typedPay(r *approval.Request) {
	r.Verdict.Confirm, r.Verdict.Salient = []policy.Confirm{policy.Typed}, "pay 1"
}

var refusals = []refusal{
	{name: "a decision of nobody", from: pending, do: decideWith(identity.Human{}, true, nil), want: approval.ErrNoPerson},
	{name: "a decision of somebody unproven", from: pending, do: decideWith(nobody, false, nil), want: approval.ErrNoPerson},
	{name: "approval of a stranger", from: pending, do: decideWith(eve, true, nil), want: approval.ErrNotEntitled},
	{name: "denial of a stranger", from: pending, do: decideWith(eve, false, nil), want: approval.ErrNotEntitled},
	{name: "approval by the owner", from: pending, shape: notTheOwner, do: decideWith(ana, true, nil), want: approval.ErrOwnAgent},
	{name: "approval by the owner, named without a class", from: pending, shape: func(r *approval.Request) {
		notTheOwner(r)
		r.From.Owner = "ana"
	}, do: decideWith(ana, true, nil), want: approval.ErrOwnAgent},
	{name: "approval for an agent that nobody owns", from: pending, shape: func(r *approval.Request) {
		notTheOwner(r)
		r.From.Owner = ""
	}, do: decideWith(raj, true, nil), want: approval.ErrOwnAgent},
	{name: "approval by somebody excluded", from: pending, shape: func(r *approval.Request) { r.Verdict.Of.Not = []string{"group:dba"} }, do: decideWith(raj, true, nil), want: approval.ErrNotEntitled},
	{name: "approval of another version", from: pending, do: decideWith(raj, true, func(d *approval.Decision) { d.Digest[0]++ }), want: approval.ErrStale},
	{name: "denial of another version", from: pending, do: decideWith(raj, false, func(d *approval.Decision) { d.Digest = call.Hash{} }), want: approval.ErrStale},
	{name: "approval at the deadline", from: pending, after: minute, do: decideWith(raj, true, nil), want: approval.ErrExpired},
	{name: "denial after the deadline", from: pending, after: 2 * minute, do: decideWith(raj, false, nil), want: approval.ErrExpired},
	{name: "approval not typed", from: pending, shape: typedPay, do: decideWith(raj, true, nil), want: approval.ErrTyped},
	{name: "approval typed wrong", from: pending, shape: typedPay, do: decideWith(raj, true, func(d *approval.Decision) { d.Typed = "pay  1" }), want: approval.ErrTyped},
	{name: "approval where there is nothing to type", from: pending, shape: func(r *approval.Request) {
		typedPay(r)
		r.Verdict.Salient = ""
	}, do: decideWith(raj, true, nil), want: approval.ErrTyped},

	{name: "edit by nobody", from: pending, do: amendWith(nobody, nil), want: approval.ErrNoPerson},
	{name: "edit by a stranger", from: pending, do: amendWith(eve, nil), want: approval.ErrNotEntitled}, // TOK-12
	{name: "edit of another version", from: pending, do: amendWith(raj, func(_ *approval.Request, _ *policy.Verdict, seen *call.Hash) { seen[0]++ }), want: approval.ErrStale},
	{name: "edit into what the policy denies", from: pending, do: amendWith(raj, func(_ *approval.Request, v *policy.Verdict, _ *call.Hash) { v.Effect = policy.Deny }), want: approval.ErrPolicyDenies}, // TOK-10
	{name: "edit after the deadline", from: pending, after: minute, do: amendWith(raj, nil), want: approval.ErrExpired},

	{name: "more time for nobody", from: pending, do: extendBy(nobody), want: approval.ErrNoPerson},
	{name: "more time for a stranger", from: pending, do: extendBy(eve), want: approval.ErrNotEntitled},
	{name: "more time after the deadline", from: pending, after: minute, do: extendBy(raj), want: approval.ErrExpired},
	{name: "more time too often", from: pending, shape: func(r *approval.Request) { r.Extended = approval.MaxExtensions }, do: extendBy(raj), want: approval.ErrExtensions},

	{name: "expiry before the deadline", from: approved, after: minute - 1, do: func(r *approval.Request, now time.Time) (ledger.Event, error) { return r.Expire(now) }, want: approval.ErrNotPending},

	{name: "claim at the deadline", from: approved, after: minute, do: claimWith(func(*approval.Claim, *policy.Verdict, *call.Hash) {}), want: approval.ErrExpired}, // RACE-04
	{name: "claim without a name", from: approved, do: claimWith(func(c *approval.Claim, _ *policy.Verdict, _ *call.Hash) { c.ID = "" }), want: approval.ErrWrongClaim},
	{name: "claim without an executor", from: approved, shape: func(r *approval.Request) { r.Executor = "" }, do: claimWith(func(*approval.Claim, *policy.Verdict, *call.Hash) {}), want: approval.ErrWrongClaim},
	{name: "claim of a changed tool", from: approved, do: claimWith(func(_ *approval.Claim, _ *policy.Verdict, d *call.Hash) { d[0]++ }), want: approval.ErrDefinition}, // MCP-10
	{name: "claim that the policy denies now", from: approved, do: claimWith(func(_ *approval.Claim, v *policy.Verdict, _ *call.Hash) { v.Effect = policy.Deny }), want: approval.ErrPolicyDenies},
	{name: "claim of what a rule allowed and now asks", from: byRule, do: claimWith(func(_ *approval.Claim, v *policy.Verdict, _ *call.Hash) { *v = asks() }), want: approval.ErrStricter},
	{name: "claim that needs more people now", from: approved, do: claimWith(func(_ *approval.Claim, v *policy.Verdict, _ *call.Hash) { v.Quorum = 2 }), want: approval.ErrStricter},
	{name: "claim whose approver may no longer decide", from: approved, do: claimWith(func(_ *approval.Claim, v *policy.Verdict, _ *call.Hash) {
		v.Of = policy.Approvers{AnyOf: []string{"user:raj"}}
	}), want: approval.ErrStricter}, // TOK-15
	{name: "claim that wants it typed now", from: approved, do: claimWith(func(_ *approval.Claim, v *policy.Verdict, _ *call.Hash) {
		v.Confirm, v.Salient = []policy.Confirm{policy.Typed}, "pay 1"
	}), want: approval.ErrStricter},
	{name: "claim in a state this version does not know", from: approved, shape: func(r *approval.Request) { r.State = "paused" }, do: claimWith(func(*approval.Claim, *policy.Verdict, *call.Hash) {}), want: approval.ErrNotApproved},

	{name: "redemption with another secret", from: minted, do: redeemWith(func(x *approval.Redemption) { x.Secret = []byte("another") }), want: approval.ErrTokenUnknown}, // TOK-07
	{name: "redemption with half a secret", from: minted, do: redeemWith(func(x *approval.Redemption) { x.Secret = x.Secret[:8] }), want: approval.ErrTokenUnknown},
	{name: "redemption without a secret", from: minted, do: redeemWith(func(x *approval.Redemption) { x.Secret = nil }), want: approval.ErrTokenUnknown},
	{name: "redemption where the token never left ayegate", from: executing, do: redeemWith(func(x *approval.Redemption) { x.Secret = nil }), want: approval.ErrTokenUnknown},
	{name: "redemption twice", from: spent, do: redeemWith(func(*approval.Redemption) {}), want: approval.ErrTokenUsed}, // TOK-01
	{name: "redemption too late", from: minted, after: 30 * time.Second, do: redeemWith(func(*approval.Redemption) {}), want: approval.ErrTokenExpired},
	{name: "redemption for another call", from: minted, do: redeemWith(func(x *approval.Redemption) { x.Call[0]++ }), want: approval.ErrTokenCallMismatch},   // TOK-02
	{name: "redemption on another device", from: minted, do: redeemWith(func(x *approval.Redemption) { x.Device = "phone" }), want: approval.ErrTokenDevice}, // TOK-03

	{name: "outcome of another claim", from: executing, do: finishWith("c2", approval.Succeeded), want: approval.ErrWrongClaim},
	{name: "outcome of no claim", from: executing, shape: func(r *approval.Request) { r.Claimed.ID = "" }, do: finishWith("", approval.Succeeded), want: approval.ErrWrongClaim},
	{name: "late outcome of another claim", from: unknown, do: finishWith("c2", approval.Succeeded), want: approval.ErrNotClaimed},
	{name: "outcome without a redemption", from: minted, do: finishWith("c1", approval.Succeeded), want: approval.ErrNotClaimed},
	{name: "no outcome", from: executing, do: finishWith("c1", ""), want: approval.ErrOutcome},
	{name: "an outcome of another version", from: executing, do: finishWith("c1", "rolled_back"), want: approval.ErrOutcome},
	{name: "doubt about what is in doubt", from: unknown, do: finishWith("c1", approval.InDoubt), want: approval.ErrNotClaimed},

	{name: "a word on a doubt by nobody", from: unknown, do: resolveWith(nobody, approval.Succeeded), want: approval.ErrNoPerson},
	{name: "a word on a doubt by a stranger", from: unknown, do: resolveWith(eve, approval.Succeeded), want: approval.ErrNotEntitled},
	{name: "a doubtful word on a doubt", from: unknown, do: resolveWith(raj, approval.InDoubt), want: approval.ErrNotUnknown},
}

// TestRefusals: RACE-04, RACE-05, MCP-10, TOK-01, TOK-02, TOK-03, TOK-07, TOK-10,
// TOK-12 and TOK-15, where the rule itself lives.
func TestRefusals(t *testing.T) {
	for _, c := range refusals {
		t.Run(c.name, func(t *testing.T) {
			r := start(t, c.from, epoch)
			if c.shape != nil {
				c.shape(r)
			}
			was := r.Clone()
			e, err := c.do(r, epoch.Add(c.after))
			if !errors.Is(err, c.want) || !e.IsZero() {
				t.Fatalf("error is %v and event %q, want %v and none", err, e.Kind, c.want)
			}
			if d := diff(was, r); d != "" {
				t.Fatalf("a refused move changed something:\n%s", d)
			}
		})
	}
}

// What the rules above must not refuse.
func TestRulesThatPermit(t *testing.T) {
	for name, c := range map[string]struct {
		from  string
		shape func(*approval.Request)
		do    func(*approval.Request, time.Time) (ledger.Event, error)
		after time.Duration
		want  approval.State
	}{
		"an owner who may not approve may deny":     {pending, notTheOwner, decideWith(ana, false, nil), 0, approval.Denied},
		"somebody excluded may deny":                {pending, func(r *approval.Request) { r.Verdict.Of.Not = []string{"group:dba"} }, decideWith(raj, false, nil), 0, approval.Denied},
		"somebody else approves for the owner":      {pending, notTheOwner, decideWith(raj, true, nil), 0, approval.Approved},
		"anybody, where the policy names nobody":    {pending, func(r *approval.Request) { r.Verdict.Of = policy.Approvers{} }, decideWith(eve, true, nil), 0, approval.Approved},
		"typed as it is asked":                      {pending, typedPay, decideWith(raj, true, func(d *approval.Decision) { d.Typed = "pay 1" }), 0, approval.Approved},
		"a denial needs no typing":                  {pending, typedPay, decideWith(raj, false, nil), 0, approval.Denied},
		"a moment before the deadline":              {pending, nil, decideWith(raj, true, nil), minute - 1, approval.Approved},
		"a claim a moment before the deadline":      {approved, nil, claimWith(func(*approval.Claim, *policy.Verdict, *call.Hash) {}), minute - 1, approval.Executing},
		"a claim that a newer policy allows":        {approved, nil, claimWith(func(_ *approval.Claim, v *policy.Verdict, _ *call.Hash) { *v = allows() }), 0, approval.Executing},
		"a quorum of none is a quorum of one":       {pending, func(r *approval.Request) { r.Verdict.Quorum = 0 }, decideWith(raj, true, nil), 0, approval.Approved},
		"any device where the token names none":     {minted, func(r *approval.Request) { r.Claimed.Device = "" }, redeemWith(func(x *approval.Redemption) { x.Device = "phone" }), 0, approval.Executing},
		"a redemption in the last moment":           {minted, nil, redeemWith(func(*approval.Redemption) {}), 30*time.Second - 1, approval.Executing},
		"an answer in doubt":                        {executing, nil, finishWith("c1", approval.InDoubt), 0, approval.Unknown},
		"an answer that came after all":             {unknown, nil, finishWith("c1", approval.Errored), 0, approval.Failed},
		"a word on a doubt by the owner of the bot": {unknown, notTheOwner, resolveWith(ana, approval.Errored), 0, approval.Failed},
		"an edit that a rule allows":                {pending, nil, amendWith(raj, func(_ *approval.Request, v *policy.Verdict, _ *call.Hash) { *v = allows() }), 0, approval.Approved},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, c.from, epoch)
			if c.shape != nil {
				c.shape(r)
			}
			if _, err := c.do(r, epoch.Add(c.after)); err != nil || r.State != c.want {
				t.Fatalf("%v, %s, want %s", err, r.State, c.want)
			}
		})
	}
}

// RACE-01: the same word of the same person is one decision, however often it is
// said and whatever came after it; another person's word is one of its own.
func TestQuorumCountsPeople(t *testing.T) {
	v := asks()
	v.Quorum = 2
	r, _ := approval.Open(opening(v, approval.Gateway), epoch)
	for range 3 {
		must(t, second(r.Decide(yes(ana, r), epoch)))
	}
	if r.State != approval.Pending || len(r.Approvals()) != 1 || r.Quorum() != 2 {
		t.Fatalf("%s with %d of %d", r.State, len(r.Approvals()), r.Quorum())
	}
	must(t, second(r.Decide(yes(raj, r), epoch)))
	if r.State != approval.Approved {
		t.Fatal(r.State)
	}
	e, err := r.Decide(yes(ana, r), epoch.Add(time.Hour))
	if err != nil || !e.IsZero() {
		t.Fatalf("saying it again: %v, %q", err, e.Kind)
	}
	if err := second(r.Decide(no(ana, r), epoch)); !errors.Is(err, approval.ErrDecided) {
		t.Fatalf("another word after the decision: %v", err)
	}
	if q := start(t, byRule, epoch).Quorum(); q != 0 {
		t.Fatalf("a rule allowed, and %d people are needed", q)
	}
}

// RACE-05, TOK-11: an edit makes a new version. What was approved before it does
// not count, what runs is the edited call, and the record ties both together.
func TestAmendVoids(t *testing.T) {
	v := asks()
	v.Quorum = 2
	r, asked := approval.Open(opening(v, approval.Gateway), epoch)
	first := r.Clone()
	e1, err := r.Decide(yes(ana, r), epoch)
	must(t, err)
	e2, err := r.Amend(raj, r.Digest, mustCall("pay", `{"amount":2}`), v, epoch)
	must(t, err)
	if len(r.Approvals()) != 0 || len(r.Decisions) != 1 || !r.Decisions[0].Void || r.Digest == first.Digest {
		t.Fatalf("%+v", r.Decisions)
	}
	if first.Decisions != nil || first.Call == r.Call {
		t.Fatal("a clone shares memory")
	}
	if err := second(r.Decide(yes(ana, first), epoch)); !errors.Is(err, approval.ErrStale) {
		t.Fatalf("a decision on the version before the edit: %v", err)
	}
	e3, err := r.Decide(yes(ana, r), epoch)
	must(t, err)
	e4, err := r.Decide(yes(raj, r), epoch)
	must(t, err)
	e5, err := r.Claim(claimOf(r, epoch), v, pinned, epoch)
	must(t, err)
	if r.Call != mustCall("pay", `{"amount":2}`) || fieldOf(e2, ledger.FieldWas) != ledger.Commit(r.Salt, first.Call.Hash()) {
		t.Fatal("the edited call is not what was claimed, or the record does not name the one before it")
	}
	must(t, verify([]ledger.Event{asked, e1, e2, e3, e4, e5}))
}

// TOK-04, RACE-05: what is sent beside the call is committed to when it is asked,
// and neither an edit of the call nor a new verdict makes it another.
func TestExtrasStay(t *testing.T) {
	o := opening(asks(), approval.Gateway)
	o.Extra = []byte(`{"_meta":{"to":"staging"}}`)
	r, asked := approval.Open(o, epoch)
	want := ledger.Commit(r.Salt, sha256.Sum256(o.Extra))
	amended, err := r.Amend(raj, r.Digest, mustCall("pay", `{"amount":2}`), asks(), epoch)
	must(t, err)
	v := asks()
	v.Revision = "sha256:p2"
	rejudged, err := r.Rejudge(v, epoch)
	must(t, err)
	for _, e := range []ledger.Event{asked, amended, rejudged} {
		if fieldOf(e, ledger.FieldExtra) != want {
			t.Errorf("%s commits to %v", e.Kind, fieldOf(e, ledger.FieldExtra))
		}
	}
	c := r.Clone()
	if !bytes.Equal(r.Extra, o.Extra) || !bytes.Equal(c.Extra, o.Extra) || &c.Extra[0] == &r.Extra[0] {
		t.Errorf("it has %s, its clone %s", r.Extra, c.Extra)
	}
	must(t, verify([]ledger.Event{asked, amended, rejudged}))
	if _, plain := approval.Open(opening(asks(), approval.Gateway), epoch); fieldOf(plain, ledger.FieldExtra) != nil {
		t.Errorf("nothing beside the call, and a commitment to %v", fieldOf(plain, ledger.FieldExtra))
	}
}

// A looser policy never loosens what waits for people: it renews the digest.
func TestRejudgeNeverLoosens(t *testing.T) {
	r := start(t, pending, epoch)
	was := r.Clone()
	v := allows()
	v.Revision = "sha256:p2"
	must(t, second(r.Rejudge(v, epoch)))
	if r.State != approval.Pending || r.Verdict.Effect != policy.Ask || r.Verdict.Rule != was.Verdict.Rule || r.Verdict.Revision != "sha256:p2" || r.Digest == was.Digest {
		t.Fatalf("%s %+v", r.State, r.Verdict)
	}
}

func TestOpen(t *testing.T) {
	v := asks()
	v.TTL = 0
	r, _ := approval.Open(opening(v, approval.Gateway), epoch)
	if got := r.ExpiresAt.Sub(epoch); got != approval.DefaultTTL {
		t.Errorf("deadline after %v", got)
	}
	// What shapes the request shapes the digest (TOK-03, TOK-04, TOK-18).
	seen := map[call.Hash]string{r.Digest: "itself"}
	for name, change := range map[string]func(*approval.Opening){
		"id":         func(o *approval.Opening) { o.ID = "2" },
		"agent":      func(o *approval.Opening) { o.From.ID = "bot2" },
		"session":    func(o *approval.Opening) { o.From.Session = "s2" },
		"workspace":  func(o *approval.Opening) { o.From.Workspace = "w2" },
		"plan":       func(o *approval.Opening) { o.Plan = "plan2" },
		"call":       func(o *approval.Opening) { o.Call = mustCall("pay", `{"amount": 1,"b":1}`) },
		"definition": func(o *approval.Opening) { o.Definition = call.Hash{8} },
		"policy":     func(o *approval.Opening) { o.Verdict.Revision = "sha256:p2" },
	} {
		o := opening(v, approval.Gateway)
		change(&o)
		other, _ := approval.Open(o, epoch)
		if have, dup := seen[other.Digest]; dup {
			t.Errorf("another %s has the digest of %s", name, have)
		}
		seen[other.Digest] = name
	}
	r.From.Owner, r.Verdict.Of, r.Decisions = "", policy.Approvers{}, nil
	c := r.Clone()
	c.Salt[0]++
	if c.Salt[0] == r.Salt[0] {
		t.Error("a clone shares its salt")
	}
}

// TestTimes: each move sets the times that it is about.
func TestTimes(t *testing.T) {
	later := epoch.Add(10 * time.Second)
	r := start(t, pending, epoch)
	must(t, second(r.Extend(raj, later)))
	if want := epoch.Add(minute + approval.Extension); !r.ExpiresAt.Equal(want) || r.Extended != 1 {
		t.Errorf("extended to %v", r.ExpiresAt)
	}
	must(t, second(r.Attach("s2")))
	if r.Asks != 2 {
		t.Errorf("asked %d times", r.Asks)
	}
	must(t, second(r.Decide(yes(ana, r), later)))
	if !r.Decisions[0].At.Equal(later) {
		t.Error(r.Decisions[0].At)
	}
	must(t, second(r.Claim(approval.Claim{ID: "c", Secret: call.Hash{1}, Until: later.Add(minute)}, r.Verdict, pinned, later)))
	if c := r.Claimed; !c.At.Equal(later) || !c.Redeemed.Equal(later) || !c.Until.IsZero() || !c.Secret.IsZero() {
		t.Errorf("the gateway's claim is its redemption and has no token: %+v", c)
	}
	r = start(t, minted, epoch)
	if !r.Claimed.Redeemed.IsZero() {
		t.Error("a caller's claim is redeemed")
	}
	must(t, second(r.Redeem(redemption(r), later)))
	if !r.Claimed.Redeemed.Equal(later) || !r.Claimed.Until.Equal(later.Add(approval.Silence)) {
		t.Errorf("%+v", r.Claimed)
	}
	must(t, second(r.Lose(approval.ByTimeout, later)))
	if r.Execution.Outcome != approval.InDoubt || r.Cause != approval.ByTimeout || !r.EndedAt.IsZero() {
		t.Errorf("%+v", r.Execution)
	}
	must(t, second(r.Finish("c1", approval.Execution{Outcome: approval.Succeeded}, later)))
	if r.Cause != "" || !r.EndedAt.Equal(later) || !r.Execution.At.Equal(later) {
		t.Errorf("%s %+v", r.Cause, r.Execution)
	}
	must(t, second(r.PickUp(later)))
	if e, err := r.PickUp(later.Add(1)); err != nil || !e.IsZero() || !r.Execution.PickedUp.Equal(later) {
		t.Errorf("picking up twice: %v %q", err, e.Kind)
	}
}

func fieldOf(e ledger.Event, name string) any {
	for _, f := range e.Data {
		if f.Name == name {
			return f.Value
		}
	}
	return nil
}

// TestEvents: what each move puts on the record, without any argument (AUD-09,
// AUD-10: hashes that could be guessed are commitments).
func TestEvents(t *testing.T) {
	asked := "agent bot: agent=bot call=C definition=" + pinned.String() + " digest=D effect=ask owner=user:ana plan=plan policy=sha256:p1 quorum=1 rule=pay server=bank session=s1 tier=R3 tool=pay workspace=w not_requester=false deadline=T"
	for _, c := range []struct{ move, says, from, want string }{
		{"Decide", "deny", pending, "human user:raj via passkey: decision=deny call=C digest=D reason=never strength=passkey typed=false approvals=0 state=denied"},
		{"Decide", "enough people approve", pending, "human user:raj via passkey: decision=approve call=C digest=D reason=fine strength=passkey typed=false approvals=1 state=approved"},
		{"Extend", "more time", pending, "human user:raj via passkey: deadline=T"},
		{"Attach", "asked for again", pending, "agent bot: session=s2 asks=2"},
		{"Cancel", "withdrawn, revoked or void", pending, "human user:raj: cause=person"},
		{"Expire", "the deadline passed", pending, "system ayegate: cause=deadline"},
		{"Claim", "before the deadline, judged again", approved, "agent bot: claim=c1 token=t1 executor=gateway holder=here call=C digest=D policy=sha256:p1 effect=ask approvals=1"},
		{"Redeem", "the effect may start", minted, "agent bot: claim=c1 token=t1 call=C"},
		{"Finish", "the tool answered", executing, "agent bot: claim=c1 outcome=executed detail=succeeded result=R size=2"},
		{"Finish", "the tool answered with an error, or nothing was sent", executing, "agent bot: claim=c1 outcome=failed detail=not_sent"},
		{"Lose", "no answer will come", executing, "system ayegate: claim=c1 cause=crash"},
		{"Lose", "the token ran out unredeemed", minted, "system ayegate: claim=c1 cause=deadline"},
		{"Resolve", "somebody looked: it ran", unknown, "human user:raj via passkey: claim=c1 outcome=executed detail=succeeded reason=seen"},
		{"PickUp", "the asker has the outcome", executed, "agent bot: claim=c1"},
	} {
		t.Run(c.move+" "+c.says, func(t *testing.T) {
			for _, m := range moves {
				if m.name != c.move || m.says != c.says {
					continue
				}
				r := start(t, c.from, epoch)
				was := r.Clone()
				e, err := m.do(r, epoch.Add(m.after))
				must(t, err)
				if got := told(e, was); got != c.want {
					t.Fatalf("got  %s\nwant %s", got, c.want)
				}
				return
			}
			t.Fatal("no such move")
		})
	}
	_, e := approval.Open(opening(asks(), approval.Gateway), epoch)
	r := start(t, pending, epoch)
	for _, want := range strings.Split(strings.TrimPrefix(asked, "agent bot: "), " ") {
		if !strings.Contains(told(e, r)+" ", " "+want+" ") {
			t.Errorf("%s is not on record: %s", want, told(e, r))
		}
	}
	if len(e.Data) != len(strings.Fields(asked))-2 {
		t.Errorf("%d facts: %s", len(e.Data), told(e, r))
	}
}

// told is an event in words, with commitments and times by what they are to.
func told(e ledger.Event, r *approval.Request) string {
	var b strings.Builder
	b.WriteString(string(e.Actor.Kind) + " " + e.Actor.ID)
	if e.Actor.Via != "" {
		b.WriteString(" via " + e.Actor.Via)
	}
	b.WriteString(":")
	for _, f := range e.Data {
		v := fmt.Sprint(f.Value)
		switch {
		case v == ledger.Commit(r.Salt, r.Call.Hash()):
			v = "C"
		case v == ledger.Commit(r.Salt, r.Digest):
			v = "D"
		case v == ledger.Commit(r.Salt, call.Hash{1}):
			v = "R"
		case f.Name == ledger.FieldDeadline:
			v = "T"
		}
		b.WriteString(" " + f.Name + "=" + v)
	}
	return b.String()
}
