package gateway

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/mcp"
	"github.com/ayegate/ayegate/internal/store"
	"github.com/ayegate/ayegate/internal/strictjson"
)

// An agent over stdio in front of a server over stdio, in both eras on one
// connection: its session is the connection.
func TestAgentOverStdio(t *testing.T) {
	p := newPeer(t, "stdio", "legacy")
	r := newRig(t, rigConfig{servers: map[string]Server{"fs": {Target: p.target}}, hold: Hold{Default: 10 * time.Millisecond}})
	defer r.close()
	inR, in := io.Pipe()
	out, outW := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- mcp.ServeStdio(t.Context(), inR, outW, r.g, mcp.Client{Principal: "bot", Session: "stdio-1", Server: "fs"})
		_ = outW.Close()
	}()
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	say := func(line string) string {
		t.Helper()
		if _, err := io.WriteString(in, line+"\n"); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() {
			if m, err := mcp.Parse(lines.Bytes(), strictjson.Limits{Lax: true}); err == nil && m.Kind() == mcp.Response {
				return lines.Text()
			}
		}
		t.Fatal("no answer")
		return ""
	}
	modern := fmt.Sprintf(modernMeta, "{}")
	probe := say(`{"jsonrpc":"2.0","id":0,"method":"server/discover","params":{"_meta":{` + modern + `}}}`)
	if !strings.Contains(probe, "supportedVersions") {
		t.Errorf("%s", probe)
	}
	say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
	if got := say(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{}}}`); got != `{"jsonrpc":"2.0","id":2,"result":`+peerResult+`}` {
		t.Errorf("%s", got)
	}
	if got := say(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"write","arguments":{}}}`); !strings.Contains(got, "TOOL_BLOCKED_PENDING_APPROVAL") {
		t.Errorf("%s", got)
	}
	if got := say(`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"echo","arguments":{},"_meta":{` + modern + `}}}`); !strings.Contains(got, `"resultType":"complete"`) {
		t.Errorf("%s", got)
	}
	if q := r.pending(); q.From.Session != "stdio-1" || q.From.ID != "bot" {
		t.Errorf("%+v", q.From)
	}
	_ = in.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if len(r.g.parties) != 0 {
		t.Errorf("%d parties are left", len(r.g.parties))
	}
	if q := r.pending(); q.State != approval.Pending {
		t.Errorf("the request ended with its connection: %s", q.State)
	}
}

// RACE-07 and mcp.md 2.7 over the wire: a modern agent closes the stream of a held
// call. Its approval runs nothing; the same call with a new id gets the result.
func TestDisconnectOverTheWire(t *testing.T) {
	p := newPeer(t, "http", "modern")
	a, r := newCaller(t, p, "modern", "/mcp/fs", rigConfig{hold: Hold{Default: 20 * time.Second, Clients: map[string]time.Duration{"raw": 20 * time.Second}}})
	args := `{"name":"write","arguments":{"p":"x"},"_meta":{"progressToken":1}}`
	ctx, hangUp := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url, strings.NewReader(a.request("tools/call", args)))
	if err != nil {
		t.Fatal(err)
	}
	a.headers(req, "tools/call", args)
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	first := bufio.NewReader(resp.Body)
	for { // the first progress has the link
		line, err := first.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(line, "https://aye.example/r/") {
			break
		}
	}
	q := r.pending()
	hangUp()
	_ = resp.Body.Close()
	for r.desk.Waiting(q.ID) > 0 {
		time.Sleep(time.Millisecond)
	}
	r.decide(q, true)
	if n := len(p.got(t, "tools/call")); n != 0 {
		t.Fatalf("ran %d times without its agent", n)
	}
	got := a.call("tools/call", args)
	if !strings.Contains(string(got), "x-unheard-of") || len(p.got(t, "tools/call")) != 1 {
		t.Errorf("%s", got)
	}
	for {
		all := 0
		for q, err := range r.mem.List(t.Context(), store.Filter{}) {
			if err != nil {
				t.Fatal(err)
			}
			if all++; !q.Execution.PickedUp.IsZero() && q.State == approval.Executed {
				return
			}
		}
		if all != 1 {
			t.Fatalf("%d requests", all)
		}
		time.Sleep(time.Millisecond)
	}
}

// MCP-19: what an agent authenticates with stays here.
func TestTheAgentsCredentialStaysHere(t *testing.T) {
	for _, era := range []string{"legacy", "modern"} {
		p := newPeer(t, "http", era)
		p.target.Header = http.Header{"Authorization": {"Bearer ours"}}
		a, _ := newCaller(t, p, era, "/mcp/fs", rigConfig{})
		a.call("tools/call", `{"name":"echo","arguments":{}}`)
		p.mu.Lock()
		for _, h := range p.headers {
			if got := h.Values("Authorization"); len(got) != 1 || got[0] != "Bearer ours" {
				t.Errorf("the server saw %q", got)
			}
		}
		p.mu.Unlock()
	}
}
