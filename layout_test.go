package ayegate_test

import (
	"bytes"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/ayegate/ayegate"

// layers says who may import whom: a package imports only rows above its own, so
// packages of one row never import each other. It is the table of
// docs/architecture.md; the two change together.
var layers = [][]string{
	{"api", "internal/strictjson", "internal/identity"},
	{"internal/call", "internal/strictyaml"},
	{"internal/policy", "internal/ledger", "internal/mcp", "internal/config"},
	{"internal/approval"},
	{"internal/store"},
	{"internal/store/memory", "internal/store/sqlite"},
	{"internal/store/storetest"},
	{"internal/desk", "internal/web/credential", "internal/web/page"},
	{"internal/gateway", "internal/web", "internal/demo"},
	{"cmd/ayegate"},
}

// pure packages do no I/O, read no clock, start no goroutine and keep no global
// state: these are the only imports from the standard library they may have.
var pure = map[string][]string{
	"internal/strictjson": {"bytes", "encoding/binary", "cmp", "encoding", "errors", "fmt", "math", "math/bits", "reflect", "slices", "strconv", "strings", "sync", "time", "unicode", "unicode/utf16", "unicode/utf8"},
	"internal/identity":   {"strings"},
	"internal/call":       {"bytes", "crypto/sha256", "encoding/hex", "errors", "fmt", "slices", "strings", "unicode", "unicode/utf8"},
	"internal/policy":     nil, // filled below: see pureBanned
	"internal/ledger":     nil,
	"internal/approval":   nil,
}

// pureBanned are the packages that let the outside in; no pure package may
// import them.
var pureBanned = []string{"context", "crypto/rand", "database/sql", "io/fs", "log", "log/slog", "math/rand", "math/rand/v2", "net", "net/http", "os", "os/exec", "path/filepath", "runtime", "syscall"}

// homes says where a library may be imported, and why only there. Tests may
// import anything.
var homes = map[string]struct {
	in  []string
	why string
}{
	"modernc.org/sqlite":                     {[]string{"internal/store/sqlite", "internal/demo"}, "database drivers live in their backend; the demo's toy server has a real table"},
	"cel.dev/cel-go":                         {[]string{"internal/policy"}, "the expression engine is a detail of the policy"},
	"mvdan.cc/sh/v3":                         {[]string{"internal/policy"}, "shell commands are read where they are judged"},
	"go.yaml.in/yaml/v3":                     {[]string{"internal/strictyaml"}, "YAML is for people's files, and those are read strictly"},
	"golang.org/x/mod":                       {[]string{"internal/ledger", "internal/store", "internal/store/memory", "internal/store/sqlite", "internal/store/storetest"}, "the tree is the ledger's and its stores'"},
	"github.com/modelcontextprotocol/go-sdk": {nil, "a typed SDK loses what it does not know: peers in tests only"},
	"github.com/gowebpki/jcs":                {nil, "an oracle for tests"},
	"github.com/a-h/templ":                   {[]string{"internal/web", "internal/web/page"}, "pages are made in web"},
	"github.com/spf13/cobra":                 {[]string{"cmd/ayegate"}, "commands are wiring"},
	"encoding/json":                          {[]string{"api", "internal/desk", "internal/store", "internal/store/memory", "internal/store/sqlite", "internal/web", "internal/web/credential", "cmd/ayegate"}, "it merges duplicate keys, folds case and rounds numbers: it writes our own values and reads our own stored bytes, see readers"},
	"github.com/danielgtaylor/huma/v2":       {[]string{"internal/web"}, "HTTP lives in web"},
	"pgregory.net/rapid":                     {[]string{"internal/store/storetest"}, "property tests"},
	"github.com/anishathalye/porcupine":      {[]string{"internal/store/storetest"}, "linearizability tests"},
	"github.com/rogpeppe/go-internal":        {nil, "scripts of tests"},
	"go.uber.org/goleak":                     {nil, "tests"},
	"testing":                                {[]string{"internal/store/storetest"}, "tests, and the suite that every store runs"},
}

// readers may decode with encoding/json, each for the reason given. Everything
// that comes from outside is read by strictjson.
var readers = map[string]string{
	"api":                     "a client reads the answers of our own server",
	"internal/desk":           "its own stored records",
	"internal/web/credential": "its own stored records",
	"internal/store":          "its own stored records",
}

type source struct {
	pkg     string // directory below the module
	file    string
	test    bool
	imports []string
	hasDoc  bool
	decodes bool // calls a decoder of encoding/json
}

func TestLayout(t *testing.T) {
	files := sources(t)
	row := map[string]int{}
	for i, l := range layers {
		for _, p := range l {
			row[p] = i
		}
	}
	seen := map[string]bool{}
	documented := map[string]bool{}
	for _, f := range files {
		if f.test {
			continue
		}
		seen[f.pkg] = true
		documented[f.pkg] = documented[f.pkg] || f.hasDoc
		own, listed := row[f.pkg]
		if !listed && !exempt(f.pkg) {
			t.Errorf("%s: package %s is in no row of the layers; add it to the table here and in docs/architecture.md", f.file, f.pkg)
			continue
		}
		if _, may := readers[f.pkg]; f.decodes && !may && !exempt(f.pkg) {
			t.Errorf("%s decodes with encoding/json: what comes from outside is read by strictjson", f.file)
		}
		for _, imp := range f.imports {
			checkHome(t, f, imp)
			checkPure(t, f, imp)
			to, ours := strings.CutPrefix(imp, module+"/")
			if !ours || exempt(f.pkg) {
				continue
			}
			if r, ok := row[to]; !ok || r >= own {
				t.Errorf("%s imports %s: a package imports only rows above its own", f.file, to)
			}
		}
	}
	for p := range row {
		if !seen[p] {
			t.Errorf("package %s is in the layers but not in the tree", p)
		}
	}
	for p := range seen {
		if !documented[p] {
			t.Errorf("package %s has no package comment: say what it is, what it owns and what it does not", p)
		}
	}
}

// exempt are programs beside the product: examples, benchmarks, tools.
func exempt(pkg string) bool {
	return pkg == "." || strings.HasPrefix(pkg, "bench") || strings.HasPrefix(pkg, "examples/") || strings.HasPrefix(pkg, "internal/tools/")
}

func checkHome(t *testing.T, f source, imp string) {
	for lib, home := range homes {
		if imp != lib && !strings.HasPrefix(imp, lib+"/") || exempt(f.pkg) {
			continue
		}
		if !slices.Contains(home.in, f.pkg) {
			t.Errorf("%s imports %s, whose home is %v: %s", f.file, imp, home.in, home.why)
		}
	}
}

func checkPure(t *testing.T, f source, imp string) {
	allowed, isPure := pure[f.pkg]
	if !isPure {
		return
	}
	std := !strings.Contains(strings.SplitN(imp, "/", 2)[0], ".")
	switch {
	case slices.Contains(pureBanned, imp):
		t.Errorf("%s imports %s: %s is pure", f.file, imp, f.pkg)
	case std && allowed != nil && !slices.Contains(allowed, imp):
		t.Errorf("%s imports %s, which is not in the list of what the pure package %s may use", f.file, imp, f.pkg)
	}
}

// sources reads the import lines of every Go file. It does not run the go
// command: its answers would come from the test cache, stale.
func sources(t *testing.T) []source {
	t.Helper()
	var out []source
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if n := d.Name(); name != "." && (strings.HasPrefix(n, ".") || n == "testdata" || n == "node_modules") {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(name) != ".go" {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		s := source{
			pkg: filepath.ToSlash(filepath.Dir(name)), file: name,
			test: strings.HasSuffix(name, "_test.go"), hasDoc: f.Doc != nil && len(f.Doc.Text()) > 80,
			decodes: bytes.Contains(text, []byte("json.Unmarshal(")) || bytes.Contains(text, []byte("json.NewDecoder(")),
		}
		for _, i := range f.Imports {
			p, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			s.imports = append(s.imports, p)
		}
		out = append(out, s)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
