package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"strings"
	"testing"
	"time"
)

var aTime = time.Date(2026, 11, 20, 9, 0, 4, 500_000_000, time.FixedZone("CET", 3600))

func mustEntry(t *testing.T, e Event) []byte {
	t.Helper()
	line, err := e.Entry(7, aTime)
	if err != nil {
		t.Fatal(err)
	}
	return line
}

func TestEntryIsOneCanonicalLine(t *testing.T) {
	e := Event{PauseSet, "all", raj, []Field{
		String("reason", "line\nbreak \"quoted\" \x1b[31m ü"), Int("n", -5),
		{"m", 6},
		Bool("yes", true), Bool("no", false),
		Strings("list", []string{"b", "a"}), Strings("empty", nil),
		{"raw", Raw(`{"a":[1,null]}`)},
	}}
	want := `{"actor":{"id":"user:raj","kind":"human","via":"passkey"},"data":{"empty":[],"list":["b","a"],"m":6,"n":-5,"no":false,"raw":{"a":[1,null]},` +
		`"reason":"line\nbreak \"quoted\" \u001b[31m ü","yes":true},"kind":"pause.set","seq":7,"subject":"all","time":"2026-11-20T08:00:04.5Z","v":1}`
	line := mustEntry(t, e)
	if string(line) != want {
		t.Errorf("got  %s\nwant %s", line, want)
	}
	got, err := ParseEntry(line)
	if err != nil {
		t.Fatal(err)
	}
	if got.Seq != 7 || !got.Time.Equal(aTime) || got.Kind != PauseSet || got.Subject != "all" || got.Actor != raj || !json.Valid(got.Data) {
		t.Errorf("read back %+v", got)
	}
	if s, ok := got.Text("reason"); !ok || s != "line\nbreak \"quoted\" \x1b[31m ü" {
		t.Errorf("reason %q, %v", s, ok)
	}
	if n, ok := got.Int("n"); !ok || n != -5 {
		t.Errorf("n %d, %v", n, ok)
	}
	if !got.Bool("yes") || got.Bool("no") || got.Bool("absent") || got.Bool("n") {
		t.Error("booleans")
	}
	if _, ok := got.Text("n"); ok {
		t.Error("a number read as text")
	}
	if _, ok := got.Int("reason"); ok {
		t.Error("text read as a number")
	}
	if _, ok := got.Text("absent"); ok {
		t.Error("an absent text")
	}
	if _, ok := got.Int("absent"); ok {
		t.Error("an absent number")
	}
}

// A tool's words must never keep its outcome off the record.
func TestBrokenTextIsRecorded(t *testing.T) {
	e, err := ParseEntry(mustEntry(t, Event{PauseSet, "all", raj, []Field{String("reason", "a\xff\xfeb"), Strings("list", []string{"\xc0"})}}))
	if err != nil {
		t.Fatal(err)
	}
	if s, _ := e.Text("reason"); !strings.HasPrefix(s, "a\uFFFD") || !strings.HasSuffix(s, "b") {
		t.Errorf("%q", s)
	}
}

func TestEntryRefuses(t *testing.T) {
	good := Event{PauseSet, "all", raj, nil}
	with := func(change func(*Event)) Event {
		e := good
		change(&e)
		return e
	}
	for name, e := range map[string]Event{
		"the zero value":          {},
		"no actor":                with(func(e *Event) { e.Actor = Actor{} }),
		"a nameless human":        with(func(e *Event) { e.Actor.ID = "" }),
		"an unknown kind":         with(func(e *Event) { e.Kind = "pause.sett" }),
		"no request":              with(func(e *Event) { e.Kind, e.Subject = RequestAsked, "" }),
		"a broken subject":        with(func(e *Event) { e.Subject = "\xff" }),
		"a broken actor":          with(func(e *Event) { e.Actor.ID = "\xff" }),
		"a broken credential":     with(func(e *Event) { e.Actor.Via = "\xff" }),
		"a field twice":           with(func(e *Event) { e.Data = []Field{Int("a", 1), Int("a", 2)} }),
		"a field without a name":  with(func(e *Event) { e.Data = []Field{Int("", 1)} }),
		"a field with a fancy":    with(func(e *Event) { e.Data = []Field{Int("ſ", 1)} }),
		"a float":                 with(func(e *Event) { e.Data = []Field{{"a", 1.5}} }),
		"nothing":                 with(func(e *Event) { e.Data = []Field{{"a", nil}} }),
		"a large integer":         with(func(e *Event) { e.Data = []Field{Int("a", 1<<53)} }),
		"a small integer":         with(func(e *Event) { e.Data = []Field{Int("a", math.MinInt64)} }),
		"AUD-06 raw spaces":       with(func(e *Event) { e.Data = []Field{{"a", Raw(`{"a": 1}`)}} }),
		"AUD-06 raw injection":    with(func(e *Event) { e.Data = []Field{{"a", Raw(`1,"b":2`)}} }),
		"raw nothing":             with(func(e *Event) { e.Data = []Field{{"a", Raw(nil)}} }),
		"AUD-10 no commitment":    with(func(e *Event) { e.Data = []Field{String(FieldCall, Commit(nil, [32]byte{}))} }),
		"AUD-10 no digest either": with(func(e *Event) { e.Data = []Field{String(FieldDigest, Commit([]byte("short"), [32]byte{}))} }),
		"too much":                with(func(e *Event) { e.Data = []Field{String("a", strings.Repeat("x", MaxEntry))} }),
	} {
		if line, err := e.Entry(0, aTime); !errors.Is(err, ErrEvent) || line != nil {
			t.Errorf("%s: %v, %s", name, err, line)
		}
	}
	for _, seq := range []int64{-1, MaxSize + 1} {
		if _, err := good.Entry(seq, aTime); !errors.Is(err, ErrEvent) {
			t.Errorf("number %d: %v", seq, err)
		}
	}
	for _, at := range []time.Time{{}, aTime.AddDate(9000, 0, 0), aTime.AddDate(-3000, 0, 0)} {
		if _, err := good.Entry(0, at); !errors.Is(err, ErrEvent) {
			t.Errorf("time %v: %v", at, err)
		}
	}
}

func TestZeroEvent(t *testing.T) {
	if !(Event{}).IsZero() || (Event{Kind: PauseSet}).IsZero() || (Event{Data: []Field{Int("a", 1)}}).IsZero() || (Event{Actor: ana}).IsZero() {
		t.Error("IsZero")
	}
}

// AUD-06: nothing but the one spelling of an entry is an entry.
func TestAUD06ParseEntryRefusesEveryOtherSpelling(t *testing.T) {
	good := string(mustEntry(t, Event{PauseSet, "all", raj, []Field{String("reason", "why"), Int("n", 1)}}))
	if _, err := ParseEntry([]byte(good)); err != nil {
		t.Fatal(err)
	}
	swap := func(from, to string) string {
		t.Helper()
		if !strings.Contains(good, from) {
			t.Fatalf("no %s in %s", from, good)
		}
		return strings.Replace(good, from, to, 1)
	}
	for name, line := range map[string]string{
		"empty":                  "",
		"a newline behind":       good + "\n",
		"a space before":         " " + good,
		"a space inside":         swap(`"v":1`, `"v": 1`),
		"another order":          swap(`"n":1,"reason":"why"`, `"reason":"why","n":1`),
		"a needless escape":      swap("why", `\u0077hy`),
		"an upper-case escape":   swap("why", `\u001B`),
		"a number otherwise":     swap(`"n":1`, `"n":1.0`),
		"a member twice":         swap(`"n":1`, `"n":1,"n":1`),
		"a member more":          swap(`"v":1`, `"v":1,"w":1`),
		"a member more at first": swap(`{"actor"`, `{"aaa":1,"actor"`),
		"an actor's member more": swap(`"via":"passkey"`, `"via":"passkey","vib":""`),
		"a member less":          swap(`"subject":"all",`, ``),
		"data that is a list":    swap(`{"n":1,"reason":"why"}`, `[]`),
		"data that is null":      swap(`{"n":1,"reason":"why"}`, `null`),
		"an actor of text":       swap(`{"id":"user:raj","kind":"human","via":"passkey"}`, `"user:raj"`),
		"a number for text":      swap(`"subject":"all"`, `"subject":1`),
		"text for a number":      swap(`"seq":7`, `"seq":"7"`),
		"a fraction":             swap(`"seq":7`, `"seq":7.5`),
		"a negative number":      swap(`"seq":7`, `"seq":-7`),
		"a large number":         swap(`"seq":7`, `"seq":9007199254740993`),
		"another version":        swap(`"v":1`, `"v":2`),
		"another zone":           swap(`08:00:04.5Z`, `09:00:04.5+01:00`),
		"a longer time":          swap(`04.5Z`, `04.50Z`),
		"no time":                swap(`2026-11-20T08:00:04.5Z`, `today`),
		"the year 0":             swap(`2026-`, `0000-`),
		"an unknown actor":       swap(`"kind":"human"`, `"kind":"robot"`),
		"no actor":               swap(`"id":"user:raj"`, `"id":""`),
		"a fancy kind":           swap(`pause.set`, `pause.Set`),
		"a kind of one word":     swap(`pause.set`, `pause`),
		"a fancy field":          swap(`"reason"`, `"Reason"`),
		"bad UTF-8":              swap("why", "\xff"),
		"a lone surrogate":       swap("why", `\ud800`),
		"two lines":              good + "\n" + good,
	} {
		if e, err := ParseEntry([]byte(line)); !errors.Is(err, ErrEntry) {
			t.Errorf("%s: %v, %+v", name, err, e)
		}
	}
	// What an agent or a person types cannot become another entry.
	for _, s := range []string{"\n", "\r\n", "\x1b[2K", `","kind":"request.decided`, "=HYPERLINK(1)", "\u2028", "\x00", `\`, `\"`} {
		line := mustEntry(t, Event{PauseSet, "all", raj, []Field{String("reason", s)}})
		e, err := ParseEntry(line)
		got, _ := e.Text("reason")
		if err != nil || got != s || bytes.ContainsAny(line, "\n\r\x1b\x00") {
			t.Errorf("%q became %q in %s: %v", s, got, line, err)
		}
	}
}

// The list of kinds misses none, each has a comment, and none is a name twice.
func TestKindsListsAll(t *testing.T) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "kind.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var declared []Kind
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			if id, ok := v.Type.(*ast.Ident); !ok || id.Name != "Kind" {
				continue
			}
			if !strings.HasPrefix(v.Doc.Text(), v.Names[0].Name+" ") {
				t.Errorf("%s has no comment", v.Names[0].Name)
			}
			declared = append(declared, Kind(strings.Trim(v.Values[0].(*ast.BasicLit).Value, `"`)))
		}
	}
	listed := Kinds()
	seen := make(map[Kind]bool)
	for i, k := range declared {
		if i >= len(listed) || listed[i] != k || !k.Known() || !k.wellFormed() || seen[k] {
			t.Errorf("%s is declared, and not in the list at its place", k)
		}
		seen[k] = true
	}
	if len(declared) != len(listed) || len(declared) < 30 {
		t.Errorf("%d declared, %d listed", len(declared), len(listed))
	}
	if listed[0] = "x"; Kinds()[0] == "x" {
		t.Error("the list can be written")
	}
}

// AUD-10: who has the record, and guesses, learns nothing; AUD-09: who has the
// salt can check, and after the erasure nobody can.
func TestAUD10CommitmentsCannotBeGuessed(t *testing.T) {
	pin := [32]byte{1, 2, 3, 4}
	c := Commit(testSalt, pin)
	if c == Commit([]byte("another 16 bytes"), pin) || c == Commit(testSalt, [32]byte{1}) || c != Commit(testSalt, pin) {
		t.Error("a commitment must depend on salt and value, and on nothing else")
	}
	if !Opens(c, testSalt, pin) || Opens(c, testSalt, [32]byte{}) || Opens(c, []byte("another 16 bytes"), pin) {
		t.Error("opening")
	}
	for _, short := range [][]byte{nil, testSalt[:MinSalt-1]} {
		if Commit(short, pin) != "" || Opens("", short, pin) {
			t.Errorf("a commitment under a salt of %d bytes", len(short))
		}
	}
}

// AUD-09: the record verifies without any payload or salt: it never had them.
func TestAUD09ErasureLeavesTheRecordWhole(t *testing.T) {
	l := new(testLog).add(t, asked(), decided(raj, Approve), claimed(), finished())
	testSaltOfAnother := []byte("fedcba9876543210")
	export := l.export(t, l.sign(t, 4))
	if bytes.Contains(export, testSalt) || bytes.Contains(export, testSaltOfAnother) {
		t.Error("the salt is in the record")
	}
	if r, err := verify(t, export, VerifyOptions{Keys: []string{testKey.PublicKey()}}); err != nil {
		t.Errorf("%v\n%s", err, findings(r))
	}
}
