package gateway

import (
	"context"
	"errors"

	"github.com/ayegate/ayegate/internal/mcp"
)

// taskTTL is how long a server keeps the result of a task that we wait for, in
// milliseconds.
const taskTTL = "3600000"

// onlyAsTask reports whether a server of 2025-11-25 runs a tool as a task and in no
// other way. The gateway offers agents no tasks, so it waits for these itself.
func (c *conn) onlyAsTask(a *action) bool {
	if a.method != "tools/call" || c.about.Version != mcp.V20251125 || has(a.params, "task") ||
		!has(c.about.Capabilities, "tasks", "requests", "tools", "call") {
		return false
	}
	last := c.catalog.last.Load()
	if last == nil || last.by[a.call.Tool()] == nil {
		return false
	}
	return textAt(last.by[a.call.Tool()].raw, "execution", "taskSupport") == "required"
}

// send sends the request and returns the response, of a task the response that its
// end brings.
func (u *run) send(c *conn, params []byte) (mcp.Message, error) {
	if !c.onlyAsTask(u.action) {
		return c.up.Call(u.ctx, u.action.method, params, u)
	}
	m, err := c.up.Call(u.ctx, u.action.method, set(params, []byte(`{"ttl":`+taskTTL+`}`), "task"), u)
	id := get(m.Result, "task", "taskId")
	if err != nil || id == nil {
		return m, err
	}
	task := (&object{}).add("taskId", id).bytes()
	m, err = c.up.Call(u.ctx, "tasks/result", task, u)
	if err == nil {
		return m, nil
	}
	u.g.spawn(func() {
		ctx, stop := context.WithTimeout(u.g.ctx, tellTime)
		defer stop()
		_, _ = c.up.Call(ctx, "tasks/cancel", task, nil)
	})
	// The task was started, whatever became of the question for its result.
	var lost *mcp.CallError
	if errors.As(err, &lost) {
		err = &mcp.CallError{Sent: true, Err: lost.Err}
	}
	return m, err
}
