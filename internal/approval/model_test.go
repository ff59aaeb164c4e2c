package approval_test

import (
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

// The model searches every order in which people, an agent, two executors, the
// sweeper, the clock and crashes can act on one request. The steps are the real
// moves of this package over a store that commits one change at a time; what is
// modelled is everything around them: who has read what, which process holds a
// claim in memory, what somebody was told, and how often the tool really ran.
//
// A protocol that is wrong in one point must be caught by the same search. Each
// of wrongs is such a protocol; a model that misses one proves nothing.

const (
	modelPeople    = 3
	modelExecutors = 2
	modelQuorum    = 2
	modelDeadline  = 2 // in ticks
	modelTicks     = 3
)

// wrong is a seeded mistake. The zero value is the protocol as it is.
type wrong uint8

const (
	none             wrong = iota
	runWithoutClaim        // an executor runs what it read as approved, then claims
	runThenClaim           // the effect comes before the claim's commit
	claimBlindly           // the claim is written over whatever is stored
	rerunAfterCrash        // recovery makes an executing request approved again
	failAfterCrash         // recovery calls a lost outcome failed: "did not run"
	expiryAtApproval       // the deadline is looked at when people approve, not at the claim
	loseLastWrite          // the store may forget the last write it acknowledged
	clockBack              // the store's clock may run backwards and expiry is not written down
	digestIgnored          // a decision is applied to whatever is stored now
	amendKeepsYes          // an edit keeps the approvals that were given before it
	countTwice             // the quorum counts clicks, not people
	denyOutvoted           // a denial is one vote among several
	cancelForgotten        // a withdrawal of an approved request is acknowledged and not stored
	claimFromPending       // an executor may claim what nobody approved
	decideAfterEnd         // an approval revives a request that has ended
	retryUnknown           // an unknown outcome is run again by itself
)

var wrongs = map[wrong]string{
	runWithoutClaim: "run without a claim", runThenClaim: "run, then claim", claimBlindly: "claim without compare-and-swap",
	rerunAfterCrash: "run again after a crash", failAfterCrash: "lost outcome called failed", expiryAtApproval: "expiry not part of the claim",
	loseLastWrite: "store loses an acknowledged write", clockBack: "clock runs backwards", digestIgnored: "decision without the digest",
	amendKeepsYes: "edit keeps approvals", countTwice: "one person counts twice", denyOutvoted: "denial outvoted",
	cancelForgotten: "cancel acknowledged, not stored", claimFromPending: "claim before approval", decideAfterEnd: "decision revives an end",
	retryUnknown: "unknown retried by itself",
}

type executor struct {
	pc    byte   // 'i' idle, 'r' has read approved, 'c' has the claim, 'x' ran the effect, 'd' done
	call  string // tool it means to run
	claim string
}

type world struct {
	r, before *approval.Request // stored now, and before the last write
	now       int               // the store's clock
	seen      [modelPeople]call.Hash
	clicks    [modelPeople]byte // decisions left
	said      [modelPeople]byte // what each was told: 'a', 'd' or 0
	yes       [modelPeople]string
	amends    byte
	cancels   byte
	crashes   byte
	losses    byte
	backs     byte
	claims    byte
	exec      [modelExecutors]executor
	ran       []string // tools the effect really happened for
	told      string   // ends that somebody was told: "denied", "cancelled", "expired", "failed"
	broken    string   // the promise that broke
}

func (w *world) key() string {
	var b strings.Builder
	r := w.r
	fmt.Fprintf(&b, "%s|%s|%s|%s|%d|", r.State, r.Call.Tool(), r.Claimed.ID, r.Execution.Outcome, w.now)
	for _, d := range r.Decisions {
		fmt.Fprintf(&b, "%s%t%t%x,", d.By.ID, d.Approve, d.Void, d.Digest[:2])
	}
	if w.losses > 0 && w.before != nil {
		fmt.Fprintf(&b, "|%s%s%d", w.before.State, w.before.Claimed.ID, len(w.before.Decisions))
	}
	for i := range w.seen {
		fmt.Fprintf(&b, "|%x%d%d%s", w.seen[i][:2], w.clicks[i], w.said[i], w.yes[i])
	}
	fmt.Fprintf(&b, "|%d%d%d%d%d%d|%v|%v|%s", w.amends, w.cancels, w.crashes, w.losses, w.backs, w.claims, w.exec, w.ran, w.told)
	return b.String()
}

func (w *world) clone() *world {
	c := *w
	c.ran = append([]string(nil), w.ran...)
	return &c
}

var epoch = time.Unix(1_790_000_000, 0)

func at(tick int) time.Time { return epoch.Add(time.Duration(tick) * time.Minute) }

func modelCall(tool string) call.Call {
	c, err := call.New("bank", tool, []byte(`{"amount":1}`))
	if err != nil {
		panic(err)
	}
	return c
}

var modelVerdict = policy.Verdict{
	Effect: policy.Ask, Tier: policy.R3, Quorum: modelQuorum, TTL: modelDeadline * time.Minute, Revision: "sha256:p1",
}

func voter(i int) identity.Human {
	return identity.Human{ID: fmt.Sprintf("p%d", i), Strength: identity.Session}
}

func modelStart(bug wrong) *world {
	r, _ := approval.Open(approval.Opening{
		ID: "11111111-1111-4111-8111-111111111111", From: identity.Agent{ID: "bot", Session: "s"}, Executor: approval.Gateway,
		Call: modelCall("first"), Salt: make([]byte, ledger.MinSalt), Verdict: modelVerdict,
	}, at(0))
	w := &world{r: r, amends: 1, cancels: 1, crashes: 2, clicks: [modelPeople]byte{2, 2, 1}}
	if slow && bug == none {
		w.clicks, w.crashes = [modelPeople]byte{1, 1, 1}, 1
	}
	for i := range w.exec {
		w.exec[i].pc = 'i'
	}
	switch bug {
	case loseLastWrite:
		w.losses = 1
	case clockBack:
		w.backs = 1
	}
	return w
}

// commit stores what a move made of a copy; it reports whether it was stored.
func (w *world) commit(move func(*approval.Request) error) bool {
	r := w.r.Clone()
	if move(r) != nil {
		return false
	}
	w.before, w.r = w.r, r
	return true
}

// next lists every world one step away.
func (w *world) next(bug wrong) []*world {
	var out []*world
	step := func(f func(*world) bool) {
		if n := w.clone(); f(n) {
			n.check()
			out = append(out, n)
		}
	}
	for i := range modelPeople {
		step(func(n *world) bool { return n.look(i) })
		step(func(n *world) bool { return n.decide(i, true, bug) })
		step(func(n *world) bool { return n.decide(i, false, bug) })
	}
	step(func(n *world) bool { return n.amend(bug) })
	step(func(n *world) bool { return n.cancel(bug) })
	step(func(n *world) bool { return n.sweep() })
	step(func(n *world) bool {
		n.now++
		return n.now <= modelTicks
	})
	for j := range modelExecutors {
		step(func(n *world) bool { return n.claim(j, bug) })
		step(func(n *world) bool { return n.run(j, bug) })
		step(func(n *world) bool { return n.finish(j, bug) })
	}
	step(func(n *world) bool { return n.crash(bug) })
	step(func(n *world) bool {
		if n.losses == 0 || n.before == nil {
			return false
		}
		n.losses--
		n.r, n.before = n.before, nil
		return true
	})
	step(func(n *world) bool {
		if n.backs == 0 || n.now == 0 {
			return false
		}
		n.backs--
		n.now--
		return true
	})
	return out
}

func (w *world) look(i int) bool {
	if w.r.State != approval.Pending || w.seen[i] == w.r.Digest {
		return false
	}
	w.seen[i] = w.r.Digest
	return true
}

func (w *world) decide(i int, yes bool, bug wrong) bool {
	if w.clicks[i] == 0 || w.seen[i].IsZero() {
		return false
	}
	d := approval.Decision{By: voter(i), Approve: yes, Digest: w.seen[i]}
	ok := w.commit(func(r *approval.Request) error {
		switch {
		case bug == digestIgnored:
			d.Digest = r.Digest
		case bug == countTwice:
			d.By.ID += fmt.Sprint(len(r.Decisions))
		case bug == denyOutvoted && !yes:
			r.Decisions = append(r.Decisions, d)
			return nil
		case bug == decideAfterEnd && yes && (r.State == approval.Cancelled || r.State == approval.Denied):
			r.State = approval.Approved
			return nil
		}
		_, err := r.Decide(d, at(w.now))
		return err
	})
	w.clicks[i]--
	if !ok {
		w.tellExpired(bug)
		return true // the person was told that it was not recorded, and why
	}
	w.said[i] = 'a'
	if yes {
		w.yes[i] = w.toolSeen(i)
	} else {
		w.said[i] = 'd'
		w.told += "denied "
	}
	return true
}

// tellExpired tells somebody who came too late that the request has expired; the
// desk writes it down before it says so.
func (w *world) tellExpired(bug wrong) {
	if w.now < modelDeadline || !w.r.State.Open() {
		return
	}
	if bug != clockBack {
		w.commit(func(r *approval.Request) error {
			_, err := r.Expire(at(w.now))
			return err
		})
	}
	w.told += "expired "
}

// toolSeen is which call a person had on the screen when deciding.
func (w *world) toolSeen(i int) string {
	first := modelStart(none).r
	if w.seen[i] == first.Digest {
		return "first"
	}
	return "edited"
}

func (w *world) amend(bug wrong) bool {
	if w.amends == 0 || w.seen[2].IsZero() {
		return false
	}
	if !w.commit(func(r *approval.Request) error {
		kept := append([]approval.Decision(nil), r.Decisions...)
		_, err := r.Amend(voter(2), w.seen[2], modelCall("edited"), modelVerdict, at(w.now))
		if err == nil && bug == amendKeepsYes {
			r.Decisions = kept
		}
		return err
	}) {
		return false
	}
	w.amends--
	return true
}

func (w *world) cancel(bug wrong) bool {
	if w.cancels == 0 {
		return false
	}
	if bug == cancelForgotten && w.r.State == approval.Approved {
		w.cancels--
		w.told += "cancelled "
		return true
	}
	if !w.commit(func(r *approval.Request) error {
		_, err := r.Cancel(ledger.Actor{Kind: ledger.Agent, ID: "bot"}, approval.ByAgent, at(w.now))
		return err
	}) {
		return false
	}
	w.cancels--
	if w.r.State == approval.Cancelled {
		w.told += "cancelled "
	}
	return true
}

func (w *world) sweep() bool {
	if w.r.State == approval.Expired {
		return false
	}
	if !w.commit(func(r *approval.Request) error {
		_, err := r.Expire(at(w.now))
		return err
	}) {
		return false
	}
	w.told += "expired "
	return true
}

func (w *world) claim(j int, bug wrong) bool {
	e := &w.exec[j]
	switch {
	case e.pc == 'i' && (bug == runWithoutClaim || bug == claimBlindly || bug == runThenClaim):
		if w.r.State != approval.Approved {
			return false
		}
		e.pc, e.call = 'r', w.r.Call.Tool()
		return true
	case e.pc == 'r' && bug == claimBlindly:
		// what was read is written back as claimed, whatever is stored by now
		e.pc, e.claim = 'c', fmt.Sprint("blind", j)
		r := w.r.Clone()
		r.State, r.Claimed.ID = approval.Executing, e.claim
		w.before, w.r = w.r, r
		return true
	case e.pc != 'i' || w.claims >= 3:
		return false
	}
	id := fmt.Sprintf("c%d", w.claims)
	if w.now >= modelDeadline && bug == none {
		if w.commit(func(r *approval.Request) error {
			_, err := r.Claim(approval.Claim{ID: id}, modelVerdict, call.Hash{}, at(w.now))
			return err
		}) {
			w.broken = "claimed after the deadline"
		}
		return w.broken != ""
	}
	late := w.now >= modelDeadline
	if !w.commit(func(r *approval.Request) error {
		when := at(w.now)
		switch bug {
		case expiryAtApproval:
			when = at(0)
		case claimFromPending:
			if r.State == approval.Pending {
				r.State = approval.Executing
				r.Claimed.ID = id
				return nil
			}
		case retryUnknown:
			if r.State == approval.Unknown {
				r.State = approval.Approved
			}
		}
		_, err := r.Claim(approval.Claim{ID: id}, modelVerdict, call.Hash{}, when)
		return err
	}) {
		return false
	}
	if late {
		w.broken = "claimed after the deadline"
	}
	w.claims++
	e.pc, e.claim, e.call = 'c', id, w.r.Call.Tool()
	return true
}

func (w *world) run(j int, bug wrong) bool {
	e := &w.exec[j]
	if e.pc != 'c' && !(e.pc == 'r' && (bug == runWithoutClaim || bug == runThenClaim)) {
		return false
	}
	w.ran = append(w.ran, e.call)
	switch {
	case len(w.ran) > 1:
		w.broken = "ran twice"
	case strings.Contains(w.told, "denied") && w.r.State == approval.Denied, strings.Contains(w.told, "denied") && bug != none:
		w.broken = "ran after somebody was told denied"
	case strings.Contains(w.told, "cancelled"), strings.Contains(w.told, "expired"):
		w.broken = "ran after somebody was told " + w.told
	case w.agreed(e.call) < modelQuorum:
		w.broken = "ran what fewer people than the quorum had seen and approved"
	}
	e.pc = 'x'
	return true
}

// agreed counts the people who approved this very call.
func (w *world) agreed(tool string) int {
	n := 0
	for i := range w.yes {
		if w.said[i] == 'a' && w.yes[i] == tool {
			n++
		}
	}
	return n
}

func (w *world) finish(j int, bug wrong) bool {
	e := &w.exec[j]
	if e.pc != 'x' {
		return false
	}
	e.pc = 'd'
	w.commit(func(r *approval.Request) error {
		if bug == runThenClaim && r.State == approval.Approved {
			r.State = approval.Executed
			return nil
		}
		_, err := r.Finish(e.claim, approval.Execution{Outcome: approval.Succeeded}, at(w.now))
		return err
	})
	return true
}

// crash kills the process with everything it held in memory; recovery follows.
func (w *world) crash(bug wrong) bool {
	if w.crashes == 0 {
		return false
	}
	w.crashes--
	for j := range w.exec {
		w.exec[j] = executor{pc: 'i'}
	}
	w.commit(func(r *approval.Request) error {
		if r.State == approval.Executing && bug == rerunAfterCrash {
			r.State = approval.Approved
			return nil
		}
		if r.State == approval.Executing && bug == failAfterCrash {
			r.State = approval.Failed
			r.Execution.Outcome = approval.NotSent
			w.told += "failed "
			return nil
		}
		_, err := r.Lose(approval.ByCrash, at(w.now))
		return err
	})
	return true
}

// check holds the promises that any state can break.
func (w *world) check() {
	if w.broken != "" {
		return
	}
	if len(w.ran) > 0 && strings.Contains(w.told, "failed") {
		w.broken = "told that it did not run, and it had"
	}
	for i, said := range w.said {
		if said == 0 {
			continue
		}
		found := false
		for _, d := range w.r.Decisions {
			found = found || strings.HasPrefix(d.By.ID, voter(i).ID) && d.Approve == (said == 'a')
		}
		if !found && w.losses == 0 && w.r.State != approval.Approved {
			w.broken = "an acknowledged decision is gone"
		}
	}
	if len(w.ran) == 1 {
		switch w.r.State {
		case approval.Denied, approval.Expired, approval.Cancelled:
			w.broken = "ran, and the record says that nothing ran"
		}
	}
}

// search visits the reachable worlds, all of them where no promise breaks, and
// returns how many there are and the first promise that broke.
func search(bug wrong) (states int, broken string) {
	start := modelStart(bug)
	visited := map[string]bool{start.key(): true}
	queue := []*world{start}
	for len(queue) > 0 {
		w := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if w.broken != "" {
			return len(visited), w.broken
		}
		for _, n := range w.next(bug) {
			if k := n.key() + n.broken; !visited[k] {
				visited[k] = true
				queue = append(queue, n)
			}
		}
	}
	return len(visited), ""
}

// TestModel shows RACE-01, RACE-03, RACE-04, RACE-05, RACE-08, RACE-09 and RACE-10
// for every order of events within the bounds of the model.
func TestModel(t *testing.T) {
	t.Parallel()
	states, broken := search(none)
	t.Logf("%d states", states)
	if states < 50_000 && !slow {
		t.Errorf("only %d states: the model no longer reaches what it should", states)
	}
	if broken != "" {
		t.Error(broken)
	}
}

func TestModelCatchesWrongProtocols(t *testing.T) {
	t.Parallel()
	for bug, name := range wrongs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			states, broken := search(bug)
			if broken == "" {
				t.Errorf("not caught in %d states", states)
			}
			t.Logf("%d states: %s", states, broken)
		})
	}
}
