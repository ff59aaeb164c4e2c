package desk

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ayegate/ayegate/api"
	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/strictjson"
)

// Words are what an agent is told of a call that did not simply run: text that a
// model can act on without anything else, and the same as one JSON object.
type Words struct {
	Code api.Code
	Text string // under 120 words: what did not happen, why, what to do next
	JSON []byte // {"code":…,"id":…,"ran":…,"retry":…}
}

// Next tells an agent how it can go on waiting.
type Next struct {
	Await string // name of the companion tool, empty where there is none
	URL   string // of the request's page; people only, sign-in protected
}

// call says how to go on: with a companion tool, or with a request over HTTP,
// which names the id itself.
func (n Next) call(r *approval.Request) string {
	if strings.Contains(n.Await, " ") {
		return n.Await + "."
	}
	return fmt.Sprintf("call %s with id %q.", n.Await, r.Code)
}

// Told says what to tell an agent of a request that has no result to hand on:
// one that waits, or one that ended without the tool's answer.
func Told(r *approval.Request, now time.Time, next Next) Words {
	name := r.Call.Server() + "." + r.Call.Tool()
	switch r.State {
	case approval.Pending:
		return waiting(r, name, now, next)
	case approval.Approved:
		return approved(r, name, next)
	case approval.Denied:
		return denied(r, name)
	case approval.Expired:
		return words(api.ApprovalExpired, fields{{"id", r.Code}, {"retry", "once"}, {"ran", false}},
			"Nobody decided on %s in time (request %s). It did not run. Nobody said no.\n"+
				"Next: continue with work that does not need it, then mention it to the user. You may propose it once more.", name, r.Code)
	case approval.Cancelled:
		return cancelled(r, name)
	case approval.Executing:
		return words(api.OutcomeUnknown, fields{{"id", r.Code}, {"retry", "wait"}, {"ran", "started"}},
			"%s was approved and is running (request %s). Its result is not here yet. Do not send the same call again.", name, r.Code)
	case approval.Failed:
		return words(api.ToolNotReached, fields{{"id", r.Code}, {"retry", "once"}, {"ran", false}},
			"%s was allowed but did not reach the tool (request %s): %s\nIt did not run. You may ask for it again.",
			name, r.Code, quote(r.Execution.Error))
	case approval.Unknown:
		return unknown(r, name)
	case approval.Executed:
	}
	return words(api.OutcomeUnknown, fields{{"id", r.Code}, {"retry", "never"}, {"ran", true}},
		"%s ran before (request %s) and its result was handed out or is no longer kept. It does not run again for the same request. "+
			"Ask for it anew if it is needed again.", name, r.Code)
}

func waiting(r *approval.Request, name string, now time.Time, next Next) Words {
	left := r.ExpiresAt.Sub(now).Round(time.Second)
	how := "repeat the same call with identical arguments; it joins this request."
	if next.Await != "" {
		how = next.call(r) + " It returns the tool's result if approved."
	}
	f := fields{
		{"id", r.Code},
		{"approvalId", string(r.ID)},
		{"tier", r.Verdict.Tier.String()},
		{"expires_at", r.ExpiresAt.UTC().Format(time.RFC3339)},
		{"retry", "wait"},
		{"ran", false},
	}
	if next.URL != "" {
		f = append(f, field{"url", next.URL})
	}
	return words(api.BlockedPendingApproval, f,
		"%s has not run. A person must approve it (request %s, %s risk, %s left).\nNext: %s\n"+
			"You may do other work that does not depend on it. Do not try another way to reach the same effect.",
		name, r.Code, r.Verdict.Tier.Word(), left, how)
}

func approved(r *approval.Request, name string, next Next) Words {
	how := "repeat the same call with identical arguments."
	if next.Await != "" {
		how = next.call(r)
	}
	return words(api.BlockedPendingApproval, fields{{"id", r.Code}, {"retry", "now"}, {"ran", false}},
		"%s is approved and has not run yet (request %s). Next: %s", name, r.Code, how)
}

func denied(r *approval.Request, name string) Words {
	if r.Cause != approval.ByPerson {
		return words(api.ToolDenied, fields{{"by", "policy"}, {"id", r.Code}, {"rule", r.Verdict.Rule}, {"retry", "changed_only"}, {"ran", false}},
			"Policy denied %s (rule %s). It did not run and no person can approve it.\nReason: %s\nNext: change the plan. Do not retry unchanged.",
			name, r.Verdict.Rule, orNone(r.Verdict.Why))
	}
	reason := denialReason(r)
	return words(api.ToolDenied, fields{{"by", "person"}, {"id", r.Code}, {"reason", reason}, {"retry", "never"}, {"ran", false}},
		"A person denied %s (request %s). It did not run. This is a decision, not an error.\nReason, word for word: %s\n"+
			"Reaching the same effect another way is also refused.\nNext: change the plan. If nothing acceptable remains, ask the user.",
		name, r.Code, quote(reason))
}

func denialReason(r *approval.Request) string {
	for _, d := range r.Decisions {
		if !d.Void && !d.Approve {
			return d.Reason
		}
	}
	return ""
}

func cancelled(r *approval.Request, name string) Words {
	why := map[approval.Cause]string{
		approval.ByAgent:      "it was withdrawn",
		approval.ByPerson:     "a person cancelled it",
		approval.ByDefinition: "the tool's definition changed while it was open",
		approval.ByRejudging:  "the policy changed and now asks for more than was given",
		approval.ByEpoch:      "the record had to be restored, which voids everything open",
	}[r.Cause]
	return words(api.ApprovalWithdrawn, fields{{"id", r.Code}, {"cause", string(r.Cause)}, {"retry", "once"}, {"ran", false}},
		"%s did not run (request %s): %s.\nNext: propose it again if it is still needed.", name, r.Code, why)
}

func unknown(r *approval.Request, name string) Words {
	return words(api.OutcomeUnknown, fields{{"id", r.Code}, {"cause", string(r.Cause)}, {"retry", "never"}, {"ran", "unknown"}},
		"%s was sent but no answer came back (request %s). It may have run. Do not repeat it; check first whether it took effect, "+
			"and tell the user. A person can settle what happened.", name, r.Code)
}

// TellError says what to tell an agent whose call ended in an error before or
// instead of a request.
func TellError(err error, tool string) Words {
	var ref *Refusal
	if !errors.As(err, &ref) {
		f := FaultOf(err)
		ran := any(false)
		if f.Code == api.NotRecorded {
			ran = "unknown"
		}
		return words(f.Code, fields{{"retry", "changed_only"}, {"ran", ran}}, "%s was not let through.\n%s", tool, f.Text)
	}
	switch ref.Code {
	case api.SessionPaused:
		return words(ref.Code, fields{{"retry", "after_resume"}, {"ran", false}},
			"%s did not run: %s.\nNext: stop, tell the user what you were trying to do and which options you see.", tool, ref.Detail)
	case api.QueueFull:
		return words(ref.Code, fields{{"retry", "later"}, {"ran", false}},
			"%s did not run and was not shown to anybody: %s.\nNext: wait for the open requests to be decided, or withdraw some.", tool, ref.Detail)
	case api.ToolDenied:
		return words(ref.Code, fields{{"by", "repeat"}, {"of", ref.Of.Code}, {"retry", "never"}, {"ran", false}},
			"The same call was denied before (%s) and was not shown to a person again. It did not run. Its reason still applies: %s\n"+
				"Next: change the plan, or ask the user.", ref.Of.Code, quote(denialReason(ref.Of)))
	case api.OutcomeUnknown:
		return unknown(ref.Of, tool)
	case api.ApprovalExpired:
		return words(ref.Code, fields{{"of", ref.Of.Code}, {"retry", "never"}, {"ran", false}},
			"Nobody decided on the same call twice, so it was not shown again. It did not run. Nobody said no.\n"+
				"Next: stop proposing it and mention it to the user.")
	default:
		return words(ref.Code, fields{{"retry", "later"}, {"ran", false}}, "%s did not run: %s.", tool, ref.Detail)
	}
}

type field struct {
	name  string
	value any // string or bool
}

type fields []field

func words(c api.Code, f fields, format string, args ...any) Words {
	b := append([]byte(`{"code":`), strictjson.AppendString(nil, string(c))...)
	for _, x := range f {
		b = append(strictjson.AppendString(append(b, ','), x.name), ':')
		switch v := x.value.(type) {
		case bool:
			b = strconv.AppendBool(b, v)
		case string:
			b = strictjson.AppendString(b, v)
		}
	}
	return Words{Code: c, Text: string(c) + "\n" + fmt.Sprintf(format, args...), JSON: append(b, '}')}
}

// quote keeps a person's or a tool's words apart from instructions.
func quote(s string) string {
	if strings.TrimSpace(s) == "" {
		return "(no reason was given)"
	}
	return strconv.Quote(clip(s, 2000))
}

func orNone(s string) string {
	if s == "" {
		return "no reason is given in the rule."
	}
	return s
}
