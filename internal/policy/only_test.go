package policy

import (
	"fmt"
	"strings"
	"testing"
)

// POL-16: a condition judges the arguments that it reads; only keeps the others out.
func TestOnly(t *testing.T) {
	p := mustParse(t, `version: 1
scopes: {repo: {paths: ["/srv/repo/**"]}}
rules:
  - {id: read, tool: ["fs.read_*"], when: 'inside(args.path, "repo")', only: [path, head, tail], allow: {tier: R0}}
  - {id: beep, tool: clock.beep, only: times, allow: {tier: R0}}
`)
	for _, c := range []struct {
		tool, args string
		want       Effect
	}{
		{"fs.read_file", `{"path":"/srv/repo/a"}`, Allow},
		{"fs.read_file", `{"path":"/srv/repo/a","head":3,"tail":1}`, Allow},
		{"fs.read_multiple_files", `{"path":"/srv/repo/a","paths":["/etc/shadow"]}`, Ask},
		{"fs.read_file", `{"path":"/srv/repo/a","Path":"/etc/shadow"}`, Ask},
		{"fs.read_file", `{"path":"/srv/repo/a","p\u0061ths":null}`, Ask},
		{"fs.read_file", `{"path":"/srv/repo/a","":0}`, Ask},
		{"fs.read_file", `{"path":"/etc/shadow"}`, Ask},
		{"clock.beep", `{"times":{"any":"shape"}}`, Allow},
		{"clock.beep", `{"time":1}`, Ask},
	} {
		v := p.Judge(mustCall(t, c.tool, c.args), known)
		if v.Effect != c.want {
			t.Errorf("%s %s: %s, want %s", c.tool, c.args, v.Effect, c.want)
		}
		if trace := fmt.Sprint(v.Trace); strings.Contains(trace, "shadow") || strings.Contains(trace, "paths") {
			t.Errorf("the trace holds words of the call: %s", trace)
		}
	}
	v := p.Judge(mustCall(t, "fs.read_file", `{"path":"/srv/repo/a","paths":[]}`), known)
	if v.Trace[0].ID != "read" || v.Trace[0].Hit || !strings.Contains(v.Trace[0].Note, "only does not list") {
		t.Errorf("the trace does not say which rule fell short: %v", v.Trace)
	}
}

func TestOnlyFaults(t *testing.T) {
	for rule, want := range map[string]string{
		`{id: a, tool: x.y, only: [b], deny: true}`:                           "only belongs to an allow",
		`{id: a, tool: x.y, only: [b], ask: {}}`:                              "only belongs to an allow",
		`{id: a, tool: x.y, only: [b, b], allow: {tier: R0}}`:                 "listed twice",
		`{id: a, tool: x.y, when: args.c == 1, only: [b], allow: {tier: R0}}`: "would match nothing",
		`{id: a, tool: x.y, only: [], allow: {tier: R0}}`:                     "must not be empty",
		`{id: a, tool: x.y, only: {b: 1}, allow: {tier: R0}}`:                 "only",
	} {
		_, err := Parse("p.yaml", []byte("version: 1\nrules:\n  - "+rule+"\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", rule, err, want)
		}
	}
	if _, err := Parse("p.yaml", []byte("version: 1\nguards:\n  - {id: a, tool: x.y, only: [b], deny: true}\n")); err == nil {
		t.Error("a guard takes only")
	}
	p := mustParse(t, "version: 1\nrules:\n  - {id: a, tool: x.y, only: [b, c], allow: {tier: R0}}\n")
	faults := p.CheckSchema("x.y", []byte(`{"type":"object","properties":{"b":{"type":"string"}}}`))
	if len(faults) != 1 || faults[0].Line != 3 || !strings.Contains(faults[0].Text, `no argument "args.c"`) {
		t.Errorf("%v", faults)
	}
}

// POL-16: whoever forgets only is told.
func TestNotes(t *testing.T) {
	p := mustParse(t, `version: 1
scopes: {repo: {paths: ["/srv/repo/**"]}}
guards:
  - {id: g, tool: x.y, when: args.a == 1, deny: true}
rules:
  - {id: silent, tool: x.y, when: 'args.a == 1 && has(args.b) && args.a < 3', allow: {tier: R0}}
  - {id: whole, tool: x.y, when: size(args) == 1, allow: {tier: R0}}
  - {id: said, tool: x.y, when: args.a == 1, only: [a], allow: {tier: R0}}
  - {id: asked, tool: x.y, when: args.a == 1, ask: {}}
  - {id: other, tool: x.y, when: agent == "b", allow: {tier: R0}}
  - {id: always, tool: x.y, allow: {tier: R0}}
`)
	notes := p.Notes()
	if len(notes) != 2 || notes[0].Line != 6 || !strings.Contains(notes[0].Text, "rule silent") || !strings.HasSuffix(notes[0].Text, "only: [a, b, …]") ||
		notes[1].Line != 7 || !strings.Contains(notes[1].Text, "rule whole") {
		t.Errorf("%v", notes)
	}
	if notes := mustParse(t, string(Starter())).Notes(); len(notes) != 0 {
		t.Errorf("the starter policy has notes: %v", notes)
	}
}
