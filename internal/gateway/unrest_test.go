package gateway

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ayegate/ayegate/internal/mcp"
)

func (r *rig) recorded() (n int) {
	for _, err := range r.mem.Entries(context.Background(), 0) {
		if err != nil {
			r.t.Fatal(err)
		}
		n++
	}
	return n
}

// MCP-15: a server that changes all its tools with every listing and announces it
// at once neither fills the record nor has its tools run, and an idle agent is all
// it needs. Once it rests, what is as it was is back.
func TestAServerThatFloods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := legacyServer()
		offer := func(text string) {
			var all strings.Builder
			for i := range 300 {
				fmt.Fprintf(&all, `{"name":"t%d","description":%q},`, i, text)
			}
			s.mu.Lock()
			s.tools = all.String() + `{"name":"echo"}`
			s.mu.Unlock()
		}
		offer("v")
		r := newRig(t, one(s))
		defer r.close()
		r.say(agent("bot"), "tools/call", `{"name":"echo"}`).contains(t, "done")
		before := r.recorded()
		for i := range 60 {
			offer(fmt.Sprint("v", i))
			s.target.Stray.Notification(mcp.Message{Method: toolsChanged})
			sleep(500 * time.Millisecond)
		}
		if grew := r.recorded() - before; grew > 60 {
			t.Errorf("%d entries in half a minute", grew)
		}
		r.say(agent("bot"), "tools/call", `{"name":"echo"}`).contains(t, "TOOL_DEFINITION_CHANGED")
		if got := strings.Join(toolNames(r.say(agent("bot"), "tools/list", "")), " "); got != "await_approval cancel_approval" {
			t.Errorf("listed %s", got)
		}
		sleep(time.Minute)
		if got := strings.Join(toolNames(r.say(agent("bot"), "tools/list", "")), " "); got != "echo await_approval cancel_approval" {
			t.Errorf("listed %s", got)
		}
		r.say(agent("bot"), "tools/call", `{"name":"echo"}`).contains(t, "done")
	})
}

// MCP-14: new names without end: beyond the bound they are dropped, one listing
// says so in a few lines, and the other tools work.
func TestNamesWithoutEnd(t *testing.T) {
	s := legacyServer()
	r := newRig(t, one(s))
	defer r.close()
	for round := range 3 {
		var all strings.Builder
		for i := range 999 {
			fmt.Fprintf(&all, `{"name":"r%dt%d"},`, round, i)
		}
		s.mu.Lock()
		s.tools = all.String() + `{"name":"echo"}`
		s.mu.Unlock()
		r.say(agent("bot"), "tools/list", "")
	}
	if n := len(r.desk.Pins()); n != 2000 {
		t.Errorf("%d pinned", n)
	}
	if n := strings.Count(r.log.String(), "not passed on"); n > 3*(maxReported+1) {
		t.Errorf("%d lines in the log", n)
	}
	r.say(agent("bot"), "tools/call", `{"name":"echo"}`).contains(t, "done")
	r.say(agent("bot"), "tools/call", `{"name":"r2t998"}`).contains(t, "too many different tools")
}
