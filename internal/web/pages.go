package web

import (
	"bytes"
	"crypto/subtle"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/a-h/templ"

	"github.com/ayegate/ayegate/api"
	"github.com/ayegate/ayegate/internal/web/credential"
	"github.com/ayegate/ayegate/internal/web/page"
)

// pageRoutes is what people open in a browser. Every change is a form that
// works without any script.
func pageRoutes() []route {
	show := func(pattern, name, doc string, serve func(*exchange) error) route {
		return route{method: http.MethodGet, pattern: pattern, plane: pages, name: name, doc: doc, media: "text/html", serve: serve}
	}
	form := func(pattern, name, doc string, serve func(*exchange) error) route {
		return route{method: http.MethodPost, pattern: pattern, plane: pages, name: name, doc: doc, media: "text/html", serve: serve}
	}
	out := form("/signout", "signOut", "Ends the session of this browser.", (*exchange).signOut)
	out.records = "auth.signed_out"
	return []route{
		show("/{$}", "home", "Leads to the inbox.", func(x *exchange) error { x.redirect("/inbox"); return nil }),
		show("/inbox", "inboxPage", "What waits, for whom, and what ended lately.", (*exchange).inboxPage),
		show("/r/{id}", "requestPage", "One request: the exact call, and the forms to decide it.", (*exchange).requestPage),
		form("/r/{id}/approve", "approveForm", "Approves once.", (*exchange).approveForm),
		form("/r/{id}/deny", "denyForm", "Denies, with a reason.", (*exchange).denyForm),
		form("/r/{id}/extend", "extendForm", "Moves the deadline.", (*exchange).extendForm),
		form("/r/{id}/cancel", "cancelForm", "Ends a request that has not started.", (*exchange).cancelForm),
		form("/r/{id}/resolve", "resolveForm", "Settles an unknown outcome.", (*exchange).resolveForm),
		show("/tools", "toolsPage", "Pinned tools, and those whose definition changed.", (*exchange).toolsPage),
		form("/tools/accept", "acceptForm", "Accepts a changed definition.", (*exchange).acceptForm),
		form("/pause", "pauseForm", "Stops all agents.", (*exchange).pauseForm),
		form("/resume", "resumeForm", "Lets all agents, or one session, go on.", (*exchange).resumeForm),
		out,
		{
			method: http.MethodGet, pattern: "/signin", plane: public, name: "signInPage", media: "text/html",
			doc: "Asks for a sign-in secret.", serve: (*exchange).signInPage,
		},
		{
			method: http.MethodGet, pattern: "/signin/{secret}", plane: public, name: "signInLink", media: "text/html",
			doc: "Shows the button that uses a sign-in link up. Opening it changes nothing.", serve: (*exchange).signInPage,
		},
		{
			method: http.MethodPost, pattern: "/signin", plane: public, name: "signIn", media: "text/html",
			doc: "Starts a session.", records: "auth.signed_in auth.failed key.revoked", serve: (*exchange).signIn,
		},
		{
			method: http.MethodGet, pattern: "/static/{file}", plane: public, name: "asset", media: "text/css",
			doc: "The style and the icon of the pages.", serve: (*exchange).asset,
		},
	}
}

// render draws a page whole before a byte of it is sent.
func (x *exchange) render(status int, c templ.Component) error {
	var b bytes.Buffer
	if err := c.Render(x.r.Context(), &b); err != nil {
		return err
	}
	x.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	x.web.until(x.w, writeTime)
	x.w.WriteHeader(status)
	x.write(b.Bytes())
	return nil
}

// redirect leads on by a GET.
func (x *exchange) redirect(to string) {
	x.w.Header().Set("Location", to)
	x.w.WriteHeader(http.StatusSeeOther)
}

// frame is what every page of a signed-in person has around it.
func (x *exchange) frame(title, here string) page.Frame {
	f := page.Frame{Title: title, Here: here, Now: x.web.store.Now(), Form: x.session.Form}
	if x.human.IsZero() {
		return f
	}
	f.Person, f.Paused = nameOf(x.human.Name, x.human.ID), x.web.desk.Paused()
	for _, p := range x.web.desk.Pins() {
		if !p.Accepted {
			f.Held++
		}
	}
	return f
}

// errorPage shows what went wrong in the style of the other pages.
func (x *exchange) errorPage(p *api.Problem) {
	heading := map[int]string{
		http.StatusNotFound: "Not here", http.StatusForbidden: "Not allowed", http.StatusConflict: "Not any more",
		http.StatusMethodNotAllowed: "Not this way", http.StatusInternalServerError: "Something failed", http.StatusServiceUnavailable: "Not now",
	}[p.Status]
	if heading == "" {
		heading = p.Title
	}
	f := page.Failure{Frame: x.frame(heading, ""), Status: p.Status, Heading: heading, Detail: p.Detail, Incident: p.Incident}
	if err := x.render(p.Status, page.FailurePage(f)); err != nil {
		x.web.log.Error("an error page could not be drawn", "err", err)
		x.w.WriteHeader(http.StatusInternalServerError) // silence would read as success
	}
}

// form reads a form: only the fields named, each once, and for a session the
// token that its own pages carry, a second lock behind the origin (WEB-03).
func (x *exchange) form(names ...string) (url.Values, error) {
	body, err := x.body()
	if err != nil {
		return nil, err
	}
	bad := newProblem(http.StatusBadRequest, api.BadRequest, "The form cannot be read. Nothing was done.")
	if !utf8.Valid(body) {
		return nil, bad
	}
	v, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, bad
	}
	known := map[string]bool{"form": true}
	for _, n := range names {
		known[n] = true
	}
	for name, values := range v {
		if !known[name] || len(values) != 1 || !utf8.ValidString(values[0]) {
			return nil, bad
		}
		v[name] = []string{strings.ReplaceAll(values[0], "\r\n", "\n")}
	}
	if x.session.ID != "" && subtle.ConstantTimeCompare([]byte(v.Get("form")), []byte(x.session.Form)) != 1 {
		return nil, newProblem(http.StatusForbidden, api.CrossOrigin, "The form is not from a page of this session: open the page again. Nothing was done.")
	}
	return v, nil
}

func (x *exchange) asset() error {
	b, media, ok := page.Asset(x.r.URL.Path)
	if !ok {
		return newProblem(http.StatusNotFound, api.NotFound, "There is nothing at this address.")
	}
	h := x.w.Header()
	h.Set("Content-Type", media)
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Del("Vary")
	x.write(b)
	return nil
}

// signInPage shows the button, or asks for the secret. It changes nothing: a
// scanner that opens every link it finds signs nobody in and uses nothing up
// (WEB-01, WEB-02).
func (x *exchange) signInPage() error {
	q, err := x.params("next")
	if err != nil {
		return err
	}
	p := page.SignIn{Frame: x.frame("Sign in", ""), Next: samePath(q.Get("next"))}
	if secret := x.r.PathValue("secret"); secret != "" {
		if class, _, ok := credential.ClassOf(secret); !ok || class != credential.Link {
			p.Notice = "This is no sign-in link. Ask for another one."
		} else {
			p.Secret = secret
		}
	}
	return x.render(http.StatusOK, page.SignInPage(p))
}

// samePath returns an address on this site, or "": after signing in nobody is
// sent elsewhere (WEB-09).
func samePath(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || u.Opaque != "" ||
		!strings.HasPrefix(next, "/") || strings.ContainsAny(next, "\\") ||
		strings.ContainsFunc(next, func(r rune) bool { return r <= ' ' || r >= 0x7f }) || strings.HasPrefix(u.Path, "//") {
		return ""
	}
	return next
}

// signIn uses a secret up and starts a session.
func (x *exchange) signIn() error {
	v, err := x.form("secret", "next")
	if err != nil {
		return err
	}
	before, _ := x.web.cookieOf(x.r)
	secret := strings.TrimSpace(v.Get("secret"))
	s, cookie, err := x.web.creds.SignIn(x.r.Context(), secret, before)
	if err != nil {
		p := x.problemOf(x.web.refused(x.r, "signin", secret, err))
		notice := p.Detail
		if p.Status == http.StatusUnauthorized {
			notice = "That did not work: the link was used before, has ended, or is not complete. Ask for another one."
		}
		return x.render(p.Status, page.SignInPage(page.SignIn{Frame: x.frame("Sign in", ""), Next: samePath(v.Get("next")), Notice: notice}))
	}
	x.setCookie(cookie, s.Expires.Sub(x.web.store.Now()))
	to := samePath(v.Get("next"))
	if to == "" {
		to = "/inbox"
	}
	x.redirect(to)
	return nil
}

func (x *exchange) signOut() error {
	if _, err := x.form(); err != nil {
		return err
	}
	if cookie, ok := x.web.cookieOf(x.r); ok && x.session.ID != "" {
		if err := x.web.creds.SignOut(x.r.Context(), cookie, "signed out"); err != nil {
			return err
		}
	}
	x.dropCookie()
	x.redirect("/signin")
	return nil
}

// setCookie keeps the session in the browser: out of reach of scripts, never
// sent from another site, and with TLS bound to this host.
func (x *exchange) setCookie(value string, life time.Duration) {
	http.SetCookie(x.w, &http.Cookie{
		Name: x.web.cookie, Value: value, Path: "/", MaxAge: int((life + time.Second - 1) / time.Second),
		HttpOnly: true, Secure: x.web.secure, SameSite: http.SameSiteStrictMode,
	})
}

func (x *exchange) dropCookie() {
	http.SetCookie(x.w, &http.Cookie{
		Name: x.web.cookie, Path: "/", MaxAge: -1, HttpOnly: true, Secure: x.web.secure, SameSite: http.SameSiteStrictMode,
	})
}
