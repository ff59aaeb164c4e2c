package mcp

import (
	"errors"
	"fmt"

	"github.com/ayegate/ayegate/internal/strictjson"
)

// maxID bounds an id, in bytes of JSON.
const maxID = 256

// checkID accepts the JSON-RPC ids that MCP allows: a string, or an integer
// without fraction and exponent. Null, which JSON-RPC tolerates, is refused.
func checkID(id []byte) error {
	switch {
	case len(id) > maxID:
		return fmt.Errorf("the id is longer than %d bytes", maxID)
	case len(id) >= 2 && id[0] == '"':
		return nil
	case isInteger(id):
		return nil
	}
	return errors.New("the id must be a string or an integer")
}

// isInteger reports whether a JSON value is an integer in its only spelling.
// Minus zero is not: a peer would echo it as zero.
func isInteger(v []byte) bool {
	if len(v) > 0 && v[0] == '-' {
		v = v[1:]
		if len(v) > 0 && v[0] == '0' {
			return false
		}
	}
	for _, c := range v {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(v) > 0
}

// IDKey returns what an id is equal by: ids that a peer may spell in more than
// one way ("a" and "\u0061") have the same key, the string "1" and the number 1
// have not.
func IDKey(id []byte) string {
	if len(id) == 0 || id[0] != '"' {
		return string(id)
	}
	s, err := strictjson.String(id)
	if err != nil {
		return string(id)
	}
	return `"` + s
}
