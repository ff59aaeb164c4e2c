package policy

import (
	"errors"
	"slices"
	"strings"

	"github.com/ayegate/ayegate/internal/strictjson"
)

// only reads the arguments that a call may have at most. A condition looks at
// some arguments; a tool reads all of them, also those the author of the policy
// never heard of. It belongs to an allow: on an ask or a deny it would let calls
// pass by.
func (b *builder) only(n node, c *clause) []string {
	if !n.Present() {
		return nil
	}
	c.at = b.at(n)
	if c.effect != Allow {
		b.fault(n, "only belongs to an allow: it says which calls a rule does not match, and this rule makes the answer stricter")
		return nil
	}
	var only []string
	for _, item := range b.Texts(n) {
		switch name := b.Text(item); {
		case name == "":
		case slices.Contains(only, name):
			b.fault(item, "%q is listed twice", name)
		default:
			only = append(only, name)
		}
	}
	if c.when == nil {
		return only
	}
	for _, path := range c.when.reads {
		if !slices.Contains(only, path[0]) {
			b.fault(n, "the condition reads args.%s, which only does not list: the rule would match nothing", path[0])
		}
	}
	return only
}

var errBeyond = errors.New("an argument beyond those that only lists")

// within reports whether a call has no arguments besides those that a clause
// names with only.
func (e *evaluation) within(c *clause) bool {
	if c.only == nil {
		return true
	}
	return strictjson.Each(e.args(), func(name string, _ []byte) error {
		if !slices.Contains(c.only, name) {
			return errBeyond
		}
		return nil
	}) == nil
}

// Notes lists what is no fault and yet worth a look: rules that allow a call for
// the sake of some arguments and say nothing about the others. A tool that reads
// a path from "path" may read more of them from "paths".
func (p *Policy) Notes() []Fault {
	var notes Faults
	for _, c := range p.rules {
		if c.effect != Allow || c.only != nil || c.when == nil || len(c.when.mentions) == 0 && !c.when.whole {
			continue
		}
		note := c.when.at
		note.Text = "the rule " + c.id + " allows calls with any other arguments beside those its condition reads; list all that a call may have: only: [" + c.when.arguments() + "…]"
		notes = append(notes, note)
	}
	return notes.InOrder()
}

// arguments begins a list with the names of the arguments that an expression looks at.
func (x *expr) arguments() string {
	var list []string
	for _, path := range x.mentions {
		if !slices.Contains(list, path[0]) {
			list = append(list, path[0])
		}
	}
	return strings.Join(append(list, ""), ", ")
}
