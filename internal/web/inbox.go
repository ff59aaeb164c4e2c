package web

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/ayegate/ayegate/api"
	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/store"
	"github.com/ayegate/ayegate/internal/web/page"
)

// How much of each list the inbox shows at a time.
const (
	inboxWaiting = 200
	inboxOther   = 50
	inboxRecent  = 20
)

func (x *exchange) inboxPage() error {
	q, err := x.params("cursor")
	if err != nil {
		return err
	}
	p := page.Inbox{Frame: x.frame("Inbox", "inbox")}
	if err := x.waiting(&p, q.Get("cursor")); err != nil {
		return err
	}
	lists := []struct {
		rows *[]page.Row
		f    store.Filter
	}{
		{&p.Doubt, store.Filter{States: []approval.State{approval.Unknown}, Limit: inboxOther}},
		{&p.Running, store.Filter{States: []approval.State{approval.Approved, approval.Executing}, Limit: inboxOther}},
		{&p.Recent, store.Filter{States: []approval.State{
			approval.Executed, approval.Failed, approval.Denied, approval.Expired, approval.Cancelled,
		}, Limit: inboxRecent}},
	}
	for _, l := range lists {
		for r, err := range x.web.store.List(x.r.Context(), l.f) {
			if err != nil {
				return err
			}
			*l.rows = append(*l.rows, x.row(r))
			if n := len(r.Decisions); n > 0 && r.Decisions[n-1].At.After(p.Last) {
				p.Last = r.Decisions[n-1].At
			}
		}
	}
	if p.Sessions, err = x.web.desk.PausedSessions(x.r.Context()); err != nil {
		return err
	}
	return x.render(http.StatusOK, page.InboxPage(p))
}

// waiting fills in what waits for people, soonest deadline first.
func (x *exchange) waiting(p *page.Inbox, cursor string) error {
	f := store.Filter{States: []approval.State{approval.Pending}, Order: store.DeadlineFirst, Limit: inboxWaiting + 1}
	if cursor != "" {
		var err error
		if f.After, err = cursorOf(f.Order, cursor); err != nil {
			return err
		}
	}
	n := 0
	var last *approval.Request
	for r, err := range x.web.store.List(x.r.Context(), f) {
		if err != nil {
			return err
		}
		if n++; n > inboxWaiting {
			p.More = "/inbox?" + url.Values{"cursor": {cursorAfter(f.Order, last)}}.Encode()
			break
		}
		last = r
		row, may := x.row(r), x.may(r)
		row.Note = quorumNote(row.R)
		if may.Approve {
			p.Mine = append(p.Mine, row)
		} else {
			row.Note = may.WhyNot
			p.Others = append(p.Others, row)
		}
	}
	p.Waiting = len(p.Mine)
	return nil
}

func (x *exchange) row(r *approval.Request) page.Row {
	row := page.Row{R: x.web.view(r)}
	row.Preview, row.Short = page.Preview(r.Call)
	return row
}

// quorumNote says who of several has approved.
func quorumNote(r api.Request) string {
	if r.Quorum < 2 {
		return ""
	}
	var names []string
	for _, d := range r.Decisions {
		if d.Decision == api.Approve && !d.Void {
			names = append(names, d.Name)
		}
	}
	note := fmt.Sprintf("needs %d people", r.Quorum)
	if len(names) > 0 {
		note += ", " + strings.Join(names, " and ") + " approved"
	}
	return note
}

// may says what the person who looks can do with a request.
func (x *exchange) may(r *approval.Request) page.May {
	deny := approval.Entitled(r.Verdict.Of, x.human, r.From, false)
	approve := approval.Entitled(r.Verdict.Of, x.human, r.From, true)
	pending := r.State == approval.Pending && x.web.store.Now().Before(r.ExpiresAt)
	m := page.May{
		Approve: pending && approve == nil, Deny: pending && deny == nil, Resolve: r.State == approval.Unknown && deny == nil,
		Extend: pending && deny == nil && r.Extended < approval.MaxExtensions,
		Revoke: r.State.Open() && (deny == nil || r.From.Owner == x.human.Subject()),
	}
	for _, d := range r.Approvals() {
		if pending && d.By.ID == x.human.ID {
			m.Approve, m.WhyNot = false, "You have approved this. Another person is needed."
			return m
		}
	}
	switch {
	case approve == nil:
	case errors.Is(approve, approval.ErrOwnAgent) && r.From.Owner == "":
		m.WhyNot = "The policy bars the owner of the agent, and this agent has none: nobody may approve it."
	case errors.Is(approve, approval.ErrOwnAgent):
		m.WhyNot = "The agent is yours, so another person must decide."
	case len(r.Verdict.Of.AnyOf) > 0:
		m.WhyNot = "Only " + strings.Join(r.Verdict.Of.AnyOf, ", ") + " may decide this."
	default:
		m.WhyNot = "The policy names other people for this."
	}
	return m
}

// toolsPage shows what changed of the tools, line by line.
func (x *exchange) toolsPage() error {
	if _, err := x.params(); err != nil {
		return err
	}
	return x.tools(http.StatusOK, "")
}

func (x *exchange) tools(status int, notice string) error {
	p := page.Tools{Frame: x.frame("Tools", "tools"), Notice: notice}
	for _, pin := range x.web.desk.Pins() {
		if pin.Accepted {
			p.Known = append(p.Known, definition(pin))
			continue
		}
		before, after := page.Diff(pin.Before, pin.Raw)
		p.Held = append(p.Held, page.HeldTool{
			Server: pin.Server, Tool: pin.Tool, Definition: pin.Definition.String(), Was: pin.Was.String(), Before: before, After: after,
		})
	}
	return x.render(status, page.ToolsPage(p))
}

func (x *exchange) acceptForm() error {
	v, err := x.form("server", "tool", "definition")
	if err != nil {
		return err
	}
	seen, err := call.ParseHash(v.Get("definition"))
	if err == nil {
		_, err = x.web.desk.Accept(x.r.Context(), x.human, v.Get("server"), v.Get("tool"), seen)
	}
	if errors.Is(err, approval.ErrStale) {
		return x.tools(http.StatusConflict, "The tool changed once more after you looked. Nothing was accepted.")
	}
	if err != nil {
		return err
	}
	x.redirect("/tools")
	return nil
}

func (x *exchange) pauseForm() error {
	if _, err := x.form(); err != nil {
		return err
	}
	if err := x.web.desk.Pause(x.r.Context(), x.human, ""); err != nil {
		return err
	}
	x.redirect("/inbox")
	return nil
}

func (x *exchange) resumeForm() error {
	v, err := x.form("session")
	if err != nil {
		return err
	}
	if s := v.Get("session"); s != "" {
		err = x.web.desk.ResumeSession(x.r.Context(), x.human, s, "")
	} else {
		err = x.web.desk.Resume(x.r.Context(), x.human, "")
	}
	if err != nil && !isAbsent(err) { // it was resumed already
		return err
	}
	x.redirect("/inbox")
	return nil
}
