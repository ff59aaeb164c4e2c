package gateway

import (
	"bytes"
	"crypto/rand"
	"strings"
	"testing"

	"github.com/ayegate/ayegate/internal/mcp"
)

var randomness = rand.Reader

// newCaller is an agent of an era in front of a rig with one server, "fs".
func newCaller(t testing.TB, p *peer, era, path string, c rigConfig) (*caller, *rig) {
	t.Helper()
	c.servers = map[string]Server{"fs": {Target: p.target}}
	r := newRig(t, c)
	a := &caller{t: t, url: r.wire(t) + path, modern: era == "modern", caps: `{}`}
	if !a.modern {
		a.initialize()
	}
	return a, r
}

// pairs runs a test for every pair of eras and both transports to the server.
func pairs(t *testing.T, f func(t *testing.T, agent, transport, server string)) {
	t.Helper()
	for _, agent := range []string{"legacy", "modern"} {
		for _, server := range []string{"legacy", "modern"} {
			for _, transport := range []string{"http", "stdio"} {
				t.Run(agent+" agent, "+server+" "+transport+" server", func(t *testing.T) { f(t, agent, transport, server) })
			}
		}
	}
}

// withoutEra is params as the agent meant them.
func withoutEra(params string) string {
	b := []byte(params)
	for _, name := range []string{mcp.MetaVersion, mcp.MetaClientInfo, mcp.MetaCapabilities} {
		b = without(b, "_meta", name)
	}
	if string(get(b, "_meta")) == "{}" {
		b = without(b, "_meta")
	}
	return string(b)
}

// The rows of the table of mcp.md that say what proxies lose. Every row holds in
// every pair of eras, over HTTP and over stdio.
func TestFidelity(t *testing.T) {
	pairs(t, func(t *testing.T, agent, transport, server string) {
		p := newPeer(t, transport, server)
		a, _ := newCaller(t, p, agent, "/mcp/fs", rigConfig{})
		bridged := agent == "modern" && server == "legacy"

		t.Run("tools/list", func(t *testing.T) { // schema numbers, execution, unknown fields, list level
			got := a.call("tools/list", "")
			if !bytes.Contains(got, []byte(peerTool)) {
				t.Errorf("the tool is not byte for byte:\n%s", got)
			}
			if !bytes.Contains(got, []byte(`"x-page":1.10`)) {
				t.Errorf("the list lost a member: %s", got)
			}
			for _, name := range []string{`"ttlMs"`, `"cacheScope"`} {
				if bytes.Contains(got, []byte(name)) != (agent == "modern") {
					t.Errorf("%s: %s", name, got)
				}
			}
			if bytes.Contains(got, []byte(`"public"`)) {
				t.Errorf("MCP-15: a list of one agent's tools is public: %s", got)
			}
		})
		t.Run("tools/call", func(t *testing.T) {
			args := `{"z":9007199254740993,"b":"<x>& \u0041","a":1.10,"e":1E3,"m":-0.0}`
			rest := `"task":{"ttl":1E3},"x-p":1.10`
			meta := `"_meta":{"n":9007199254740993,"k":1.10,"t":{"z":1,"a":2}}`
			got := a.call("tools/call", `{"name":"echo","arguments":`+args+`,`+rest+`,`+meta+`}`)
			want := peerResult
			if bridged || agent == "modern" {
				want = strings.TrimSuffix(want, "}") + `,"resultType":"complete"}`
			}
			if res := string(get(got, "result")); res != want {
				t.Errorf("the result is not byte for byte:\n got %s\nwant %s", res, want)
			}
			calls := p.got(t, "tools/call")
			if len(calls) != 1 {
				t.Fatalf("the server got %d calls: %q", len(calls), calls)
			}
			// Architecture: what is judged, shown, hashed and sent are one canonical form.
			canonical := `{"a":1.1,"b":"<x>& A","e":1000,"m":0,"z":9007199254740993}`
			if sent := withoutEra(calls[0]); sent != `{"name":"echo","arguments":`+canonical+`,`+rest+`,`+meta+`}` {
				t.Errorf("the server got %s", sent)
			}
		})
		t.Run("error", func(t *testing.T) {
			got := a.call("tools/call", `{"name":"echo","arguments":{"fail":"yes"}}`)
			if e := string(get(got, "error")); e != peerError {
				t.Errorf("the error is not byte for byte:\n got %s\nwant %s", e, peerError)
			}
		})
		t.Run("duplicate keys", func(t *testing.T) { // CAN-02
			before := len(p.got(t, "tools/call"))
			got := a.call("tools/call", `{"name":"echo","arguments":{"a":1,"a":2}}`)
			if get(got, "error") == nil || len(p.got(t, "tools/call")) != before {
				t.Errorf("%s", got)
			}
		})
		t.Run("a list that passes", func(t *testing.T) {
			a.call("resources/list", "")
			got := string(get(a.call("resources/list", `{"cursor":"c1","x-p":1.10}`), "result"))
			want, _ := peerAnswer("resources/list", nil)
			if agent == "modern" {
				want = strings.TrimSuffix(want, "}") + `,"ttlMs":0,"cacheScope":"private","resultType":"complete"}`
			}
			if got != want {
				t.Errorf("got %s\nwant %s", got, want)
			}
			if sent := p.got(t, "resources/list"); len(sent) != 2 || withoutEra(sent[1]) != `{"cursor":"c1"}` {
				t.Errorf("the server got %q", sent)
			}
		})
	})
}

// MCP-09: a method that is no tool is judged by its own name, and runs with the
// params that were judged.
func TestMethodsAreJudged(t *testing.T) {
	pairs(t, func(t *testing.T, agent, transport, server string) {
		p := newPeer(t, transport, server)
		a, r := newCaller(t, p, agent, "/mcp/fs", rigConfig{hold: Hold{Default: 1}})
		got := a.call("prompts/get", `{"name":"p","arguments":{"z":"1","a":"2"},"_meta":{"n":9007199254740993}}`)
		if !bytes.Contains(get(got, "result"), []byte(`"text":"hi","x":1.10`)) {
			t.Errorf("%s", got)
		}
		want := `{"arguments":{"a":"2","z":"1"},"name":"p","_meta":{"n":9007199254740993}}`
		if sent := p.got(t, "prompts/get"); len(sent) != 1 || withoutEra(sent[0]) != want {
			t.Errorf("the server got %q, want %q", sent, want)
		}
		for _, method := range []string{"resources/read", "completion/complete", "tasks/get", "x/unheard-of"} {
			got := a.call(method, `{"uri":"file:///a"}`)
			if len(p.got(t, method)) > 0 {
				t.Errorf("%s reached the server unjudged", method)
			}
			if agent == "legacy" && !bytes.Contains(got, []byte("TOOL_BLOCKED_PENDING_APPROVAL")) {
				t.Errorf("%s: %s", method, got)
			}
		}
		found := false
		for _, q := range r.all() {
			found = found || q.Call.Tool() == "mcp:x/unheard-of" && string(q.Call.Args()) == `{"uri":"file:///a"}`
		}
		if !found {
			t.Error("an unknown method made no request")
		}
	})
}

func TestIntroductionsOnTheWire(t *testing.T) {
	pairs(t, func(t *testing.T, agent, transport, server string) {
		p := newPeer(t, transport, server)
		a, _ := newCaller(t, p, agent, "/mcp/fs", rigConfig{})
		var got []byte
		if a.modern {
			got = get(a.call("server/discover", ""), "result")
			for _, v := range []string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"} {
				if !bytes.Contains(get(got, "supportedVersions"), []byte(v)) {
					t.Errorf("%s is missing", v)
				}
			}
			if string(get(got, "cacheScope")) != `"private"` || textAt(got, "resultType") != "complete" {
				t.Errorf("%s", got)
			}
			if textAt(got, "_meta", metaServerInfo, "version") != "1.10" {
				t.Errorf("server info: %s", got)
			}
		} else {
			a.session = ""
			got = get(a.initialize(), "result")
			if textAt(got, "protocolVersion") != "2025-11-25" || textAt(got, "serverInfo", "version") != "1.10" {
				t.Errorf("%s", got)
			}
		}
		if has(got, "capabilities", "tasks") || !has(got, "capabilities", "tools", "listChanged") ||
			string(get(got, "capabilities", "x-cap", "n")) != "1.10" {
			t.Errorf("capabilities: %s", got)
		}
		if in := textAt(got, "instructions"); !strings.HasPrefix(in, advice) || !strings.HasSuffix(in, "Be exact.") {
			t.Errorf("instructions %q", in)
		}
	})
}
