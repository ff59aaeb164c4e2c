package strictjson_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ayegate/ayegate/internal/strictjson"
)

func TestMembers(t *testing.T) {
	doc := []byte(` {"z" : [1, 2 ], "\u0061\n":"x\u0041", "n":-1.0e1,"o":{ "b":1 } , "":null} `)
	var got []string
	err := strictjson.Members(doc, strictjson.Limits{}, func(name string, value []byte) error {
		got = append(got, fmt.Sprintf("%q=%s", name, value))
		if cap(value) != len(value) {
			t.Errorf("%s: appending to the value would write into the document", name)
		}
		if at := bytes.Index(doc, value); &doc[at] != &value[0] {
			t.Errorf("%s: the value was copied", name)
		}
		return nil
	})
	want := []string{`"z"=[1, 2 ]`, `"a\n"="x\u0041"`, `"n"=-1.0e1`, `"o"={ "b":1 }`, `""=null`}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %s, %v", got, err)
	}
}

// Each sees what Members sees, of a part of the document too, and stops when the visitor says so.
func TestEach(t *testing.T) {
	doc := []byte(` {"o" : {"\u0061":[1, 2 ], "b":{"c":"}"}} , "n":null}`)
	if err := strictjson.Check(doc, strictjson.Limits{}); err != nil {
		t.Fatal(err)
	}
	part, _ := strictjson.Get(doc, "o")
	for _, d := range [][]byte{doc, part} {
		var want, got []string
		add := func(to *[]string) func(string, []byte) error {
			return func(name string, value []byte) error {
				*to = append(*to, fmt.Sprintf("%q=%s", name, value))
				return nil
			}
		}
		if err := errors.Join(strictjson.Members(d, strictjson.Limits{}, add(&want)), strictjson.Each(d, add(&got))); err != nil {
			t.Fatal(err)
		}
		if len(want) != 2 || !slices.Equal(got, want) {
			t.Errorf("%s: got %s, want %s", d, got, want)
		}
	}
	stop := errors.New("stop")
	if err := strictjson.Each(doc, func(string, []byte) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("the visitor's error became %v", err)
	}
	for _, d := range []string{``, ` `, `[{"a":1}]`, `"{"`, `1`} {
		if err := strictjson.Each([]byte(d), func(string, []byte) error { return stop }); err != nil {
			t.Errorf("%q has members", d)
		}
	}
}

func TestElements(t *testing.T) {
	var got []string
	err := strictjson.Elements([]byte(`[1, "a,b]" ,{"x":[]},[[ ]],null]`), strictjson.Limits{}, func(i int, value []byte) error {
		got = append(got, fmt.Sprintf("%d=%s", i, value))
		return nil
	})
	if want := []string{`0=1`, `1="a,b]"`, `2={"x":[]}`, `3=[[ ]]`, `4=null`}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %s, %v", got, err)
	}
}

// Nothing is visited before the whole document was checked, and the visitor's error ends the visit.
func TestVisits(t *testing.T) {
	visits := 0
	stop := errors.New("stop")
	member := func(string, []byte) error { visits++; return stop }
	element := func(int, []byte) error { visits++; return stop }
	for _, c := range []struct {
		doc  string
		code strictjson.Code
	}{
		{`{"a":1,"b":2,"a":3}`, strictjson.DuplicateKey},
		{`{"a":1}{}`, strictjson.TrailingData},
		{`[1,]`, strictjson.Syntax},
		{`"a"`, strictjson.WrongType},
		{`true`, strictjson.WrongType},
		{`null`, strictjson.WrongType},
		{` 1`, strictjson.WrongType},
	} {
		if err := strictjson.Members([]byte(c.doc), strictjson.Limits{}, member); !errors.Is(err, c.code) {
			t.Errorf("Members of %s: %v", c.doc, err)
		}
		if err := strictjson.Elements([]byte(c.doc), strictjson.Limits{}, element); !errors.Is(err, c.code) {
			t.Errorf("Elements of %s: %v", c.doc, err)
		}
	}
	if err := strictjson.Members([]byte(`[]`), strictjson.Limits{}, member); !errors.Is(err, strictjson.WrongType) {
		t.Error(err)
	}
	if visits > 0 {
		t.Errorf("%d visits of invalid documents", visits)
	}
	if err := strictjson.Members([]byte(`{"a":1,"b":2}`), strictjson.Limits{}, member); !errors.Is(err, stop) || visits != 1 {
		t.Errorf("%v after %d visits", err, visits)
	}
	if err := strictjson.Elements([]byte(`[1,2]`), strictjson.Limits{}, element); !errors.Is(err, stop) || visits != 2 {
		t.Errorf("%v after %d visits", err, visits)
	}
}

func TestGet(t *testing.T) {
	doc := []byte(` {"a" : {"b":[10, {"c":"x\"}"}, [ ]]}, "\u0065\u00e9\ud83d\ude00" : true, "t~/" : 1, "2":"two", "aa":null, "long\\":[7]}`)
	for _, c := range []struct {
		path string
		want string
	}{
		{"a", `{"b":[10, {"c":"x\"}"}, [ ]]}`},
		{"a b", `[10, {"c":"x\"}"}, [ ]]`},
		{"a b 0", `10`},
		{"a b 1 c", `"x\"}"`},
		{"a b 2", `[ ]`},
		{"eé😀", `true`},
		{"t~/", `1`},
		{"2", `"two"`},
		{"aa", `null`},
		{`long\ 0`, `7`},
		{"b", ""},
		{"A", ""},
		{"a B", ""},
		{"a b 3", ""},
		{"a b 00", ""},
		{"a b +1", ""},
		{"a b -1", ""},
		{"a b x", ""},
		{"a b 0 x", ""},
		{"aa x", ""},
		{"a b 2 0", ""},
		{"eé", ""},
		{"eé😀x", ""},
		{"e", ""},
		{"long", ""},
		{"a b 18446744073709551616", ""},
	} {
		got, ok := strictjson.Get(doc, strings.Fields(c.path)...)
		if ok != (c.want != "") || string(got) != c.want {
			t.Errorf("%s: %s, %v; want %s", c.path, got, ok, c.want)
		}
	}
	if got, ok := strictjson.Get(doc); !ok || string(got) != string(bytes.TrimSpace(doc)) {
		t.Errorf("the document itself: %s, %v", got, ok)
	}
	if n := testing.AllocsPerRun(100, func() { strictjson.Get(doc, "a", "b", "1", "c") }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// Where a tool's result has a name twice, Get sees the first.
func TestGetOfLaxDocument(t *testing.T) {
	doc := []byte(`{"result":{"a":1,"a":2,"\ud800":3}}`)
	if got, _ := strictjson.Get(doc, "result", "a"); string(got) != "1" {
		t.Errorf("got %s", got)
	}
	if got, ok := strictjson.Get(doc, "result", "\ufffd"); !ok || string(got) != "3" {
		t.Errorf("got %s", got)
	}
}

// On bytes that are not JSON, the readers of checked documents find nothing, stay within the bytes and come to an end.
func TestUncheckedDocuments(t *testing.T) {
	for _, doc := range []string{"", " ", "{", "[", `{"`, `{"a`, `{"a"`, `{"a":`, `{"a":}`, `{"a",`, `{1:2}`, `{a:1}`, `[,`, `[1,`, `[1 2`, `}`, `]`, `"\`, `{"\`, `{"\u`, `{"a\`, `{"a\x":1}`, `{"a":1,,}`, "{\"a\nb\":1}", `{"a":[[[`, "{\"a\":\"\n\"}", `:`} {
		for _, path := range [][]string{nil, {"a"}, {"0"}, {"a", "0"}, {"a", "b", "c"}} {
			strictjson.Get([]byte(doc), path...)
			_, _ = strictjson.Splice([]byte(doc), []byte("1"), path...)
			_, _ = strictjson.Splice([]byte(doc), nil, path...)
		}
		strictjson.Compact(nil, []byte(doc))
	}
	for _, doc := range []string{" ", `{"a":}`, `{"a":,"b":1}`, `{"a"}`, `{"a`} {
		var path []string
		if doc != " " {
			path = []string{"a"}
		}
		if got, ok := strictjson.Get([]byte(doc), path...); ok {
			t.Errorf("got %q from %s", got, doc)
		}
	}
}

func TestString(t *testing.T) {
	for in, want := range map[string]string{`"a"`: "a", ` "\u00e9\n\\\"\/x\ud83d\ude00" `: "é\n\\\"/x😀", `""`: "", `"\u0000"`: "\x00"} {
		if got, err := strictjson.String([]byte(in)); err != nil || got != want {
			t.Errorf("%s: %q, %v", in, got, err)
		}
	}
	for in, code := range map[string]strictjson.Code{`1`: strictjson.WrongType, `null`: strictjson.WrongType, ``: strictjson.Syntax, `"a`: strictjson.Syntax, `"\ud800"`: strictjson.LoneSurrogate, `"a""b"`: strictjson.TrailingData, `["a"]`: strictjson.WrongType} {
		if got, err := strictjson.String([]byte(in)); !errors.Is(err, code) || got != "" {
			t.Errorf("%s: %q, %v; want %s", in, got, err, code)
		}
	}
	long := `"` + strings.Repeat("x", 2*strictjson.DefaultBytes) + `"`
	if got, err := strictjson.String([]byte(long)); err != nil || len(got) != 2*strictjson.DefaultBytes {
		t.Errorf("a long value: %v", err)
	}
}

func TestInt(t *testing.T) {
	for in, want := range map[string]int64{`0`: 0, `-0`: 0, `10`: 10, `10.0`: 10, ` 1e1`: 10, `1000e-2`: 10, `-1.5e1`: -15, `9223372036854775807`: math.MaxInt64, `-9223372036854775808`: math.MinInt64} {
		if got, err := strictjson.Int([]byte(in)); err != nil || got != want {
			t.Errorf("%s: %d, %v", in, got, err)
		}
	}
	for in, code := range map[string]strictjson.Code{
		`9223372036854775808`: strictjson.NumberOverflow, `1e30`: strictjson.NumberOverflow, `1.5e300`: strictjson.NumberOverflow, `1.5`: strictjson.WrongType, `1e-7`: strictjson.WrongType,
		`1.5e-9`: strictjson.WrongType, `"1"`: strictjson.WrongType, `true`: strictjson.WrongType, `null`: strictjson.WrongType, `01`: strictjson.Syntax, `1e400`: strictjson.NumberOverflow,
	} {
		if got, err := strictjson.Int([]byte(in)); !errors.Is(err, code) || got != 0 {
			t.Errorf("%s: %d, %v; want %s", in, got, err, code)
		}
	}
}

func TestBool(t *testing.T) {
	for in, want := range map[string]bool{`true`: true, ` false `: false} {
		if got, err := strictjson.Bool([]byte(in)); err != nil || got != want {
			t.Errorf("%s: %v, %v", in, got, err)
		}
	}
	for _, in := range []string{`"true"`, `1`, `null`, `{}`, `[]`} { // CAN-13
		if got, err := strictjson.Bool([]byte(in)); !errors.Is(err, strictjson.WrongType) || got {
			t.Errorf("%s: %v, %v", in, got, err)
		}
	}
	if _, err := strictjson.Bool([]byte(`[]`)); err.Error() != "wrong type: want a boolean, not an array (wrong_type, byte 0)" {
		t.Error(err)
	}
}

func TestTree(t *testing.T) {
	got, err := strictjson.Tree([]byte(`{"a":[null,true,false,"x\n",1.50,{}],"\u0062":9007199254740993}`), strictjson.Limits{})
	want := map[string]any{
		"a": []any{nil, true, false, "x\n", strictjson.Number("1.5"), map[string]any{}},
		"b": strictjson.Number("9007199254740993"),
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %#v, %v", got, err)
	}
	if got, err := strictjson.Tree([]byte(`{"a":1,"a":2}`), strictjson.Limits{}); !errors.Is(err, strictjson.DuplicateKey) || got != nil {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestNumber(t *testing.T) {
	n := strictjson.Number("9007199254740993")
	if i, ok := n.Int64(); !ok || i != 1<<53+1 || n.String() != "9007199254740993" || n.Float64() != 1<<53 {
		t.Errorf("%d, %v, %s, %v", i, ok, n, n.Float64())
	}
	for _, n := range []strictjson.Number{"1.5", "1e-400", "1e+21", "9223372036854775808"} {
		if i, ok := n.Int64(); ok {
			t.Errorf("%s is the integer %d", n, i)
		}
	}
	if f := strictjson.Number("1e-400").Float64(); f != 0 {
		t.Errorf("got %v", f)
	}
}

// A tree has what was written, however it was spelled.
func TestTreeIsFaithful(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree := document(t, 4)
		got, err := strictjson.Tree([]byte(spell(t, tree)), strictjson.Limits{})
		if want := exact(t, tree); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("got %#v, %v\nwant %#v", got, err, want)
		}
	})
}

// exact returns the tree with its numbers in canonical form.
func exact(t *rapid.T, v any) any {
	switch v := v.(type) {
	case strictjson.Number:
		return strictjson.Number(canon(t, string(v)))
	case []any:
		array := []any{}
		for _, e := range v {
			array = append(array, exact(t, e))
		}
		return array
	case map[string]any:
		object := map[string]any{}
		for name, e := range v {
			object[name] = exact(t, e)
		}
		return object
	}
	return v
}

// Members and Elements lead to the same values as Get, and the canonical forms of the parts make up that of the whole.
func TestVisitsAreFaithful(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree := document(t, 3)
		doc := []byte(spell(t, tree))
		switch tree := tree.(type) {
		case map[string]any:
			seen := map[string]string{}
			err := strictjson.Members(doc, strictjson.Limits{}, func(name string, value []byte) error {
				seen[name] = canon(t, string(value))
				if got, ok := strictjson.Get(doc, name); !ok || &got[0] != &value[0] || len(got) != len(value) {
					t.Fatalf("Get of %q in %s: %s, %v; want %s", name, doc, got, ok, value)
				}
				return nil
			})
			if err != nil || len(seen) != len(tree) {
				t.Fatalf("%s: %v, %v", doc, seen, err)
			}
			for name := range maps.Keys(tree) {
				if want := canon(t, spell(t, tree[name])); seen[name] != want {
					t.Fatalf("%q is %s, want %s", name, seen[name], want)
				}
			}
		case []any:
			count := 0
			err := strictjson.Elements(doc, strictjson.Limits{}, func(i int, value []byte) error {
				if got, ok := strictjson.Get(doc, strconv.Itoa(i)); !ok || &got[0] != &value[0] {
					t.Fatalf("Get of %d in %s: %s, %v", i, doc, got, ok)
				}
				if got, want := canon(t, string(value)), canon(t, spell(t, tree[i])); got != want {
					t.Fatalf("element %d is %s, want %s", i, got, want)
				}
				count++
				return nil
			})
			if err != nil || count != len(tree) {
				t.Fatalf("%s: %d elements, %v", doc, count, err)
			}
		}
	})
}
