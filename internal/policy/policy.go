// Package policy turns a call into a verdict: deny, ask a person, or allow.
//
// A policy is one strict YAML document, compiled whole or not at all, named by
// the hash of its bytes. Judging runs three phases. Guards are all checked and
// can only make the answer stricter. Rules are tried top to bottom and the first
// match decides. Limits come last and again can only make it stricter. What
// nothing matches is asked. An error while evaluating a guard or a deny is a
// deny; an error in an allow is no match.
//
// The package is pure: no I/O, no clock, no goroutine, no global state. Counters
// of limits belong to the store; [Policy.Charges] says which counters a call
// touches and [Facts] brings their totals. Reading files, reloading and telling
// people are the caller's.
package policy

import (
	"fmt"
	"time"
)

// Effect is the answer of a policy, strictest first. The zero value denies.
type Effect uint8

// Effects.
const (
	Deny Effect = iota
	Ask
	Allow
)

func (e Effect) String() string {
	switch e {
	case Ask:
		return "ask"
	case Allow:
		return "allow"
	case Deny:
	}
	return "deny"
}

// RiskTier says how bad a call can get.
type RiskTier uint8

// Tiers.
const (
	R0 RiskTier = iota // reads, changes nothing
	R1                 // local, easily undone
	R2                 // shared, can be undone
	R3                 // hard to undo, reaches outside, or cannot be inspected
	R4                 // cannot be undone: money, erasure, access, publication
)

func (t RiskTier) String() string { return fmt.Sprintf("R%d", uint8(t)) }

// Word is the tier for people: "none", "low", "medium", "high", "critical".
func (t RiskTier) Word() string {
	switch t {
	case R0:
		return "none"
	case R1:
		return "low"
	case R2:
		return "medium"
	case R3:
		return "high"
	case R4:
	}
	return "critical"
}

// Approvers is a named set of people of the policy, resolved.
type Approvers struct {
	Name  string   // the policy's name for the set; empty: anybody who may decide
	AnyOf []string // subjects: "user:ana", "group:db-admins"
	Not   []string // subjects, or "requester": the human who owns the asking agent
}

// Confirm is a stronger confirmation that an approval must carry.
type Confirm string

// Confirmations.
const (
	Typed Confirm = "typed" // the person types the salient value of this call
)

// Verdict is what a policy says of one call. The zero value denies.
type Verdict struct {
	Effect   Effect
	Tier     RiskTier
	Rule     string        // id of the deciding rule, guard or limit; "defaults.unmatched" when none matched
	Why      string        // the deciding rule's own words
	Undo     string        // rollback note
	Effects  []string      // predicted effects, templates already filled
	Of       Approvers     // Ask: who may decide
	Quorum   int           // Ask: distinct humans needed, at least 1
	Confirm  []Confirm     // Ask: what an approval must carry
	Salient  string        // Ask: what is typed when Confirm has Typed, e.g. "refund 900"
	Scopes   []string      // Ask: scopes the rule offers: "once", "session", "15m", "workspace"
	TTL      time.Duration // Ask: from asking to the deadline of the claim
	Pause    bool          // a limit wants the session paused; the effect is what it would be without
	Output   OutputLimit   // what to do with a large result of the call; zero: nothing
	Revision string        // the policy's hash, "sha256:…"
	Trace    []Step        // every phase's reasons, in order of evaluation
}

// OutputLimit bounds the result of a call: one that is larger is held.
type OutputLimit struct {
	Limit string // the limit's id; empty: no limit
	Bytes int64
}

// Step is one line of a verdict's trace.
type Step struct {
	Phase   string // "guard", "rule", "limit", "default", "tier"
	ID      string
	Through string // the last id, when the step stands for several neighbours; else empty
	Hit     bool
	Note    string // why it hit or not, for people; never argument values
}

// MethodPrefix begins the tool name under which an MCP request that calls no
// tool is judged: "mcp:prompts/get". Such a method has no definition that could
// be pinned, so [Facts.Known] does not concern it. No tool may have such a name.
const MethodPrefix = "mcp:"

// Unmatched is the [Verdict.Rule] of a call that no rule matched.
const Unmatched = "defaults.unmatched"

// Facts is what a policy may know besides the call.
type Facts struct {
	Agent, Owner, Session, Workspace string
	WorkspaceRoot                    string // absolute path that ${workspace} in scopes stands for; empty when unknown: such scopes match nothing
	Now                              time.Time
	Hints                            Hints            // annotations of the tool: may raise a tier, never lower it
	Known                            bool             // the tool's definition is pinned and accepted; unknown raises to R3
	Totals                           map[string]int64 // by Charge.Key: what the store has counted in the window, this call not included
}

// Hints are a tool's annotations as the server claims them; nil means absent.
type Hints struct {
	ReadOnly, Destructive, Idempotent, OpenWorld *bool
}

// Charge is one counter that a call touches, for limits.
type Charge struct {
	Key    string        // stable: limit id, what it is counted by and for whom
	Amount int64         // count: 1; sum: the amount in millionths; denials: 1 per denial
	Window time.Duration // over which the store adds up; 0 with Kind Denials: in a row
	Kind   ChargeKind
	Limit  string // id of the limit
	Pauses bool   // the limit pauses the session when it is reached
}

// ChargeKind says when a charge is taken.
type ChargeKind uint8

// Kinds of charges.
const (
	Count   ChargeKind = iota // when the call is asked or allowed
	Sum                       // when the call is claimed
	Denials                   // when a person denies; an approval resets it
)
