package page

import (
	"fmt"
	"strconv"
	"time"

	"github.com/ayegate/ayegate/api"
)

// Head is what a request's page says first: where it stands, and whether
// anything ran.
type Head struct {
	Title  string
	Detail string
	Tone   string // wait, go, good, bad, doubt, over
}

// headOf has a sentence for every state. It never says "approved" alone where
// something ran, and never "failed" where nobody knows.
func headOf(r api.Request, may May, now time.Time) Head {
	switch r.Status {
	case api.StatusPending:
		return waitingHead(r, may, now)
	case api.StatusApproved:
		if r.Waiting > 0 {
			return Head{"Approved. It starts now.", "The agent is connected.", "go"}
		}
		return Head{"Approved. It has not run yet.", "It runs when the agent returns, until " + clock(r.ExpiresAt, now) + ". Until then it can be revoked.", "go"}
	case api.StatusExecuting:
		return Head{"Running.", runningDetail(r, now), "go"}
	case api.StatusExecuted:
		return Head{"Succeeded" + duration(r) + ".", resolvedBy(r), "good"}
	case api.StatusFailed:
		return failedHead(r)
	case api.StatusUnknown:
		return Head{"It may have run.", unknownDetail(r), "doubt"}
	case api.StatusDenied:
		return deniedHead(r, now)
	case api.StatusExpired:
		if len(approvals(r)) >= max(1, r.Quorum) {
			return Head{"Expired at " + clock(r.EndedAt, now) + ".", "It was approved, and nothing started it before the deadline. Nothing ran.", "over"}
		}
		return Head{"Expired at " + clock(r.EndedAt, now) + " with no decision.", "Nothing ran. The agent may propose it once more.", "over"}
	case api.StatusCancelled:
		return Head{cancelledTitle(r), "It ended at " + clock(r.EndedAt, now) + ". Nothing ran.", "over"}
	}
	return Head{"In a state this page does not know.", "Nothing can be decided here.", "doubt"}
}

func waitingHead(r api.Request, may May, now time.Time) Head {
	if !now.Before(r.ExpiresAt) {
		return Head{"The deadline has passed.", "Nothing ran, and nothing can be approved any more.", "over"}
	}
	h := Head{Title: "Waiting for you.", Tone: "wait"}
	if !may.Approve {
		h.Title = "Waiting for others."
	}
	if given := approvals(r); len(given) > 0 {
		last := given[len(given)-1]
		h.Detail = fmt.Sprintf("%d of %d. %s approved at %s. ", len(given), r.Quorum, last.Name, clock(last.At, now))
	}
	once := "Once it is approved"
	if may.Approve {
		once = "If you approve"
	}
	switch {
	case r.Executor == api.ByCaller && r.Waiting > 0:
		h.Detail += "The agent is connected and performs the call itself."
	case r.Executor == api.ByCaller:
		h.Detail += "The agent performs the call itself when it returns, until " + clock(r.ExpiresAt, now) + "."
	case r.Waiting > 0:
		h.Detail += "The agent is connected. " + once + ", this runs now."
	default:
		h.Detail += "The agent is not waiting. " + once + ", this runs when it returns, until " + clock(r.ExpiresAt, now) + "."
	}
	return h
}

func approvals(r api.Request) []api.Decision {
	var out []api.Decision
	for _, d := range r.Decisions {
		if d.Decision == api.Approve && !d.Void {
			out = append(out, d)
		}
	}
	return out
}

func runningDetail(r api.Request, now time.Time) string {
	if r.Execution.StartedAt.IsZero() {
		return "The agent holds the token and has not started yet."
	}
	return "Started at " + clock(r.Execution.StartedAt, now) + ", " + ago(r.Execution.StartedAt, now) + ". It can no longer be stopped here."
}

func duration(r api.Request) string {
	if r.Execution == nil || r.Execution.StartedAt.IsZero() || r.Execution.ResolvedBy != "" {
		return ""
	}
	return " in " + took(r.Execution.At.Sub(r.Execution.StartedAt))
}

func resolvedBy(r api.Request) string {
	if r.Execution == nil || r.Execution.ResolvedBy == "" {
		return ""
	}
	return "The answer was lost; " + r.Execution.ResolvedBy + " looked and settled it."
}

func failedHead(r api.Request) Head {
	if r.Execution != nil && r.Execution.Outcome == api.Errored {
		detail := "It may have done part of its work."
		if by := resolvedBy(r); by != "" {
			detail += " " + by
		}
		return Head{"The tool answered with an error" + duration(r) + ".", detail, "bad"}
	}
	return Head{"Nothing reached the tool.", "It was allowed and did not run. " + resolvedBy(r), "bad"}
}

func unknownDetail(r api.Request) string {
	why := map[string]string{
		"crash":            "ayegate stopped while the call was running.",
		"no_answer":        "The call was sent but no answer came back in time.",
		"connection_lost":  "The connection broke after the call was sent.",
		"answer_too_large": "The tool's answer was too large to be taken in.",
	}[r.Cause]
	if why == "" {
		why = "The call was sent but no answer came back."
	}
	return why + " Check what it did before you allow a retry. Nothing is run again by itself."
}

func deniedHead(r api.Request, now time.Time) Head {
	if r.Cause != "person" {
		return Head{"Policy denied this.", "Rule " + r.Rule + ". No person can approve it. Nothing ran.", "bad"}
	}
	for _, d := range r.Decisions {
		if d.Decision == api.Deny && !d.Void {
			return Head{d.Name + " denied this at " + clock(d.At, now) + ".", "Nothing ran. " + reason(d.Reason), "bad"}
		}
	}
	return Head{"Denied.", "Nothing ran.", "bad"}
}

func reason(s string) string {
	if s == "" {
		return "No reason was given."
	}
	return "Reason: " + visible(strconv.Quote(s))
}

func cancelledTitle(r api.Request) string {
	why := map[string]string{
		"withdrawn":         "The agent took this back.",
		"person":            "A person ended this.",
		"definition":        "The tool's definition changed while this was open.",
		"policy_changed":    "The policy changed and now asks for more than was given.",
		"store_rolled_back": "The record had to be restored, which voids everything that was open.",
	}[r.Cause]
	if why == "" {
		why = "Cancelled."
	}
	return why
}

// Step is one line of a request's story.
type Step struct {
	At   time.Time
	Text string
	More string
}

// trail tells the story of a request from what is stored of it.
func trail(r api.Request) []Step {
	out := []Step{{At: r.RequestedAt, Text: r.Agent.ID + " asked"}}
	if r.Asks > 1 {
		out[0].More = "It asked " + plural(r.Asks, "time", "times") + " while this was open."
	}
	if r.Quorum == 0 && r.PolicyTrace.Effect == "allow" {
		out = append(out, Step{At: r.RequestedAt, Text: "Rule " + r.Rule + " allowed it"})
	}
	for _, d := range r.Decisions {
		s := Step{At: d.At, Text: d.Name + " approved"}
		if d.Decision == api.Deny {
			s.Text = d.Name + " denied"
		}
		if d.Reason != "" {
			s.More = visible(strconv.Quote(d.Reason))
		}
		if d.Void {
			s.More += " The request changed afterwards, so this counts no more."
		}
		out = append(out, s)
	}
	if e := r.Execution; e != nil {
		if !e.StartedAt.IsZero() {
			out = append(out, Step{At: e.StartedAt, Text: "Started"})
		}
		if e.Outcome != "" && !e.At.IsZero() {
			out = append(out, Step{At: e.At, Text: outcomeWords(e), More: visible(e.Error)})
		}
		if !e.PickedUpAt.IsZero() {
			out = append(out, Step{At: e.PickedUpAt, Text: r.Agent.ID + " received the result"})
		}
	}
	if r.Status == api.StatusExpired || r.Status == api.StatusCancelled || r.Status == api.StatusDenied && r.Cause != "person" {
		out = append(out, Step{At: r.EndedAt, Text: map[api.Status]string{
			api.StatusExpired: "The deadline passed", api.StatusCancelled: "It was ended", api.StatusDenied: "Policy denied it",
		}[r.Status]})
	}
	return out
}

func outcomeWords(e *api.Execution) string {
	word := map[api.Outcome]string{
		api.Succeeded: "The tool answered", api.Errored: "The tool answered with an error",
		api.NotSent: "Nothing was sent", api.InDoubt: "No answer came back",
	}[e.Outcome]
	if e.ResolvedBy != "" {
		return e.ResolvedBy + " settled the outcome: " + string(e.Outcome)
	}
	return word
}

// statusWord is a state for lists.
func statusWord(r api.Request) string {
	switch r.Status {
	case api.StatusPending:
		return "Waiting"
	case api.StatusApproved:
		return "Approved, not run yet"
	case api.StatusExecuting:
		return "Running"
	case api.StatusExecuted:
		return "Succeeded"
	case api.StatusFailed:
		if r.Execution != nil && r.Execution.Outcome == api.Errored {
			return "Tool error"
		}
		return "Did not reach the tool"
	case api.StatusUnknown:
		return "May have run"
	case api.StatusDenied:
		return "Denied"
	case api.StatusExpired:
		return "Expired"
	case api.StatusCancelled:
		return "Cancelled"
	}
	return string(r.Status)
}

// decidedBy says in a few words how a request came to its end.
func decidedBy(r api.Request) string {
	if n := len(r.Decisions); n > 0 {
		d := r.Decisions[n-1]
		if d.Decision == api.Deny {
			return "by " + d.Name
		}
		return "approved by " + d.Name
	}
	if r.PolicyTrace.Effect == "allow" {
		return "rule " + r.Rule
	}
	if r.Status == api.StatusDenied {
		return "rule " + r.Rule
	}
	return ""
}
