package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestVerifyAcceptsAWholeDay(t *testing.T) {
	l := aDay(t)
	n := len(l.lines)
	outside := l.sign(t, 9)
	for _, export := range [][]byte{
		l.export(t, l.sign(t, n), l.sign(t, 0), l.sign(t, 7)),
		l.exportLeaves(t, l.sign(t, 7), l.sign(t, n)),
	} {
		r, err := verify(t, export, VerifyOptions{Keys: []string{testKey.PublicKey()}, Trusted: [][]byte{outside}})
		if err != nil {
			t.Fatalf("%v\n%s", err, findings(r))
		}
		if r.Entries != int64(n) || r.Root != l.tree.Root() || r.Signed != int64(n) || r.Anchored != 9 || r.Faults != 0 || r.FirstBad != nil {
			t.Errorf("report %+v", r)
		}
		if r.Waiting != 1 || r.InDoubt != 0 || r.Unjudged != 0 || r.TimeBack != 0 {
			t.Errorf("counts %+v", r)
		}
	}
}

// T14 with its "must fail" twin: the untouched export passes, every touched one
// does not. The auditor holds the key and the last checkpoint.
func TestT14EveryTamperingIsDetectedWithACheckpointKeptOutside(t *testing.T) {
	const n = 9
	l := smaller(aDay(t), n)
	last := l.sign(t, n)
	opt := VerifyOptions{Keys: []string{testKey.PublicKey()}, Trusted: [][]byte{last}}
	for name, good := range map[string][]byte{"plain": l.export(t, l.sign(t, 6), last), "leaves": l.exportLeaves(t, l.sign(t, 6), last)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if r, err := verify(t, good, opt); err != nil {
				t.Fatalf("the untouched export: %v\n%s", err, findings(r))
			}
			tried, missed := 0, 0
			try := func(bad []byte, format string, args ...any) {
				t.Helper()
				tried++
				if _, err := verify(t, bad, opt); !errors.Is(err, ErrFaulty) {
					missed++
					t.Errorf("not detected (%v): %s", err, fmt.Sprintf(format, args...))
				}
			}
			for i := range good {
				bad := bytes.Clone(good)
				bad[i] ^= 1 << (i % 8)
				try(bad, "a bit of byte %d of %d: %q", i, len(good), good[max(0, i-20):i+1])
			}
			for i := range good {
				try(good[:i], "cut at byte %d", i)
			}
			lines := bytes.SplitAfter(bytes.TrimSuffix(good, []byte("\n")), []byte("\n"))
			lines[len(lines)-1] = append(lines[len(lines)-1], '\n')
			for i := range lines {
				without := append(append([][]byte{}, lines[:i]...), lines[i+1:]...)
				try(bytes.Join(without, nil), "line %d deleted", i+1)
				twice := append(append(append([][]byte{}, lines[:i+1]...), lines[i]), lines[i+1:]...)
				try(bytes.Join(twice, nil), "line %d twice", i+1)
				for j := i + 1; j < len(lines); j++ {
					swapped := append([][]byte{}, lines...)
					swapped[i], swapped[j] = swapped[j], swapped[i]
					try(bytes.Join(swapped, nil), "lines %d and %d swapped", i+1, j+1)
				}
			}
			t.Logf("%d tamperings tried, %d not detected", tried, missed)
		})
	}
}

// attack is one thing that somebody may do to the record. make returns the
// export that the auditor is given; last is what they kept outside, if anything.
type attack struct {
	name string // as in the table of docs/ledger.md
	make func(t *testing.T, l *testLog) []byte
}

// rebuilt is the log with line i replaced, and its tree computed anew.
func rebuilt(l *testLog, i int, line []byte) *testLog {
	out := new(testLog)
	for j, old := range l.lines {
		if j == i {
			old = line
		}
		out.addLine(old)
	}
	return out
}

// smaller is an old copy of the log.
func smaller(l *testLog, n int) *testLog {
	out := new(testLog)
	for _, line := range l.lines[:n] {
		out.addLine(line)
	}
	return out
}

// edited changes a reason into another one that is as canonical.
func edited(t *testing.T, l *testLog) (i int, line []byte) {
	t.Helper()
	for i, line := range l.lines {
		if bytes.Contains(line, []byte("looked at it")) {
			return i, bytes.Replace(line, []byte("looked at it"), []byte("who needs it"), 1)
		}
	}
	t.Fatal("no line to edit")
	return 0, nil
}

func attacks() []attack {
	return []attack{
		{"a byte is damaged, the line is no entry any more", func(t *testing.T, l *testLog) []byte {
			return bytes.Replace(l.export(t, l.sign(t, len(l.lines))), []byte(`"kind":"request.claimed"`), []byte(`"kind":"request.claimed" `), 1)
		}},
		{"an entry is edited, well, by somebody without the key", func(t *testing.T, l *testLog) []byte {
			i, line := edited(t, l)
			return bytes.Replace(l.export(t, l.sign(t, len(l.lines))), l.lines[i], line, 1)
		}},
		{"the same, and all checkpoints are taken out", func(t *testing.T, l *testLog) []byte {
			i, line := edited(t, l)
			return rebuilt(l, i, line).export(t)
		}},
		{"the same, and a key of their own signs", func(t *testing.T, l *testLog) []byte {
			i, line := edited(t, l)
			f := rebuilt(l, i, line)
			return f.export(t, f.sign(t, len(f.lines), thirdKey))
		}},
		{"entries are deleted, reordered or repeated", func(t *testing.T, l *testLog) []byte {
			out := new(testLog)
			for i, line := range l.lines {
				if i != 4 {
					out.addLine(line)
				}
			}
			return out.export(t, l.sign(t, len(l.lines)))
		}},
		{"the tail is cut off in the middle of nowhere", func(t *testing.T, l *testLog) []byte {
			return smaller(l, 10).export(t, l.sign(t, 6))
		}},
		{"the tail is cut off at an old checkpoint", func(t *testing.T, l *testLog) []byte {
			return smaller(l, 6).export(t, l.sign(t, 6))
		}},
		{"an old copy of everything is put back and goes on", func(t *testing.T, l *testLog) []byte {
			old := smaller(l, 6).add(t, Event{StoreOpened, "sqlite:ayegate.db", gate, nil})
			return old.export(t, old.sign(t, len(old.lines)))
		}},
		{"the log is written anew by somebody with the key", func(t *testing.T, l *testLog) []byte {
			i, line := edited(t, l)
			f := rebuilt(l, i, line)
			return f.export(t, f.sign(t, len(f.lines)))
		}},
		{"a decision is left out from the start, with the key", func(t *testing.T, l *testLog) []byte {
			f := new(testLog).add(t, of("r-approved", asked(), claimed(), finished())...)
			return f.export(t, f.sign(t, len(f.lines)))
		}},
		{"entries behind the checkpoint kept outside are written anew, with the key", func(t *testing.T, l *testLog) []byte {
			f := smaller(l, len(l.lines)-1).add(t, Event{ConfigLoaded, "ayegate.yaml", gate, nil})
			return f.export(t, f.sign(t, len(f.lines)))
		}},
	}
}

// TestT14DetectionTable measures what is detected with what the auditor holds,
// and compares it with the table that docs/ledger.md publishes. It covers
// AUD-01 (edit, delete), AUD-02 (truncate), AUD-03 (roll back), AUD-04 (fork).
func TestT14DetectionTable(t *testing.T) {
	l := aDay(t)
	keys := []string{testKey.PublicKey()}
	outside := l.sign(t, len(l.lines)-1)
	published := publishedTable(t)
	for _, a := range attacks() {
		export := a.make(t, l)
		row := "| " + a.name
		for _, opt := range []VerifyOptions{{}, {Keys: keys}, {Keys: keys, Trusted: [][]byte{outside}}} {
			word := "no"
			if _, err := verify(t, export, opt); errors.Is(err, ErrFaulty) {
				word = "yes"
			} else if err != nil {
				t.Fatal(err)
			}
			row += " | " + word
		}
		row += " |"
		if !strings.Contains(published, row+"\n") {
			t.Errorf("docs/ledger.md lacks the row\n%s", row)
		}
	}
	if rows := strings.Count(published, " | yes |\n") + strings.Count(published, " | no |\n"); rows != len(attacks()) {
		t.Errorf("docs/ledger.md has %d rows, measured were %d", rows, len(attacks()))
	}
}

// The first bad entry is named: exactly where it can be, as a range where not.
func TestVerifyNamesTheFirstBadEntry(t *testing.T) {
	l := aDay(t)
	n := len(l.lines)
	i, line := edited(t, l)
	opt := VerifyOptions{Keys: []string{testKey.PublicKey()}}
	bracket := l.export(t, l.sign(t, 2), l.sign(t, 5), l.sign(t, n))
	for _, tt := range []struct {
		name        string
		export      []byte
		first, last int64
	}{
		{"AUD-01 edit between two checkpoints", bytes.Replace(bracket, l.lines[i], line, 1), 2, 4},
		{"AUD-01 edit with leaf hashes", bytes.Replace(l.exportLeaves(t, l.sign(t, n)), l.lines[i], line, 1), int64(i), int64(i)},
		{"AUD-01 delete", bytes.Replace(bracket, append(bytes.Clone(l.lines[4]), '\n'), nil, 1), 4, 4},
		{"AUD-06 a second spelling", bytes.Replace(bracket, []byte("looked at"), []byte(`looked\u0020at`), 1), int64(i), int64(i)},
		{"AUD-02 truncation", smaller(l, 5).export(t, l.sign(t, 5), l.sign(t, n)), 5, int64(n) - 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := verify(t, tt.export, opt)
			if !errors.Is(err, ErrFaulty) || r.FirstBad == nil {
				t.Fatalf("not detected: %v", err)
			}
			if r.FirstBad.Seq != tt.first || r.FirstBad.Last != tt.last {
				t.Errorf("named %v, want %d to %d\n%s", r.FirstBad, tt.first, tt.last, findings(r))
			}
		})
	}
}

func TestDeletingOneEntryIsOneFaultOfSequence(t *testing.T) {
	l := aDay(t)
	r, err := verify(t, bytes.Replace(l.export(t), append(bytes.Clone(l.lines[0]), '\n'), nil, 1), VerifyOptions{})
	if !errors.Is(err, ErrFaulty) || r.Faults != 2 || !strings.Contains(findings(r), "entry 0: is not in its place: entry 1 stands there") {
		t.Errorf("%v\n%s", err, findings(r))
	}
}

func TestFindingsAreBounded(t *testing.T) {
	junk := strings.Repeat("{}\n", 3*MaxFindings)
	r, err := Verify(strings.NewReader(junk), VerifyOptions{})
	if !errors.Is(err, ErrFaulty) || len(r.Findings) != MaxFindings || r.Faults <= MaxFindings {
		t.Errorf("%v, %d findings of %d", err, len(r.Findings), r.Faults)
	}
}

func TestVerifyLinesThatDoNotBelong(t *testing.T) {
	l := aDay(t)
	n := len(l.lines)
	plain, leaves := string(l.export(t, l.sign(t, 3), l.sign(t, n))), string(l.exportLeaves(t, l.sign(t, 3), l.sign(t, n)))
	cut := func(s, from, to string) string { // removes the line that starts with from
		a := strings.Index(s, "\n"+from) + 1
		return s[:a] + to + s[a+strings.Index(s[a:], "\n")+1:]
	}
	for _, tt := range []struct{ name, export, want string }{
		{"nothing", "", "cut off behind entry -1"},
		{"another file", "hello\n", "line 1: not the first line of an export"},
		{"no header", cut("\n"+plain, `{"format"`, "")[1:], "line 1: not the first line of an export"},
		{"half a line", plain[:len(plain)-1], "ends within a line"},
		{"no trailer", cut(plain, trailerPrefix, ""), "cut off"},
		{"another count", strings.Replace(plain, `,"entries":`, `,"entries":1`, 1), "the last line is not"},
		{"a line behind", plain + "{}\n", "a line behind the last one"},
		{"a line without end", strings.Replace(plain, "looked at it", strings.Repeat("x", MaxEntry), 1), "nothing behind it was read"},
		{"a checkpoint that is none", cut(plain, checkpointPrefix, `{"checkpoint":"x"}`+"\n"), "not a signed checkpoint of the log: malformed note"},
		{"a checkpoint spelled otherwise", strings.Replace(plain, checkpointPrefix+`"a`, checkpointPrefix+`"\u0061`, 1), "not a checkpoint line in canonical form"},
		{"a checkpoint that is a number", cut(plain, checkpointPrefix, checkpointPrefix+"1}\n"), "not a checkpoint line in canonical form"},
		{"a checkpoint too late", func() string {
			x := &testLog{lines: l.lines}
			c := string(checkpointLine(string(l.sign(t, 3)))) + "\n"
			return cut(string(x.export(t)), trailerPrefix, c+string(trailer(1, int64(n)))+"\n")
		}(), fmt.Sprintf("a checkpoint over 3 entries stands behind entry %d", n-1)},
		{"leaves unannounced", strings.Replace(leaves, headerLeaves, headerPlain, 1), "does not announce"},
		{"leaves missing", cut(leaves, leavesPrefix, ""), "the leaf hashes of 3 entries are missing"},
		{"leaves missing at the end", cut(string(l.exportLeaves(t)), leavesPrefix, ""), "the leaf hashes of 15 entries are missing"},
		{"leaves too few", cut(leaves, leavesPrefix, string(leavesLine(make([]Hash, 2)))+"\n"), "not the hashes of the 3 entries before it"},
		{"leaves not hashes", cut(leaves, leavesPrefix, leavesPrefix+`"`+strings.Repeat("!", 44)+`"]}`+"\n"), "not the hashes of the 3 entries before it"},
		{"leaves of others", cut(leaves, leavesPrefix, string(leavesLine(make([]Hash, 3)))+"\n"), "entry 2: does not have the hash that was kept for it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := Verify(strings.NewReader(tt.export), VerifyOptions{Keys: []string{testKey.PublicKey()}})
			if !errors.Is(err, ErrFaulty) || !strings.Contains(findings(r), tt.want) {
				t.Errorf("%v, want %q in\n%s", err, tt.want, findings(r))
			}
		})
	}
}

// AUD-08: the sequence is the order; a clock that lies is evidence, not a fault.
func TestAUD08TimeIsEvidenceOnly(t *testing.T) {
	l := new(testLog).add(t, asked())
	line, err := decided(raj, Approve).Entry(1, epochTime.AddDate(-1, 0, 0))
	if err != nil {
		t.Fatal(err)
	}
	l.addLine(line)
	r, err := verify(t, l.export(t), VerifyOptions{})
	if err != nil || r.TimeBack != 1 {
		t.Errorf("%v, went back %d times", err, r.TimeBack)
	}
}

// A later version's kinds are read and counted, not judged.
func TestKindsOfALaterVersion(t *testing.T) {
	l := new(testLog).add(t, asked())
	line, err := asked().Entry(1, epochTime)
	if err != nil {
		t.Fatal(err)
	}
	l.addLine(bytes.Replace(line, []byte(RequestAsked), []byte("request.sung"), 1))
	r, err := verify(t, l.export(t), VerifyOptions{})
	if err != nil || r.Unjudged != 1 {
		t.Errorf("%v, %d unjudged", err, r.Unjudged)
	}
}

type brokenReader struct{ after *bytes.Reader }

var errBroken = errors.New("the disk is gone")

func (b brokenReader) Read(p []byte) (int, error) {
	if b.after.Len() == 0 {
		return 0, errBroken
	}
	return b.after.Read(p)
}

func TestVerifySaysNothingWhenItCannotKnow(t *testing.T) {
	l := aDay(t)
	export := l.export(t)
	if _, err := Verify(brokenReader{bytes.NewReader(export[:400])}, VerifyOptions{}); !errors.Is(err, errBroken) || errors.Is(err, ErrFaulty) {
		t.Errorf("a broken reader: %v", err)
	}
	if _, err := verify(t, export, VerifyOptions{Keys: []string{"nonsense"}}); !errors.Is(err, ErrKey) {
		t.Errorf("a bad key: %v", err)
	}
	if _, err := verify(t, export, VerifyOptions{Trusted: [][]byte{[]byte("nonsense")}}); !errors.Is(err, ErrCheckpoint) {
		t.Errorf("a bad checkpoint: %v", err)
	}
}

func TestFaultSaysWhere(t *testing.T) {
	for want, f := range map[string]Fault{
		"x":                 {Seq: -1, What: "x"},
		"line 3: x":         {Seq: -1, Line: 3, What: "x"},
		"entry 5: x":        {Seq: 5, Last: 5, Line: 3, What: "x"},
		"entries 5 to 9: x": {Seq: 5, Last: 9, What: "x"},
	} {
		if got := f.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
