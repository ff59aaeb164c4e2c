package web_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/ayegate/ayegate/api"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/store"
	"github.com/ayegate/ayegate/internal/store/memory"
	"github.com/ayegate/ayegate/internal/store/sqlite"
	"github.com/ayegate/ayegate/internal/web"
)

// The list: filters, order, and a cursor that stays right while requests come
// and go.
func TestList(t *testing.T) {
	w := newWorld(t)
	var want []string
	for i := range 7 {
		want = append(want, w.hold("fs", "write_file", fmt.Sprintf(`{"path":"%d"}`, i)).ID)
		w.clock.advance(time.Second)
	}
	w.hold("shell", "run", `{"command":"ls"}`)
	other, err := w.other.Call(t.Context(), api.CallRequest{Server: "vcs", Tool: "push"})
	must(t, err)
	page := func(f api.RequestFilter) *api.RequestList {
		l, err := w.ana.Requests(t.Context(), f)
		must(t, err)
		return l
	}
	f := api.RequestFilter{Status: []api.Status{api.StatusPending}, Tool: "fs.write_file", Limit: 3}
	first := page(f)
	w.say(w.ana, want[0], api.Deny, "")            // one that was shown goes
	w.hold("fs", "write_file", `{"path":"later"}`) // one comes
	w.say(w.ana, want[4], api.Deny, "")            // one that was not shown goes
	f.Cursor = first.Cursor
	second := page(f)
	f.Cursor = second.Cursor
	third := page(f)
	got := codes(first) + codes(second) + codes(third)
	expect := strings.Join([]string{want[0], want[1], want[2], want[3], want[5], want[6]}, " ")
	if !strings.HasPrefix(got, expect) || third.Cursor != "" || len(strings.Fields(got)) != 7 {
		t.Errorf("got %s, want %s and the one that came", got, expect)
	}
	for name, c := range map[string]struct {
		f api.RequestFilter
		n int
	}{
		"agent": {api.RequestFilter{Agent: "other"}, 1}, "tier": {api.RequestFilter{Tier: []string{"R3"}, Server: "shell"}, 1},
		"server": {api.RequestFilter{Server: "vcs"}, 1}, "denied": {api.RequestFilter{Status: []api.Status{api.StatusDenied}}, 2},
		"two states": {api.RequestFilter{Status: []api.Status{api.StatusDenied, api.StatusPending}}, 10}, "nothing": {api.RequestFilter{Agent: "nobody"}, 0},
	} {
		if l := page(c.f); len(l.Requests) != c.n || l.Requests == nil {
			t.Errorf("%s: %d requests, want %d", name, len(l.Requests), c.n)
		}
	}
	if newest := page(api.RequestFilter{}); newest.Requests[0].Code == want[0] || newest.Requests[len(newest.Requests)-1].Code != want[0] {
		t.Errorf("without a filter the newest come first: %s", codes(newest))
	}
	_ = other
	for _, q := range []string{
		"status=open", "tier=R9", "tier=r1", "tool=fs", "limit=0", "limit=201", "limit=x", "cursor=x", "colour=red", "agent=a&agent=b",
		"status=pending&cursor=" + page(api.RequestFilter{Limit: 1}).Cursor, "%zz",
	} {
		if p := problem(t, w.raw("GET", "/v1/requests?"+q, "", bearer(w.keys["ana"])...)); p.Code != api.BadRequest {
			t.Errorf("%s: %+v", q, p)
		}
	}
}

func codes(l *api.RequestList) string {
	s := ""
	for _, r := range l.Requests {
		s += r.Code + " "
	}
	return s
}

// The view has every field that the wire names, and the bytes are exact.
func TestViewOfARequest(t *testing.T) {
	w := newWorld(t)
	args := `{"z":9007199254740993,"path":"a<&>\u202e\u2028"}`
	c, err := w.bot.Call(t.Context(), api.CallRequest{Server: "fs", Tool: "write_file", Args: json.RawMessage(args), Reason: "because", Run: "r1"})
	must(t, err)
	resp := w.raw("GET", "/v1/requests/"+c.ID, "", bearer(w.keys["ana"])...)
	var fields map[string]json.RawMessage
	must(t, json.NewDecoder(resp.Body).Decode(&fields))
	for _, name := range strings.Fields(`approvalId code sessionId runId workspaceId agent toolCallCanonical toolCallHash definitionHash digest humanSummary
		summaryVerified riskTier why effects rollback dryRun requestedAt expiresAt serverNow diff suggestedAlternatives status decisions quorum policyTrace
		agentReason approvalsNeeded`) {
		if fields[name] == nil || string(fields[name]) == "null" {
			t.Errorf("%s is missing: %s", name, fields[name])
		}
	}
	r, err := w.ana.Request(t.Context(), c.ID)
	must(t, err)
	if want := `{"args":{"path":"a<&>` + "\u202e\u2028" + `","z":9007199254740993},"server":"fs","tool":"write_file","v":1}`; r.ToolCallCanonical != want {
		t.Errorf("got  %q\nwant %q", r.ToolCallCanonical, want)
	}
	if r.HiddenCharacters != 2 || strings.ContainsRune(r.HumanSummary, 0x202e) || r.AgentReason != "because" || strings.Contains(r.HumanSummary, "because") {
		t.Errorf("%d hidden, summary %q", r.HiddenCharacters, r.HumanSummary)
	}
	if len(r.Effects) != 1 || r.Effects[0].Source != api.FromPolicy || r.Rollback != "git checkout -- the file" || r.Quorum != 1 || r.ApprovalsNeeded != 1 {
		t.Errorf("got %+v", r)
	}
	shell := w.hold("shell", "run", `{"command":"ls"}`)
	if r, err = w.ana.Request(t.Context(), shell.ID); err != nil || r.Rollback != "No undo is known for this action." {
		t.Errorf("rollback %q", r.Rollback)
	}
}

func TestExplain(t *testing.T) {
	w := newWorld(t)
	h, err := w.store.Head(t.Context())
	must(t, err)
	e, err := w.ana.Explain(t.Context(), api.ExplainRequest{Server: "payments", Tool: "refund", Args: json.RawMessage(`{"amount_usd":900,"charge":"c"}`), Agent: "bot"})
	must(t, err)
	if e.Effect != "ask" || e.RiskTier != "R4" || e.Quorum != 2 || e.Confirm.Typed == "" || len(e.PolicyTrace.Steps) == 0 {
		t.Errorf("got %+v", e)
	}
	if e, err = w.ana.Explain(t.Context(), api.ExplainRequest{Server: "fs", Tool: "format"}); err != nil || e.Effect != "deny" {
		t.Errorf("%+v %v", e, err)
	}
	if _, err := w.ana.Explain(t.Context(), api.ExplainRequest{Server: "fs", Tool: "x", Agent: "nobody"}); !errors.Is(err, api.BadRequest) {
		t.Errorf("got %v", err)
	}
	if after, _ := w.store.Head(t.Context()); after.Size != h.Size {
		t.Error("explaining left a trace")
	}
}

// The record can be read, proved and taken out; taking it out is on it.
func TestAudit(t *testing.T) {
	w := newWorld(t)
	for i := range 5 {
		w.hold("fs", "write_file", fmt.Sprintf(`{"path":"%d"}`, i))
	}
	var lines [][]byte
	after := int64(-1)
	for {
		p, err := w.ana.Audit(t.Context(), after, 3)
		must(t, err)
		for _, e := range p.Entries {
			lines = append(lines, e)
		}
		if after = p.Last; after == p.Size-1 {
			break
		}
	}
	i := 0
	for line, err := range w.store.Entries(t.Context(), 0) {
		must(t, err)
		if !bytes.Equal(line, lines[i]) {
			t.Fatalf("entry %d reads\n%s, is\n%s", i, lines[i], line)
		}
		i++
	}
	if i != len(lines) {
		t.Fatalf("%d of %d entries", len(lines), i)
	}

	proof, err := w.ana.Proof(t.Context(), 3)
	must(t, err)
	head, err := ledger.ParseCheckpoint([]byte(proof.Checkpoint), proof.PublicKey)
	must(t, err)
	var path ledger.Proof
	for _, s := range proof.Path {
		h, err := tlog.ParseHash(s)
		must(t, err)
		path = append(path, h)
	}
	must(t, ledger.CheckInclusion(path, head.Head, 3, proof.Entry))
	if _, err := w.ana.Proof(t.Context(), 10_000); !errors.Is(err, api.NotFound) {
		t.Errorf("got %v", err)
	}
	text, err := w.ana.Checkpoint(t.Context())
	must(t, err)
	if _, err := ledger.ParseCheckpoint(text, proof.PublicKey); err != nil {
		t.Error(err)
	}

	var file bytes.Buffer
	must(t, w.raj.Export(t.Context(), &file))
	report, err := ledger.Verify(bytes.NewReader(file.Bytes()), ledger.VerifyOptions{Keys: []string{proof.PublicKey}})
	must(t, err)
	if len(report.Findings) != 0 {
		t.Errorf("findings %+v", report.Findings)
	}
	exported := w.kinds(ledger.LedgerExported)
	if len(exported) != 1 || exported[0].Actor.ID != "user:raj" || !strings.Contains(file.String(), "ledger.exported") {
		t.Errorf("got %+v", exported)
	}

	bare := newWorld(t, func(c *web.Config) { c.Signer = nil })
	if _, err := bare.ana.Checkpoint(t.Context()); !errors.Is(err, api.NotFound) {
		t.Errorf("without a key: %v", err)
	}
	must(t, bare.ana.Export(t.Context(), &file))
}

// deaf is a store that takes no new entries while it is told not to.
type deaf struct {
	store.Store
	now atomic.Bool
}

func (d *deaf) Append(ctx context.Context, es ...ledger.Event) error {
	if d.now.Load() {
		return store.ErrUnavailable
	}
	return d.Store.Append(ctx, es...)
}

// AUD-05: what must be on the record and cannot be does not happen: no export. A
// credential that is refused is refused all the same.
func TestNoRecordNoExport(t *testing.T) {
	c := &clock{}
	s, err := memory.Open(memory.Config{Now: c.now})
	must(t, err)
	d := &deaf{Store: s}
	w := worldOn(t, d, c)
	d.now.Store(true)
	var file bytes.Buffer
	if err := w.ana.Export(t.Context(), &file); !errors.Is(err, api.Unavailable) || file.Len() != 0 {
		t.Errorf("%v, %d bytes left the house", err, file.Len())
	}
	if resp := w.raw("GET", "/v1/requests", "", bearer(w.keys["bot"])...); problem(t, resp).Code != api.WrongCredentialClass {
		t.Errorf("HTTP %d", resp.StatusCode)
	}
}

// People make tokens for themselves and keys for their own agents, and for
// nobody else (API-02).
func TestKeys(t *testing.T) {
	w := newWorld(t)
	mine, err := w.ana.AddKey(t.Context(), api.KeyRequest{Class: "agent", For: "bot", Note: "laptop", ValidFor: api.Duration(time.Hour)})
	must(t, err)
	bot, err := api.NewClient(w.base, mine.Credential, nil)
	must(t, err)
	if _, err := bot.Call(t.Context(), api.CallRequest{Server: "fs", Tool: "read_x"}); err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]api.KeyRequest{
		"somebody else": {Class: "human", For: "ana"}, "somebody else's agent": {Class: "agent", For: "bot"},
	} {
		if _, err := w.raj.AddKey(t.Context(), r); !errors.Is(err, api.Forbidden) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, r := range map[string]api.KeyRequest{"no agent": {Class: "agent", For: "x"}, "no class": {Class: "admin", For: "ana"}, "a link": {Class: "signin", For: "ana"}} {
		if _, err := w.ana.AddKey(t.Context(), r); !errors.Is(err, api.BadRequest) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := w.raj.AddKey(t.Context(), api.KeyRequest{Class: "agent", For: "other"}); err != nil {
		t.Errorf("nobody's agent: %v", err)
	}
	list, err := w.raj.Keys(t.Context())
	must(t, err)
	for _, k := range list.Keys {
		if k.Class == "human" && k.For != "raj" {
			t.Errorf("Raj sees %+v", k)
		}
	}
	var anas api.Key
	own, err := w.ana.Keys(t.Context())
	must(t, err)
	for _, k := range own.Keys {
		if k.Class == "human" {
			anas = k
		}
	}
	if err := w.raj.RevokeKey(t.Context(), anas.ID); !errors.Is(err, api.NotFound) {
		t.Errorf("Raj ended Ana's token: %v", err)
	}
	must(t, w.raj.RevokeKey(t.Context(), mine.Key.ID))
	if _, err := bot.Call(t.Context(), api.CallRequest{Server: "fs", Tool: "read_x"}); !errors.Is(err, api.Unauthenticated) {
		t.Errorf("after the end: %v", err)
	}
	if err := w.raj.RevokeKey(t.Context(), mine.Key.ID); !errors.Is(err, api.NotFound) {
		t.Errorf("twice: %v", err)
	}
	added := w.kinds(ledger.KeyAdded)
	if last := added[len(added)-1]; last.Actor.ID != "user:raj" {
		t.Errorf("made by %+v", last.Actor)
	}
}

// The pages, without any script: the whole way from the inbox to the outcome.
func TestPages(t *testing.T) {
	w := newWorld(t)
	s := w.signIn("ana")
	if page := s.get("/inbox"); !strings.Contains(page, "Nothing is waiting.") {
		t.Error("an empty inbox does not say so")
	}
	held := w.hold("fs", "write_file", `{"path":"docs/a.md"}`)
	refund := w.hold("payments", "refund", `{"amount_usd":900,"charge":"c1"}`)
	inbox := s.get("/inbox")
	for _, want := range []string{held.ID, refund.ID, "docs/a.md", "<title>(2) Inbox - ayegate</title>", "needs 2 people", "Refresh"} {
		if !strings.Contains(inbox, want) {
			t.Errorf("the inbox lacks %q", want)
		}
	}
	page := s.get("/r/" + strings.ToLower(held.ID))
	for _, want := range []string{"docs/a.md", held.ToolCallHash, "Approve once, runs when the agent returns", "git checkout", "Replaces docs/a.md", "Changes files in the workspace"} {
		if !strings.Contains(page, want) {
			t.Errorf("the request's page lacks %q", want)
		}
	}
	if strings.Contains(page, "autofocus") || strings.Contains(page, "http-equiv") {
		t.Error("something on the page acts by itself")
	}
	digest := hiddenField(t, page, "digest")
	at := "/r/" + held.ApprovalID
	stale := s.post(at+"/approve", "digest", "sha256:"+strings.Repeat("ab", 32))
	if body := read(t, stale); stale.StatusCode != http.StatusConflict || !strings.Contains(body, "changed after you looked") {
		t.Errorf("stale: HTTP %d", stale.StatusCode)
	}
	resp := s.post(at+"/approve", "digest", digest)
	if resp.StatusCode != http.StatusSeeOther || resp.Header.Get("Location") != at {
		t.Fatalf("approving: HTTP %d to %s", resp.StatusCode, resp.Header.Get("Location"))
	}
	if page := s.get(at); !strings.Contains(page, "It has not run yet") || !strings.Contains(page, "Ana approved") {
		t.Error("after approving the page does not say that nothing ran yet")
	}
	// A second click finds what was recorded.
	if resp := s.post(at+"/approve", "digest", digest); resp.StatusCode != http.StatusSeeOther {
		t.Errorf("approving twice: HTTP %d", resp.StatusCode)
	}
	_, err := w.bot.Await(t.Context(), held.ApprovalID, 0)
	must(t, err)
	if page := s.get(at); !strings.Contains(page, "Succeeded") || !strings.Contains(page, "9007199254740993") {
		t.Error("the outcome is not on the page")
	}
	if resp := s.post(at+"/deny", "digest", digest, "reason", "too late"); resp.StatusCode != http.StatusConflict {
		t.Errorf("denying what ran: HTTP %d", resp.StatusCode)
	}

	// R4: read to the end, and typed.
	page = s.get("/r/" + refund.ID)
	digest = hiddenField(t, page, "digest")
	at = "/r/" + refund.ApprovalID
	for name, fields := range map[string][]string{
		"not read": {"typed", "refund 900"}, "not typed": {"read", "yes"}, "mistyped": {"read", "yes", "typed", "refund 90"},
	} {
		resp := s.post(at+"/approve", append(fields, "digest", digest)...)
		if body := read(t, resp); resp.StatusCode != http.StatusForbidden || !strings.Contains(body, "role=\"alert\"") {
			t.Errorf("%s: HTTP %d", name, resp.StatusCode)
		}
	}
	if resp := s.post(at+"/approve", "digest", digest, "read", "yes", "typed", "refund 900"); resp.StatusCode != http.StatusSeeOther {
		t.Errorf("HTTP %d", resp.StatusCode)
	}
	if page := s.get(at); !strings.Contains(page, "1 of 2") || !strings.Contains(page, "You have approved this") {
		t.Error("the page does not say that another person is needed")
	}
	if resp := s.post(at + "/extend"); resp.StatusCode != http.StatusSeeOther {
		t.Errorf("extending: HTTP %d", resp.StatusCode)
	}
	resp = s.post(at+"/deny", "digest", digest, "preset", "Wrong target", "reason", "Use\r\ncharge c2.")
	if resp.StatusCode != http.StatusSeeOther {
		t.Errorf("denying: HTTP %d", resp.StatusCode)
	}
	c, err := w.bot.Await(t.Context(), refund.ApprovalID, 0)
	if err == nil || !strings.Contains(c.Text, `Wrong target. Use\ncharge c2.`) {
		t.Errorf("the agent was told %q", c.Text)
	}
	if resp := s.post("/pause"); resp.StatusCode != http.StatusSeeOther || !w.desk.Paused() {
		t.Error("not paused")
	}
	if page := s.get("/inbox"); !strings.Contains(page, "All agents are paused.") {
		t.Error("the pause is not on the page")
	}
	if resp := s.post("/resume"); resp.StatusCode != http.StatusSeeOther || w.desk.Paused() {
		t.Error("not resumed")
	}
	if resp := w.raw("GET", "/r/ZZZZ", "", s.header()...); resp.StatusCode != http.StatusNotFound || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") {
		t.Errorf("a request that is not: HTTP %d", resp.StatusCode)
	}
	for _, path := range []string{page2(s.get("/inbox"), `href="/static/`), "/static/nothing.css"} {
		resp := w.raw("GET", path, "")
		good := !strings.Contains(path, "nothing")
		if (resp.StatusCode == http.StatusOK) != good || good && !strings.Contains(resp.Header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s: HTTP %d", path, resp.StatusCode)
		}
	}
}

func page2(page, mark string) string {
	_, rest, _ := strings.Cut(page, mark)
	name, _, _ := strings.Cut(rest, `"`)
	return "/static/" + name
}

func read(t *testing.T, resp *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(resp.Body)
	must(t, err)
	return string(b)
}

// What machines watch: only from this host, and no word of an agent in it
// (OPS-07).
func TestMachines(t *testing.T) {
	w := newWorld(t)
	go w.web.Run(t.Context())
	held := w.hold("fs", "write_secretname", `{"path":"secretvalue"}`)
	w.say(w.ana, held.ID, api.Approve, "")
	w.hold("shell", "run", `{"command":"x"}`)
	_, err := w.bot.Call(t.Context(), api.CallRequest{Server: "fs", Tool: "format"})
	if err == nil {
		t.Fatal("formatted")
	}
	want := []string{
		`ayegate_pending{tier="R3"} 1`, `ayegate_requests_total{decision="approve",tier="R3",source="person"} 1`,
		`ayegate_requests_total{decision="deny",tier="R3",source="policy"} 1`, `ayegate_decision_seconds_count{tier="R3"} 1`, `ayegate_all_paused 0`,
	}
	var body string
	for range 200 { // the record is followed beside the requests
		body = read(t, w.raw("GET", "/metrics", ""))
		if strings.Contains(body, want[2]) {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	for _, line := range want {
		if !strings.Contains(body, line+"\n") && !strings.Contains(body, strings.ReplaceAll(line, "R3", "R1")+"\n") {
			t.Errorf("no %s in\n%s", line, body)
		}
	}
	if strings.Contains(body, "secret") || strings.Contains(body, "write_") || strings.Contains(body, "bot") {
		t.Error("an agent's words are in the metrics")
	}
	if resp := w.raw("GET", "/metrics", "", "X-Forwarded-For", "203.0.113.9"); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("from elsewhere: HTTP %d", resp.StatusCode)
	}
	for _, path := range []string{"/healthz", "/readyz", "/openapi.json"} {
		if resp := w.raw("GET", path, ""); resp.StatusCode != http.StatusOK {
			t.Errorf("%s: HTTP %d", path, resp.StatusCode)
		}
	}
	must(t, w.store.Close())
	if resp := w.raw("GET", "/readyz", ""); resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("without a store: HTTP %d", resp.StatusCode)
	}
	if resp := w.raw("GET", "/healthz", ""); resp.StatusCode != http.StatusOK {
		t.Errorf("alive without a store: HTTP %d", resp.StatusCode)
	}
	// OPS-02: no store, no decision; and an error says nothing of the inside.
	resp := w.raw("POST", "/v1/calls", `{"server":"fs","tool":"read_x"}`, append(bearer(w.keys["bot"]), "Content-Type", "application/json")...)
	if p := problem(t, resp); p.Code != api.Unavailable || w.tool.count() != 0 {
		t.Errorf("got %+v", p)
	}
}

// The same way on the store that lasts, over a restart of the program: sessions,
// keys and requests are still there.
func TestOnDisk(t *testing.T) {
	path := t.TempDir() + "/a.db"
	open := func(c *clock) *sqlite.Store {
		s, err := sqlite.Open(t.Context(), sqlite.Config{Path: path, Now: c.now})
		must(t, err)
		return s
	}
	c := &clock{}
	w := worldOn(t, open(c), c)
	held := w.hold("fs", "write_file", `{"path":"a"}`)
	w.say(w.ana, held.ID, api.Approve, "")
	bot, ana := w.keys["bot"], w.keys["ana"]
	w.web.Close()
	must(t, w.store.Close())

	again := worldOn(t, open(c), c)
	client := func(key string) *api.Client {
		c, err := api.NewClient(again.base, key, nil)
		must(t, err)
		return c
	}
	got, err := client(bot).Await(t.Context(), held.ApprovalID, 0)
	must(t, err)
	if got.Status != api.StatusExecuted || again.tool.count() != 1 {
		t.Fatalf("got %+v", got)
	}
	r, err := client(ana).Request(t.Context(), held.ApprovalID)
	must(t, err)
	if r.Execution.Result == "" || len(r.Decisions) != 1 {
		t.Fatalf("got %+v", r)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	last := ""
	for e, err := range client(ana).Events(ctx, 0) {
		must(t, err)
		if last = e.Kind; last == "result.picked_up" {
			break
		}
	}
	if last != "result.picked_up" {
		t.Errorf("the last event is %s", last)
	}
}
