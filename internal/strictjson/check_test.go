package strictjson_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/ayegate/ayegate/internal/strictjson"
)

// A fault names its place: pointer and byte.
func TestFaultsHaveAPlace(t *testing.T) {
	for _, c := range []struct {
		doc     string
		code    strictjson.Code
		pointer string
		offset  int
	}{
		{`{"params":{"name":"read","name":"delete"}}`, strictjson.DuplicateKey, "/params/name", 25}, // CAN-01
		{`{"params":{"name":1,"x":2,"n\u0061me":3}}`, strictjson.DuplicateKey, "/params/name", 26},  // CAN-01
		{`{"b":1,"a":2,"b":3,"a":4,"b":5}`, strictjson.DuplicateKey, "/b", 13},                      // the first second occurrence
		{`{"a/b":{"~":[1,{"x":"\ud800"}]}}`, strictjson.LoneSurrogate, "/a~1b/~0/1/x", 21},          // CAN-07
		{`{"a":[0,"` + "\xff" + `"]}`, strictjson.BadUTF8, "/a/1", 9},                               // CAN-07
		{"{\"a\":\"0123456789é\xc3\"}", strictjson.BadUTF8, "/a", 18},
		{`{"a":{"b\u0000":1}}`, strictjson.NULInName, "/a", 6}, // CAN-04
		{`[[1,1e400]]`, strictjson.NumberOverflow, "/0/1", 4},  // CAN-06
		{`[[1,-1e-99999]]`, strictjson.NumberUnderflow, "/0/1", 4},
		{`{"a":1} x`, strictjson.TrailingData, "", 8}, // CAN-08
		{"\xef\xbb\xbf{}", strictjson.BOM, "", 0},     // CAN-08
		{`{"a":01}`, strictjson.Syntax, "/a", 7},
		{`{"a":1,}`, strictjson.Syntax, "", 7},
		{`{"a":[1,]}`, strictjson.Syntax, "/a/1", 8},
		{`{"a":[1 2]}`, strictjson.Syntax, "/a", 8},
		{`{"a" 1}`, strictjson.Syntax, "", 5},
		{`{"a":1 "b":2}`, strictjson.Syntax, "", 7},
		{`{"a":"\x"}`, strictjson.Syntax, "/a", 6},
		{"", strictjson.Syntax, "", 0},
		{`{"a`, strictjson.Syntax, "", 3},
		{strings.Repeat(`[`, 65), strictjson.TooDeep, strings.Repeat("/0", 64), 64}, // CAN-09
	} {
		err := strictjson.Check([]byte(c.doc), strictjson.Limits{})
		var fault *strictjson.Error
		if !errors.As(err, &fault) || !errors.Is(err, c.code) || fault.Pointer != c.pointer || fault.Offset != c.offset {
			t.Errorf("%.60s: %v, want %s at %q, byte %d", c.doc, err, c.code, c.pointer, c.offset)
		}
		if _, also := strictjson.Canonical(nil, []byte(c.doc), strictjson.Limits{}); also == nil || err == nil || also.Error() != err.Error() {
			t.Errorf("%.60s: Check says %v, Canonical says %v", c.doc, err, also)
		}
	}
}

// The text of a fault can be logged and sent back: it says what is wrong, and repeats no value and nothing that a terminal obeys.
func TestFaultsAreSafeToShow(t *testing.T) {
	secret := "hunter2"
	for _, doc := range []string{
		`{"password":"` + secret + `\ud800"}`, `{"password":"` + secret + `","password":"` + secret + `"}`, `{"n":[` + secret + `]}`, `"` + secret,
		`{"pin":1` + secret + `}`, `{"` + strings.Repeat("long", 100) + `":[tru]}`, `{"\u001b[31m\u202e":[nul]}`,
	} {
		err := strictjson.Check([]byte(doc), strictjson.Limits{})
		if err == nil {
			t.Fatalf("%s accepted", doc)
		}
		text := err.Error()
		if strings.Contains(text, secret) || len(text) > 400 {
			t.Errorf("%s: %s", doc, text)
		}
		for _, r := range text {
			if r < 0x20 || r > 0x7e {
				t.Errorf("%s: %q", doc, text)
			}
		}
	}
	err := strictjson.Check([]byte(`{"a":{"b":1,"b":2}}`), strictjson.Limits{})
	if want := `member name given twice (duplicate_key at "/a/b", byte 12)`; err.Error() != want {
		t.Errorf("got %s, want %s", err, want)
	}
}

// Every code explains itself in words of its own.
func TestCodesHaveWords(t *testing.T) {
	seen := map[string]strictjson.Code{}
	for _, code := range []strictjson.Code{
		strictjson.Syntax, strictjson.DuplicateKey, strictjson.BadUTF8, strictjson.LoneSurrogate, strictjson.NULInName, strictjson.NumberOverflow, strictjson.NumberUnderflow,
		strictjson.TooDeep, strictjson.TooLarge, strictjson.TooManyValues, strictjson.TrailingData, strictjson.BOM, strictjson.WrongType, strictjson.UnknownMember,
		strictjson.MissingMember, strictjson.NumberNotExact, strictjson.BadValue, strictjson.BadTarget,
	} {
		words, _, _ := strings.Cut((&strictjson.Error{Code: code}).Error(), " (")
		if other, twice := seen[words]; twice {
			t.Errorf("%s and %s both say %q", code, other, words)
		}
		seen[words] = code
		if code.Error() != string(code) {
			t.Errorf("%s says %s", code, code.Error())
		}
	}
}

// Lax: below the top level only syntax, UTF-8, size and depth count, and the top level is as strict as ever.
func TestLax(t *testing.T) {
	lax := strictjson.Limits{Lax: true}
	for _, doc := range []string{
		`{"result":{"a":1,"a":2}}`, `{"result":"\ud800"}`, `{"result":[1e400,1e-99999,-0]}`, `{"result":{"a\u0000":1}}`, `[{"a":1,"a":2},"\udfff"]`,
		`{"result":{"\ud800":1,"\ud800":[{"x\n":{}}]}}`, `{"result":[` + strings.Repeat("0,", 200_000) + `0]}`, `{"result":{"é":1}}`,
	} {
		if err := strictjson.Check([]byte(doc), lax); err != nil {
			t.Errorf("%.60s: %v", doc, err)
		}
		if err := strictjson.Check([]byte(doc), strictjson.Limits{}); err == nil && doc != `{"result":{"é":1}}` {
			t.Errorf("%.60s is valid without Lax", doc)
		}
	}
	for _, c := range []struct {
		doc     string
		code    strictjson.Code
		pointer string
	}{
		{`{"id":1,"id":2}`, strictjson.DuplicateKey, "/id"},
		{`{"id":1,"x":{},"\u0069d":2}`, strictjson.DuplicateKey, "/id"},
		{`{"id\u0000":1}`, strictjson.NULInName, ""},
		{`{"\ud800":1}`, strictjson.LoneSurrogate, ""},
		{`"\ud800"`, strictjson.LoneSurrogate, ""},
		{`1e400`, strictjson.NumberOverflow, ""},
		{`{"result":{"a":"` + "\xff" + `"}}`, strictjson.BadUTF8, "/result/a"},
		{`{"result":{"` + "\xff" + `":1}}`, strictjson.BadUTF8, "/result"},
		{`{"result":{"a":[01]}}`, strictjson.Syntax, "/result/a/0"},
		{`{"result":{"é\u00e9":[tru]}}`, strictjson.Syntax, `/result/é\u00e9/0`},
		{`{"result":"\x"}`, strictjson.Syntax, "/result"},
		{`{"result":{"\x":1}}`, strictjson.Syntax, "/result"},
		{`{"result":1}{}`, strictjson.TrailingData, ""},
		{`{"result":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`, strictjson.TooDeep, "/result" + strings.Repeat("/0", 63)},
		{`{"result":"` + strings.Repeat("x", 1<<20) + `"}`, strictjson.TooLarge, ""},
	} {
		err := strictjson.Check([]byte(c.doc), lax)
		var fault *strictjson.Error
		if !errors.As(err, &fault) || fault.Code != c.code || fault.Pointer != c.pointer {
			t.Errorf("%.60s: %v, want %s at %q", c.doc, err, c.code, c.pointer)
		}
	}
}

// Limits below zero are the defaults, not "no limit".
func TestLimitsDefault(t *testing.T) {
	lim := strictjson.Limits{Bytes: -1, Depth: -1, Nodes: -1}
	if err := strictjson.Check([]byte(strings.Repeat("[", 64)+strings.Repeat("]", 64)), lim); err != nil {
		t.Error(err)
	}
	for doc, code := range map[string]strictjson.Code{
		strings.Repeat("[", 65):                            strictjson.TooDeep,
		"[" + strings.Repeat("0,", 100_000) + "0]":         strictjson.TooManyValues,
		`"` + strings.Repeat("x", strictjson.DefaultBytes): strictjson.TooLarge,
	} {
		if err := strictjson.Check([]byte(doc), lim); !errors.Is(err, code) {
			t.Errorf("%.20s: %v, want %s", doc, err, code)
		}
	}
	if err := strictjson.Check([]byte("["+strings.Repeat("0,", 99_998)+"0]"), lim); err != nil {
		t.Error(err)
	}
}
