package policy

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/identity"
)

var policies = flag.Int("policies", 420, "random policies that the two evaluators are compared on, 500 calls each")

// The second evaluator: policies as plain values, judged by a linear scan that
// follows the manual and shares nothing with the compiled form: no index, no
// expressions, no pairwise merging.

type spec struct {
	unmatched     string
	of            string
	unknown       string
	guards, rules []specClause
	limits        []specLimit
	sets          map[string]Approvers
}

type specClause struct {
	id     string
	tools  []string
	when   specWhen
	only   []string // nil: any arguments
	answer string   // "allow", "ask", "deny"
	demand specDemand
}

type specDemand struct {
	of     string // name of a set
	tier   RiskTier
	quorum int
	scopes []string
	typed  bool
	ttl    time.Duration
}

type specLimit struct {
	id    string
	tools []string
	when  specWhen
	count int64
	then  string // "ask", "deny", "pause_session" or a set's name
}

// specWhen is a condition: its text and what it means, where nil stands for an
// error.
type specWhen struct {
	text string
	mean func(args map[string]any) *bool
}

var specConditions = []specWhen{
	{"", func(map[string]any) *bool { return yes() }},
	{"args.n <= 5", func(a map[string]any) *bool { return compare(a["n"], func(n float64) bool { return n <= 5 }) }},
	{"args.n > 3", func(a map[string]any) *bool { return compare(a["n"], func(n float64) bool { return n > 3 }) }},
	{"!(args.n > 3)", func(a map[string]any) *bool { return compare(a["n"], func(n float64) bool { return n <= 3 }) }},
	{"has(args.n)", func(a map[string]any) *bool { _, ok := a["n"]; return truth(ok) }},
	{`args.s == "a"`, func(a map[string]any) *bool {
		if _, ok := a["s"]; !ok {
			return nil
		}
		return truth(a["s"] == "a")
	}},
	{`args.s.startsWith("a")`, func(a map[string]any) *bool {
		s, ok := a["s"].(string)
		if !ok {
			return nil
		}
		return truth(strings.HasPrefix(s, "a"))
	}},
	{`args.n > 3 || args.s == "a"`, func(a map[string]any) *bool {
		left, right := specConditions2[2].mean(a), specConditions2[5].mean(a)
		switch {
		case left != nil && *left || right != nil && *right:
			return yes()
		case left == nil || right == nil:
			return nil
		}
		return no()
	}},
	{`tool == "b"`, nil},
}

var specConditions2 []specWhen

func init() { specConditions2 = specConditions } // the third refers to the others

func truth(b bool) *bool { return &b }

func compare(v any, ok func(float64) bool) *bool {
	n, isNumber := v.(float64)
	if !isNumber {
		return nil
	}
	return truth(ok(n))
}

// outcomeOf is the part of a verdict that is compared.
type outcomeOf struct {
	Effect Effect
	Tier   RiskTier
	Rule   string
	Quorum int
	AnyOf  string
	Not    string
	Scopes string
	Typed  bool
	TTL    time.Duration
	Pause  bool
}

func (s *spec) judge(server, tool string, args map[string]any, f Facts) outcomeOf {
	name := server + "." + tool
	holds := func(w specWhen) *bool {
		if w.mean == nil {
			return truth(tool == "b")
		}
		return w.mean(args)
	}
	var asked []specClause
	denied := ""
	for _, g := range s.guards {
		if !namesTool(g.tools, name) {
			continue
		}
		h := holds(g.when)
		switch {
		case h == nil || *h && g.answer == "deny":
			if denied == "" {
				denied = g.id
				if g.answer == "deny" || h == nil {
					asked = []specClause{g}
				}
			}
		case *h && denied == "":
			asked = append(asked, g)
		}
	}
	if denied != "" {
		return outcomeOf{Rule: denied, Tier: asked[0].demand.tier, Pause: s.pauses(name, holds, f)}
	}
	now := answerNow{spec: s, effect: map[string]Effect{"ask": Ask, "deny": Deny}[s.unmatched], rule: Unmatched, owner: f.Owner}
	now.add("", specDemand{of: s.of, tier: R3, scopes: []string{"once"}, ttl: 5 * time.Minute})
	var rule *specClause
	for i := range s.rules {
		r := &s.rules[i]
		if !namesTool(r.tools, name) {
			continue
		}
		h := holds(r.when)
		if h == nil && r.answer == "ask" {
			asked = append(asked, *r)
		}
		beyond := 0
		for name := range args {
			if r.only != nil && !slices.Contains(r.only, name) {
				beyond++
			}
		}
		if h != nil && *h && beyond == 0 || h == nil && r.answer == "deny" {
			rule = r
			now = answerNow{spec: s, rule: r.id, owner: f.Owner, effect: map[string]Effect{"allow": Allow, "ask": Ask, "deny": Deny}[r.answer]}
			now.add("", r.demand)
			break
		}
	}
	if now.effect == Deny {
		return outcomeOf{Rule: now.rule, Tier: now.tier(), Pause: s.pauses(name, holds, f)}
	}
	now.raise(s, rule, name, f)
	for _, a := range asked {
		now.stricter(a.id, a.demand)
	}
	for _, l := range s.limits {
		if !l.reached(name, holds, f) {
			continue
		}
		switch l.then {
		case "pause_session":
		case "deny":
			return outcomeOf{Rule: l.id, Tier: now.tier(), Pause: s.pauses(name, holds, f)}
		case "ask":
			now.stricter(l.id, specDemand{of: s.of, scopes: []string{"once"}, ttl: 5 * time.Minute})
		default:
			now.stricter(l.id, specDemand{of: l.then, scopes: []string{"once"}, ttl: 5 * time.Minute})
		}
	}
	out := now.outcome()
	out.Pause = s.pauses(name, holds, f)
	return out
}

func (l specLimit) reached(name string, holds func(specWhen) *bool, f Facts) bool {
	if l.tools != nil && !namesTool(l.tools, name) {
		return false
	}
	h := holds(l.when)
	return h == nil || *h && f.Totals[l.id+"/session/"+f.Session]+1 > l.count
}

func (s *spec) pauses(name string, holds func(specWhen) *bool, f Facts) bool {
	return slices.ContainsFunc(s.limits, func(l specLimit) bool { return l.then == "pause_session" && l.reached(name, holds, f) })
}

// answerNow is a list of demands; everything is computed from the whole list.
type answerNow struct {
	spec    *spec
	effect  Effect
	rule    string
	owner   string
	demands []specDemand
	raised  RiskTier
}

func (a *answerNow) add(_ string, d specDemand) { a.demands = append(a.demands, d) }

func (a *answerNow) tier() RiskTier {
	t := a.raised
	for _, d := range a.demands {
		t = max(t, d.tier)
	}
	return t
}

func (a *answerNow) stricter(id string, d specDemand) {
	if a.effect == Allow {
		a.effect, a.rule = Ask, id
		a.raised = max(a.raised, a.tier())
		a.demands = []specDemand{d}
		return
	}
	strength := func() [3]int {
		quorum, typed := 0, 0
		for _, d := range a.demands {
			quorum = max(quorum, a.quorum(d))
			if d.typed || d.tier == R4 {
				typed = 1
			}
		}
		return [3]int{int(a.tier()), quorum, typed}
	}
	before := strength()
	a.demands = append(a.demands, d)
	if strength() != before {
		a.rule = id
	}
}

func (a *answerNow) raise(s *spec, rule *specClause, name string, f Facts) {
	tier := a.tier()
	to := tier
	if !f.Known && s.unknown != "rules" {
		to = max(to, R3)
	}
	if f.Hints.Destructive != nil && *f.Hints.Destructive {
		switch {
		case tier == R0:
			to = max(to, R3)
		case tier == R1 && a.effect == Allow && rule.when.text == "" && !slices.Contains(rule.tools, name):
			to = max(to, R3)
		default:
			to = max(to, R2)
		}
	}
	if f.Hints.ReadOnly != nil && !*f.Hints.ReadOnly {
		to = max(to, R1)
	}
	if f.Hints.OpenWorld != nil && *f.Hints.OpenWorld && tier < R2 {
		to = max(to, tier+1)
	}
	a.raised = max(a.raised, to)
	if a.effect == Allow && to >= R3 {
		a.effect = Ask
		a.demands = []specDemand{{of: s.of, tier: R3, scopes: []string{"once"}, ttl: 5 * time.Minute}}
	}
}

func (a *answerNow) outcome() outcomeOf {
	out := outcomeOf{Effect: a.effect, Tier: a.tier(), Rule: a.rule}
	if a.effect == Allow {
		return out
	}
	var anyOf, not []string
	everybody := true
	for i, d := range a.demands {
		out.Quorum = max(out.Quorum, a.quorum(d), 1)
		out.Typed = out.Typed || d.typed || d.tier == R4
		if i == 0 || d.ttl < out.TTL {
			out.TTL = d.ttl
		}
		set := a.set(d)
		not = append(not, set.Not...)
		if len(set.AnyOf) == 0 {
			continue
		}
		if everybody {
			anyOf, everybody = slices.Clone(set.AnyOf), false
		} else {
			anyOf = slices.DeleteFunc(anyOf, func(s string) bool { return !slices.Contains(set.AnyOf, s) })
		}
	}
	out.Typed = out.Typed || out.Tier == R4
	slices.Sort(not)
	not = slices.Compact(not)
	able, closed := a.able(anyOf, not)
	closed = closed && !everybody
	if slices.Contains(not, "requester") && a.owner == "" {
		able, closed = 0, true
	}
	if closed && able < out.Quorum {
		return outcomeOf{Rule: a.rule, Tier: out.Tier}
	}
	slices.Sort(anyOf)
	out.AnyOf, out.Not = strings.Join(anyOf, " "), strings.Join(not, " ")
	out.Scopes = a.scopes(out.Tier)
	return out
}

func (a *answerNow) set(d specDemand) Approvers {
	if d.of == "" {
		return a.spec.sets[a.spec.of]
	}
	return a.spec.sets[d.of]
}

// quorum is what one demand needs of its own set.
func (a *answerNow) quorum(d specDemand) int {
	set := a.set(d)
	if able, _ := a.able(set.AnyOf, set.Not); d.quorum == 0 && d.tier == R4 && able >= 2 {
		return 2
	}
	return d.quorum
}

// able counts the users who may approve; closed when nobody else can.
func (a *answerNow) able(anyOf, not []string) (n int, closed bool) {
	closed = true
	for _, who := range anyOf {
		switch {
		case strings.HasPrefix(who, "group:"):
			closed = false
		case slices.Contains(not, who), slices.Contains(not, "requester") && who == a.owner:
		default:
			n++
		}
	}
	return n, closed
}

// scopes lists what every demand offers, or offers something longer than.
func (a *answerNow) scopes(tier RiskTier) string {
	var out []string
	for _, d := range a.demands {
	next:
		for _, s := range d.scopes {
			if tier == R4 && s != "once" || tier == R3 && s == "workspace" || slices.Contains(out, s) {
				continue
			}
			for _, other := range a.demands {
				covered := slices.ContainsFunc(other.scopes, func(o string) bool {
					mine, err1 := time.ParseDuration(s)
					theirs, err2 := time.ParseDuration(o)
					return o == s || err1 == nil && err2 == nil && theirs >= mine
				})
				if !covered {
					continue next
				}
			}
			out = append(out, s)
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// namesTool matches globs by trying every split.
func namesTool(tools []string, name string) bool {
	return slices.ContainsFunc(tools, func(t string) bool { return globs(t, name) })
}

func globs(pattern, s string) bool {
	if pattern == "" {
		return s == ""
	}
	if pattern[0] == '*' {
		for i := range len(s) + 1 {
			if globs(pattern[1:], s[i:]) {
				return true
			}
		}
		return false
	}
	return s != "" && s[0] == pattern[0] && globs(pattern[1:], s[1:])
}

// of is the same part of the real verdict.
func of(v Verdict) outcomeOf {
	anyOf, not, scopes := slices.Clone(v.Of.AnyOf), slices.Clone(v.Of.Not), slices.Clone(v.Scopes)
	slices.Sort(anyOf)
	slices.Sort(not)
	slices.Sort(scopes)
	return outcomeOf{v.Effect, v.Tier, v.Rule, v.Quorum, strings.Join(anyOf, " "), strings.Join(not, " "), strings.Join(scopes, " "), slices.Contains(v.Confirm, Typed), v.TTL, v.Pause}
}

// Random policies.

type dice struct{ *rand.Rand }

func pick[T any](d dice, from ...T) T { return from[d.IntN(len(from))] }

func (d dice) tools() []string {
	all := []string{"a.b", "a.c", "a.bc", "x.b", "x.abc", "*", "a.*", "*.b", "*.*c", "a*b*c", "*b*", "x.a*", "x.*c", "a.b*", "**", "*a.b"}
	out := []string{pick(d, all...)}
	if d.IntN(3) == 0 {
		out = append(out, pick(d, all...))
	}
	return out
}

func (d dice) demand() specDemand {
	out := specDemand{of: pick(d, "", "me", "two", "ops", "not"), tier: RiskTier(d.IntN(5)), scopes: []string{"once"}, ttl: pick(d, 5*time.Minute, time.Minute, time.Hour)}
	switch {
	case out.tier < R3:
		out.scopes = append(out.scopes, pick(d, []string{}, []string{"session"}, []string{"workspace", "10m"}, []string{"15m", "5m"}, []string{"session", "workspace", "20m"})...)
	case out.tier == R3:
		out.scopes = append(out.scopes, pick(d, []string{}, []string{"session", "10m"}, []string{"15m"})...)
	}
	if d.IntN(3) == 0 && out.of != "me" {
		out.quorum = 1 + d.IntN(2)
	}
	out.typed = d.IntN(4) == 0
	return out
}

func (d dice) clause(id string, answers ...string) specClause {
	c := specClause{id: id, tools: d.tools(), when: pick(d, specConditions...), answer: pick(d, answers...), demand: d.demand()}
	switch c.answer {
	case "allow":
		c.demand = specDemand{tier: RiskTier(d.IntN(3))}
		c.only = pick(d, nil, nil, []string{"n", "s"}, []string{"s", "n", "x"})
	case "deny":
		c.demand = specDemand{tier: RiskTier(d.IntN(5))}
	}
	return c
}

func (d dice) spec() *spec {
	s := &spec{
		unmatched: pick(d, "ask", "ask", "deny"), of: pick(d, "", "", "two"), unknown: pick(d, "ask", "rules"),
		sets: map[string]Approvers{
			"me": {AnyOf: []string{"user:ana"}}, "two": {AnyOf: []string{"user:ana", "user:raj"}}, "ops": {AnyOf: []string{"group:ops", "user:raj"}},
			"not": {AnyOf: []string{"user:ana", "user:raj", "user:eve"}, Not: []string{"requester"}},
		},
	}
	for i := range d.IntN(3) {
		s.guards = append(s.guards, d.clause("g"+strconv.Itoa(i), "deny", "ask", "ask"))
	}
	for i := range d.IntN(6) {
		s.rules = append(s.rules, d.clause("r"+strconv.Itoa(i), "allow", "allow", "ask", "deny"))
	}
	for i := range d.IntN(3) {
		l := specLimit{id: "l" + strconv.Itoa(i), when: pick(d, specConditions...), count: int64(d.IntN(5)), then: pick(d, "ask", "deny", "pause_session", "two", "not")}
		if d.IntN(2) == 0 {
			l.tools = d.tools()
		}
		s.limits = append(s.limits, l)
	}
	return s
}

func (s *spec) yaml() string {
	var b strings.Builder
	fmt.Fprintf(&b, "version: 1\ndefaults: {unmatched: %s, unknown: %s", s.unmatched, s.unknown)
	if s.of != "" {
		fmt.Fprintf(&b, ", of: %s", s.of)
	}
	b.WriteString("}\napprovers:\n")
	for _, name := range names(s.sets) {
		fmt.Fprintf(&b, "  %s: {any_of: [%s]", name, quotedList(s.sets[name].AnyOf))
		if s.sets[name].Not != nil {
			fmt.Fprintf(&b, ", not: [%s]", quotedList(s.sets[name].Not))
		}
		b.WriteString("}\n")
	}
	section := func(name string, clauses []specClause, ask, of string) {
		fmt.Fprintf(&b, "%s: [", name)
		for _, c := range clauses {
			fmt.Fprintf(&b, "\n  {id: %s, tool: [%s]%s, ", c.id, quotedList(c.tools), when(c.when))
			if c.only != nil {
				fmt.Fprintf(&b, "only: [%s], ", quotedList(c.only))
			}
			if c.answer == "ask" {
				fmt.Fprintf(&b, "%s: {tier: %s, scope: [%s], ttl: %s", ask, c.demand.tier, strings.Join(c.demand.scopes, ", "), c.demand.ttl)
				if c.demand.of != "" {
					fmt.Fprintf(&b, ", %s: %s", of, c.demand.of)
				}
				if c.demand.quorum > 0 {
					fmt.Fprintf(&b, ", quorum: %d", c.demand.quorum)
				}
				if c.demand.typed {
					b.WriteString(", confirm: typed")
				}
			} else {
				fmt.Fprintf(&b, "%s: {tier: %s", c.answer, c.demand.tier)
			}
			b.WriteString("}},")
		}
		b.WriteString("]\n")
	}
	section("guards", s.guards, "at_least", "ask")
	section("rules", s.rules, "ask", "of")
	b.WriteString("limits: [")
	for _, l := range s.limits {
		tools, then := "", l.then
		if l.tools != nil {
			tools = ", tool: [" + quotedList(l.tools) + "]"
		}
		if s.sets[then].AnyOf != nil {
			then = "{ask: " + then + "}"
		}
		fmt.Fprintf(&b, "\n  {id: %s%s%s, count: %d, per: 1m, by: session, then: %s},", l.id, tools, when(l.when), l.count, then)
	}
	b.WriteString("]\n")
	return b.String()
}

func when(w specWhen) string {
	if w.text == "" {
		return ""
	}
	return ", when: " + strconv.Quote(w.text)
}

func quotedList(list []string) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = strconv.Quote(s)
	}
	return strings.Join(out, ", ")
}

// load parses the policy; nil when the demands of a set with its default cannot
// be met, which the parser refuses.
func (s *spec) load(t *testing.T) *Policy {
	t.Helper()
	p, err := Parse("random", []byte(s.yaml()))
	if err != nil {
		if strings.Contains(err.Error(), "may approve") {
			return nil
		}
		t.Fatalf("%v\n%s", err, s.yaml())
	}
	return p
}

type randomCall struct {
	server, tool string
	args         map[string]any
	call         call.Call
	facts        Facts
}

func (d dice) call(t *testing.T) randomCall {
	c := randomCall{server: pick(d, "a", "x", "ab"), tool: pick(d, "b", "c", "bc", "abc", "a", "b.c"), args: map[string]any{}}
	var members []string
	switch n := d.IntN(10); n {
	case 0:
	case 1:
		c.args["n"] = "4"
		members = append(members, `"n":"4"`)
	case 2:
		c.args["n"] = 3.5
		members = append(members, `"n":3.5`)
	default:
		c.args["n"] = float64(n)
		members = append(members, fmt.Sprintf(`"n":%d`, n))
	}
	if s := pick(d, "a", "b", "ab", "7", ""); s != "" {
		c.args["s"] = s
		members = append(members, fmt.Sprintf(`"s":%q`, s))
		if s == "7" {
			c.args["s"] = 7.0
			members[len(members)-1] = `"s":7`
		}
	}
	if d.IntN(3) == 0 {
		c.args["x"] = true
		members = append(members, `"x":true`)
	}
	c.call = mustCall(t, c.server+"."+c.tool, "{"+strings.Join(members, ",")+"}")
	hint := func() *bool { return pick(d, nil, nil, yes(), no()) }
	c.facts = Facts{
		Owner: pick(d, "", "user:ana", "user:zoe"), Session: "s", Known: d.IntN(4) > 0, Totals: map[string]int64{"l0/session/s": int64(d.IntN(6)), "l1/session/s": int64(d.IntN(6))},
		Hints: Hints{ReadOnly: hint(), Destructive: hint(), OpenWorld: hint(), Idempotent: hint()},
	}
	return c
}

// The compiled policy and the naive one agree on random policies and calls.
func TestNaiveEvaluatorAgrees(t *testing.T) {
	d := dice{rand.New(rand.NewPCG(1, 2))}
	pairs, effects := 0, map[Effect]int{}
	for range *policies {
		s := d.spec()
		p := s.load(t)
		if p == nil {
			continue
		}
		for range 500 {
			c := d.call(t)
			want, got := s.judge(c.server, c.tool, c.args, c.facts), of(p.Judge(c.call, c.facts))
			if got != want {
				t.Fatalf("%s.%s %s %+v\ngot  %+v\nwant %+v\n%s", c.server, c.tool, c.call.Args(), c.facts, got, want, s.yaml())
			}
			pairs++
			effects[got.Effect]++
		}
	}
	if pairs < 400**policies || effects[Allow] == 0 || effects[Ask] == 0 {
		t.Errorf("%d pairs, %v", pairs, effects)
	}
	t.Logf("%d pairs: %v", pairs, effects)
}

// looser is [Looser], checked against what people could do.
func looser(before, after Verdict, f Facts) string {
	if how := Looser(before, after); how != "" || after.Effect != Ask || before.Effect != Ask {
		return how
	}
	for _, who := range []identity.Human{{ID: "ana"}, {ID: "raj"}, {ID: "eve"}, {ID: "ola", Groups: []string{"ops"}}, {ID: "mallory"}} {
		if admits(after.Of, who, f.Owner) && !admits(before.Of, who, f.Owner) {
			return who.ID + " may decide"
		}
	}
	return ""
}

func admits(a Approvers, who identity.Human, owner string) bool {
	if len(a.AnyOf) > 0 && !slices.ContainsFunc(a.AnyOf, who.In) {
		return false
	}
	return !slices.ContainsFunc(a.Not, func(s string) bool { return s == "requester" && owner == who.Subject() || who.In(s) })
}

// POL-08: adding a guard, a limit or a deny anywhere loosens no call.
func TestStricterNeverLoosens(t *testing.T) {
	d := dice{rand.New(rand.NewPCG(3, 4))}
	changed := 0
	for range max(*policies/2, 1) {
		s := d.spec()
		more := *s
		at := func(n int) int { return d.IntN(n + 1) }
		switch d.IntN(3) {
		case 0:
			more.guards = slices.Insert(slices.Clone(s.guards), at(len(s.guards)), d.clause("added", "deny", "ask", "ask"))
		case 1:
			more.rules = slices.Insert(slices.Clone(s.rules), at(len(s.rules)), d.clause("added", "deny"))
		default:
			more.limits = slices.Insert(slices.Clone(s.limits), at(len(s.limits)), specLimit{id: "added", when: pick(d, specConditions...), then: pick(d, "ask", "deny", "pause_session", "two", "not")})
		}
		before, after := s.load(t), more.load(t)
		if before == nil || after == nil {
			continue
		}
		for range 200 {
			c := d.call(t)
			v, w := before.Judge(c.call, c.facts), after.Judge(c.call, c.facts)
			if how := looser(v, w, c.facts); how != "" {
				t.Fatalf("%s is looser for %s.%s %s\nbefore %+v\nafter  %+v\n%s", how, c.server, c.tool, c.call.Args(), v, w, more.yaml())
			}
			if of(v) != of(w) {
				changed++
			}
		}
	}
	if changed == 0 {
		t.Error("nothing that was added had an effect")
	}
}
