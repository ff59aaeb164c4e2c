package ledger

import (
	"bytes"
	"errors"
	"testing"
	"time"
)

// What is an entry reads the same again when it is written from what was read.
func FuzzParseEntry(f *testing.F) {
	for _, line := range aDay(f).lines {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		e, err := ParseEntry(line)
		if err != nil {
			if !errors.Is(err, ErrEntry) {
				t.Errorf("another error: %v", err)
			}
			return
		}
		if bytes.ContainsAny(line, "\n\r") || len(line) > MaxEntry {
			t.Errorf("an entry of several lines: %q", line)
		}
		if !e.Kind.Known() {
			return
		}
		again := Event{Kind: e.Kind, Subject: e.Subject, Actor: e.Actor}
		for c := (cursor{rest: e.Data}); ; {
			name, value, ok := c.member()
			if !ok {
				break
			}
			again.Data = append(again.Data, Field{string(name[1 : len(name)-1]), Raw(value)})
		}
		got, err := again.Entry(e.Seq, e.Time)
		if err != nil || !bytes.Equal(got, line) {
			t.Errorf("%v\nread  %s\nwrote %s", err, line, got)
		}
	})
}

// No export but that of the log itself holds against its key and checkpoint:
// whatever is accepted has the entries that were signed. (Fuzz it with
// -fuzzminimizetime 1x: making long exports shorter takes all the time.)
func FuzzVerify(f *testing.F) {
	l := new(testLog).add(f, asked(), decided(raj, Approve), claimed())
	last := l.sign(f, len(l.lines))
	opt := VerifyOptions{Keys: []string{testKey.PublicKey()}, Trusted: [][]byte{last}}
	f.Add(l.export(f, last))
	f.Add(l.exportLeaves(f, l.sign(f, 1), last))
	r := new(testLog).add(f, rotated(testKey, secondKey))
	f.Add(r.export(f, r.sign(f, 1, testKey, secondKey)))
	f.Fuzz(func(t *testing.T, export []byte) {
		r, err := Verify(bytes.NewReader(export), opt)
		if err == nil && (r.Entries != int64(len(l.lines)) || r.Root != l.tree.Root()) {
			t.Errorf("another log was accepted: %s", export)
		}
		if err != nil && !errors.Is(err, ErrFaulty) {
			t.Errorf("another error: %v", err)
		}
		if (err == nil) != (r.Faults == 0) {
			t.Errorf("%d faults, and %v", r.Faults, err)
		}
	})
}

func FuzzParseCheckpoint(f *testing.F) {
	l := aDay(f)
	good := l.sign(f, 5)
	f.Add(good)
	f.Add(l.sign(f, 5, testKey, secondKey))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := ParseCheckpoint(text, testKey.PublicKey())
		if err == nil && (c.Head != l.head(t, 5) || !c.Time.Equal(epochTime.Add(time.Hour))) {
			t.Errorf("a forged checkpoint: %s", text)
		}
		_, _ = SignHead(c.Head, c.Time, testKey)
	})
}
