package web_test

import (
	"strings"
	"testing"

	"github.com/ayegate/ayegate/api"
	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/desk"
	"github.com/ayegate/ayegate/internal/identity"
)

// TOK-04: what an agent sends beside a call over MCP is with the call wherever
// people see it, and goes with it when the agent comes back over this API.
func TestExtrasGoWithTheCall(t *testing.T) {
	w := newWorld(t)
	c, err := call.New("fs", "write_file", []byte(`{"path":"a"}`))
	must(t, err)
	extra := "{\"_meta\":{\"to\":\"pr\u202eod\",\"z\":9007199254740993}}"
	from := identity.Agent{ID: "bot", Owner: "user:ana", Workspace: "shop"}
	asked, err := w.desk.Submit(t.Context(), desk.Ask{
		From: from, Call: c, Extra: []byte(extra), Executor: approval.Gateway, Tool: desk.Tool{Known: true},
	})
	must(t, err)
	id := string(asked.Request.ID)
	r, err := w.ana.Request(t.Context(), id)
	must(t, err)
	if r.Extras != extra || r.HiddenCharacters != 1 || !strings.Contains(r.HumanSummary, "more is sent beside the call") {
		t.Errorf("extras %q, %d hidden, summary %q", r.Extras, r.HiddenCharacters, r.HumanSummary)
	}
	ana := w.signIn("ana")
	if page := ana.get("/r/" + r.Code); !strings.Contains(page, "Also sent, beside the call") || !strings.Contains(page, "9007199254740993") {
		t.Error("the page of the request does not show what is sent beside it")
	}
	if page := ana.get("/inbox"); !strings.Contains(page, "more is sent beside the call") {
		t.Error("the inbox does not say that more is sent")
	}

	// The same call over this API has nothing beside it: another request.
	plain := w.hold("fs", "write_file", `{"path":"a"}`)
	if plain.ApprovalID == id {
		t.Fatal("a call without extras joined one with them")
	}
	if p, err := w.ana.Request(t.Context(), plain.ApprovalID); err != nil || p.Extras != "" || p.Digest == r.Digest {
		t.Errorf("%v %+v", err, p)
	}
	w.say(w.ana, id, api.Approve, "")
	_, err = w.bot.Await(t.Context(), id, 0)
	must(t, err)
	if w.tool.count() != 1 || w.tool.beside != extra {
		t.Errorf("%d calls, beside the last %q", w.tool.count(), w.tool.beside)
	}
}
