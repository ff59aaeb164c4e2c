package strictjson_test

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ayegate/ayegate/internal/strictjson"
)

func TestSplice(t *testing.T) {
	for _, c := range []struct {
		doc, path, value, want string
	}{
		// replace
		{`{"a":1}`, "a", `2`, `{"a":2}`},
		{` { "a" : 1.0 , "b":[ 1,2 ] } `, "b 0", ` {"x": 1} `, ` { "a" : 1.0 , "b":[ {"x": 1},2 ] } `},
		{`{"p\u0061th":1,"x":1e0}`, "path", `null`, `{"p\u0061th":null,"x":1e0}`},
		{` [1] `, "", `{}`, ` {} `},
		{`{"a":{"b":{"c":1}}}`, "a b", `[]`, `{"a":{"b":[]}}`},
		// insert
		{`{}`, "a", `1`, `{"a":1}`},
		{`{ }`, "a", `1`, `{"a":1 }`},
		{`{"a":1 }`, "b", `2`, `{"a":1,"b":2 }`},
		{`{"a":{}}`, "a b c", `true`, `{"a":{"b":{"c":true}}}`},
		{`{"a":[{}]}`, "a 0 é\n", `0`, `{"a":[{"é\n":0}]}`},
		{`{"params":{"name":"x"},"id":1}`, "params _meta k", `"v"`, `{"params":{"name":"x","_meta":{"k":"v"}},"id":1}`},
		// delete
		{`{"a":1}`, "a", ``, `{}`},
		{`{ "a" : 1 }`, "a", ``, `{  }`},
		{`{"a":1, "b":2 ,"c":3}`, "a", ``, `{"b":2 ,"c":3}`},
		{`{"a":1, "b":2 ,"c":3}`, "b", ``, `{"a":1, "c":3}`},
		{`{"a":1, "b":2 , "c":3 }`, "c", ``, `{"a":1, "b":2 }`},
		{`[1, 2 ,3]`, "0", ``, `[2 ,3]`},
		{`[1, 2 ,3]`, "1", ``, `[1, 3]`},
		{`[1, 2 ,3]`, "2", ``, `[1, 2]`},
		{`{"a":{"b":[{"c":1}]}}`, "a b 0 c", ``, `{"a":{"b":[{}]}}`},
		// delete what is not there
		{`{"a":1}`, "b", ``, `{"a":1}`},
		{`{"a":1}`, "b c", ``, `{"a":1}`},
		{`{"a":1}`, "a b", ``, `{"a":1}`},
		{`[1]`, "1", ``, `[1]`},
	} {
		var value []byte
		if c.value != "" {
			value = []byte(c.value)
		}
		doc := []byte(c.doc)
		path := strings.Split(c.path, " ")
		if c.path == "" {
			path = nil
		}
		got, err := strictjson.Splice(doc, value, path...)
		if err != nil || string(got) != c.want {
			t.Errorf("%s at %s: %s, %v\nwant %s", c.doc, c.path, got, err, c.want)
		}
		if string(doc) != c.doc {
			t.Errorf("the document was changed to %s", doc)
		}
	}
	for _, c := range []struct {
		doc, path, value string
		code             strictjson.Code
		text             string
	}{
		{`{"a":1}`, "a b", `2`, strictjson.WrongType, `"/a"`},
		{`{"a":{"b":"x"}}`, "a b c d", `2`, strictjson.WrongType, `"/a/b"`},
		{`{"a":[1]}`, "a 1", `2`, strictjson.MissingMember, `"/a/1"`},
		{`{"a":[1]}`, "a x", `2`, strictjson.MissingMember, `"/a/x"`},
		{`{"a":[]}`, "a 0 b", `2`, strictjson.MissingMember, `"/a/0"`},
		{`{}`, "a", `{`, strictjson.Syntax, ""},
		{`{}`, "a", `1,"b":2`, strictjson.TrailingData, ""},
		{`{}`, "a", ` `, strictjson.Syntax, ""},
	} {
		got, err := strictjson.Splice([]byte(c.doc), []byte(c.value), strings.Fields(c.path)...)
		if !errors.Is(err, c.code) || got != nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s at %s: %s, %v; want %s at %s", c.doc, c.path, got, err, c.code, c.text)
		}
	}
	if got, err := strictjson.Splice([]byte(`{}`), nil); !errors.Is(err, strictjson.BadValue) {
		t.Errorf("deleting everything: %s, %v", got, err)
	}
	if got, err := strictjson.Splice([]byte(`{}`), []byte{}, "a"); !errors.Is(err, strictjson.Syntax) {
		t.Errorf("an empty value: %s, %v", got, err)
	}
}

// A value that a tool has returned is put in as it is.
func TestSpliceOfLaxValue(t *testing.T) {
	value := `{"a":1,"a":"\ud800",` + strings.Repeat(" ", 1<<20) + `"n":1e400,"deep":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `}`
	got, err := strictjson.Splice([]byte(`{"id":7}`), []byte(value), "result")
	if err != nil || string(got) != `{"id":7,"result":`+value+`}` {
		t.Errorf("%.100s, %v", got, err)
	}
}

// step is a random way down from a tree; what it leads to may be absent.
func path(t *rapid.T, v any) []string {
	var steps []string
	for {
		switch node := v.(type) {
		case map[string]any:
			name := rapid.SampledFrom(names).Draw(t, "step")
			steps = append(steps, name)
			v = node[name]
		case []any:
			if len(node) == 0 {
				return steps
			}
			i := rapid.IntRange(0, len(node)-1).Draw(t, "index")
			steps = append(steps, strconv.Itoa(i))
			v = node[i]
		default:
			return steps
		}
		if rapid.IntRange(0, 2).Draw(t, "stop") == 0 {
			return steps
		}
	}
}

// What was put in is found again, what was deleted is not, and everything else is byte for byte what it was.
func TestSpliceIsFaithful(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree := document(t, 4)
		doc := []byte(spell(t, tree))
		steps := path(t, tree)
		if len(steps) == 0 {
			t.Skip("nothing below")
		}
		value := spell(t, document(t, 2))
		old, there := strictjson.Get(doc, steps...)

		set, err := strictjson.Splice(doc, []byte(value), steps...)
		if err != nil {
			t.Fatalf("%s at %q: %v", doc, steps, err)
		}
		if got, ok := strictjson.Get(set, steps...); !ok || string(got) != strings.Trim(value, " \n\r\t") {
			t.Fatalf("%s became %s: at %q is %s", doc, set, steps, got)
		}
		if err := strictjson.Check(set, strictjson.Limits{}); err != nil {
			t.Fatalf("%s became %s: %v", doc, set, err)
		}
		if there {
			if back, err := strictjson.Splice(set, old, steps...); err != nil || string(back) != string(doc) {
				t.Fatalf("%s came back as %s, %v", doc, back, err)
			}
		} else if gone, err := strictjson.Splice(set, nil, steps...); err != nil || string(gone) != string(doc) {
			t.Fatalf("%s came back as %s, %v", doc, gone, err)
		}

		cut, err := strictjson.Splice(doc, nil, steps...)
		if err != nil {
			t.Fatal(err)
		}
		want := exact(t, without(tree, steps))
		if got, err := strictjson.Tree(cut, strictjson.Limits{}); err != nil || !equal(got, want) {
			t.Fatalf("%s without %q is %s, %v", doc, steps, cut, err)
		}
	})
}

// without returns a copy of the tree in which the node at steps is deleted.
func without(v any, steps []string) any {
	switch node := v.(type) {
	case map[string]any:
		object := map[string]any{}
		for name, e := range node {
			switch {
			case name != steps[0]:
				object[name] = e
			case len(steps) > 1:
				object[name] = without(e, steps[1:])
			}
		}
		return object
	case []any:
		i, _ := strconv.Atoi(steps[0])
		if len(steps) == 1 {
			return slices.Delete(slices.Clone(node), i, i+1)
		}
		array := slices.Clone(node)
		array[i] = without(node[i], steps[1:])
		return array
	}
	return v
}

func TestCompact(t *testing.T) {
	for in, want := range map[string]string{
		" { \"a b\" : [ 1.0 ,\t\"\\u0041 \\\" x\" ] ,\r\n\"c\":null } ": `{"a b":[1.0,"\u0041 \" x"],"c":null}`,
		`[]`:    `[]`,
		` 1e0 `: `1e0`,
	} {
		if got := strictjson.Compact([]byte("x"), []byte(in)); string(got) != "x"+want {
			t.Errorf("%q: %s", in, got)
		}
	}
}

// Compacting changes no token: the canonical form stays, and a second time nothing happens.
func TestCompactIsFaithful(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc := spell(t, document(t, 4))
		got := string(strictjson.Compact(nil, []byte(doc)))
		if strings.Contains(got, "\n") || canon(t, got) != canon(t, doc) || string(strictjson.Compact(nil, []byte(got))) != got {
			t.Fatalf("%q became %q", doc, got)
		}
	})
}
