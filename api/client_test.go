package api_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ayegate/ayegate/api"
)

// The client against the real server is tested in internal/web; here is what it
// does with a server that is not one.

func TestNewClientRefuses(t *testing.T) {
	for _, base := range []string{"", "127.0.0.1:7777", "ftp://x", "http://", "http://a@b", "http://a?b", "http://a#b", "://"} {
		if _, err := api.NewClient(base, "", nil); err == nil {
			t.Errorf("%q was taken", base)
		}
	}
	if _, err := api.NewClient("http://a", "two words", nil); err == nil {
		t.Error("a credential with a space was taken")
	}
}

// The credential goes to the server that was named and to no other.
func TestRedirectsAreNotFollowed(t *testing.T) {
	leaked := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { leaked = true }))
	defer other.Close()
	s := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer s.Close()
	c, err := api.NewClient(s.URL, "secret", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Me(t.Context()); !errors.Is(err, api.ErrAnswer) || leaked {
		t.Errorf("got %v, leaked %v", err, leaked)
	}
}

func TestAnswersThatAreNone(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"a page": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte("{}"))
		},
		"half": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"subject":`))
		},
		"an error page": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusBadGateway) },
		"a problem without a code": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusConflict)
			_, _ = w.Write([]byte(`{}`))
		},
	} {
		s := httptest.NewServer(h)
		c, err := api.NewClient(s.URL, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Me(t.Context()); !errors.Is(err, api.ErrAnswer) {
			t.Errorf("%s: %v", name, err)
		}
		s.Close()
	}
}

func TestProblem(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.EscapedPath() != "/base/v1/requests/a%2Fb" || r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("path %s", r.URL.EscapedPath())
		}
		w.Header().Set("Content-Type", "application/problem+json; charset=utf-8")
		w.WriteHeader(http.StatusConflict)
		_, _ = w.Write([]byte(`{"type":"about:blank","status":409,"code":"stale","detail":"Look again.","later":1}`))
	}))
	defer s.Close()
	c, err := api.NewClient(s.URL+"/base/", "secret", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Request(t.Context(), "a/b")
	var p *api.Problem
	if !errors.Is(err, api.Stale) || errors.Is(err, api.Expired) || !errors.As(err, &p) || !strings.Contains(err.Error(), "Look again.") {
		t.Errorf("got %v", err)
	}
}

func TestDuration(t *testing.T) {
	b, err := json.Marshal(api.AwaitRequest{Wait: api.Duration(90 * time.Second)})
	if err != nil || string(b) != `{"wait":"1m30s"}` {
		t.Errorf("%s %v", b, err)
	}
	if b, _ := json.Marshal(api.AwaitRequest{}); string(b) != `{}` {
		t.Errorf("%s", b)
	}
	var d api.Duration
	for _, bad := range []string{"-1s", "5", "", "1 s"} {
		if d.UnmarshalText([]byte(bad)) == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}
