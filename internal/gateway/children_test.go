package gateway

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ayegate/ayegate/internal/mcp"
)

// asChild is a rig whose server is a process of ours.
func asChild(s *server) rigConfig {
	c := one(s)
	c.servers = map[string]Server{"fs": {Target: mcp.Target{Command: &mcp.Command{Path: "server"}}}}
	c.limits.Children = 8
	return c
}

func sessionOf(name string, n int) mcp.Client {
	c := agent(name)
	c.Session = fmt.Sprint("s-", n)
	return c
}

// MCP-24, OPS-01: two hundred sessions of an agent are eight processes. The one not
// used for longest makes room, and its session goes on with another.
func TestChildrenAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := legacyServer()
		r := newRig(t, asChild(s))
		defer r.close()
		for n := range 200 {
			r.say(sessionOf("bot", n), "tools/call", `{"name":"echo"}`).contains(t, "done")
			if open := s.open(); open > 8 {
				t.Fatalf("%d processes", open)
			}
			sleep(time.Millisecond)
		}
		r.say(sessionOf("bot", 0), "tools/call", `{"name":"echo"}`).contains(t, "done")
		r.say(sessionOf("bot", 199), "tools/call", `{"name":"echo"}`).contains(t, "done")
		r.say(sessionOf("other", 0), "tools/call", `{"name":"echo"}`).contains(t, "done")
		if open := s.open(); open != 9 {
			t.Errorf("%d processes of two agents", open)
		}
		s.mu.Lock()
		started := len(s.conns)
		s.mu.Unlock()
		if started != 202 {
			t.Errorf("%d were started: the last used had to go", started)
		}
		sleep(6 * time.Minute)
		if open := s.open(); open != 0 {
			t.Errorf("%d processes that nobody uses", open)
		}
		r.say(sessionOf("bot", 7), "tools/call", `{"name":"echo"}`).contains(t, "done")
		for n := range 200 {
			r.g.Close(sessionOf("bot", n))
		}
		synctest.Wait()
		if open := s.open(); open != 0 {
			t.Errorf("%d processes of sessions that are over", open)
		}
	})
}

// MCP-24: while all places are in use, the next one hears that nothing ran; when a
// session ends, its place is free.
func TestChildrenInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := legacyServer()
		s.serve = func(ctx context.Context, _ *server, _ string, params []byte, _ mcp.Answers) (mcp.Message, error) {
			if textAt(params, "arguments", "quick") == "" {
				<-ctx.Done()
			}
			return result(`{"content":[]}`), nil
		}
		cfg := asChild(s)
		cfg.limits = Limits{Children: 2, Drain: time.Second}
		r := newRig(t, cfg)
		defer r.close()
		cancels := make([]context.CancelCauseFunc, 2)
		for n := range cancels {
			_, cancels[n] = r.start(sessionOf("bot", n), "tools/call", `{"name":"echo"}`)
			sleep(time.Second)
		}
		third := sessionOf("bot", 3)
		_, fault := r.g.Initialize(context.Background(), third, nil, &pushed{})
		if fault == nil || s.open() != 2 {
			t.Fatalf("%v, %d processes", fault, s.open())
		}
		if want := "2 processes of this server run for this agent already"; !strings.Contains(fault.Message, want) || !strings.Contains(fault.Message, "nothing ran") {
			t.Error(fault.Message)
		}
		cancels[0](mcp.ErrCancelled)
		sleep(time.Second)
		r.g.Close(sessionOf("bot", 0))
		r.say(third, "tools/call", `{"name":"echo","arguments":{"quick":"yes"}}`).contains(t, "content")
		if s.open() != 2 {
			t.Errorf("%d processes", s.open())
		}
		cancels[1](mcp.ErrCancelled)
		synctest.Wait()
	})
}

// Forty sessions at once that each need a process for a moment take turns.
func TestChildrenTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := legacyServer()
		r := newRig(t, asChild(s))
		defer r.close()
		var all sync.WaitGroup
		for n := range 40 {
			all.Go(func() { r.say(sessionOf("bot", n), "tools/call", `{"name":"echo"}`).contains(t, "done") })
		}
		all.Wait()
		if open := s.open(); open > 8 {
			t.Errorf("%d processes", open)
		}
	})
}
