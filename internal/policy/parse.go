package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Bounds of what a policy may say about time.
const (
	DefaultTTL = 5 * time.Minute // from asking to the deadline, where a policy names none
	minTTL     = 5 * time.Second
	maxTTL     = 7 * 24 * time.Hour
	minWindow  = time.Minute // of a scope such as "15m"
	maxWindow  = 24 * time.Hour
	minPer     = time.Second // of a limit
	maxPer     = 366 * 24 * time.Hour
)

// Policy is a parsed, compiled policy. It never changes and is safe for
// concurrent use; the zero value and nil deny everything.
type Policy struct {
	name      string
	revision  string
	defaults  Defaults
	approvers map[string]Approvers
	scopes    map[string]*scope
	guards    []clause
	rules     []clause
	limits    []limit
	index     index // of guards, rules and limits, in this order
}

// Defaults is what the policy says for calls and asks that say nothing else.
type Defaults struct {
	Unmatched Effect        // Ask or Deny, for a call that no rule matches
	TTL       time.Duration // from asking to the deadline of the claim
	OnExpiry  Effect        // always Deny: nobody answering is a no
	Of        string        // approver set of asks that name none; empty: anybody who may decide
	Unknown   Effect        // Ask: a tool whose definition nobody accepted is at least R3; Allow: the rules alone decide
	Opaque    Effect        // Ask: arguments that cannot be inspected are at least R3; Allow: the rules alone decide
}

// Parse reads and compiles a policy. name is what faults call the file. The
// error of a policy that is not accepted is a [Faults] with everything that is
// wrong with it; there is no such thing as half a policy.
func Parse(name string, src []byte) (*Policy, error) {
	r := newReader(name, src)
	doc := r.Document(src)
	sum := sha256.Sum256(src)
	p := &Policy{name: name, revision: "sha256:" + hex.EncodeToString(sum[:])}
	if doc.Present() {
		newBuilder(r, p).build(doc)
	}
	if len(r.Faults) > 0 {
		return nil, r.Faults.InOrder()
	}
	return p, nil
}

// Name returns the name given to [Parse].
func (p *Policy) Name() string { return p.name }

// Revision names the policy: "sha256:" and the hash of its bytes in hex.
func (p *Policy) Revision() string { return p.revision }

// Defaults returns the policy's defaults, completed.
func (p *Policy) Defaults() Defaults { return p.defaults }

// ApproverSets returns the policy's sets of approvers in the order of their names.
func (p *Policy) ApproverSets() []Approvers {
	sets := make([]Approvers, 0, len(p.approvers))
	for _, set := range p.approvers {
		sets = append(sets, Approvers{set.Name, slices.Clone(set.AnyOf), slices.Clone(set.Not)})
	}
	slices.SortFunc(sets, func(a, b Approvers) int { return strings.Compare(a.Name, b.Name) })
	return sets
}

// builder fills a policy from its document.
type builder struct {
	*reader
	p        *Policy
	compiler *compiler
	ids      map[string]int // id to the line that uses it
}

func newBuilder(r *reader, p *Policy) *builder {
	return &builder{reader: r, p: p, ids: map[string]int{}}
}

var (
	idForm      = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	subjectForm = regexp.MustCompile(`^(user|group):[^\s:]{1,128}$`)
)

func (b *builder) build(doc node) {
	f := b.Fields(doc, "version", "defaults", "approvers", "scopes", "guards", "rules", "limits")
	b.version(doc, f["version"])
	b.approvers(f["approvers"])
	b.scopes(f["scopes"])
	b.defaults(f["defaults"])
	b.compiler = newCompiler(b.p.scopes)
	b.guards(f["guards"])
	b.rules(f["rules"])
	b.limits(f["limits"])
	if len(b.Faults) == 0 {
		b.p.index = b.p.buildIndex()
	}
}

func (b *builder) version(doc, n node) {
	if !n.Present() {
		b.fault(doc, `"version: 1" is missing`)
		return
	}
	known := len(b.Faults)
	if v := b.Count(n, 0, 1<<30); v != 1 && len(b.Faults) == known {
		b.fault(n, "version %d is not known here; this ayegate reads version 1", v)
	}
}

func (b *builder) defaults(n node) {
	d := Defaults{Unmatched: Ask, TTL: DefaultTTL, Unknown: Ask, Opaque: Ask}
	if n.Present() {
		f := b.Fields(n, "unmatched", "ttl", "on_expiry", "of", "unknown", "opaque")
		if b.OneOf(f["unmatched"], "ask", "deny") == "deny" {
			d.Unmatched = Deny
		}
		if ttl := b.Length(f["ttl"], minTTL, maxTTL); ttl != 0 {
			d.TTL = ttl
		}
		b.OneOf(f["on_expiry"], "deny")
		d.Of = b.setName(f["of"])
		d.Unknown = b.suspicion(f["unknown"])
		d.Opaque = b.suspicion(f["opaque"])
	}
	b.p.defaults = d
}

// suspicion reads who decides about a suspicious call: people, or the rules alone.
func (b *builder) suspicion(n node) Effect {
	if b.OneOf(n, "ask", "rules") == "rules" {
		return Allow
	}
	return Ask
}

func (b *builder) approvers(n node) {
	b.p.approvers = map[string]Approvers{}
	if !n.Present() {
		return
	}
	for _, m := range b.Members(n) {
		if !idForm.MatchString(m.Name) {
			b.fault(m.Key, "a name is made of letters, digits, dots, hyphens and underscores")
		}
		f := b.Fields(m.Value, "any_of", "not")
		set := Approvers{Name: m.Name, AnyOf: b.subjects(f["any_of"], false), Not: b.subjects(f["not"], true)}
		if !f["any_of"].Present() {
			b.fault(m.Key, "any_of is missing: who may decide?")
		}
		b.p.approvers[m.Name] = set
	}
}

func (b *builder) subjects(n node, requester bool) []string {
	var out []string
	if !n.Present() {
		return nil
	}
	for _, item := range b.Texts(n) {
		s := b.Text(item)
		switch {
		case requester && s == "requester", subjectForm.MatchString(s) && !HasHidden(s):
		case requester:
			b.fault(item, `%q is not a subject: write "user:NAME", "group:NAME" or "requester"`, s)
			continue
		default:
			b.fault(item, `%q is not a subject: write "user:NAME" or "group:NAME"`, s)
			continue
		}
		if slices.Contains(out, s) {
			b.fault(item, "%q is listed twice", s)
			continue
		}
		out = append(out, s)
	}
	return out
}

// setName reads a reference to a set of approvers.
func (b *builder) setName(n node) string {
	if !n.Present() {
		return ""
	}
	name := b.Text(n)
	if _, ok := b.p.approvers[name]; !ok && name != "" {
		b.fault(n, "no approvers are named %q%s", name, meant(name, names(b.p.approvers)))
		return ""
	}
	return name
}

func names[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for name := range m {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

func (b *builder) scopes(n node) {
	b.p.scopes = map[string]*scope{}
	if !n.Present() {
		return
	}
	for _, m := range b.Members(n) {
		f := b.Fields(m.Value, "paths", "domains", "except")
		switch {
		case f["paths"].Present() && f["domains"].Present():
			b.fault(m.Key, "a scope has paths or domains, not both")
		case f["paths"].Present():
			except := b.paths(f["except"])
			for i := range except {
				except[i] = except[i].beneath()
			}
			s := &scope{paths: b.paths(f["paths"]), pathsExcept: except, folded: true}
			for _, p := range slices.Concat(s.paths, s.pathsExcept) {
				s.folded = s.folded && slices.Equal(p.segments, p.folded)
			}
			b.p.scopes[m.Name] = s
		case f["domains"].Present():
			b.p.scopes[m.Name] = &scope{domains: b.domains(f["domains"]), domainsExcept: b.domains(f["except"])}
		default:
			b.fault(m.Key, "a scope needs paths or domains")
		}
	}
}

func (b *builder) paths(n node) []pathPattern {
	if !n.Present() {
		return nil
	}
	var out []pathPattern
	for _, item := range b.Texts(n) {
		p, err := parsePathPattern(b.Text(item))
		if err != "" {
			b.fault(item, "%s", err)
			continue
		}
		out = append(out, p)
	}
	return out
}

func (b *builder) domains(n node) []domainPattern {
	if !n.Present() {
		return nil
	}
	var out []domainPattern
	for _, item := range b.Texts(n) {
		d, err := parseDomainPattern(b.Text(item))
		if err != "" {
			b.fault(item, "%s", err)
			continue
		}
		out = append(out, d)
	}
	return out
}
