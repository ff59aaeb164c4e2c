// Package identity holds who is who: agents ask, humans decide.
//
// The two are different types, so an agent cannot be passed where a human is
// needed. Values of these types exist only for verified credentials; this
// package verifies none itself, it only names what was verified.
package identity

import "strings"

// Strength says how a human proved who they are. The zero value is the weakest.
type Strength uint8

// Strengths, weakest first.
const (
	Unproven Strength = iota // nothing was verified: may not decide
	Token                    // a bearer token of the human class
	Session                  // a browser session that began with a one-time link
	Passkey                  // a passkey with user verification, fresh for this decision
)

func (s Strength) String() string {
	switch s {
	case Token:
		return "token"
	case Session:
		return "session"
	case Passkey:
		return "passkey"
	case Unproven:
	}
	return "unproven"
}

// Agent is a caller that may only ask. Every field comes from the verified
// credential or was minted by the gateway; what the agent says of itself is not
// here.
type Agent struct {
	ID        string // configured id, e.g. "release-bot"
	Owner     string // subject of the human it works for, "user:ana"; empty when nobody owns it
	Session   string // bound to the credential: its key, or its connection over stdio
	Workspace string // from the agent's configuration
	Device    string // the credential's device, empty when it has none
}

// IsZero reports whether no agent was verified.
func (a Agent) IsZero() bool { return a.ID == "" }

// Human is a person who may decide and never ask.
type Human struct {
	ID       string // configured id, e.g. "ana"
	Name     string // for display
	Groups   []string
	Strength Strength
}

// IsZero reports whether no person was verified.
func (h Human) IsZero() bool { return h.ID == "" || h.Strength == Unproven }

// Subject is the stable name policies and records use: "user:ana".
func (h Human) Subject() string { return "user:" + h.ID }

// In reports whether the human is meant by a subject such as "user:ana" or
// "group:db-admins". Names are compared as bytes.
func (h Human) In(subject string) bool {
	if id, ok := strings.CutPrefix(subject, "user:"); ok {
		return id == h.ID
	}
	if g, ok := strings.CutPrefix(subject, "group:"); ok {
		for _, have := range h.Groups {
			if have == g {
				return true
			}
		}
	}
	return false
}
