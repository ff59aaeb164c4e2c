package web

import (
	"bytes"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strconv"

	"github.com/ayegate/ayegate/api"
	"github.com/ayegate/ayegate/internal/identity"
	"github.com/ayegate/ayegate/internal/strictjson"
	"github.com/ayegate/ayegate/internal/web/credential"
)

// plane is who a route is for. The zero value serves nobody.
type plane uint8

const (
	nobody   plane = iota
	agents         // an agent key, never a cookie
	humans         // a human token or a browser session
	pages          // a browser session; a page instead of a problem
	public         // no credential: sign-in, styles, the API's description
	machines       // no credential on loopback
)

func (p plane) String() string {
	return [...]string{"nobody", "agents", "humans", "pages", "public", "machines"}[p]
}

// route is one line of the table of everything that is served.
type route struct {
	method, pattern string
	plane           plane
	name            string // operation id in the API's description
	doc             string // one sentence
	records         string // what it writes to the ledger by itself, beside the desk; empty for nothing
	in, out         reflect.Type
	query           []param
	media           string // of the answer where it is no JSON of out
	unlisted        bool   // answers for any Host: it tells nothing
	serve           func(*exchange) error
}

// param is one parameter of a query.
type param struct{ name, doc string }

// table is everything that is served, in reading order.
func table() []route {
	return slices.Concat(agentRoutes(), humanRoutes(), recordRoutes(), controlRoutes(), keyRoutes(), pageRoutes(), machineRoutes())
}

// Route is a line of the table of everything that is served, for documentation
// and tests.
type Route struct {
	Method, Pattern string
	Plane           string // agents, humans, pages, public or machines
	Records         string // kinds of events it writes itself; the desk writes its own
}

// Routes lists everything that is served.
func (w *Web) Routes() []Route {
	var out []Route
	for _, r := range w.routes {
		out = append(out, Route{Method: r.method, Pattern: r.pattern, Plane: r.plane.String(), Records: r.records})
	}
	return out
}

// exchange is one request that passed every check, and its answer.
type exchange struct {
	web *Web
	w   http.ResponseWriter
	r   *http.Request

	agent   identity.Agent      // on the agents' plane
	human   identity.Human      // on the humans' and the pages' plane
	key     credential.Key      // the bearer credential; zero with a cookie
	session credential.SignedIn // zero with a bearer credential

	status int    // of the answer; 0 means 200
	after  func() // runs when the answer went out to somebody who was still there
}

// post is a route that reads a JSON body and answers with JSON.
func post[In, Out any](p plane, pattern, name, doc string, handle func(*exchange, In) (Out, error)) route {
	return route{
		method: http.MethodPost, pattern: pattern, plane: p, name: name, doc: doc,
		in: reflect.TypeFor[In](), out: reflect.TypeFor[Out](),
		serve: func(x *exchange) error {
			var in In
			if err := x.decode(&in); err != nil {
				return err
			}
			out, err := handle(x, in)
			if err != nil {
				return err
			}
			return x.answer(out)
		},
	}
}

// get is a route that answers with JSON and changes nothing.
func get[Out any](p plane, pattern, name, doc string, handle func(*exchange) (Out, error), query ...param) route {
	return route{
		method: http.MethodGet, pattern: pattern, plane: p, name: name, doc: doc, out: reflect.TypeFor[Out](), query: query,
		serve: func(x *exchange) error {
			out, err := handle(x)
			if err != nil {
				return err
			}
			return x.answer(out)
		},
	}
}

// decode reads a JSON body, strictly: a duplicate, an unknown member, another
// spelling of a known one are faults (API-04).
func (x *exchange) decode(into any) error {
	body, err := x.body()
	if err != nil {
		return err
	}
	return strictjson.Decode(body, strictjson.Limits{Bytes: int(x.web.cfg.MaxBody)}, into)
}

// answer writes JSON. Raw members go out as they are: nothing is escaped for
// HTML, which this is not.
func (x *exchange) answer(v any) error {
	if x.status == 0 {
		x.status = http.StatusOK
	}
	return x.json("application/json", x.status, v)
}

func (x *exchange) json(media string, status int, v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	x.w.Header().Set("Content-Type", media)
	x.w.Header().Set("Content-Length", strconv.Itoa(b.Len())) // the asker has it all before this handler ends
	x.web.until(x.w, writeTime)
	there := x.r.Context().Err() == nil
	x.w.WriteHeader(status)
	x.write(b.Bytes())
	if x.after != nil && there && http.NewResponseController(x.w).Flush() == nil {
		x.after()
	}
	return nil
}

// newProblem is an error of the transport, or one of the few that only this
// package knows.
func newProblem(status int, code api.Code, detail string) *api.Problem {
	return &api.Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Code: code, Detail: detail}
}
