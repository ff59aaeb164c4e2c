package policy

import (
	"math"
	"strconv"
	"time"

	"cel.dev/cel-go/common/types"

	"github.com/ayegate/ayegate/internal/call"
)

// limit is a bound that makes an answer stricter when it is reached.
type limit struct {
	id       string
	patterns []pattern // nil: every tool
	when     *expr
	kind     limitKind
	by       string
	per      time.Duration
	max      int64 // count, denials: how many; sum: millionths; output: bytes
	sum      *expr
	then     action
	demand   demand // of then: ask
	why      string
}

type limitKind uint8

const (
	counting limitKind = iota
	summing
	refusals
	output
)

type action uint8

const (
	thenAsk action = iota
	thenDeny
	thenPause
	thenHold
)

func (b *builder) limits(n node) {
	if !n.Present() {
		return
	}
	for _, item := range b.Items(n) {
		f := b.Fields(item, "id", "tool", "when", "count", "sum", "denials", "output_bytes", "above", "per", "by", "then", "why")
		l := limit{id: b.id(item, f["id"]), when: b.when(f["when"]), why: b.optional(f["why"])}
		if f["tool"].Present() {
			l.patterns = b.tools(item, f["tool"])
		}
		var kinds []string
		for _, name := range []string{"count", "sum", "denials", "output_bytes"} {
			if f[name].Present() {
				kinds = append(kinds, name)
			}
		}
		if len(kinds) != 1 {
			b.fault(item, "a limit has exactly one of count, sum, denials and output_bytes")
			continue
		}
		b.measure(&l, kinds[0], item, f)
		b.then(&l, item, f["then"])
		b.p.limits = append(b.p.limits, l)
	}
}

// measure reads what a limit counts. Each kind needs its own keys and takes no others.
func (b *builder) measure(l *limit, kind string, item node, f map[string]node) {
	needs := map[string][]string{"count": {"per", "by"}, "sum": {"per", "by", "above"}, "denials": {"by"}, "output_bytes": nil}[kind]
	for _, name := range []string{"above", "per", "by"} {
		needed := false
		for _, n := range needs {
			needed = needed || n == name
		}
		switch {
		case needed && !f[name].Present():
			b.fault(item, "%s is missing: a limit with %s needs it", name, kind)
		case !needed && f[name].Present():
			b.fault(f[name], "a limit with %s takes no %s", kind, name)
		}
	}
	l.by = b.OneOf(f["by"], "session", "agent", "owner", "workspace", "all")
	l.per = b.Length(f["per"], minPer, maxPer)
	switch kind {
	case "count":
		l.kind, l.max = counting, b.Count(f[kind], 0, math.MaxInt32)
	case "sum":
		l.kind, l.sum = summing, b.expression(f[kind], amount)
		if f["above"].Present() {
			l.max = b.amount(f["above"])
		}
	case "denials":
		l.kind, l.max = refusals, b.Count(f[kind], 1, math.MaxInt32)
	default:
		l.kind, l.max = output, b.Size(f[kind])
	}
}

// then reads what happens when the limit is reached.
func (b *builder) then(l *limit, item, n node) {
	l.demand = b.p.bare()
	switch {
	case !n.Present():
		b.fault(item, "then is missing: what happens when the limit is reached?")
	case l.kind == output:
		l.then = thenHold
		b.OneOf(n, "hold_result")
	case !isText(n):
		f := b.Fields(n, "ask", "quorum", "ttl")
		l.demand.of = b.set(b.setName(f["ask"]))
		l.demand.quorum = int(b.Count(f["quorum"], 1, 100))
		l.demand.ttl = b.ttl(f["ttl"])
		if !f["ask"].Present() {
			b.fault(n, "ask is missing: who decides?")
		}
		b.reachable(f["quorum"], l.demand)
	default:
		switch b.OneOf(n, "ask", "deny", "pause_session") {
		case "deny":
			l.then = thenDeny
		case "pause_session":
			l.then = thenPause
		}
	}
}

// outcome is what a limit says of one call.
type outcome struct {
	applies bool
	hit     bool
	charge  int64 // count, sum, denials: what the call adds; 0: nothing
	note    string
}

// weigh asks one limit about the call. What cannot be computed counts as over
// the limit, and adds nothing.
func (e *evaluation) weigh(l *limit) outcome {
	holds, why := e.holds(l.when)
	switch {
	case why != "":
		return outcome{applies: true, hit: true, note: "its condition has no value: " + string(why)}
	case !holds:
		return outcome{note: "its condition is false"}
	}
	switch l.kind {
	case counting:
		return e.over(l, 1, "calls")
	case refusals:
		if e.total(l) >= l.max {
			return outcome{true, true, 1, strconv.FormatInt(l.max, 10) + " denials in a row"}
		}
		return outcome{applies: true, charge: 1, note: "fewer denials in a row"}
	case summing:
		if l.patterns == nil && !e.has(l.sum) {
			return outcome{note: "the call has no such argument"}
		}
		v, why := e.sum(l.sum)
		if why != "" {
			return outcome{applies: true, hit: true, note: "its sum has no value: " + string(why)}
		}
		return e.over(l, v, "sum")
	default:
		return outcome{applies: true}
	}
}

// over compares what was counted, plus this call, with the limit.
func (e *evaluation) over(l *limit, adds int64, what string) outcome {
	total := e.total(l)
	if total < 0 || adds > l.max || total > l.max-adds {
		return outcome{true, true, adds, "over the " + what + " of " + short(l.per)}
	}
	return outcome{applies: true, charge: adds, note: "within the " + what + " of " + short(l.per)}
}

// sum evaluates the amount of a call, in millionths, rounded up.
func (e *evaluation) sum(x *expr) (int64, reason) {
	value, why := e.value(x)
	if why != "" {
		return 0, why
	}
	var text string
	switch v := value.(type) {
	case types.Int:
		text = strconv.FormatInt(int64(v), 10)
	case types.Double:
		text = strconv.FormatFloat(float64(v), 'e', -1, 64)
	default:
		return 0, "it is no number"
	}
	d, ok := parseDecimal(text)
	if !ok {
		return 0, "it is no finite number"
	}
	v, _, ok := d.millionths()
	switch {
	case !ok:
		return 0, "it is too large"
	case v < 0:
		return 0, "it is negative"
	}
	return v, ""
}

func (e *evaluation) total(l *limit) int64 { return e.facts.Totals[e.key(l)] }

// key names the limit's counter for this call.
func (e *evaluation) key(l *limit) string {
	who := ""
	switch l.by {
	case "session":
		who = e.facts.Session
	case "agent":
		who = e.facts.Agent
	case "owner":
		who = e.facts.Owner
	case "workspace":
		who = e.facts.Workspace
	}
	return l.id + "/" + l.by + "/" + who
}

// LookBack is the longest time over which a limit of the policy adds up; 0 where
// none does.
func (p *Policy) LookBack() time.Duration {
	var longest time.Duration
	for i := range p.limits {
		longest = max(longest, p.limits[i].per)
	}
	return longest
}

// Charges lists the counters that a call touches, in the order of the limits. A
// call whose amount cannot be computed touches none: its limit answers as if it
// were reached.
func (p *Policy) Charges(c call.Call, f Facts) []Charge {
	if p == nil || c.IsZero() || len(p.limits) == 0 {
		return nil
	}
	e := evaluation{call: c, facts: &f}
	var out []Charge
	var buf [16]int32
	for _, entry := range p.index.lookup(c, buf[:0]) {
		at := int(entry) - len(p.guards) - len(p.rules)
		if at < 0 {
			continue
		}
		l := &p.limits[at]
		if o := e.weigh(l); o.charge > 0 {
			kind := [...]ChargeKind{counting: Count, summing: Sum, refusals: Denials}[l.kind]
			out = append(out, Charge{Key: e.key(l), Amount: o.charge, Window: l.per, Kind: kind, Limit: l.id, Pauses: l.then == thenPause})
		}
	}
	return out
}
