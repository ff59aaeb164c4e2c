package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ayegate/ayegate/internal/call"
)

// TestRoot is the root of the workspace for a case that names none, so that
// relative paths and ${workspace} have a meaning in tests.
const TestRoot = "/workspace"

// Case is one test of a policy: a call, what is known besides, and the verdict
// that the author of the policy expects.
type Case struct {
	Name  string
	Call  call.Call
	Facts Facts
	Prior map[string]int64 // by limit: what was counted before, in millionths
	Want  Want
	Line  int
}

// Want is what a case expects. Empty fields are not compared.
type Want struct {
	Decision string // "allow", "ask" or "deny"
	Tier     string // "R0" … "R4"
	Rule     string // the rule that matched, or "defaults.unmatched"
	Guard    string // a guard that hit
	Limit    string // a limit that was reached
	Quorum   int
	Of       string
	Scopes   []string
	Pause    string // "true" or "false"
}

// Result is what became of one case.
type Result struct {
	Case    Case
	Verdict Verdict
	Faults  []string // what differs, "tier: want R4, got R3"; empty: passed
}

// OK reports whether the case passed.
func (r Result) OK() bool { return len(r.Faults) == 0 }

// Test judges every case.
func (p *Policy) Test(cases []Case) []Result {
	out := make([]Result, len(cases))
	for i, c := range cases {
		faults := p.prior(&c)
		v := p.Judge(c.Call, c.Facts)
		out[i] = Result{c, v, append(faults, c.Want.differences(v)...)}
	}
	return out
}

// prior puts what a case says was counted before where Judge looks for it.
func (p *Policy) prior(c *Case) (faults []string) {
	c.Facts.Totals = map[string]int64{}
	e := evaluation{call: c.Call, facts: &c.Facts}
	for id, total := range c.Prior {
		i := slices.IndexFunc(p.limits, func(l limit) bool { return l.id == id })
		if i < 0 {
			faults = append(faults, fmt.Sprintf("totals: the policy has no limit %q", id))
			continue
		}
		if p.limits[i].kind != summing {
			total /= million
		}
		c.Facts.Totals[e.key(&p.limits[i])] = total
	}
	slices.Sort(faults)
	return faults
}

func (w Want) differences(v Verdict) []string {
	var out []string
	compare := func(what, want, got string) {
		if want != "" && want != got {
			out = append(out, fmt.Sprintf("%s: want %s, got %s", what, want, got))
		}
	}
	compare("decision", w.Decision, v.Effect.String())
	compare("tier", w.Tier, v.Tier.String())
	compare("rule", w.Rule, v.hit("rule", "default"))
	if w.Quorum != 0 {
		compare("quorum", strconv.Itoa(w.Quorum), strconv.Itoa(v.Quorum))
	}
	compare("of", w.Of, v.Of.Name)
	compare("pause", w.Pause, strconv.FormatBool(v.Pause))
	if w.Scopes != nil {
		compare("scope", strings.Join(w.Scopes, ", "), strings.Join(v.Scopes, ", "))
	}
	for _, one := range []struct{ phase, id string }{{"guard", w.Guard}, {"limit", w.Limit}} {
		hit := func(s Step) bool { return s.Phase == one.phase && s.ID == one.id && s.Hit }
		if one.id != "" && !slices.ContainsFunc(v.Trace, hit) {
			out = append(out, fmt.Sprintf("%s: want a hit of %s, got %s", one.phase, one.id, v.hit(one.phase)))
		}
	}
	return out
}

// hit names the first step of the phases that hit; "none" when none did.
func (v Verdict) hit(phases ...string) string {
	for _, s := range v.Trace {
		if s.Hit && slices.Contains(phases, s.Phase) {
			return s.ID
		}
	}
	return "none"
}

// ParseTests reads a file of cases. Its error is a [Faults].
func ParseTests(name string, src []byte) ([]Case, error) {
	r := &caseReader{newReader(name, src)}
	var out []Case
	if doc := r.Document(src); doc.Present() {
		f := r.Fields(doc, "cases")
		if !f["cases"].Present() {
			r.fault(doc, `"cases" is missing`)
		} else {
			for _, item := range r.Items(f["cases"]) {
				out = append(out, r.read(item))
			}
		}
	}
	if len(r.Faults) > 0 {
		return nil, r.Faults.InOrder()
	}
	return out, nil
}

type caseReader struct{ *reader }

func (r *caseReader) read(item node) Case {
	f := r.Fields(item, "name", "call", "agent", "owner", "session", "workspace", "workspace_root", "now", "known", "hints", "totals", "expect")
	c := Case{Name: r.optional(f["name"]), Prior: r.totals(f["totals"]), Want: r.want(item, f["expect"])}
	c.Line, _ = place(item)
	c.Call = r.call(item, f["call"])
	c.Facts = Facts{
		Agent: r.optional(f["agent"]), Owner: r.optional(f["owner"]), Session: r.optional(f["session"]), Workspace: r.optional(f["workspace"]),
		WorkspaceRoot: TestRoot, Known: true, Hints: r.hints(f["hints"]),
	}
	if f["workspace_root"].Present() {
		c.Facts.WorkspaceRoot = r.Text(f["workspace_root"])
	}
	if f["known"].Present() {
		c.Facts.Known, _ = r.Truth(f["known"])
	}
	if now := r.optional(f["now"]); now != "" {
		at, err := time.Parse(time.RFC3339, now)
		if err != nil {
			r.fault(f["now"], `%q is not a time such as "2026-11-20T09:30:00Z"`, now)
		}
		c.Facts.Now = at
	}
	if c.Name == "" {
		r.fault(item, "name is missing")
	}
	return c
}

// call reads {tool: server.tool, args: {…}}.
func (r *caseReader) call(item, n node) call.Call {
	if !n.Present() {
		r.fault(item, "call is missing")
		return call.Call{}
	}
	f := r.Fields(n, "tool", "args")
	server, tool, ok := strings.Cut(r.optional(f["tool"]), ".")
	if !ok {
		r.fault(n, `tool is missing: write "server.tool"`)
		return call.Call{}
	}
	args := []byte("{}")
	if f["args"].Present() {
		args = r.json(nil, f["args"])
	}
	c, err := call.New(server, tool, args)
	if err != nil {
		r.fault(n, "%s", err)
	}
	return c
}

func (r *caseReader) want(item, n node) Want {
	if !n.Present() {
		r.fault(item, "expect is missing")
		return Want{}
	}
	f := r.Fields(n, "decision", "tier", "rule", "guard", "limit", "quorum", "of", "scope", "pause")
	w := Want{
		Decision: r.OneOf(f["decision"], "allow", "ask", "deny"),
		Tier:     r.OneOf(f["tier"], "R0", "R1", "R2", "R3", "R4"),
		Rule:     r.optional(f["rule"]), Guard: r.optional(f["guard"]), Limit: r.optional(f["limit"]),
		Quorum: int(r.Count(f["quorum"], 1, 100)), Of: r.optional(f["of"]),
	}
	if f["scope"].Present() {
		for _, s := range r.Texts(f["scope"]) {
			w.Scopes = append(w.Scopes, r.Text(s))
		}
	}
	if f["pause"].Present() {
		pause, _ := r.Truth(f["pause"])
		w.Pause = strconv.FormatBool(pause)
	}
	if len(f) == 0 {
		r.fault(n, "expect says nothing")
	}
	return w
}

func (r *caseReader) hints(n node) Hints {
	if !n.Present() {
		return Hints{}
	}
	f := r.Fields(n, "read_only", "destructive", "idempotent", "open_world")
	one := func(name string) *bool {
		if !f[name].Present() {
			return nil
		}
		v, ok := r.Truth(f[name])
		if !ok {
			return nil
		}
		return &v
	}
	return Hints{ReadOnly: one("read_only"), Destructive: one("destructive"), Idempotent: one("idempotent"), OpenWorld: one("open_world")}
}

// totals reads what was counted before, by limit.
func (r *caseReader) totals(n node) map[string]int64 {
	if !n.Present() {
		return nil
	}
	out := map[string]int64{}
	for _, m := range r.Members(n) {
		out[m.Name] = r.amount(m.Value)
	}
	return out
}
