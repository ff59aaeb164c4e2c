package call_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/strictjson"
)

// vector is a line of docs/vectors that concerns this package.
type vector struct {
	ID         string            `json:"id"`
	Kind       string            `json:"kind"`
	Server     string            `json:"server"`
	Tool       string            `json:"tool"`
	Args       string            `json:"args"`
	ArgsBase64 []byte            `json:"args_base64"`
	Input      string            `json:"input"`
	Fields     call.DigestFields `json:"fields"`
	Canonical  string            `json:"canonical"`
	Hash       call.Hash         `json:"hash"`
	Code       string            `json:"code"`
}

func (v vector) args() []byte {
	if v.ArgsBase64 != nil {
		return v.ArgsBase64
	}
	return []byte(v.Args)
}

// code names an error the way the vectors do.
func code(err error) string {
	var fault *strictjson.Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &fault):
		return string(fault.Code)
	case errors.Is(err, call.ErrServer):
		return "server"
	case errors.Is(err, call.ErrTool):
		return "tool"
	case errors.Is(err, call.ErrNotCanonical):
		return "not_canonical"
	}
	return err.Error()
}

// Every published vector of a call, of stored bytes, of a tool's definition and of a digest holds. Their notes name the attacks, among
// them CAN-14 (another version's bytes) and CAN-15 (fields that run into each other).
func TestVectors(t *testing.T) {
	files, err := filepath.Glob("../../docs/vectors/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("no vectors: %v", err)
	}
	held := map[string]int{}
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
			if v.Kind != "document" {
				t.Run(v.ID, v.test)
				held[v.Kind]++
			}
		}
	}
	if held["call"] < 50 || held["parse"] < 20 || held["definition"] < 10 || held["digest"] < 10 {
		t.Errorf("vectors are missing: %v", held)
	}
}

func (v vector) test(t *testing.T) {
	var (
		c    call.Call
		hash call.Hash
		err  error
	)
	switch v.Kind {
	case "call":
		c, err = call.New(v.Server, v.Tool, v.args())
		hash = c.Hash()
	case "parse":
		c, err = call.Parse([]byte(v.Input))
		hash = c.Hash()
	case "definition":
		hash, err = call.DefinitionHash([]byte(v.Input))
	case "digest":
		hash = v.Fields.Hash()
	default:
		t.Fatalf("unknown kind %s", v.Kind)
	}
	if got := code(err); got != v.Code {
		t.Fatalf("got %v, want %q", err, v.Code)
	}
	if hash != v.Hash {
		t.Errorf("hash %s, want %s", hash, v.Hash)
	}
	if (v.Kind == "call" || v.Kind == "parse") && string(c.Canonical()) != v.Canonical {
		t.Errorf("got  %s\nwant %s", c.Canonical(), v.Canonical)
	}
}
