package mcp

import (
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// The table of the specification, and its neighbours.
func TestHeaderCoding(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"us-west1":             "us-west1",
		"":                     "",
		"a b":                  "a b",
		"Hello, 世界":            "=?base64?SGVsbG8sIOS4lueVjA==?=",
		" padded ":             "=?base64?IHBhZGRlZCA=?=",
		"line1\nline2":         "=?base64?bGluZTEKbGluZTI=?=",
		"=?base64?literal?=":   "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=",
		"=?base64?open":        "=?base64?open",
		"a\tb":                 "=?base64?YQli?=",
		"file:///a/b%20c?d#e":  "file:///a/b%20c?d#e",
		"X\r\nMcp-Name: other": "=?base64?WA0KTWNwLU5hbWU6IG90aGVy?=",
	} {
		got := EncodeHeader(text)
		if got != want {
			t.Errorf("%q is encoded as %q, want %q", text, got, want)
		}
		if back, err := DecodeHeader(got); err != nil || back != text {
			t.Errorf("%q came back as %q, %v", text, back, err)
		}
	}
	for _, bad := range []string{"é", "a\tb", "a\x00", "a\x7f", "=?base64?YQ?=", "=?base64?YR==?=", "=?base64?YQ==\n?=", "=?base64?Y Q==?=", "=?base64?_w==?=", "=?base64?/w==?=", "=?base64?7aCA?="} {
		if got, err := DecodeHeader(bad); err == nil {
			t.Errorf("%q is read as %q", bad, got)
		}
	}
	for literal, want := range map[string]string{"=?BASE64?YQ==?=": "=?BASE64?YQ==?=", "=?base64?YQ==": "=?base64?YQ==", "=?base64??=": "", "=?base64?=": "=?base64?="} {
		if got, err := DecodeHeader(literal); err != nil || got != want {
			t.Errorf("%q is read as %q, %v", literal, got, err)
		}
	}
}

func TestSetHeaders(t *testing.T) {
	t.Parallel()
	for method, c := range map[string]struct{ params, name string }{
		"tools/call":     {`{"name":"fs__write"}`, "fs__write"},
		"prompts/get":    {`{"name":"é"}`, "=?base64?w6k=?="},
		"resources/read": {`{"uri":"file:///a"}`, "file:///a"},
		"tasks/get":      {`{"taskId":"t-1"}`, "t-1"},
		"tools/list":     {`{}`, ""},
	} {
		h := http.Header{}
		if err := SetHeaders(h, V20260728, method, []byte(c.params)); err != nil {
			t.Fatal(err)
		}
		if h.Get(HeaderMethod) != method || h.Get(HeaderName) != c.name || h.Get("MCP-Protocol-Version") != "2026-07-28" {
			t.Errorf("%s: %v", method, h)
		}
		if e := CheckHeaders(h, Message{Method: method, Params: []byte(c.params)}); e != nil {
			t.Errorf("%s: our own headers are refused: %v", method, e)
		}
	}
	for _, params := range []string{`{}`, `{"name":7}`} {
		if err := SetHeaders(http.Header{}, V20260728, "tools/call", []byte(params)); err == nil {
			t.Errorf("a call without a name got headers: %s", params)
		}
	}
}

func TestParamHeaders(t *testing.T) {
	t.Parallel()
	bound, err := ParamHeaders([]byte(`{"type":"object","properties":{
		"region":{"type":"string","x-mcp-header":"Region"},
		"opts":{"type":"object","properties":{"dry":{"type":"boolean","x-mcp-header":"dry-run"},"n":{"type":"integer","x-mcp-header":"N"}}},
		"x-mcp-header":{"type":"string"},
		"plain":{"type":"string","default":{"x-mcp-header":"no"},"enum":[{"x-mcp-header":1}]}},"required":["region"]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []ParamHeader{
		{[]string{"region"}, "Mcp-Param-Region"}, {[]string{"opts", "dry"}, "Mcp-Param-Dry-Run"}, {[]string{"opts", "n"}, "Mcp-Param-N"},
	}
	if d := cmp.Diff(want, bound); d != "" {
		t.Fatal(d)
	}
	for _, params := range []string{
		`{"arguments":{"region":" é","opts":{"dry":true,"n":-42}}}`, `{"arguments":{"region":null}}`, `{"arguments":{}}`, `{}`, `{"arguments":{"opts":{"n":1e1}}}`,
	} {
		h := http.Header{}
		SetParamHeaders(h, bound, []byte(params))
		if e := CheckParamHeaders(h, bound, []byte(params)); e != nil {
			t.Errorf("%s: our own headers %v are refused: %v", params, h, e)
		}
	}
	for _, c := range []struct {
		params, header, value string
		ok                    bool
	}{
		{`{"arguments":{"opts":{"n":42}}}`, "Mcp-Param-N", "42.0", true},
		{`{"arguments":{"opts":{"n":42}}}`, "Mcp-Param-N", "43", false},
		{`{"arguments":{"opts":{"n":42}}}`, "Mcp-Param-N", "042", false},
		{`{"arguments":{"opts":{"n":"42"}}}`, "Mcp-Param-N", "42.0", false},
		{`{"arguments":{"opts":{"n":9007199254740993}}}`, "Mcp-Param-N", "9007199254740993", false},
		{`{"arguments":{"opts":{"n":1.5}}}`, "Mcp-Param-N", "1.5", false},
		{`{"arguments":{"opts":{"dry":true}}}`, "Mcp-Param-Dry-Run", "True", false},
		{`{"arguments":{"region":"a"}}`, "Mcp-Param-Region", "=?base64?YQ==?=", true},
		{`{"arguments":{"region":"a"}}`, "Mcp-Param-Region", "=?base64?YR==?=", false},
		{`{"arguments":{"region":"a"}}`, "Mcp-Param-Region", "b", false},
		{`{"arguments":{"region":null}}`, "Mcp-Param-Region", "null", false},
		{`{"arguments":{}}`, "Mcp-Param-Region", "", false},
	} {
		e := CheckParamHeaders(http.Header{c.header: {c.value}}, bound, []byte(c.params))
		if (e == nil) != c.ok {
			t.Errorf("%s with %s: %s: %v", c.params, c.header, c.value, e)
		}
		if e != nil && (e.Code != CodeHeaderMismatch || !strings.Contains(e.Message, c.header)) {
			t.Errorf("refused with %d %s", e.Code, e.Message)
		}
	}
}

// A schema that binds what the revision forbids makes the tool unusable over HTTP.
func TestParamHeadersRefused(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		`{"properties":{"a":{"type":"string","x-mcp-header":""}}}`,
		`{"properties":{"a":{"type":"string","x-mcp-header":"a b"}}}`,
		`{"properties":{"a":{"type":"string","x-mcp-header":"a\r\nX"}}}`,
		`{"properties":{"a":{"type":"string","x-mcp-header":7}}}`,
		`{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}`,
		`{"properties":{"a":{"type":["string","null"],"x-mcp-header":"A"}}}`,
		`{"properties":{"a":{"x-mcp-header":"A"}}}`,
		`{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}`,
		`{"properties":{"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}}}`,
		`{"properties":{"a":{"anyOf":[{"type":"string","x-mcp-header":"A"}]}}}`,
		`{"$defs":{"d":{"type":"string","x-mcp-header":"A"}}}`,
		`{"if":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}}`,
		`{"type":"string","x-mcp-header":"A"}`,
		`{"properties":{"a":{"type":"string","x-mcp-header":"A","x-mcp-header":"B"}}}`,
		`[]`,
	} {
		if got, err := ParamHeaders([]byte(s)); err == nil {
			t.Errorf("%s gives %v", s, got)
		}
	}
}

func FuzzHeader(f *testing.F) {
	f.Add("us-west1")
	f.Add("=?base64?SGVsbG8=?=")
	f.Add("=?base64??=")
	f.Fuzz(func(t *testing.T, s string) {
		encoded := EncodeHeader(s)
		if !isHeaderText(encoded) || strings.TrimSpace(encoded) != encoded {
			t.Fatalf("%q is encoded as %q", s, encoded)
		}
		back, err := DecodeHeader(encoded)
		if utf8.ValidString(s) != (err == nil) || err == nil && back != s {
			t.Fatalf("%q came back as %q, %v", s, back, err)
		}
		if text, err := DecodeHeader(s); err == nil && !utf8.ValidString(text) {
			t.Fatalf("%q is read as %q", s, text)
		}
	})
}
