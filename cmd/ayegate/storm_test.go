package main

import (
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ayegate/ayegate/api"
)

var storms = flag.Int("storms", 10, "how many requests TestStorm decides and retries a hundred times each")

// TestStorm decides each request a hundred times at once, by two people, while its
// agent asks for it a hundred times: each runs exactly once, everybody who was told
// anything was told the truth, and the record has one claim (RACE-01, RACE-02, P2).
func TestStorm(t *testing.T) {
	t.Parallel()
	const crowd = 100
	c := newCrash(t)
	c.newStore(filepath.Join(c.base, "storm"))
	if !c.start("", 0) {
		t.Fatal("it does not start")
	}
	var ran, pending, yes atomic.Int64
	for i := range *storms {
		n := fmt.Sprintf("storm-%d", i)
		first, err := c.client("json").Call(t.Context(), wanted(n, 0))
		if err != nil || first.Status != api.StatusPending {
			t.Fatalf("%s: %v %v", n, first, err)
		}
		r, err := c.client("ana").Request(t.Context(), first.ApprovalID)
		must(t, err)
		var all sync.WaitGroup
		for k := range crowd {
			all.Go(func() {
				cl := c.client([]string{"ana", "raj"}[k%2])
				_, err := cl.Decide(t.Context(), r.ApprovalID, api.DecideRequest{Decision: api.Approve, Digest: r.Digest})
				var p *api.Problem
				switch {
				case err == nil:
					yes.Add(1)
				case !errors.As(err, &p):
					t.Errorf("%s: decide: %v", n, err)
				}
			})
			all.Go(func() {
				call, err := c.client("json").Call(t.Context(), wanted(n, 10*time.Second))
				switch {
				case err != nil:
					t.Errorf("%s: call: %v", n, err)
				case call.ApprovalID != r.ApprovalID:
					t.Errorf("%s: a retry became request %s", n, call.ApprovalID)
				case call.Status == api.StatusExecuted:
					ran.Add(1)
				case call.Status == api.StatusPending:
					pending.Add(1)
				default:
					t.Errorf("%s: a retry was told %s", n, call.Status)
				}
			})
		}
		all.Wait()
	}
	stories, effects := c.audit(), c.effects()
	for _, f := range faults(stories, effects, c.told) {
		t.Error(f)
	}
	if len(stories) != *storms || len(effects) != *storms {
		t.Errorf("%d requests, %d effects, want %d of each", len(stories), len(effects), *storms)
	}
	t.Logf("%d requests: %d decisions and %d retries, %d approvals acknowledged, %d retries had the result; the tool ran %d times",
		*storms, crowd**storms, crowd**storms, yes.Load(), ran.Load(), len(effects))
	if pending.Load() > 0 {
		t.Errorf("%d retries were told that an approved call still waits", pending.Load())
	}
	c.end(syscall.SIGTERM)
}

func wanted(n string, wait time.Duration) api.CallRequest {
	return api.CallRequest{Server: "o", Tool: "act", Args: fmt.Appendf(nil, `{"n":%q}`, n), Key: n, Wait: api.Duration(wait)}
}
