package policy

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

// The example of the manual works as written, and so do its cases.
func TestExample(t *testing.T) {
	p := example(t)
	src, err := os.ReadFile("testdata/example_test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	cases, err := ParseTests("example_test.yaml", src)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range p.Test(cases) {
		if !r.OK() {
			var why strings.Builder
			_ = r.Verdict.Explain(&why)
			t.Errorf("%s (line %d): %s\n%s", r.Case.Name, r.Case.Line, strings.Join(r.Faults, "; "), why.String())
		}
	}
}

// What the manual shows is what these tests run.
func TestManual(t *testing.T) {
	manual, err := os.ReadFile("../../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, part := range strings.Split(string(manual), "```yaml\n")[1:] {
		block, _, _ := strings.Cut(part, "```")
		blocks = append(blocks, block)
	}
	src, err := os.ReadFile("testdata/example.yaml")
	if err != nil || len(blocks) != 2 || blocks[0] != string(src) {
		t.Fatal("the manual's example is not testdata/example.yaml", err)
	}
	cases, err := ParseTests("manual", []byte(blocks[1]))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range mustParse(t, blocks[0]).Test(cases) {
		if !r.OK() {
			t.Error(r.Case.Name, r.Faults)
		}
	}
}

func TestDefaults(t *testing.T) {
	p := mustParse(t, "version: 1\n")
	want := Defaults{Unmatched: Ask, TTL: 5 * time.Minute, OnExpiry: Deny, Unknown: Ask, Opaque: Ask}
	if p.Defaults() != want {
		t.Errorf("got %+v, want %+v", p.Defaults(), want)
	}
	p = mustParse(t, "version: 1\ndefaults: {unmatched: deny, ttl: 1h, of: me, unknown: rules, opaque: rules}\napprovers: {me: {any_of: ['user:ana']}}\n")
	want = Defaults{Unmatched: Deny, TTL: time.Hour, Of: "me", Unknown: Allow, Opaque: Allow}
	if p.Defaults() != want {
		t.Errorf("got %+v, want %+v", p.Defaults(), want)
	}
	if p.Name() != "policy.yaml" || !strings.HasPrefix(p.Revision(), "sha256:") || len(p.Revision()) != 71 {
		t.Errorf("name %q, revision %q", p.Name(), p.Revision())
	}
	if other := mustParse(t, "version: 1 \n"); other.Revision() == mustParse(t, "version: 1\n").Revision() {
		t.Error("two files share a revision")
	}
}

func TestApproverSets(t *testing.T) {
	sets := example(t).ApproverSets()
	var got []string
	for _, s := range sets {
		got = append(got, s.Name+"="+strings.Join(s.AnyOf, ",")+"-"+strings.Join(s.Not, ","))
	}
	if strings.Join(got, " ") != "dba=group:db-admins-requester me=user:ana- oncall=user:ana,user:raj-" {
		t.Error(got)
	}
	sets[0].AnyOf[0] = "user:mallory"
	if example(t).ApproverSets()[0].AnyOf[0] == "user:mallory" {
		t.Error("the caller's copy is the policy's own")
	}
}

// POL-13, POL-17: a file that is not right in every point is no policy at all,
// and its faults say where and what.
func TestParseRefuses(t *testing.T) {
	head := "version: 1\n"
	rule := func(s string) string { return head + "rules:\n  - {id: a, tool: fs.x, " + s + "}\n" }
	guard := func(s string) string { return head + "guards:\n  - {id: a, tool: fs.x, " + s + "}\n" }
	limit := func(s string) string { return head + "limits:\n  - {id: a, " + s + "}\n" }
	for name, c := range map[string]struct{ src, want string }{
		"empty file":           {"", "empty"},
		"only comments":        {"# nothing\n", "empty"},
		"null":                 {"null\n", "mapping"},
		"a list":               {"- version\n", "mapping"},
		"syntax":               {"version: [1\n", "not YAML"},
		"not UTF-8":            {"version: 1 # \xff\n", "UTF-8"},
		"two documents":        {"version: 1\n---\nversion: 1\n", "one YAML document"},
		"no version":           {"rules: []\n", `"version: 1" is missing`},
		"version 2":            {"version: 2\n", "version 2 is not known"},
		"version as text":      {"version: '1'\n", "version: must be"},
		"unknown key":          {head + "ruels: []\n", `did you mean "rules"?`},
		"unknown key inside":   {rule("alow: {tier: R0}"), `did you mean "allow"?`},
		"duplicate key":        {head + "version: 1\n", "written twice"},
		"duplicate id":         {head + "rules:\n  - {id: a, tool: fs.x, deny: true}\n  - {id: a, tool: fs.y, deny: true}\n", `id "a" is already used on line 3`},
		"id of guard and rule": {head + "guards:\n  - {id: a, tool: fs.x, deny: true}\nrules:\n  - {id: a, tool: fs.y, deny: true}\n", "already used"},
		"alias":                {head + "defaults: &d {ttl: 5m}\n", "anchors and aliases"},
		"alias bomb":           {head + "scopes: &a [x]\napprovers: [*a, *a, *a]\n", "anchors and aliases"},
		"merge key":            {head + "defaults: {<<: {ttl: 5m}}\n", "unknown key"},
		"tag":                  {head + "defaults: !!map {ttl: 5m}\n", "type tags"},
		"no id":                {head + "rules:\n  - {tool: fs.x, deny: true}\n", "id is missing"},
		"bad id":               {head + "rules:\n  - {id: 'a b', tool: fs.x, deny: true}\n", "is not an id"},
		"reserved id":          {head + "rules:\n  - {id: defaults.unmatched, tool: fs.x, deny: true}\n", "the policy's own"},
		"no tool":              {head + "rules:\n  - {id: a, deny: true}\n", "tool is missing"},
		"tool without server":  {head + "rules:\n  - {id: a, tool: shell, deny: true}\n", `as in "shell.*"`},
		"tool as regexp":       {head + "rules:\n  - {id: a, tool: 'fs.[a-z]*', deny: true}\n", "only wildcard"},
		"tool with space":      {head + "rules:\n  - {id: a, tool: 'fs.x ', deny: true}\n", "no spaces"},
		"tool upper server":    {head + "rules:\n  - {id: a, tool: 'FS.x', deny: true}\n", "lower case"},
		"no tools":             {head + "rules:\n  - {id: a, tool: [], deny: true}\n", "must not be empty"},
		"no answer":            {head + "rules:\n  - {id: a, tool: fs.x}\n", "exactly one of"},
		"two answers":          {rule("deny: true, allow: {tier: R0}"), "exactly one of"},
		"deny false":           {rule("deny: false"), "says nothing"},
		"allow all":            {rule("allow: true"), "mapping"},
		"allow without tier":   {rule("allow: {}"), "tier is missing"},
		"allow R3":             {rule("allow: {tier: R3}"), "asked by definition"},
		"allow R4":             {rule("allow: {tier: R4}"), "asked by definition"},
		"tier R5":              {rule("ask: {tier: R5}"), `"R5" is not one of`},
		"unmatched allow":      {head + "defaults: {unmatched: allow}\n", "not one of ask, deny"},
		"expiry allow":         {head + "defaults: {on_expiry: allow}\n", "not one of deny"},
		"ttl short":            {head + "defaults: {ttl: 1s}\n", "not between"},
		"ttl long":             {rule("ask: {ttl: 800h}"), "not between"},
		"ttl wrong":            {rule("ask: {ttl: soon}"), "not a duration"},
		"unknown approvers":    {head + "approvers: {oncall: {any_of: ['user:ana']}}\nrules:\n  - {id: a, tool: fs.x, ask: {of: oncal}}\n", `did you mean "oncall"?`},
		"unknown default set":  {head + "defaults: {of: me}\n", "no approvers are named"},
		"empty approvers":      {head + "approvers: {me: {}}\n", "any_of is missing"},
		"bad name of set":      {head + "approvers: {'m e': {any_of: ['user:ana']}}\n", "a name is made of"},
		"bad subject":          {head + "approvers: {me: {any_of: [ana]}}\n", `"user:NAME"`},
		"bad exclusion":        {head + "approvers: {me: {any_of: ['user:ana'], not: [requestor]}}\n", `or "requester"`},
		"requester may decide": {head + "approvers: {me: {any_of: [requester]}}\n", "is not a subject"},
		"subject twice":        {head + "approvers: {me: {any_of: ['user:ana', 'user:ana']}}\n", "listed twice"},
		"quorum too high":      {head + "approvers: {me: {any_of: ['user:ana']}}\nrules:\n  - {id: a, tool: fs.x, ask: {of: me, quorum: 2}}\n", "needs 2 people"},
		"quorum zero":          {rule("ask: {quorum: 0}"), "from 1 to 100"},
		"quorum octal":         {rule("ask: {quorum: 0x2}"), "from 1 to 100"},
		"quorum text":          {rule("ask: {quorum: two}"), "whole number"},
		"confirm passkey":      {rule("ask: {confirm: [thumb]}"), "not one of typed"},
		"scope unknown":        {rule("ask: {scope: forever}"), "is not a scope"},
		"scope R4":             {rule("ask: {tier: R4, scope: [once, session]}"), "is not offered at R4"},
		"scope R3":             {rule("ask: {tier: R3, scope: workspace}"), "is not offered at R3"},
		"scope long":           {rule("ask: {tier: R1, scope: 48h}"), "not between"},
		"salient":              {rule("ask: {salient: amount}"), "args.NAME"},
		"salient gap":          {rule("ask: {salient: args.a..b}"), "args.NAME"},
		"salient space":        {rule("ask: {salient: 'args.a b'}"), "args.NAME"},
		"empty id":             {head + "rules:\n  - {id: '', tool: fs.x, deny: true}\n", "must not be empty"},
		"empty when":           {rule("deny: true, when: ''"), "must not be empty"},
		"effects":              {rule("deny: true, effects: ['pays {amount}']"), "{args.NAME}"},
		"effects open":         {rule("deny: true, effects: ['pays {args.amount']"), "not closed"},
		"empty why":            {rule("deny: true, why: ''"), "must not be empty"},
		"scope of nothing":     {head + "scopes: {repo: {}}\n", "paths or domains"},
		"scope of both":        {head + "scopes: {repo: {paths: [/a], domains: [a.b]}}\n", "not both"},
		"relative path":        {head + "scopes: {repo: {paths: ['src/**']}}\n", "begins with"},
		"path dots":            {head + "scopes: {repo: {paths: ['/a/../b']}}\n", `no "." and no ".."`},
		"path stars":           {head + "scopes: {repo: {paths: ['/a**/b']}}\n", "whole segment"},
		"path class":           {head + "scopes: {repo: {paths: ['/a/[bc]']}}\n", "only wildcards"},
		"path variable":        {head + "scopes: {repo: {paths: ['$HOME/x']}}\n", "begins with"},
		"path empty segment":   {head + "scopes: {repo: {paths: ['/a//b']}}\n", "no empty segment"},
		"path slash":           {head + "scopes: {repo: {paths: ['/a/']}}\n", "no empty segment"},
		"path hidden":          {head + "scopes: {repo: {paths: [\"/a\u200b\"]}}\n", "hidden"},
		"path not NFC":         {head + "scopes: {repo: {paths: [\"/e\u0301\"]}}\n", "NFC"},
		"domain url":           {head + "scopes: {h: {domains: ['https://a.b']}}\n", "no scheme"},
		"domain star":          {head + "scopes: {h: {domains: ['a.*.b']}}\n", "beginning"},
		"domain userinfo":      {head + "scopes: {h: {domains: ['a@b']}}\n", "is not a domain"},
		"when syntax":          {rule(`deny: true, when: "args.x =="`), "of the expression"},
		"when unknown name":    {rule(`deny: true, when: "arg.x == 1"`), "unknown name"},
		"when number":          {rule(`deny: true, when: "1 + 1"`), "true or false, not int"},
		"when scope":           {rule(`deny: true, when: 'inside(args.p, "repo")'`), `no scope is named "repo"`},
		"when scope kind":      {head + "scopes: {h: {domains: [a.b]}}\nrules:\n  - {id: a, tool: fs.x, deny: true, when: 'inside(args.p, \"h\")'}\n", "has no paths"},
		"when scope dynamic":   {rule(`deny: true, when: 'inside(args.p, args.q)'`), "written as a text"},
		"when host scope":      {rule(`deny: true, when: 'hostIn(args.p, "x")'`), "no scope is named"},
		"when loops":           {rule(`deny: true, when: "args.a.all(x, args.b.all(y, args.c.all(z, x == y && y == z)))"`), "cost too much"},
		"when loop variable":   {rule(`deny: true, when: "args.a.all(args, args == 1)"`), "hides the variable"},
		"when zone":            {rule(`deny: true, when: 'now.getHours("Europe/Berlin") < 8'`), "offset"},
		"when internal":        {rule(`deny: true, when: '@inside(args.p, "x", "/")'`), "of the expression"},
		"when long":            {rule(`deny: true, when: '` + strings.Repeat("true && ", 600) + `true'`), "of the expression"},
		"POL-11 multi-line":    {rule(`deny: true, when: 'args.x.matches("(?m)^prod$")'`), "(?m)"},
		"POL-11 mixed flags":   {rule(`deny: true, when: 'matches(args.x, "(?im:prod)")'`), "(?m)"},
		"POL-11 dynamic":       {rule(`deny: true, when: 'args.x.matches(args.y)'`), "written as a text"},
		"POL-11 not RE2":       {rule(`deny: true, when: 'args.x.matches("(?=a)")'`), "regular expression"},
		"guard of nothing":     {guard("why: x"), "either deny or at_least"},
		"guard of both":        {guard("deny: true, at_least: {tier: R4}"), "either deny or at_least"},
		"guard allows":         {guard("allow: {tier: R0}"), "unknown key"},
		"limit of nothing":     {limit("then: ask"), "exactly one of count"},
		"limit of both":        {limit("count: 1, denials: 1, by: session, then: ask"), "exactly one of count"},
		"limit without per":    {limit("count: 1, by: session, then: ask"), "per is missing"},
		"limit with above":     {limit("count: 1, above: 2, per: 1m, by: session, then: ask"), "takes no above"},
		"limit without then":   {limit("count: 1, per: 1m, by: session"), "then is missing"},
		"limit by":             {limit("count: 1, per: 1m, by: tool, then: ask"), "is not one of session"},
		"limit then":           {limit("count: 1, per: 1m, by: session, then: allow"), "is not one of ask"},
		"limit then hold":      {limit("count: 1, per: 1m, by: session, then: hold_result"), "is not one of ask"},
		"limit then set":       {limit("count: 1, per: 1m, by: session, then: {quorum: 2}"), "ask is missing"},
		"limit sum text":       {limit("sum: tool, per: 1m, by: session, above: 5, then: ask"), "must be a number, not string"},
		"limit above":          {limit("sum: args.x, per: 1m, by: session, above: -5, then: ask"), "must be a number from 0"},
		"limit above decimals": {limit("sum: args.x, per: 1m, by: session, above: 0.1234567, then: ask"), "six decimals"},
		"limit above text":     {limit("sum: args.x, per: 1m, by: session, above: '5', then: ask"), "must be a number from 0"},
		"limit size":           {limit("output_bytes: 1XB, then: hold_result"), "is not a size"},
		"limit output then":    {limit("output_bytes: 1MB, then: ask"), "not one of hold_result"},
		"limit denials":        {limit("denials: 0, by: session, then: ask"), "from 1 to"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Parse("p.yaml", []byte(c.src))
			var faults Faults
			if p != nil || !errors.As(err, &faults) || len(faults) == 0 {
				t.Fatalf("accepted: %v, %v", p, err)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %s\nwant %s", err, c.want)
			}
		})
	}
}

// POL-13: everything wrong is listed at once, in the order of the lines.
func TestParseListsAllFaults(t *testing.T) {
	_, err := Parse("p.yaml", []byte(`version: 1
defaults: {unmached: ask}
approvers:
  me: {any_of: [ana]}
rules:
  - {id: a, tool: fs.x, when: "args.x ==", ask: {of: you}}
  - {id: a, tool: shell, allow: {tier: R4}}
`))
	want := []string{
		`p.yaml:2:12: defaults.unmached: unknown key "unmached"; did you mean "unmatched"?`,
		`p.yaml:4:17: approvers.me.any_of[0]: "ana" is not a subject`,
		`p.yaml:6:31: rules[0].when: at 1:10 of the expression: Syntax error`,
		`p.yaml:6:54: rules[0].ask.of: no approvers are named "you"`,
		`p.yaml:7:10: rules[1].id: id "a" is already used on line 6`,
		`p.yaml:7:19: rules[1].tool: "shell" names no tool`,
		`p.yaml:7:40: rules[1].allow.tier: R4 is asked by definition`,
	}
	if err == nil {
		t.Fatal("accepted")
	}
	lines := strings.Split(err.Error(), "\n")
	for i, w := range want {
		if i >= len(lines) || !strings.HasPrefix(lines[i], w) {
			t.Fatalf("fault %d: want %s\ngot:\n%s", i, w, err)
		}
	}
}

// POL-13: however the file is broken, it never means "no rules, so allow".
func TestNothingIsNoPolicy(t *testing.T) {
	c := mustCall(t, "fs.read_file", `{}`)
	var none *Policy
	for _, p := range []*Policy{none, {}} {
		if v := p.Judge(c, known); v.Effect != Deny || v.Tier != R4 {
			t.Errorf("%+v", v)
		}
		if p.Charges(c, known) != nil {
			t.Error("charges without a policy")
		}
	}
	p := mustParse(t, string(AllowAll()))
	if v := p.Judge(mustCall(t, "fs.x", `{}`), known); v.Effect != Allow {
		t.Errorf("%+v", v)
	}
	var zero Verdict
	if zero.Effect != Deny {
		t.Error("the zero verdict allows")
	}
}

func TestWorkspaceReferenceAlone(t *testing.T) {
	p := mustParse(t, "version: 1\nscopes: {repo: {paths: ['${workspace}']}}\n")
	if in, why := p.scopes["repo"].holds(".", "/srv"); !in || why != "" {
		t.Error(in, why)
	}
	if in, _ := p.scopes["repo"].holds("x", "/srv"); in {
		t.Error("the root alone holds what is beneath")
	}
}
