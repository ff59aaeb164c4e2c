package strictjson_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/ayegate/ayegate/internal/strictjson"
)

// vector is a line of docs/vectors that concerns this package.
type vector struct {
	ID        string `json:"id"`
	Kind      string `json:"kind"`
	Limits    strictjson.Limits
	Input     string          `json:"input"`
	Base64    []byte          `json:"input_base64"`
	Canonical *string         `json:"canonical"`
	Hash      string          `json:"hash"`
	Code      strictjson.Code `json:"code"`
}

func (v vector) input() []byte {
	if v.Base64 != nil {
		return v.Base64
	}
	return []byte(v.Input)
}

// vectors returns the published vectors of a kind.
func vectors(t testing.TB, kind string) []vector {
	t.Helper()
	files, err := filepath.Glob("../../docs/vectors/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("no vectors: %v", err)
	}
	var found []vector
	ids := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(text) {
			var v vector
			if err := json.Unmarshal(line, &v); err != nil {
				t.Fatalf("%s: %v in %s", file, err, line)
			}
			if ids[v.ID] {
				t.Errorf("%s: id %s twice", file, v.ID)
			}
			ids[v.ID] = true
			if v.Kind == kind {
				found = append(found, v)
			}
		}
	}
	return found
}

// Every published vector of a document holds: CAN-01, CAN-02, CAN-03, CAN-04, CAN-05, CAN-06, CAN-07, CAN-08, CAN-09, CAN-10, CAN-11,
// CAN-12, CAN-13, CAN-15, CAN-16, CAN-18.
func TestVectors(t *testing.T) {
	all := vectors(t, "document")
	if len(all) < 300 {
		t.Errorf("%d vectors, want at least 300", len(all))
	}
	for _, v := range all {
		t.Run(v.ID, func(t *testing.T) {
			form, err := strictjson.Canonical(nil, v.input(), v.Limits)
			if v.Canonical == nil {
				if !errors.Is(err, v.Code) || v.Code == "" {
					t.Fatalf("got %q, %v; want %s", form, err, v.Code)
				}
				if err := strictjson.Check(v.input(), v.Limits); !errors.Is(err, v.Code) {
					// Check does not write the canonical form, so it cannot say that it is too long.
					if v.Code != strictjson.TooLarge || len(v.input()) > v.Limits.Bytes {
						t.Fatalf("Check: %v, want %s", err, v.Code)
					}
				}
				return
			}
			if err != nil || string(form) != *v.Canonical {
				t.Fatalf("got  %s, %v\nwant %s", form, err, *v.Canonical)
			}
			sum := sha256.Sum256(form)
			if got := "sha256:" + hex.EncodeToString(sum[:]); got != v.Hash {
				t.Errorf("hash %s, want %s", got, v.Hash)
			}
			again, err := strictjson.Canonical(nil, form, v.Limits)
			if err != nil || !bytes.Equal(again, form) {
				t.Errorf("not its own canonical form: %s, %v", again, err)
			}
			if err := strictjson.Check(v.input(), v.Limits); err != nil {
				t.Errorf("Check: %v", err)
			}
		})
	}
}
