package web

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ayegate/ayegate/api"
)

// serve is the way in: headers that every answer has, the host, and then the
// table.
func (w *Web) serve(rw http.ResponseWriter, r *http.Request) {
	harden(rw.Header())
	x := &exchange{web: w, w: rw, r: r}
	defer w.rescue(x)
	_, pattern := w.mux.Handler(r)
	if !w.hosted(r) && !w.unlisted(pattern) {
		x.fail(nobody, newProblem(http.StatusMisdirectedRequest, api.WrongHost, "This server does not serve that host name. Nothing was done."))
		return
	}
	if pattern == "" {
		x.fail(w.planeOf(r), w.unrouted(rw, r))
		return
	}
	w.mux.ServeHTTP(rw, r)
}

// harden sets what holds for every answer: no caching (WEB-10), no frames
// (WEB-05), no script and no style but our own file (WEB-04), no guessing of
// types. Forms need an Origin to be checked, so the policy for referrers is
// same-origin: with no-referrer a browser would send "Origin: null".
func harden(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Vary", "Authorization, Cookie, Origin")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
}

// hosted reports whether the request names this server. Without it a page of
// another site could rebind its name to this address, and be "same origin"
// (MCP-07).
func (w *Web) hosted(r *http.Request) bool {
	return slices.Contains(w.hosts, strings.ToLower(r.Host))
}

func (w *Web) unlisted(pattern string) bool {
	return slices.ContainsFunc(w.routes, func(rt route) bool { return rt.unlisted && rt.method+" "+rt.pattern == pattern })
}

// unrouted says whether a path does not exist or only not with this method.
func (w *Web) unrouted(rw http.ResponseWriter, r *http.Request) *api.Problem {
	var allow []string
	for _, m := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
		other := *r
		other.Method = m
		if _, pattern := w.mux.Handler(&other); pattern != "" {
			allow = append(allow, m)
		}
	}
	if len(allow) == 0 {
		return newProblem(http.StatusNotFound, api.NotFound, "There is nothing at this address.")
	}
	rw.Header().Set("Allow", strings.Join(allow, ", "))
	return newProblem(http.StatusMethodNotAllowed, api.MethodNotAllowed, "This address takes "+strings.Join(allow, " and ")+" only. Nothing was done.")
}

// planeOf guesses, for an address that does not exist, how to say so.
func (w *Web) planeOf(r *http.Request) plane {
	if r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html") && !strings.HasPrefix(r.URL.Path, "/v1/") {
		return pages
	}
	return nobody
}

// guard puts the checks of a route before its handler.
func (w *Web) guard(rt route) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		x := &exchange{web: w, w: rw, r: r}
		defer w.rescue(x)
		if err := w.admit(rt, x); err != nil {
			x.fail(rt.plane, err)
			return
		}
		if err := rt.serve(x); err != nil {
			x.fail(rt.plane, err)
		}
	})
}

// admit runs every check that does not need the body.
func (w *Web) admit(rt route, x *exchange) error {
	safe := x.r.Method == http.MethodGet || x.r.Method == http.MethodHead
	if safe && x.r.ContentLength != 0 {
		return newProblem(http.StatusBadRequest, api.BadRequest, "A "+x.r.Method+" has no body. Nothing was done.")
	}
	if err := w.origin.Check(x.r); err != nil {
		return newProblem(http.StatusForbidden, api.CrossOrigin, "The request comes from another site. Nothing was done.")
	}
	if err := w.identify(rt.plane, x); err != nil {
		return err
	}
	if safe {
		return nil
	}
	byCookie := x.session.ID != "" || rt.plane == public
	if byCookie && !w.sameOrigin(x.r) {
		return newProblem(http.StatusForbidden, api.CrossOrigin, "A browser's request must say that it comes from this site. Nothing was done.")
	}
	return w.media(rt, x.r)
}

// sameOrigin demands proof. CrossOriginProtection lets a request pass that says
// nothing of where it comes from, which is right for a bearer credential that no
// other site has, and wrong for a cookie that the browser adds by itself (WEB-03).
func (w *Web) sameOrigin(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" {
		return site == "same-origin"
	}
	o, err := url.Parse(r.Header.Get("Origin"))
	return err == nil && o.Scheme == w.base.Scheme && strings.EqualFold(o.Host, r.Host) && o.Path == ""
}

// media checks how the body is written before a byte of it is read.
func (w *Web) media(rt route, r *http.Request) error {
	if e := r.Header.Values("Content-Encoding"); len(e) > 1 || len(e) == 1 && !strings.EqualFold(e[0], "identity") {
		return newProblem(http.StatusUnsupportedMediaType, api.UnsupportedMedia, "Compressed bodies are not taken. Nothing was done.")
	}
	if r.ContentLength > w.cfg.MaxBody {
		return tooLarge()
	}
	if rt.method == http.MethodDelete {
		if r.ContentLength != 0 {
			return newProblem(http.StatusBadRequest, api.BadRequest, "A DELETE has no body. Nothing was done.")
		}
		return nil
	}
	want := "application/json"
	if rt.in == nil {
		want = "application/x-www-form-urlencoded"
	}
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	charset := params["charset"]
	if err != nil || kind != want || len(r.Header.Values("Content-Type")) != 1 || charset != "" && !strings.EqualFold(charset, "utf-8") {
		return newProblem(http.StatusUnsupportedMediaType, api.UnsupportedMedia, "The body must be "+want+". Nothing was done.")
	}
	return nil
}

func tooLarge() *api.Problem {
	return newProblem(http.StatusRequestEntityTooLarge, api.TooLarge, "The body is too large. Nothing was done.")
}

// body reads a whole body within the limit.
func (x *exchange) body() ([]byte, error) {
	// The deadline is taken back: the server reads on to notice an asker that hangs
	// up, and would take a deadline that passes for one.
	rc := http.NewResponseController(x.w)
	x.web.set(rc.SetReadDeadline, readTime)
	defer x.web.set(rc.SetReadDeadline, 0)
	b, err := io.ReadAll(http.MaxBytesReader(x.w, x.r.Body, x.web.cfg.MaxBody))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return nil, tooLarge()
	case err != nil:
		return nil, newProblem(http.StatusBadRequest, api.BadRequest, "The body broke off. Nothing was done.")
	}
	return b, nil
}

// until sets how long writing may take from now on; 0 is as long as it takes.
func (w *Web) until(rw http.ResponseWriter, d time.Duration) {
	w.set(http.NewResponseController(rw).SetWriteDeadline, d)
}

// set sets a deadline. A connection without deadlines has nothing to set.
func (w *Web) set(deadline func(time.Time) error, d time.Duration) {
	var at time.Time
	if d > 0 {
		at = w.cfg.Now().Add(d)
	}
	if err := deadline(at); err != nil && !errors.Is(err, http.ErrNotSupported) {
		w.log.Debug("a deadline could not be set", "err", err)
	}
}
