package policy

import (
	"slices"
	"strings"
	"time"
)

// clause is a guard or a rule: when a call matches, it demands its answer.
type clause struct {
	id       string
	patterns []pattern
	when     *expr    // nil: always
	at       Fault    // where only stands
	only     []string // Allow: the arguments a call may have at most; nil: any
	effect   Effect
	demand   demand // Ask, and Deny for its tier
	why      string
	undo     string
	effects  []template
}

func (b *builder) guards(n node) {
	if !n.Present() {
		return
	}
	for _, item := range b.Items(n) {
		f := b.Fields(item, "id", "tool", "when", "deny", "at_least", "why")
		g := clause{id: b.id(item, f["id"]), patterns: b.tools(item, f["tool"]), when: b.when(f["when"]), why: b.optional(f["why"])}
		switch deny, least := f["deny"], f["at_least"]; {
		case deny.Present() == least.Present():
			b.fault(item, "a guard has either deny or at_least")
		case deny.Present():
			g.demand = b.deny(deny)
		default:
			g.effect, g.demand = Ask, b.atLeast(least)
		}
		b.p.guards = append(b.p.guards, g)
	}
}

func (b *builder) rules(n node) {
	if !n.Present() {
		return
	}
	for _, item := range b.Items(n) {
		f := b.Fields(item, "id", "tool", "when", "only", "allow", "ask", "deny", "why", "undo", "effects")
		c := clause{
			id: b.id(item, f["id"]), patterns: b.tools(item, f["tool"]), when: b.when(f["when"]),
			why: b.optional(f["why"]), undo: b.optional(f["undo"]), effects: b.templates(f["effects"]),
		}
		var answers []string
		for _, name := range []string{"allow", "ask", "deny"} {
			if f[name].Present() {
				answers = append(answers, name)
			}
		}
		switch {
		case len(answers) != 1:
			b.fault(item, "a rule has exactly one of allow, ask and deny")
		case answers[0] == "allow":
			c.effect, c.demand = Allow, b.allow(f["allow"])
		case answers[0] == "ask":
			c.effect, c.demand = Ask, b.ask(f["ask"])
		default:
			c.demand = b.deny(f["deny"])
		}
		c.only = b.only(f["only"], &c)
		b.p.rules = append(b.p.rules, c)
	}
}

// id reads the name of a guard, rule or limit, which no other of them may have.
func (b *builder) id(item, n node) string {
	if !n.Present() {
		b.fault(item, "id is missing")
		return ""
	}
	id := b.Text(n)
	switch at, taken := b.ids[id]; {
	case id == "":
	case !idForm.MatchString(id):
		b.fault(n, "%q is not an id: letters, digits, dots, hyphens and underscores, at most 64", id)
	case strings.HasPrefix(id, "defaults."):
		b.fault(n, `ids that begin with "defaults." are the policy's own`)
	case taken:
		b.fault(n, "id %q is already used on line %d", id, at)
	default:
		b.ids[id], _ = place(n)
	}
	return id
}

func (b *builder) tools(item, n node) []pattern {
	if !n.Present() {
		b.fault(item, `tool is missing: write "server.tool", a glob such as "fs.read_*", or "*" for every tool`)
		return nil
	}
	var out []pattern
	for _, t := range b.Texts(n) {
		p, err := parsePattern(b.Text(t))
		if err != "" {
			b.fault(t, "%s", err)
			continue
		}
		out = append(out, p)
	}
	return out
}

// when reads a condition.
func (b *builder) when(n node) *expr {
	return b.expression(n, condition)
}

func (b *builder) expression(n node, want kind) *expr {
	if !n.Present() {
		return nil
	}
	src := b.Text(n)
	if src == "" {
		return nil
	}
	x, errs := b.compiler.compile(src, want)
	for _, err := range errs {
		b.fault(n, "%s", err)
	}
	if x != nil {
		x.at = b.at(n)
	}
	return x
}

// at is where a node stands, for faults that are found after reading.
func (b *builder) at(n node) Fault {
	f := Fault{File: b.File, Path: n.Path}
	f.Line, f.Column = place(n)
	return f
}

func (b *builder) templates(n node) []template {
	if !n.Present() {
		return nil
	}
	var out []template
	for _, item := range b.Texts(n) {
		t, err := parseTemplate(b.Text(item))
		if err != "" {
			b.fault(item, "%s", err)
			continue
		}
		out = append(out, template{b.at(item), t})
	}
	return out
}

// allow reads the answer of a rule that lets a call run. What is hard to undo
// is asked by definition, so an allow reaches up to R2.
func (b *builder) allow(n node) demand {
	f := b.Fields(n, "tier")
	if !f["tier"].Present() {
		b.fault(n, "tier is missing: an allow says R0, R1 or R2")
		return demand{}
	}
	t := b.tier(f["tier"])
	if t >= R3 {
		b.fault(f["tier"], "%s is asked by definition: use ask, or a lower tier if the call can be undone", t)
	}
	return demand{tier: t}
}

// deny reads "deny: true" or "deny: {tier: R4}".
func (b *builder) deny(n node) demand {
	if isTruth(n) {
		if yes, _ := b.Truth(n); !yes {
			b.fault(n, "deny: false says nothing: leave it out")
		}
		return demand{tier: R3}
	}
	f := b.Fields(n, "tier")
	return demand{tier: b.tierOr(f["tier"], R3)}
}

func (b *builder) ask(n node) demand {
	f := b.Fields(n, "of", "tier", "scope", "ttl", "quorum", "confirm", "salient")
	return b.demand(f, "of")
}

func (b *builder) atLeast(n node) demand {
	f := b.Fields(n, "ask", "tier", "scope", "ttl", "quorum", "confirm", "salient")
	return b.demand(f, "ask")
}

// demand reads how a call is asked; set is the name of the key for who decides.
func (b *builder) demand(f map[string]node, set string) demand {
	d := demand{
		of:     b.set(b.setName(f[set])),
		tier:   b.tierOr(f["tier"], R3),
		quorum: int(b.Count(f["quorum"], 1, 100)),
		ttl:    b.ttl(f["ttl"]),
	}
	d.pair = d.quorum == 0 && d.tier == R4
	d.scopes = b.offered(f["scope"], d.tier)
	d.typed = d.tier == R4
	if f["confirm"].Present() {
		for _, item := range b.Texts(f["confirm"]) {
			if b.OneOf(item, string(Typed)) != "" {
				d.typed = true
			}
		}
	}
	d.salient = b.salient(f["salient"])
	b.reachable(f["quorum"], d)
	return d
}

// ttl reads how long an ask waits; the default where it is not said.
func (b *builder) ttl(n node) time.Duration {
	if ttl := b.Length(n, minTTL, maxTTL); ttl != 0 {
		return ttl
	}
	return b.p.defaults.TTL
}

// reachable refuses a quorum that a set of named users can never give.
func (b *builder) reachable(n node, d demand) {
	if people, closed := d.of.people(""); closed && d.quorum > people {
		b.fault(n, "needs %d people, but only %d of %q may approve", d.quorum, people, d.of.Name)
	}
}

// set returns a set of approvers by its checked name, or the default set.
func (b *builder) set(name string) Approvers {
	if name == "" {
		name = b.p.defaults.Of
	}
	return b.p.approvers[name]
}

func (b *builder) tierOr(n node, otherwise RiskTier) RiskTier {
	if !n.Present() {
		return otherwise
	}
	return b.tier(n)
}

// tier reads R0 … R4; one that cannot be read counts as the highest.
func (b *builder) tier(n node) RiskTier {
	tiers := []string{"R0", "R1", "R2", "R3", "R4"}
	if i := slices.Index(tiers, b.OneOf(n, tiers...)); i >= 0 {
		return RiskTier(i)
	}
	return R4
}

// offered reads how far an approval may reach beyond the one call.
func (b *builder) offered(n node, tier RiskTier) []grantScope {
	out := []grantScope{{kind: reachOnce}}
	if !n.Present() {
		return out
	}
	for _, item := range b.Texts(n) {
		s, err := parseGrantScope(b.Text(item))
		switch {
		case err != "":
			b.fault(item, "%s", err)
		case !s.fits(tier):
			b.fault(item, "%q is not offered at %s", s, tier)
		case !slices.Contains(out, s):
			out = append(out, s)
		}
	}
	return out
}

// salient reads the arguments that a typed confirmation repeats.
func (b *builder) salient(n node) []salient {
	if !n.Present() {
		return nil
	}
	var out []salient
	for _, item := range b.Texts(n) {
		p, err := parseArgPath(b.Text(item))
		if err != "" {
			b.fault(item, "%s", err)
			continue
		}
		out = append(out, salient{b.at(item), p})
	}
	return out
}

// grantScope is how far an approval reaches.
type grantScope struct {
	kind   reach
	window time.Duration // of reach window
}

type reach uint8

const (
	reachOnce reach = iota
	reachWindow
	reachSession
	reachWorkspace
)

func parseGrantScope(s string) (grantScope, string) {
	switch s {
	case "once":
		return grantScope{kind: reachOnce}, ""
	case "session":
		return grantScope{kind: reachSession}, ""
	case "workspace":
		return grantScope{kind: reachWorkspace}, ""
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return grantScope{}, `"` + s + `" is not a scope: once, session, workspace or a duration such as 15m`
	}
	if d < minWindow || d > maxWindow {
		return grantScope{}, s + " is not between " + short(minWindow) + " and " + short(maxWindow)
	}
	return grantScope{reachWindow, d}, ""
}

// fits reports whether approvals of a tier may reach so far: R4 once only,
// nothing from R3 up for a whole workspace.
func (s grantScope) fits(t RiskTier) bool {
	switch t {
	case R4:
		return s.kind == reachOnce
	case R3:
		return s.kind != reachWorkspace
	default:
		return true
	}
}

func (s grantScope) String() string {
	switch s.kind {
	case reachSession:
		return "session"
	case reachWorkspace:
		return "workspace"
	case reachWindow:
		return short(s.window)
	default:
		return "once"
	}
}
