package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/ayegate/ayegate/api"
	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/desk"
	"github.com/ayegate/ayegate/internal/identity"
	"github.com/ayegate/ayegate/internal/strictjson"
)

// agentRoutes is the agents' plane.
func agentRoutes() []route {
	wait := param{"wait", `How long to wait while the call waits for people or runs: "30s". At most five minutes.`}
	return []route{
		post(agents, "/v1/calls", "submitCall", "Asks for a call. 200 when it ran, 202 when it waits.", (*exchange).postCall),
		get(agents, "/v1/calls/{id}", "getCall", "Reads an own call. Changes nothing.", (*exchange).getCall, wait),
		post(agents, "/v1/calls/{id}/await", "awaitCall", "Goes on waiting, and runs the call when it is approved and ayegate performs it.", (*exchange).awaitCall),
		post(agents, "/v1/calls/{id}/claim", "claimCall", "Returns the single-use token of an approved call that the caller performs.", (*exchange).claimCall),
		post(agents, "/v1/calls/{id}/redeem", "redeemCall", "Spends the token. Only then may the effect start.", (*exchange).redeemCall),
		post(agents, "/v1/calls/{id}/finish", "finishCall", "Reports what the call came to.", (*exchange).finishCall),
		post(agents, "/v1/calls/{id}/cancel", "cancelCall", "Takes back a call that has not started.", (*exchange).cancelCall),
	}
}

// Bounds of what an agent writes beside the arguments, in bytes.
const (
	maxLabel  = 200
	maxReason = 2000
)

func (x *exchange) postCall(in api.CallRequest) (api.Call, error) {
	from, err := x.asking(in)
	if err != nil {
		return api.Call{}, err
	}
	ask := desk.Ask{From: from, Key: in.Key, Run: label(in.Session, in.Run), Reason: in.Reason}
	if ask.Call, err = call.Within(int(x.web.cfg.MaxBody), in.Server, in.Tool, in.Args); err != nil {
		return api.Call{}, err
	}
	do, err := x.executor(&ask, in)
	if err != nil {
		return api.Call{}, err
	}
	t, err := x.web.desk.Submit(x.r.Context(), ask)
	if err != nil {
		return api.Call{}, x.refusedCall(err, ask.Call)
	}
	return x.follow(from, t, do, in.Wait.Std())
}

// asking is the agent of the credential as it asks here. What the body says of
// workspace and device can narrow the credential, never widen it (TOK-18).
func (x *exchange) asking(in api.CallRequest) (identity.Agent, error) {
	from := x.agent
	for name, v := range map[string]string{"session": in.Session, "run": in.Run, "workspace": in.Workspace, "device": in.Device, "key": in.Key} {
		if len(v) > maxLabel {
			return from, newProblem(http.StatusBadRequest, api.BadRequest, fmt.Sprintf("%q is longer than %d bytes. Nothing ran.", name, maxLabel))
		}
	}
	switch {
	case len(in.Reason) > maxReason:
		return from, newProblem(http.StatusBadRequest, api.BadRequest, fmt.Sprintf(`"reason" is longer than %d bytes. Nothing ran.`, maxReason))
	case in.Wait.Std() > maxWait:
		return from, newProblem(http.StatusBadRequest, api.BadRequest, fmt.Sprintf(`"wait" is longer than %v. Nothing ran.`, maxWait))
	case in.Workspace != "" && in.Workspace != from.Workspace:
		return from, newProblem(http.StatusForbidden, api.Forbidden, "The workspace is not the one of this agent's configuration. Nothing ran.")
	case in.Device != "" && from.Device != "" && in.Device != from.Device:
		return from, newProblem(http.StatusForbidden, api.TokenDeviceMismatch, "The device is not the one of this credential. Nothing ran.")
	}
	if from.Device == "" {
		from.Device = in.Device
	}
	return from, nil
}

// label is what the agent calls its session and run; both are unchecked.
func label(session, run string) string {
	switch {
	case session == "":
		return run
	case run == "":
		return session
	}
	return session + " / " + run
}

// executor settles who performs the call. A server that ayegate fronts is called
// by ayegate alone: a caller with its own way to it would go around the gate.
func (x *exchange) executor(ask *desk.Ask, in api.CallRequest) (desk.Do, error) {
	var do desk.Do
	var tool desk.Tool
	err := fmt.Errorf("%w: none is", ErrNoServer)
	if x.web.cfg.Executor != nil {
		do, tool, err = x.web.cfg.Executor.Tool(x.r.Context(), ask.From, in.Server, in.Tool, nil)
	}
	switch {
	case in.Executor == api.ByCaller && errors.Is(err, ErrNoServer):
		ask.Executor = approval.Caller
		return nil, nil
	case in.Executor == api.ByCaller && err == nil:
		return nil, newProblem(http.StatusBadRequest, api.BadRequest,
			`ayegate fronts this server and performs its calls itself: leave "executor" out. Nothing ran.`)
	case in.Executor != "" && in.Executor != api.ByGateway && in.Executor != api.ByCaller:
		return nil, newProblem(http.StatusBadRequest, api.BadRequest, `"executor" is "gateway" or "caller". Nothing ran.`)
	case err != nil:
		return nil, err
	}
	ask.Executor, ask.Tool = approval.Gateway, tool
	return do, nil
}

// refusedCall tells a call that was refused without a request of its own in the
// same words as over MCP.
func (x *exchange) refusedCall(err error, c call.Call) error {
	var ref *desk.Refusal
	if !errors.As(err, &ref) {
		return err
	}
	told := desk.TellError(err, c.Server()+"."+c.Tool())
	p := x.problemOf(err)
	p.Detail = told.Text
	p.Call = &api.Call{
		Status: api.StatusDenied, Code: told.Code, ToolCallHash: c.Hash().String(),
		ServerNow: x.web.store.Now(), Text: told.Text, Told: told.JSON,
	}
	if ref.Of != nil {
		p.Call.Status = api.Status(ref.Of.State)
		p.Call.ApprovalID, p.Call.ID = string(ref.Of.ID), ref.Of.Code
	}
	return p
}

// follow goes with a call as far as wait allows: to the people's word, through
// the execution, to the result.
func (x *exchange) follow(from identity.Agent, t *desk.Ticket, do desk.Do, wait time.Duration) (api.Call, error) {
	var err error
	r, result := t.Request, desk.Result{}
	if waits(r) && t.Claim == "" && wait > 0 {
		if r, err = x.await(from, r, wait); err != nil {
			return api.Call{}, err
		}
	}
	mine := t.Claim != "" || r.State == approval.Approved
	if do != nil && mine && r.Executor == approval.Gateway {
		x.web.until(x.w, 0)
		r, result, err = x.web.desk.Execute(x.r.Context(), from, &desk.Ticket{Request: r, Claim: t.Claim}, outlive(do))
		if err != nil {
			return api.Call{}, x.callProblem(r, err)
		}
	}
	return x.outcome(r, result, t.Attached)
}

// outlive lets an effect that was started end, whether or not the asker is still
// there: hanging up does not undo what was sent.
func outlive(do desk.Do) desk.Do {
	return func(ctx context.Context, c call.Call, claim string) (desk.Result, error) {
		return do(context.WithoutCancel(ctx), c, claim)
	}
}

func waits(r *approval.Request) bool {
	return r.State == approval.Pending || r.State == approval.Executing
}

// await waits for an own request to move on, no longer than wait, the asker's
// patience, or the server's life.
func (x *exchange) await(from identity.Agent, r *approval.Request, wait time.Duration) (*approval.Request, error) {
	release, ok := x.web.waits.take(from.ID)
	if !ok {
		return r, newProblem(http.StatusTooManyRequests, api.TooManyStreams, "This agent waits in too many places already. Nothing was changed; ask again without \"wait\".")
	}
	defer release()
	x.web.until(x.w, 0)
	ctx, cancel := context.WithTimeout(x.r.Context(), min(wait, maxWait))
	defer cancel()
	stop := x.web.untilClosed(cancel)
	defer stop()
	now, err := x.web.desk.Await(ctx, from, r.ID)
	if err != nil && ctx.Err() == nil {
		return r, err
	}
	if now != nil {
		r = now
	}
	return r, nil
}

// untilClosed cancels what waits when the server closes.
func (w *Web) untilClosed(cancel context.CancelFunc) (stop func()) {
	ended := make(chan struct{})
	go func() {
		select {
		case <-w.done:
			cancel()
		case <-ended:
		}
	}()
	return func() { close(ended) }
}

func (x *exchange) getCall() (api.Call, error) {
	wait, err := x.waitParam()
	if err != nil {
		return api.Call{}, err
	}
	r, from, err := x.web.own(x.r.Context(), x.agent, x.r.PathValue("id"))
	if err != nil {
		return api.Call{}, err
	}
	if waits(r) && wait > 0 {
		if r, err = x.await(from, r, wait); err != nil {
			return api.Call{}, err
		}
	}
	return x.web.callView(r, desk.Result{}), nil
}

func (x *exchange) waitParam() (time.Duration, error) {
	q, err := x.params("wait")
	if err != nil || q.Get("wait") == "" {
		return 0, err
	}
	var d api.Duration
	if d.UnmarshalText([]byte(q.Get("wait"))) != nil || d.Std() > maxWait {
		return 0, newProblem(http.StatusBadRequest, api.BadRequest, fmt.Sprintf(`"wait" is a duration such as 30s, at most %v.`, maxWait))
	}
	return d.Std(), nil
}

func (x *exchange) awaitCall(in api.AwaitRequest) (api.Call, error) {
	if in.Wait.Std() > maxWait {
		return api.Call{}, newProblem(http.StatusBadRequest, api.BadRequest, fmt.Sprintf(`"wait" is longer than %v. Nothing ran.`, maxWait))
	}
	r, from, err := x.web.own(x.r.Context(), x.agent, x.r.PathValue("id"))
	if err != nil {
		return api.Call{}, err
	}
	var do desk.Do
	if r.Executor == approval.Gateway && x.web.cfg.Executor != nil && (r.State.Open() || r.State == approval.Executing) {
		if do, _, err = x.web.cfg.Executor.Tool(x.r.Context(), from, r.Call.Server(), r.Call.Tool(), r.Extra); err != nil {
			return api.Call{}, err
		}
	}
	return x.follow(from, &desk.Ticket{Request: r, Attached: true}, do, in.Wait.Std())
}

func (x *exchange) claimCall(in api.ClaimRequest) (api.Token, error) {
	r, from, err := x.web.own(x.r.Context(), x.agent, x.r.PathValue("id"))
	if err != nil {
		return api.Token{}, err
	}
	if in.Device != r.From.Device && x.agent.Device == "" {
		return api.Token{}, approval.ErrTokenDevice
	}
	r, t, err := x.web.desk.Claim(x.r.Context(), from, r.ID)
	if err != nil {
		return api.Token{}, x.callProblem(r, err)
	}
	return api.Token{
		TokenID: t.ID, ApprovalID: string(r.ID), ToolCallHash: r.Call.Hash().String(), ExpiresAt: t.ExpiresAt,
		SingleUse: true, Scope: api.Scope{Kind: api.ScopeOnce}, IssuedToClientDeviceID: t.Device, Token: t.Secret,
	}, nil
}

func (x *exchange) redeemCall(in api.RedeemRequest) (api.Call, error) {
	r, from, err := x.web.own(x.r.Context(), x.agent, x.r.PathValue("id"))
	if err != nil {
		return api.Call{}, err
	}
	h, err := call.ParseHash(in.ToolCallHash)
	if err != nil {
		return api.Call{}, newProblem(http.StatusBadRequest, api.BadRequest, `"toolCallHash" is "sha256:" and 64 hexadecimal digits. The call must not start.`)
	}
	if x.agent.Device == "" {
		from.Device = r.From.Device
	}
	if in.Device != r.From.Device && x.agent.Device == "" {
		return api.Call{}, x.deviceOrToken(in, h, r)
	}
	r, err = x.web.desk.Redeem(x.r.Context(), from, r.ID, approval.Redemption{Secret: []byte(in.Token), Call: h})
	if err != nil {
		return api.Call{}, x.callProblem(r, err)
	}
	return x.web.callView(r, desk.Result{}), nil
}

// deviceOrToken refuses a redemption from another device with the first thing
// that is wrong about it, in the order of the desk's own checks: a wrong secret
// is unknown wherever it comes from.
func (x *exchange) deviceOrToken(in api.RedeemRequest, h call.Hash, r *approval.Request) error {
	_, err := r.Clone().Redeem(approval.Redemption{Secret: []byte(in.Token), Call: h, Device: in.Device}, x.web.store.Now())
	if err == nil {
		err = approval.ErrTokenDevice
	}
	return err
}

func (x *exchange) finishCall(in api.FinishRequest) (api.Call, error) {
	r, from, err := x.web.own(x.r.Context(), x.agent, x.r.PathValue("id"))
	if err != nil {
		return api.Call{}, err
	}
	if len(in.Error) > maxReason {
		return api.Call{}, newProblem(http.StatusBadRequest, api.BadRequest, fmt.Sprintf(`"error" is longer than %d bytes. The outcome is not recorded yet.`, maxReason))
	}
	e := approval.Execution{Outcome: approval.Outcome(in.Outcome), Error: in.Error}
	if in.Result != nil {
		e.Result = strictjson.Compact(nil, in.Result)
	}
	r, err = x.web.desk.Finish(x.r.Context(), from, r.ID, e)
	if err != nil {
		return api.Call{}, x.callProblem(r, err)
	}
	x.pickedUp(r)
	return x.web.callView(r, desk.Result{}), nil
}

func (x *exchange) cancelCall(api.CancelRequest) (api.Call, error) {
	r, from, err := x.web.own(x.r.Context(), x.agent, x.r.PathValue("id"))
	if err != nil {
		return api.Call{}, err
	}
	r, err = x.web.desk.Withdraw(x.r.Context(), from, r.ID)
	if err != nil {
		return api.Call{}, x.callProblem(r, err)
	}
	return x.web.callView(r, desk.Result{}), nil
}
