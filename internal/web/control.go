package web

import (
	"errors"
	"net/http"
	"strings"

	"github.com/ayegate/ayegate/api"
	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/desk"
	"github.com/ayegate/ayegate/internal/identity"
	"github.com/ayegate/ayegate/internal/store"
)

// controlRoutes is what people do about agents, tools and policy.
func controlRoutes() []route {
	return []route{
		post(humans, "/v1/pause", "pause", "Stops all agents, or one session: from the answer on nothing starts.", (*exchange).pause),
		post(humans, "/v1/resume", "resume", "Lets all agents, or one session, go on.", (*exchange).resume),
		get(humans, "/v1/sessions", "listSessions", "Tells what is paused.", (*exchange).listSessions),
		get(humans, "/v1/definitions", "listDefinitions", "Lists the pinned tools.", (*exchange).listDefinitions,
			param{"held", `"true" for those only that wait for a person.`}),
		post(humans, "/v1/definitions/accept", "acceptDefinition", "Says yes to a changed definition, the one that was seen.", (*exchange).acceptDefinition),
		post(humans, "/v1/policy/explain", "explain", "Says what the policy makes of a call. Nothing runs and nothing is held.", (*exchange).explain),
	}
}

func (x *exchange) pause(in api.PauseRequest) (api.Sessions, error) {
	err := x.pausable(in)
	switch {
	case err != nil:
	case in.Session == "":
		err = x.web.desk.Pause(x.r.Context(), x.human, in.Reason)
	default:
		err = x.web.desk.PauseSession(x.r.Context(), x.human, in.Session, in.Reason)
	}
	if err != nil {
		return api.Sessions{}, err
	}
	return x.listSessions()
}

func (x *exchange) resume(in api.PauseRequest) (api.Sessions, error) {
	err := x.pausable(in)
	switch {
	case err != nil:
	case in.Session == "":
		err = x.web.desk.Resume(x.r.Context(), x.human, in.Reason)
	default:
		err = x.web.desk.ResumeSession(x.r.Context(), x.human, in.Session, in.Reason)
	}
	switch {
	case errors.Is(err, store.ErrNotFound):
		return api.Sessions{}, newProblem(http.StatusNotFound, api.NotFound, "That session is not paused.")
	case err != nil:
		return api.Sessions{}, err
	}
	return x.listSessions()
}

func (x *exchange) pausable(in api.PauseRequest) error {
	agent, session, ok := strings.Cut(in.Session, "/")
	switch {
	case len(in.Reason) > maxReason:
		return newProblem(http.StatusBadRequest, api.BadRequest, `"reason" is longer than 2000 bytes. Nothing was changed.`)
	case in.Session == "":
		return nil
	case !ok || agent == "" || session == "" || len(in.Session) > 2*maxLabel:
		return newProblem(http.StatusBadRequest, api.BadRequest, `"session" is an agent and its session: "agent/session". Nothing was changed.`)
	}
	return nil
}

func (x *exchange) listSessions() (api.Sessions, error) {
	paused, err := x.web.desk.PausedSessions(x.r.Context())
	if err != nil {
		return api.Sessions{}, err
	}
	return api.Sessions{AllPaused: x.web.desk.Paused(), Paused: list(paused)}, nil
}

func (x *exchange) listDefinitions() (api.Definitions, error) {
	q, err := x.params("held")
	if err != nil {
		return api.Definitions{}, err
	}
	held := q.Get("held")
	if held != "" && held != "true" && held != "false" {
		return api.Definitions{}, badQuery(`"held" is "true" or "false".`)
	}
	out := api.Definitions{Definitions: []api.Definition{}}
	for _, p := range x.web.desk.Pins() {
		if held != "true" || !p.Accepted {
			out.Definitions = append(out.Definitions, definition(p))
		}
	}
	return out, nil
}

func definition(p desk.Pin) api.Definition {
	return api.Definition{
		Server: p.Server, Tool: p.Tool, Definition: p.Definition.String(), Accepted: p.Accepted, Was: p.Was.String(),
		Offered: resultJSON(p.Raw), Before: resultJSON(p.Before),
	}
}

func (x *exchange) acceptDefinition(in api.AcceptRequest) (api.Definition, error) {
	seen, err := call.ParseHash(in.Definition)
	if err != nil {
		return api.Definition{}, newProblem(http.StatusBadRequest, api.BadRequest, `"definition" is "sha256:" and 64 hexadecimal digits, as the list shows it. Nothing was accepted.`)
	}
	p, err := x.web.desk.Accept(x.r.Context(), x.human, in.Server, in.Tool, seen)
	if errors.Is(err, store.ErrNotFound) {
		return api.Definition{}, newProblem(http.StatusNotFound, api.NotFound, "There is no such tool.")
	}
	if err != nil {
		return api.Definition{}, err
	}
	return definition(p), nil
}

func (x *exchange) explain(in api.ExplainRequest) (api.Explanation, error) {
	from := identity.Agent{}
	if in.Agent != "" {
		var ok bool
		if from, ok = x.web.creds.AgentOf(in.Agent); !ok {
			return api.Explanation{}, newProblem(http.StatusBadRequest, api.BadRequest, "No agent of that name is configured.")
		}
	}
	c, err := call.Within(int(x.web.cfg.MaxBody), in.Server, in.Tool, in.Args)
	if err != nil {
		return api.Explanation{}, err
	}
	v, err := x.web.desk.Explain(x.r.Context(), x.human, from, c)
	if err != nil {
		return api.Explanation{}, err
	}
	return api.Explanation{
		Effect: v.Effect.String(), RiskTier: v.Tier.String(), Rule: v.Rule, Why: v.Why, Effects: policyEffects(v), Rollback: rollback(v),
		Approvers: approvers(v), Quorum: v.Quorum, Confirm: confirm(v), ToolCallHash: c.Hash().String(), PolicyTrace: trace(v),
	}, nil
}
