package mcp

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ayegate/ayegate/internal/strictjson"
)

// a call of about 300 bytes
var benchCall = []byte(call(7, "fs__write_file", `{"path":"/srv/data/report.txt","content":"the quick brown fox jumps over the lazy dog, twice","mode":420,"create":true}`))

func BenchmarkParse(b *testing.B) {
	b.SetBytes(int64(len(benchCall)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(benchCall, strictjson.Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}

// discard is a ResponseWriter that costs nothing.
type discard struct{ h http.Header }

func (d discard) Header() http.Header         { return d.h }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (d discard) WriteHeader(int)             {}

// BenchmarkEndpoint is the cost of a legacy call that is answered at once, without
// the network.
func BenchmarkEndpoint(b *testing.B) {
	e, header := benchEndpoint(b)
	body := bytes.NewReader(benchCall)
	r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
	r.Host = "127.0.0.1"
	r.Header = header
	r.ContentLength = int64(len(benchCall))
	b.ReportAllocs()
	for b.Loop() {
		body.Reset(benchCall)
		r.Body = io.NopCloser(body)
		e.ServeHTTP(discard{http.Header{}}, r)
	}
}

// BenchmarkHTTP compares the endpoint on a real connection with a bare handler
// that copies the body.
func BenchmarkHTTP(b *testing.B) {
	e, header := benchEndpoint(b)
	b.Run("endpoint", func(b *testing.B) { benchHTTP(b, e, header) })
	b.Run("bare", func(b *testing.B) {
		benchHTTP(b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(body)
		}), header)
	})
}

func benchEndpoint(b *testing.B) (*Endpoint, http.Header) {
	b.Helper()
	e := NewEndpoint(b.Context(), EndpointConfig{
		Server: newEchoServer(), Now: time.Now, Rand: rand.Reader,
		Authenticate: func(*http.Request) (string, error) { return "agent-1", nil },
	})
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(fmt.Sprintf(initializeBody, "2025-11-25")))
	r.Host = "127.0.0.1"
	header := http.Header{
		"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Authorization": {"Bearer x"},
		HeaderVersion: {"2025-11-25"},
	}
	r.Header = header
	e.ServeHTTP(w, r)
	header.Set(HeaderSession, w.Header().Get(HeaderSession))
	return e, header
}

func benchHTTP(b *testing.B, h http.Handler, header http.Header) {
	b.Helper()
	s := httptest.NewServer(h)
	defer s.Close()
	c := &http.Client{Transport: &http.Transport{}}
	defer c.CloseIdleConnections()
	b.ReportAllocs()
	for b.Loop() {
		r, _ := http.NewRequest(http.MethodPost, s.URL+"/mcp", bytes.NewReader(benchCall))
		r.Header = header
		res, err := c.Do(r)
		if err != nil || res.StatusCode != http.StatusOK {
			b.Fatal(err, res.Status)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
	}
}
