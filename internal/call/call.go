// Package call holds what an agent wants done: one call of one tool, as the bytes that everybody shows, stores, hashes and sends.
//
// A [Call] that exists is canonical and hashed, and never changes. Its bytes are the canonical JSON (see package strictjson) of
//
//	{"args":{…},"server":"…","tool":"…","v":1}
//
// and its hash is their SHA-256. Since the form is one object with a version, no two different calls share bytes, and no call shares
// bytes with anything else that is hashed here: a tool's definition ([DefinitionHash]) or what a person decides about ([DigestFields]).
//
// Not here: whether the call may run, for whom, or what it means.
package call

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"unicode"
	"unicode/utf8"

	"github.com/ayegate/ayegate/internal/strictjson"
)

// The faults of a call.
var (
	ErrServer       = errors.New("invalid server id: want a lower-case letter, then at most 31 lower-case letters, digits and hyphens")
	ErrTool         = errors.New("invalid tool name: want 1 to 256 bytes of UTF-8 without control characters")
	ErrArgs         = errors.New("invalid arguments")
	ErrNotCanonical = errors.New("not the canonical bytes of a call")
)

// MaxTool is the longest tool name in bytes.
const MaxTool = 256

const maxServer = 32

// Call is one call of one tool. Calls can be compared with ==. The zero Call is none.
type Call struct {
	server, tool string
	canonical    string
	args         int // the arguments are canonical[len(head):args]
	hash         Hash
}

const head = `{"args":`

// New makes a call. args is a JSON object of at most 1 MiB; nil or empty means {}.
// An error about args wraps [ErrArgs] and a [*strictjson.Error] that points into them.
func New(server, tool string, args []byte) (Call, error) {
	return Within(strictjson.DefaultBytes, server, tool, args)
}

// Within is [New] with another limit for the size of args.
func Within(bytes int, server, tool string, args []byte) (Call, error) {
	if !serverID(server) {
		return Call{}, ErrServer
	}
	if !toolName(tool) {
		return Call{}, ErrTool
	}
	if len(args) == 0 {
		args = []byte("{}")
	}
	b := make([]byte, 0, len(head)+len(args)+len(server)+len(tool)+64)
	b, err := strictjson.Canonical(append(b, head...), args, strictjson.Limits{Bytes: bytes})
	if err == nil && b[len(head)] != '{' {
		err = &strictjson.Error{Code: strictjson.WrongType}
	}
	if err != nil {
		return Call{}, fmt.Errorf("%w: %w", ErrArgs, err)
	}
	c := Call{server: server, tool: tool, args: len(b)}
	b = strictjson.AppendString(append(b, `,"server":`...), server)
	b = strictjson.AppendString(append(b, `,"tool":`...), tool)
	b = append(b, `,"v":1}`...)
	c.canonical = string(b)
	c.hash = sha256.Sum256(b)
	return c, nil
}

// Parse makes a call of the bytes that [Call.Canonical] returned. Any other bytes are refused with [ErrNotCanonical], also those
// that would mean the same.
func Parse(canonical []byte) (Call, error) {
	args, _ := strictjson.Get(canonical, "args")
	rest := canonical[min(len(head)+len(args), len(canonical)):]
	server, err := textMember(rest, "server")
	if err != nil {
		return Call{}, ErrNotCanonical
	}
	tool, err := textMember(rest, "tool")
	if err != nil {
		return Call{}, ErrNotCanonical
	}
	// What was accepted once, under whatever limit, is accepted again; the comparison makes up for every check left out above.
	c, err := Within(max(len(canonical), 1), server, tool, args)
	if err != nil || c.canonical != string(canonical) {
		return Call{}, ErrNotCanonical
	}
	return c, nil
}

// textMember reads a member of what follows the arguments, which starts with a comma.
func textMember(rest []byte, name string) (string, error) {
	if len(rest) == 0 {
		return "", ErrNotCanonical
	}
	value, _ := strictjson.Get(append([]byte{'{'}, rest[1:]...), name)
	return strictjson.String(value)
}

// serverID accepts ASCII only, one case only and no underscore: no two ids look alike by case or script, and server__tool can be
// taken apart in one way.
func serverID(s string) bool {
	if s == "" || len(s) > maxServer || s[0] < 'a' || s[0] > 'z' {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

func toolName(s string) bool {
	if s == "" || len(s) > MaxTool || !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if unicode.IsControl(r) {
			return false
		}
	}
	return true
}

// Server returns the id of the server that has the tool.
func (c Call) Server() string { return c.server }

// Tool returns the tool's name.
func (c Call) Tool() string { return c.tool }

// Args returns the arguments, a canonical JSON object. The bytes are the caller's own. A zero Call has none.
func (c Call) Args() []byte {
	if c.IsZero() {
		return nil
	}
	return []byte(c.canonical[len(head):c.args])
}

// Canonical returns the canonical bytes of the whole call. They are the caller's own.
func (c Call) Canonical() []byte { return []byte(c.canonical) }

// Hash returns the SHA-256 of the canonical bytes.
func (c Call) Hash() Hash { return c.hash }

// IsZero tells whether c is the zero Call, which is no call.
func (c Call) IsZero() bool { return c.canonical == "" }
