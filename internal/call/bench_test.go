package call_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ayegate/ayegate/internal/call"
)

var sizes = map[string]string{
	"300B": `{"path":"/srv/shop/cart.go","mode":"replace","expected_revision":48213,"edits":[{"line":120,"old":"total += item.Price","new":"total += item.Price * item.Count"},{"line":133,"old":"return total","new":"return total, nil"}],"dry_run":false,"encoding":"utf-8","why":"prices ignore counts"}`,
	"100KB": `{"records":[` + strings.Repeat(`{"id":48213,"name":"item 7","price":12.5,"tags":["a","b","c"],"stock":{"berlin":4,"paris":0},"live":true},`, 930) +
		`null],"text":"` + strings.Repeat("one line of text\\n", 60) + `"}`,
}

func BenchmarkNew(b *testing.B) {
	for name, args := range sizes {
		doc := []byte(args)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(doc)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := call.New("fs", "write_file", doc); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	for name, args := range sizes {
		c, err := call.New("fs", "write_file", []byte(args))
		if err != nil {
			b.Fatal(err)
		}
		stored := c.Canonical()
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(stored)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := call.Parse(stored); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkDigest(b *testing.B) {
	f := call.DigestFields{Request: "0b9f8f0e-6a8f-4a0e-9c3c-6f3d1a0f7f11", Agent: "release-bot", Session: "s-1", Workspace: "shop", Policy: fmt.Sprintf("%064x", 1)}
	f.Call[0] = 1
	b.ReportAllocs()
	for b.Loop() {
		_ = f.Hash()
	}
}
