package gateway

import (
	"context"
	"errors"
	"time"

	"github.com/ayegate/ayegate/api"
	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/desk"
	"github.com/ayegate/ayegate/internal/strictjson"
)

// Our own two tools. They are never judged: they take no argument that could
// change a call, and reach only requests that the agent made itself.
const (
	awaitName  = "await_approval"
	cancelName = "cancel_approval"

	awaitTool = `{"name":"","title":"Wait for an approval",
"description":"Waits for a person's decision on a call that answered TOOL_BLOCKED_PENDING_APPROVAL and returns the result of that call once it was approved and has run. It takes the id from that answer and cannot change the call.",
"inputSchema":{"type":"object","properties":{"id":{"type":"string","description":"the id of the waiting request, for example K7Q4"},"wait_seconds":{"type":"integer","minimum":0,"description":"how long to wait at most"}},"required":["id"],"additionalProperties":false},
"annotations":{"title":"Wait for an approval","readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}}`

	cancelTool = `{"name":"","title":"Withdraw a request for approval",
"description":"Takes back a call of yours that waits for a person's approval, when it is no longer needed. A call that has started cannot be taken back.",
"inputSchema":{"type":"object","properties":{"id":{"type":"string","description":"the id of the waiting request, for example K7Q4"}},"required":["id"],"additionalProperties":false},
"annotations":{"title":"Withdraw a request for approval","readOnlyHint":false,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}}`
)

// ownName is how one of our tools is called on this endpoint: plainly, or with our
// prefix where the server behind has a tool of that name. On the merged endpoint
// every name of a server has a prefix, so ours cannot meet one.
func (e *exchange) ownName(plain string) string {
	if e.client.Server == "" {
		return plain
	}
	if known, _ := e.g.desk.Tool(e.client.Server, plain); known.Definition.IsZero() {
		return plain
	}
	return ownPrefix + plain
}

// own returns our tool of this name, nil when the name is a server's.
func (e *exchange) own(name string) func(context.Context) {
	switch name {
	case e.ownName(awaitName):
		return e.awaitApproval
	case e.ownName(cancelName):
		return e.cancelApproval
	}
	return nil
}

// ownArgs reads the arguments of our tools. Anything else than what they take is
// refused: nothing else could be meant for them.
func (e *exchange) ownArgs(waits bool) (id string, wait time.Duration, problem string) {
	wait = -1
	args := get(e.params, "arguments")
	if !isObject(args) {
		return "", 0, "arguments must be an object with the member id"
	}
	members(args, func(name string, value []byte) {
		switch {
		case name == "id":
			id = textAt(value)
		case name == "wait_seconds" && waits:
			n, err := strictjson.Int(value)
			if err != nil || n < 0 || n > 86400 {
				problem = "wait_seconds must be a number of seconds"
				return
			}
			wait = time.Duration(n) * time.Second
		default:
			problem = "there is no argument " + name
		}
	})
	if id == "" && problem == "" {
		problem = "the argument id must name a request"
	}
	return id, wait, problem
}

// awaitApproval waits like a held call and returns the tool's own result.
func (e *exchange) awaitApproval(ctx context.Context) {
	id, patience, problem := e.ownArgs(true)
	if problem != "" {
		e.fail(badParams(problem))
		return
	}
	r, err := e.g.desk.FindOwn(ctx, e.from, id)
	if err == nil && e.g.noSuch(r.Call.Server()) {
		err = &notReached{r.Call.Server(), errors.New("it is not configured any more")}
	}
	if err != nil {
		e.refuseAs("request "+id, err)
		return
	}
	var meta []byte
	if token := get(e.params, "_meta"); token != nil {
		meta = token
	}
	w := e.waitFor(again(r, meta), &desk.Ticket{Request: r, Attached: true})
	if patience >= 0 {
		w.budget = min(w.budget, patience)
	}
	w.climb(ctx, []carrier{hold, block})
}

// cancelApproval withdraws an own request that waits.
func (e *exchange) cancelApproval(ctx context.Context) {
	id, _, problem := e.ownArgs(false)
	if problem != "" {
		e.fail(badParams(problem))
		return
	}
	r, err := e.g.desk.FindOwn(ctx, e.from, id)
	if err == nil {
		r, err = e.g.desk.Withdraw(context.WithoutCancel(ctx), e.from, r.ID)
	}
	switch {
	case errors.Is(err, approval.ErrClaimed):
		e.refuseAs("request "+id, err)
	case err != nil:
		e.refuseAs("request "+id, err)
	default:
		w := desk.Told(r, e.g.c.Now(), e.next(r))
		e.reply(spoken(w.Text, w.JSON, false, status(api.ApprovalWithdrawn, r)))
	}
}
