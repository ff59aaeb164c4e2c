package gateway

import (
	"context"
	"time"

	"github.com/ayegate/ayegate/api"
	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/desk"
	"github.com/ayegate/ayegate/internal/mcp"
	"github.com/ayegate/ayegate/internal/policy"
)

// wait is an exchange whose action became a request: what is carried from one
// carrier to the next.
type wait struct {
	*exchange
	action  *action
	ticket  *desk.Ticket
	request *approval.Request // as last seen
	ear     *ear
	round   int           // how often the agent was told to come back with nothing
	budget  time.Duration // how long this exchange is held at most
	invited bool          // the agent was shown the link in an earlier exchange
}

// submit brings an action before the desk and carries on from what it became.
func (e *exchange) submit(ctx context.Context, a *action) {
	if a.state != nil {
		e.comeBack(ctx, a)
		return
	}
	tool, err := e.known(ctx, a)
	if err != nil {
		e.refuseAs(a.name(), err)
		return
	}
	// Once this commits, the claim of an allowed call is taken: it must not depend
	// on the agent still being there.
	t, err := e.g.desk.Submit(context.WithoutCancel(ctx), desk.Ask{
		From: e.from, Call: a.call, Extra: a.extra, Tool: tool, Executor: approval.Gateway, Distinct: a.distinct, Reason: a.reason,
	})
	if err != nil {
		e.refuseAs(a.name(), err)
		return
	}
	w := e.waitFor(a, t)
	w.invited = t.Attached
	if t.Claim != "" {
		w.execute(ctx)
		return
	}
	w.carry(ctx)
}

// name is the action as people and models read it.
func (a *action) name() string { return a.server + "." + a.call.Tool() }

// known is what is known of the tool behind an action. The server's tools are
// listed before the first call, so that none is judged without its definition.
func (e *exchange) known(ctx context.Context, a *action) (desk.Tool, error) {
	c, err := e.link(a.server).acquire(ctx)
	if err != nil {
		return desk.Tool{}, &notReached{a.server, err}
	}
	defer c.release()
	if a.method != "tools/call" {
		return desk.Tool{}, nil
	}
	cat, err := c.tools(ctx, false)
	if err != nil {
		return desk.Tool{}, &notReached{a.server, err}
	}
	if why, ok := cat.dropped[a.call.Tool()]; ok {
		return desk.Tool{}, &notOffered{a.call.Tool(), why}
	}
	if cat.by[a.call.Tool()] == nil {
		return desk.Tool{}, &notListed{a.call.Tool()}
	}
	tool, held := e.g.desk.Tool(a.server, a.call.Tool())
	if held {
		return desk.Tool{}, desk.ErrHeldTool
	}
	return tool, nil
}

func (e *exchange) waitFor(a *action, t *desk.Ticket) *wait {
	w := &wait{exchange: e, action: a, ticket: t, request: t.Request, ear: newEar(e)}
	w.budget = e.g.c.Hold.budget(e.client, w.ear.token != nil)
	return w
}

// decided reports whether people decide about the request, whose result waits
// for the asker then.
func decided(r *approval.Request) bool { return r.Verdict.Effect == policy.Ask }

// settle ends the exchange with what became of a request that waits no longer.
func (w *wait) settle(ctx context.Context) {
	if w.request.State == approval.Approved {
		w.execute(ctx)
		return
	}
	w.deliver(w.request, desk.Result{Bytes: w.request.Execution.Result, IsError: w.request.Execution.Outcome == approval.Errored})
}

// deliver hands on the tool's answer, or says why there is none.
func (w *wait) deliver(r *approval.Request, res desk.Result) {
	ended := r.State == approval.Executed || r.State == approval.Failed
	if !ended || len(res.Bytes) == 0 {
		w.say(desk.Told(r, w.g.c.Now(), w.next(r)), r)
		return
	}
	var err error
	switch isResult := isToolResult(w.action.method, res); {
	case w.method == "tools/call" && w.action.method != w.method:
		err = w.x.Reply(w.dressed(wrapped(ours(res.Bytes), !isResult)))
	case isResult && w.edited(r):
		err = w.x.Reply(w.dressed(w.announced(r, ours(res.Bytes))))
	case isResult:
		err = w.x.Reply(w.dressed(ours(res.Bytes)))
	default:
		err = w.x.Fail(&mcp.Error{Raw: res.Bytes})
	}
	if err != nil {
		w.g.log.Debug("an answer did not reach the agent; it is kept", "request", r.ID, "err", err)
		return
	}
	if !decided(r) || !r.Execution.PickedUp.IsZero() {
		return
	}
	if err := w.g.desk.PickedUp(w.g.ctx, r.ID); err != nil {
		w.g.log.Warn("a result was handed out and that is not on record: it may be handed out again", "request", r.ID, "err", err)
	}
}

// approvedWithEdits is the code of a result whose call a person had changed.
const approvedWithEdits api.Code = "TOOL_APPROVED_WITH_EDITS"

// edited reports whether a person changed the call after the agent had asked.
func (w *wait) edited(r *approval.Request) bool {
	return w.method == "tools/call" && r.Call.Hash() != w.action.call.Hash()
}

// announced tells the agent, before the result, that another call ran than its
// own, or it would believe that its own did.
func (w *wait) announced(r *approval.Request, result []byte) []byte {
	text := textBlock(string(approvedWithEdits) + "\nA person changed this call before it ran (request " + r.Code +
		"). Treat the result as the result of the changed call.\nAsked: " + string(w.action.call.Args()) + "\nRan: " + string(r.Call.Args()))
	if content := elements(get(result, "content")); content != nil || has(result, "content") {
		result = set(result, list(append([][]byte{text}, content...)), "content")
	}
	meta := set(set(status(approvedWithEdits, r), w.action.call.Args(), "asked"), r.Call.Args(), "ran")
	return set(result, meta, "_meta", metaApproval)
}

// wrapped is the answer to another method as the result of our own tool, which
// an agent used to wait for it.
func wrapped(answer []byte, isError bool) []byte {
	o := (&object{}).add("content", list([][]byte{textBlock(string(answer))}))
	if isError {
		o.add("isError", []byte("true"))
	}
	return o.bytes()
}

// isToolResult tells a result from a JSON-RPC error: only a tool's result can be
// both an error and a result.
func isToolResult(method string, res desk.Result) bool {
	return !res.IsError || method == "tools/call" && isTrue(res.Bytes, "isError")
}

// abandoned ends an exchange whose agent gave up while its call waited. The
// request lives on: the agent may ask again, and gets what became of it.
func (w *wait) abandoned(cause error) {
	w.fail(&mcp.Error{
		Code:    codeRefused,
		Message: cause.Error() + "; nothing ran because of it. Request " + w.request.Code + " stays open until its deadline",
	})
}

// gone reports whether the agent took its request back. In the modern era over
// HTTP it does so by closing the stream; what waits then must not start.
func gone(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return context.Cause(ctx)
}
