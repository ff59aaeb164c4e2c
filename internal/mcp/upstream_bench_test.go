package mcp

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
)

const (
	benchParams = `{"name":"echo","arguments":{"message":"hello","n":[1,2,3],"path":"/srv/data/report.txt"}}`
	benchResult = `{"content":[{"type":"text","text":"hello"}],"isError":false}`
)

// benchSite answers as fast as net/http can.
func benchSite(b *testing.B) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := make([]byte, r.ContentLength)
		if _, err := io.ReadFull(r.Body, body); err != nil {
			http.Error(w, "", http.StatusBadRequest)
			return
		}
		_, rest, _ := bytes.Cut(body, []byte(`"id":`))
		id, _, _ := bytes.Cut(rest, []byte(`,`))
		w.Header()["Content-Type"] = []string{"application/json"}
		switch {
		case bytes.Contains(rest, []byte(methodInitialize+`"`)):
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+string(id)+`,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}`)
		case bytes.Contains(rest, []byte(methodDiscover)):
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+string(id)+`,"result":`+peerDiscovered+`}`)
		default:
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+string(id)+`,"result":`+benchResult+`}`)
		}
	}))
	b.Cleanup(s.Close)
	return s
}

// BenchmarkUpstreamCall compares a call with the plain POST of the same bytes.
func BenchmarkUpstreamCall(b *testing.B) {
	b.Run("plain POST", func(b *testing.B) {
		s := benchSite(b)
		message := NewRequest([]byte(`1`), "tools/call", []byte(benchParams))
		_, transport := (&Target{}).connect()
		client := &http.Client{Transport: transport}
		defer client.CloseIdleConnections()
		b.ReportAllocs()
		for b.Loop() {
			req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, s.URL, bytes.NewReader(message))
			if err != nil {
				b.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Accept", "application/json, text/event-stream")
			req.Header.Set("Accept-Encoding", "identity")
			resp, err := client.Do(req)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := io.ReadAll(resp.Body); err != nil {
				b.Fatal(err)
			}
			_ = resp.Body.Close()
		}
	})
	for name, version := range map[string]Version{"legacy": V20251125, "modern": V20260728} {
		b.Run(name, func(b *testing.B) {
			u, err := Dial(b.Context(), Target{URL: benchSite(b).URL, Version: version})
			if err != nil {
				b.Fatal(err)
			}
			defer u.Close()
			benchUpstream(b, u)
		})
	}
	b.Run("stdio", func(b *testing.B) {
		self, err := os.Executable()
		if err != nil {
			b.Fatal(err)
		}
		u, err := Dial(b.Context(), Target{Command: &Command{Path: self, Env: []string{peerVariable + "=modern"}}})
		if err != nil {
			b.Fatal(err)
		}
		defer u.Close()
		benchUpstream(b, u)
	})
}

func benchUpstream(b *testing.B, u Upstream) {
	params := []byte(benchParams)
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := u.Call(ctx, "tools/call", params, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOutgoing is the work on params for a modern server, with a token.
func BenchmarkOutgoing(b *testing.B) {
	in := newIntroduction(V20260728, Target{Info: []byte(`{"name":"gw"}`), Capabilities: []byte(`{}`)})
	params := []byte(`{"name":"echo","arguments":{"message":"hello"},"_meta":{"progressToken":7}}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := outgoing(params, in, 12345); err != nil {
			b.Fatal(err)
		}
	}
}
