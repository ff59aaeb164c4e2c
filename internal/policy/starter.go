package policy

import _ "embed" // the policies that come with ayegate

//go:embed starter.yaml
var starter []byte

//go:embed allowall.yaml
var allowAll []byte

// Starter returns the policy to begin with: nothing runs unasked except what
// MCP clients need to work at all. Its comments say how to go on.
func Starter() []byte { return append([]byte(nil), starter...) }

// AllowAll returns a policy that lets every call run. It is for tests and for
// conformance runs; nobody who has something to lose uses it.
func AllowAll() []byte { return append([]byte(nil), allowAll...) }
