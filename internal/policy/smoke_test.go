package policy

import (
	"testing"

	"github.com/ayegate/ayegate/internal/call"
)

func TestSmoke(t *testing.T) {
	for _, src := range [][]byte{Starter(), AllowAll()} {
		p, err := Parse("x", src)
		if err != nil {
			t.Fatal(err)
		}
		c, err := call.New("fs", "read_file", []byte(`{"path":"x"}`))
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%+v", p.Judge(c, Facts{}))
		c, _ = call.New("fs", "mcp:prompts/get", []byte(`{"path":"x"}`))
		t.Logf("%+v", p.Judge(c, Facts{}))
	}
}
