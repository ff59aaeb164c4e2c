package mcp

import (
	"bytes"
	"strings"
	"testing"

	"github.com/ayegate/ayegate/internal/strictjson"
)

func TestOutgoing(t *testing.T) {
	in := newIntroduction(V20260728, Target{Info: []byte(`{"name":"gw"}`), Capabilities: []byte(`{"roots":{}}`)})
	const ours = `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"gw"},"io.modelcontextprotocol/clientCapabilities":{"roots":{}}`
	for _, c := range []struct{ params, legacy, modern, token string }{
		{"", "", `{"_meta":{` + ours + `}}`, ""},
		{`{}`, `{}`, `{"_meta":{` + ours + `}}`, ""},
		{`{"_meta":{}}`, `{"_meta":{}}`, `{"_meta":{` + ours + `}}`, ""},
		{`{"_meta":{"progressToken":null}}`, `{"_meta":{"progressToken":null}}`, `{"_meta":{"progressToken":null,` + ours + `}}`, ""},
		{`{"_meta" : { "progressToken" : "\u0061" }, "z":1e3}`, `{"_meta" : { "progressToken" : 42 }, "z":1e3}`, `{"_meta" : { "progressToken" : 42,` + ours + ` }, "z":1e3}`, `"\u0061"`},
		{`{"_meta":{"progressToken":42}}`, `{"_meta":{"progressToken":42}}`, `{"_meta":{"progressToken":42,` + ours + `}}`, `42`},
		{`{"\u005fmeta":{"progress\u0054oken":-7}}`, `{"\u005fmeta":{"progress\u0054oken":42}}`, `{"\u005fmeta":{"progress\u0054oken":42,` + ours + `}}`, `-7`},
		{`{"a":{"_meta":{"progressToken":1}}}`, `{"a":{"_meta":{"progressToken":1}}}`, `{"a":{"_meta":{"progressToken":1}},"_meta":{` + ours + `}}`, ""},
	} {
		var params []byte
		if c.params != "" {
			params = []byte(c.params)
		}
		before := bytes.Clone(params)
		got, token, err := outgoing(params, nil, 42)
		if err != nil || string(got) != c.legacy || string(token) != c.token {
			t.Errorf("legacy %s: got %s, token %s, %v", c.params, got, token, err)
		}
		got, token, err = outgoing(params, in, 42)
		if err != nil || string(got) != c.modern || string(token) != c.token {
			t.Errorf("modern %s: got %s\nwant %s, token %s, %v", c.params, got, c.modern, token, err)
		}
		if !bytes.Equal(params, before) {
			t.Errorf("the caller's params were changed to %s", params)
		}
	}
}

// Whatever the params are: what goes out is valid, and taking back what the
// connection put in gives what the agent sent.
func FuzzOutgoing(f *testing.F) {
	for _, seed := range append(fidelityParams, `{"_meta":{"progressToken":"x","io.modelcontextprotocol/protocolVersion":"v"}}`, `{"_meta":{}}`, `{}`) {
		f.Add([]byte(seed))
	}
	in := newIntroduction(V20260728, Target{Info: []byte(`{"name":"gw"}`), Capabilities: []byte(`{}`)})
	f.Fuzz(func(t *testing.T, params []byte) {
		m := NewRequest([]byte(`1`), "tools/call", params)
		parsed, err := Parse(m, strictjson.Limits{})
		if err != nil || parsed.Params == nil {
			return
		}
		params = parsed.Params
		for _, in := range []*introduction{nil, in} {
			out, token, err := outgoing(params, in, 77)
			if err != nil {
				t.Fatalf("%s: %v", params, err)
			}
			if err := strictjson.Check(out, strictjson.Limits{}); err != nil {
				t.Fatalf("%s became %s: %v", params, out, err)
			}
			if token != nil {
				if got := string(ProgressToken(out)); got != "77" {
					t.Fatalf("%s became %s: token %s", params, out, got)
				}
				out, err = WithProgressToken(out, token)
				if err != nil {
					t.Fatal(err)
				}
			}
			if got, want := bare(t, out), bare(t, params); got != want {
				t.Fatalf("%s became %s\nbare %s\nwant %s", params, out, got, want)
			}
		}
	})
}

// bare is the canonical form of params without the era's members and without a
// _meta that is empty then.
func bare(t *testing.T, params []byte) string {
	t.Helper()
	var err error
	for _, name := range eraMembers {
		if Meta(params, name) != nil {
			if params, err = strictjson.Splice(params, nil, "_meta", name); err != nil {
				t.Fatal(err)
			}
		}
	}
	c, err := strictjson.Canonical(nil, params, strictjson.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer(`"_meta":{},`, "", `,"_meta":{}`, "", `"_meta":{}`, "").Replace(string(c))
}

// MCP-15: what waits for a slow listener is bounded in number and in size.
func TestInboxIsBounded(t *testing.T) {
	q := newInbox()
	kept := 0
	for range 2 * maxQueued {
		if q.put(Message{Raw: []byte(`{}`)}) {
			kept++
		}
	}
	if kept != maxQueued || len(q.take()) != maxQueued {
		t.Errorf("kept %d", kept)
	}
	if !q.put(Message{Raw: make([]byte, 2*maxQueuedBytes)}) {
		t.Error("a large message was refused by an empty inbox")
	}
	if q.put(Message{Raw: []byte(`{}`)}) {
		t.Error("more was taken than fits")
	}
}

// A server that asks and asks cannot make us hold more than a few answers.
func TestRepliesAreBounded(t *testing.T) {
	l := newLifetime(t.Context())
	release := make(chan struct{})
	for range maxReplies {
		if !l.reply(func() { <-release }) {
			t.Fatal("refused too early")
		}
	}
	if l.reply(func() { t.Error("ran") }) {
		t.Error("one too many was taken")
	}
	close(release)
	l.wg.Wait()
	if !l.reply(func() {}) {
		t.Error("refused after the others had ended")
	}
	l.finish(ErrUpstreamClosed)
	l.wg.Wait()
	if l.reply(func() { t.Error("ran") }) || l.replies.Load() != 0 {
		t.Error("something is answered after the end")
	}
}

func TestAnswered(t *testing.T) {
	filler := strings.Repeat("x", 2*keptEnd)
	for raw, want := range map[string]uint64{
		`{"jsonrpc":"2.0","id":7,"result":{"a":"` + filler:               7,
		`{"id": 7, "result":{"a":"` + filler:                             7,
		`{"result":{"a":"` + filler + `"},"jsonrpc":"2.0","id":7}`:       7,
		`{"result":{"a":"` + filler + `"},"id" : 7 , "jsonrpc":"2.0"}  `: 7,
		`{"result":{"id":7,"a":"` + filler + `"`:                         0,
		`{"result":{"a":"` + filler + `","id":7}}`:                       0,
		`{"jsonrpc":"2.0","id":"7","result":` + filler:                   0,
		`id":7}`: 0,
		``:       0,
	} {
		if got, _ := answered([]byte(raw)); got != want {
			t.Errorf("%.60s: got %d, want %d", raw, got, want)
		}
	}
}
