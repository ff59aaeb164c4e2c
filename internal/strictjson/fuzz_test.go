package strictjson_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/big"
	"slices"
	"strconv"
	"testing"
	"unicode/utf8"

	"github.com/gowebpki/jcs"

	"github.com/ayegate/ayegate/internal/strictjson"
)

// seed adds every published vector that is not too long to mutate.
func seed(f *testing.F) {
	for _, v := range vectors(f, "document") {
		if in := v.input(); len(in) < 512 {
			f.Add(in)
		}
	}
}

// Whatever comes in: what is accepted is JSON to others too, has one form, and every reader of it agrees; what is refused as JSON is
// none to others either, and nothing is accepted laxly that is not.
func FuzzDocument(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, doc []byte) {
		valid := json.Valid(doc)
		err := strictjson.Check(doc, strictjson.Limits{})
		form, formErr := strictjson.Canonical(nil, doc, strictjson.Limits{})
		if (err == nil) != (formErr == nil) && !errors.Is(formErr, strictjson.TooLarge) {
			t.Fatalf("Check: %v, Canonical: %v", err, formErr)
		}
		checkLax(t, doc, valid)
		if err != nil {
			var fault *strictjson.Error
			if !errors.As(err, &fault) || fault.Offset < 0 || fault.Offset > len(doc) {
				t.Fatalf("%#v", err)
			}
			if valid && slices.Contains([]strictjson.Code{strictjson.Syntax, strictjson.TrailingData, strictjson.BOM}, fault.Code) {
				t.Fatalf("refused, but it is JSON: %v", err)
			}
			return
		}
		if !valid || !utf8.Valid(doc) {
			t.Fatal("accepted, but it is not JSON in UTF-8")
		}
		if again, err := strictjson.Canonical(nil, form, strictjson.Limits{}); err != nil || !bytes.Equal(again, form) {
			t.Fatalf("form %s has form %s, %v", form, again, err)
		}
		compacted, err := strictjson.Canonical(nil, strictjson.Compact(nil, doc), strictjson.Limits{})
		if err != nil || !bytes.Equal(compacted, form) {
			t.Fatalf("compacted it has form %s, %v", compacted, err)
		}
		one, _ := strictjson.Tree(doc, strictjson.Limits{})
		two, err := strictjson.Tree(form, strictjson.Limits{})
		if err != nil || !equal(one, two) {
			t.Fatalf("%#v became %#v, %v", one, two, err)
		}
		checkParts(t, doc, one)
	})
}

func checkLax(t *testing.T, doc []byte, valid bool) {
	t.Helper()
	wrapped := append(append([]byte(`{"result":`), doc...), '}')
	err := strictjson.Check(wrapped, strictjson.Limits{Lax: true})
	if err == nil && (!json.Valid(wrapped) || !utf8.Valid(doc)) {
		t.Fatal("accepted laxly, but it is not JSON in UTF-8")
	}
	if err != nil && valid && utf8.Valid(doc) && !errors.Is(err, strictjson.TooDeep) {
		t.Fatalf("refused laxly: %v", err)
	}
}

// checkParts compares what Members, Elements and Get find with the tree.
func checkParts(t *testing.T, doc []byte, tree any) {
	t.Helper()
	count := 0
	visit := func(step string, value []byte, want any) error {
		count++
		if got, ok := strictjson.Get(doc, step); !ok || !bytes.Equal(got, value) {
			t.Fatalf("Get of %q: %s, %v; visited %s", step, got, ok, value)
		}
		if got, err := strictjson.Tree(value, strictjson.Limits{}); err != nil || !equal(got, want) {
			t.Fatalf("%q is %#v, %v; want %#v", step, got, err, want)
		}
		return nil
	}
	switch tree := tree.(type) {
	case map[string]any:
		err := strictjson.Members(doc, strictjson.Limits{}, func(name string, value []byte) error {
			return visit(name, value, tree[name])
		})
		if err != nil || count != len(tree) {
			t.Fatalf("%d members of %d, %v", count, len(tree), err)
		}
	case []any:
		err := strictjson.Elements(doc, strictjson.Limits{}, func(i int, value []byte) error {
			return visit(strconv.Itoa(i), value, tree[i])
		})
		if err != nil || count != len(tree) {
			t.Fatalf("%d elements of %d, %v", count, len(tree), err)
		}
	}
}

// For documents whose numbers a double's shortest form expresses, the form is RFC 8785's, as another implementation writes it.
func FuzzAgainstJCS(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, doc []byte) {
		form, err := strictjson.Canonical(nil, doc, strictjson.Limits{})
		if err != nil {
			return
		}
		tree, err := strictjson.Tree(doc, strictjson.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if form[0] != '{' && form[0] != '[' || !shortest(t, tree) {
			return // the other takes objects and arrays only
		}
		other, err := jcs.Transform(doc)
		if err != nil {
			t.Fatalf("the other refuses %s: %v", doc, err)
		}
		if !bytes.Equal(form, other) {
			t.Fatalf("%s\nours  %s\nother %s", doc, form, other)
		}
	})
}

// shortest tells whether every number in the tree has the value of the shortest form of its double.
func shortest(t *testing.T, v any) bool {
	switch v := v.(type) {
	case strictjson.Number:
		want, ok := new(big.Rat).SetString(string(v))
		got, ok2 := new(big.Rat).SetString(strconv.FormatFloat(v.Float64(), 'e', -1, 64))
		if !ok || !ok2 {
			t.Fatalf("%s is no number", v)
		}
		return got.Cmp(want) == 0
	case []any:
		for _, e := range v {
			if !shortest(t, e) {
				return false
			}
		}
	case map[string]any:
		for _, e := range v {
			if !shortest(t, e) {
				return false
			}
		}
	}
	return true
}

// Two numbers have one form exactly if they are equal.
func FuzzNumbers(f *testing.F) {
	f.Add("9007199254740993", "9007199254740992")
	f.Add("1.10", "1.1")
	f.Add("-0", "0e9")
	f.Add("1e-400", "0")
	f.Add("333333333.33333329", "333333333.3333333")
	f.Add("1e21", "1000000000000000000000")
	f.Add("1e-7", "0.0000001")
	f.Fuzz(func(t *testing.T, a, b string) {
		formA, errA := strictjson.Canonical(nil, []byte(a), strictjson.Limits{Bytes: 1000})
		formB, errB := strictjson.Canonical(nil, []byte(b), strictjson.Limits{Bytes: 1000})
		if errA != nil || errB != nil || formA[0] > '9' || formB[0] > '9' || formA[0] == '"' || formB[0] == '"' {
			return
		}
		x, okX := new(big.Rat).SetString(string(bytes.TrimSpace([]byte(a))))
		y, okY := new(big.Rat).SetString(string(bytes.TrimSpace([]byte(b))))
		v, okV := new(big.Rat).SetString(string(formA))
		if !okX || !okY || !okV {
			return // an exponent too long for math/big, before a zero
		}
		if v.Cmp(x) != 0 || bytes.Equal(formA, formB) != (x.Cmp(y) == 0) {
			t.Fatalf("%s has form %s, %s has form %s", a, formA, b, formB)
		}
	})
}

// Splice, on a valid document, gives a valid document with the value at its place; on any other bytes it comes to an end.
func FuzzSplice(f *testing.F) {
	f.Add([]byte(`{"a":{"b":[1, 2 ,3]}, "c":1 }`), []byte(`{"x":1}`), "a", "b")
	f.Add([]byte(`[{"a":1}, 2]`), []byte(`null`), "0", "z")
	f.Add([]byte(`{"\u0061":{}}`), []byte(`"x"`), "a", "é")
	f.Add([]byte(`{"a`), []byte(`1`), "a", "b")
	f.Fuzz(func(t *testing.T, doc, value []byte, one, two string) {
		set, err := strictjson.Splice(doc, value, one, two)
		cut, cutErr := strictjson.Splice(doc, nil, one, two)
		strictjson.Get(doc, one, two)
		strictjson.Compact(nil, doc)
		wide := strictjson.Limits{Depth: 200}
		if strictjson.Check(doc, strictjson.Limits{}) != nil {
			return
		}
		if cutErr != nil || strictjson.Check(cut, wide) != nil {
			t.Fatalf("%s cut to %s, %v", doc, cut, cutErr)
		}
		if _, ok := strictjson.Get(doc, one, two); !ok && !bytes.Equal(cut, doc) {
			t.Fatalf("%s without what it does not have is %s", doc, cut)
		}
		if err != nil || !utf8.ValidString(one) || !utf8.ValidString(two) || strictjson.Check(value, strictjson.Limits{}) != nil {
			return
		}
		if bytes.ContainsRune([]byte(one+two), 0) {
			return // not a name that a document may have
		}
		if err := strictjson.Check(set, wide); err != nil {
			t.Fatalf("%s with %s is %s: %v", doc, value, set, err)
		}
		if got, ok := strictjson.Get(set, one, two); !ok || !bytes.Equal(got, bytes.Trim(value, " \n\r\t")) {
			t.Fatalf("%s with %s is %s, which has %s", doc, value, set, got)
		}
	})
}
