package strictjson_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ayegate/ayegate/internal/strictjson"
)

// canon returns the canonical form of a document that must be valid.
func canon(t interface {
	Helper()
	Fatalf(string, ...any)
}, doc string,
) string {
	t.Helper()
	form, err := strictjson.Canonical(nil, []byte(doc), strictjson.Limits{})
	if err != nil {
		t.Fatalf("%.200s: %v", doc, err)
	}
	return string(form)
}

// names are those that the random documents draw from: prefixes of each other, either side of every border of the sort order.
var names = []string{
	"", "a", "aa", "ab", "b", "A", "1", "10", "9", "\r", "\n", " ", "!", "\"", "\\", "/", "\u0080", "é", "€", "\ud7ff", "\ue000", "\ufb33", "\uffff", "𐀀", "😀", "\U0010ffff",
	"common prefix", "common prefix\ue000", "common prefix😀", "12345678", "1234567", "1234567é", "1234567\uffff", "1234567😀", "__proto__",
}

// document draws a random document as a tree.
func document(t *rapid.T, depth int) any {
	kind := rapid.IntRange(0, 6).Draw(t, "kind")
	if depth == 0 {
		kind = min(kind, 4)
	}
	switch kind {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(t, "bool")
	case 2, 3:
		return strictjson.Number(number(t))
	case 4:
		return rapid.OneOf(rapid.SampledFrom(names), rapid.String()).Draw(t, "text")
	case 5:
		array := []any{}
		for range rapid.IntRange(0, 5).Draw(t, "elements") {
			array = append(array, document(t, depth-1))
		}
		return array
	default:
		object := map[string]any{}
		for _, name := range rapid.SliceOfN(rapid.SampledFrom(names), 0, 16).Draw(t, "names") {
			object[name] = document(t, depth-1)
		}
		return object
	}
}

// number draws a number within range, in any spelling.
func number(t *rapid.T) string {
	n := rapid.SampledFrom([]string{"", "-"}).Draw(t, "sign") + rapid.StringMatching(`0|[1-9][0-9]{0,24}`).Draw(t, "whole")
	if rapid.Bool().Draw(t, "has fraction") {
		n += "." + rapid.StringMatching(`[0-9]{1,24}|0{0,9}[0-9]0{0,9}`).Draw(t, "fraction")
	}
	if rapid.Bool().Draw(t, "has exponent") {
		n += fmt.Sprintf("%s%0*d", rapid.SampledFrom([]string{"e", "E"}).Draw(t, "e"), rapid.IntRange(1, 6).Draw(t, "width"), rapid.IntRange(-60, 60).Draw(t, "exponent"))
	}
	return n
}

// spell writes a tree as JSON in one of the many ways there are.
func spell(t *rapid.T, v any) string {
	space := func() string { return rapid.SampledFrom([]string{"", "", "", " ", "\n", "\r\n\t "}).Draw(t, "space") }
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(v)
	case strictjson.Number:
		return string(v)
	case string:
		return spellText(t, v)
	case []any:
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = space() + spell(t, e) + space()
		}
		return "[" + strings.Join(parts, ",") + space() + "]"
	case map[string]any:
		var parts []string
		for name, e := range v {
			parts = append(parts, space()+spellText(t, name)+space()+":"+space()+spell(t, e)+space())
		}
		if len(parts) > 1 {
			parts = rapid.Permutation(parts).Draw(t, "order")
		}
		return "{" + strings.Join(parts, ",") + space() + "}"
	}
	panic(fmt.Sprintf("no JSON for %T", v))
}

func spellText(t *rapid.T, s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r < 0x20 || r == '"' || r == '\\' || rapid.IntRange(0, 3).Draw(t, "escape") == 0:
			if r > 0xffff {
				r -= 0x10000
				fmt.Fprintf(&b, `\u%04x\u%04X`, 0xd800+r>>10, 0xdc00+r&0x3ff)
			} else {
				fmt.Fprintf(&b, `\u%04x`, r)
			}
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// However a document is spelled, its canonical form is the same, is valid, means the same, and is its own canonical form.
func TestCanonicalIsOneForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree := document(t, 4)
		one, two := spell(t, tree), spell(t, tree)
		form := canon(t, one)
		if other := canon(t, two); other != form {
			t.Fatalf("%s and %s have forms\n%s\n%s", one, two, form, other)
		}
		if again := canon(t, form); again != form {
			t.Fatalf("the form of %s is %s", form, again)
		}
		if !json.Valid([]byte(form)) {
			t.Fatalf("not JSON: %s", form)
		}
		var a, b any
		if json.Unmarshal([]byte(one), &a) != nil || json.Unmarshal([]byte(form), &b) != nil {
			t.Fatalf("%s or %s cannot be read elsewhere", one, form)
		}
		ja, _ := json.Marshal(a)
		jb, _ := json.Marshal(b)
		if !bytes.Equal(ja, jb) && !strings.Contains(one, "-0") { // encoding/json tells -0 from 0
			t.Fatalf("%s became %s", ja, jb)
		}
	})
}

// CAN-05, CAN-06: the form of a number has its value, and two numbers have one form exactly if they are equal. math/big is the judge.
func TestNumbersAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := number(t)
		b := number(t)
		if rapid.Bool().Draw(t, "near") { // the same digits, or all but one
			digits, _, _ := strings.Cut(strings.ToLower(a), "e")
			b = strings.Replace(digits, rapid.StringMatching("[0-9]").Draw(t, "old"), rapid.StringMatching("[1-9]").Draw(t, "new"), 1) + a[len(digits):]
		}
		x, okX := new(big.Rat).SetString(a)
		y, okY := new(big.Rat).SetString(b)
		if !okX || !okY {
			t.Fatalf("%s or %s is no number", a, b)
		}
		formA, formB := canon(t, a), canon(t, b)
		if v, ok := new(big.Rat).SetString(formA); !ok || v.Cmp(x) != 0 {
			t.Fatalf("%s became %s", a, formA)
		}
		if (formA == formB) != (x.Cmp(y) == 0) {
			t.Fatalf("%s has form %s, %s has form %s", a, formA, b, formB)
		}
	})
}

// For every double, the form of its shortest digits is the one of RFC 8785; encoding/json, which follows ECMAScript but for the width
// of the exponent, is the judge.
func TestDoublesAreRFC8785(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.OneOf(rapid.Float64(), rapid.Map(rapid.Uint64(), math.Float64frombits)).Draw(t, "double")
		if math.IsInf(f, 0) || math.IsNaN(f) || f == 0 {
			t.Skip("not a JSON number, or zero")
		}
		want, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, spelled := range []string{string(want), strconv.FormatFloat(f, 'e', -1, 64), strconv.FormatFloat(f, 'f', -1, 64)} {
			if got := canon(t, spelled); got != string(want) {
				t.Fatalf("%s: %s, want %s", spelled, got, want)
			}
		}
	})
}

// CAN-05: the classic collision.
func TestBigIntegersDiffer(t *testing.T) {
	if a, b := canon(t, `{"amount":9007199254740992}`), canon(t, `{"amount":9007199254740993}`); a == b {
		t.Fatalf("both are %s", a)
	}
}

func TestCanonicalAppends(t *testing.T) {
	dst := []byte("before")
	got, err := strictjson.Canonical(dst, []byte(`{"b":1, "a":2}`), strictjson.Limits{})
	if err != nil || string(got) != `before{"a":2,"b":1}` {
		t.Errorf("got %s, %v", got, err)
	}
	if got, err := strictjson.Canonical(dst, []byte(`[1]`), strictjson.Limits{Bytes: 3}); err != nil {
		t.Errorf("what was before counts against the limit: %s, %v", got, err)
	}
	got, err = strictjson.Canonical(dst, []byte(`{"a":[1,2,}`), strictjson.Limits{})
	if err == nil || string(got) != "before" {
		t.Errorf("after an error dst is %q, %v", got, err)
	}
}

// Lax is for results that are handed on; a hash never covers what was not checked.
// IsCanonical says of a document what Canonical says, one document after the other.
func TestIsCanonical(t *testing.T) {
	for doc, want := range map[string]bool{
		`{"a":1,"b":[true,"x"]}`: true, `{"b":1,"a":2}`: false, `{"a": 1}`: false, `{"a":1.0}`: false, `"\u0061"`: false, `{}`: true, `{"a":{"c":1,"b":2}}`: false,
	} {
		if got, err := strictjson.IsCanonical([]byte(doc), strictjson.Limits{}); got != want || err != nil {
			t.Errorf("%s: %v, %v", doc, got, err)
		}
	}
	for doc, want := range map[string]strictjson.Code{`{"a":1,"a":1}`: strictjson.DuplicateKey, `{}{}`: strictjson.TrailingData, `[`: strictjson.Syntax} {
		if got, err := strictjson.IsCanonical([]byte(doc), strictjson.Limits{}); got || !errors.Is(err, want) {
			t.Errorf("%s: %v, %v", doc, got, err)
		}
	}
}

// A scanner that has read one document reads the next as if it were its first, also after a fault and after a large one.
func TestOneDocumentAfterAnother(t *testing.T) {
	large := []byte("{")
	for i := range 2000 {
		large = fmt.Appendf(large, `"k%d":%d,`, 2000-i, i)
	}
	large = append(large, `"z":0}`...)
	docs := [][]byte{[]byte(`{"b":{"d":1,"c":2},"a":"\u0062"}`), []byte(`{"a":1,"b":{"c":`), []byte(`{"\u0061":1,"a":2}`), large, []byte(`[]`)}
	fresh := make([]string, len(docs))
	for round := range 3 {
		for i, doc := range docs {
			form, err := strictjson.Canonical(nil, doc, strictjson.Limits{})
			got := fmt.Sprintf("%s %v %v", form, err, strictjson.Check(doc, strictjson.Limits{}))
			if round == 0 {
				fresh[i] = got
			} else if got != fresh[i] {
				t.Errorf("%.40s: %s, before it was %s", doc, got, fresh[i])
			}
		}
	}
}

func TestCanonicalIsNeverLax(t *testing.T) {
	for _, doc := range []string{`{"a":{"b":1,"b":2}}`, `["\ud800"]`, `[1e400]`} {
		if _, err := strictjson.Canonical(nil, []byte(doc), strictjson.Limits{Lax: true}); err == nil {
			t.Errorf("%s accepted", doc)
		}
		if _, err := strictjson.Tree([]byte(doc), strictjson.Limits{Lax: true}); err == nil {
			t.Errorf("%s accepted by Tree", doc)
		}
		var into any
		if err := strictjson.Decode([]byte(doc), strictjson.Limits{Lax: true}, &into); err == nil {
			t.Errorf("%s accepted by Decode", doc)
		}
	}
}

// CAN-09, CAN-10, CAN-11: a bomb is refused where it passes a limit, and costs next to nothing.
func TestBombs(t *testing.T) {
	var keys []byte
	for i := range 1_000_000 {
		keys = append(strconv.AppendInt(append(keys, `,"`...), int64(i), 10), `":0`...)
	}
	const all = 1 << 30
	for _, c := range []struct {
		name  string
		doc   []byte
		lim   strictjson.Limits
		code  strictjson.Code
		least int // the fault is found here at the latest
	}{
		{"CAN-09 100,000 arrays", bytes.Repeat([]byte("["), 100_000), strictjson.Limits{}, strictjson.TooDeep, 64},
		{"CAN-09 10,000 objects", bytes.Repeat([]byte(`{"a":`), 10_000), strictjson.Limits{}, strictjson.TooDeep, 64 * 5},
		{"CAN-09 laxly", append([]byte(`{"result":`), bytes.Repeat([]byte("["), 100_000)...), strictjson.Limits{Lax: true}, strictjson.TooDeep, 80},
		{"CAN-10 size", make([]byte, 100<<20), strictjson.Limits{}, strictjson.TooLarge, 1 << 20},
		{"CAN-11 1e6 members", append(append([]byte{'{'}, keys[1:]...), '}'), strictjson.Limits{Bytes: all}, strictjson.TooManyValues, 1_200_000},
		{"CAN-11 1e6 elements", []byte("[0" + strings.Repeat(",0", 999_999) + "]"), strictjson.Limits{Bytes: all}, strictjson.TooManyValues, 200_000},
		{"CAN-18 5 MB in one argument", []byte(`{"data":"` + strings.Repeat("QUJD", 5<<18) + `"}`), strictjson.Limits{}, strictjson.TooLarge, 1 << 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := strictjson.Check(c.doc, c.lim)
			var fault *strictjson.Error
			if !errors.As(err, &fault) || fault.Code != c.code || fault.Offset > c.least {
				t.Errorf("got %v, want %s before byte %d", err, c.code, c.least)
			}
		})
	}
}

// Sixteen times the document costs about sixteen times as long, however hostile it is. A quadratic reader takes 256 times as long.
func TestLinearTime(t *testing.T) {
	if testing.Short() {
		t.Skip("measures time; run without -short")
	}
	for name, build := range map[string]func(n int) string{
		"one letter":         func(n int) string { return `"` + strings.Repeat("a", n) + `"` },
		"escapes":            func(n int) string { return `"` + strings.Repeat(`\"`, n/2) + `"` },
		"backslashes":        func(n int) string { return `"` + strings.Repeat(`\\`, n/2) + `"` },
		"unfinished string":  func(n int) string { return `{"a":"` + strings.Repeat(`\\`, n/2) },
		"digits":             func(n int) string { return strings.Repeat("9", n) },
		"zeros":              func(n int) string { return "0." + strings.Repeat("0", n) + "1e" + strconv.Itoa(n) },
		"exponent":           func(n int) string { return "1e-" + strings.Repeat("0", n) + "1" },
		"space":              func(n int) string { return strings.Repeat(" ", n) + "1" },
		"small elements":     func(n int) string { return "[0" + strings.Repeat(",0", n/2) + "]" },
		"empty objects":      func(n int) string { return "[{}" + strings.Repeat(",{}", n/3) + "]" },
		"duplicate at end":   func(n int) string { return members(n, `,"m00000000":0}`) },
		"descending members": func(n int) string { return members(n, "}") },
		"escaped names":      func(n int) string { return strings.ReplaceAll(members(n, "}"), `"m`, `"\u006d`) },
		"deep and unordered": func(n int) string {
			return strings.Repeat(`{"b":0,"a":`, 60) + `"` + strings.Repeat("a", n) + `"` + strings.Repeat("}", 60)
		},
	} {
		t.Run(name, func(t *testing.T) {
			const size = 4 << 10
			lim := strictjson.Limits{Bytes: 1 << 30, Nodes: 1 << 30}
			small, large := []byte(build(size)), []byte(build(16*size))
			a, b := cost(small, lim), cost(large, lim)
			if b > 64*a && b > 100*time.Millisecond {
				t.Errorf("%d KB took %v, %d KB %v", len(small)>>10, a, len(large)>>10, b)
			}
		})
	}
}

func members(n int, end string) string {
	var b strings.Builder
	for i := n / 14; i >= 0; i-- {
		fmt.Fprintf(&b, `,"m%08d":0`, i)
	}
	return "{" + b.String()[1:] + end
}

// cost is the shortest of some runs: a machine that does other things makes some
// of them long, hardly all.
func cost(doc []byte, lim strictjson.Limits) time.Duration {
	least := time.Hour
	for range 8 {
		start := time.Now()
		_, _ = strictjson.Canonical(nil, doc, lim)
		_ = strictjson.Check(doc, lim)
		strictjson.Get(doc, "a", "b")
		strictjson.Compact(nil, doc)
		least = min(least, time.Since(start))
	}
	return least
}

func TestAppendString(t *testing.T) {
	for in, want := range map[string]string{
		"":                          `""`,
		"plain é 😀 \u2028 <&>/\x7f": "\"plain é 😀 \u2028 <&>/\x7f\"",
		"\"\\\b\f\n\r\t\x00\x1f":    `"\"\\\b\f\n\r\t\u0000\u001f"`,
		"a\xffb":                    "\"a\ufffdb\"",
	} {
		if got := string(strictjson.AppendString([]byte("x"), in)); got != "x"+want {
			t.Errorf("%q: %s, want x%s", in, got, want)
		}
	}
}
