package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"
)

func rotated(was, key *Signer) Event {
	return Event{LedgerKeyRotated, testOrigin, ana, []Field{String(FieldWas, was.PublicKey()), String(FieldKey, key.PublicKey())}}
}

// rotatedLog has the key changed by entries 3 and 7 of 11.
func rotatedLog(t *testing.T) *testLog {
	t.Helper()
	l := new(testLog)
	l.add(t, of("a", asked(), decided(raj, Approve), claimed())...)
	l.add(t, rotated(testKey, secondKey))
	l.add(t, of("a", finished())...)
	l.add(t, of("b", asked(), decided(raj, Deny))...)
	l.add(t, rotated(secondKey, thirdKey))
	return l.add(t, of("c", asked(), decided(raj, Approve), claimed())...)
}

// AUD-12: old checkpoints stay verifiable, whichever key the auditor knows.
func TestAUD12KeyRotation(t *testing.T) {
	l := rotatedLog(t)
	before, between := l.sign(t, 2), l.sign(t, 6, secondKey)
	turn1, turn2 := l.sign(t, 4, testKey, secondKey), l.sign(t, 9, secondKey, thirdKey)
	last := l.sign(t, 11, thirdKey)
	export := l.export(t, before, l.sign(t, 3), turn1, between, turn2, last)
	for _, known := range [][]*Signer{{testKey}, {secondKey}, {thirdKey}, {testKey, thirdKey}, {testKey, secondKey, thirdKey}} {
		var keys []string
		for _, k := range known {
			keys = append(keys, k.PublicKey())
		}
		r, err := verify(t, export, VerifyOptions{Keys: keys, Trusted: [][]byte{before, turn1, turn2}})
		if err != nil || r.Signed != 11 || len(r.Checkpoints) != 9 {
			t.Errorf("with %d keys: %v, signed %d\n%s", len(keys), err, r.Signed, findings(r))
		}
	}
	stranger := keyFrom("a key that has nothing to do with it")
	for _, tt := range []struct {
		name        string
		checkpoints [][]byte
		key         *Signer
		want        string
	}{
		{"a stranger's key trusts nobody", [][]byte{before, turn1, turn2, last}, stranger, "over 2 entries is not signed by a key in force then"},
		{"a handover of another log", [][]byte{before, rebuilt(l, 1, l.lines[0]).sign(t, 4, testKey, secondKey), turn2, last}, testKey, "entry 3: changes the key, but no checkpoint over it is signed with both keys"},
		{"a stranger's key", [][]byte{before, turn1, turn2, last}, stranger, "not signed by a key in force then"},
		{"no handover", [][]byte{before, l.sign(t, 4, secondKey), turn2, last}, testKey, "entry 3: changes the key, but no checkpoint over it is signed with both keys"},
		{"no handover, so no trust", [][]byte{before, l.sign(t, 4, secondKey), turn2, last}, testKey, "not signed by a key in force then"},
		{"the old key goes on alone", [][]byte{before, turn1, l.sign(t, 6), turn2, last}, testKey, "a checkpoint of the export over 6 entries is not signed by a key in force then"},
		{"the new key too early", [][]byte{l.sign(t, 2, secondKey), turn1, turn2, last}, testKey, "a checkpoint of the export over 2 entries is not signed by a key in force then"},
		{"the handover before the entry", [][]byte{l.sign(t, 3, testKey, secondKey), between, turn2, last}, testKey, "entry 3: changes the key, but"},
		{"a stranger signs too", [][]byte{before, turn1, turn2, l.sign(t, 11, thirdKey, stranger)}, testKey, "signed in the log's name by the unknown key"},
		{"the old key at the end", [][]byte{before, turn1, turn2, l.sign(t, 11)}, testKey, "not signed by a key in force then"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := verify(t, l.export(t, tt.checkpoints...), VerifyOptions{Keys: []string{tt.key.PublicKey()}})
			if !errors.Is(err, ErrFaulty) || !strings.Contains(findings(r), tt.want) {
				t.Errorf("%v, want %q in\n%s", err, tt.want, findings(r))
			}
		})
	}
}

func TestAUD12RotationEntriesThatMakeNoSense(t *testing.T) {
	for name, tt := range map[string]struct {
		events []Event
		want   string
	}{
		"no keys":         {[]Event{{LedgerKeyRotated, testOrigin, ana, nil}}, "entry 0: does not name two keys"},
		"to itself":       {[]Event{rotated(testKey, testKey)}, "entry 0: does not name two keys"},
		"from a stranger": {[]Event{rotated(testKey, secondKey), rotated(testKey, thirdKey)}, "entry 1: takes over from a key that was not in force"},
	} {
		l := new(testLog).add(t, tt.events...)
		r, err := verify(t, l.export(t, l.sign(t, len(l.lines), testKey, secondKey, thirdKey)), VerifyOptions{Keys: []string{testKey.PublicKey()}})
		if !errors.Is(err, ErrFaulty) || !strings.Contains(findings(r), tt.want) {
			t.Errorf("%s: %v, want %q in\n%s", name, err, tt.want, findings(r))
		}
	}
}

func TestCheckpointsThatDoNotHold(t *testing.T) {
	l := aDay(t)
	n := len(l.lines)
	last := l.sign(t, n)
	fork := rebuilt(l, 3, l.lines[4])
	other, err := NewKey("another.example/log", strings.NewReader(strings.Repeat("w", 32)))
	if err != nil {
		t.Fatal(err)
	}
	forged := slices.Clone(last)
	forged[bytes.LastIndexByte(forged, '=')-5] ^= 1
	keys := []string{testKey.PublicKey()}
	for _, tt := range []struct {
		name                string
		checkpoints, inHand [][]byte
		keys                []string
		want                string
	}{
		{"AUD-02 truncated", [][]byte{last}, [][]byte{fork.sign(t, n)}, keys, "the checkpoint kept outside over 15 entries has another root"},
		{"AUD-03 rolled back", [][]byte{last}, [][]byte{bigger(l).sign(t, n+1)}, keys, "entry 15: missing: the checkpoint kept outside covers 16 entries, 15 are there: cut off or rolled back"},
		{"AUD-03 rolled back, no key needed", nil, [][]byte{bigger(l).sign(t, n+1)}, nil, "cut off or rolled back"},
		{"AUD-04 fork, no key needed", nil, [][]byte{fork.sign(t, n)}, nil, "has another root"},
		{"AUD-04 another log", [][]byte{last}, [][]byte{l.sign(t, 5, other)}, nil, `is of the log "ayegate.example/test-log", not of "another.example/log"`},
		{"a forged signature", [][]byte{forged}, nil, keys, "invalid signature"},
		{"a forged one in hand", [][]byte{last}, [][]byte{forged}, keys, "the checkpoint kept outside over 15 entries: ledger: not a signed checkpoint of the log: invalid signature"},
		{"nobody we know", [][]byte{l.sign(t, n, secondKey)}, nil, keys, "unknown key"},
		{"an empty log with a root", [][]byte{last}, [][]byte{emptyWithRoot(t)}, keys, "over 0 entries has another root"},
		{"an unsigned tail", [][]byte{l.sign(t, 9)}, nil, keys, "entries 9 to 14: under no checkpoint that a key of the log signed"},
		{"no checkpoint at all", nil, nil, keys, "entries 0 to 14: under no checkpoint that a key of the log signed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := verify(t, l.export(t, tt.checkpoints...), VerifyOptions{Keys: tt.keys, Trusted: tt.inHand})
			if !errors.Is(err, ErrFaulty) || !strings.Contains(findings(r), tt.want) {
				t.Errorf("%v, want %q in\n%s", err, tt.want, findings(r))
			}
		})
	}
}

func bigger(l *testLog) *testLog {
	out := smaller(l, len(l.lines))
	out.addLine([]byte("more"))
	return out
}

func emptyWithRoot(t *testing.T) []byte {
	t.Helper()
	c, err := testKey.Checkpoint(Head{Root: Hash{1}}, epochTime)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAnEmptyLogIsWhole(t *testing.T) {
	l := new(testLog)
	c := l.sign(t, 0)
	r, err := verify(t, l.exportLeaves(t, c), VerifyOptions{Keys: []string{testKey.PublicKey()}, Trusted: [][]byte{c}})
	if err != nil || r.Entries != 0 || len(r.Checkpoints) != 2 {
		t.Errorf("%v\n%s", err, findings(r))
	}
}

// Signatures by witnesses, whose names are others, are no fault and no proof.
func TestWitnessesAreLeftAlone(t *testing.T) {
	l := aDay(t)
	witness, err := NewKey("witness.example/w1", strings.NewReader(strings.Repeat("w", 32)))
	if err != nil {
		t.Fatal(err)
	}
	v, err := note.NewVerifier(testKey.PublicKey())
	if err != nil {
		t.Fatal(err)
	}
	n, err := note.Open(l.sign(t, len(l.lines)), note.VerifierList(v))
	if err != nil {
		t.Fatal(err)
	}
	both, err := note.Sign(n, witness.note)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := verify(t, l.export(t, both), VerifyOptions{Keys: []string{testKey.PublicKey()}}); err != nil {
		t.Errorf("%v\n%s", err, findings(r))
	}
	if _, err := verify(t, l.export(t, both), VerifyOptions{Keys: []string{witness.PublicKey()}}); !errors.Is(err, ErrFaulty) {
		t.Errorf("a witness spoke for the log: %v", err)
	}
}

func TestExportRefuses(t *testing.T) {
	l := aDay(t)
	gone := HashReaderFunc(func([]int64) ([]Hash, error) { return nil, errBroken })
	short := HashReaderFunc(func(p []int64) ([]Hash, error) { return make([]Hash, len(p)-1), nil })
	lines := func(lines ...string) *testLog {
		x := new(testLog)
		for _, line := range lines {
			x.addLine([]byte(line))
		}
		return x
	}
	failing := func(yield func([]byte, error) bool) { _ = yield([]byte("a"), nil) && yield(nil, errBroken) }
	var b bytes.Buffer
	for name, tt := range map[string]struct{ got, want error }{
		"a broken store":        {WriteExport(&b, failing), errBroken},
		"a broken writer":       {WriteExport(brokenWriter{}, l.entries()), errBroken},
		"an empty entry":        {WriteExport(&b, lines("").entries()), ErrExport},
		"two lines":             {WriteExport(&b, lines("a\nb").entries()), ErrExport},
		"a large entry":         {WriteExport(&b, lines(strings.Repeat("x", MaxEntry+1)).entries()), ErrExport},
		"no checkpoint":         {WriteExport(&b, l.entries(), []byte("x")), ErrExport},
		"no hashes":             {WriteExportLeaves(&b, l.entries(), gone), errBroken},
		"too few hashes":        {WriteExportLeaves(&b, l.entries(), short), ErrTree},
		"no hashes, checkpoint": {WriteExportLeaves(&b, l.entries(), gone, l.sign(t, 3)), errBroken},
	} {
		if !errors.Is(tt.got, tt.want) {
			t.Errorf("%s: %v", name, tt.got)
		}
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

// A large log has several lines of leaf hashes, and one edit in it is named.
func TestLeafHashesOfALargeLog(t *testing.T) {
	l := new(testLog)
	for i := range 2*leafBlock + 100 {
		l.add(t, Event{ConfigLoaded, fmt.Sprint("c", i), gate, nil})
	}
	n := len(l.lines)
	export := l.exportLeaves(t, l.sign(t, 1500), l.sign(t, n))
	opt := VerifyOptions{Keys: []string{testKey.PublicKey()}}
	if r, err := verify(t, export, opt); err != nil || bytes.Count(export, []byte(leavesPrefix)) != 3 {
		t.Fatalf("%v\n%s", err, findings(r))
	}
	r, err := verify(t, bytes.Replace(export, []byte(`"subject":"c1999"`), []byte(`"subject":"c1998"`), 1), opt)
	if !errors.Is(err, ErrFaulty) || r.FirstBad.Seq != 1999 || r.FirstBad.Last != 1999 {
		t.Errorf("%v", err)
	}
}
