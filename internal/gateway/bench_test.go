package gateway

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// An allowed tools/call from the HTTP request to the HTTP response: endpoint,
// gateway, desk over a memory store, and a server in this process. "serve" is
// without a network, "wire" with one over loopback.
func BenchmarkAllowedCall(b *testing.B) {
	args := `{"name":"echo","arguments":{"path":"/srv/shop/cart.go","mode":"replace","expected_revision":48213,"edits":[{"line":120,"old":"a","new":"b"}],"dry_run":false}}`
	for _, era := range []string{"legacy", "modern"} {
		s := legacyServer()
		if era == "modern" {
			s = modernServer()
		}
		r := newRig(b, one(s))
		r.log.off = true
		a := &caller{t: b, url: r.wire(b) + "/mcp/fs", modern: era == "modern", caps: `{}`}
		if !a.modern {
			a.initialize()
		}
		body := a.request("tools/call", args)
		b.Run(era+"/serve", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				req := httptest.NewRequest(http.MethodPost, "/mcp/fs", strings.NewReader(body))
				req.Host = "127.0.0.1"
				a.headers(req, "tools/call", args)
				rec := httptest.NewRecorder()
				r.endpoint.ServeHTTP(rec, req)
				if rec.Code != http.StatusOK {
					b.Fatal(rec.Body.String())
				}
			}
		})
		b.Run(era+"/wire", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				resp, err := a.post(body, "tools/call", args)
				if err != nil {
					b.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		})
		b.Run(era+"/wire-16", func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(8)
			b.RunParallel(func(pb *testing.PB) {
				mine := &caller{t: b, url: a.url, modern: a.modern, caps: a.caps}
				if !mine.modern {
					mine.initialize()
				}
				for pb.Next() {
					resp, err := mine.post(body, "tools/call", args)
					if err != nil {
						b.Error(err)
						return
					}
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
			})
		})
	}
}
