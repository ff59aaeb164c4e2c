package web_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/ayegate/ayegate/api"
)

func TestCallThatARuleAllowsRuns(t *testing.T) {
	w := newWorld(t)
	c, err := w.bot.Call(t.Context(), api.CallRequest{Server: "fs", Tool: "read_file", Args: json.RawMessage(`{"path":"a"}`)})
	must(t, err)
	if c.Status != api.StatusExecuted || string(c.Result) != `{"content":[{"type":"text","text":"done"}],"n":9007199254740993}` || w.tool.count() != 1 {
		t.Fatalf("got %+v, %d calls upstream", c, w.tool.count())
	}
}

func TestCallHeldApprovedAndRun(t *testing.T) {
	w := newWorld(t)
	held := w.hold("fs", "write_file", `{"path":"a","text":"x"}`)
	w.say(w.ana, held.ID, api.Approve, "")
	c, err := w.bot.Await(t.Context(), held.ApprovalID, 0)
	must(t, err)
	if c.Status != api.StatusExecuted || w.tool.count() != 1 {
		t.Fatalf("got %+v", c)
	}
	r, err := w.raj.Request(t.Context(), held.ApprovalID)
	must(t, err)
	if r.Status != api.StatusExecuted || r.Execution == nil || r.Execution.PickedUpAt.IsZero() {
		t.Fatalf("got %+v", r)
	}
}

func TestCallDenied(t *testing.T) {
	w := newWorld(t)
	held := w.hold("fs", "write_file", `{"path":"a"}`)
	w.say(w.ana, held.ID, api.Deny, "wrong file")
	c, err := w.bot.Await(t.Context(), held.ApprovalID, 0)
	if !errors.Is(err, api.ToolDenied) || c == nil || c.Status != api.StatusDenied || w.tool.count() != 0 {
		t.Fatalf("got %+v, %v", c, err)
	}
}
