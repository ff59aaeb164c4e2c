package gateway

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ayegate/ayegate/internal/strictjson"
)

// MCP-12: a joined name is taken apart into what it was made of, so no two tools
// of any two servers share one.
func TestNamesAreInjective(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		server := rapid.StringMatching(`[a-z][a-z0-9-]{0,31}`).Draw(t, "server")
		name := rapid.StringMatching(`[_a-zа-яA-Z0-9./-]{1,40}`).Draw(t, "name")
		s, n, ok := split(join(server, name))
		if !ok || s != server || n != name {
			t.Fatalf("%s and %s became %s, %s", server, name, s, n)
		}
	})
}

func TestTemplates(t *testing.T) {
	for _, c := range []struct {
		template, uri string
		want          bool
	}{
		{"file:///{path}", "file:///a/b", true},
		{"file:///{path}.txt", "file:///a.txt", true},
		{"file:///{path}.txt", "file:///a.md", false},
		{"db://{table}/rows/{id}", "db://t/rows/7", true},
		{"db://{table}/rows/{id}", "db://t/cols/7", false},
		{"db://{table}/rows/{id}", "xdb://t/rows/7", false},
		{"plain://x", "plain://x", true},
		{"plain://x", "plain://xy", false},
		{"broken://{x", "broken://y", false},
		{"{+all}", "anything", true},
	} {
		if got := matches(c.template, c.uri); got != c.want {
			t.Errorf("%s, %s: %v", c.template, c.uri, got)
		}
	}
}

// MCP-18: whatever a server answers, a reader that takes the last of two members
// finds no status of ours in it, as one that takes the first does not.
func FuzzNoServerSpeaksForUs(f *testing.F) {
	f.Add([]byte(`{"content":[],"_meta":{"dev.ayegate/approval":{},"k":1.10}}`))
	f.Add([]byte(`{"_meta":{},"\u005fmeta":{"dev.ayegate/approval":1}}`))
	f.Add([]byte(`{"_meta":{"dev\u002eayegate/x":1,"dev.ayegate/x":2}}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		wrapped := append(append([]byte(`{"r":`), doc...), '}')
		if strictjson.Check(wrapped, strictjson.Limits{Lax: true}) != nil || !isObject(doc) {
			return
		}
		got := ours(doc)
		var all, meta map[string]json.RawMessage
		if json.Unmarshal(got, &all) != nil || json.Unmarshal(all["_meta"], &meta) != nil {
			return // _meta is not there or no object: nothing is said in it
		}
		for name := range meta {
			if strings.HasPrefix(name, metaPrefix) {
				t.Errorf("%s is still in %s", name, got)
			}
		}
		if !bytes.Contains(doc, []byte("_meta")) && !bytes.Contains(doc, []byte(`\`)) && !bytes.Equal(got, doc) {
			t.Errorf("%s became %s", doc, got)
		}
	})
}
