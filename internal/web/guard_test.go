package web_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/ayegate/ayegate/api"
	"github.com/ayegate/ayegate/internal/web"
)

// session is a signed-in browser.
type session struct {
	*world
	cookie *http.Cookie
	form   string // what its forms carry
}

func (w *world) signIn(who string) *session {
	w.t.Helper()
	link, err := w.web.NewSignInLink(w.t.Context(), who)
	must(w.t, err)
	resp := w.raw("POST", "/signin", url.Values{"secret": {link[strings.LastIndex(link, "/")+1:]}}.Encode(),
		"Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "same-origin")
	if resp.StatusCode != http.StatusSeeOther || len(resp.Cookies()) != 1 {
		w.t.Fatalf("signing in: HTTP %d, %d cookies", resp.StatusCode, len(resp.Cookies()))
	}
	s := &session{world: w, cookie: resp.Cookies()[0]}
	s.form = hiddenField(w.t, s.get("/inbox"), "form")
	return s
}

func (s *session) header(more ...string) []string {
	return append([]string{"Cookie", s.cookie.Name + "=" + s.cookie.Value}, more...)
}

func (s *session) get(path string) string {
	s.t.Helper()
	resp := s.raw("GET", path, "", s.header()...)
	b, err := io.ReadAll(resp.Body)
	must(s.t, err)
	return string(b)
}

// post sends a form as a browser on one of our own pages does.
func (s *session) post(path string, fields ...string) *http.Response {
	s.t.Helper()
	v := url.Values{"form": {s.form}}
	for i := 0; i < len(fields); i += 2 {
		v.Set(fields[i], fields[i+1])
	}
	return s.raw("POST", path, v.Encode(), s.header("Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "same-origin")...)
}

func hiddenField(t *testing.T, page, name string) string {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(page))
	must(t, err)
	for n := range doc.Descendants() {
		if n.Data == "input" && attrOf(n, "name") == name {
			return attrOf(n, "value")
		}
	}
	t.Fatalf("no field %q on the page:\n%s", name, page)
	return ""
}

func attrOf(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

var variables = regexp.MustCompile(`\{[^}]*\}`)

// address fills the variables of a pattern.
func address(pattern, id string) string {
	return variables.ReplaceAllString(strings.Replace(pattern, "{$}", "", 1), id)
}

// WEB-01, API-13: over the whole table, neither GET nor HEAD nor OPTIONS changes
// a request, a record or the ledger, with and without a credential, whatever
// headers ask for another method.
func TestReadingChangesNothing(t *testing.T) {
	w := newWorld(t)
	held := w.hold("fs", "write_file", `{"path":"a"}`)
	s := w.signIn("ana")
	link, err := w.web.NewSignInLink(t.Context(), "raj")
	must(t, err)
	before, err := w.store.Head(t.Context())
	must(t, err)
	paths := []string{strings.TrimPrefix(link, w.base)}
	for _, rt := range w.web.Routes() {
		for _, id := range []string{held.ApprovalID, held.ID, "0"} {
			if p := address(rt.Pattern, id); p != "/v1/events" {
				paths = append(paths, p, p+"?decision=approve&digest=x")
			}
		}
	}
	credentials := [][]string{
		nil, bearer(w.keys["bot"]), bearer(w.keys["raj"]), s.header(),
		s.header("Purpose", "prefetch", "X-HTTP-Method-Override", "POST", "X-Method-Override", "DELETE", "X-HTTP-Method", "POST"),
	}
	for _, p := range paths {
		for _, method := range []string{"GET", "HEAD", "OPTIONS"} {
			for i, c := range credentials {
				// A credential of the wrong class is refused, and that is put on the record:
				// here only the right ones may look.
				agentPath := strings.HasPrefix(p, "/v1/calls")
				if c != nil && (i == 1) != agentPath {
					continue
				}
				w.raw(method, p, "", c...)
			}
		}
	}
	after, err := w.store.Head(t.Context())
	must(t, err)
	if after.Size != before.Size {
		for line, err := range w.store.Entries(t.Context(), before.Size) {
			must(t, err)
			t.Errorf("reading wrote %s", line)
		}
	}
	r, err := w.ana.Request(t.Context(), held.ApprovalID)
	must(t, err)
	if r.Status != api.StatusPending || w.tool.count() != 0 {
		t.Fatalf("reading made the request %s", r.Status)
	}
	// The link that was opened so often is still good: opening uses nothing up (WEB-02).
	w.signInWith(link)
}

func (w *world) signInWith(link string) {
	w.t.Helper()
	resp := w.raw("POST", "/signin", url.Values{"secret": {link[strings.LastIndex(link, "/")+1:]}}.Encode(),
		"Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "same-origin")
	if resp.StatusCode != http.StatusSeeOther || len(resp.Cookies()) == 0 {
		w.t.Fatalf("HTTP %d", resp.StatusCode)
	}
}

// The table itself: what changes something is a POST or a DELETE, and what is
// not on it does not exist.
func TestRouteTable(t *testing.T) {
	w := newWorld(t)
	seen := map[string]bool{}
	for _, rt := range w.web.Routes() {
		if seen[rt.Method+rt.Pattern] {
			t.Errorf("%s %s twice", rt.Method, rt.Pattern)
		}
		seen[rt.Method+rt.Pattern] = true
		switch rt.Method {
		case http.MethodGet:
			if rt.Records != "" {
				t.Errorf("GET %s writes %s", rt.Pattern, rt.Records)
			}
		case http.MethodPost, http.MethodDelete:
		default:
			t.Errorf("%s %s", rt.Method, rt.Pattern)
		}
		if rt.Plane == "nobody" {
			t.Errorf("%s %s is for nobody", rt.Method, rt.Pattern)
		}
	}
	// AUD-11: what the desk does not record, because it never hears of it.
	records := map[string]string{}
	for _, rt := range w.web.Routes() {
		if rt.Records != "" {
			records[rt.Method+" "+rt.Pattern] = rt.Records
		}
	}
	if want := map[string]string{
		"POST /signin": "auth.signed_in auth.failed key.revoked", "POST /signout": "auth.signed_out", "POST /v1/keys": "key.added",
		"DELETE /v1/keys/{id}": "key.revoked", "POST /v1/audit/export": "ledger.exported",
	}; !maps.Equal(records, want) {
		t.Errorf("got %v, want %v", records, want)
	}
	for _, path := range []string{"/v1", "/v1/requests/", "/debug/pprof/", "/static/../openapi.go", "/metrics/x", "/v1/calls/a/b/c"} {
		if resp := w.raw("GET", path, "", bearer(w.keys["ana"])...); resp.StatusCode != http.StatusNotFound {
			t.Errorf("GET %s is HTTP %d", path, resp.StatusCode)
		}
	}
	resp := w.raw("PUT", "/v1/calls", "{}", bearer(w.keys["bot"])...)
	if p := problem(t, resp); p.Code != api.MethodNotAllowed || resp.Header.Get("Allow") != "POST" {
		t.Errorf("PUT: %+v, Allow %q", p, resp.Header.Get("Allow"))
	}
}

// WEB-03: on every route that changes something, a cookie alone is not enough:
// the browser must say that the request comes from this site.
func TestCrossSiteRequestsAreRefused(t *testing.T) {
	w := newWorld(t)
	held := w.hold("fs", "write_file", `{"path":"a"}`)
	s := w.signIn("ana")
	before, err := w.store.Head(t.Context())
	must(t, err)
	attacks := map[string][]string{
		"no header at all":      nil,
		"cross-site":            {"Sec-Fetch-Site", "cross-site"},
		"same-site":             {"Sec-Fetch-Site", "same-site"},
		"typed address":         {"Sec-Fetch-Site", "none"},
		"foreign origin":        {"Origin", "http://evil.example"},
		"null origin":           {"Origin", "null"},
		"origin with a prefix":  {"Origin", w.base + ".evil.example"},
		"origin, other scheme":  {"Origin", strings.Replace(w.base, "http:", "https:", 1)},
		"origin with user info": {"Origin", strings.Replace(w.base, "://", "://x@", 1) + ".evil.example"},
		"own origin, but cross": {"Origin", w.base, "Sec-Fetch-Site", "cross-site"},
	}
	for _, rt := range w.web.Routes() {
		if rt.Method == http.MethodGet || rt.Plane == "agents" {
			continue
		}
		kind, body := "application/json", "{}"
		if rt.Plane == "pages" || rt.Plane == "public" {
			kind, body = "application/x-www-form-urlencoded", "form="+s.form
		}
		for name, h := range attacks {
			resp := w.raw(rt.Method, address(rt.Pattern, held.ApprovalID), body, s.header(append(h, "Content-Type", kind)...)...)
			if resp.StatusCode != http.StatusForbidden {
				t.Errorf("%s %s, %s: HTTP %d", rt.Method, rt.Pattern, name, resp.StatusCode)
			}
		}
	}
	// A bearer credential does not make a page of another site welcome.
	for _, key := range []string{"bot", "ana"} {
		path, body := "/v1/calls", `{"server":"fs","tool":"read_x"}`
		if key == "ana" {
			path, body = "/v1/pause", "{}"
		}
		for _, h := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Origin", "http://evil.example"}} {
			resp := w.raw("POST", path, body, append(append(bearer(w.keys[key]), "Content-Type", "application/json"), h...)...)
			if p := problem(t, resp); p.Code != api.CrossOrigin {
				t.Errorf("%s with %v: %+v", path, h, p)
			}
		}
	}
	after, err := w.store.Head(t.Context())
	must(t, err)
	if after.Size != before.Size {
		t.Errorf("%d entries were written", after.Size-before.Size)
	}
}

// WEB-03: a form that is not from a page of the session is refused, and so is one
// with fields that nobody asked for.
func TestFormsCarryTheirSession(t *testing.T) {
	w := newWorld(t)
	held := w.hold("fs", "write_file", `{"path":"a"}`)
	ana, raj := w.signIn("ana"), w.signIn("raj")
	r, err := w.ana.Request(t.Context(), held.ApprovalID)
	must(t, err)
	path := "/r/" + held.ApprovalID + "/approve"
	for name, fields := range map[string][]string{
		"another session's": {"form", raj.form}, "empty": {"form", ""}, "unknown field": {"status", "approved"}, "method": {"_method", "DELETE"},
	} {
		if resp := ana.post(path, append(fields, "digest", r.Digest)...); resp.StatusCode/100 != 4 {
			t.Errorf("%s: HTTP %d", name, resp.StatusCode)
		}
	}
	twice := "form=" + ana.form + "&digest=" + url.QueryEscape(r.Digest) + "&digest=x"
	resp := w.raw("POST", path, twice, ana.header("Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "same-origin")...)
	if resp.StatusCode != http.StatusBadRequest {
		t.Errorf("a field twice: HTTP %d", resp.StatusCode)
	}
	if resp := ana.post(path, "digest", r.Digest); resp.StatusCode != http.StatusSeeOther {
		t.Errorf("the true form: HTTP %d", resp.StatusCode)
	}
}

// MCP-07: a name that was rebound to this address is not served, whatever it asks.
func TestHosts(t *testing.T) {
	w := newWorld(t, func(c *web.Config) { c.AllowedHosts = []string{"Gate.Example:8443"} })
	port := w.base[strings.LastIndex(w.base, ":"):]
	for host, good := range map[string]bool{
		strings.TrimPrefix(w.base, "http://"): true, "gate.example:8443": true, "GATE.EXAMPLE:8443": true,
		"evil.example": false, "evil.example" + port: false, "127.0.0.1.nip.io" + port: false, "127.0.0.1": false, "localhost" + port: false, "gate.example": false, "127.0.0.1" + port + ".evil.example": false,
	} {
		for _, path := range []string{"/inbox", "/v1/requests", "/signin", "/metrics", "/openapi.json", "/nothing"} {
			resp := w.raw("GET", path, "", append(bearer(w.keys["ana"]), "Host", host)...)
			if got := resp.StatusCode != http.StatusMisdirectedRequest; got != good {
				t.Errorf("Host %s, %s: HTTP %d", host, path, resp.StatusCode)
			}
		}
	}
	if resp := w.raw("GET", "/healthz", "", "Host", "10.0.0.7"); resp.StatusCode != http.StatusOK {
		t.Errorf("a probe by address: HTTP %d", resp.StatusCode)
	}
	if got := rawLine(t, w, "GET http://evil.example/v1/requests HTTP/1.1\r\nHost: "+strings.TrimPrefix(w.base, "http://")+"\r\nConnection: close\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 421") {
		t.Errorf("absolute form: %s", got)
	}
}

// rawLine speaks to the server without a client that would tidy up.
func rawLine(t *testing.T, w *world, request string) string {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(w.base, "http://"))
	must(t, err)
	defer c.Close()
	_, err = io.WriteString(c, request)
	must(t, err)
	b, err := io.ReadAll(c)
	must(t, err)
	line, _, _ := strings.Cut(string(b), "\r\n")
	return line
}

// WEB-04, WEB-05, WEB-10: every answer, good or bad, says how it may be used.
func TestHeaders(t *testing.T) {
	w := newWorld(t)
	s := w.signIn("ana")
	for _, rt := range w.web.Routes() {
		if rt.Pattern == "/v1/events" {
			continue
		}
		resp := w.raw(rt.Method, address(rt.Pattern, "0"), "", s.header()...)
		h := resp.Header
		csp := h.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"} {
			if !strings.Contains(csp, want) {
				t.Errorf("%s %s: policy %q", rt.Method, rt.Pattern, csp)
			}
		}
		if strings.Contains(csp, "unsafe") || strings.Contains(csp, "script-src") || h.Get("X-Frame-Options") != "DENY" ||
			h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "same-origin" {
			t.Errorf("%s %s: %v", rt.Method, rt.Pattern, h)
		}
		if h.Get("Cache-Control") != "no-store" {
			t.Errorf("%s %s: Cache-Control %q", rt.Method, rt.Pattern, h.Get("Cache-Control"))
		}
		if h.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s %s lets other sites read", rt.Method, rt.Pattern)
		}
	}
}

// WEB-04, DISP-05: whatever an agent writes, no page has a script, a handler, an
// inline style, or an address that the agent chose.
func TestPagesHoldNoMarkupOfAgents(t *testing.T) {
	w := newWorld(t)
	evil := `<img src=x onerror=alert(1)><script>alert(1)</script><style>@import 'x'</style><a href="javascript:alert(1)">Approve</a>{{x}}"><svg onload=x>`
	c, err := w.bot.Call(t.Context(), api.CallRequest{
		Server: "fs", Tool: "write_" + evil, Args: []byte(fmt.Sprintf(`{%q:%q,"path":%q}`, evil, evil, evil)), Reason: evil, Run: evil, Session: evil, Device: evil[:100],
	})
	must(t, err)
	s := w.signIn("ana")
	r, err := w.ana.Request(t.Context(), c.ID)
	must(t, err)
	pages := map[string]string{"request": s.get("/r/" + c.ID), "inbox": s.get("/inbox"), "missing": s.get("/r/" + url.PathEscape(evil))}
	resp := s.post("/r/"+c.ApprovalID+"/deny", "digest", r.Digest, "reason", evil)
	if resp.StatusCode != http.StatusSeeOther {
		t.Fatal(resp.StatusCode)
	}
	pages["denied"] = s.get("/r/" + c.ApprovalID)
	for name, page := range pages {
		doc, err := html.Parse(strings.NewReader(page))
		must(t, err)
		for n := range doc.Descendants() {
			if n.Type != html.ElementNode {
				continue
			}
			if n.Data == "script" || n.Data == "style" || n.Data == "img" || n.Data == "iframe" || n.Data == "object" || n.Data == "base" {
				t.Errorf("%s has an element %s", name, n.Data)
			}
			for _, a := range n.Attr {
				outside := (a.Key == "href" || a.Key == "src" || a.Key == "action") && !strings.HasPrefix(a.Val, "/") && !strings.HasPrefix(a.Val, "#")
				if strings.HasPrefix(a.Key, "on") || a.Key == "style" || outside {
					t.Errorf("%s: <%s %s=%q>", name, n.Data, a.Key, a.Val)
				}
			}
		}
	}
}

// API-04 and the parser: what is not exactly the body that was asked for is
// refused with its place, before anything happens.
func TestBodies(t *testing.T) {
	w := newWorld(t, func(c *web.Config) { c.MaxBody = 4096 })
	held := w.hold("fs", "write_file", `{"path":"a"}`)
	r, err := w.ana.Request(t.Context(), held.ApprovalID)
	must(t, err)
	digest := `"digest":"` + r.Digest + `"`
	path := "/v1/requests/" + held.ApprovalID + "/decide"
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, err = z.Write([]byte(`{"decision":"approve",` + digest + `}`))
	must(t, err)
	must(t, z.Close())
	long := `{"decision":"approve",` + digest + `,"reason":"` + strings.Repeat("x", 5000) + `"}`
	for name, c := range map[string]struct {
		body   string
		header []string
		status int
		says   string
	}{
		"duplicate":       {body: `{"decision":"deny","decision":"approve",` + digest + `}`, status: 400, says: "twice"},
		"escaped twin":    {body: `{"decision":"deny","decisio\u006e":"approve",` + digest + `}`, status: 400, says: "twice"},
		"case variant":    {body: `{"decision":"deny","Decision":"approve",` + digest + `}`, status: 400, says: `did you mean "decision"?`},
		"fold":            {body: `{"deci\u017fion":"approve","decision":"deny",` + digest + `}`, status: 400, says: "unknown member"},
		"mass assignment": {body: `{"decision":"approve",` + digest + `,"status":"approved","expiresAt":"2099"}`, status: 400, says: "unknown member"},
		"misspelt":        {body: `{"decision":"approve",` + digest + `,"reson":"x"}`, status: 400, says: `did you mean "reason"?`},
		"missing":         {body: `{"decision":"approve"}`, status: 400, says: "digest"},
		"trailing":        {body: `{"decision":"approve",` + digest + `}{}`, status: 400, says: "after the document"},
		"no object":       {body: `[]`, status: 400, says: "wrong type"},
		"empty":           {body: ``, status: 400, says: "not JSON"},
		"bad utf-8":       {body: "{\"decision\":\"approve\"," + digest + ",\"reason\":\"\xff\"}", status: 400, says: "UTF-8"},
		"not a decision":  {body: `{"decision":"maybe",` + digest + `}`, status: 400},
		"not a digest":    {body: `{"decision":"approve","digest":"abc"}`, status: 400},
		"text/plain":      {body: `{"decision":"approve",` + digest + `}`, header: []string{"Content-Type", "text/plain"}, status: 415},
		"form":            {body: `decision=approve`, header: []string{"Content-Type", "application/x-www-form-urlencoded"}, status: 415},
		"no type":         {body: `{"decision":"approve",` + digest + `}`, header: []string{"Content-Type", ""}, status: 415},
		"latin-1":         {body: `{"decision":"approve",` + digest + `}`, header: []string{"Content-Type", "application/json; charset=latin1"}, status: 415},
		"compressed":      {body: zipped.String(), header: []string{"Content-Type", "application/json", "Content-Encoding", "gzip"}, status: 415},
		"too long":        {body: long, status: 413},
		"window":          {body: `{"decision":"approve",` + digest + `,"scope":{"kind":"window","for":"15m"}}`, status: 400, says: "one call at a time"},
		"session":         {body: `{"decision":"approve",` + digest + `,"scope":{"kind":"session"}}`, status: 400, says: "one call at a time"},
		"passkey":         {body: `{"decision":"approve",` + digest + `,"confirm":{"passkey":{}}}`, status: 400, says: "passkey"},
	} {
		h := c.header
		if h == nil {
			h = []string{"Content-Type", "application/json"}
		}
		resp := w.raw("POST", path, c.body, append(bearer(w.keys["ana"]), h...)...)
		p := problem(t, resp)
		if resp.StatusCode != c.status || !strings.Contains(strings.ToLower(p.Detail), strings.ToLower(c.says)) {
			t.Errorf("%s: HTTP %d %s: %s", name, resp.StatusCode, p.Code, p.Detail)
		}
	}
	after, err := w.ana.Request(t.Context(), held.ApprovalID)
	must(t, err)
	if after.Status != api.StatusPending || len(after.Decisions) != 0 {
		t.Fatalf("a bad body decided: %+v", after.Decisions)
	}
}

// A body without a length is cut off at the limit too, and none is read that is
// announced as too long.
func TestChunkedBodyIsBounded(t *testing.T) {
	w := newWorld(t, func(c *web.Config) { c.MaxBody = 4096 })
	pr, pw := io.Pipe()
	go func() {
		for {
			if _, err := pw.Write(bytes.Repeat([]byte(" "), 1024)); err != nil {
				return
			}
		}
	}()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.base+"/v1/calls", pr)
	must(t, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+w.keys["bot"])
	resp, err := http.DefaultClient.Do(r)
	must(t, err)
	defer resp.Body.Close()
	pr.Close()
	if p := problem(t, resp); p.Code != api.TooLarge {
		t.Fatalf("got %+v", p)
	}
	line := rawLine(t, w, "POST /v1/calls HTTP/1.1\r\nHost: "+strings.TrimPrefix(w.base, "http://")+"\r\nAuthorization: Bearer "+w.keys["bot"]+
		"\r\nContent-Type: application/json\r\nContent-Length: 999999999\r\nConnection: close\r\n\r\n")
	if !strings.HasPrefix(line, "HTTP/1.1 413") {
		t.Fatalf("an announced giant: %s", line)
	}
}

// WEB-11: a path that hides a slash, or an id that is none, finds nothing.
func TestIds(t *testing.T) {
	w := newWorld(t)
	held := w.hold("fs", "write_file", `{"path":"a"}`)
	for _, id := range []string{
		"1%2F..%2F2", "..%2f" + held.ApprovalID, held.ApprovalID + "%00", strings.ToUpper(held.ApprovalID), strings.ReplaceAll(held.ApprovalID, "-", ""),
		"{" + held.ApprovalID + "}", held.ApprovalID + "%0a", "%E2%80%AE", "U" + held.ID, "null", "0", "-1", "00000000-0000-4000-8000-000000000000",
	} {
		for _, verb := range []string{"", "/decide", "/extend"} {
			method, body := "GET", ""
			if verb != "" {
				method, body = "POST", "{}"
			}
			if verb == "/decide" {
				body = `{"decision":"approve","digest":"sha256:` + strings.Repeat("ab", 32) + `"}`
			}
			resp := w.raw(method, "/v1/requests/"+id+verb, body, append(bearer(w.keys["ana"]), "Content-Type", "application/json")...)
			if resp.StatusCode != http.StatusNotFound {
				t.Errorf("%s %s%s: HTTP %d", method, id, verb, resp.StatusCode)
			}
		}
	}
	// What people misread is read as what it is.
	if _, err := w.ana.Request(t.Context(), strings.ToLower(held.ID)); err != nil {
		t.Error(err)
	}
}
