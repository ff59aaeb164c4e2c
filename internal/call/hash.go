package call

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"

	"github.com/ayegate/ayegate/internal/strictjson"
)

// Hash is a SHA-256. The zero Hash means that there is none: its text is empty, and no text of a hash stands for it.
type Hash [sha256.Size]byte

const hashPrefix = "sha256:"

// ErrHash is the fault of a text that is not a hash.
var ErrHash = errors.New(`invalid hash: want "sha256:" and 64 lower-case hexadecimal digits`)

// String returns "sha256:" and 64 lower-case hexadecimal digits, or "" for the zero Hash.
func (h Hash) String() string {
	if h.IsZero() {
		return ""
	}
	var text [len(hashPrefix) + 2*len(h)]byte
	copy(text[:], hashPrefix)
	hex.Encode(text[len(hashPrefix):], h[:])
	return string(text[:])
}

// Short returns the first 8 hexadecimal digits, for people to compare; it identifies nothing. It is "" for the zero Hash.
func (h Hash) Short() string {
	if h.IsZero() {
		return ""
	}
	return hex.EncodeToString(h[:4])
}

// IsZero tells whether there is no hash.
func (h Hash) IsZero() bool { return h == Hash{} }

// ParseHash reads exactly what [Hash.String] writes of a hash that is not zero.
func ParseHash(s string) (Hash, error) {
	digits, ok := strings.CutPrefix(s, hashPrefix)
	var h Hash
	if !ok || len(digits) != hex.EncodedLen(len(h)) || strings.ContainsAny(digits, "ABCDEF") {
		return Hash{}, ErrHash
	}
	if _, err := hex.Decode(h[:], []byte(digits)); err != nil || h.IsZero() {
		return Hash{}, ErrHash
	}
	return h, nil
}

// MarshalText returns the text of [Hash.String].
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads what MarshalText wrote: empty text is the zero Hash.
func (h *Hash) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*h = Hash{}
		return nil
	}
	parsed, err := ParseHash(string(text))
	if err == nil {
		*h = parsed
	}
	return err
}

// The members of an MCP tool object that make up its definition, in canonical order. Icons and _meta are not what a tool does.
var definition = [...]string{"annotations", "description", "execution", "inputSchema", "name", "outputSchema", "title"}

// DefinitionHash returns the SHA-256 of the canonical JSON of what defines a tool, taken from an MCP tool object as its server sent it:
// its annotations, description, execution, inputSchema, name, outputSchema and title, as far as they are there. An object that is not
// strictly valid, or has no name, has no hash: the error is a [*strictjson.Error].
func DefinitionHash(tool []byte) (Hash, error) {
	if err := strictjson.Members(tool, strictjson.Limits{}, func(string, []byte) error { return nil }); err != nil {
		return Hash{}, err
	}
	b := make([]byte, 0, len(tool))
	b = append(b, '{')
	for _, name := range definition {
		value, ok := strictjson.Get(tool, name)
		if !ok {
			if name == "name" {
				return Hash{}, &strictjson.Error{Code: strictjson.MissingMember, Pointer: "/name"}
			}
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(strictjson.AppendString(b, name), ':')
		var err error
		if b, err = strictjson.Canonical(b, value, strictjson.Limits{}); err != nil {
			return Hash{}, err
		}
	}
	return sha256.Sum256(append(b, '}')), nil
}

// DigestFields are everything that a person's decision depends on. The strings must be valid UTF-8.
type DigestFields struct {
	Request    string // the request's id
	Call       Hash
	Definition Hash   // of the tool; zero if it has none, as a function behind the SDK
	Agent      string // the agent's id
	Session    string
	Workspace  string
	Plan       string // the plan's id and step, if the call is one
	Policy     string // the revision that judged
}

// Hash returns the SHA-256 of the canonical JSON of the fields, each under its name in lower case, with "v":1. Absent hashes are null.
// Without a request or a call there is nothing to decide, and the result is the zero Hash.
func (f DigestFields) Hash() Hash {
	if f.Request == "" || f.Call.IsZero() {
		return Hash{}
	}
	text := strictjson.AppendString
	b := make([]byte, 0, 512)
	b = text(append(b, `{"agent":`...), f.Agent)
	b = text(append(b, `,"call":`...), f.Call.String())
	b = append(b, `,"definition":`...)
	if f.Definition.IsZero() {
		b = append(b, "null"...)
	} else {
		b = text(b, f.Definition.String())
	}
	b = text(append(b, `,"plan":`...), f.Plan)
	b = text(append(b, `,"policy":`...), f.Policy)
	b = text(append(b, `,"request":`...), f.Request)
	b = text(append(b, `,"session":`...), f.Session)
	b = append(b, `,"v":1`...)
	b = text(append(b, `,"workspace":`...), f.Workspace)
	return sha256.Sum256(append(b, '}'))
}
