package web

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/ayegate/ayegate/api"
	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/web/page"
)

func (x *exchange) requestPage() error {
	if _, err := x.params(); err != nil {
		return err
	}
	r, err := x.web.find(x.r.Context(), x.r.PathValue("id"))
	if err != nil {
		return err
	}
	return x.showRequest(http.StatusOK, r, "", page.Draft{})
}

func (x *exchange) showRequest(status int, r *approval.Request, notice string, d page.Draft) error {
	f := x.frame(r.Code+" "+r.Call.Server()+"."+r.Call.Tool(), "inbox")
	p := page.NewRequest(f, x.web.view(r), page.Of(r.Call, r.Extra), x.may(r))
	p.Notice, p.Draft = notice, d
	p.Outdated = r.State.Open() && r.Verdict.Revision != x.web.desk.Policy().Revision()
	return x.render(status, page.RequestPage(p))
}

func (x *exchange) approveForm() error {
	v, err := x.form("digest", "typed", "read")
	if err != nil {
		return err
	}
	r, err := x.ofForm()
	if err != nil {
		return err
	}
	draft := page.Draft{Typed: v.Get("typed")}
	if deliberate(r) && v.Get("read") != "yes" {
		return x.showRequest(http.StatusForbidden, r, "Read to the end of the call to enable this. Nothing was decided.", draft)
	}
	return x.decideForm(r, v, approval.Decision{Approve: true, Typed: v.Get("typed")}, draft)
}

// deliberate reports whether an approval on a page must say that the call was
// read to its end.
func deliberate(r *approval.Request) bool {
	p := page.Request{R: api.Request{RiskTier: r.Verdict.Tier.String()}}
	return p.Deliberate()
}

func (x *exchange) denyForm() error {
	v, err := x.form("digest", "preset", "reason")
	if err != nil {
		return err
	}
	r, err := x.ofForm()
	if err != nil {
		return err
	}
	draft := page.Draft{Reason: v.Get("reason"), Preset: v.Get("preset")}
	why := draft.Preset
	if why != "" && draft.Reason != "" {
		why += ". "
	}
	why += draft.Reason
	if len(why) > maxReason {
		return x.showRequest(http.StatusBadRequest, r, "The reason is too long. Nothing was decided.", draft)
	}
	return x.decideForm(r, v, approval.Decision{Reason: why}, draft)
}

// decideForm decides about what was on the page, by its digest (WEB-06).
func (x *exchange) decideForm(r *approval.Request, v url.Values, d approval.Decision, draft page.Draft) error {
	var err error
	if d.Digest, err = call.ParseHash(v.Get("digest")); err != nil {
		return newProblem(http.StatusBadRequest, api.BadRequest, "The form cannot be read. Nothing was decided.")
	}
	asked := x.web.desk.Waiting(r.ID) > 0
	now, err := x.web.desk.Decide(x.r.Context(), x.human, r.ID, d)
	if err == nil && asked && now.State == approval.Approved {
		x.lookOn(r.ID)
	}
	return x.afterForm(r, now, err, draft)
}

// lookOn gives a call that runs at once a moment to end, so that the page that
// follows tells of its outcome and not of an instant before it.
func (x *exchange) lookOn(id approval.ID) {
	ctx, cancel := context.WithTimeout(x.r.Context(), 2*time.Second)
	defer cancel()
	_, _ = x.web.desk.Outcome(ctx, x.human, id) // the page reads the request again and has its own errors
}

// ofForm is the request a form is about. Forms name it by its id: a short code
// can come to name another one.
func (x *exchange) ofForm() (*approval.Request, error) {
	id := x.r.PathValue("id")
	if !uuid(id) {
		return nil, noRequest()
	}
	return x.web.find(x.r.Context(), id)
}

// afterForm leads back to the request, or shows it as it stands with the reason
// why the form changed nothing. What was typed is kept.
func (x *exchange) afterForm(r, now *approval.Request, err error, draft page.Draft) error {
	if err == nil {
		x.redirect("/r/" + string(r.ID))
		return nil
	}
	p := x.problemOf(err)
	if p.Status >= http.StatusInternalServerError {
		return p
	}
	if now == nil {
		if now, err = x.web.find(x.r.Context(), string(r.ID)); err != nil {
			return err
		}
	}
	return x.showRequest(p.Status, now, p.Detail, draft)
}

func (x *exchange) extendForm() error {
	return x.simpleForm(func(id approval.ID) (*approval.Request, error) {
		return x.web.desk.Extend(x.r.Context(), x.human, id)
	})
}

func (x *exchange) cancelForm() error {
	return x.simpleForm(func(id approval.ID) (*approval.Request, error) {
		return x.web.desk.Revoke(x.r.Context(), x.human, id)
	})
}

func (x *exchange) simpleForm(move func(approval.ID) (*approval.Request, error)) error {
	if _, err := x.form(); err != nil {
		return err
	}
	r, err := x.ofForm()
	if err != nil {
		return err
	}
	now, err := move(r.ID)
	return x.afterForm(r, now, err, page.Draft{})
}

func (x *exchange) resolveForm() error {
	v, err := x.form("outcome", "note")
	if err != nil {
		return err
	}
	r, err := x.ofForm()
	if err != nil {
		return err
	}
	now, err := x.web.desk.Resolve(x.r.Context(), x.human, r.ID, approval.Outcome(v.Get("outcome")), v.Get("note"))
	return x.afterForm(r, now, err, page.Draft{Note: v.Get("note")})
}
