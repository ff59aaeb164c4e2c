package storetest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/store"
)

// Variables that make a test binary the process that is killed.
const (
	crashDir  = "STORETEST_CRASH_DIR"
	crashBase = "STORETEST_CRASH_BASE"
)

// CrashMain must be called first in the TestMain of a test that calls [Crash]. In
// a process that was started to be killed it writes until then and never returns.
func CrashMain(ctx context.Context, open func(ctx context.Context, dir string) (store.Store, error)) {
	dir := os.Getenv(crashDir)
	if dir == "" {
		return
	}
	var base int
	_, err := fmt.Sscan(os.Getenv(crashBase), &base)
	if err == nil {
		err = writeUntilKilled(ctx, open, dir, base)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// perLife is how many requests one process may make.
const perLife = 1_000_000

// writeUntilKilled lives the lives of requests, a few at a time, and says of each
// change that it was acknowledged, after it was.
func writeUntilKilled(ctx context.Context, open func(context.Context, string) (store.Store, error), dir string, base int) error {
	s, err := open(ctx, dir)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	said := func(what string, n int) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(os.Stdout, "%s %d\n", what, n)
	}
	const writers = 6
	failed := make(chan error, writers)
	for w := range writers {
		go func() {
			for n := base + w; ; n += writers {
				if err := oneLife(ctx, s, n, said); err != nil {
					failed <- err
					return
				}
			}
		}()
	}
	return <-failed
}

func oneLife(ctx context.Context, s store.Store, n int, said func(string, int)) error {
	if n%2 == 0 {
		r, asked, claimed := Running(n, s.Now())
		if err := s.Create(ctx, r, []ledger.Event{asked, claimed}, store.Charge{Key: "calls", Amount: 1}); err != nil {
			return err
		}
		said("claimed", n)
		if _, err := s.Change(ctx, r.ID, Finish(r.Claimed.ID, payload(n))); err != nil {
			return err
		}
		said("finished", n)
		return nil
	}
	r, asked := approval.Open(Opening(n), s.Now())
	if err := s.Create(ctx, r, []ledger.Event{asked}, store.Charge{Key: "calls", Amount: 1}); err != nil {
		return err
	}
	said("asked", n)
	if _, err := s.Change(ctx, r.ID, approve(Ben, r.Digest)); err != nil {
		return err
	}
	said("approved", n)
	if _, err := s.Change(ctx, r.ID, cancel); err != nil {
		return err
	}
	said("cancelled", n)
	return nil
}

// payload is the result of request number n: some live in their row, some apart.
func payload(n int) []byte { return []byte(fmt.Sprint(n, strings.Repeat("x", n%5*1000))) }

// Crash kills processes that write to a store, at random moments, and looks after
// each death whether all that was acknowledged is there, whole and in the ledger.
// RACE-08, RACE-09, RACE-10, RACE-19.
func Crash(t *testing.T, open func(ctx context.Context, dir string) (store.Store, error), kills int) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	const generations = 20 // then a new store, or looking at the old takes too long
	dir := ""
	acked := 0
	for life := range kills {
		if life%generations == 0 {
			dir = t.TempDir()
		}
		base := life * perLife
		lines := kill(t, dir, base, time.Duration(random.Int64N(int64(40*time.Millisecond))))
		acked += len(lines)
		s, err := open(t.Context(), dir)
		if err != nil {
			t.Fatalf("life %d: it does not open again: %v", life, err)
		}
		for _, line := range lines {
			if err := holds(t.Context(), s, line); err != nil {
				t.Fatalf("life %d: %q was acknowledged: %v", life, line, err)
			}
		}
		if life%generations == generations-1 || life == kills-1 {
			Consistent(t, s)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if acked < kills {
		t.Fatalf("%d kills and only %d acknowledged changes: nothing was tested", kills, acked)
	}
	t.Logf("%d kills, %d acknowledged changes, none lost", kills, acked)
}

// kill starts a writer, lets it live for a while after its first acknowledgement
// and kills it. It returns what the writer said.
func kill(t *testing.T, dir string, base int, after time.Duration) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), crashDir+"="+dir, fmt.Sprint(crashBase, "=", base))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var lines []string
	in := bufio.NewReader(out)
	for {
		line, err := in.ReadString('\n')
		if err == io.EOF {
			break // a line that is cut was not said
		}
		if err != nil {
			t.Fatal(err)
		}
		if lines = append(lines, strings.TrimSpace(line)); len(lines) == 1 {
			time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
		}
	}
	if err := cmd.Wait(); cmd.ProcessState.Exited() {
		t.Fatalf("the writer ended by itself: %v", err)
	}
	return lines
}

// holds reports whether what was acknowledged is there.
func holds(ctx context.Context, s store.Store, line string) error {
	var what string
	var n int
	if _, err := fmt.Sscan(line, &what, &n); err != nil {
		return err
	}
	r, err := s.Get(ctx, ID(n))
	if err != nil {
		return err
	}
	state := r.State
	ok := map[string]bool{
		"claimed":   r.Claimed.ID != "",
		"finished":  state == approval.Executed && string(r.Execution.Result) == string(payload(n)),
		"asked":     true,
		"approved":  len(r.Approvals()) == 1,
		"cancelled": state == approval.Cancelled,
	}
	if !ok[what] {
		return fmt.Errorf("it is %s, claimed by %q", state, r.Claimed.ID)
	}
	return nil
}
