package ledger

import (
	"testing"
	"time"
)

func BenchmarkParseEntry(b *testing.B) {
	line, err := Event{Kind: RequestDecided, Subject: "3f2c9a3e-5b1e-4c58-9d0c-6a1b7f0e2d11", Actor: Actor{Human, "user:ana", "passkey"}, Data: []Field{
		String(FieldCall, Commit(make([]byte, 16), [32]byte{})), String(FieldDigest, Commit(make([]byte, 16), [32]byte{1})),
		String(FieldDecision, Approve), String(FieldReason, "looked at the diff, fine"), String(FieldStrength, "passkey"),
	}}.Entry(123456, time.Unix(1790000000, 123456789))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	var p entryParser
	for b.Loop() {
		if _, err := p.parse(line); err != nil {
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
	e := Event{Kind: RequestDecided, Subject: "3f2c9a3e-5b1e-4c58-9d0c-6a1b7f0e2d11", Actor: Actor{Human, "user:ana", "passkey"}, Data: []Field{
		String(FieldCall, Commit(make([]byte, 16), [32]byte{})), String(FieldDigest, Commit(make([]byte, 16), [32]byte{1})),
		String(FieldDecision, Approve), String(FieldReason, "looked at the diff, fine"), String(FieldStrength, "passkey"),
	}}
	at := time.Unix(1790000000, 123456789)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := e.Entry(123456, at); err != nil {
			b.Fatal(err)
		}
	}
}
