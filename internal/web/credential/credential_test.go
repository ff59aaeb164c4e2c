package credential_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ayegate/ayegate/internal/identity"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/store"
	"github.com/ayegate/ayegate/internal/store/memory"
	"github.com/ayegate/ayegate/internal/web/credential"
)

type world struct {
	*credential.Credentials
	store store.Store
	now   time.Time
}

func directory() credential.Directory {
	return credential.Directory{
		People: []identity.Human{{ID: "ana", Name: "Ana", Groups: []string{"db"}}, {ID: "raj"}},
		Agents: []identity.Agent{{ID: "bot", Owner: "user:ana", Workspace: "shop"}},
	}
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	s, err := memory.Open(memory.Config{Now: func() time.Time { return w.now }})
	must(t, err)
	w.store = s
	w.Credentials, err = credential.New(s, rand.Reader, directory())
	must(t, err)
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) add(t *testing.T, s credential.Spec) (credential.Key, string) {
	t.Helper()
	k, text, err := w.Add(t.Context(), credential.System(), s)
	must(t, err)
	return k, text
}

func TestAgentKey(t *testing.T) {
	w := newWorld(t)
	k, text := w.add(t, credential.Spec{Class: credential.Agent, For: "bot", Device: "laptop"})
	a, _, err := w.Agent(t.Context(), text)
	must(t, err)
	if want := (identity.Agent{ID: "bot", Owner: "user:ana", Workspace: "shop", Session: "key:" + k.ID, Device: "laptop"}); a != want {
		t.Fatalf("got %+v, want %+v", a, want)
	}
	if _, _, err := w.Human(t.Context(), text); !errors.Is(err, credential.ErrClass) {
		t.Fatalf("an agent key as a human token: %v", err)
	}
	must(t, w.Revoke(t.Context(), credential.System(), k.ID, "lost"))
	if _, _, err := w.Agent(t.Context(), text); !errors.Is(err, credential.ErrUnknown) {
		t.Fatalf("a revoked key: %v", err)
	}
}

// TOK-07, API-08: no text but the one that was told is good, however near.
func TestForgeries(t *testing.T) {
	w := newWorld(t)
	k, text := w.add(t, credential.Spec{Class: credential.Human, For: "ana"})
	other := strings.Replace(text, k.ID, "aaaaaaaa", 1)
	for name, forged := range map[string]string{
		"empty": "", "class only": "aye_human_", "truncated": text[:len(text)-1], "longer": text + "a", "upper case": strings.ToUpper(text),
		"other id": other, "other class": strings.Replace(text, "human", "agent", 1), "as session": strings.Replace(text, "human", "session", 1),
		"space": text + " ", "last letter": text[:len(text)-1] + flip(text[len(text)-1]), "hash of nothing": "aye_human_" + k.ID + "_" + strings.Repeat("a", 52),
	} {
		if h, _, err := w.Human(t.Context(), forged); err == nil {
			t.Errorf("%s is good for %v", name, h)
		}
	}
	if _, _, err := w.Human(t.Context(), text); err != nil {
		t.Fatal(err)
	}
}

func flip(c byte) string {
	if c == 'a' {
		return "b"
	}
	return "a"
}

// OPS-09: the store and the record hold no secret.
func TestSecretsAreNotStored(t *testing.T) {
	w := newWorld(t)
	var secrets []string
	for _, class := range []credential.Class{credential.Agent, credential.Human} {
		who := map[credential.Class]string{credential.Agent: "bot", credential.Human: "ana"}[class]
		_, text := w.add(t, credential.Spec{Class: class, For: who})
		secrets = append(secrets, text)
	}
	link, err := w.NewLink(t.Context(), credential.System(), "ana")
	must(t, err)
	_, cookie, err := w.SignIn(t.Context(), link, "")
	must(t, err)
	link2, err := w.NewLink(t.Context(), credential.System(), "ana")
	must(t, err)
	secrets = append(secrets, link, link2, cookie)

	var all bytes.Buffer
	for _, kind := range []string{"credential_agent", "credential_human", "credential_signin", "credential_session"} {
		n := 0
		for r, err := range w.store.Records(t.Context(), kind) {
			must(t, err)
			n++
			all.WriteString(r.ID)
			all.Write(r.Value)
		}
		if n == 0 {
			t.Errorf("no record of kind %s: the test looks in the wrong place", kind)
		}
	}
	for line, err := range w.store.Entries(t.Context(), 0) {
		must(t, err)
		all.Write(line)
	}
	for _, s := range secrets {
		secret := s[strings.LastIndex(s, "_")+1:]
		if len(secret) != 52 || strings.Contains(all.String(), secret[:16]) {
			t.Errorf("a secret of %d letters is stored or too short", len(secret))
		}
	}
}

// API-06: whoever is no longer configured is refused at once.
func TestDisabledAtOnce(t *testing.T) {
	w := newWorld(t)
	_, key := w.add(t, credential.Spec{Class: credential.Agent, For: "bot"})
	_, token := w.add(t, credential.Spec{Class: credential.Human, For: "ana"})
	link, err := w.NewLink(t.Context(), credential.System(), "ana")
	must(t, err)
	_, cookie, err := w.SignIn(t.Context(), link, "")
	must(t, err)
	unused, err := w.NewLink(t.Context(), credential.System(), "ana")
	must(t, err)

	w.SetDirectory(credential.Directory{People: []identity.Human{{ID: "raj"}}})
	_, _, agentErr := w.Agent(t.Context(), key)
	_, _, humanErr := w.Human(t.Context(), token)
	_, sessionErr := w.Session(t.Context(), cookie)
	_, _, signInErr := w.SignIn(t.Context(), unused, "")
	for what, err := range map[string]error{"key": agentErr, "token": humanErr, "session": sessionErr, "link": signInErr} {
		if !errors.Is(err, credential.ErrDisabled) {
			t.Errorf("%s: %v, want disabled", what, err)
		}
	}
}

func TestEnds(t *testing.T) {
	w := newWorld(t)
	_, key := w.add(t, credential.Spec{Class: credential.Agent, For: "bot", Valid: time.Hour})
	_, token := w.add(t, credential.Spec{Class: credential.Human, For: "ana", Valid: 2 * time.Hour})
	late, err := w.NewLink(t.Context(), credential.System(), "ana")
	must(t, err)
	_, byToken, err := w.SignIn(t.Context(), token, "")
	must(t, err)
	link, err := w.NewLink(t.Context(), credential.System(), "ana")
	must(t, err)
	_, byLink, err := w.SignIn(t.Context(), link, "")
	must(t, err)

	steps := []struct {
		after time.Duration
		check func() error
		good  bool
	}{
		{10*time.Minute - 1, func() error { _, _, err := w.Agent(t.Context(), key); return err }, true},
		{10 * time.Minute, func() error { _, _, err := w.SignIn(t.Context(), late, ""); return err }, false},
		{time.Hour, func() error { _, _, err := w.Agent(t.Context(), key); return err }, false},
		{2*time.Hour - 1, func() error { _, err := w.Session(t.Context(), byToken); return err }, true},
		{2 * time.Hour, func() error { _, err := w.Session(t.Context(), byToken); return err }, false},
		{12*time.Hour - 1, func() error { _, err := w.Session(t.Context(), byLink); return err }, true},
		{12 * time.Hour, func() error { _, err := w.Session(t.Context(), byLink); return err }, false},
	}
	start := w.now
	for _, s := range steps {
		w.now = start.Add(s.after)
		if err := s.check(); (err == nil) != s.good || err != nil && !errors.Is(err, credential.ErrExpired) {
			t.Errorf("after %v: %v, want good %v", s.after, err, s.good)
		}
	}
}

// A link is good once, however many click at the same moment, and a session that
// a browser had before does not survive a sign-in (WEB-07).
func TestLinkOnceAndRotation(t *testing.T) {
	w := newWorld(t)
	link, err := w.NewLink(t.Context(), credential.System(), "ana")
	must(t, err)
	var mu sync.Mutex
	var cookies []string
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() {
			if _, c, err := w.SignIn(context.Background(), link, ""); err == nil {
				mu.Lock()
				defer mu.Unlock()
				cookies = append(cookies, c)
			}
		})
	}
	group.Wait()
	if len(cookies) != 1 {
		t.Fatalf("%d sessions from one link", len(cookies))
	}
	again, err := w.NewLink(t.Context(), credential.System(), "ana")
	must(t, err)
	s, cookie, err := w.SignIn(t.Context(), again, cookies[0])
	must(t, err)
	if cookie == cookies[0] || s.Human.Strength != identity.Session || !s.Human.In("group:db") {
		t.Fatalf("got %+v", s)
	}
	if _, err := w.Session(t.Context(), cookies[0]); !errors.Is(err, credential.ErrUnknown) {
		t.Fatalf("the old session: %v", err)
	}
	must(t, w.SignOut(t.Context(), cookie, "signed out"))
	if _, err := w.Session(t.Context(), cookie); !errors.Is(err, credential.ErrUnknown) {
		t.Fatalf("after signing out: %v", err)
	}
}

func TestSessionsEndWithTheirToken(t *testing.T) {
	w := newWorld(t)
	k, token := w.add(t, credential.Spec{Class: credential.Human, For: "ana"})
	s, cookie, err := w.SignIn(t.Context(), token, "")
	must(t, err)
	if s.Human.Strength != identity.Token {
		t.Fatalf("a session by token is %v", s.Human.Strength)
	}
	must(t, w.Revoke(t.Context(), credential.System(), k.ID, ""))
	if _, err := w.Session(t.Context(), cookie); !errors.Is(err, credential.ErrUnknown) {
		t.Fatalf("got %v", err)
	}
}

// AUD-11: every change of a credential is on the record, with its actor.
func TestRecord(t *testing.T) {
	w := newWorld(t)
	k, token := w.add(t, credential.Spec{Class: credential.Human, For: "ana"})
	link, err := w.NewLink(t.Context(), credential.System(), "raj")
	must(t, err)
	_, cookie, err := w.SignIn(t.Context(), link, "")
	must(t, err)
	must(t, w.SignOut(t.Context(), cookie, "signed out"))
	h, _, err := w.Human(t.Context(), token)
	must(t, err)
	must(t, w.Revoke(t.Context(), credential.Person(h), k.ID, "gone"))
	old, err := w.NewLink(t.Context(), credential.System(), "raj")
	must(t, err)
	_ = old
	w.now = w.now.Add(time.Hour)
	_, err = w.NewLink(t.Context(), credential.System(), "raj") // clears the old one away
	must(t, err)

	var got []string
	for line, err := range w.store.Entries(t.Context(), 0) {
		must(t, err)
		e, err := ledger.ParseEntry(line)
		must(t, err)
		class, _ := e.Text("class")
		reason, _ := e.Text("reason")
		method, _ := e.Text("method")
		cause, _ := e.Text("cause")
		got = append(got, string(e.Kind)+" "+e.Actor.ID+" "+class+reason+method+cause)
	}
	want := []string{
		"key.added ayegate human", "key.added ayegate signin", "key.revoked user:raj used", "auth.signed_in user:raj link",
		"auth.signed_out user:raj signed out", "key.revoked user:ana gone", "key.added ayegate signin", "key.revoked ayegate expired",
		"key.added ayegate signin",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestWhatCannotBeMade(t *testing.T) {
	w := newWorld(t)
	for name, s := range map[string]credential.Spec{
		"nobody": {Class: credential.Human, For: "eve"}, "no agent": {Class: credential.Agent, For: "ana"}, "a session": {Class: credential.Session, For: "ana"},
		"a link": {Class: credential.Link, For: "ana"}, "no class": {For: "ana"}, "a person's device": {Class: credential.Human, For: "ana", Device: "x"},
		"negative": {Class: credential.Human, For: "ana", Valid: -1}, "long note": {Class: credential.Human, For: "ana", Note: strings.Repeat("x", 201)},
	} {
		if _, _, err := w.Add(t.Context(), credential.System(), s); !errors.Is(err, credential.ErrHolder) && !errors.Is(err, credential.ErrSpec) {
			t.Errorf("%s: %v", name, err)
		}
	}
	broken, err := credential.New(w.store, strings.NewReader("short"), directory())
	must(t, err)
	if _, _, err := broken.Add(t.Context(), credential.System(), credential.Spec{Class: credential.Human, For: "ana"}); err == nil {
		t.Error("a credential without randomness")
	}
}
