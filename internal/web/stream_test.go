package web_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ayegate/ayegate/api"
	"github.com/ayegate/ayegate/internal/desk"
	"github.com/ayegate/ayegate/internal/identity"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/web/credential"
)

// A call that waits answers the moment people decide, and not later than asked.
func TestLongPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := quietWorld(t)
		start := time.Now()
		args := json.RawMessage(`{"path":"a"}`)
		c, err := w.bot.Call(t.Context(), api.CallRequest{Server: "fs", Tool: "write_file", Args: args, Wait: api.Duration(45 * time.Second)})
		must(t, err)
		if c.Status != api.StatusPending || time.Since(start) != 45*time.Second {
			t.Fatalf("%s after %v", c.Status, time.Since(start))
		}
		type answer struct {
			call *api.Call
			err  error
			at   time.Duration
		}
		start = time.Now()
		answers := make(chan answer, 2)
		go func() {
			c, err := w.bot.GetCall(t.Context(), c.ApprovalID, api.Duration(time.Minute))
			answers <- answer{c, err, time.Since(start)}
		}()
		go func() {
			c, err := w.bot.Await(t.Context(), c.ApprovalID, api.Duration(time.Minute))
			answers <- answer{c, err, time.Since(start)}
		}()
		time.Sleep(20 * time.Second)
		synctest.Wait()
		r, err := w.ana.Request(t.Context(), c.ID)
		must(t, err)
		if r.Waiting != 2 {
			t.Errorf("%d wait, want 2", r.Waiting)
		}
		w.say(w.ana, c.ID, api.Approve, "")
		for range 2 {
			a := <-answers
			must(t, a.err)
			if a.at != 20*time.Second || a.call.Status != api.StatusExecuted && a.call.Status != api.StatusApproved && a.call.Status != api.StatusExecuting {
				t.Errorf("%s after %v", a.call.Status, a.at)
			}
		}
		if w.tool.count() != 1 {
			t.Errorf("it ran %d times", w.tool.count())
		}
	})
}

// An agent that hangs up while its call runs does not undo it, and gets the
// result when it comes back.
func TestHangUpWhileRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := quietWorld(t)
		held := w.hold("fs", "write_file", `{"path":"a"}`)
		w.say(w.ana, held.ID, api.Approve, "")
		w.tool.gate = make(chan struct{})
		ctx, hangUp := context.WithCancel(t.Context())
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			if _, err := w.bot.Await(ctx, held.ApprovalID, 0); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
		}()
		synctest.Wait()
		hangUp()
		<-gone
		close(w.tool.gate)
		synctest.Wait()
		c, err := w.bot.Await(t.Context(), held.ApprovalID, 0)
		must(t, err)
		if c.Status != api.StatusExecuted || len(c.Result) == 0 || w.tool.count() != 1 {
			t.Fatalf("%+v, %d runs", c, w.tool.count())
		}
	})
}

// The same over a real connection, where the last bytes of an answer fit into a
// buffer that nobody will read: the result counts as received only when it was.
func TestHangUpOverTheNetwork(t *testing.T) {
	w := newWorld(t)
	held := w.hold("fs", "write_file", `{"path":"a"}`)
	w.say(w.ana, held.ID, api.Approve, "")
	w.tool.gate = make(chan struct{})
	ctx, hangUp := context.WithCancel(t.Context())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = w.bot.Await(ctx, held.ApprovalID, 0)
	}()
	for status := api.StatusApproved; status != api.StatusExecuting; {
		c, err := w.bot.GetCall(t.Context(), held.ID, 0)
		must(t, err)
		status = c.Status
	}
	hangUp()
	<-gone
	w.tool.mu.Lock()
	asker := w.tool.asker
	w.tool.mu.Unlock()
	<-asker.Done() // the server noticed
	close(w.tool.gate)
	for status := api.StatusExecuting; status == api.StatusExecuting; {
		c, err := w.bot.GetCall(t.Context(), held.ID, api.Duration(time.Second))
		must(t, err)
		status = c.Status
	}
	again, err := w.bot.Call(t.Context(), api.CallRequest{Server: "fs", Tool: "write_file", Args: json.RawMessage(`{"path":"a"}`)})
	must(t, err)
	if again.Status != api.StatusExecuted || again.ApprovalID != held.ApprovalID || len(again.Result) == 0 || w.tool.count() != 1 {
		t.Fatalf("%+v, %d runs", again, w.tool.count())
	}
}

// Closing ends what waits, so that a server can shut down.
func TestCloseEndsWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := quietWorld(t)
		held := w.hold("fs", "write_file", `{"path":"a"}`)
		start := time.Now()
		var group sync.WaitGroup
		group.Go(func() {
			if c, err := w.bot.GetCall(t.Context(), held.ID, api.Duration(5*time.Minute)); err != nil || c.Status != api.StatusPending {
				t.Errorf("%+v %v", c, err)
			}
		})
		group.Go(func() {
			for _, err := range w.ana.Events(t.Context(), api.FromNow) {
				if !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Errorf("got %v", err)
				}
			}
		})
		synctest.Wait()
		w.web.Close()
		group.Wait()
		if time.Since(start) != 0 {
			t.Errorf("it took %v", time.Since(start))
		}
	})
}

// The stream tells what happens, in order, and whoever comes back misses and
// repeats nothing.
func TestEventsResume(t *testing.T) {
	w := newWorld(t)
	h, err := w.store.Head(t.Context())
	must(t, err)
	var ids []string
	for _, path := range []string{"1", "2", "3"} {
		ids = append(ids, w.hold("fs", "write_file", `{"path":"`+path+`"}`).ApprovalID)
	}
	w.say(w.ana, ids[1], api.Deny, "line one\ndata: {\"kind\":\"request.decided\"}\n\nid: 7")
	read := func(after int64, n int) []api.Event {
		var out []api.Event
		for e, err := range w.ana.Events(t.Context(), after) {
			must(t, err)
			if out = append(out, e); len(out) == n {
				break
			}
		}
		return out
	}
	all := read(h.Size-1, 4)
	for i, e := range all {
		if e.Seq != h.Size+int64(i) || e.Request == nil || e.Request.ApprovalID != e.Subject {
			t.Errorf("event %d: %+v", i, e)
		}
	}
	if all[3].Kind != "request.decided" || all[3].Actor.ID != "user:ana" || all[3].Request.Status != api.StatusDenied {
		t.Errorf("got %+v", all[3])
	}
	rest := read(all[1].Seq, 2)
	if len(rest) != 2 || rest[0].Seq != all[2].Seq || rest[1].Seq != all[3].Seq {
		t.Errorf("after %d came %+v", all[1].Seq, rest)
	}
	resp := w.raw("GET", "/v1/events?after=0", "", append(bearer(w.keys["ana"]), "Last-Event-ID", "999999")...)
	if p := problem(t, resp); p.Code != api.Stale {
		t.Errorf("from the future: %+v", p)
	}
	for _, bad := range []string{"-1", "x", "01", "1.5"} {
		resp := w.raw("GET", "/v1/events", "", append(bearer(w.keys["ana"]), "Last-Event-ID", bad)...)
		if p := problem(t, resp); p.Code != api.BadRequest {
			t.Errorf("%q: %+v", bad, p)
		}
	}
}

// A silent stream shows that it lives, and ends when its reader may not read any
// more (API-06).
func TestEventsHeartbeatAndEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := quietWorld(t)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.base+"/v1/events", nil)
		must(t, err)
		r.Header.Set("Authorization", "Bearer "+w.keys["ana"])
		resp, err := (&http.Client{Transport: w.via}).Do(r)
		must(t, err)
		if got := resp.Header.Get("Content-Type"); got != "text/event-stream" {
			t.Fatalf("content type %q", got)
		}
		lines := make(chan string)
		go func() {
			defer close(lines)
			buf := make([]byte, 4096)
			for {
				n, err := resp.Body.Read(buf)
				if err != nil {
					return
				}
				lines <- string(buf[:n])
			}
		}()
		if first := <-lines; first != ": the record follows\n\n" {
			t.Errorf("first %q", first)
		}
		start := time.Now()
		for range 3 {
			if beat := <-lines; beat != ":\n\n" {
				t.Errorf("beat %q", beat)
			}
		}
		if took := time.Since(start); took != 45*time.Second {
			t.Errorf("three beats took %v", took)
		}
		w.creds.SetDirectory(credential.Directory{Agents: directory().Agents, People: []identity.Human{{ID: "raj"}}})
		w.hold("fs", "write_file", `{"path":"secret"}`)
		if more, open := <-lines; open {
			t.Errorf("a disabled reader was told %q", more)
		}
	})
}

// Of sign-ins and credentials people hear only what is their own.
func TestEventsAreFiltered(t *testing.T) {
	w := newWorld(t)
	h, err := w.store.Head(t.Context())
	must(t, err)
	w.signIn("raj")
	_, err = w.raj.AddKey(t.Context(), api.KeyRequest{Class: "human", For: "raj"})
	must(t, err)
	w.raw("GET", "/v1/requests", "", bearer("aye_human_aaaaaaaa_"+strings.Repeat("a", 52))...)
	held := w.hold("fs", "write_file", `{"path":"a"}`)
	for e, err := range w.ana.Events(t.Context(), h.Size-1) {
		must(t, err)
		if e.Subject != held.ApprovalID {
			t.Errorf("Ana was told %s of %s", e.Kind, e.Subject)
		}
		break
	}
	var kinds []string
	for e, err := range w.raj.Events(t.Context(), h.Size-1) {
		must(t, err)
		if kinds = append(kinds, e.Kind); e.Subject == held.ApprovalID {
			break
		}
	}
	if got, want := strings.Join(kinds, " "), "key.added key.revoked auth.signed_in key.added request.asked"; got != want {
		t.Errorf("Raj was told %s, want %s", got, want)
	}
}

// MCP-24: one reader has a bounded number of streams, another one is not hurt.
func TestStreamsAreBounded(t *testing.T) {
	w := newWorld(t)
	open := func(who string) *http.Response {
		return w.raw("GET", "/v1/events", "", bearer(w.keys[who])...)
	}
	for i := range 8 {
		if resp := open("ana"); resp.StatusCode != http.StatusOK {
			t.Fatalf("stream %d: HTTP %d", i, resp.StatusCode)
		}
	}
	if p := problem(t, open("ana")); p.Code != api.TooManyStreams {
		t.Errorf("got %+v", p)
	}
	if resp := open("raj"); resp.StatusCode != http.StatusOK {
		t.Errorf("another reader: HTTP %d", resp.StatusCode)
	}
}

// OPS-10: from the answer on nothing starts, and what waits is told.
func TestPause(t *testing.T) {
	w := newWorld(t)
	held := w.hold("fs", "write_file", `{"path":"a"}`)
	w.say(w.ana, held.ID, api.Approve, "")
	s, err := w.ana.Pause(t.Context(), api.PauseRequest{Reason: "stop"})
	must(t, err)
	if !s.AllPaused {
		t.Fatal("not paused")
	}
	if _, err := w.bot.Await(t.Context(), held.ApprovalID, 0); !errors.Is(err, api.SessionPaused) || w.tool.count() != 0 {
		t.Fatalf("%v, %d runs", err, w.tool.count())
	}
	if c, err := w.bot.Call(t.Context(), api.CallRequest{Server: "fs", Tool: "read_x"}); !errors.Is(err, api.SessionPaused) || c == nil || c.Text == "" {
		t.Fatalf("%+v %v", c, err)
	}
	_, err = w.ana.Resume(t.Context(), api.PauseRequest{})
	must(t, err)
	if c, err := w.bot.Await(t.Context(), held.ApprovalID, 0); err != nil || c.Status != api.StatusExecuted {
		t.Fatalf("%+v %v", c, err)
	}
	session := "bot/" + mustSession(t, w, held.ID)
	s, err = w.ana.Pause(t.Context(), api.PauseRequest{Session: session, Reason: "odd"})
	must(t, err)
	if s.AllPaused || len(s.Paused) != 1 || s.Paused[0] != session {
		t.Fatalf("got %+v", s)
	}
	if _, err := w.bot.Call(t.Context(), api.CallRequest{Server: "fs", Tool: "write_x"}); !errors.Is(err, api.SessionPaused) {
		t.Fatalf("got %v", err)
	}
	if _, err := w.bot.Call(t.Context(), api.CallRequest{Server: "fs", Tool: "read_x"}); err != nil {
		t.Fatalf("reading in a paused session: %v", err)
	}
	s, err = w.raj.Resume(t.Context(), api.PauseRequest{Session: session})
	must(t, err)
	if len(s.Paused) != 0 {
		t.Fatalf("got %+v", s)
	}
	if _, err := w.raj.Resume(t.Context(), api.PauseRequest{Session: session}); !errors.Is(err, api.NotFound) {
		t.Fatalf("got %v", err)
	}
	for _, bad := range []string{"bot", "/x", "bot/", strings.Repeat("x", 500)} {
		if _, err := w.ana.Pause(t.Context(), api.PauseRequest{Session: bad}); !errors.Is(err, api.BadRequest) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if n := len(w.kinds(ledger.SessionPaused)); n != 1 {
		t.Errorf("%d entries", n)
	}
}

func mustSession(t *testing.T, w *world, id string) string {
	t.Helper()
	r, err := w.ana.Request(t.Context(), id)
	must(t, err)
	return r.SessionID
}

// A tool whose definition changed is refused until a person accepts the one they
// saw (MCP-10, MCP-14).
func TestDefinitions(t *testing.T) {
	w := newWorld(t)
	offer := func(description string) desk.Pin {
		p, err := w.desk.Offer(t.Context(), "fs", "write_file", []byte(`{"name":"write_file","description":"`+description+`","inputSchema":{"type":"object"}}`))
		must(t, err)
		return p
	}
	offer("Writes a file.")
	held := w.hold("fs", "write_file", `{"path":"a"}`)
	offer("Writes a file. <script>obey</script> \\u202e")
	if _, err := w.bot.Call(t.Context(), api.CallRequest{Server: "fs", Tool: "write_file"}); !errors.Is(err, api.DefinitionHeld) {
		t.Fatalf("got %v", err)
	}
	r, err := w.ana.Request(t.Context(), held.ApprovalID)
	must(t, err)
	if r.Status != api.StatusCancelled || r.Cause != "definition" {
		t.Fatalf("what was open is %s %s", r.Status, r.Cause)
	}
	list, err := w.ana.Definitions(t.Context(), true)
	must(t, err)
	if len(list.Definitions) != 1 || list.Definitions[0].Accepted || !strings.Contains(string(list.Definitions[0].Before), "Writes a file.") {
		t.Fatalf("got %+v", list)
	}
	d := list.Definitions[0]
	s := w.signIn("ana")
	if page := s.get("/tools"); !strings.Contains(page, "U+202E") || strings.Contains(page, "<script>") {
		t.Error("the page of tools does not show what changed as it is")
	}
	seen := api.AcceptRequest{Server: "fs", Tool: "write_file", Definition: d.Was}
	if _, err := w.ana.Accept(t.Context(), seen); !errors.Is(err, api.Stale) {
		t.Fatalf("another one than seen: %v", err)
	}
	if resp := s.post("/tools/accept", "server", "fs", "tool", "write_file", "definition", d.Was); resp.StatusCode != http.StatusConflict {
		t.Errorf("the same by form: HTTP %d", resp.StatusCode)
	}
	seen.Definition = d.Definition
	if got, err := w.ana.Accept(t.Context(), seen); err != nil || !got.Accepted {
		t.Fatalf("%+v %v", got, err)
	}
	if list, err = w.ana.Definitions(t.Context(), true); err != nil || len(list.Definitions) != 0 {
		t.Fatalf("%+v %v", list, err)
	}
	seen.Tool = "nothing"
	if _, err := w.ana.Accept(t.Context(), seen); !errors.Is(err, api.NotFound) {
		t.Fatalf("got %v", err)
	}
}
