package web

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/ayegate/ayegate/api"
	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/store"
)

// humanRoutes is what people ask and say about requests.
func humanRoutes() []route {
	filter := []param{
		{"status", "One or more states; repeat it for more than one."},
		{"agent", "Id of an agent."},
		{"server", "Id of a server."},
		{"tool", `A tool, as "server.tool".`},
		{"tier", "One or more of R0 to R4; repeat it for more than one."},
		{"limit", "How many at most; 50 when absent, 200 at most."},
		{"cursor", "Where the page before ended."},
	}
	return []route{
		get(humans, "/v1/requests", "listRequests", "Lists requests: those that only wait by deadline, soonest first; any other selection newest first.", (*exchange).listRequests, filter...),
		get(humans, "/v1/requests/{id}", "getRequest", "Reads one request, by its id or short code.", (*exchange).getRequest),
		post(humans, "/v1/requests/{id}/decide", "decide", "Approves or denies. The digest must be the current one.", (*exchange).decide),
		post(humans, "/v1/requests/{id}/extend", "extend", "Moves the deadline by five minutes.", (*exchange).extend),
		post(humans, "/v1/requests/{id}/cancel", "revoke", "Ends a request that has not started, also an approved one.", (*exchange).revoke),
		post(humans, "/v1/requests/{id}/resolve", "resolve", "Settles an unknown outcome, after looking.", (*exchange).resolve),
		get(humans, "/v1/me", "me", "Says who the credential is.", (*exchange).me),
	}
}

func (x *exchange) listRequests() (api.RequestList, error) {
	q, err := x.params("status*", "agent", "server", "tool", "tier*", "limit", "cursor")
	if err != nil {
		return api.RequestList{}, err
	}
	f, err := filterOf(q)
	if err != nil {
		return api.RequestList{}, err
	}
	limit := f.Limit
	f.Limit++ // one more tells whether there is a next page
	out := api.RequestList{Requests: []api.Request{}, ServerNow: x.web.store.Now()}
	var last *approval.Request
	for r, err := range x.web.store.List(x.r.Context(), f) {
		if err != nil {
			return api.RequestList{}, err
		}
		if len(out.Requests) == limit {
			out.Cursor = cursorAfter(f.Order, last)
			break
		}
		out.Requests = append(out.Requests, x.web.view(r))
		last = r
	}
	return out, nil
}

func filterOf(q url.Values) (store.Filter, error) {
	f := store.Filter{Agent: q.Get("agent"), Server: q.Get("server")}
	for _, s := range q["status"] {
		state := approval.State(s)
		if !slices.Contains(approval.States, state) {
			return f, badQuery(`"status" is one of pending, approved, executing, executed, failed, unknown, denied, expired and cancelled.`)
		}
		f.States = append(f.States, state)
	}
	for _, t := range q["tier"] {
		n, ok := tierOf(t)
		if !ok {
			return f, badQuery(`"tier" is one of R0, R1, R2, R3 and R4.`)
		}
		f.Tiers = append(f.Tiers, n)
	}
	if t := q.Get("tool"); t != "" {
		server, tool, ok := strings.Cut(t, ".")
		if !ok || tool == "" || f.Server != "" && f.Server != server {
			return f, badQuery(`"tool" is a server and a tool: "server.tool".`)
		}
		f.Server, f.Tool = server, tool
	}
	n, err := number(q, "limit", 50, 200)
	if err != nil || n == 0 {
		return f, badQuery(`"limit" is a number from 1 to 200.`)
	}
	f.Limit = int(n)
	onlyWaiting := len(f.States) > 0 && !slices.ContainsFunc(f.States, func(s approval.State) bool { return s != approval.Pending })
	if onlyWaiting {
		f.Order = store.DeadlineFirst
	}
	if c := q.Get("cursor"); c != "" {
		if f.After, err = cursorOf(f.Order, c); err != nil {
			return f, err
		}
	}
	return f, nil
}

// cursorAfter is a place in an order, as text: it stays right while requests
// come and go, and says nothing that the last request did not.
func cursorAfter(o store.Order, r *approval.Request) string {
	c := o.Place(r)
	return base64.RawURLEncoding.EncodeToString([]byte(orderName(o) + " " + strconv.FormatInt(store.Nanos(c.At), 10) + " " + string(c.ID)))
}

func cursorOf(o store.Order, text string) (store.Cursor, error) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	part := strings.Split(string(b), " ")
	if err != nil || len(part) != 3 || part[0] != orderName(o) || !uuid(part[2]) {
		return store.Cursor{}, badQuery(`"cursor" is not one of this list: leave it out to start at the beginning.`)
	}
	n, err := strconv.ParseInt(part[1], 10, 64)
	if err != nil {
		return store.Cursor{}, badQuery(`"cursor" is not one of this list: leave it out to start at the beginning.`)
	}
	return store.Cursor{At: store.FromNanos(n), ID: approval.ID(part[2])}, nil
}

func orderName(o store.Order) string {
	if o == store.DeadlineFirst {
		return "d"
	}
	return "n"
}

func (x *exchange) getRequest() (api.Request, error) {
	if _, err := x.params(); err != nil {
		return api.Request{}, err
	}
	r, err := x.web.find(x.r.Context(), x.r.PathValue("id"))
	if err != nil {
		return api.Request{}, err
	}
	return x.web.view(r), nil
}

func (x *exchange) decide(in api.DecideRequest) (api.Request, error) {
	d := approval.Decision{Approve: in.Decision == api.Approve, Reason: in.Reason}
	switch {
	case in.Decision != api.Approve && in.Decision != api.Deny:
		return api.Request{}, newProblem(http.StatusBadRequest, api.BadRequest, `"decision" is "approve" or "deny". Nothing was decided.`)
	case len(in.Reason) > maxReason:
		return api.Request{}, newProblem(http.StatusBadRequest, api.BadRequest, `"reason" is longer than 2000 bytes. Nothing was decided.`)
	case in.Scope != nil && (in.Scope.Kind != api.ScopeOnce || in.Scope.For != 0):
		return api.Request{}, newProblem(http.StatusBadRequest, api.ScopeNotOffered,
			`This server approves one call at a time: leave "scope" out, or send {"kind":"once"}. Nothing was decided.`)
	case in.Confirm != nil && in.Confirm.Passkey != nil:
		return api.Request{}, newProblem(http.StatusBadRequest, api.BadRequest,
			`This server does not verify passkeys: leave "passkey" out. Nothing was decided.`)
	}
	var err error
	if d.Digest, err = call.ParseHash(in.Digest); err != nil {
		return api.Request{}, newProblem(http.StatusBadRequest, api.BadRequest, `"digest" is "sha256:" and 64 hexadecimal digits, as the request shows it. Nothing was decided.`)
	}
	if in.Confirm != nil {
		d.Typed = in.Confirm.Typed
	}
	return x.moved(func(id approval.ID) (*approval.Request, error) {
		return x.web.desk.Decide(x.r.Context(), x.human, id, d)
	})
}

func (x *exchange) extend(api.ExtendRequest) (api.Request, error) {
	return x.moved(func(id approval.ID) (*approval.Request, error) {
		return x.web.desk.Extend(x.r.Context(), x.human, id)
	})
}

func (x *exchange) revoke(api.CancelRequest) (api.Request, error) {
	return x.moved(func(id approval.ID) (*approval.Request, error) {
		return x.web.desk.Revoke(x.r.Context(), x.human, id)
	})
}

func (x *exchange) resolve(in api.ResolveRequest) (api.Request, error) {
	switch in.Outcome {
	case api.Succeeded, api.Errored, api.NotSent:
	default:
		return api.Request{}, newProblem(http.StatusBadRequest, api.BadRequest, `"outcome" is what was found: "succeeded", "errored" or "not_sent". Nothing was recorded.`)
	}
	return x.moved(func(id approval.ID) (*approval.Request, error) {
		return x.web.desk.Resolve(x.r.Context(), x.human, id, approval.Outcome(in.Outcome), in.Note)
	})
}

// moved makes a move on the request of the address and shows the request after
// it. When the move did not fit, the error carries the request as it stands.
func (x *exchange) moved(move func(approval.ID) (*approval.Request, error)) (api.Request, error) {
	r, err := x.web.find(x.r.Context(), x.r.PathValue("id"))
	if err != nil {
		return api.Request{}, err
	}
	now, err := move(r.ID)
	if err == nil {
		return x.web.view(now), nil
	}
	p := x.problemOf(err)
	if now == nil {
		if now, err = x.web.find(x.r.Context(), string(r.ID)); err != nil {
			return api.Request{}, p
		}
	}
	view := x.web.view(now)
	p.Request = &view
	return api.Request{}, p
}

func (x *exchange) me() (api.Me, error) {
	return api.Me{
		Subject: x.human.Subject(), Name: nameOf(x.human.Name, x.human.ID), Groups: list(x.human.Groups),
		Strength: x.human.Strength.String(), Version: x.web.cfg.Version,
	}, nil
}
