package web

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/ayegate/ayegate/api"
	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/desk"
	"github.com/ayegate/ayegate/internal/policy"
	"github.com/ayegate/ayegate/internal/web/page"
)

// noUndo is what stands where a rule names no way back. It is never blank.
const noUndo = "No undo is known for this action."

// maxResult bounds the part of a result that is told to people, in bytes.
const maxResult = 64 << 10

// view is a request as people see it: the one way from the stored request to
// the JSON API and to the pages.
func (w *Web) view(r *approval.Request) api.Request {
	tool, _ := w.desk.Tool(r.Call.Server(), r.Call.Tool())
	v := r.Verdict
	return api.Request{
		ApprovalID: string(r.ID), Code: r.Code,
		SessionID: r.From.Session, RunID: r.Run, WorkspaceID: r.From.Workspace,
		Agent:  api.Agent{ID: r.From.ID, Owner: r.From.Owner, Device: r.From.Device},
		Server: r.Call.Server(), Tool: r.Call.Tool(),
		ToolCallCanonical: string(r.Call.Canonical()), ToolCallHash: r.Call.Hash().String(), Extras: string(r.Extra),
		DefinitionHash: r.Definition.String(), Digest: r.Digest.String(),
		HumanSummary: page.Summary(r.Call, r.Extra != nil), SummaryVerified: true, // made of the call, by us
		AgentReason: r.Reason,
		RiskTier:    v.Tier.String(), Why: v.Why, Rule: v.Rule,
		Effects: effects(r, tool), Rollback: rollback(v),
		DryRun:      api.DryRun{Note: "No way is known to try this call without effect."},
		RequestedAt: r.AskedAt, ExpiresAt: r.ExpiresAt, ServerNow: w.store.Now(),
		ExtensionsLeft: max(0, approval.MaxExtensions-r.Extended),
		Diff:           []api.Change{}, SuggestedAlternatives: []json.RawMessage{},
		Status: api.Status(r.State), Cause: string(r.Cause), EndedAt: r.EndedAt,
		Decisions: decisions(r), Quorum: r.Quorum(), ApprovalsNeeded: missing(r),
		Approvers: approvers(v), Confirm: confirm(v),
		Executor: api.Executor(r.Executor), Waiting: w.desk.Waiting(r.ID), Asks: r.Asks,
		HiddenCharacters: page.Hidden(r.Call, r.Extra), Execution: execution(r),
		PolicyTrace: trace(v),
	}
}

// missing is how many people must still approve, as long as they can.
func missing(r *approval.Request) int {
	if r.State != approval.Pending {
		return 0
	}
	return max(0, r.Quorum()-len(r.Approvals()))
}

func rollback(v policy.Verdict) string {
	if v.Undo == "" {
		return noUndo
	}
	return v.Undo
}

func confirm(v policy.Verdict) api.ConfirmNeeded {
	if slices.Contains(v.Confirm, policy.Typed) {
		return api.ConfirmNeeded{Typed: v.Salient}
	}
	return api.ConfirmNeeded{}
}

func approvers(v policy.Verdict) api.Approvers {
	return api.Approvers{Name: v.Of.Name, AnyOf: list(v.Of.AnyOf), Not: list(v.Of.Not)}
}

// list is never null in JSON.
func list(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

// effects says what the call does, each line with its source. What the server
// claims of its tool is a hint that nobody checked.
func effects(r *approval.Request, t desk.Tool) []api.Effect {
	out := policyEffects(r.Verdict)
	if t.Definition != r.Definition {
		return out // what is known now is of another tool than the one that was asked for
	}
	claims := []struct {
		flag    *bool
		yes, no string
	}{
		{t.Hints.ReadOnly, "Only reads", "Changes things"},
		{t.Hints.Destructive, "May destroy what is there", "Only adds, destroys nothing"},
		{t.Hints.Idempotent, "Running it twice is like running it once", "Running it twice has a further effect"},
		{t.Hints.OpenWorld, "Reaches beyond its own domain", "Stays within its own domain"},
	}
	for _, c := range claims {
		switch {
		case c.flag == nil:
		case *c.flag:
			out = append(out, api.Effect{Text: c.yes, Source: api.FromServer})
		default:
			out = append(out, api.Effect{Text: c.no, Source: api.FromServer})
		}
	}
	return out
}

func policyEffects(v policy.Verdict) []api.Effect {
	out := make([]api.Effect, 0, len(v.Effects)+4)
	for _, e := range v.Effects {
		out = append(out, api.Effect{Text: e, Source: api.FromPolicy})
	}
	return out
}

func decisions(r *approval.Request) []api.Decision {
	out := make([]api.Decision, 0, len(r.Decisions))
	for _, d := range r.Decisions {
		word := api.Deny
		if d.Approve {
			word = api.Approve
		}
		out = append(out, api.Decision{
			By: d.By.Subject(), Name: nameOf(d.By.Name, d.By.ID), Decision: word, Reason: d.Reason,
			Strength: d.By.Strength.String(), At: d.At, Void: d.Void,
		})
	}
	return out
}

func nameOf(name, id string) string {
	if name == "" {
		return id
	}
	return name
}

// execution is nil until something was started.
func execution(r *approval.Request) *api.Execution {
	if r.Claimed.ID == "" {
		return nil
	}
	e := r.Execution
	out := &api.Execution{
		Outcome: api.Outcome(e.Outcome), StartedAt: r.Claimed.Redeemed, At: e.At, Size: e.Size, ResultHash: e.Hash.String(),
		Error: e.Error, PickedUpAt: e.PickedUp, ResolvedBy: e.By, ClaimID: r.Claimed.ID,
	}
	if len(e.Result) <= maxResult {
		out.Result = string(e.Result)
	}
	return out
}

func trace(v policy.Verdict) api.PolicyTrace {
	steps := make([]api.PolicyStep, 0, len(v.Trace))
	for _, s := range v.Trace {
		steps = append(steps, api.PolicyStep{Phase: s.Phase, ID: s.ID, Hit: s.Hit, Note: s.Note})
	}
	return api.PolicyTrace{Revision: v.Revision, Effect: v.Effect.String(), Steps: steps}
}

// tierOf reads "R0" to "R4".
func tierOf(s string) (uint8, bool) {
	if len(s) != 2 || s[0] != 'R' {
		return 0, false
	}
	n, err := strconv.Atoi(s[1:])
	return uint8(n), err == nil && n >= 0 && n <= int(policy.R4)
}

// eventRequest is a request in short.
func eventRequest(r *approval.Request) *api.EventRequest {
	return &api.EventRequest{
		ApprovalID: string(r.ID), Code: r.Code, Status: api.Status(r.State), RiskTier: r.Verdict.Tier.String(),
		Agent: r.From.ID, Server: r.Call.Server(), Tool: r.Call.Tool(), ExpiresAt: r.ExpiresAt,
	}
}
