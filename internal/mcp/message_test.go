package mcp

import (
	"errors"
	"strings"
	"testing"

	"github.com/ayegate/ayegate/internal/strictjson"
)

func TestParse(t *testing.T) {
	t.Parallel()
	const raw = ` {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"fs__write_file","arguments":{"n":1.10},"_meta":{"progressToken":2}},"x-own":[1]} `
	m, err := Parse([]byte(raw), strictjson.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if m.Kind() != Request || string(m.ID) != "2" || m.Method != "tools/call" {
		t.Errorf("parsed %+v", m)
	}
	if want := `{"name":"fs__write_file","arguments":{"n":1.10},"_meta":{"progressToken":2}}`; string(m.Params) != want {
		t.Errorf("params are\n%s, want\n%s", m.Params, want)
	}
	if string(m.Raw) != raw {
		t.Errorf("raw is not the message")
	}
	if got := string(ProgressToken(m.Params)); got != "2" {
		t.Errorf("token is %q", got)
	}
}

func TestParseKinds(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]Kind{
		`{"jsonrpc":"2.0","id":"a","method":"ping"}`:                              Request,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`:                  Notification,
		`{"jsonrpc":"2.0","id":"gw-17","result":{"action":"accept"}}`:             Response,
		`{"jsonrpc":"2.0","id":-3,"error":{"code":-32601,"message":"no"}}`:        Response,
		`{"jsonrpc":"2.0","error":{"code":-32700,"message":"cannot read"}}`:       Response,
		`{"jsonrpc":"2.0","id":12345678901234567890,"method":"ping","params":{}}`: Request,
	} {
		m, err := Parse([]byte(raw), strictjson.Limits{})
		if err != nil || m.Kind() != want {
			t.Errorf("%s: kind %d, %v; want %d", raw, m.Kind(), err, want)
		}
	}
}

// What must never be taken for a message: duplicate, folded and NUL-suffixed
// names (CAN-01, CAN-02, CAN-03, CAN-04), bad text (CAN-07), trailing data
// (CAN-08), depth (CAN-09), batches (MCP-03), ids and methods that hide a call
// (MCP-08).
func TestParseRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, raw string
		code      int
		id        string // that the refusal can name
		says      string
	}{
		{"CAN-01 duplicate method", `{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}`, CodeParse, "", "twice"},
		{"CAN-01 duplicate name", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","name":"delete"}}`, CodeParse, "", "/params"},
		{"CAN-01 escaped duplicate", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"r","arguments":{"path":"/a","p\u0061th":"/etc"}}}`, CodeParse, "", "/params/arguments"},
		{"CAN-02 case variant of the envelope", `{"jsonrpc":"2.0","id":1,"method":"ping","METHOD":"tools/call"}`, CodeInvalidRequest, "1", "/METHOD"},
		{"CAN-02 Params", `{"jsonrpc":"2.0","id":1,"method":"ping","Params":{}}`, CodeInvalidRequest, "1", "/Params"},
		{"CAN-02 case variant in params", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","Name":"delete"}}`, CodeInvalidRequest, "1", "/params/Name"},
		{"CAN-02 case variant in _meta", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/ProtocolVersion":"2025-03-26"}}}`, CodeInvalidRequest, "1", "/params/_meta/io.modelcontextprotocol~1ProtocolVersion"},
		{"CAN-03 long s", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"argument` + "\u017f" + `":{}}}`, CodeInvalidRequest, "1", "/params/argument"},
		{"CAN-03 Kelvin sign", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressTo` + "\u212a" + `en":1}}}`, CodeInvalidRequest, "1", "progressToken"},
		{"CAN-04 NUL", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","name\u0000":"delete"}}`, CodeParse, "", "NUL"},
		{"CAN-06 not a number", `{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":01}}`, CodeParse, "", "/params/a"},
		{"CAN-07 lone surrogate", `{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"\ud800"}}`, CodeParse, "", "surrogate"},
		{"CAN-07 bad UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":{\"a\":\"\xff\"}}", CodeParse, "", "UTF-8"},
		{"CAN-08 trailing data", `{"jsonrpc":"2.0","id":1,"method":"ping"} {}`, CodeParse, "", "after"},
		{"CAN-08 byte order mark", "\ufeff" + `{"jsonrpc":"2.0","id":1,"method":"ping"}`, CodeParse, "", "mark"},
		{"CAN-08 UTF-16", "{\x00\"\x00", CodeParse, "", "byte"},
		{"CAN-09 depth", `{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":` + strings.Repeat("[", 100_000), CodeParse, "", "deep"},
		{"MCP-03 batch", `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, CodeInvalidRequest, "", "single message"},
		{"MCP-03 empty batch", `[]`, CodeInvalidRequest, "", "single message"},
		{"MCP-08 null id", `{"jsonrpc":"2.0","id":null,"method":"tools/call"}`, CodeInvalidRequest, "", "/id"},
		{"MCP-08 object id", `{"jsonrpc":"2.0","id":{"a":1},"method":"tools/call"}`, CodeInvalidRequest, "", "/id"},
		{"MCP-08 fractional id", `{"jsonrpc":"2.0","id":1.0,"method":"tools/call"}`, CodeInvalidRequest, "", "/id"},
		{"MCP-08 minus zero", `{"jsonrpc":"2.0","id":-0,"method":"tools/call"}`, CodeInvalidRequest, "", "/id"},
		{"MCP-08 long id", `{"jsonrpc":"2.0","id":"` + strings.Repeat("a", 1<<19) + `","method":"tools/call"}`, CodeInvalidRequest, "", "256"},
		{"MCP-08 method with a space", `{"jsonrpc":"2.0","id":1,"method":"tools/call "}`, CodeInvalidRequest, "1", "/method"},
		{"MCP-08 empty method", `{"jsonrpc":"2.0","id":1,"method":""}`, CodeInvalidRequest, "1", "/method"},
		{"MCP-08 method is no text", `{"jsonrpc":"2.0","id":1,"method":["tools/call"]}`, CodeInvalidRequest, "1", "/method"},
		{"version missing", `{"id":1,"method":"ping"}`, CodeInvalidRequest, "1", "/jsonrpc"},
		{"version as a number", `{"jsonrpc":2.0,"id":1,"method":"ping"}`, CodeInvalidRequest, "1", "/jsonrpc"},
		{"positional params", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":["a"]}`, CodeInvalidRequest, "1", "/params"},
		{"null params", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":null}`, CodeInvalidRequest, "1", "/params"},
		{"_meta is no object", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":1}}`, CodeInvalidRequest, "1", "/params/_meta"},
		{"request and response", `{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}`, CodeInvalidRequest, "1", "both"},
		{"result and error", `{"jsonrpc":"2.0","id":1,"result":{},"error":{}}`, CodeInvalidRequest, "1", "both"},
		{"nothing", `{"jsonrpc":"2.0","id":1}`, CodeInvalidRequest, "1", "needs a method"},
		{"result without id", `{"jsonrpc":"2.0","result":{}}`, CodeInvalidRequest, "", "/id"},
		{"a number", `7`, CodeInvalidRequest, "", "object"},
		{"nothing at all", ``, CodeParse, "", "byte 0"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			m, err := Parse([]byte(test.raw), strictjson.Limits{})
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("accepted as %+v", m)
			}
			if e.Code != test.code || !strings.Contains(e.Message, test.says) || !strings.HasSuffix(e.Message, "nothing ran") {
				t.Errorf("refused with %d %q", e.Code, e.Message)
			}
			if string(m.ID) != test.id {
				t.Errorf("id is %q, want %q", m.ID, test.id)
			}
			if m.Method != "" || m.Params != nil || m.Kind() == Request {
				t.Errorf("the refused message can still be taken for one: %+v", m)
			}
			if _, err := Parse(NewError(m.ID, e), strictjson.Limits{}); err != nil {
				t.Errorf("the refusal itself is no message: %v", err)
			}
		})
	}
}
