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
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ayegate/ayegate/api"
	"github.com/ayegate/ayegate/internal/ledger"
)

var kills = flag.Int("kills", 40, "how often TestCrash kills the gateway")

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
		t.Skip("starts and kills hundreds of processes; run without -short")
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
	began := time.Now()
	if !c.start(point, n) {
		c.starting++
		c.died(point)
		return
	}
	started := time.Since(began)
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
		moment = 100*time.Millisecond + 3*started // enough to come by most points, however slow the machine
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
