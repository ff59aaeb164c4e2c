package ledger

import (
	"bytes"
	"fmt"
	"io"
	"testing"
)

// aBusyDay is an export of about n entries: requests that were asked, decided,
// claimed and finished, many at a time.
func aBusyDay(b *testing.B, n int) (*testLog, []byte) {
	b.Helper()
	l := new(testLog)
	const beside = 50
	for i := 0; len(l.lines) < n; i += beside {
		for _, e := range []func() Event{func() Event { return asked() }, func() Event { return decided(raj, Approve) }, func() Event { return claimed() }, func() Event { return finished() }} {
			for j := range beside {
				l.add(b, of(fmt.Sprintf("4be0643f-1d98-473b-97cd-%012d", i+j), e())...)
			}
		}
	}
	return l, l.exportLeaves(b, l.sign(b, len(l.lines)))
}

func BenchmarkVerify(b *testing.B) {
	l, export := aBusyDay(b, 100_000)
	opt := VerifyOptions{Keys: []string{testKey.PublicKey()}}
	b.SetBytes(int64(len(export)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Verify(bytes.NewReader(export), opt); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*float64(len(l.lines))/b.Elapsed().Seconds(), "records/s")
}

func BenchmarkWriteExport(b *testing.B) {
	l, export := aBusyDay(b, 10_000)
	b.SetBytes(int64(len(export)))
	for b.Loop() {
		if err := WriteExportLeaves(io.Discard, l.entries(), l); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*float64(len(l.lines))/b.Elapsed().Seconds(), "records/s")
}

// A proof out of a million entries, made and checked.
func BenchmarkInclusionProofOfAMillion(b *testing.B) {
	const n = 1_000_000
	l := new(testLog)
	entry := make([]byte, 8)
	for i := range n {
		entry[i%8]++
		l.hashes = l.tree.AppendTo(l.hashes, entry)
	}
	h := l.tree.Head()
	clear(entry)
	entry[0] = 1 // entry 0
	for b.Loop() {
		p, err := ProveInclusion(n, 0, l)
		if err != nil {
			b.Fatal(err)
		}
		if err := CheckInclusion(p, h, 0, entry); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFrontierAppend(b *testing.B) {
	line := make([]byte, 450)
	var f Frontier
	var dst []Hash
	b.ReportAllocs()
	for b.Loop() {
		dst = f.AppendTo(dst[:0], line)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "entries/s")
}

func BenchmarkEntry(b *testing.B) {
	e := decided(raj, Approve)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := e.Entry(123456, epochTime); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParseEntry(b *testing.B) {
	line, err := decided(raj, Approve).Entry(123456, epochTime)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseEntry(line); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCheckpoint(b *testing.B) {
	for b.Loop() {
		if _, err := testKey.Checkpoint(Head{Size: 5}, epochTime); err != nil {
			b.Fatal(err)
		}
	}
}
