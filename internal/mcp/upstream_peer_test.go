package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// site is a raw server over HTTP that remembers what reached it.
type site struct {
	*httptest.Server
	t        *testing.T
	modern   bool
	version  Version // of initialize; newest legacy when empty
	session  string
	discover http.HandlerFunc // nil: as modern says
	call     func(w http.ResponseWriter, r *http.Request, m peerMessage)
	standing http.HandlerFunc // GET; nil: 405

	mu   sync.Mutex
	seen []visit
	came chan visit // receives every visit but requests, when not nil
}

// visit is one HTTP request.
type visit struct {
	verb   string
	header http.Header
	body   string
	peerMessage
}

func newSite(t *testing.T, s *site) *site {
	t.Helper()
	s.t = t
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *site) target() Target {
	return Target{Name: "site", URL: s.URL + "/mcp", Grace: 5 * time.Second}
}

func (s *site) visits(method string) (found []visit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.seen {
		if v.Method == method || method == v.verb {
			found = append(found, v)
		}
	}
	return found
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	v := visit{verb: r.Method, header: r.Header.Clone(), body: string(body)}
	if len(body) > 0 {
		if err := json.Unmarshal(body, &v.peerMessage); err != nil {
			s.t.Errorf("the server got %s", body)
		}
	}
	s.mu.Lock()
	s.seen = append(s.seen, v)
	s.mu.Unlock()
	switch {
	case r.Method == http.MethodGet && s.standing != nil:
		s.standing(w, r)
	case r.Method == http.MethodGet:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case r.Method == http.MethodDelete:
		w.WriteHeader(http.StatusOK)
	case v.Method == methodDiscover && s.discover != nil:
		s.discover(w, r)
	case v.Method == methodDiscover && s.modern:
		answerJSON(w, v.ID, peerDiscovered)
	case v.Method == methodDiscover:
		http.Error(w, "Bad Request: Server not initialized", http.StatusBadRequest)
	case v.Method == methodInitialize:
		if s.session != "" {
			w.Header().Set("Mcp-Session-Id", s.session)
		}
		version := s.version
		if version == "" {
			version = V20251125
		}
		answerJSON(w, v.ID, `{"protocolVersion":"`+string(version)+`","capabilities":{},"serverInfo":{"name":"site"}}`)
	case v.ID == nil || v.Method == "":
		w.WriteHeader(http.StatusAccepted)
		if s.came != nil {
			s.came <- v
		}
	case s.call != nil:
		s.call(w, r, v.peerMessage)
	default:
		answerJSON(w, v.ID, string(body))
	}
}

func answerJSON(w http.ResponseWriter, id json.RawMessage, result string) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

// says starts a stream and returns a function that sends one event, given as lines.
func says(w http.ResponseWriter) func(lines ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	http.NewResponseController(w).Flush()
	return func(lines ...string) {
		io.WriteString(w, strings.Join(lines, "\n")+"\n\n")
		http.NewResponseController(w).Flush()
	}
}

func resultLine(id json.RawMessage, result string) string {
	return fmt.Sprintf(`data: {"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

func noteLine(method, params string) string {
	return fmt.Sprintf(`data: {"jsonrpc":"2.0","method":%q,"params":%s}`, method, params)
}

// both runs a test against a legacy and a modern site.
func both(t *testing.T, run func(t *testing.T, s *site)) {
	for name, modern := range map[string]bool{"legacy": false, "modern": true} {
		t.Run(name, func(t *testing.T) {
			s := &site{modern: modern, session: "s-1"}
			if modern {
				s.session = ""
			}
			run(t, s)
		})
	}
}

func contains(t *testing.T, what string, got []byte, want string) {
	t.Helper()
	if !bytes.Contains(got, []byte(want)) {
		t.Errorf("%s: got %s\nwant %s in it", what, got, want)
	}
}
