package policy

import (
	"slices"
	"time"
)

// Looser says in which way the second of two verdicts on the same call and facts
// is looser than the first, "tier R2 instead of R3"; "" when it is in none. Sets
// of approvers are compared by their subjects, so a set that reaches the same
// people through another group counts as looser.
func Looser(before, after Verdict) string {
	instead := func(what, now, was string) string { return what + " " + now + " instead of " + was }
	switch {
	case after.Effect > before.Effect:
		return instead("decision", after.Effect.String(), before.Effect.String())
	case before.Pause && !after.Pause:
		return "the session is not paused"
	case after.Effect == Deny:
		return ""
	case before.Output.Limit != "" && (after.Output.Limit == "" || after.Output.Bytes > before.Output.Bytes):
		return "larger results pass"
	case after.Tier < before.Tier && after.Effect == before.Effect:
		return instead("tier", after.Tier.String(), before.Tier.String())
	case after.Effect != before.Effect || after.Effect == Allow:
		return ""
	case after.Quorum < before.Quorum:
		return "fewer people are needed"
	case len(after.Confirm) < len(before.Confirm):
		return "no typed confirmation"
	case after.TTL > before.TTL:
		return instead("waits", short(after.TTL), short(before.TTL))
	case !within(after.Of, before.Of):
		return instead("approvers", "of "+after.Of.Name, "those of "+before.Of.Name)
	}
	for _, s := range after.Scopes {
		if !slices.ContainsFunc(before.Scopes, func(b string) bool { return covers(b, s) }) {
			return "scope " + s
		}
	}
	return ""
}

// within reports whether everybody of the set a is of the set b.
func within(a, b Approvers) bool {
	for _, s := range b.Not {
		if !slices.Contains(a.Not, s) {
			return false
		}
	}
	if len(b.AnyOf) == 0 {
		return true
	}
	outside := func(s string) bool { return !slices.Contains(b.AnyOf, s) }
	return len(a.AnyOf) > 0 && !slices.ContainsFunc(a.AnyOf, outside)
}

// covers reports whether one offered scope reaches at least as far as another.
func covers(wide, s string) bool {
	far, err := time.ParseDuration(wide)
	if err != nil {
		return wide == s
	}
	near, err := time.ParseDuration(s)
	return err == nil && far >= near
}
