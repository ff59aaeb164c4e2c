package page

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/net/html"
	"pgregory.net/rapid"

	"github.com/ayegate/ayegate/api"
	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/policy"
	"github.com/ayegate/ayegate/internal/strictjson"
)

// draw renders the page of a call, and of what is sent beside it, and parses it as
// a browser would.
func draw(t rapid.TB, c call.Call, extra []byte) *html.Node {
	var b bytes.Buffer
	p := NewRequest(Frame{Title: "x", Person: "Ana"}, api.Request{RiskTier: "R3", Status: api.StatusPending}, Of(c, extra), May{})
	if err := RequestPage(p).Render(context.Background(), &b); err != nil {
		t.Fatal(err)
	}
	doc, err := html.Parse(&b)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// TestExactCallCanBeReadBack is the exactness property (DISP-01, DISP-03, DISP-05,
// WEB-04): whatever an agent wrote, the bytes that will run can be read back from
// the page, from the raw form and from the laid out one, and nothing that a
// person could miss is in the text of either.
func TestExactCallCanBeReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, extra := anyCall(t), anyExtra(t)
		doc := draw(t, c, extra)
		raw := one(t, doc, "code", "canonical")
		if got := readBack(t, raw); got != string(c.Canonical()) {
			t.Fatalf("raw form reads\n%q, the call is\n%q", got, c.Canonical())
		}
		laidOut := one(t, doc, "div", "exact")
		args, err := strictjson.Canonical(nil, []byte(readValue(t, children(laidOut)[0])), strictjson.Limits{})
		if err != nil || !bytes.Equal(args, c.Args()) {
			t.Fatalf("laid out form reads\n%s (%v), the arguments are\n%s", args, err, c.Args())
		}
		if extra == nil {
			return
		}
		if got := readBack(t, one(t, doc, "code", "extras")); got != string(extra) {
			t.Fatalf("raw form reads\n%q, beside the call is sent\n%q", got, extra)
		}
		read := readValue(t, children(one(t, doc, "div", "beside"))[0])
		if got, err := strictjson.Canonical(nil, []byte(read), strictjson.Limits{}); err != nil || !bytes.Equal(got, extra) {
			t.Fatalf("laid out form reads\n%s (%v), beside the call is sent\n%s", got, err, extra)
		}
	})
}

// hostile are characters that pages get wrong.
var hostile = []rune{
	0, 7, 8, '\t', '\n', '\r', 0x1b, ' ', ' ', ' ', '"', '\'', '&', '<', '>', '\\', '/', 0x7f, 0x85, 0xa0, 0xad, 0x34f, 0x61c, 0x115f, 0x17b4,
	0x180e, 0x2003, 0x200b, 0x200d, 0x200e, 0x2028, 0x2029, 0x202e, 0x2066, 0x2069, 0x2800, 0x3000, 0x3164, 0xd7a4, 0xe000, 0xfe0f, 0xfeff,
	0xffa0, 0xfffd, 0xfffe, 0x1d173, 0xe0041, 0xe0100, 0x10ffff, 'a', 'Z', '·', '⏎', '⇥', '×', 'ß', 'а', '日', '🙂',
}

var words = []string{
	"U+202E", "U+200B ×3", "space ×9", "⏎ ×40", "···", "</code></div><script>alert(1)</script>", "<br>", "<span class=\"chip\">U+0000</span>",
	"&lt;&amp;#x202e;", "\r\n", strings.Repeat("\n", 500), strings.Repeat(" ", 300), "{{template}}", "[Approve](https://evil)", "<!--", "]]>",
}

func anyText(t *rapid.T) string {
	parts := rapid.SliceOfN(rapid.OneOf(
		rapid.StringOfN(rapid.RuneFrom(hostile), 0, 12, -1), rapid.SampledFrom(words), rapid.String(),
	), 0, 4).Draw(t, "text")
	return strings.ToValidUTF8(strings.Join(parts, ""), "")
}

func anyValue(t *rapid.T, depth int) any {
	kinds := 5
	if depth > 0 {
		kinds = 7
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0, 1:
		return anyText(t)
	case 2:
		return json.Number(rapid.SampledFrom([]string{"0", "-1", "9007199254740993", "1e-7", "1E400000"[:3], "0.1", "123456789012345678901234567890"}).Draw(t, "number"))
	case 3:
		return rapid.Bool().Draw(t, "bool")
	case 4:
		return nil
	case 5:
		out := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "elements") {
			out = append(out, anyValue(t, depth-1))
		}
		return out
	}
	return anyObject(t, depth-1)
}

func anyObject(t *rapid.T, depth int) map[string]any {
	out := map[string]any{}
	for range rapid.IntRange(0, 4).Draw(t, "members") {
		name := strings.ReplaceAll(anyText(t), "\x00", "")
		out[name] = anyValue(t, depth)
	}
	return out
}

// anyExtra is what could be sent beside a call, often nothing.
func anyExtra(t *rapid.T) []byte {
	o := anyObject(t, 3)
	if len(o) == 0 {
		return nil
	}
	doc, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	canon, err := strictjson.Canonical(nil, doc, strictjson.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return canon
}

func anyCall(t *rapid.T) call.Call {
	args, err := json.Marshal(anyObject(t, 3))
	if err != nil {
		t.Fatal(err)
	}
	c, err := call.New("shell", "run", args)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// one finds the element with a class.
func one(t rapid.TB, n *html.Node, tag, class string) *html.Node {
	var found []*html.Node
	for e := range n.Descendants() {
		if e.Type == html.ElementNode && e.Data == tag && has(e, class) {
			found = append(found, e)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d elements %s.%s, want 1", len(found), tag, class)
	}
	return found[0]
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func has(n *html.Node, class string) bool {
	for _, c := range strings.Fields(attr(n, "class")) {
		if c == class {
			return true
		}
	}
	return false
}

func children(n *html.Node) []*html.Node {
	var out []*html.Node
	for c := range n.ChildNodes() {
		if c.Type == html.ElementNode {
			out = append(out, c)
		}
	}
	return out
}

var counted = regexp.MustCompile(`^(U\+[0-9A-F]{4,6}|space|⇥|⏎)(?: ×(\d+))?$`)

// readBack reads a text from what is seen of it: plain text, and marks by their
// own label. No attribute helps.
func readBack(t rapid.TB, n *html.Node) string {
	var b strings.Builder
	for c := range n.ChildNodes() {
		if c.Type == html.TextNode {
			for _, r := range c.Data {
				if r != ' ' && r != '\n' && (policy.IsHidden(r) || unicode.IsControl(r)) {
					t.Fatalf("U+%04X is in the text of the page", r)
				}
			}
			b.WriteString(c.Data)
			continue
		}
		if c.Data == "br" {
			continue
		}
		if c.Data != "span" || !has(c, "chip") && !has(c, "ws") || c.FirstChild == nil || c.FirstChild != c.LastChild {
			t.Fatalf("an element %q in a text", c.Data)
		}
		b.WriteString(markText(t, c.FirstChild.Data))
	}
	return b.String()
}

func markText(t rapid.TB, label string) string {
	if strings.Trim(label, "·") == "" {
		return strings.Repeat(" ", strings.Count(label, "·"))
	}
	if strings.Trim(label, "⇥") == "" {
		return strings.Repeat("\t", strings.Count(label, "⇥"))
	}
	m := counted.FindStringSubmatch(label)
	if m == nil {
		t.Fatalf("a mark %q", label)
	}
	n := 1
	if m[2] != "" {
		n, _ = strconv.Atoi(m[2])
	}
	unit := map[string]string{"space": " ", "⇥": "\t", "⏎": "\n"}[m[1]]
	if unit == "" {
		r, _ := strconv.ParseInt(m[1][2:], 16, 32)
		unit = string(rune(r))
	}
	return strings.Repeat(unit, n)
}

// readValue writes JSON from the laid out form.
func readValue(t rapid.TB, n *html.Node) string {
	switch {
	case n.Data == "span" && attr(n, "data-type") == "object":
		return "{}"
	case n.Data == "span" && attr(n, "data-type") == "array":
		return "[]"
	case n.Data == "code" && has(n, "text"):
		return string(strictjson.AppendString(nil, readBack(t, n)))
	case n.Data == "code" && has(n, "literal"):
		return readBack(t, n)
	case n.Data == "dl":
		var parts []string
		for _, div := range children(n) {
			pair := children(div)
			name := readBack(t, children(pair[0])[0])
			parts = append(parts, string(strictjson.AppendString(nil, name))+":"+readValue(t, children(pair[1])[0]))
		}
		return "{" + strings.Join(parts, ",") + "}"
	case n.Data == "ol":
		var parts []string
		for _, li := range children(n) {
			parts = append(parts, readValue(t, children(li)[0]))
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	t.Fatalf("an element %q where a value should be", n.Data)
	return ""
}

func TestPiecesComeTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if s := anyText(t); Text(Pieces(s)) != s {
			t.Fatalf("%q became %q", s, Text(Pieces(s)))
		}
	})
}

// DISP-03: nothing can be pushed out of sight by padding.
func TestPaddingIsCounted(t *testing.T) {
	c := mustCall(t, `{"a":"`+strings.Repeat(`\n`, 500)+strings.Repeat(" ", 10_000)+`rm -rf /"}`)
	var b bytes.Buffer
	if err := Code("x", Of(c, nil).Args.Members[0].Value.Text).Render(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	if s := b.String(); !strings.Contains(s, "⏎ ×500") || !strings.Contains(s, "space ×10000") || strings.Count(s, "<br>") != 1 {
		t.Fatal(s)
	}
	if x := Of(c, nil); x.Lines != 501 {
		t.Fatalf("%d lines", x.Lines)
	}
}

// DISP-01, DISP-02: each of these is drawn as a mark, and counted.
func TestHiddenCharactersAreMarkedAndCounted(t *testing.T) {
	for _, r := range []rune{0x202e, 0x2066, 0x2069, 0x200b, 0xfeff, 0xad, 0xe0041, 0xe0100, 0x1d173, 0x3164, 0x2028, 0x1b, 0x7, '\r', 0xa0, 0x2003} {
		args, _ := json.Marshal(map[string]string{"k" + string(r): "a" + string(r) + "b"})
		c := mustCall(t, string(args))
		if Hidden(c, nil) != 2 {
			t.Errorf("U+%04X: %d hidden characters counted, want 2", r, Hidden(c, nil))
		}
		for _, s := range []string{Summary(c, false), func() string { p, _ := Preview(c); return Text(p) }()} {
			if policy.HasHidden(s) {
				t.Errorf("U+%04X is in %q", r, s)
			}
		}
	}
}

// DISP-04, DISP-06: the summary is made of the call alone, and what looks like
// something else is said to.
func TestLookAlikesAreNamed(t *testing.T) {
	c := mustCall(t, `{"url":"https://аpple.com/x","host":"xn--pple-43d.com","ok":"https://example.com"}`)
	var got []string
	for _, w := range Of(c, nil).Warnings {
		got = append(got, Text(w.Shown)+" = "+w.Means)
	}
	want := "xn--pple-43d = аpple|аpple = а U+0430 Cyrillic|аpple.com = xn--pple-43d.com"
	if s := strings.Join(got, "|"); s != want {
		t.Errorf("got  %s\nwant %s", s, want)
	}
}

// TOK-04, DISP-01: what is sent beside a call counts as much as the call.
func TestExtrasAreShownAndCounted(t *testing.T) {
	c := mustCall(t, `{"a":1}`)
	extra := []byte("{\"_meta\":{\"to\":\"pr\u202eod\",\"url\":\"https://\u0430pple.com\"},\"n\":[1,2]}")
	x, plain := Of(c, extra), Of(c, nil)
	if x.Hidden != 1 || x.Lines != plain.Lines+4 || x.Characters != plain.Characters+len([]rune(string(extra))) || len(x.Warnings) == 0 {
		t.Errorf("%d hidden, %d lines, %d characters, %d warnings", x.Hidden, x.Lines, x.Characters, len(x.Warnings))
	}
	if s := Summary(c, true); s != "Call run on shell with a 1, and more is sent beside the call." {
		t.Error(s)
	}
	page := func(extra []byte) string {
		var b bytes.Buffer
		if err := html.Render(&b, draw(t, c, extra)); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	for _, want := range []string{"Also sent, beside the call", "contains 1 character you cannot see", "shown whole, 5 lines,"} {
		if with, without := strings.Contains(page(extra), want), strings.Contains(page(nil), want); !with || without {
			t.Errorf("%q is there with extras: %v, without: %v", want, with, without)
		}
	}
	for extras, want := range map[string]bool{"": false, "{}": true} {
		var b bytes.Buffer
		p := Inbox{Mine: []Row{{R: api.Request{Extras: extras}}}, Recent: []Row{{R: api.Request{Extras: extras}}}}
		if err := InboxPage(p).Render(t.Context(), &b); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(b.String(), "more is sent beside the call"); (n == 2) != want || n == 1 {
			t.Errorf("extras %q: the inbox says so %d times", extras, n)
		}
	}
}

// DISP-05: no value can look like two, and no argument like part of another.
func TestSummaryCannotBeForged(t *testing.T) {
	for args, want := range map[string]string{
		`{"path":"a.txt\", dry_run \"true"}`: `Call run on shell with path "a.txt\", dry_run \"true".`,
		`{"path":"a.txt\\","x":1}`:           `Call run on shell with path "a.txt\\", x 1.`,
		`{"a":"1\n2","b":"1\\n2"}`:           `Call run on shell with a "1\n2", b "1\\n2".`,
		`{"a\", b \"":"x"}`:                  `Call run on shell with "a\", b \"" "x".`,
		`{"a,":1,"b":2}`:                     `Call run on shell with "a," 1, b 2.`,
		`{"a":{"x":"\", b \"1"}}`:            `Call run on shell with a {"x":"\", b \"1"}.`,
	} {
		c := mustCall(t, args)
		if got := Summary(c, false); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// DISP-01: letters that run from right to left do not reorder what they stand in.
func TestOrderOnTheScreenIsTheOrderOfTheBytes(t *testing.T) {
	css, err := os.ReadFile("style.css")
	if err != nil {
		t.Fatal(err)
	}
	rule := regexp.MustCompile(`(?m)^\s*([^{}\n]*)\{ unicode-bidi: bidi-override; direction: ltr; \}`).FindSubmatch(css)
	if rule == nil {
		t.Fatal("no rule overrides the direction of the exact call")
	}
	for _, block := range []string{".exact code", ".beside code", ".raw code", ".preview code"} {
		if !strings.Contains(string(rule[1]), block) {
			t.Errorf("%s may be reordered", block)
		}
	}
}

func TestSummarySaysWhatItLeavesOut(t *testing.T) {
	c := mustCall(t, `{"a":1,"b":"x y","c":[1,2],"d":null,"e":"`+strings.Repeat("z", 100)+`"}`)
	if got, want := Summary(c, false), `Call run on shell with a 1, b "x y", c [1,2] and 2 more arguments.`; got != want {
		t.Errorf("got %s", got)
	}
	if _, short := Preview(c); !short {
		t.Error("a shortened preview must say so")
	}
	if p, short := Preview(mustCall(t, `{"a":1}`)); short || Text(p) != "a 1" {
		t.Errorf("got %q, %v", Text(p), short)
	}
}

func mustCall(t *testing.T, args string) call.Call {
	t.Helper()
	c, err := call.New("shell", "run", []byte(args))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The words of every state say what ran, and none is left without any.
func TestEveryStateHasWords(t *testing.T) {
	for _, s := range []api.Status{
		api.StatusPending, api.StatusApproved, api.StatusExecuting, api.StatusExecuted, api.StatusFailed, api.StatusUnknown,
		api.StatusDenied, api.StatusExpired, api.StatusCancelled,
	} {
		r := api.Request{Status: s, Execution: &api.Execution{Outcome: api.Succeeded}}
		h := headOf(r, May{}, r.ExpiresAt)
		text := h.Title + " " + h.Detail
		if h.Title == "" || h.Tone == "" || strings.Contains(text, "does not know") {
			t.Errorf("%s: %+v", s, h)
		}
		for _, banned := range []string{"oops", "please", "sorry", "!"} {
			if strings.Contains(strings.ToLower(text), banned) {
				t.Errorf("%s says %q", s, text)
			}
		}
		over := s == api.StatusDenied || s == api.StatusExpired || s == api.StatusCancelled
		if over && !strings.Contains(text, "Nothing ran") {
			t.Errorf("%s does not say that nothing ran: %s", s, text)
		}
	}
}
