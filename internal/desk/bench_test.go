package desk_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/store"
	"github.com/ayegate/ayegate/internal/store/memory"
)

var benchStores = []struct {
	name string
	open func(*testing.B) store.Store
}{
	{"memory", func(b *testing.B) store.Store {
		s, err := memory.Open(memory.Config{Now: time.Now})
		must(b, err)
		return s
	}},
	{"sqlite", func(b *testing.B) store.Store { return onDisk(b, time.Now) }},
}

// each runs do with numbers that are used once, one after the other and 64 at once.
func each(b *testing.B, do func(b *testing.B, f *fixture, n int64)) {
	for _, kind := range benchStores {
		for _, way := range []struct {
			name     string
			parallel bool
		}{{"serial", false}, {"64", true}} {
			b.Run(kind.name+"/"+way.name, func(b *testing.B) {
				s := kind.open(b)
				defer s.Close()
				f := over(b, s, rules)
				var n atomic.Int64
				b.ReportAllocs()
				if way.parallel {
					b.SetParallelism(64)
					b.RunParallel(func(pb *testing.PB) {
						for pb.Next() {
							do(b, f, n.Add(1))
						}
					})
					return
				}
				for b.Loop() {
					do(b, f, n.Add(1))
				}
			})
		}
	}
}

// BenchmarkAllowed is the price of the gate for a call that a rule allows: the
// intent durable before, the outcome durable after a tool that does nothing.
func BenchmarkAllowed(b *testing.B) {
	each(b, func(b *testing.B, f *fixture, n int64) {
		tk, err := f.Submit(b.Context(), ask(b, "fs", "touch", fmt.Sprintf(`{"n":%d}`, n)))
		if err == nil {
			_, _, err = f.Execute(b.Context(), bot, tk, f.do)
		}
		if err != nil {
			b.Error(err)
		}
	})
}

// BenchmarkHeld is a whole life: asked, approved, executed.
func BenchmarkHeld(b *testing.B) {
	each(b, func(b *testing.B, f *fixture, n int64) {
		a := write(b, fmt.Sprint(n))
		a.From.ID = fmt.Sprint("bot", n%64)
		tk, err := f.Submit(b.Context(), a)
		if err == nil {
			_, err = f.Decide(b.Context(), ana, tk.Request.ID, approval.Decision{Approve: true, Digest: tk.Request.Digest})
		}
		if err == nil {
			_, _, err = f.Execute(b.Context(), a.From, tk, f.do)
		}
		if err != nil {
			b.Error(err)
		}
	})
}

// BenchmarkDecide is one person's word.
func BenchmarkDecide(b *testing.B) {
	for _, kind := range benchStores {
		b.Run(kind.name, func(b *testing.B) {
			s := kind.open(b)
			defer s.Close()
			f := over(b, s, rules)
			var rs []*approval.Request
			for i := range b.N {
				a := write(b, fmt.Sprint(i))
				a.From.ID = fmt.Sprint("bot", i/40)
				rs = append(rs, f.submit(b, a).Request)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				f.approve(b, ana, rs[i])
			}
		})
	}
}
