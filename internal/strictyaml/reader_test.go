package strictyaml_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ayegate/ayegate/internal/strictyaml"
)

// read walks a document with one member of each kind.
func read(src string) (strictyaml.Faults, map[string]any) {
	r := &strictyaml.Reader{File: "f.yaml"}
	got := map[string]any{}
	n := r.Document([]byte(src))
	if n.Present() {
		f := r.Fields(n, "text", "list", "flag", "count", "wait", "size", "kind", "map")
		got["text"] = r.Text(f["text"])
		if f["list"].Present() {
			for _, item := range r.Texts(f["list"]) {
				got["list"] = append(asList(got["list"]), r.Text(item))
			}
		}
		if f["flag"].Present() {
			got["flag"], _ = r.Truth(f["flag"])
		}
		got["count"] = r.Count(f["count"], 1, 10)
		got["wait"] = r.Length(f["wait"], time.Second, time.Hour)
		if f["size"].Present() {
			got["size"] = r.Size(f["size"])
		}
		got["kind"] = r.OneOf(f["kind"], "a", "b")
		if f["map"].Present() {
			for _, m := range r.Members(f["map"]) {
				got["map."+m.Name] = r.Text(m.Value)
			}
		}
	}
	return r.Faults.InOrder(), got
}

func asList(v any) []string {
	l, _ := v.([]string)
	return l
}

func TestReadsWhatItShows(t *testing.T) {
	faults, got := read("text: hello\nlist: [a, b]\nflag: true\ncount: 3\nwait: 5m\nsize: 64KiB\nkind: b\nmap: {x: y}\n")
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	if got["text"] != "hello" || got["flag"] != true || got["count"] != int64(3) || got["wait"] != 5*time.Minute ||
		got["size"] != int64(64<<10) || got["kind"] != "b" || got["map.x"] != "y" || strings.Join(asList(got["list"]), ",") != "a,b" {
		t.Error(got)
	}
	if _, got := read("list: alone\n"); strings.Join(asList(got["list"]), ",") != "alone" {
		t.Error("a text stands for a list of one")
	}
}

func TestFaultsNameTheirPlace(t *testing.T) {
	for name, c := range map[string]struct{ src, want string }{
		"unknown, near":    {"txet: a", `f.yaml:1:1: txet: unknown key "txet"; did you mean "text"?`},
		"unknown, far":     {"zzzzzz: a", "known: text, list"},
		"twice":            {"text: a\ntext: b", "f.yaml:2:1: text: written twice, first on line 1"},
		"alias bomb":       {"text: &a x\nkind: *a", "anchors and aliases are not accepted"},
		"tag":              {"text: !!binary aGk=", "type tags are not accepted"},
		"number for text":  {"text: 12", "must be a text, not a number"},
		"nothing for text": {"text:", "must be a text, not nothing"},
		"empty text":       {"text: ' '", "must not be empty"},
		"yes is no truth":  {"flag: yes", "must be true or false"},
		"hex is no count":  {"count: 0x3", "whole number from 1 to 10"},
		"too many":         {"count: 11", "whole number from 1 to 10"},
		"no duration":      {"wait: 5", "is not a duration"},
		"too long":         {"wait: 2h", "is not between 1s and 1h"},
		"no size":          {"size: 1.5MB", "is not a size"},
		"none of them":     {"kind: c", `"c" is not one of a, b`},
		"list in list":     {"list: [[a]]", "f.yaml:1:8: list[0]: must be a text, not a list"},
		"empty list":       {"list: []", "must not be empty"},
		"scalar":           {"just text", "must be a mapping, not a text"},
		"empty":            {"", "the file is empty"},
		"two documents":    {"text: a\n---\ntext: b", "one YAML document"},
		"not YAML":         {"a: [", "not YAML"},
		"not UTF-8":        {"text: \xff", "not UTF-8"},
		"too large":        {"text: " + strings.Repeat("a", strictyaml.MaxSource), "over"},
	} {
		t.Run(name, func(t *testing.T) {
			faults, _ := read(c.src)
			if !strings.Contains(faults.Error(), c.want) {
				t.Errorf("got %q, want %q", faults.Error(), c.want)
			}
		})
	}
}

func TestAllFaultsAtOnceInOrder(t *testing.T) {
	faults, _ := read("kind: c\ncount: 99\ntxet: a\n")
	if len(faults) != 3 || faults[0].Line != 1 || faults[1].Line != 2 || faults[2].Line != 3 {
		t.Error(faults)
	}
}
