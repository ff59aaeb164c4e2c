package approval_test

import (
	"bytes"
	"crypto/sha256"
	"iter"
	"testing"
	"time"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/identity"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/policy"
)

var (
	ana    = identity.Human{ID: "ana", Strength: identity.Session}
	raj    = identity.Human{ID: "raj", Groups: []string{"dba"}, Strength: identity.Passkey}
	eve    = identity.Human{ID: "eve", Strength: identity.Token}
	nobody = identity.Human{ID: "ana"} // verified by nothing

	bot    = identity.Agent{ID: "bot", Owner: "user:ana", Session: "s1", Workspace: "w", Device: "laptop"}
	secret = []byte("a secret of the token")
	pinned = call.Hash{7}
	rights = policy.Approvers{Name: "team", AnyOf: []string{"user:ana", "user:raj", "group:dba"}}
)

func mustCall(tool, args string) call.Call {
	c, err := call.New("bank", tool, []byte(args))
	if err != nil {
		panic(err)
	}
	return c
}

func asks() policy.Verdict {
	return policy.Verdict{
		Effect: policy.Ask, Tier: policy.R3, Rule: "pay", Of: rights, Quorum: 1, TTL: time.Minute, Revision: "sha256:p1",
	}
}

func allows() policy.Verdict {
	return policy.Verdict{Effect: policy.Allow, Tier: policy.R1, Rule: "small", Revision: "sha256:p1"}
}

func denies() policy.Verdict {
	return policy.Verdict{Tier: policy.R4, Rule: "never", Revision: "sha256:p1"}
}

func opening(v policy.Verdict, by approval.Executor) approval.Opening {
	return approval.Opening{
		ID: "11111111-1111-4111-8111-111111111111", Code: "K7Q4", From: bot, Run: "run", Reason: "because", Key: "key",
		Distinct: "use", Plan: "plan", Executor: by, Call: mustCall("pay", `{"amount":1}`), Definition: pinned,
		Salt: bytes.Repeat([]byte{3}, ledger.MinSalt), Verdict: v,
	}
}

func claimOf(r *approval.Request, now time.Time) approval.Claim {
	c := approval.Claim{ID: "c1", Holder: "here", TokenID: "t1"}
	if r.Executor == approval.Caller {
		c.Secret, c.Device, c.Until = sha256.Sum256(secret), "laptop", now.Add(30*time.Second)
	}
	return c
}

// begin names the ways to a state; each request of the tests starts with one.
var begin = []struct {
	name string
	make func(t testing.TB, now time.Time) *approval.Request
}{
	{"pending", func(_ testing.TB, now time.Time) *approval.Request {
		r, _ := approval.Open(opening(asks(), approval.Gateway), now)
		return r
	}},
	{"approved", func(t testing.TB, now time.Time) *approval.Request { return approvedBy(t, approval.Gateway, now) }},
	{"approved by a rule", func(_ testing.TB, now time.Time) *approval.Request {
		r, _ := approval.Open(opening(allows(), approval.Gateway), now)
		return r
	}},
	{"executing", func(t testing.TB, now time.Time) *approval.Request {
		return claimed(t, approvedBy(t, approval.Gateway, now), now)
	}},
	{"executing, token not redeemed", func(t testing.TB, now time.Time) *approval.Request {
		return claimed(t, approvedBy(t, approval.Caller, now), now)
	}},
	{"executing, token redeemed", redeemed},
	{"executed", func(t testing.TB, now time.Time) *approval.Request { return finished(t, approval.Succeeded, now) }},
	{"failed", func(t testing.TB, now time.Time) *approval.Request { return finished(t, approval.Errored, now) }},
	{"unknown", func(t testing.TB, now time.Time) *approval.Request {
		r := redeemed(t, now)
		must(t, second(r.Lose(approval.ByCrash, now)))
		return r
	}},
	{"denied", func(_ testing.TB, now time.Time) *approval.Request {
		r, _ := approval.Open(opening(denies(), approval.Gateway), now)
		return r
	}},
	{"expired", func(t testing.TB, now time.Time) *approval.Request {
		r, _ := approval.Open(opening(asks(), approval.Gateway), now.Add(-time.Hour))
		must(t, second(r.Expire(now)))
		return r
	}},
	{"cancelled", func(t testing.TB, now time.Time) *approval.Request {
		r, _ := approval.Open(opening(asks(), approval.Gateway), now)
		must(t, second(r.Cancel(ledger.Actor{Kind: ledger.Agent, ID: "bot"}, approval.ByAgent, now)))
		return r
	}},
}

func start(t testing.TB, name string, now time.Time) *approval.Request {
	t.Helper()
	for _, b := range begin {
		if b.name == name {
			return b.make(t, now)
		}
	}
	t.Fatalf("no way to %q", name)
	return nil
}

func approvedBy(t testing.TB, by approval.Executor, now time.Time) *approval.Request {
	r, _ := approval.Open(opening(asks(), by), now)
	must(t, second(r.Decide(yes(ana, r), now)))
	return r
}

func claimed(t testing.TB, r *approval.Request, now time.Time) *approval.Request {
	must(t, second(r.Claim(claimOf(r, now), r.Verdict, pinned, now)))
	return r
}

func redeemed(t testing.TB, now time.Time) *approval.Request {
	r := claimed(t, approvedBy(t, approval.Caller, now), now)
	must(t, second(r.Redeem(redemption(r), now)))
	return r
}

func finished(t testing.TB, o approval.Outcome, now time.Time) *approval.Request {
	r := claimed(t, approvedBy(t, approval.Gateway, now), now)
	must(t, second(r.Finish("c1", approval.Execution{Outcome: o}, now)))
	return r
}

func redemption(r *approval.Request) approval.Redemption {
	return approval.Redemption{Secret: secret, Call: r.Call.Hash(), Device: "laptop"}
}

func yes(by identity.Human, r *approval.Request) approval.Decision {
	return approval.Decision{By: by, Approve: true, Digest: r.Digest, Reason: "fine"}
}

func no(by identity.Human, r *approval.Request) approval.Decision {
	return approval.Decision{By: by, Digest: r.Digest, Reason: "never"}
}

func second(_ ledger.Event, err error) error { return err }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// lines makes the events of one history a record.
func lines(events []ledger.Event) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for i, e := range events {
			line, err := e.Entry(int64(i), epoch.Add(time.Duration(i)*time.Second))
			if !yield(line, err) {
				return
			}
		}
	}
}

// verify holds a history to what an auditor checks.
func verify(events []ledger.Event) error {
	var export bytes.Buffer
	if err := ledger.WriteExport(&export, lines(events)); err != nil {
		return err
	}
	_, err := ledger.Verify(&export, ledger.VerifyOptions{})
	return err
}
