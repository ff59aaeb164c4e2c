package policy

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func yes() *bool { v := true; return &v }
func no() *bool  { v := false; return &v }

const people = `
version: 1
approvers:
  me:     {any_of: ["user:ana"]}
  oncall: {any_of: ["user:ana", "user:raj", "user:eve"]}
  others: {any_of: ["user:ana", "user:raj"], not: [requester]}
  ops:    {any_of: ["group:ops", "user:raj"]}
  dba:    {any_of: ["group:dba"], not: ["group:interns"]}
`

func judge(t *testing.T, src, tool, args string, change ...func(*Facts)) Verdict {
	t.Helper()
	f := known
	for _, c := range change {
		c(&f)
	}
	return mustParse(t, src).Judge(mustCall(t, tool, args), f)
}

// expect compares the parts of a verdict that are written as "effect tier rule".
func expect(t *testing.T, v Verdict, want string) {
	t.Helper()
	if got := v.Effect.String() + " " + v.Tier.String() + " " + v.Rule; got != want {
		t.Errorf("got %s, want %s\n%+v", got, want, v.Trace)
	}
}

// POL-07: names are compared as bytes.
func TestToolNames(t *testing.T) {
	src := people + "rules: [{id: a, tool: fs.delete_file, allow: {tier: R1}}]"
	expect(t, judge(t, src, "fs.delete_file", `{}`), "allow R1 a")
	for _, tool := range []string{"Delete_File", "delete_file ", "delete_file\u200b", "dеlete_file", "fs__delete", "delete%5ffile", "delete_file.", "fs.delete_file", "delete_file\u00a0", "DELETE_FILE"} {
		expect(t, judge(t, src, "fs."+tool, `{}`), "ask R3 defaults.unmatched")
	}
	expect(t, judge(t, src, "fs2.delete_file", `{}`), "ask R3 defaults.unmatched")
	src = people + "rules: [{id: a, tool: 'fs.*', allow: {tier: R1}}]"
	expect(t, judge(t, src, "fs.delete\u200b", `{}`), "ask R3 a") // CAN-18: hidden in the name
}

func TestFirstRuleDecides(t *testing.T) {
	src := people + `
rules:
  - {id: a, tool: "fs.*", when: args.x == 1, ask: {tier: R1}}
  - {id: b, tool: ["x.y", "fs.read", "fs.*d"], allow: {tier: R0}, why: because, undo: never, effects: ["reads {args.path}", "by {agent} with {server}.{tool}"]}
  - {id: c, tool: "*", deny: {tier: R4}, why: no}
`
	expect(t, judge(t, src, "fs.read", `{"x":1}`), "ask R1 a")
	v := judge(t, src, "fs.read", `{"x":2,"path":"a b"}`)
	expect(t, v, "allow R0 b")
	if v.Why != "because" || v.Undo != "never" || !slices.Equal(v.Effects, []string{`reads "a b"`, "by bot with fs.read"}) {
		t.Errorf("%+v", v)
	}
	v = judge(t, src, "fs.write", `{"x":2}`)
	expect(t, v, "deny R4 c")
	if v.Why != "no" || v.Quorum != 0 || v.Scopes != nil || v.TTL != 0 {
		t.Errorf("%+v", v)
	}
	expect(t, judge(t, people+"defaults: {unmatched: deny}", "fs.x", `{}`), "deny R3 defaults.unmatched")
}

// POL-09: an argument that is missing or of another type never matches an allow,
// never slips past an ask, and makes a deny and a guard deny.
func TestErrorsFailClosed(t *testing.T) {
	src := people + `
guards: [{id: g, tool: pay.guarded, when: args.amount > 100, at_least: {tier: R3}}]
rules:
  - {id: small, tool: "pay.*", when: args.amount <= 100, allow: {tier: R2}}
  - {id: never, tool: pay.denied, when: args.amount > 1000, deny: true}
  - {id: middle, tool: pay.asked, when: args.amount <= 500, ask: {of: oncall, tier: R3, quorum: 2, ttl: 1m}}
  - {id: rest, tool: "pay.*", when: "true", allow: {tier: R2}}
`
	expect(t, judge(t, src, "pay.asked", `{"amount":100}`), "allow R2 small")
	expect(t, judge(t, src, "pay.asked", `{"amount":100.00}`), "allow R2 small")
	expect(t, judge(t, src, "pay.asked", `{"amount":1e2}`), "allow R2 small")
	expect(t, judge(t, src, "pay.asked", `{"amount":501}`), "allow R2 rest")
	for _, args := range []string{`{}`, `{"amount":"5"}`, `{"amount":[5]}`, `{"amount":{"n":5}}`, `{"amount":null}`, `{"amount":true}`, `{"Amount":5}`} {
		v := judge(t, src, "pay.asked", args)
		expect(t, v, "ask R3 middle")
		if v.Quorum != 2 || v.TTL != time.Minute || v.Of.Name != "oncall" {
			t.Errorf("%s: %+v", args, v)
		}
		expect(t, judge(t, src, "pay.denied", args), "deny R3 never")
		expect(t, judge(t, src, "pay.guarded", args), "deny R3 g")
		expect(t, judge(t, src, "pay.other", args), "allow R2 rest")
	}
	v := judge(t, people+`
rules:
  - {id: flag, tool: x.y, when: args.flag, allow: {tier: R0}}`, "x.y", `{"flag":"true"}`)
	expect(t, v, "ask R3 defaults.unmatched")
	if v.Trace[0].Note != "its condition has no value: it is neither true nor false" {
		t.Error(v.Trace)
	}
}

// A number that no int64 and no double says exactly compares with nothing, so it
// never equals its neighbour: CAN-18's cousin for numbers.
func TestInexactNumbers(t *testing.T) {
	for when, args := range map[string]string{
		`args.n == 9007199254740993`:                 `{"n":9007199254740992}`,
		`args.n == 9007199254740993 || args.n > 0.0`: `{"n":9007199254740993.5}`,
		`args.n > 0`:                      `{"n":9223372036854775808}`,
		`0 < args.n`:                      `{"n":1e19}`,
		`args.n >= 1e20`:                  `{"n":1e21}`,
		`args.n != 5`:                     `{"n":1e19}`,
		`5 != args.n`:                     `{"n":1e19}`,
		`args.n == 1e-400`:                `{"n":1e-400}`,
		`args.n < 1.0`:                    `{"n":1e-400}`,
		`args.n in [9223372036854775807]`: `{"n":9223372036854775808}`,
		`!(args.n in [1, 2])`:             `{"n":9223372036854775808}`,
		`args.l == [1]`:                   `{"l":[9223372036854775808]}`,
		`args.l != [1]`:                   `{"l":[9223372036854775808]}`,
		`args.l[0] != 1`:                  `{"l":[9223372036854775808]}`,
		`args.o == {"n": 1}`:              `{"o":{"n":9223372036854775808}}`,
		`args.l.exists(x, x != 1)`:        `{"l":[2,9223372036854775808]}`,
		`args == {"n": 1}`:                `{"n":9223372036854775808}`,
		`args != {"n": 1}`:                `{"n":9223372036854775808}`,
		`args.all(k, args[k] != 1)`:       `{"n":9223372036854775808}`,
		`size(args) == 2`:                 `{"n":9223372036854775808,"m":1}`,
		`string(args.n) == "1"`:           `{"n":9223372036854775808}`,
		`args.n == args.m`:                `{"n":9223372036854775808,"m":9223372036854775809}`,
	} {
		v := judge(t, people+"rules: [{id: a, tool: x.y, when: "+strconv.Quote(when)+", allow: {tier: R0}}]", "x.y", args)
		if v.Effect == Allow {
			t.Errorf("%s holds for %s", when, args)
		}
	}
	for when, args := range map[string]string{
		`args.n == 9007199254740993`:     `{"n":9007199254740993}`,
		`args.n == 9223372036854775807`:  `{"n":9223372036854775807}`,
		`args.n == -9223372036854775808`: `{"n":-9223372036854775808}`,
		`args.n == 0.1 && args.m == 5`:   `{"n":0.1,"m":5.0}`,
		`args.m == 5`:                    `{"n":1e19,"m":5}`,
		`args.n <= 50`:                   `{"n":49.99}`,
		`has(args.n)`:                    `{"n":1e19}`,
		`args["a-b"] == 1`:               `{"a-b":1}`,
		`args.o.p.q == null`:             `{"o":{"p":{"q":null}}}`,
		`now < timestamp("2027-01-01T00:00:00Z") && now.getHours("+02:00") >= 0 && now.getHours() >= 0`:  `{}`,
		`tool == "y" && server == "x" && agent == "bot" && session == "s1" && workspace == "shop"`:       `{}`,
		`args.s.matches("prod-[0-9]+") && matches(args.s, "(?i)PROD.*") && host("http://a.b/") == "a.b"`: `{"s":"prod-7"}`,
		`sqlVerbs(args.s) == ["unparsable"] || hostIn(args.s, "h") || true`:                              `{"s":"x"}`,
	} {
		v := judge(t, people+"scopes: {h: {domains: [a.b]}}\nrules: [{id: a, tool: x.y, when: "+strconv.Quote(when)+", allow: {tier: R0}}]", "x.y", args)
		if v.Effect != Allow {
			t.Errorf("%s does not hold for %s: %+v", when, args, v.Trace)
		}
	}
}

// What an expression reads is known from its text: the inspection of blobs, the
// limits and the check against schemas rely on it.
func TestReads(t *testing.T) {
	compiler := newCompiler(nil)
	for src, want := range map[string]string{
		`args.a == 1 && args.b.c == 2`:               "reads a b.c",
		`args["a-b"].c == 1`:                         "reads a-b.c",
		`has(args.a) && has(args.b.c)`:               "reads b",
		`args.a[0].b == 1`:                           "reads a",
		`args.a[args.b] == 1`:                        "reads a b",
		`args.l.exists(x, x == args.y)`:              "reads l y",
		`size(args) == 0`:                            "reads whole",
		`"a" in args`:                                "reads whole",
		`args[tool] == 1`:                            "reads whole",
		`args == {"a": args.b}`:                      "reads b whole",
		`{"args": 1}["args"] == 1 && tool == "args"`: "reads",
	} {
		x, errs := compiler.compile(src, condition)
		if errs != nil {
			t.Fatal(src, errs)
		}
		got := "reads"
		for _, p := range x.reads {
			got += " " + strings.TrimPrefix(p.String(), "args.")
		}
		if x.whole {
			got += " whole"
		}
		if got != want {
			t.Errorf("%s: %s, want %s", src, got, want)
		}
	}
}

// Arguments that cannot be read have no value, and are decoded once.
func TestArguments(t *testing.T) {
	for _, raw := range []string{``, `{`, `[1]`, `{"a":1,"a":2}`} {
		a := arguments{raw: []byte(raw)}
		if why := a.decode(); why == "" {
			t.Errorf("%s: decoded", raw)
		}
	}
	if v, ok := decodeArgument([]byte(`[1`)).(error); !ok {
		t.Error(v)
	}
	a := arguments{raw: []byte(`{"a":[1],"b":2}`)}
	for range 2 {
		if v, ok := a.FindStringKey("a"); !ok || len(v.([]any)) != 1 || len(a.decoded) != 1 {
			t.Error(v, ok)
		}
		if _, ok := a.FindStringKey("c"); ok {
			t.Error("found what is not there")
		}
		if why := a.decode(); why != "" || len(a.all) != 2 {
			t.Error(why)
		}
	}
	v := judge(t, people+`
rules:
  - {id: a, tool: x.y, when: "size(args) == 5", allow: {tier: R0}}
  - {id: b, tool: x.y, when: "args.n == 1 && !has(args.m) && 'n' in args", allow: {tier: R0}}`, "x.y", `{"n":1}`)
	expect(t, v, "allow R0 b")
}

// POL-11: a pattern matches the whole text.
func TestMatchesIsAnchored(t *testing.T) {
	src := people + `rules: [{id: a, tool: x.y, when: 'args.s.matches("prod|ok.*")', allow: {tier: R0}}]`
	for s, want := range map[string]Effect{"prod": Allow, "ok then": Allow, "prod2": Ask, "a prod": Ask, `ok\nDROP TABLE`: Ask, `prod\n`: Ask, "": Ask} {
		if v := judge(t, src, "x.y", `{"s":"`+s+`"}`); v.Effect != want {
			t.Errorf("%q: %s", s, v.Effect)
		}
	}
}

// The cost of an expression is bounded whatever the arguments are.
func TestCostLimit(t *testing.T) {
	src := people + `rules: [{id: a, tool: x.y, when: "args.l.all(a, args.l.all(b, a == b))", allow: {tier: R0}}]`
	big := `{"l":[` + strings.Repeat("1,", 50_000) + `1]}`
	start := time.Now()
	v := judge(t, src, "x.y", big)
	if v.Effect != Ask || v.Trace[0].Note != "its condition has no value: it costs too much to evaluate" {
		t.Errorf("%+v", v)
	}
	if d := time.Since(start); d > 5*time.Second {
		t.Error("took", d)
	}
	expect(t, judge(t, src, "x.y", `{"l":[1,1,1]}`), "allow R0 a")
	src = people + `rules: [{id: a, tool: x.y, when: "args.l.all(a, argv(a) == ['x'])", allow: {tier: R0}}]`
	expect(t, judge(t, src, "x.y", `{"l":["x","x"]}`), "allow R0 a")
	expect(t, judge(t, src, "x.y", `{"l":["`+strings.Repeat("x", 12_000)+`"`+strings.Repeat(`,"x"`, 100_000-50_000)+`]}`), "ask R3 defaults.unmatched")
}

// POL-08: a guard's deny holds whatever the rules say and wherever they stand.
func TestGuards(t *testing.T) {
	src := people + `
guards:
  - {id: soft, tool: "fs.*", when: args.level > 0, at_least: {ask: oncall, tier: R3, scope: [once, session, 10m], ttl: 1m}, why: soft why}
  - {id: hard, tool: "fs.*", when: args.level > 1, deny: true, why: hard why}
  - {id: erase, tool: "fs.*", when: args.level == -1, at_least: {tier: R4}}
rules:
  - {id: open, tool: "fs.*", allow: {tier: R0}}
`
	expect(t, judge(t, src, "fs.x", `{"level":0}`), "allow R0 open")
	v := judge(t, src, "fs.x", `{"level":1}`)
	expect(t, v, "ask R3 soft")
	if v.Why != "soft why" || v.Of.Name != "oncall" || v.TTL != time.Minute || !slices.Equal(v.Scopes, []string{"once", "session", "10m"}) || v.Quorum != 1 {
		t.Errorf("%+v", v)
	}
	v = judge(t, src, "fs.x", `{"level":2}`)
	expect(t, v, "deny R3 hard")
	if v.Why != "hard why" {
		t.Error(v.Why)
	}
	v = judge(t, src, "fs.x", `{"level":-1,"path":"a"}`)
	expect(t, v, "ask R4 erase")
	if !slices.Equal(v.Confirm, []Confirm{Typed}) || v.Salient != "x -1" || !slices.Equal(v.Scopes, []string{"once"}) || v.Quorum != 1 {
		t.Errorf("%+v", v)
	}
}

// What two phases ask for is asked together: the people of both, the higher
// tier, the common scopes, the shorter time.
func TestDemandsAdd(t *testing.T) {
	src := people + `
guards:
  - {id: g, tool: "*.guarded", at_least: {ask: oncall, tier: R2, quorum: 2, scope: [session, 10m, 20m], confirm: [typed], ttl: 1m}}
  - {id: h, tool: "*.same", at_least: {ask: ops, tier: R1}}
rules:
  - {id: all, tool: a.guarded, ask: {tier: R1, scope: [workspace, 15m, session]}, why: of the rule}
  - {id: two, tool: b.guarded, ask: {of: others, tier: R3, salient: args.x}}
  - {id: grp, tool: c.guarded, ask: {of: dba, tier: R1}}
  - {id: ops, tool: d.guarded, ask: {of: ops, tier: R1}}
  - {id: dba, tool: e.same, ask: {of: ops, tier: R1}}
`
	v := judge(t, src, "a.guarded", `{}`)
	expect(t, v, "ask R2 g")
	if v.Of.Name != "oncall" || v.Quorum != 2 || v.TTL != time.Minute || !slices.Equal(v.Scopes, []string{"once", "15m", "session", "10m"}) || v.Why != "of the rule" || v.Salient != "guarded" {
		t.Errorf("%+v", v)
	}
	noOwner := func(f *Facts) { f.Owner = "user:zoe" }
	v = judge(t, src, "b.guarded", `{"x":7}`, noOwner)
	expect(t, v, "ask R3 g")
	if v.Of.Name != "others and oncall" || !slices.Equal(v.Of.AnyOf, []string{"user:ana", "user:raj"}) || !slices.Equal(v.Of.Not, []string{"requester"}) || v.Salient != "guarded 7" {
		t.Errorf("%+v", v.Of)
	}
	for _, tool := range []string{"c.guarded", "d.guarded"} {
		v = judge(t, src, tool, `{}`)
		if v.Effect != Deny || !strings.HasPrefix(v.Why, "Nobody can approve this") {
			t.Errorf("%s: %+v", tool, v)
		}
	}
	v = judge(t, src, "e.same", `{}`)
	expect(t, v, "ask R1 dba")
	if v.Of.Name != "ops" {
		t.Error(v.Of)
	}
}

// R4 is asked once, typed, and of two people where there are two.
func TestR4(t *testing.T) {
	src := people + `
rules:
  - {id: alone, tool: a.x, ask: {of: me, tier: R4}}
  - {id: pair, tool: b.x, ask: {of: oncall, tier: R4, salient: [args.n, args.what]}}
  - {id: one, tool: c.x, ask: {of: oncall, tier: R4, quorum: 1}}
  - {id: group, tool: d.x, ask: {of: dba, tier: R4}}
  - {id: any, tool: e.x, ask: {tier: R4}}
  - {id: others, tool: f.x, ask: {of: others, tier: R4}}
  - {id: others2, tool: g.x, ask: {of: others, quorum: 2, tier: R3}}
`
	for tool, quorum := range map[string]int{"a.x": 1, "b.x": 2, "c.x": 1, "d.x": 1, "e.x": 1, "f.x": 1} {
		v := judge(t, src, tool, `{"n":5,"what":"a b"}`)
		if v.Effect != Ask || v.Quorum != quorum || !slices.Equal(v.Scopes, []string{"once"}) || !slices.Equal(v.Confirm, []Confirm{Typed}) {
			t.Errorf("%s: %+v", tool, v)
		}
	}
	if v := judge(t, src, "f.x", `{}`, func(f *Facts) { f.Owner = "user:zoe" }); v.Quorum != 2 {
		t.Errorf("%+v", v)
	}
	if v := judge(t, src, "b.x", `{"n":5,"what":"a b"}`); v.Salient != "x 5 a b" {
		t.Error(v.Salient)
	}
	// An ask that nobody could answer is denied at once: two people are needed,
	// one of the two owns the agent.
	expect(t, judge(t, src, "g.x", `{}`), "deny R3 others2")
	expect(t, judge(t, src, "g.x", `{}`, func(f *Facts) { f.Owner = "user:zoe" }), "ask R3 others2")
	// Nobody owns the agent, so everybody could be its owner.
	expect(t, judge(t, src, "f.x", `{}`, func(f *Facts) { f.Owner = "" }), "deny R4 others")
}

// What a person types is something that a person can type.
func TestSalient(t *testing.T) {
	src := people + `
rules:
  - {id: named, tool: a.pay, ask: {tier: R4, salient: [args.to, args.o.n]}}
  - {id: first, tool: "*", ask: {tier: R4}}
`
	hash := mustCall(t, "a.pay", `{"to":"a\u202eb"}`).Hash().Short()
	for _, c := range [][3]string{
		{"a.pay", `{"to":"bob","o":{"n":1.50}}`, "pay bob 1.5"},
		{"a.pay", `{"to":"a\u202eb"}`, "pay " + hash + " " + hash},
		{"b.refund", `{"amount_usd":900,"charge":"ch_1"}`, "refund 900"},
		{"b.refund", `{"a":null,"b":[1],"c":{"d":1},"e":" x","f":"a  b","g":"","h":"ü","i":"` + strings.Repeat("x", 65) + `","i2":"a\nb","i3":"a\tb","j":true}`, "refund true"},
		{"b.refund", `{}`, "refund"},
		{"b.re fund  x", `{}`, "call"},
		{"b.löschen", `{"x":1}`, "call 1"},
	} {
		if v := judge(t, src, c[0], c[1]); v.Salient != c[2] {
			t.Errorf("%s %s: %q, want %q", c[0], c[1], v.Salient, c[2])
		}
	}
}

// What the effects say is taken from the call and cannot pretend to be more.
func TestEffects(t *testing.T) {
	src := people + `rules: [{id: a, tool: x.y, deny: true, effects: ["Pays {args.n} to {args.who} {args.o.p}."]}]`
	for args, want := range map[string]string{
		`{"n":900,"who":"ch_1","o":{"p":[1,{"a":"b"}]}}`:                     `Pays 900 to ch_1 [1,{"a":"b"}].`,
		`{"n":9007199254740993,"who":"me, and nobody else."}`:                `Pays 9007199254740993 to "me, and nobody else." (no args.o.p).`,
		`{"who":"a\nb\t\u202e\"\\","o":{"p":""}}`:                            `Pays (no args.n) to "a\nb\t[U+202E]\"\\" "".`,
		`{"n":null,"who":true,"o":{"p":"` + strings.Repeat("x", 300) + `"}}`: "Pays null to true " + strings.Repeat("x", 200) + "….",
	} {
		if v := judge(t, src, "x.y", args); v.Effects[0] != want {
			t.Errorf("%s:\n%s, want\n%s", args, v.Effects[0], want)
		}
	}
}

// POL-15: annotations raise a tier and never lower it.
func TestHints(t *testing.T) {
	src := people + `
rules:
  - {id: r0, tool: a.x, allow: {tier: R0}}
  - {id: r1, tool: b.x, allow: {tier: R1}}
  - {id: glob, tool: ["c.*", "z.z"], allow: {tier: R1}}
  - {id: cond, tool: "d.*", when: args.x == 1, allow: {tier: R1}}
  - {id: r2, tool: "e.*", allow: {tier: R2}}
  - {id: ask1, tool: "f.*", ask: {tier: R1, scope: [workspace]}}
  - {id: ask4, tool: "g.*", ask: {tier: R4}}
  - {id: never, tool: "h.*", deny: {tier: R1}}
`
	all := Hints{ReadOnly: no(), Destructive: yes(), OpenWorld: yes(), Idempotent: no()}
	kind := Hints{ReadOnly: yes(), Destructive: no(), OpenWorld: no(), Idempotent: yes()}
	for _, c := range []struct {
		tool  string
		hints Hints
		want  string
	}{
		{"a.x", Hints{}, "allow R0 r0"},
		{"a.x", kind, "allow R0 r0"},
		{"a.x", Hints{Destructive: yes()}, "ask R3 r0"},
		{"a.x", Hints{ReadOnly: no()}, "allow R1 r0"},
		{"a.x", Hints{OpenWorld: yes()}, "allow R1 r0"},
		{"a.x", all, "ask R3 r0"},
		{"b.x", Hints{Destructive: yes()}, "allow R2 r1"},
		{"b.x", Hints{OpenWorld: yes()}, "allow R2 r1"},
		{"b.x", Hints{ReadOnly: no()}, "allow R1 r1"},
		{"c.x", Hints{Destructive: yes()}, "ask R3 glob"},
		{"d.x", Hints{Destructive: yes()}, "allow R2 cond"},
		{"e.x", all, "allow R2 r2"},
		{"f.x", all, "ask R2 ask1"},
		{"g.x", kind, "ask R4 ask4"},
		{"h.x", all, "deny R1 never"},
		{"q.x", kind, "ask R3 defaults.unmatched"},
	} {
		v := judge(t, src, c.tool, `{"x":1}`, func(f *Facts) { f.Hints = c.hints })
		expect(t, v, c.want)
	}
	v := judge(t, src, "a.x", `{}`, func(f *Facts) { f.Hints = all })
	if v.Why != "Asked although a rule allows it: the server calls this tool destructive." || v.Quorum != 1 || !slices.Equal(v.Scopes, []string{"once"}) {
		t.Errorf("%+v", v)
	}
}

// A tool whose definition nobody accepted is at least R3, so it is asked; what
// is no tool has no definition.
func TestUnknownTools(t *testing.T) {
	unknown := func(f *Facts) { f.Known = false }
	rules := "rules: [{id: a, tool: '*', allow: {tier: R0}}, {id: b, tool: '*', deny: true}]"
	expect(t, judge(t, people+rules, "x.y", `{}`, unknown), "ask R3 a")
	expect(t, judge(t, people+rules, "x."+MethodPrefix+"prompts/get", `{}`, unknown), "allow R0 a")
	expect(t, judge(t, people+"defaults: {unknown: rules}\n"+rules, "x.y", `{}`, unknown), "allow R0 a")
	v := judge(t, people+"rules: [{id: a, tool: '*', ask: {tier: R1, scope: [workspace, session]}}]", "x.y", `{}`, unknown)
	expect(t, v, "ask R3 a")
	if !slices.Equal(v.Scopes, []string{"once", "session"}) {
		t.Error(v.Scopes) // workspace is not offered from R3 on
	}
	if got := string(Starter()); !strings.Contains(got, "version: 1") {
		t.Error(got)
	}
	for tool, want := range map[string]string{
		"fs.mcp:prompts/get":         "allow R0 mcp-prompts",
		"fs.mcp:completion/complete": "allow R0 mcp-completion",
		"fs.x.mcp:prompts/get":       "ask R3 defaults.unmatched", // a tool that pretends to be a method
		"fs.read_file":               "ask R3 defaults.unmatched",
	} {
		expect(t, judge(t, string(Starter()), tool, `{}`, unknown), want)
	}
	expect(t, judge(t, string(AllowAll()), "fs.x", `{"a":"\u202e"}`, unknown, func(f *Facts) { f.Hints = Hints{Destructive: yes(), ReadOnly: no(), OpenWorld: yes()} }), "allow R2 everything")
}

// CAN-18, DISP-07: what a person cannot inspect is never allowed by its name.
func TestOpaqueArguments(t *testing.T) {
	src := people + `
rules:
  - {id: name, tool: a.x, allow: {tier: R1}}
  - {id: path, tool: b.x, when: args.path == "p", allow: {tier: R1}}
  - {id: read, tool: c.x, when: size(args.content) < 1000000, allow: {tier: R1}}
  - {id: deep, tool: d.x, when: size(args.doc.body) < 1000000 && size(args.doc.title) > 0, allow: {tier: R1}}
  - {id: ask, tool: e.x, ask: {tier: R1, scope: [workspace, session]}}
`
	blob := strings.Repeat("QUJD", 64)
	long := strings.Repeat("a line of text. ", 4097)
	for _, c := range [][3]string{
		{"a.x", `{"content":"short"}`, "allow R1 name"},
		{"a.x", `{"content":"` + strings.Repeat("a word ", 4000) + `"}`, "allow R1 name"},
		{"a.x", `{"content":"` + blob + `"}`, "ask R3 name"},
		{"a.x", `{"content":"` + blob[:255] + `"}`, "allow R1 name"},
		{"a.x", `{"content":["x",{"y":"` + blob + `"}]}`, "ask R3 name"},
		{"a.x", `{"` + blob + `":1}`, "ask R3 name"},
		{"a.x", `{"content":"` + long + `"}`, "ask R3 name"},
		{"a.x", `{"content":"` + strings.Repeat("deadbeef", 32) + `"}`, "ask R3 name"},
		{"b.x", `{"path":"p","content":"` + blob + `"}`, "ask R3 path"},
		{"b.x", `{"path":"p","content":"x"}`, "allow R1 path"},
		{"c.x", `{"content":"` + blob + `"}`, "allow R1 read"},
		{"c.x", `{"content":"` + blob + `","other":"` + blob + `"}`, "ask R3 read"},
		{"c.x", `{"content":"x","other":{"a":"` + blob + `"}}`, "ask R3 read"},
		{"d.x", `{"doc":{"title":"t","body":"` + blob + `"}}`, "allow R1 deep"},
		{"d.x", `{"doc":{"title":"t","body":"b","more":"` + blob + `"}}`, "ask R3 deep"},
		{"e.x", `{"content":"` + blob + `"}`, "ask R3 ask"},
		{"q.x", `{"content":"` + blob + `"}`, "ask R3 defaults.unmatched"},
		// Hidden characters are asked even where the condition reads them.
		{"a.x", `{"content":"a\u202eb"}`, "ask R3 name"},
		{"a.x", `{"a\u200b":1}`, "ask R3 name"},
		{"a.x", `{"content":"a\u0000b"}`, "ask R3 name"},
		{"a.x", `{"content":"a\rb"}`, "ask R3 name"},
		{"a.x", `{"content":"a\bb"}`, "ask R3 name"},
		{"a.x", `{"content":"a\fb"}`, "ask R3 name"},
		{"a.x", "{\"content\":\"a\x7fb\"}", "ask R3 name"},
		{"a.x", `{"content":"a\u001bb"}`, "ask R3 name"},
		{"a.x", `{"content":"a\\u202e \"q\" \n\t / é 中"}`, "allow R1 name"},
		{"c.x", `{"content":"a\u202eb"}`, "ask R3 read"},
	} {
		v := judge(t, src, c[0], c[1])
		if got := v.Effect.String() + " " + v.Tier.String() + " " + v.Rule; got != c[2] {
			t.Errorf("%s %.60s: %s, want %s", c[0], c[1], got, c[2])
		}
	}
	expect(t, judge(t, strings.Replace(src, "rules:", "defaults: {opaque: rules}\nrules:", 1), "a.x", `{"content":"a\u202eb`+blob+`"}`), "allow R1 name")
}

func TestLimits(t *testing.T) {
	src := people + `
defaults: {of: oncall}
rules: [{id: open, tool: "*", allow: {tier: R1}}, {id: never, tool: no.x, deny: true}]
limits:
  - {id: burst, tool: "fs.*", count: 3, per: 1m, by: session, then: ask, why: slow down}
  - {id: daily, tool: "fs.*", count: 5, per: 24h, by: agent, then: deny}
  - {id: spend, sum: args.usd, per: 24h, by: workspace, above: 100.5, then: {ask: oncall, quorum: 2, ttl: 1m}}
  - {id: cost, tool: "api.*", sum: "args.n * 2", per: 1h, by: owner, above: 10, then: ask}
  - {id: flag, tool: flag.x, sum: args.flag, per: 1h, by: owner, above: 10, then: ask}
  - {id: ratio, tool: ratio.x, sum: args.a / args.b, per: 1h, by: owner, above: 10, then: ask}
  - {id: again, tool: "fs.*", denials: 3, by: session, then: pause_session, why: stop}
  - {id: cond, tool: "c.*", when: args.prod, count: 0, per: 1m, by: all, then: deny}
  - {id: big, output_bytes: 1MB, then: hold_result}
  - {id: small, tool: "fs.*", output_bytes: 64KiB, then: hold_result}
`
	total := func(key string, n int64) func(*Facts) {
		return func(f *Facts) { f.Totals = map[string]int64{key: n} }
	}
	burst, daily, spend, again := "burst/session/s1", "daily/agent/bot", "spend/workspace/shop", "again/session/s1"
	v := judge(t, src, "fs.x", `{}`)
	expect(t, v, "allow R1 open")
	if v.Output != (OutputLimit{"small", 65536}) {
		t.Error(v.Output)
	}
	if v := judge(t, src, "db.x", `{}`); v.Output != (OutputLimit{"big", 1_000_000}) {
		t.Error(v.Output)
	}
	expect(t, judge(t, src, "fs.x", `{}`, total(burst, 2)), "allow R1 open")
	v = judge(t, src, "fs.x", `{}`, total(burst, 3))
	expect(t, v, "ask R1 burst")
	if v.Why != "slow down" || v.Of.Name != "oncall" || v.TTL != DefaultTTL {
		t.Errorf("%+v", v)
	}
	expect(t, judge(t, src, "fs.x", `{}`, total(burst, -1)), "ask R1 burst")
	expect(t, judge(t, src, "fs.x", `{}`, total(burst, math.MaxInt64)), "ask R1 burst")
	expect(t, judge(t, src, "fs.x", `{}`, total(daily, 5)), "deny R1 daily")
	v = judge(t, src, "fs.x", `{}`, total(again, 3))
	expect(t, v, "allow R1 open")
	if !v.Pause {
		t.Errorf("%+v", v)
	}
	expect(t, judge(t, src, "fs.x", `{}`, total(again, 2)), "allow R1 open")

	// POL-16: many small amounts add up, exactly.
	expect(t, judge(t, src, "pay.x", `{"usd":0.3}`, total(spend, 100_200_000)), "allow R1 open")
	v = judge(t, src, "pay.x", `{"usd":0.3}`, total(spend, 100_200_001))
	expect(t, v, "ask R1 spend")
	if v.Quorum != 2 || v.TTL != time.Minute {
		t.Errorf("%+v", v)
	}
	expect(t, judge(t, src, "pay.x", `{"usd":101}`), "ask R1 spend")
	expect(t, judge(t, src, "pay.x", `{"usd":0.3000001}`, total(spend, 100_200_000)), "ask R1 spend")
	for _, args := range []string{`{"usd":-1}`, `{"usd":"5"}`, `{"usd":1e18}`, `{"usd":1e25}`, `{"usd":null}`, `{"usd":[1]}`, `{"usd":9223372036855}`} {
		expect(t, judge(t, src, "pay.x", args), "ask R1 spend")
	}
	expect(t, judge(t, src, "pay.x", `{"eur":1}`), "allow R1 open") // no such argument: not concerned
	expect(t, judge(t, src, "api.x", `{}`), "ask R1 cost")          // named by its tool: concerned
	expect(t, judge(t, src, "api.x", `{"n":5}`), "allow R1 open")
	expect(t, judge(t, src, "api.x", `{"n":9223372036854775807}`), "ask R1 cost")

	expect(t, judge(t, src, "flag.x", `{"flag":true}`), "ask R1 flag")
	expect(t, judge(t, src, "flag.x", `{"flag":1.5}`), "allow R1 open")
	expect(t, judge(t, src, "ratio.x", `{"a":1.5,"b":0}`), "ask R1 ratio") // infinite, or no value at all
	expect(t, judge(t, src, "ratio.x", `{"a":1.5,"b":0.5}`), "allow R1 open")

	expect(t, judge(t, src, "c.x", `{"prod":false}`), "allow R1 open")
	expect(t, judge(t, src, "c.x", `{"prod":true}`), "deny R1 cond")
	expect(t, judge(t, src, "c.x", `{}`), "deny R1 cond")
	// Two limits that are reached: the strictest answer stays.
	expect(t, judge(t, src, "fs.x", `{}`, func(f *Facts) { f.Totals = map[string]int64{daily: 5, again: 3, burst: 3} }), "deny R1 daily")
}

func TestCharges(t *testing.T) {
	src := people + `
limits:
  - {id: burst, tool: "fs.*", count: 3, per: 1m, by: session, then: ask}
  - {id: spend, sum: args.usd, per: 24h, by: workspace, above: 100, then: ask}
  - {id: cost, tool: "api.*", sum: "args.n * 1.5", per: 1h, by: owner, above: 10, then: ask}
  - {id: again, denials: 3, by: agent, then: pause_session}
  - {id: all, tool: "api.*", count: 3, per: 1h, by: all, then: ask}
  - {id: cond, tool: "fs.*", when: args.prod, count: 3, per: 1h, by: all, then: ask}
  - {id: big, output_bytes: 1MB, then: hold_result}
`
	p := mustParse(t, src)
	for _, c := range []struct {
		tool, args string
		want       []Charge
	}{
		{"fs.x", `{"usd":19.99,"prod":true}`, []Charge{
			{"burst/session/s1", 1, time.Minute, Count, "burst", false}, {"spend/workspace/shop", 19_990_000, 24 * time.Hour, Sum, "spend", false}, {"again/agent/bot", 1, 0, Denials, "again", true}, {"cond/all/", 1, time.Hour, Count, "cond", false},
		}},
		{"fs.x", `{"usd":-5,"prod":false}`, []Charge{{"burst/session/s1", 1, time.Minute, Count, "burst", false}, {"again/agent/bot", 1, 0, Denials, "again", true}}},
		{"api.x", `{"n":0.1}`, []Charge{{"cost/owner/user:ana", 150_001, time.Hour, Sum, "cost", false}, {"again/agent/bot", 1, 0, Denials, "again", true}, {"all/all/", 1, time.Hour, Count, "all", false}}},
		{"x.y", `{"usd":0}`, []Charge{{"again/agent/bot", 1, 0, Denials, "again", true}}},
	} {
		if got := p.Charges(mustCall(t, c.tool, c.args), known); !slices.Equal(got, c.want) {
			t.Errorf("%s %s:\n%v, want\n%v", c.tool, c.args, got, c.want)
		}
	}
	if mustParse(t, "version: 1").Charges(mustCall(t, "x.y", `{}`), known) != nil {
		t.Error("charges without limits")
	}
}

// A trace names rules and conditions and never an argument's value.
func TestTrace(t *testing.T) {
	src := people + `
guards:
  - {id: g1, tool: "x.*", deny: true}
  - {id: g2, tool: "s.*", when: args.secret == "hunter3", deny: true}
rules:
  - {id: r1, tool: "x.*", allow: {tier: R0}}
  - {id: r2, tool: "y.*", allow: {tier: R0}}
  - {id: r3, tool: "s.*", when: 'inside(args.secret, "p")', allow: {tier: R0}}
  - {id: r4, tool: "s.*", when: int(args.secret) == 1, ask: {}}
  - {id: r5, tool: "z.*", allow: {tier: R0}}
  - {id: r6, tool: "s.*", deny: true}
scopes: {p: {paths: ["/srv/**"]}}
limits: [{id: l, sum: "int(args.secret)", per: 1h, by: all, above: 1, then: deny}]
`
	v := judge(t, src, "s.x", `{"secret":"hunter2~1"}`)
	want := []Step{
		{"guard", "g1", "", false, "tool differs"},
		{"guard", "g2", "", false, "its condition is false"},
		{"rule", "r1", "r2", false, "tool differs"},
		{"rule", "r3", "", false, "its condition has no value: the path holds a tilde that some systems expand"},
		{"rule", "r4", "", false, "its condition has no value: it cannot be evaluated"},
		{"rule", "r5", "", false, "tool differs"},
		{"rule", "r6", "", true, "the tool matches"},
	}
	if !slices.Equal(v.Trace, want) {
		t.Errorf("%+v", v.Trace)
	}
	if v := mustParse(t, src).Judge(mustCall(t, "q.x", `{"secret":"hunter2"}`), known); v.Trace[0] != (Step{"guard", "g1", "g2", false, "tool differs"}) ||
		v.Trace[2] != (Step{"default", Unmatched, "", true, "no rule matches"}) || strings.Contains(v.Trace[3].Note, "hunter") {
		t.Errorf("%+v", v.Trace)
	}
}

func TestNames(t *testing.T) {
	for e, want := range map[Effect]string{Deny: "deny", Ask: "ask", Allow: "allow", 9: "deny"} {
		if e.String() != want {
			t.Error(e, want)
		}
	}
	var words []string
	for tier := R0; tier <= R4; tier++ {
		words = append(words, tier.String()+" "+tier.Word())
	}
	if strings.Join(words, ", ") != "R0 none, R1 low, R2 medium, R3 high, R4 critical" {
		t.Error(words)
	}
	if got := slices.Sorted(maps.Keys(mustParse(t, people).approvers)); len(got) != 5 {
		t.Error(got)
	}
}
