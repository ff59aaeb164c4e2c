package web

import (
	"net/http"

	"github.com/ayegate/ayegate/api"
	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/desk"
	"github.com/ayegate/ayegate/internal/strictjson"
)

// callView is a request as the agent that asked may see it. The approvers, the
// policy and the people's page behind it are not in it.
func (w *Web) callView(r *approval.Request, res desk.Result) api.Call {
	now := w.store.Now()
	out := api.Call{
		Status: api.Status(r.State), ApprovalID: string(r.ID), ID: r.Code, ToolCallHash: r.Call.Hash().String(),
		Executor: api.Executor(r.Executor), ExpiresAt: r.ExpiresAt, ServerNow: now,
	}
	if r.State == approval.Pending {
		out.URL = w.pageURL(r.Code)
	}
	if res.Bytes == nil {
		res = desk.Result{Bytes: r.Execution.Result, IsError: r.Execution.Outcome == approval.Errored}
	}
	if answered(r) && (len(res.Bytes) > 0 || r.Executor == approval.Caller) {
		out.IsError = res.IsError
		out.Result = resultJSON(res.Bytes)
		return out
	}
	told := desk.Told(r, now, w.next(r))
	out.Code, out.Text, out.Told = told.Code, told.Text, told.JSON
	return out
}

// answered reports whether the tool gave an answer, good or bad.
func answered(r *approval.Request) bool {
	return r.Execution.Outcome == approval.Succeeded || r.Execution.Outcome == approval.Errored
}

// next tells how to go on with a request over HTTP.
func (w *Web) next(r *approval.Request) desk.Next {
	n := desk.Next{URL: w.pageURL(r.Code)}
	at := "POST /v1/calls/" + string(r.ID)
	switch {
	case r.Executor == approval.Gateway:
		n.Await = at + "/await"
	case r.State == approval.Approved:
		n.Await = at + "/claim"
	}
	return n
}

// resultJSON passes a tool's answer on as it is. One that is no JSON becomes a
// JSON string of it.
func resultJSON(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	if strictjson.Check(b, strictjson.Limits{Bytes: len(b), Nodes: len(b), Lax: true}) == nil {
		return b
	}
	return strictjson.AppendString(nil, string(b))
}

// outcome answers a call: what has a result or still waits is an answer, what
// ended without one is a problem that carries the call.
func (x *exchange) outcome(r *approval.Request, res desk.Result, attached bool) (api.Call, error) {
	out := x.web.callView(r, res)
	out.Attached = attached
	switch {
	case out.Code == "":
		x.pickedUp(r)
		return out, nil
	case r.State == approval.Pending, r.State == approval.Approved, r.State == approval.Executing:
		x.status = http.StatusAccepted
		return out, nil
	}
	p := newProblem(endStatus(r), out.Code, out.Text)
	p.Call = &out
	return api.Call{}, p
}

// endStatus is the HTTP status of a call that ended without a result.
func endStatus(r *approval.Request) int {
	switch r.State {
	case approval.Denied:
		return http.StatusForbidden
	case approval.Failed:
		return http.StatusBadGateway
	default:
		return http.StatusConflict
	}
}

// pickedUp notes, once the answer is out, that the asker has the outcome.
func (x *exchange) pickedUp(r *approval.Request) {
	if r.Quorum() == 0 || !r.State.Final() {
		return
	}
	x.after = func() {
		if err := x.web.desk.PickedUp(x.r.Context(), r.ID); err != nil {
			x.web.log.Warn("that a result was handed out is not on record", "request", r.ID, "err", err)
		}
	}
}

// callProblem is an error about an own call, with the call as it stands.
func (x *exchange) callProblem(r *approval.Request, err error) error {
	p := x.problemOf(err)
	if r != nil {
		view := x.web.callView(r, desk.Result{})
		p.Call = &view
	}
	return p
}
