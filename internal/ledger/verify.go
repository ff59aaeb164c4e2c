package ledger

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"
)

// ErrFaulty means that the record is not what it should be; the [Report] says
// where. An auditor who looks only at the error is not misled.
var ErrFaulty = errors.New("ledger: the record is not intact")

// VerifyOptions is what the auditor brings along. Without keys and without
// checkpoints of their own, all that can be found is damage, not deceit:
// docs/ledger.md has the table.
type VerifyOptions struct {
	// Keys are verifier keys, had from elsewhere than the export. The newest that
	// the auditor knows is enough: the record leads from one key to the next. With
	// none, no signature is judged.
	Keys []string
	// Trusted are checkpoints that were kept out of the log's reach.
	Trusted [][]byte
}

// Fault is one thing that is wrong.
type Fault struct {
	Seq  int64  // the entry, -1 where none is meant
	Last int64  // the last entry it may be, where only a range can be named; else Seq
	Line int64  // of the export, counted from 1; 0 where none is meant
	What string // for people
}

// String says it in a line.
func (f Fault) String() string {
	switch {
	case f.Seq < 0 && f.Line == 0:
		return f.What
	case f.Seq < 0:
		return fmt.Sprintf("line %d: %s", f.Line, f.What)
	case f.Last > f.Seq:
		return fmt.Sprintf("entries %d to %d: %s", f.Seq, f.Last, f.What)
	}
	return fmt.Sprintf("entry %d: %s", f.Seq, f.What)
}

// Report is what [Verify] found.
type Report struct {
	Entries     int64        // read
	Root        Hash         // over them, recomputed
	FirstBad    *Fault       // the fault of the lowest entry, else the first one; nil when there is none
	Findings    []Fault      // in the order found, at most [MaxFindings]
	Faults      int64        // how many there were
	Checkpoints []Checkpoint // of the export and of the auditor, with the root that was recomputed and, where keys were given, signed by the one in force

	Signed   int64 // entries under a checkpoint that a key of the log signed
	Anchored int64 // entries under a checkpoint that the auditor kept
	Waiting  int64 // requests that did not end
	InDoubt  int64 // requests whose outcome nobody knows
	Unjudged int64 // entries of kinds that this version does not know
	TimeBack int64 // entries older than the one before: evidence of a clock that was set, not a fault
}

// MaxFindings bounds how many faults a report lists.
const MaxFindings = 100

// Verify reads an export to its end and checks all that can be checked offline:
// every line's form, the sequence, every request's story, the tree against the
// checkpoints of the export and of the auditor, and who signed them. The error
// wraps [ErrFaulty] when something is wrong with the record; any other error
// means that nothing can be said. Memory grows with the number of requests.
func Verify(export io.Reader, opt VerifyOptions) (Report, error) {
	v := verifier{in: bufio.NewReaderSize(export, maxLine), before: -1}
	if err := v.prepare(opt); err != nil {
		return Report{}, err
	}
	if err := v.read(); err != nil {
		return Report{}, err
	}
	v.rep.Entries, v.rep.Root = v.tree.Size(), v.tree.Root()
	v.judgeHeads(opt.Keys)
	v.rep.Waiting, v.rep.InDoubt = v.stories.open()
	if v.rep.FirstBad != nil {
		return v.rep, fmt.Errorf("%w: %s", ErrFaulty, v.rep.FirstBad)
	}
	return v.rep, nil
}

// verifier is one run of Verify.
type verifier struct {
	in      *bufio.Reader
	line    int64 // number of the line being read
	rep     Report
	stories stories
	tree    Frontier
	stored  []Hash // memory for what the tree says to store
	next    int64  // number that belongs where the next entry stands
	before  int64  // number of the entry before
	last    time.Time
	damaged []int64    // entries that are not what was recorded, some
	leaves  *leafCheck // nil when the export has no leaf hashes
	ahead   []*head    // the auditor's, by size, not reached yet
	heads   []*head    // all
	turns   []turn     // changes of the key
	inside  int        // checkpoints in the export
	done    bool       // the trailer was read
}

func (v *verifier) fault(seq int64, format string, args ...any) {
	v.report(Fault{Seq: seq, Last: seq, Line: v.line, What: fmt.Sprintf(format, args...)})
}

// damage is a fault that shows that the entry is not the one which was recorded.
func (v *verifier) damage(seq int64, format string, args ...any) {
	v.fault(seq, format, args...)
	if len(v.damaged) < MaxFindings {
		v.damaged = append(v.damaged, seq)
	}
}

// suspects returns which of the entries from first to last a wrong root is due
// to: a damaged one if there is one, else any.
func (v *verifier) suspects(first, last int64) (int64, int64) {
	found := int64(-1)
	for _, seq := range v.damaged {
		if first <= seq && seq <= last && (found < 0 || seq < found) {
			found = seq
		}
	}
	if found >= 0 {
		return found, found
	}
	return first, max(first, last)
}

func (v *verifier) report(f Fault) {
	v.rep.Faults++
	if len(v.rep.Findings) < MaxFindings {
		v.rep.Findings = append(v.rep.Findings, f)
	}
	first := v.rep.FirstBad
	if first == nil || f.Seq >= 0 && (first.Seq < 0 || f.Seq < first.Seq) {
		v.rep.FirstBad = &f
	}
}

// read takes all lines. It errs only when the reader does.
func (v *verifier) read() error {
	for {
		line, err := v.in.ReadSlice('\n')
		v.line++
		switch {
		case err == nil:
			v.take(line[:len(line)-1])
			continue
		case errors.Is(err, bufio.ErrBufferFull):
			v.fault(v.next, "a line of more than %d bytes; nothing behind it was read", MaxEntry)
		case !errors.Is(err, io.EOF):
			return fmt.Errorf("ledger: read the export, line %d: %w", v.line, err)
		case len(line) > 0:
			v.fault(v.next, "the export ends within a line")
		case !v.done:
			v.fault(-1, "the export ends without its last line: it was cut off behind entry %d", v.tree.Size()-1)
		}
		return nil
	}
}

func (v *verifier) take(line []byte) {
	switch {
	case v.line == 1 && v.header(line):
	case v.done:
		v.fault(-1, "a line behind the last one")
	case bytes.HasPrefix(line, []byte(checkpointPrefix)):
		v.checkpoint(line)
	case bytes.HasPrefix(line, []byte(leavesPrefix)):
		v.leafLine(line)
	case bytes.HasPrefix(line, []byte(trailerPrefix)):
		v.trailer(line)
	default:
		v.entry(line)
	}
}

// header takes the first line, and reports false when it may be another line
// because the first one is gone.
func (v *verifier) header(line []byte) bool {
	v.reach()
	switch string(line) {
	case headerPlain:
		return true
	case headerLeaves:
		v.leaves = new(leafCheck)
		return true
	}
	v.fault(-1, "not the first line of an export")
	return !bytes.HasPrefix(line, []byte(entryPrefix))
}

func (v *verifier) trailer(line []byte) {
	v.done = true
	v.leavesComplete()
	if want := trailer(v.inside, v.tree.Size()); !bytes.Equal(line, want) {
		v.fault(-1, "the last line is not %s, which is what was read", want)
	}
}

// entry takes any line that claims to be nothing else.
func (v *verifier) entry(line []byte) {
	e, err := ParseEntry(line)
	switch {
	case err != nil:
		v.damage(v.next, "%v", err)
		e.Seq = v.next
	case e.Seq == v.next:
	case e.Seq == v.before+1:
		v.next = e.Seq // behind a gap that was reported
	default:
		v.damage(v.next, "is not in its place: entry %d stands there", e.Seq)
	}
	v.before, v.next = e.Seq, v.next+1
	if err == nil {
		v.content(e)
	}
	leaf := LeafHash(line)
	if v.leaves != nil {
		v.leaves.got = append(v.leaves.got, leaf)
	}
	v.stored = v.tree.appendLeaf(v.stored[:0], leaf)
	v.reach()
}

func (v *verifier) content(e Entry) {
	if wrong := v.stories.tell(e); wrong != "" {
		v.fault(e.Seq, "%q: %s", e.Subject, wrong)
	}
	if !e.Kind.Known() {
		v.rep.Unjudged++
	}
	if e.Time.Before(v.last) {
		v.rep.TimeBack++
	}
	v.last = e.Time
	if e.Kind == LedgerKeyRotated {
		v.turn(e)
	}
}

// checkpoint takes a line with a signed head; who signed is judged at the end,
// when every change of the key is known.
func (v *verifier) checkpoint(line []byte) {
	v.inside++
	c := cursor{rest: line}
	c.literal(checkpointPrefix)
	text := c.text()
	c.literal("}")
	if c.bad || len(c.rest) > 0 || !bytes.Equal(checkpointLine(text), line) {
		v.fault(-1, "not a checkpoint line in canonical form")
		return
	}
	h := &head{line: v.line}
	var err error
	if h.Checkpoint, _, err = readCheckpoint([]byte(text), nil); err != nil {
		v.fault(-1, "%v", err)
		return
	}
	h.met(&v.tree)
	if h.Size < v.tree.Size() {
		v.fault(-1, "a checkpoint over %d entries stands behind entry %d", h.Size, v.tree.Size()-1)
	}
	v.leavesComplete()
	v.heads = append(v.heads, h)
}

// reach compares the auditor's own checkpoints when the tree has their size.
func (v *verifier) reach() {
	for len(v.ahead) > 0 && v.ahead[0].Size == v.tree.Size() {
		v.ahead[0].met(&v.tree)
		v.ahead = v.ahead[1:]
	}
}
