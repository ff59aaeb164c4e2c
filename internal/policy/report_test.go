package policy

import (
	"encoding/xml"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

func TestExplain(t *testing.T) {
	p := example(t)
	f := known
	f.Totals = map[string]int64{"spend/workspace/shop": 120_000_000}
	var b strings.Builder
	if err := p.Judge(mustCall(t, "payments.refund", `{"amount_usd":900,"charge":"ch_1"}`), f).Explain(&b); err != nil {
		t.Fatal(err)
	}
	want := `ask   R4   2 people from oncall   typed confirmation   once only   expires in 5m

guards     erasure-is-never-routine                  no   tool differs
rules      read-inside-repo ... shell-anything-else  no   tool differs
           small-refund                              no   its condition is false
           refund                                    no   its condition is false
           big-refund                                yes  the tool matches
limits     burst                                     no   within the calls of 1m
           spend                                     hit  over the sum of 24h
           same-denial                               no   fewer denials in a row

decided    big-refund
why        Money leaves the company and does not come back by itself.
effect     Pays 900 USD to the holder of ch_1
to type    refund 900
results    over 1000000 bytes are held by big-results
policy     ` + p.Revision() + "\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	if err := (Verdict{}).Explain(failing{}); err == nil {
		t.Error("a failed write is no error")
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestSummary(t *testing.T) {
	for want, v := range map[string]Verdict{
		"deny   R3   hard":                                         {Tier: R3, Rule: "hard"},
		"deny   R1   pauses the session   again":                   {Tier: R1, Rule: "again", Pause: true},
		"allow   R0   results over 5 bytes are held   open":        {Effect: Allow, Rule: "open", Output: OutputLimit{"big", 5}},
		"ask   R1   1 person   once, session   expires in 1h":      {Effect: Ask, Tier: R1, Quorum: 1, Scopes: []string{"once", "session"}, TTL: time.Hour},
		"ask   R3   3 people from ops   once only   expires in 9s": {Effect: Ask, Tier: R3, Quorum: 3, Of: Approvers{Name: "ops"}, Scopes: []string{"once"}, TTL: 9 * time.Second},
	} {
		if got := v.Summary(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A case that does not come out as expected says what was wanted and what came.
func TestCasesThatFail(t *testing.T) {
	cases, err := ParseTests("t.yaml", []byte(`cases:
  - name: all wrong
    call: {tool: fs.read_file, args: {path: a.go, head: 1.5, tail: [true, null, "", "x", {y: false}]}}
    workspace_root: /srv
    agent: bot
    owner: user:ana
    session: s
    workspace: w
    now: "2026-11-20T09:30:00Z"
    known: true
    hints: {read_only: true, destructive: false, idempotent: true, open_world: false}
    totals: {burst: 1, nothing: 2}
    expect: {decision: ask, tier: R1, rule: x, guard: g, limit: l, quorum: 2, of: me, scope: [once, session], pause: true}
  - name: right
    call: {tool: fs.read_file, args: {path: a.go}}
    expect: {decision: allow, pause: false}
`))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(cases[0].Call.Args()); got != `{"head":1.5,"path":"a.go","tail":[true,null,"","x",{"y":false}]}` {
		t.Error(got)
	}
	if cases[0].Facts.Now.Hour() != 9 || cases[0].Facts.WorkspaceRoot != "/srv" || !*cases[0].Facts.Hints.ReadOnly || cases[1].Facts.WorkspaceRoot != TestRoot || !cases[1].Facts.Known {
		t.Errorf("%+v", cases[0].Facts)
	}
	results := example(t).Test(cases)
	want := []string{
		`totals: the policy has no limit "nothing"`, "decision: want ask, got allow", "tier: want R1, got R0", "rule: want x, got read-inside-repo", "quorum: want 2, got 0",
		"of: want me, got ", "pause: want true, got false", "scope: want once, session, got ", "guard: want a hit of g, got none", "limit: want a hit of l, got none",
	}
	if got := strings.Join(results[0].Faults, "|"); got != strings.Join(want, "|") || results[0].OK() || !results[1].OK() {
		t.Error(got)
	}

	var b strings.Builder
	if err := WriteJUnit(&b, results); err != nil {
		t.Fatal(err)
	}
	var suite struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Cases    []struct {
			Name    string `xml:"name,attr"`
			Failure *struct {
				Message string `xml:"message,attr"`
				Text    string `xml:",chardata"`
			} `xml:"failure"`
		} `xml:"testcase"`
	}
	if err := xml.Unmarshal([]byte(b.String()), &suite); err != nil {
		t.Fatal(err)
	}
	if suite.Tests != 2 || suite.Failures != 1 || suite.Cases[0].Failure == nil || suite.Cases[1].Failure != nil || !strings.Contains(suite.Cases[0].Failure.Message, "want ask, got allow") ||
		!strings.Contains(suite.Cases[0].Failure.Text, "read-inside-repo") {
		t.Errorf("%+v\n%s", suite, b.String())
	}
	if WriteJUnit(failing{}, results) == nil {
		t.Error("a failed write is no error")
	}
}

func TestCasesAreStrict(t *testing.T) {
	whole := func(s string) string { return "cases:\n  - {name: n, " + s + "}\n" }
	for src, want := range map[string]string{
		"":                               "empty",
		"tests: []\n":                    "unknown key",
		"version: 1\n":                   `"cases" is missing`,
		"cases: {}\n":                    "must be a list",
		"cases: [{}]\n":                  "name is missing",
		whole("call: {tool: a.b}"):       "expect is missing",
		whole("expect: {decision: ask}"): "call is missing",
		whole("call: {tool: ab}, expect: {decision: ask}"):                                         `"server.tool"`,
		whole("call: {args: {}}, expect: {decision: ask}"):                                         `"server.tool"`,
		whole("call: {tool: A.b}, expect: {decision: ask}"):                                        "invalid server",
		whole("call: {tool: a.b, args: [1]}, expect: {decision: ask}"):                             "invalid arguments",
		whole("call: {tool: a.b, args: {a: 0x10}}, expect: {decision: ask}"):                       "a number as in JSON",
		whole("call: {tool: a.b, args: {a: .inf}}, expect: {decision: ask}"):                       "a number as in JSON",
		whole("call: {tool: a.b, args: {a: 1, a: 2}}, expect: {decision: ask}"):                    "written twice",
		whole("call: {tool: a.b, args: {a: &x 1, b: *x}}, expect: {decision: ask}"):                "anchors and aliases",
		whole("call: {tool: a.b}, expect: {}"):                                                     "expect says nothing",
		whole("call: {tool: a.b}, expect: {decision: maybe}"):                                      "not one of allow",
		whole("call: {tool: a.b}, expect: {pause: 1}"):                                             "true or false",
		whole("call: {tool: a.b}, expect: {decisoin: ask}"):                                        `did you mean "decision"?`,
		whole("call: {tool: a.b}, expect: {decision: ask}, now: today"):                            "is not a time",
		whole("call: {tool: a.b}, expect: {decision: ask}, known: maybe"):                          "true or false",
		whole("call: {tool: a.b}, expect: {decision: ask}, hints: {destructive: maybe}"):           "true or false",
		whole("call: {tool: a.b}, expect: {decision: ask}, totals: {spend: much}"):                 "must be a number",
		whole("call: {tool: a.b}, expect: {decision: ask}, totals: {spend: '5'}"):                  "must be a number",
		whole("call: {tool: a.b}, expect: {decision: ask}, totals: {spend: 0.00000001}"):           "must be a number",
		whole("call: {tool: a.b}, expect: {decision: ask}, totals: {spend: 99999999999999999999}"): "must be a number",
	} {
		cases, err := ParseTests("t.yaml", []byte(src))
		if err == nil || cases != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", src, err, want)
		}
	}
}

// A misspelt argument and a wrong type are found against the tool's schema, not
// when the first call is asked because of them.
func TestCheckSchema(t *testing.T) {
	p := mustParse(t, people+`
scopes: {s: {paths: ["/srv/**"]}}
guards:
  - {id: g, tool: pay.refund, when: has(args.amuont), deny: true}
rules:
  - {id: r1, tool: "pay.*", when: args.amuont > 5, ask: {tier: R4, salient: args.chrage}, effects: ["Pays {args.amount} to {args.to.nam}"]}
  - {id: r2, tool: pay.refund, when: args.charge > 3, deny: true}
  - {id: r3, tool: pay.refund, when: 'args.count == 9007199254740993 && args.amount <= 2.5 && args.to.name == "x" && args.tags.exists(t, t == "x") && args.flag', deny: true}
  - {id: r4, tool: pay.refund, when: args.to.nam == "x", deny: true}
  - {id: r5, tool: pay.refund, when: 'inside(args.count, "s")', deny: true}
  - {id: r6, tool: pay.refund, when: 'args["amuont"] > 5', deny: true}
  - {id: r7, tool: pay.refund, when: '"x" in args && args[tool] == 5', deny: true}
  - {id: r8, tool: pay.refund, when: args.free.anything == 1 && args.open.anything == 1 && args.choice.anything == 1 && args.any > 3, deny: true}
  - {id: r9, tool: other.x, when: args.nothing == 1, deny: true}
limits:
  - {id: l1, sum: args.amuont, per: 1h, by: all, above: 1, then: ask}
  - {id: l2, tool: pay.refund, when: args.flga, sum: args.amuont, per: 1h, by: all, above: 1, then: ask}
`)
	schema := `{"type":"object","properties":{"amount":{"type":"number"},"count":{"type":"integer"},"charge":{"type":"string"},"flag":{"type":"boolean"},
		"tags":{"type":"array","items":{"type":"string"}},"list":{"type":"array"},"to":{"type":"object","properties":{"name":{"type":"string"},"odd":true},"additionalProperties":false},
		"free":{"type":"object","properties":{"a":{}},"additionalProperties":true},"open":{"type":"object","properties":{},"additionalProperties":{"type":"string"}},
		"choice":{"oneOf":[{"type":"object"}]},"any":{}}}`
	var got []string
	for _, f := range p.CheckSchema("pay.refund", []byte(schema)) {
		got = append(got, strings.TrimPrefix(f.String(), "policy.yaml:"))
	}
	want := []string{
		`12:37: guards[0].when: pay.refund has no argument "args.amuont"; did you mean "amount"?`,
		`14:35: rules[0].when: pay.refund has no argument "args.amuont"; did you mean "amount"?`,
		`14:77: rules[0].ask.salient: pay.refund has no argument "args.chrage"; did you mean "charge"?`,
		`14:101: rules[0].effects[0]: pay.refund has no argument "args.to.nam"; did you mean "name"?`,
		`15:38: rules[1].when: does not fit pay.refund: at 1:13 of the expression: found no matching overload for '_>_' applied to '(string, int)'`,
		`17:38: rules[3].when: pay.refund has no argument "args.to.nam"; did you mean "name"?`,
		`18:38: rules[4].when: does not fit pay.refund: at 1:7 of the expression: found no matching overload for 'inside' applied to '(int, string, string)'`,
		`19:38: rules[5].when: pay.refund has no argument "args.amuont"; did you mean "amount"?`,
		`25:38: limits[1].when: pay.refund has no argument "args.flga"; did you mean "flag"?`,
		`25:54: limits[1].sum: pay.refund has no argument "args.amuont"; did you mean "amount"?`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, open := range []string{`{}`, `{"type":"object"}`, `{"$ref":"#/x","properties":{}}`, `{"type":"object","properties":{"amount":true,"amuont":5,"chrage":{},"to":true,"charge":{},"count":{},"flga":{}},"additionalProperties":true}`} {
		if faults := p.CheckSchema("pay.refund", []byte(open)); len(faults) > 0 {
			t.Errorf("%s: %v", open, Faults(faults))
		}
	}
	for _, broken := range []string{"", "[]", "{", `{"a":1,"a":2}`} {
		if faults := p.CheckSchema("pay.refund", []byte(broken)); len(faults) != 1 || !strings.Contains(faults[0].Text, "cannot be read") {
			t.Errorf("%s: %v", broken, faults)
		}
	}
	if faults := p.CheckSchema("unknown.tool", []byte(schema)); len(faults) > 0 {
		t.Error(faults)
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"testdata/example.yaml", "testdata/example_test.yaml"} {
		src, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(src))
	}
	f.Add("version: 1\nrules: [{id: a, tool: '*', when: \"args.x.matches('(?i)a+')\", allow: {tier: R0}}]")
	f.Add(string(Starter()))
	c := mustCall(f, "payments.refund", `{"amount_usd":5,"path":"x","sql":"select 1","command":"git status"}`)
	f.Fuzz(func(t *testing.T, src string) {
		p, err := Parse("fuzz", []byte(src))
		if (p == nil) == (err == nil) {
			t.Fatal(p, err)
		}
		if p != nil {
			v := p.Judge(c, known)
			if v.Effect == Allow && v.Tier >= R3 || v.Effect == Ask && (v.Quorum < 1 || v.TTL <= 0 || len(v.Scopes) == 0) {
				t.Fatalf("%+v", v)
			}
			p.Charges(c, known)
		}
		_, _ = ParseTests("fuzz", []byte(src))
	})
}

func TestLooser(t *testing.T) {
	ask := Verdict{Effect: Ask, Tier: R3, Quorum: 2, Confirm: []Confirm{Typed}, TTL: time.Minute, Scopes: []string{"once", "15m"}, Of: Approvers{"two", []string{"user:ana", "user:raj"}, []string{"requester"}}}
	change := func(f func(*Verdict)) Verdict {
		v := ask
		f(&v)
		return v
	}
	for want, pair := range map[string][2]Verdict{
		"decision allow instead of ask":              {ask, {Effect: Allow, Tier: R4}},
		"decision ask instead of deny":               {{}, ask},
		"the session is not paused":                  {{Pause: true}, {}},
		"larger results pass":                        {{Effect: Allow, Output: OutputLimit{"l", 5}}, {Effect: Allow, Output: OutputLimit{"l", 6}}},
		"tier R2 instead of R3":                      {ask, change(func(v *Verdict) { v.Tier = R2 })},
		"fewer people are needed":                    {ask, change(func(v *Verdict) { v.Quorum = 1 })},
		"no typed confirmation":                      {ask, change(func(v *Verdict) { v.Confirm = nil })},
		"waits 1h instead of 1m":                     {ask, change(func(v *Verdict) { v.TTL = time.Hour })},
		"scope session":                              {ask, change(func(v *Verdict) { v.Scopes = []string{"once", "session"} })},
		"scope 20m":                                  {ask, change(func(v *Verdict) { v.Scopes = []string{"20m"} })},
		"approvers of more instead of those of two":  {ask, change(func(v *Verdict) { v.Of = Approvers{"more", []string{"user:eve"}, []string{"requester"}} })},
		"approvers of owner instead of those of two": {ask, change(func(v *Verdict) { v.Of = Approvers{"owner", []string{"user:ana"}, nil} })},
		"approvers of  instead of those of two":      {ask, change(func(v *Verdict) { v.Of = Approvers{"", nil, []string{"requester"}} })},
	} {
		if got := Looser(pair[0], pair[1]); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for _, pair := range [][2]Verdict{
		{ask, ask},
		{ask, {}},
		{{Effect: Allow, Tier: R2}, ask},
		{{}, {}},
		{{Effect: Allow}, {Effect: Allow, Tier: R2}},
		{{Effect: Allow, Tier: R2}, change(func(v *Verdict) { v.Tier = R0 })},
		{ask, change(func(v *Verdict) { v.Scopes, v.Quorum, v.TTL = []string{"once", "5m"}, 3, time.Second })},
		{change(func(v *Verdict) { v.Of = Approvers{} }), ask},
	} {
		if got := Looser(pair[0], pair[1]); got != "" {
			t.Errorf("%s: %+v", got, pair)
		}
	}
}
