package web

import (
	"net/http"

	"github.com/ayegate/ayegate/api"
)

func (w *Web) pageRoutes() []route { return nil }

func (x *exchange) errorPage(p *api.Problem) { x.w.WriteHeader(p.Status) }

func (x *exchange) redirect(to string) {
	x.w.Header().Set("Location", to)
	x.w.WriteHeader(http.StatusSeeOther)
}

func (x *exchange) dropCookie() {}

func (x *exchange) description() error { return nil }
