package policy

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Summary is the verdict in one line, as a person reads it first:
//
//	ask   R4   2 people from oncall   typed confirmation   once only   expires in 5m
func (v Verdict) Summary() string {
	parts := []string{v.Effect.String(), v.Tier.String()}
	if v.Pause {
		parts = append(parts, "pauses the session")
	}
	if v.Effect != Ask {
		if v.Output.Limit != "" {
			parts = append(parts, "results over "+strconv.FormatInt(v.Output.Bytes, 10)+" bytes are held")
		}
		return strings.Join(append(parts, v.Rule), "   ")
	}
	who := "1 person"
	if v.Quorum > 1 {
		who = strconv.Itoa(v.Quorum) + " people"
	}
	if v.Of.Name != "" {
		who += " from " + v.Of.Name
	}
	parts = append(parts, who)
	for _, c := range v.Confirm {
		parts = append(parts, string(c)+" confirmation")
	}
	scopes := "once only"
	if len(v.Scopes) > 1 {
		scopes = strings.Join(v.Scopes, ", ")
	}
	return strings.Join(append(parts, scopes, "expires in "+short(v.TTL)), "   ")
}

// Explain writes the verdict and every phase's reasons. It holds names of rules
// and conditions, and no argument's value except in effects and the typed text.
func (v Verdict) Explain(w io.Writer) error {
	var b strings.Builder
	b.WriteString(v.Summary() + "\n\n")
	id, phase := 0, ""
	for _, s := range v.Trace {
		id = max(id, len(s.name()))
	}
	for _, s := range v.Trace {
		heading := s.Phase + "s"
		if heading == phase {
			heading = ""
		} else {
			phase = heading
		}
		fmt.Fprintf(&b, "%-9s  %-*s  %-3s  %s\n", heading, id, s.name(), s.answer(), s.Note)
	}
	write := func(name, text string) {
		if text != "" {
			fmt.Fprintf(&b, "%-9s  %s\n", name, text)
		}
	}
	b.WriteByte('\n')
	write("decided", v.Rule)
	write("why", v.Why)
	for _, e := range v.Effects {
		write("effect", e)
	}
	write("undo", v.Undo)
	write("to type", v.Salient)
	if v.Output.Limit != "" {
		write("results", "over "+strconv.FormatInt(v.Output.Bytes, 10)+" bytes are held by "+v.Output.Limit)
	}
	write("policy", v.Revision)
	_, err := io.WriteString(w, b.String())
	return err
}

func (s Step) name() string {
	if s.Through != "" {
		return s.ID + " ... " + s.Through
	}
	return s.ID
}

func (s Step) answer() string {
	switch {
	case s.Hit && s.Phase == "limit":
		return "hit"
	case s.Hit:
		return "yes"
	}
	return "no"
}
