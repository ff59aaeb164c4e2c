package call_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/strictjson"
)

func mustNew(t interface {
	Helper()
	Fatalf(string, ...any)
}, server, tool, args string,
) call.Call {
	t.Helper()
	c, err := call.New(server, tool, []byte(args))
	if err != nil {
		t.Fatalf("%s %s %s: %v", server, tool, args, err)
	}
	return c
}

func TestNew(t *testing.T) {
	c := mustNew(t, "fs", "write_file", `{ "text":"x", "path":"/a" }`)
	want := `{"args":{"path":"/a","text":"x"},"server":"fs","tool":"write_file","v":1}`
	if c.Server() != "fs" || c.Tool() != "write_file" || string(c.Args()) != `{"path":"/a","text":"x"}` || string(c.Canonical()) != want || c.IsZero() {
		t.Errorf("got %s: %s %s %s", c.Canonical(), c.Server(), c.Tool(), c.Args())
	}
	if c.Hash() != sha256.Sum256([]byte(want)) {
		t.Errorf("hash %s is not the SHA-256 of the canonical bytes", c.Hash())
	}
	if none := mustNew(t, "fs", "list", ""); string(none.Args()) != "{}" {
		t.Errorf("no arguments are %s", none.Args())
	}
}

// A fault in the arguments says where in the arguments.
func TestFaultInArguments(t *testing.T) {
	_, err := call.New("fs", "read", []byte(`{"path":"/a","opts":{"n":1,"n":2}}`)) // CAN-01
	var fault *strictjson.Error
	if !errors.Is(err, call.ErrArgs) || !errors.As(err, &fault) || fault.Pointer != "/opts/n" || fault.Offset != 27 {
		t.Errorf("got %v", err)
	}
}

// The zero Call is no call: it has no hash, no bytes, and nothing that is accepted equals it.
func TestZeroCall(t *testing.T) {
	var c call.Call
	if !c.IsZero() || !c.Hash().IsZero() || c.Args() != nil || len(c.Canonical()) != 0 || c.Server() != "" || c.Tool() != "" {
		t.Errorf("got %+v", c)
	}
	if _, err := call.Parse(c.Canonical()); !errors.Is(err, call.ErrNotCanonical) {
		t.Errorf("parsed, %v", err)
	}
	if refused, err := call.New("fs", "read", []byte(`[]`)); err == nil || !refused.IsZero() {
		t.Errorf("a refused call is %+v", refused)
	}
}

// P5, CAN-16: nobody who holds a call's bytes can change what it is, neither through what it was made of nor through what it gave away.
func TestCallsDoNotChange(t *testing.T) {
	args := []byte(`{"path":"/a"}`)
	c, err := call.New("fs", "read", args)
	if err != nil {
		t.Fatal(err)
	}
	before := c
	clear(args)
	clear(c.Args())
	clear(c.Canonical())
	_ = append(c.Args()[:0], "XXXXXXXXXXXXXXXXXXXXXXXXXX"...)
	if c != before || string(c.Args()) != `{"path":"/a"}` || c.Hash() != sha256.Sum256(c.Canonical()) {
		t.Errorf("the call became %s", c.Canonical())
	}
}

// CAN-10, CAN-18: one argument of 5 MB is refused unless the setting allows it; what was stored under a larger setting can be read back.
func TestWithin(t *testing.T) {
	args := []byte(`{"data":"` + strings.Repeat("QUJD", 5<<18) + `","list":[` + strings.Repeat("1,", 50_000) + `1]}`)
	if _, err := call.New("fs", "write", args); !errors.Is(err, strictjson.TooLarge) {
		t.Errorf("New: %v", err)
	}
	c, err := call.Within(8<<20, "fs", "write", args)
	if err != nil {
		t.Fatal(err)
	}
	if back, err := call.Parse(c.Canonical()); err != nil || back != c {
		t.Errorf("Parse: %v", err)
	}
}

// name draws a tool name with what might confuse a form that is put together from strings.
var toolName = rapid.StringMatching(`[a-c"\\{},:é😀_.-]{1,8}`)

// Equal calls, and only they, have equal bytes and equal hashes; stored bytes give the same call back. CAN-15.
func TestCallsAreInjective(t *testing.T) {
	args := func(t *rapid.T) string {
		object := rapid.MapOfN(rapid.SampledFrom([]string{"server", "tool", "v", "args", "a", ""}), rapid.SampledFrom([]string{`1`, `"1"`, `null`, `{"v":1}`, `[]`, `""`, `9007199254740992`, `9007199254740993`}), 0, 3).Draw(t, "args")
		var parts []string
		for name, value := range object {
			parts = append(parts, fmt.Sprintf("%q:%s", name, value))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	same := func(a, b string) bool { // argument values are written in one way each, so strings can be compared
		var x, y map[string]json.RawMessage
		if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
			return false
		}
		for name := range x {
			if string(x[name]) != string(y[name]) {
				return false
			}
		}
		return len(x) == len(y)
	}
	rapid.Check(t, func(t *rapid.T) {
		server := rapid.StringMatching(`[ab]-?[ab]?`)
		s1, t1, a1 := server.Draw(t, "s1"), toolName.Draw(t, "t1"), args(t)
		s2, t2, a2 := server.Draw(t, "s2"), rapid.OneOf(rapid.Just(t1), toolName).Draw(t, "t2"), args(t)
		one, two := mustNew(t, s1, t1, a1), mustNew(t, s2, t2, a2)
		want := s1 == s2 && t1 == t2 && same(a1, a2)
		if (one == two) != want || (one.Hash() == two.Hash()) != want {
			t.Fatalf("%s\n%s", one.Canonical(), two.Canonical())
		}
		back, err := call.Parse(one.Canonical())
		if err != nil || back != one {
			t.Fatalf("%s came back as %s, %v", one.Canonical(), back.Canonical(), err)
		}
		var plain struct {
			Server, Tool string
			V            int
		}
		if err := json.Unmarshal(one.Canonical(), &plain); err != nil || plain.Server != s1 || plain.Tool != t1 || plain.V != 1 {
			t.Fatalf("others read %+v, %v", plain, err)
		}
	})
}

// MCP-12: since a server id has no underscore, server__tool can be taken apart in one way only. MCP-13: nor has it letters that look alike.
func TestServerIDsAreUnambiguous(t *testing.T) {
	for _, id := range []string{"a__b", "acme_", "_acme", "GitHub", "g\u0456thub", "gith\u00fcb", "a.b", "a/b"} {
		if c, err := call.New(id, "c", nil); !errors.Is(err, call.ErrServer) {
			t.Errorf("%s accepted: %s", id, c.Canonical())
		}
	}
}

// Whatever bytes are stored, Parse gives back the call that has exactly these, or none.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"args":{"a":1},"server":"fs","tool":"t","v":1}`))
	f.Add([]byte(`{"args":{"args":{},"server":"x","tool":"y","v":1},"server":"fs","tool":"t","v":1}`))
	f.Add([]byte(`{"args":{"n":[9007199254740993,1e-400,"\n"]},"server":"fs","tool":"a\"b","v":1}`))
	f.Add([]byte(`{"args":{},"server":"fs","tool":"t","v":1}x`))
	f.Add([]byte(`{"args":`))
	f.Fuzz(func(t *testing.T, stored []byte) {
		c, err := call.Parse(stored)
		if err != nil {
			if !errors.Is(err, call.ErrNotCanonical) || !c.IsZero() {
				t.Fatalf("%v, %+v", err, c)
			}
			return
		}
		again, err := call.Within(1<<30, c.Server(), c.Tool(), c.Args())
		if err != nil || again != c || string(c.Canonical()) != string(stored) || c.Hash() != sha256.Sum256(stored) {
			t.Fatalf("%s parsed as %s, made again %s, %v", stored, c.Canonical(), again.Canonical(), err)
		}
	})
}

// Whatever is asked for, a call that is made survives being stored.
func FuzzNew(f *testing.F) {
	f.Add("fs", "read", []byte(`{"path":"/a"}`))
	f.Add("git-hub", "a\"b\\", []byte(`{"b":1.0,"a":[1e3]}`))
	f.Add("a", "é", []byte(``))
	f.Fuzz(func(t *testing.T, server, tool string, args []byte) {
		c, err := call.New(server, tool, args)
		if err != nil {
			return
		}
		if back, err := call.Parse(c.Canonical()); err != nil || back != c || c.Server() != server || c.Tool() != tool {
			t.Fatalf("%s: %v", c.Canonical(), err)
		}
		if err := strictjson.Check(c.Canonical(), strictjson.Limits{Bytes: 2 << 20, Depth: 65, Nodes: 200_000}); err != nil {
			t.Fatalf("%s: %v", c.Canonical(), err)
		}
	})
}
