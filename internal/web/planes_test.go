package web_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ayegate/ayegate/api"
	"github.com/ayegate/ayegate/internal/identity"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/web"
	"github.com/ayegate/ayegate/internal/web/credential"
)

// API-01: over the whole table, a good credential of the other class is refused
// as that, whatever its holder may do elsewhere, and it is on the record.
func TestCredentialsDoNotCrossPlanes(t *testing.T) {
	w := newWorld(t)
	held := w.hold("fs", "write_file", `{"path":"a"}`)
	s := w.signIn("ana")
	for _, rt := range w.web.Routes() {
		var wrong [][]string
		switch rt.Plane {
		case "agents":
			wrong = [][]string{bearer(w.keys["ana"]), s.header("Sec-Fetch-Site", "same-origin")}
		case "humans", "pages":
			wrong = [][]string{bearer(w.keys["bot"])}
		}
		for _, h := range wrong {
			w.clock.advance(time.Minute) // each has its own share of the record
			n := len(w.kinds(ledger.AuthFailed))
			body := ""
			if rt.Method == http.MethodPost {
				body = "{}"
				h = append(h, "Content-Type", "application/json")
			}
			resp := w.raw(rt.Method, address(rt.Pattern, held.ApprovalID), body, h...)
			if resp.StatusCode != http.StatusForbidden {
				t.Errorf("%s %s: HTTP %d", rt.Method, rt.Pattern, resp.StatusCode)
				continue
			}
			if rt.Plane != "pages" && problem(t, resp).Code != api.WrongCredentialClass {
				t.Errorf("%s %s has another code", rt.Method, rt.Pattern)
			}
			if failed := w.kinds(ledger.AuthFailed); len(failed) != n+1 {
				t.Errorf("%s %s: %d entries", rt.Method, rt.Pattern, len(failed)-n)
			}
		}
	}
	r, err := w.ana.Request(t.Context(), held.ApprovalID)
	must(t, err)
	if r.Status != api.StatusPending {
		t.Fatalf("the request is %s", r.Status)
	}
}

// AUD-11, API-09: refused credentials are on the record, without their secret,
// and a flood of them is turned away while a good one from the same place passes.
func TestRefusedCredentials(t *testing.T) {
	w := newWorld(t)
	key, text, err := w.creds.Add(t.Context(), credential.System(), credential.Spec{Class: credential.Human, For: "raj"})
	must(t, err)
	must(t, w.creds.Revoke(t.Context(), credential.System(), key.ID, ""))
	if resp := w.raw("GET", "/v1/requests", "", bearer(text)...); resp.StatusCode != http.StatusUnauthorized || resp.Header.Get("WWW-Authenticate") == "" {
		t.Fatalf("HTTP %d", resp.StatusCode)
	}
	failed := w.kinds(ledger.AuthFailed)
	if len(failed) != 1 || failed[0].Subject != key.ID {
		t.Fatalf("got %+v", failed)
	}
	for _, h := range [][]string{nil, {"Authorization", "Basic YTpi"}, {"Authorization", "Bearer"}, {"Authorization", "Bearer a", "Authorization", "Bearer b"}} {
		if resp := w.raw("GET", "/v1/requests", "", h...); resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("%v: HTTP %d", h, resp.StatusCode)
		}
	}
	limited := 0
	for range 100 {
		if w.raw("GET", "/v1/requests", "", bearer("aye_human_aaaaaaaa_"+strings.Repeat("a", 52))...).StatusCode == http.StatusTooManyRequests {
			limited++
		}
	}
	if n := len(w.kinds(ledger.AuthFailed)); n != 10 || limited != 91 {
		t.Fatalf("%d entries, %d turned away", n, limited)
	}
	if _, err := w.ana.Requests(t.Context(), api.RequestFilter{}); err != nil {
		t.Fatalf("a good credential in a flood: %v", err)
	}
	w.clock.advance(time.Minute)
	w.raw("GET", "/v1/requests", "", bearer(text)...)
	if n := len(w.kinds(ledger.AuthFailed)); n != 11 {
		t.Fatalf("%d entries a minute later", n)
	}
}

// API-06: who is taken out of the configuration is refused at once, with a token,
// with a session, on a page and on a stream.
func TestDisabledPerson(t *testing.T) {
	w := newWorld(t)
	held := w.hold("fs", "write_file", `{"path":"a"}`)
	s := w.signIn("ana")
	r, err := w.ana.Request(t.Context(), held.ApprovalID)
	must(t, err)
	dir := directory()
	dir.People = dir.People[1:]
	w.creds.SetDirectory(dir)
	_, err = w.ana.Decide(t.Context(), held.ApprovalID, api.DecideRequest{Decision: api.Approve, Digest: r.Digest})
	if !errors.Is(err, api.Unauthenticated) {
		t.Errorf("by token: %v", err)
	}
	if resp := s.post("/r/"+held.ApprovalID+"/approve", "digest", r.Digest); resp.StatusCode != http.StatusSeeOther || resp.Header.Get("Location") != "/signin" {
		t.Errorf("by session: HTTP %d to %s", resp.StatusCode, resp.Header.Get("Location"))
	}
	if r, err = w.raj.Request(t.Context(), held.ApprovalID); err != nil || r.Status != api.StatusPending {
		t.Fatalf("%v %v", r, err)
	}
}

// API-02, API-07: people decide as who they are. The owner of an agent does not
// approve it, one person is one approval however they come, and nothing in a body
// says otherwise.
func TestWhoDecides(t *testing.T) {
	w := newWorld(t)
	push := w.hold("git", "push", `{"branch":"main"}`)
	r, err := w.ana.Request(t.Context(), push.ID)
	must(t, err)
	_, err = w.ana.Decide(t.Context(), push.ID, api.DecideRequest{Decision: api.Approve, Digest: r.Digest})
	if !errors.Is(err, api.OwnAgent) {
		t.Errorf("the owner approved: %v", err)
	}
	resp := w.raw("POST", "/v1/requests/"+push.ApprovalID+"/decide", `{"decision":"approve","digest":"`+r.Digest+`","by":"user:raj"}`,
		append(bearer(w.keys["ana"]), "Content-Type", "application/json", "X-User", "raj")...)
	if resp.StatusCode != http.StatusBadRequest {
		t.Errorf("a body that names somebody: HTTP %d", resp.StatusCode)
	}

	refund := w.hold("payments", "refund", `{"amount_usd":900,"charge":"c1"}`)
	first := w.say(w.ana, refund.ID, api.Approve, "")
	if first.Status != api.StatusPending || first.ApprovalsNeeded != 1 {
		t.Fatalf("after one approval: %s, %d needed", first.Status, first.ApprovalsNeeded)
	}
	s := w.signIn("ana")
	s.post("/r/"+refund.ApprovalID+"/approve", "digest", first.Digest, "typed", first.Confirm.Typed, "read", "yes")
	again, err := w.ana.Request(t.Context(), refund.ID)
	must(t, err)
	if again.Status != api.StatusPending || len(again.Decisions) != 1 {
		t.Fatalf("the same person twice: %s, %d decisions", again.Status, len(again.Decisions))
	}
	eve := w.client(credential.Human, "eve")
	if _, err := eve.Decide(t.Context(), refund.ID, api.DecideRequest{Decision: api.Approve, Digest: first.Digest, Confirm: &api.Confirm{Typed: first.Confirm.Typed}}); !errors.Is(err, api.NotEntitled) {
		t.Errorf("somebody else: %v", err)
	}
	if _, err := w.raj.Decide(t.Context(), refund.ID, api.DecideRequest{Decision: api.Approve, Digest: first.Digest, Confirm: &api.Confirm{Typed: "refund 90"}}); !errors.Is(err, api.ConfirmationRequired) {
		t.Errorf("mistyped: %v", err)
	}
	if done := w.say(w.raj, refund.ID, api.Approve, ""); done.Status != api.StatusApproved {
		t.Errorf("after two people: %s", done.Status)
	}
}

// WEB-06: what is decided is what was seen. A digest of another version is
// refused with the version of now.
func TestStaleDecision(t *testing.T) {
	w := newWorld(t)
	one, two := w.hold("fs", "write_file", `{"path":"a"}`), w.hold("fs", "write_file", `{"path":"b"}`)
	seen, err := w.ana.Request(t.Context(), one.ID)
	must(t, err)
	_, err = w.ana.Decide(t.Context(), two.ID, api.DecideRequest{Decision: api.Approve, Digest: seen.Digest})
	var p *api.Problem
	if !errors.As(err, &p) || p.Code != api.Stale || p.Status != http.StatusConflict || p.Request == nil || p.Request.ApprovalID != two.ApprovalID {
		t.Fatalf("got %v", err)
	}
}

// 100 people who click at once are one transition, and every one of them hears
// how it ended.
func TestManyApproveAtOnce(t *testing.T) {
	w := newWorld(t)
	held := w.hold("fs", "write_file", `{"path":"a"}`)
	r, err := w.ana.Request(t.Context(), held.ID)
	must(t, err)
	var group sync.WaitGroup
	var mu sync.Mutex
	good, otherwise := 0, 0
	for i := range 100 {
		group.Go(func() {
			by := []*api.Client{w.ana, w.raj}[i%2]
			out, err := by.Decide(t.Context(), held.ApprovalID, api.DecideRequest{Decision: api.Approve, Digest: r.Digest})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil && out.Status == api.StatusApproved:
				good++
			case errors.Is(err, api.DecidedOtherwise):
				otherwise++
			default:
				t.Errorf("got %v", err)
			}
		})
	}
	group.Wait()
	if n := len(w.kinds(ledger.RequestDecided)); n != 1 || good+otherwise != 100 || good < 50 {
		t.Fatalf("%d transitions, %d heard yes, %d heard that it was decided", n, good, otherwise)
	}
}

// The same for the effect: many askers of one approved call run it once.
func TestManyAwaitOneRun(t *testing.T) {
	w := newWorld(t)
	held := w.hold("fs", "write_file", `{"path":"a"}`)
	w.say(w.ana, held.ID, api.Approve, "")
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() {
			c, err := w.bot.Await(t.Context(), held.ApprovalID, api.Duration(5*time.Second))
			if err != nil || c.Status != api.StatusExecuted {
				t.Errorf("%+v %v", c, err)
			}
		})
	}
	group.Wait()
	if w.tool.count() != 1 {
		t.Fatalf("it ran %d times", w.tool.count())
	}
}

// TOK-03, API-03: another agent's request is an absent one, to the byte.
func TestForeignIsAbsent(t *testing.T) {
	w := newWorld(t)
	held := w.askMail(`{"to":"x"}`)
	body := func(id, verb, in string) string {
		method := "POST"
		if verb == "" {
			method = "GET"
		}
		resp := w.raw(method, "/v1/calls/"+id+verb, in, append(bearer(w.keys["other"]), "Content-Type", "application/json")...)
		var p map[string]any
		must(t, json.NewDecoder(resp.Body).Decode(&p))
		b, _ := json.Marshal(p)
		return resp.Status + string(b)
	}
	for verb, in := range map[string]string{
		"": "", "/await": "{}", "/claim": "{}", "/cancel": "{}", "/finish": `{"outcome":"succeeded"}`,
		"/redeem": `{"token":"x","toolCallHash":"` + held.ToolCallHash + `"}`,
	} {
		foreign := body(held.ApprovalID, verb, in)
		absent := body("00000000-0000-4000-8000-000000000000", verb, in)
		if foreign != absent || !strings.HasPrefix(foreign, "404") {
			t.Errorf("%s:\nforeign %s\nabsent  %s", verb, foreign, absent)
		}
		if code := body(held.ID, verb, in); code != absent {
			t.Errorf("%s by short code: %s", verb, code)
		}
	}
}

// The gate for /mcp that the wiring mounts elsewhere.
func TestAgentOfRequest(t *testing.T) {
	w := newWorld(t)
	s := w.signIn("ana")
	check := func(header ...string) (identity.Agent, error) {
		r, err := http.NewRequest(http.MethodPost, w.base+"/mcp", nil)
		must(t, err)
		for i := 0; i < len(header); i += 2 {
			r.Header.Add(header[i], header[i+1])
		}
		r.RemoteAddr = "127.0.0.1:5"
		return w.web.Agent(r)
	}
	a, err := check(bearer(w.keys["bot"])...)
	if err != nil || a.ID != "bot" || a.Owner != "user:ana" {
		t.Fatalf("%+v %v", a, err)
	}
	for name, h := range map[string][]string{"nothing": nil, "a person": bearer(w.keys["ana"]), "a session": s.header(), "rubbish": bearer("x")} {
		if a, err := check(h...); err == nil || !a.IsZero() {
			t.Errorf("%s is %+v", name, a)
		}
	}
}

// WEB-07, WEB-09: the cookie, its ends, and where signing in leads.
func TestSignInAndOut(t *testing.T) {
	w := newWorld(t)
	s := w.signIn("ana")
	c := s.cookie
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" || c.MaxAge != 12*3600 || c.Secure || !strings.HasPrefix(c.Name, "aye_session_") {
		t.Errorf("cookie %+v", c)
	}
	secure := newWorld(t, func(c *web.Config) {
		c.AllowedHosts, c.BaseURL = []string{strings.TrimPrefix(c.BaseURL, "http://")}, "https://gate.example"
	})
	if c := secure.signIn("ana").cookie; c.Name != "__Host-aye_session" || !c.Secure || c.Path != "/" || c.Domain != "" {
		t.Errorf("cookie with TLS %+v", c)
	}
	// A planted second cookie of the name is as good as none.
	resp := w.raw("GET", "/inbox", "", "Cookie", c.Name+"="+c.Value+"; "+c.Name+"=aye_session_x")
	if resp.StatusCode != http.StatusSeeOther {
		t.Errorf("two cookies: HTTP %d", resp.StatusCode)
	}
	for next, want := range map[string]string{
		"/r/K7Q4": "/r/K7Q4", "/inbox?cursor=x": "/inbox?cursor=x", "": "/inbox", "//evil.example": "/inbox", "///evil.example": "/inbox", `/\evil.example`: "/inbox",
		"https://evil.example": "/inbox", "javascript:alert(1)": "/inbox", "/%2F/evil": "/inbox", "\\\\evil": "/inbox", "/\t/evil.example": "/inbox", "http:/r/x": "/inbox",
	} {
		link, err := w.web.NewSignInLink(t.Context(), "ana")
		must(t, err)
		resp := w.raw("POST", "/signin", url.Values{"secret": {link[strings.LastIndex(link, "/")+1:]}, "next": {next}}.Encode(),
			"Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "same-origin")
		if got := resp.Header.Get("Location"); got != want {
			t.Errorf("next %q leads to %q, want %q", next, got, want)
		}
	}
	resp = w.raw("GET", "/r/K7Q4", "")
	if got := resp.Header.Get("Location"); got != "/signin?next=%2Fr%2FK7Q4" {
		t.Errorf("a page without a session leads to %q", got)
	}
	if page := (&session{world: w, cookie: &http.Cookie{Name: "x"}}).get("/signin?next=//evil.example"); strings.Contains(page, "evil") {
		t.Error("the sign-in page repeats a foreign address")
	}
	if resp := s.post("/signout"); resp.StatusCode != http.StatusSeeOther {
		t.Fatalf("signing out: HTTP %d", resp.StatusCode)
	}
	if resp := w.raw("GET", "/inbox", "", s.header()...); resp.StatusCode != http.StatusSeeOther {
		t.Errorf("after signing out: HTTP %d", resp.StatusCode)
	}
	if n := len(w.kinds(ledger.AuthSignedOut)); n != 1 {
		t.Errorf("%d entries of signing out", n)
	}
	bad := w.raw("POST", "/signin", "secret=aye_signin_aaaaaaaa_"+strings.Repeat("a", 52), "Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "same-origin")
	if bad.StatusCode != http.StatusUnauthorized || len(bad.Cookies()) != 0 {
		t.Errorf("a wrong secret: HTTP %d, %d cookies", bad.StatusCode, len(bad.Cookies()))
	}
	byKey := w.raw("POST", "/signin", "secret="+w.keys["bot"], "Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "same-origin")
	if byKey.StatusCode != http.StatusUnauthorized || len(byKey.Cookies()) != 0 {
		t.Errorf("an agent's key: HTTP %d", byKey.StatusCode)
	}
}
