package strictjson_test

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/ayegate/ayegate/internal/strictjson"
)

// corpus are the documents that the benchmarks read: what agents send, and what an attacker would.
func corpus() map[string][]byte {
	call := `{"path": "/srv/shop/internal/cart/cart.go", "mode": "replace", "expected_revision": 48213, "edits": [` +
		`{"line": 120, "old": "total += item.Price", "new": "total += item.Price * item.Count"}, ` +
		`{"line": 133, "old": "return total", "new": "return total, nil"}], "dry_run": false, "encoding": "utf-8", "reason": "prices ignore counts"}`
	var objects, source, flood, prefixed, nested strings.Builder
	for i := range 700 {
		fmt.Fprintf(&objects, `{"id":%d,"name":"item %d","price":%d.%02d,"tags":["a","b","c"],"stock":{"berlin":%d,"paris":0},"live":true,"note":null},`, i, i, i, i%100, i)
		source.WriteString("\\tif err := store.Put(ctx, key, value); err != nil {\\n\\t\\treturn fmt.Errorf(\\\"put %s: %w\\\", key, err)\\n\\t}\\n")
	}
	for i := range 20_000 {
		fmt.Fprintf(&flood, `,"%s":0`, strconv.FormatUint(uint64(i)*2654435761%1_000_003, 36))
		fmt.Fprintf(&prefixed, `,"%s%d":0`, strings.Repeat("x", 30), 99_999-i)
	}
	for range 60 {
		nested.WriteString(`{"b":0,"a":`)
	}
	return map[string][]byte{
		"call 360 B":             []byte(call),
		"records 90 KB":          []byte("[" + strings.TrimSuffix(objects.String(), ",") + "]"),
		"source code 90 KB":      []byte(`{"path":"a.go","text":"` + source.String() + `"}`),
		"one letter 100 KB":      []byte(`{"text":"` + strings.Repeat("a", 100_000) + `"}`),
		"japanese 100 KB":        []byte(`{"text":"` + strings.Repeat("承認待ちの操作", 4_761) + `"}`),
		"escapes 100 KB":         []byte(`{"text":"` + strings.Repeat(`\u0041`, 16_666) + `"}`),
		"integers 100 KB":        []byte("[0" + strings.Repeat(",1234", 20_000) + "]"),
		"fractions 100 KB":       []byte("[0" + strings.Repeat(",12.340e-3", 10_000) + "]"),
		"one number 100 KB":      []byte("1" + strings.Repeat("0", 50_000) + "e-49000"),
		"20,000 keys":            []byte("{" + flood.String()[1:] + "}"),
		"20,000 keys descending": []byte("{" + prefixed.String()[1:] + "}"),
		"unsorted all the way":   []byte(nested.String() + `"` + strings.Repeat("x", 100_000) + `"` + strings.Repeat("}", 60)),
		"brackets 100 KB":        bytes.Repeat([]byte("["), 100_000),
	}
}

func BenchmarkCanonical(b *testing.B) {
	for name, doc := range corpus() {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(doc)))
			b.ReportAllocs()
			dst := make([]byte, 0, 2*len(doc))
			for b.Loop() {
				_, _ = strictjson.Canonical(dst, doc, strictjson.Limits{})
			}
		})
	}
}

func BenchmarkCheck(b *testing.B) {
	for name, doc := range corpus() {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(doc)))
			b.ReportAllocs()
			for b.Loop() {
				_ = strictjson.Check(doc, strictjson.Limits{})
			}
		})
	}
}

func BenchmarkGet(b *testing.B) {
	doc := corpus()["call 360 B"]
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := strictjson.Get(doc, "edits", "1", "new"); !ok {
			b.Fatal("not found")
		}
	}
}

func BenchmarkTree(b *testing.B) {
	doc := corpus()["call 360 B"]
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := strictjson.Tree(doc, strictjson.Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}
