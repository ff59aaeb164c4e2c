// Package threats makes docs/threats.md: for each attack on ayegate that is known
// to us, the tests that show what comes of it, found by looking for the attack's
// id in the sources of tests. What threats.txt claims and no test shows is a fault.
//
// Write the document anew with:
//
//	AYEGATE_WRITE_DOCS=1 go test ./internal/tools/threats
package threats

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	root = "../../.."
	doc  = root + "/docs/threats.md"
)

var id = regexp.MustCompile(`\b(?:CAN|POL|TOK|RACE|MCP|API|AUD|OPS)-[0-9]{2}\b`)

// threat is one line of threats.txt.
type threat struct {
	id, attack string
	status     string // "no: …", "waits: …" or empty
}

// TestDocsThreats compares docs/threats.md with threats.txt and the tests.
func TestDocsThreats(t *testing.T) {
	shown := tests(t)
	var out bytes.Buffer
	out.WriteString(head)
	known := map[string]bool{}
	counts := map[string]int{}
	for line := range strings.Lines(read(t, "threats.txt")) {
		line = strings.TrimSpace(line)
		if title, ok := strings.CutPrefix(line, "## "); ok {
			fmt.Fprintf(&out, "\n## %s\n\n| | somebody tries | shown by |\n|---|---|---|\n", title)
			continue
		}
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		x, err := parse(line)
		if err != nil {
			t.Fatal(err)
		}
		if known[x.id] {
			t.Errorf("%s stands twice in threats.txt", x.id)
		}
		known[x.id] = true
		counts[kind(x.status)]++
		if x.status == "" && len(shown[x.id]) == 0 {
			t.Errorf("%s is claimed to be shown by tests, and no source of a test names it", x.id)
		}
		fmt.Fprintf(&out, "| %s | %s | %s |\n", x.id, x.attack, cell(x, shown[x.id]))
	}
	for _, name := range slices.Sorted(maps.Keys(shown)) {
		if !known[name] {
			t.Errorf("%s names %s, which is not in threats.txt", shown[name][0], name)
		}
	}
	fmt.Fprintf(&out, "\n%d attacks: %d shown by tests, %d that cannot concern ayegate, %d that wait for what they are about.\n",
		len(known), counts[""], counts["no"], counts["waits"])
	if os.Getenv("AYEGATE_WRITE_DOCS") != "" {
		if err := os.WriteFile(doc, out.Bytes(), 0o644); err != nil { //nolint:gosec // a document
			t.Fatal(err)
		}
	}
	if have := read(t, doc); have != out.String() {
		t.Errorf("docs/threats.md is not what the tests show; write it with AYEGATE_WRITE_DOCS=1")
	}
}

const head = `<!-- Made by internal/tools/threats from threats.txt and the tests. Do not edit. -->
# Threats

What somebody may try against ayegate, and the tests that show what comes of it. A test is named with the
folder it is in; a *.txtar is a script that drives the real program. Where there is no test, the table says why.
`

func parse(line string) (threat, error) {
	parts := strings.Split(line, " | ")
	if len(parts) < 2 || len(parts) > 3 || id.FindString(parts[0]) != parts[0] {
		return threat{}, fmt.Errorf("threats.txt: %q is no line", line)
	}
	x := threat{id: parts[0], attack: parts[1]}
	if len(parts) == 3 {
		x.status = parts[2]
		if kind(x.status) == "" {
			return x, fmt.Errorf("threats.txt: %s: %q begins neither with no: nor with waits:", x.id, x.status)
		}
	}
	return x, nil
}

func kind(status string) string {
	for _, k := range []string{"no", "waits"} {
		if strings.HasPrefix(status, k+": ") {
			return k
		}
	}
	return ""
}

func cell(x threat, tests []string) string {
	var say string
	switch kind(x.status) {
	case "no":
		say = "*does not apply*: " + strings.TrimPrefix(x.status, "no: ")
	case "waits":
		say = "*waits* " + strings.TrimPrefix(x.status, "waits: ")
	}
	quoted := make([]string, len(tests))
	for i, name := range tests {
		quoted[i] = "`" + name + "`"
	}
	if say != "" {
		quoted = slices.Insert(quoted, 0, say)
	}
	return strings.Join(quoted, "<br>")
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(text)
}

// tests finds the ids in the sources of tests, the suite of the stores included: id
// to "folder: Test" and "folder/script.txtar", sorted.
func tests(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string]map[string]bool{}
	add := func(text, name string) {
		for _, x := range id.FindAllString(text, -1) {
			if found[x] == nil {
				found[x] = map[string]bool{}
			}
			found[x][name] = true
		}
	}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, name)
		rel = filepath.ToSlash(rel)
		switch {
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && rel != "." || d.Name() == "node_modules" || rel == "internal/tools/threats"):
			return fs.SkipDir
		case d.IsDir():
		case strings.HasSuffix(name, ".txtar"):
			add(read(t, name), strings.Replace(rel, "testdata/script/", "", 1))
		case strings.HasSuffix(name, "_test.go"), strings.HasPrefix(rel, "internal/store/storetest/") && strings.HasSuffix(name, ".go"):
			return goTests(name, filepath.ToSlash(filepath.Dir(rel)), add)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for x, names := range found {
		out[x] = slices.Sorted(maps.Keys(names))
	}
	return out
}

// goTests gives each id to the test or fuzz target whose text or comment has it;
// what stands in no such function belongs to the file.
func goTests(name, dir string, add func(text, name string)) error {
	src, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, name, src, parser.ParseComments)
	if err != nil {
		return err
	}
	rest := bytes.Clone(src)
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Recv != nil || !strings.HasPrefix(fn.Name.Name, "Test") && !strings.HasPrefix(fn.Name.Name, "Fuzz") {
			continue
		}
		from, to := set.Position(fn.Pos()).Offset, set.Position(fn.End()).Offset
		if fn.Doc != nil {
			from = set.Position(fn.Doc.Pos()).Offset
		}
		add(string(src[from:to]), dir+": "+fn.Name.Name)
		for i := from; i < to; i++ {
			rest[i] = ' '
		}
	}
	add(string(rest), dir+"/"+filepath.Base(name))
	return nil
}
