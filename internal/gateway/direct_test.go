package gateway

import (
	"context"
	"errors"
	"testing"

	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/desk"
	"github.com/ayegate/ayegate/internal/identity"
	"github.com/ayegate/ayegate/internal/mcp"
)

// What callers that do not speak MCP get of the same servers.
func TestToolForOtherEdges(t *testing.T) {
	s := legacyServer()
	s.serve = asker(roots)
	r := newRig(t, one(s))
	defer r.close()
	from := identity.Agent{ID: "bot"}
	do, known, err := r.g.Tool(context.Background(), from, "fs", "ask", nil)
	if err != nil || !known.Known {
		t.Fatalf("%+v %v", known, err)
	}
	c, err := call.New("fs", "ask", []byte(`{"n":1.0}`))
	if err != nil {
		t.Fatal(err)
	}
	res, err := do(context.Background(), c, "claim")
	if err != nil || res.IsError {
		t.Fatalf("%s %v", res.Bytes, err)
	}
	if got := s.sent("tools/call"); len(got) != 1 || got[0] != `{"name":"ask","arguments":{"n":1}}` {
		t.Errorf("the server got %q", got)
	}
	for tool, want := range map[string]error{"none": ErrNoTool} {
		if _, _, err := r.g.Tool(context.Background(), from, "fs", tool, nil); !errors.Is(err, want) {
			t.Errorf("%s: %v", tool, err)
		}
	}
	if _, _, err := r.g.Tool(context.Background(), from, "other", "ask", nil); !errors.Is(err, ErrNoServer) {
		t.Errorf("%v", err)
	}
	s.mu.Lock()
	s.tools = `{"name":"ask","description":"changed"}`
	s.mu.Unlock()
	s.target.Stray.Notification(mcp.Message{Method: toolsChanged})
	if _, _, err := r.g.Tool(context.Background(), from, "fs", "ask", nil); !errors.Is(err, desk.ErrHeldTool) {
		t.Errorf("MCP-10: %v", err)
	}
}
