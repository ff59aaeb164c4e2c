package policy

import (
	"slices"
	"time"
)

// demand is how a call is asked: who, how many, how sure, how far.
type demand struct {
	of      Approvers
	tier    RiskTier
	quorum  int  // named people; 0: not said
	pair    bool // R4 without a named quorum: two people where there are two
	scopes  []grantScope
	typed   bool
	ttl     time.Duration
	salient []salient
}

// salient is an argument that a typed confirmation repeats.
type salient struct {
	at   Fault
	path argPath
}

// bare is the demand of an ask that says nothing, at the lowest tier.
func (p *Policy) bare() demand {
	return demand{of: p.approvers[p.defaults.Of], scopes: []grantScope{{kind: reachOnce}}, ttl: p.defaults.TTL}
}

// settled is the demand for an agent of this owner, with a quorum of two where
// its own set has two people, however much another set narrows it later.
func (d demand) settled(owner string) demand {
	if n, _ := d.of.people(owner); d.pair && n >= 2 {
		d.quorum = 2
	}
	return d
}

// and is the demand that meets both. The result is never weaker than either:
// only people of both sets decide, the higher tier and quorum count, a scope
// stays when both offer it, the shorter time holds.
func (d demand) and(o demand) demand {
	d.of = d.of.and(o.of)
	d.tier = max(d.tier, o.tier)
	d.quorum = max(d.quorum, o.quorum)
	d.typed = d.typed || o.typed
	d.scopes = shared(d.scopes, o.scopes)
	d.ttl = min(d.ttl, o.ttl)
	if d.salient == nil {
		d.salient = o.salient
	}
	return d
}

// shared keeps what both sides offer; a window stays where the other side offers
// one at least as long.
func shared(a, b []grantScope) []grantScope {
	var out []grantScope
	keep := func(from, other []grantScope) {
		for _, s := range from {
			ok := slices.ContainsFunc(other, func(o grantScope) bool { return o.kind == s.kind && o.window >= s.window })
			if ok && !slices.Contains(out, s) {
				out = append(out, s)
			}
		}
	}
	keep(a, b)
	keep(b, a)
	return out
}

// and is the set of people who are in both sets, as far as subjects tell: a
// group's members are not known here, so a user of one set and a group of the
// other have nobody in common. Nobody at all is a set with an empty subject.
func (a Approvers) and(o Approvers) Approvers {
	switch {
	case len(o.AnyOf) == 0 && len(o.Not) == 0:
		return a
	case len(a.AnyOf) == 0 && len(a.Not) == 0:
		return o
	}
	out := Approvers{Name: a.Name, AnyOf: a.AnyOf, Not: slices.Clone(a.Not)}
	if o.Name != a.Name {
		out.Name = a.Name + " and " + o.Name
	}
	for _, s := range o.Not {
		if !slices.Contains(out.Not, s) {
			out.Not = append(out.Not, s)
		}
	}
	if len(o.AnyOf) > 0 {
		out.AnyOf = nil
		for _, s := range a.AnyOf {
			if slices.Contains(o.AnyOf, s) {
				out.AnyOf = append(out.AnyOf, s)
			}
		}
		if len(out.AnyOf) == 0 {
			out.AnyOf = []string{""}
		}
	}
	return out
}

// people counts the users of the set who may approve a call of an agent with
// this owner. closed is true when nobody else can: no groups, and not anybody.
func (a Approvers) people(owner string) (n int, closed bool) {
	closed = len(a.AnyOf) > 0
	for _, s := range a.AnyOf {
		switch {
		case len(s) > 6 && s[:6] == "group:":
			closed = false
		case s == "" || slices.Contains(a.Not, s):
		case owner != "" && s == owner && slices.Contains(a.Not, "requester"):
		default:
			n++
		}
	}
	return n, closed
}
