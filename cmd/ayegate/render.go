package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ayegate/ayegate/api"
	"github.com/ayegate/ayegate/internal/strictjson"
)

var tierWords = map[string]string{"R0": "none", "R1": "low", "R2": "medium", "R3": "high", "R4": "critical"}

// render writes a request whole, in the order of its page: first what would be
// done, from the canonical bytes, then everything said about it.
func render(out io.Writer, r *api.Request) {
	fmt.Fprintf(out, "%s  %s %s  %s  %s\n\n", r.Code, r.RiskTier, tierWords[r.RiskTier], state(r), timeLeft(r))
	fmt.Fprintf(out, "EXACT CALL  whole, %d bytes, sha256 %s\n", len(r.ToolCallCanonical), strings.TrimPrefix(r.ToolCallHash, "sha256:"))
	fmt.Fprintf(out, "  tool    %s on server %s\n", oneLine(r.Tool), r.Server)
	if args, ok := arguments(r.ToolCallCanonical); ok {
		renderJSON(out, "args", args)
	}
	fmt.Fprintf(out, "  canonical\n    %s\n", visible(r.ToolCallCanonical))
	if r.Extras != "" {
		fmt.Fprintf(out, "\nALSO SENT, BESIDE THE CALL  whole, %d bytes; no rule has looked at it\n", len(r.Extras))
		renderJSON(out, "params", []byte(r.Extras))
		fmt.Fprintf(out, "  canonical\n    %s\n", visible(r.Extras))
	}
	if n := hiddenCount(r.ToolCallCanonical) + hiddenCount(r.Extras); n > 0 {
		fmt.Fprintf(out, "  ! %d characters that you could not see are written as <U+…>\n", n)
	}
	section(out, "WHY THIS TIER", orElse(r.Why, "No reason given in the rule.")+"  rule "+r.Rule)
	lines := make([]string, 0, len(r.Effects))
	for _, e := range r.Effects {
		lines = append(lines, e.Text+"  ["+e.Source+"]")
	}
	section(out, "WHAT IT WILL DO", orElse(strings.Join(lines, "\n"), "Unknown: no rule or check describes this tool."))
	section(out, "CAN IT BE UNDONE", orElse(r.Rollback, "No undo is known for this action."))
	section(out, "DRY RUN", orElse(r.DryRun.Note, "Not available."))
	who := "agent " + r.Agent.ID + "  session " + r.SessionID
	if r.Agent.Owner != "" {
		who += "  works for " + r.Agent.Owner
	}
	section(out, "WHO IS ASKING", who)
	if r.AgentReason != "" {
		section(out, "AGENT SAYS. NOT CHECKED.", r.AgentReason)
	}
	for _, d := range r.Decisions {
		void := ""
		if d.Void {
			void = "  (void: the request changed afterwards)"
		}
		section(out, "DECISION", fmt.Sprintf("%s by %s at %s%s  %s", d.Decision, d.By, d.At.Local().Format("15:04:05"), void, d.Reason))
	}
	renderOutcome(out, r)
}

// renderJSON lays a document out under a name.
func renderJSON(out io.Writer, name string, doc []byte) {
	var b bytes.Buffer
	if json.Indent(&b, doc, "    ", "  ") != nil {
		return // the canonical form below is shown in any case
	}
	fmt.Fprintf(out, "  %s\n    %s\n", name, visible(b.String()))
}

func hiddenCount(s string) int {
	return strings.Count(visible(s), "<U+") - strings.Count(visible(s), "<U+003C>")
}

func section(out io.Writer, title, text string) {
	fmt.Fprintf(out, "\n%s\n", title)
	for line := range strings.Lines(visible(text)) {
		for _, row := range fold(strings.TrimRight(line, "\n"), width) {
			fmt.Fprintf(out, "  %s\n", row)
		}
	}
}

// width is how much of a text stands on one row. A terminal would fold longer
// rows at its edge, where padding could make the rest look like ours (DISP-05).
const width = 76

// fold cuts a text into rows, at a space where there is one.
func fold(s string, width int) []string {
	r := []rune(s)
	var rows []string
	for len(r) > width {
		cut := width
		for i := width; i > width/2; i-- {
			if r[i] == ' ' {
				cut = i
				break
			}
		}
		rows = append(rows, string(r[:cut]))
		r = r[cut:]
	}
	return append(rows, string(r))
}

func renderOutcome(out io.Writer, r *api.Request) {
	x := r.Execution
	if x == nil {
		return
	}
	text := string(x.Outcome)
	switch {
	case x.Outcome == "":
		text = "running since " + x.StartedAt.Local().Format("15:04:05")
	case x.Outcome == api.InDoubt:
		text = "The call was sent but no answer came back. It may have run. Check before allowing a retry:\nayegate resolve " + r.Code + " succeeded|errored|not_sent"
	case x.Error != "":
		text += ": " + x.Error
	}
	section(out, "OUTCOME", text)
	if x.Result != "" {
		section(out, "RESULT", x.Result)
	}
}

// arguments are the bytes of a canonical call's arguments.
func arguments(canonical string) ([]byte, bool) {
	if strictjson.Check([]byte(canonical), strictjson.Limits{}) != nil {
		return nil, false
	}
	return strictjson.Get([]byte(canonical), "args")
}

// state says where a request stands, in the words of the pages.
func state(r *api.Request) string {
	switch r.Status {
	case api.StatusPending:
		if r.Quorum > 1 {
			return fmt.Sprintf("waiting, %d of %d approved", r.Quorum-r.ApprovalsNeeded, r.Quorum)
		}
		return "waiting for you"
	case api.StatusApproved:
		return "approved, runs when the agent returns"
	case api.StatusUnknown:
		return "outcome unknown"
	default:
		return string(r.Status)
	}
}

// timeLeft is told by the server's clock, which also ends the wait.
func timeLeft(r *api.Request) string {
	if r.Status != api.StatusPending && r.Status != api.StatusApproved {
		return ""
	}
	left := r.ExpiresAt.Sub(r.ServerNow)
	if left <= 0 {
		return "0:00"
	}
	return fmt.Sprintf("%d:%02d left", int(left.Minutes()), int(left.Seconds())%60)
}

// preview is a call on one line. It says when it is shortened: from a shortened
// one nobody should decide.
func preview(r *api.Request, width int) string {
	args, ok := arguments(r.ToolCallCanonical)
	if !ok {
		return ""
	}
	s, more := oneLine(string(args)), ""
	if r.Extras != "" {
		more = " and more beside the call"
	}
	if len(s) <= width {
		return s + more
	}
	cut := width - 12
	for cut > 0 && s[cut]&0xC0 == 0x80 {
		cut--
	}
	return s[:cut] + " … shortened" + more
}

func orElse(s, otherwise string) string {
	if strings.TrimSpace(s) == "" {
		return otherwise
	}
	return s
}

func clock(t time.Time) string { return t.Local().Format("15:04:05") }
