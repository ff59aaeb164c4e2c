package policy

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ayegate/ayegate/internal/call"
)

func mustCall(t testing.TB, name, args string) call.Call {
	t.Helper()
	server, tool, _ := strings.Cut(name, ".")
	c, err := call.New(server, tool, []byte(args))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func mustParse(t testing.TB, src string) *Policy {
	t.Helper()
	p, err := Parse("policy.yaml", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func example(t testing.TB) *Policy {
	t.Helper()
	src, err := os.ReadFile("testdata/example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return mustParse(t, string(src))
}

// many is a policy of n rules over as many servers and tools, exact names and
// globs in turn, the last of which allows the benchmark's tool.
func many(n int) string {
	var b strings.Builder
	b.WriteString("version: 1\nrules:\n")
	for i := range n - 1 {
		tool := [...]string{"srv%d.delete_record_%d", "srv%d.tool_%d_*", "srv%d.*_archive_%d", "*.erase_%[2]d"}[i%4]
		fmt.Fprintf(&b, "  - {id: r%d, tool: %q, ask: {tier: R2}}\n", i, fmt.Sprintf(tool, i%37, i))
	}
	b.WriteString("  - {id: last, tool: fs.read_file, allow: {tier: R0}}\n")
	return b.String()
}

var known = Facts{Agent: "bot", Owner: "user:ana", Session: "s1", Workspace: "shop", WorkspaceRoot: "/srv/shop", Known: true, Now: time.Unix(1_790_000_000, 0)}

func BenchmarkToolMatch(b *testing.B) {
	for _, n := range []int{10, 1000} {
		p := mustParse(b, many(n))
		c := mustCall(b, "fs.read_file", `{"path":"src/main.go"}`)
		b.Run(fmt.Sprintf("rules=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			var buf [16]int32
			for b.Loop() {
				if len(p.index.lookup(c, buf[:0])) != 1 {
					b.Fatal("no match")
				}
			}
		})
	}
}

func BenchmarkJudge(b *testing.B) {
	for _, n := range []int{10, 1000} {
		p := mustParse(b, many(n))
		c := mustCall(b, "fs.read_file", `{"path":"src/main.go"}`)
		b.Run(fmt.Sprintf("allow/rules=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if p.Judge(c, known).Effect != Allow {
					b.Fatal("not allowed")
				}
			}
		})
	}
	p := example(b)
	for name, args := range map[string][2]string{
		"inside": {"fs.read_file", `{"path":"src/main.go"}`},
		"argv":   {"shell.run", `{"command":"git status"}`},
		"refund": {"payments.refund", `{"amount_usd":900,"charge":"ch_1"}`},
	} {
		c := mustCall(b, args[0], args[1])
		b.Run("example/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = p.Judge(c, known)
			}
		})
	}
}

func BenchmarkExpression(b *testing.B) {
	p := example(b)
	compiler := newCompiler(p.scopes)
	args := `{"path":"src/main.go","url":"https://api.github.com/repos/x/y?per_page=3","command":"git status","sql":"select id, name from users where id = 7","amount_usd":49.5,"items":[{"n":1},{"n":2},{"n":3}]}`
	c := mustCall(b, "fs.read_file", args)
	for _, src := range []string{
		`true`,
		`args.amount_usd <= 50`,
		`args.path.startsWith("src/")`,
		`args.path.matches("src/[a-z]+\\.go")`,
		`inside(args.path, "repo")`,
		`hostIn(args.url, "hosts")`,
		`host(args.url) == "api.github.com"`,
		`argv(args.command) in [["git", "status"], ["go", "vet", "./..."]]`,
		`sqlVerbs(args.sql) == ["select"]`,
		`sqlVerbs(args.sql).exists(v, v in ["drop", "truncate"])`,
		`args.items.all(i, i.n < 10)`,
	} {
		x, errs := compiler.compile(src, condition)
		if errs != nil {
			b.Fatal(errs)
		}
		b.Run(src, func(b *testing.B) {
			b.ReportAllocs()
			e := evaluation{call: c, facts: &known}
			for b.Loop() {
				if ok, why := e.holds(x); why != "" {
					b.Fatal(ok, why)
				}
			}
		})
	}
	b.Run("decode arguments", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			e := evaluation{call: c, facts: &known}
			newActivation(&e)
		}
	})
}

func BenchmarkInspect(b *testing.B) {
	raw := []byte(`{"text":"` + strings.Repeat("a line of prose, as an agent writes it. ", 25) + `"}`)
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		inspect(raw)
	}
}

func BenchmarkParse(b *testing.B) {
	src, _ := os.ReadFile("testdata/example.yaml")
	for b.Loop() {
		if _, err := Parse("p", src); err != nil {
			b.Fatal(err)
		}
	}
}
