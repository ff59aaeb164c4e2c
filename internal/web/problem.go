package web

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/ayegate/ayegate/api"
	"github.com/ayegate/ayegate/internal/desk"
	"github.com/ayegate/ayegate/internal/web/credential"
)

// problemOf says how an error is told. The table of the desk is the one table;
// what it calls internal is logged under a name that the answer repeats, and its
// text is not told.
func (x *exchange) problemOf(err error) *api.Problem {
	var p *api.Problem
	if errors.As(err, &p) {
		return p
	}
	switch {
	case errors.Is(err, credential.ErrHolder):
		return newProblem(http.StatusBadRequest, api.BadRequest, "Nobody of that name is configured. Nothing was done.")
	case errors.Is(err, credential.ErrSpec):
		return newProblem(http.StatusBadRequest, api.BadRequest, "Not a credential that can be made: "+err.Error()+". Nothing was done.")
	case errors.Is(err, ErrNoServer):
		return newProblem(http.StatusNotFound, api.NotFound, "No server of that name is configured. Nothing ran.")
	case errors.Is(err, ErrNoTool):
		return newProblem(http.StatusNotFound, api.NotFound, "The server offers no such tool. Nothing ran.")
	}
	f := desk.FaultOf(err)
	p = newProblem(f.Status, f.Code, f.Text)
	if f.Code == api.Internal {
		p.Incident = x.web.incident()
		x.web.log.Error("a request failed inside", "incident", p.Incident, "route", x.r.Pattern, "err", err)
	}
	return p
}

// incident names one failure in the log.
func (w *Web) incident() string {
	w.random.Lock()
	defer w.random.Unlock()
	b := make([]byte, 6)
	if _, err := io.ReadFull(w.cfg.Rand, b); err != nil {
		return "unnamed"
	}
	return hex.EncodeToString(b)
}

// fail answers with an error: a page for the pages, a problem for all others.
func (x *exchange) fail(p plane, err error) {
	pr := x.problemOf(err)
	if pr.Status == http.StatusUnauthorized {
		x.w.Header().Set("WWW-Authenticate", `Bearer realm="ayegate"`)
	}
	if p == pages {
		x.failPage(pr)
		return
	}
	if err := x.json("application/problem+json", pr.Status, pr); err != nil {
		x.web.log.Error("a problem could not be written", "err", err)
		x.w.WriteHeader(http.StatusInternalServerError) // silence would read as success
	}
}

// failPage sends whoever is not signed in to sign in, and shows the rest.
func (x *exchange) failPage(p *api.Problem) {
	if p.Status == http.StatusUnauthorized {
		if _, ok := x.web.cookieOf(x.r); ok {
			x.dropCookie()
		}
		to := "/signin"
		if x.r.Method == http.MethodGet {
			to += "?" + url.Values{"next": {x.r.URL.RequestURI()}}.Encode()
		}
		x.redirect(to)
		return
	}
	x.errorPage(p)
}

// rescue answers for a handler that panicked. The claim, if there was one, is
// on record; recovery will call its outcome unknown.
func (w *Web) rescue(x *exchange) {
	v := recover()
	if v == nil {
		return
	}
	if err, ok := v.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(v) // it is meant: the connection ends here
	}
	x.fail(nobody, fmt.Errorf("panic: %v", v))
}
