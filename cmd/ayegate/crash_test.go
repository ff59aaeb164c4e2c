package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ayegate/ayegate/api"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/mcp"
)

var kills = flag.Int("kills", 60, "how often TestCrash kills the gateway")

// perStore is how many kills one store lives through; then a new one begins, so
// that looking through the whole record stays quick.
const perStore = 15

// TestCrash kills the real program, in front of a real server, while agents ask
// and people decide: at every labelled write and at random moments. After every
// kill it is started again on the same store, and the record, as an auditor gets
// it, is held against what the oracle did and what people and agents were told
// (RACE-08, RACE-09, RACE-10, OPS-02, AUD-05, P1 to P6).
func TestCrash(t *testing.T) {
	if testing.Short() {
		t.Skip("starts and kills hundreds of processes")
	}
	c := newCrash(t)
	began := time.Now()
	for c.killed < *kills {
		c.newStore(filepath.Join(c.base, fmt.Sprintf("store-%d", c.killed)))
		for i := 0; i < perStore && c.killed < *kills; i++ {
			c.cycle(i)
		}
		c.last()
	}
	t.Logf("%d kills in %v (%.1f a second): %d at %d of %d labelled points, %d at random moments, %d while starting; %d starts met a lock of the dead",
		c.killed, time.Since(began).Round(time.Second), float64(c.killed)/time.Since(began).Seconds(), c.atPoints, len(c.hit), len(points()), c.killed-c.atPoints, c.starting, c.locked)
	t.Logf("%d calls asked, %d effects, %d unknown, %d approvals, %d denials, %d cancels acknowledged, %d expired; %d entries verified",
		c.sum.asked, c.sum.effects, c.sum.unknown, c.sum.approvals, c.sum.denials, c.sum.cancels, c.sum.expired, c.sum.entries)
	t.Logf("kills by point: %v", c.hit)
	if *kills >= 20*len(points()) {
		for _, p := range points() {
			if c.hit[p] == 0 {
				t.Errorf("no kill at %q: the point is not reached", p)
			}
		}
	}
}

const crashPolicy = `
version: 1
defaults: {unmatched: deny, ttl: 5s, on_expiry: deny}
approvers: {both: {any_of: ["user:ana", "user:raj"]}}
rules:
  - {id: auto, tool: o.auto, allow: {tier: R1}}
  - {id: act, tool: [o.act, own.act], ask: {of: both, tier: R2}}
  - {id: pay, tool: o.pay, ask: {of: both, tier: R3, quorum: 2}}
`

// crash is one run of the test.
type crash struct {
	t        *testing.T
	base     string
	template string            // a store with keys and nothing else
	secret   map[string]string // credentials by holder
	random   *rand.Rand

	dir      string
	process  *exec.Cmd
	url      string
	agents   []*asker
	told     *told
	killed   int
	atPoints int
	starting int
	locked   int // starts that found the lock still held by a child of the killed one
	hit      map[string]int
	next     int // of points
	cycles   int

	sum struct{ asked, effects, unknown, approvals, denials, cancels, expired, entries int }
}

func newCrash(t *testing.T) *crash {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	c := &crash{
		t: t, base: t.TempDir(), secret: map[string]string{}, hit: map[string]int{},
		random: rand.New(rand.NewPCG(seed, 1)), //nolint:gosec // choices of a test
	}
	c.template = filepath.Join(c.base, "template")
	c.dir = c.template
	must(t, os.Mkdir(c.template, 0o700))
	must(t, os.WriteFile(filepath.Join(c.template, "policy.yaml"), []byte(crashPolicy), 0o600))
	must(t, os.WriteFile(filepath.Join(c.template, "alive"), nil, 0o600))
	must(t, os.WriteFile(filepath.Join(c.template, "ayegate.yaml"), []byte(`
listen: 127.0.0.1:0
store: sqlite:ayegate.db
policy: policy.yaml
servers: {o: {command: oracle, args: ["."], dir: ".", idempotency_meta: true}}
people: [{id: ana}, {id: raj}]
agents: [{id: json}, {id: mcp}, {id: own}]
signin: {local: false}
`), 0o600))
	for who, class := range map[string]string{"ana": "human", "raj": "human", "json": "agent", "mcp": "agent", "own": "agent"} {
		cmd := exec.Command("ayegate", "keys", "add", class, who, "--config", filepath.Join(c.template, "ayegate.yaml"))
		cmd.Env = here(c.base)
		out, err := cmd.Output()
		must(t, err)
		c.secret[who] = strings.TrimSpace(string(out))
	}
	t.Cleanup(func() { c.end(syscall.SIGKILL) })
	return c
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newStore begins again with a copy of the template.
func (c *crash) newStore(dir string) {
	must(c.t, os.CopyFS(dir, os.DirFS(c.template)))
	must(c.t, os.Chmod(dir, 0o700))
	c.dir, c.told = dir, newTold()
	c.agents = nil
	for i := range 3 {
		c.agents = append(c.agents, &asker{c: c, how: "json", name: fmt.Sprintf("j%d", i)})
	}
	c.agents = append(c.agents, &asker{c: c, how: "mcp", name: "m"}, &asker{c: c, how: "own", name: "o"})
}

// cycle starts the gateway, checks what it came back with, and puts it under load
// until it is killed.
func (c *crash) cycle(i int) {
	point, n := "", 0
	if c.random.IntN(3) > 0 {
		point, n = c.point(i)
	}
	c.cycles = i
	if !c.start(point, n) {
		c.starting++
		c.died(point)
		return
	}
	c.check()
	ctx, cancel := context.WithCancel(c.t.Context())
	var load sync.WaitGroup
	for _, a := range c.agents {
		load.Go(func() { a.run(ctx) })
	}
	for _, who := range []string{"ana", "raj"} {
		seed := c.random.Uint64()
		load.Go(func() { (&decider{c: c, who: who, random: rand.New(rand.NewPCG(seed, 2))}).run(ctx) }) //nolint:gosec // choices of a test
	}
	gone := make(chan struct{})
	go func() { _ = c.process.Wait(); close(gone) }()
	moment := time.Duration(c.random.IntN(40)) * time.Millisecond
	if point != "" {
		moment = 150 * time.Millisecond // enough to come by most points
	}
	timer := time.NewTimer(moment)
	select {
	case <-gone:
	case <-timer.C:
		if c.process.Process.Kill() == nil {
			point = "" // else it died by itself just now
		}
		<-gone
	}
	timer.Stop()
	cancel()
	load.Wait()
	c.process = nil
	c.died(point)
}

// point chooses where the gateway dies in the i-th cycle of a store.
func (c *crash) point(i int) (string, int) {
	all := points()
	p := all[c.next%len(all)]
	c.next++
	rare := strings.Contains(p, string(ledger.DefinitionPinned))
	switch {
	case i == 0 && !rare && c.random.IntN(2) == 0:
		return "after " + string(ledger.DefinitionPinned), 1 // a new store is the only place for it
	case i == 0 && !rare:
		return "before " + string(ledger.DefinitionPinned), 1
	}
	for _, k := range []ledger.Kind{ledger.RequestLost, ledger.RequestExpired, ledger.StoreOpened, ledger.RequestAttached, ledger.DefinitionPinned, "erase"} {
		if strings.HasSuffix(p, " "+string(k)) {
			return p, 1
		}
	}
	return p, 1 + c.random.IntN(3)
}

// died counts a kill and waits until nothing of the gateway lives: what it had
// sent may still be done by then.
func (c *crash) died(point string) {
	c.killed++
	if point != "" {
		c.atPoints++
		c.hit[point]++
	}
	c.free("alive")
}

// last looks once more at a store that is done with.
func (c *crash) last() {
	c.cycles = perStore
	if !c.start("", 0) {
		c.t.Fatal("it does not start without a reason to die")
	}
	c.check()
	c.end(syscall.SIGTERM)
	c.sum.approvals += c.told.counted.approvals
	c.sum.denials += c.told.counted.denials
	c.sum.cancels += c.told.counted.cancels
}

func (c *crash) end(sig os.Signal) {
	if c.process == nil {
		return
	}
	_ = c.process.Process.Signal(sig)
	_ = c.process.Wait()
	c.process = nil
}

// start reports whether the gateway came to listen; it may be killed before.
func (c *crash) start(point string, n int) bool {
	kill := filepath.Join(c.dir, "kill")
	_ = os.Remove(kill)
	env := append(here(c.base), fmt.Sprintf("AYEGATE_TEST_AHEAD=%ds", 2*c.cycles))
	if strings.Contains(point, " ") {
		env = append(env, fmt.Sprintf("AYEGATE_TEST_KILL=%s %d", point, n))
	} else if point != "" {
		must(c.t, os.WriteFile(kill, fmt.Appendf(nil, "%s %d", point, n), 0o600))
	}
	for {
		cmd := exec.Command("ayegate-mortal", "serve", "--json", "--config", filepath.Join(c.dir, "ayegate.yaml"))
		cmd.Env = env
		var messages bytes.Buffer
		cmd.Stderr = &messages
		out, err := cmd.StdoutPipe()
		must(c.t, err)
		must(c.t, cmd.Start())
		first, err := bufio.NewReader(out).ReadBytes('\n')
		if err == nil {
			var said struct{ URL string }
			must(c.t, json.Unmarshal(first, &said))
			c.url, c.process = said.URL, cmd
			return true
		}
		_ = cmd.Wait()
		switch status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus); {
		case status.Signal() == syscall.SIGKILL:
			return false
		case strings.Contains(messages.String(), "is in use by"):
			// It was killed between fork and exec of a server: until that child has
			// become another program it holds what its parent held. Wait for it.
			c.locked++
			c.free("ayegate.db.lock")
		default:
			c.t.Fatalf("it did not start: %v\n%s", cmd.ProcessState, messages.Bytes())
		}
	}
}

// free waits until nobody has a lock on a file of the store.
func (c *crash) free(name string) {
	f, err := os.Open(filepath.Join(c.dir, name))
	must(c.t, err)
	must(c.t, errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_EX), f.Close()))
}

func (c *crash) client(who string) *api.Client {
	cl, err := api.NewClient(c.url, c.secret[who], nil)
	must(c.t, err)
	return cl
}

// --- who was told what ---

// told is what was acknowledged: it must be true for ever.
type told struct {
	mu       sync.Mutex
	decided  map[string]map[string]api.Verb // by request and person
	denied   map[string]bool                // requests somebody was told are denied, cancelled or expired
	executed map[string]bool                // requests whose result somebody has
	counted  struct{ approvals, denials, cancels int }
}

func newTold() *told {
	return &told{decided: map[string]map[string]api.Verb{}, denied: map[string]bool{}, executed: map[string]bool{}}
}

func (x *told) decision(id, who string, d api.Verb) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.decided[id] == nil {
		x.decided[id] = map[string]api.Verb{}
	}
	x.decided[id][who] = d
	if d == api.Deny {
		x.counted.denials++
	} else {
		x.counted.approvals++
	}
}

func (x *told) status(id string, s api.Status) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch s {
	case api.StatusDenied, api.StatusCancelled, api.StatusExpired:
		x.denied[id] = true
	case api.StatusExecuted:
		x.executed[id] = true
	}
}

func (x *told) cancelled(id string) {
	x.status(id, api.StatusCancelled)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.counted.cancels++
}

// --- agents and people ---

// serial numbers calls over all stores: each is a call of its own.
var serial atomic.Int64

// asker is an agent that wants its calls to happen and asks again, after every
// crash, for those it has no answer to.
type asker struct {
	c    *crash
	how  string
	name string
	open []wish
}

// wish is a call an agent wants.
type wish struct {
	tool, n string
}

func (a *asker) run(ctx context.Context) {
	var up mcp.Upstream
	if a.how == "mcp" {
		var err error
		up, err = mcp.Dial(ctx, mcp.Target{
			Name: "ayegate", URL: a.c.url + "/mcp/o", Version: mcp.NewestLegacy, CallLimit: time.Minute,
			Header: http.Header{"Authorization": {"Bearer " + a.c.secret["mcp"]}},
		})
		if err != nil {
			return
		}
		defer up.Close()
	}
	for ctx.Err() == nil {
		if len(a.open) == 0 {
			n := serial.Add(1)
			a.open = append(a.open, wish{[]string{"act", "auto", "act", "pay", "act"}[n%5], fmt.Sprintf("%s-%d-%s", a.name, n, []string{"yes", "yes", "no", "race", "revoke", "withdraw", "never"}[n%7])})
		}
		w := a.open[0]
		done, err := a.ask(ctx, up, w)
		if err != nil {
			return // the gateway died: ask again next time
		}
		if done {
			a.open = a.open[1:]
		}
	}
}

func (a *asker) ask(ctx context.Context, up mcp.Upstream, w wish) (done bool, err error) {
	switch a.how {
	case "mcp":
		m, err := up.Call(ctx, "tools/call", fmt.Appendf(nil, `{"name":%q,"arguments":{"n":%q}}`, w.tool, w.n), quiet{})
		text, _ := said(m, err)
		return err == nil && !strings.Contains(text, "PENDING"), err
	case "own":
		return a.perform(ctx, w)
	}
	call, err := a.c.client("json").Call(ctx, api.CallRequest{Server: "o", Tool: w.tool, Args: fmt.Appendf(nil, `{"n":%q}`, w.n), Key: w.n, Wait: api.Duration(30 * time.Millisecond)})
	if err = refused(err); err != nil || call == nil {
		return err == nil, err
	}
	a.c.told.status(call.ApprovalID, call.Status)
	waiting := call.Status == api.StatusPending || call.Status == api.StatusApproved || call.Status == api.StatusExecuting
	if waiting && strings.HasSuffix(w.n, "withdraw") {
		call, err = a.c.client("json").Withdraw(ctx, call.ApprovalID)
		if err = refused(err); err == nil && call != nil && call.Status == api.StatusCancelled {
			a.c.told.cancelled(call.ApprovalID)
		}
	}
	// What nobody decides is let go: it expires by itself.
	return !waiting || strings.HasSuffix(w.n, "never"), err
}

// refused drops an error by which the gateway said no: that is an answer.
func refused(err error) error {
	var p *api.Problem
	if errors.As(err, &p) && p.Status < 500 {
		return nil
	}
	return err
}

// perform is an agent that acts by itself, with a token: it leaves its own line
// for the oracle between redeeming and finishing.
func (a *asker) perform(ctx context.Context, w wish) (bool, error) {
	cl := a.c.client("own")
	call, err := cl.Call(ctx, api.CallRequest{Server: "own", Tool: "act", Args: fmt.Appendf(nil, `{"n":%q}`, w.n), Key: w.n, Executor: api.ByCaller, Wait: api.Duration(30 * time.Millisecond)})
	if err = refused(err); err != nil || call == nil {
		return err == nil, err
	}
	a.c.told.status(call.ApprovalID, call.Status)
	if call.Status == api.StatusPending {
		return strings.HasSuffix(w.n, "never"), nil
	}
	token, err := cl.Claim(ctx, call.ApprovalID, api.ClaimRequest{})
	if err != nil {
		return true, refused(err)
	}
	if _, err := cl.Redeem(ctx, call.ApprovalID, api.RedeemRequest{Token: token.Token, ToolCallHash: token.ToolCallHash}); err != nil {
		return true, refused(err)
	}
	f, err := os.OpenFile(filepath.Join(a.c.dir, "effects"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	must(a.c.t, err)
	_, err = fmt.Fprintf(f, "own:%s %s act\n", call.ApprovalID, w.n)
	must(a.c.t, errors.Join(err, f.Close()))
	_, err = cl.Finish(ctx, call.ApprovalID, api.FinishRequest{Outcome: api.Succeeded})
	return true, refused(err)
}

// decider is a person who decides what waits, as the name of the call wants it.
type decider struct {
	c      *crash
	who    string
	random *rand.Rand
}

func (d *decider) run(ctx context.Context) {
	cl := d.c.client(d.who)
	look := time.NewTicker(3 * time.Millisecond)
	defer look.Stop()
	for ctx.Err() == nil {
		<-look.C
		list, err := cl.Requests(ctx, api.RequestFilter{Status: []api.Status{api.StatusPending}, Limit: 20})
		if err != nil {
			return
		}
		for i := range list.Requests {
			if d.decide(ctx, cl, &list.Requests[i]) != nil {
				return
			}
		}
	}
}

func (d *decider) decide(ctx context.Context, cl *api.Client, r *api.Request) error {
	want := api.Approve
	switch name := r.ToolCallCanonical; {
	case strings.Contains(name, "-never"), strings.Contains(name, "-withdraw") && d.random.IntN(4) > 0:
		return nil
	case strings.Contains(name, "-revoke"):
		after, err := cl.Revoke(ctx, r.ApprovalID)
		if err == nil && after.Status == api.StatusCancelled {
			d.c.told.cancelled(r.ApprovalID)
		}
		return refused(err)
	case strings.Contains(name, "-no"), strings.Contains(name, "-race") && d.who == "raj":
		want = api.Deny
	}
	after, err := cl.Decide(ctx, r.ApprovalID, api.DecideRequest{Decision: want, Digest: r.Digest})
	if err == nil {
		d.c.told.decision(r.ApprovalID, d.who, want)
		d.c.told.status(r.ApprovalID, after.Status)
	}
	return refused(err)
}

// --- the auditor ---

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
