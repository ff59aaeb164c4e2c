package policy

import (
	"slices"
	"strings"

	"github.com/ayegate/ayegate/internal/call"
)

// Judge says what the policy answers to a call. It never fails: what cannot be
// judged is denied. A nil policy and a zero call are denied.
func (p *Policy) Judge(c call.Call, f Facts) Verdict {
	if p == nil || p.revision == "" || c.IsZero() {
		return Verdict{Tier: R4, Why: "There is no policy or no call to judge.", Trace: []Step{{Phase: "default", ID: Unmatched, Hit: true, Note: "nothing to judge"}}}
	}
	var buf [16]int32
	j := judgement{Policy: p, evaluation: evaluation{call: c, facts: &f}, matches: p.index.lookup(c, buf[:0])}
	j.trace = make([]Step, 0, 2*len(j.matches)+4)
	j.judge()
	return j.verdict()
}

// lookup finds the entries that concern a call.
func (x *index) lookup(c call.Call, out []int32) []int32 {
	var buf [320]byte
	name := append(append(append(buf[:0], c.Server()...), '.'), c.Tool()...)
	return x.find(name, out)
}

// judgement is a verdict in the making: the answer so far, which every phase
// after the rules can only make stricter.
type judgement struct {
	*Policy
	evaluation
	matches []int32 // entries whose patterns name the tool, in order

	effect  Effect
	demand  demand
	rule    *clause // of the rules phase; nil: unmatched
	decider string  // id of what made the answer what it is
	why     string
	pause   bool
	output  OutputLimit
	floor   []*clause // guards that hit, and asks whose condition has no value
	trace   []Step
}

// judge runs the phases. What is known of the call raises the rule's answer before
// the guards add theirs: otherwise a guard could hide that an allow had to be
// asked, and its wider scopes would take the place of "once".
func (j *judgement) judge() {
	if j.guarded() {
		j.decide()
	}
	if j.effect != Deny {
		j.raise()
		for _, c := range j.floor {
			j.stricter(c.id, c.why, c.demand)
		}
	}
	j.limit()
	if j.effect == Ask {
		j.reachable()
	}
}

// note adds a step to the trace.
func (j *judgement) note(phase, id string, hit bool, text string) {
	j.trace = append(j.trace, Step{Phase: phase, ID: id, Hit: hit, Note: text})
}

// skipped notes the neighbours that were passed over because of the tool's name.
func (j *judgement) skipped(phase string, all []clause, from, to int) {
	if from >= to {
		return
	}
	s := Step{Phase: phase, ID: all[from].id, Note: "tool differs"}
	if to-from > 1 {
		s.Through = all[to-1].id
	}
	j.trace = append(j.trace, s)
}

// deny ends the judgement.
func (j *judgement) deny(id, why string, tier RiskTier) {
	j.effect, j.decider, j.why = Deny, id, why
	j.demand = demand{tier: tier}
}

// guarded checks every guard; false means that one of them denies.
func (j *judgement) guarded() bool {
	open, next := true, 0
	for _, entry := range j.matches {
		at := int(entry)
		if at >= len(j.guards) {
			break
		}
		j.skipped("guard", j.guards, next, at)
		next = at + 1
		g := &j.guards[at]
		holds, why := j.holds(g.when)
		switch {
		case why != "":
			j.note("guard", g.id, true, "its condition has no value: "+string(why))
		case !holds:
			j.note("guard", g.id, false, "its condition is false")
			continue
		default:
			j.note("guard", g.id, true, met(g.when))
		}
		if why == "" && g.effect == Ask {
			j.floor = append(j.floor, g)
			continue
		}
		if open {
			j.deny(g.id, because(g.why, why), g.demand.tier)
		}
		open = false
	}
	j.skipped("guard", j.guards, next, len(j.guards))
	return open
}

// because is what a person is told of a guard or a deny: its own words, or why
// its condition has no value.
func because(words string, why reason) string {
	if why == "" {
		return words
	}
	return strings.TrimSpace(words + " Denied because its condition has no value: " + string(why) + ".")
}

func met(x *expr) string {
	if x == nil {
		return "the tool matches"
	}
	return "its condition is true"
}

// decide finds the first rule that matches.
func (j *judgement) decide() {
	next := 0
	for _, entry := range j.matches {
		at := int(entry) - len(j.guards)
		if at < 0 {
			continue
		}
		if at >= len(j.rules) {
			break
		}
		j.skipped("rule", j.rules, next, at)
		next = at + 1
		r := &j.rules[at]
		holds, why := j.holds(r.when)
		switch {
		case why != "" && r.effect == Deny:
			j.note("rule", r.id, true, "its condition has no value: "+string(why))
		case why != "":
			j.note("rule", r.id, false, "its condition has no value: "+string(why))
			if r.effect == Ask {
				// The rule might have asked: no later rule may allow the call.
				j.floor = append(j.floor, r)
			}
			continue
		case !holds:
			j.note("rule", r.id, false, "its condition is false")
			continue
		case !j.within(r):
			j.note("rule", r.id, false, "the call has an argument that its only does not list")
			continue
		default:
			j.note("rule", r.id, true, met(r.when))
		}
		j.rule, j.effect, j.demand, j.decider, j.why = r, r.effect, r.demand.settled(j.facts.Owner), r.id, because(r.why, why)
		return
	}
	j.skipped("rule", j.rules, next, len(j.rules))
	j.note("default", Unmatched, true, "no rule matches")
	j.effect, j.decider, j.why = j.defaults.Unmatched, Unmatched, "No rule of the policy covers this call."
	j.demand = j.suspicious()
}

// suspicious is the demand of an ask that no rule describes.
func (j *judgement) suspicious() demand {
	d := j.bare()
	d.tier = R3
	return d
}

// stricter asks at least as much as d. It takes over the authorship of the
// answer when that made a difference to what is asked.
func (j *judgement) stricter(id, why string, d demand) {
	before, d := j.demand, d.settled(j.facts.Owner)
	if j.effect == Allow {
		j.effect = Ask
		d.tier = max(d.tier, before.tier)
		j.demand = d
	} else {
		j.demand = before.and(d)
		if j.demand.tier == before.tier && j.demand.quorum == before.quorum && j.demand.typed == before.typed {
			return
		}
	}
	j.decider = id
	if why != "" {
		j.why = why
	}
}

// limit weighs the limits that concern the call. A call that is denied anyway
// can still reach the one that pauses its session.
func (j *judgement) limit() {
	for _, entry := range j.matches {
		at := int(entry) - len(j.guards) - len(j.rules)
		if at < 0 {
			continue
		}
		l := &j.limits[at]
		if j.effect == Deny && l.then != thenPause {
			continue
		}
		o := j.weigh(l)
		if l.kind == output {
			if o.applies && (j.output.Limit == "" || l.max < j.output.Bytes) {
				j.output = OutputLimit{l.id, l.max}
			}
			continue
		}
		j.note("limit", l.id, o.hit, o.note)
		if !o.hit {
			continue
		}
		switch l.then {
		case thenPause: // what the session may still do is the desk's to say
			j.pause = true
		case thenAsk:
			j.stricter(l.id, l.why, l.demand)
		default:
			j.deny(l.id, l.why, j.demand.tier)
		}
	}
}

// reachable denies an ask that nobody could ever approve, so that the agent and
// the policy's author hear of it now and not at the deadline.
func (j *judgement) reachable() {
	people, closed := j.demand.of.people(j.facts.Owner)
	if j.facts.Owner == "" && slices.Contains(j.demand.of.Not, "requester") {
		people, closed = 0, true
	}
	j.demand.quorum = max(j.demand.quorum, 1)
	if closed && people < j.demand.quorum {
		j.note("default", "approvers", true, "fewer people may approve than are needed")
		j.deny(j.decider, "Nobody can approve this: "+j.demand.of.Name+" has too few people who may.", j.demand.tier)
	}
}

// verdict writes the judgement down.
func (j *judgement) verdict() Verdict {
	v := Verdict{Effect: j.effect, Tier: j.demand.tier, Rule: j.decider, Why: j.why, Pause: j.pause, Revision: j.revision, Trace: j.trace}
	if j.rule != nil {
		v.Undo = j.rule.undo
		for _, t := range j.rule.effects {
			v.Effects = append(v.Effects, t.fill(&j.evaluation))
		}
	}
	if j.effect == Deny {
		return v
	}
	v.Output = j.output
	if j.effect == Allow {
		return v
	}
	d := &j.demand
	v.Of, v.Quorum, v.TTL = d.of, d.quorum, d.ttl
	if d.typed || d.tier == R4 {
		v.Confirm = []Confirm{Typed}
		v.Salient = j.salient(d.salient)
	}
	for _, s := range d.scopes {
		if s.fits(d.tier) {
			v.Scopes = append(v.Scopes, s.String())
		}
	}
	return v
}

// raise makes the tier fit what the call is, whatever the rule says: it never
// lowers one. An allow that ends up at R3 or above is asked.
func (j *judgement) raise() {
	to, why := R0, ""
	consider := func(t RiskTier, text string) {
		if t > j.demand.tier {
			j.note("tier", t.String(), true, text)
			if t > to {
				to, why = t, text
			}
		}
	}
	if !j.facts.Known && j.defaults.Unknown == Ask && !strings.HasPrefix(j.call.Tool(), MethodPrefix) {
		consider(R3, "nobody has accepted this tool's definition")
	}
	j.hinted(consider)
	if j.defaults.Opaque == Ask {
		switch found := inspect(j.args()); {
		case found.hidden || HasHidden(j.call.Tool()):
			consider(R3, "the call holds hidden characters")
		case found.blob && (j.effect != Allow || j.uninspected(j.rule.when)):
			consider(R3, "the call holds data that cannot be inspected")
		}
	}
	if to <= j.demand.tier {
		return
	}
	j.demand.tier = to
	if j.effect == Allow && to >= R3 {
		j.stricter(j.decider, "Asked although a rule allows it: "+why+".", j.suspicious())
	}
}

// hinted considers the tool's own annotations. They are claims of the server, so
// they count only where they speak against it.
func (j *judgement) hinted(consider func(RiskTier, string)) {
	h, tier := j.facts.Hints, j.demand.tier
	claims := func(hint *bool, value bool) bool { return hint != nil && *hint == value }
	if claims(h.Destructive, true) {
		if tier == R0 || tier == R1 && j.effect == Allow && j.byGlobOnly() {
			consider(R3, "the server calls this tool destructive")
		} else {
			consider(R2, "the server calls this tool destructive")
		}
	}
	if claims(h.ReadOnly, false) {
		consider(R1, "the server says that this tool changes something")
	}
	if claims(h.OpenWorld, true) {
		consider(min(tier+1, R2), "the server says that this tool reaches outside")
	}
}

// byGlobOnly reports whether the deciding rule neither names the tool nor looks
// at the arguments.
func (j *judgement) byGlobOnly() bool {
	if j.rule == nil || j.rule.when != nil {
		return false
	}
	for _, p := range j.rule.patterns {
		if p.exact() && p.text == j.call.Server()+"."+j.call.Tool() {
			return false
		}
	}
	return true
}

// buildIndex files every entry under the tools that it concerns.
func (p *Policy) buildIndex() index {
	x := newIndex()
	entry := 0
	file := func(patterns []pattern) {
		for _, pat := range patterns {
			x.add(entry, pat)
		}
		entry++
	}
	for i := range p.guards {
		file(p.guards[i].patterns)
	}
	for i := range p.rules {
		file(p.rules[i].patterns)
	}
	for i := range p.limits {
		if p.limits[i].patterns == nil {
			file([]pattern{{"*", []string{"", ""}}})
		} else {
			file(p.limits[i].patterns)
		}
	}
	return x
}
