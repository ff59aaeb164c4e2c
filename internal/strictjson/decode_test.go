package strictjson_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ayegate/ayegate/internal/strictjson"
)

// colour is text with a grammar.
type colour struct{ r, g, b int }

func (c *colour) UnmarshalText(text []byte) error {
	_, err := fmt.Sscanf(string(text), "#%02x%02x%02x", &c.r, &c.g, &c.b)
	return err
}

type common struct {
	ID string `json:"id,required"`
}

type nested struct {
	Path string `json:"path"`
	Line int8   `json:"line"`
}

type name string

type target struct {
	common
	Text     string            `json:"text,omitempty"`
	On       bool              `json:"on"`
	Int      int64             `json:"int"`
	Port     uint16            `json:"port"`
	Ratio    float64           `json:"ratio"`
	Exact    strictjson.Number `json:"exact"`
	TTL      time.Duration     `json:"ttl"`
	At       time.Time         `json:"at"`
	Colour   colour            `json:"colour"`
	Maybe    *nested           `json:"maybe"`
	Shade    *colour           `json:"shade"`
	List     []nested          `json:"list"`
	Names    map[name]*int     `json:"names"`
	Raw      strictjson.Raw    `json:"raw"`
	Message  json.RawMessage   `json:"message"`
	Any      any               `json:"any"`
	Nested   nested            `json:"nested"`
	Matrix   [][]float64       `json:"matrix"`
	Parts    []strictjson.Raw  `json:"parts"`
	Groups   map[string][]int  `json:"groups"`
	Tree     map[string]any    `json:"tree"`
	Kind     name              `json:"kind"`
	Chan     chan int          `json:"chan"`
	Small    float32           `json:"small"`
	Bytes    []byte            `json:"bytes"`
	ByInt    map[int]string    `json:"byInt"`
	Stringy  fmt.Stringer      `json:"stringy"`
	Fixed    [2]int            `json:"fixed"`
	Ignored  string            `json:"-"`
	Untagged string
}

func TestDecode(t *testing.T) {
	seven := 7
	for doc, want := range map[string]target{
		`{"id":"x"}`: {},
		`{"id":"x","text":"a\u0062","on":true,"kind":"k"}`:                            {Text: "ab", On: true, Kind: "k"},
		`{"id":"x","int":-9223372036854775808,"port":65535,"ratio":0.1,"exact":1.10}`: {Int: math.MinInt64, Port: 65535, Ratio: 0.1, Exact: "1.1"},
		`{"id":"x","int":1e3,"port":80.0,"ratio":-15e-1}`:                             {Int: 1000, Port: 80, Ratio: -1.5},
		`{"id":"x","ttl":"1m30s","at":"2026-11-20T12:00:00Z","colour":"#0102ff"}`:     {TTL: 90 * time.Second, At: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), Colour: colour{1, 2, 255}},
		`{"id":"x","maybe":{"path":"/a"},"shade":"#000001","nested":{"line":-128}}`:   {Maybe: &nested{Path: "/a"}, Shade: &colour{0, 0, 1}, Nested: nested{Line: -128}},
		`{"id":"x","list":[{"line":1},{}],"names":{"a":7,"b":null}}`:                  {List: []nested{{Line: 1}, {}}, Names: map[name]*int{"a": &seven, "b": nil}},
		`{"id":"x","raw":{"b":1.0, "a":2},"message":[ 1 ],"any":[1.0,"x",null]}`:      {Raw: strictjson.Raw(`{"b":1.0, "a":2}`), Message: json.RawMessage(`[ 1 ]`), Any: []any{strictjson.Number("1"), "x", nil}},
		`{"id":"x","maybe":null,"list":null,"names":null,"any":null,"raw":null}`:      {Raw: strictjson.Raw("null")},
		`{"id":"x","matrix":[[1,2],[]],"parts":[1,"x"],"groups":{"a":[1]},"list":[]}`: {Matrix: [][]float64{{1, 2}, {}}, Parts: []strictjson.Raw{strictjson.Raw("1"), strictjson.Raw(`"x"`)}, Groups: map[string][]int{"a": {1}}, List: []nested{}},
		`{"id":"x","tree":{"a":{"b":[true]}}}`:                                        {Tree: map[string]any{"a": map[string]any{"b": []any{true}}}},
	} {
		want.ID = "x"
		var got target
		if err := strictjson.Decode([]byte(doc), strictjson.Limits{}, &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v\ngot  %+v\nwant %+v", doc, err, got, want)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, c := range []struct {
		doc     string
		code    strictjson.Code
		pointer string
		hint    string
	}{
		{`{}`, strictjson.MissingMember, "/id", ""},
		{`{"id":"x","ID":"y"}`, strictjson.UnknownMember, "/ID", `did you mean "id"?`},           // CAN-02
		{`{"id":"x","li\u017ft":[]}`, strictjson.UnknownMember, "/liſt", `did you mean "list"?`}, // CAN-03
		{`{"id":"x","id\u0000":"y"}`, strictjson.NULInName, "", ""},                              // CAN-04
		{`{"id":"x","id":"y"}`, strictjson.DuplicateKey, "/id", ""},                              // CAN-01
		{`{"id":"x","nested":{"path":"a","p\u0061th":"b"}}`, strictjson.DuplicateKey, "/nested/path", ""},
		{`{"id":"x","txet":1}`, strictjson.UnknownMember, "/txet", `did you mean "text"?`},
		{`{"id":"x","nested":{"lines":1}}`, strictjson.UnknownMember, "/nested/lines", `did you mean "line"?`},
		{`{"id":"x","completelydifferent":1}`, strictjson.UnknownMember, "/completelydifferent", ""},
		{`{"id":"x","` + strings.Repeat("long", 100) + `":1}`, strictjson.UnknownMember, "/" + strings.Repeat("long", 100), ""},
		{`{"id":"x","-":1}`, strictjson.UnknownMember, "/-", ""},
		{`{"id":"x","Untagged":"y"}`, strictjson.UnknownMember, "/Untagged", ""},
		{`{"id":"x","common":{}}`, strictjson.UnknownMember, "/common", ""},
		{`{"id":null}`, strictjson.WrongType, "/id", "want a string, not null"}, // CAN-13
		{`{"id":"x","on":"true"}`, strictjson.WrongType, "/on", "want a boolean, not a string"},
		{`{"id":"x","on":null}`, strictjson.WrongType, "/on", "want a boolean, not null"},
		{`{"id":"x","int":"1"}`, strictjson.WrongType, "/int", "want a number, not a string"},
		{`{"id":"x","int":1.5}`, strictjson.WrongType, "/int", "want int64"},
		{`{"id":"x","int":9223372036854775808}`, strictjson.NumberOverflow, "/int", "want int64"},
		{`{"id":"x","port":65536}`, strictjson.NumberOverflow, "/port", ""},
		{`{"id":"x","port":-1}`, strictjson.NumberOverflow, "/port", ""},
		{`{"id":"x","list":[{},{"line":128}]}`, strictjson.NumberOverflow, "/list/1/line", ""},
		{`{"id":"x","ratio":9007199254740993}`, strictjson.NumberNotExact, "/ratio", ""}, // CAN-05
		{`{"id":"x","ratio":1e-400}`, strictjson.NumberNotExact, "/ratio", ""},
		{`{"id":"x","exact":"1"}`, strictjson.WrongType, "/exact", ""},
		{`{"id":"x","ttl":30}`, strictjson.WrongType, "/ttl", "want a string, not a number"},
		{`{"id":"x","ttl":"30"}`, strictjson.BadValue, "/ttl", "want a duration"},
		{`{"id":"x","at":"yesterday"}`, strictjson.BadValue, "/at", "time.Time"},
		{`{"id":"x","at":1}`, strictjson.WrongType, "/at", "want a string"},
		{`{"id":"x","shade":"red"}`, strictjson.BadValue, "/shade", ""},
		{`{"id":"x","nested":[]}`, strictjson.WrongType, "/nested", "want an object, not an array"},
		{`{"id":"x","nested":null}`, strictjson.WrongType, "/nested", "want an object, not null"},
		{`{"id":"x","list":{}}`, strictjson.WrongType, "/list", "want an array, not an object"},
		{`{"id":"x","names":[]}`, strictjson.WrongType, "/names", "want an object, not an array"},
		{`{"id":"x","names":{"a/b":"x"}}`, strictjson.WrongType, "/names/a~1b", ""},
		{`{"id":"x","kind":1}`, strictjson.WrongType, "/kind", ""},
		{`[]`, strictjson.WrongType, "", "want an object, not an array"},
		{`{"id":"x"}{}`, strictjson.TrailingData, "", ""},
		{`{"id":"x","chan":1}`, strictjson.BadTarget, "/chan", "chan int"},
		{`{"id":"x","small":1}`, strictjson.BadTarget, "/small", "float32"},
		{`{"id":"x","bytes":"eA=="}`, strictjson.BadTarget, "/bytes", "[]uint8"},
		{`{"id":"x","byInt":{"1":"x"}}`, strictjson.BadTarget, "/byInt", "map[int]string"},
		{`{"id":"x","stringy":"x"}`, strictjson.BadTarget, "/stringy", "fmt.Stringer"},
		{`{"id":"x","fixed":1}`, strictjson.BadTarget, "/fixed", "[2]int"},
		{`{"id":"x","fixed":[1,2]}`, strictjson.BadTarget, "/fixed", "[2]int"},
	} {
		var into target
		err := strictjson.Decode([]byte(c.doc), strictjson.Limits{}, &into)
		var fault *strictjson.Error
		if !errors.As(err, &fault) || fault.Code != c.code || fault.Pointer != c.pointer || !strings.Contains(err.Error(), c.hint) {
			t.Errorf("%.80s: %v, want %s at %q with %q", c.doc, err, c.code, c.pointer, c.hint)
		}
	}
	for _, into := range []any{nil, target{}, (*target)(nil)} {
		if err := strictjson.Decode([]byte(`{"id":"x"}`), strictjson.Limits{}, into); !errors.Is(err, strictjson.BadTarget) {
			t.Errorf("into %T: %v", into, err)
		}
	}
}

// What is absent keeps its value, slices and maps are replaced as a whole.
func TestDecodeKeepsDefaults(t *testing.T) {
	into := target{Text: "default", TTL: time.Minute, Nested: nested{Path: "/p", Line: 3}, Maybe: &nested{Path: "/q"}, List: []nested{{Line: 1}, {Line: 2}}, Groups: map[string][]int{"a": {1}}}
	doc := `{"id":"x","nested":{"line":4},"maybe":{"line":5},"list":[{}],"groups":{"b":[2]}}`
	if err := strictjson.Decode([]byte(doc), strictjson.Limits{}, &into); err != nil {
		t.Fatal(err)
	}
	want := target{common: common{"x"}, Text: "default", TTL: time.Minute, Nested: nested{Path: "/p", Line: 4}, Maybe: &nested{Path: "/q", Line: 5}, List: []nested{{}}, Groups: map[string][]int{"b": {2}}}
	if !reflect.DeepEqual(into, want) {
		t.Errorf("got %+v", into)
	}
}

// A Raw is a copy: the buffer that was read may be used again.
func TestDecodeCopies(t *testing.T) {
	doc := []byte(`{"id":"x","raw":[1],"text":"abc"}`)
	var into target
	if err := strictjson.Decode(doc, strictjson.Limits{}, &into); err != nil {
		t.Fatal(err)
	}
	clear(doc)
	if string(into.Raw) != "[1]" || into.Text != "abc" {
		t.Errorf("got %s, %s", into.Raw, into.Text)
	}
}

// Values other than objects can be decoded too.
func TestDecodeScalars(t *testing.T) {
	var (
		text string
		list []string
		some any
		raw  strictjson.Raw
		ptr  *int
	)
	for doc, into := range map[string]any{`"x"`: &text, ` ["a","b"] `: &list, ` null `: &some, ` {"a": 1} `: &raw, `12`: &ptr} {
		if err := strictjson.Decode([]byte(doc), strictjson.Limits{}, into); err != nil {
			t.Errorf("%s: %v", doc, err)
		}
	}
	if text != "x" || len(list) != 2 || some != nil || string(raw) != `{"a": 1}` || *ptr != 12 {
		t.Errorf("got %q %q %v %s %v", text, list, some, raw, ptr)
	}
}

func equal(a, b any) bool { return reflect.DeepEqual(a, b) }

// Into an any, Decode and Tree are the same.
func TestDecodeIsTree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc := []byte(spell(t, document(t, 4)))
		var got any
		err := strictjson.Decode(doc, strictjson.Limits{}, &got)
		if want, _ := strictjson.Tree(doc, strictjson.Limits{}); err != nil || !equal(got, want) {
			t.Fatalf("%s: %v, %v", doc, got, err)
		}
	})
}
