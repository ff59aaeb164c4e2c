package call_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/strictjson"
)

const someHash = "sha256:00ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e"

func TestHashText(t *testing.T) {
	h, err := call.ParseHash(someHash)
	if err != nil || h.String() != someHash || h.Short() != "00ff0102" || h.IsZero() {
		t.Errorf("%s, %s, %v", h, h.Short(), err)
	}
	for _, s := range []string{
		"", "sha256:", someHash[7:], "SHA256:" + someHash[7:], "sha256:" + strings.ToUpper(someHash[7:]), someHash + "00", someHash[:len(someHash)-1], someHash[:len(someHash)-2] + "0g", " " + someHash, someHash + "\n",
		"sha256:" + strings.Repeat("0", 64), "sha512:" + someHash[7:],
	} {
		if h, err := call.ParseHash(s); !errors.Is(err, call.ErrHash) || !h.IsZero() {
			t.Errorf("%q is %s, %v", s, h, err)
		}
	}
}

// The zero Hash is the absence of one: it has no text, it is left out of JSON, and no text from outside can stand for it.
func TestZeroHash(t *testing.T) {
	var zero call.Hash
	if !zero.IsZero() || zero.String() != "" || zero.Short() != "" {
		t.Errorf("got %q, %q", zero, zero.Short())
	}
	type message struct {
		Digest call.Hash `json:"digest,omitzero"`
	}
	if text, err := json.Marshal(message{}); err != nil || string(text) != "{}" {
		t.Errorf("%s, %v", text, err)
	}
}

func TestHashInJSON(t *testing.T) {
	type message struct {
		A call.Hash  `json:"a"`
		B call.Hash  `json:"b"`
		C *call.Hash `json:"c"`
	}
	h, _ := call.ParseHash(someHash)
	in := message{A: h, C: &h}
	text, err := json.Marshal(in)
	if want := `{"a":"` + someHash + `","b":"","c":"` + someHash + `"}`; err != nil || string(text) != want {
		t.Fatalf("%s, %v", text, err)
	}
	var out message
	if err := strictjson.Decode(text, strictjson.Limits{}, &out); err != nil || !reflect.DeepEqual(in, out) {
		t.Errorf("%+v, %v", out, err)
	}
	err = strictjson.Decode([]byte(`{"a":"sha256:00"}`), strictjson.Limits{}, &out)
	if !errors.Is(err, strictjson.BadValue) || out.A != h {
		t.Errorf("%s, %v", out.A, err)
	}
}

func TestDefinitionHash(t *testing.T) {
	const tool = `{"name":"read","description":"Reads","inputSchema":{"type":"object"}}`
	base, err := call.DefinitionHash([]byte(tool))
	if err != nil {
		t.Fatal(err)
	}
	for _, same := range []string{
		`{ "inputSchema":{"type" : "object"}, "description":"R\u0065ads","name":"read" }`,
		`{"name":"read","description":"Reads","inputSchema":{"type":"object"},"_meta":{"n":1},"icons":[{"src":"x"}]}`,
	} {
		if h, err := call.DefinitionHash([]byte(same)); err != nil || h != base {
			t.Errorf("%s is another definition: %v", same, err)
		}
	}
	seen := map[call.Hash]string{base: tool}
	for _, other := range []string{
		`{"name":"Read","description":"Reads","inputSchema":{"type":"object"}}`,
		`{"name":"read","description":"Reads ","inputSchema":{"type":"object"}}`,
		`{"name":"read","description":"Reads","inputSchema":{"type":"object","x":1}}`,
		`{"name":"read","description":"Reads","inputSchema":{"type":"object"},"outputSchema":{}}`,
		`{"name":"read","description":"Reads","inputSchema":{"type":"object"},"title":"x"}`,
		`{"name":"read","description":"Reads","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`,
		`{"name":"read","description":"Reads","inputSchema":{"type":"object"},"execution":{}}`,
		`{"name":"read","inputSchema":{"type":"object"}}`,
	} {
		h, err := call.DefinitionHash([]byte(other))
		if err != nil || seen[h] != "" {
			t.Errorf("%s has the hash of %s, %v", other, seen[h], err)
		}
		seen[h] = other
	}
	if h, err := call.DefinitionHash([]byte(`{"name":"a"} `)); err != nil || h.IsZero() {
		t.Errorf("%v, %v", h, err)
	}
	if h, err := call.DefinitionHash([]byte(`{"title":"a"}`)); !errors.Is(err, strictjson.MissingMember) || !h.IsZero() {
		t.Errorf("%v, %v", h, err)
	}
}

// A definition fits within the limit as it was sent but not in canonical form: it cannot be pinned.
func TestDefinitionTooLarge(t *testing.T) {
	tool := `{"name":"a","inputSchema":[` + strings.Repeat("1e20,", 90_000) + `1]}`
	if h, err := call.DefinitionHash([]byte(tool)); !errors.Is(err, strictjson.TooLarge) || !h.IsZero() {
		t.Errorf("%v, %v", h, err)
	}
}

// Each field alone changes the digest; without a request or a call there is none.
func TestDigest(t *testing.T) {
	h, _ := call.ParseHash(someHash)
	base := call.DigestFields{Request: "r", Call: h, Definition: h, Agent: "a", Session: "s", Workspace: "w", Plan: "p", Policy: "q"}
	seen := map[call.Hash]string{base.Hash(): "base"}
	v := reflect.ValueOf(base)
	for i := range v.NumField() {
		changed := base
		f := reflect.ValueOf(&changed).Elem().Field(i)
		name := v.Type().Field(i).Name
		if f.Kind() == reflect.String {
			f.SetString(f.String() + "x")
		} else {
			f.Index(0).SetUint(1)
		}
		if other, twice := seen[changed.Hash()]; twice || changed.Hash().IsZero() {
			t.Errorf("with another %s the digest is that of %s", name, other)
		}
		seen[changed.Hash()] = name
	}
	for _, none := range []call.DigestFields{{}, {Request: "r"}, {Call: h}} {
		if d := none.Hash(); !d.IsZero() {
			t.Errorf("%+v has digest %s", none, d)
		}
	}
}
