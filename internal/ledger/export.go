package ledger

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"

	"github.com/ayegate/ayegate/internal/strictjson"
)

// The lines of an export, apart from the entries. See docs/ledger.md.
const (
	headerPlain  = `{"format":"ayegate.ledger","leaves":false,"v":1}`
	headerLeaves = `{"format":"ayegate.ledger","leaves":true,"v":1}`

	entryPrefix      = `{"actor":`
	checkpointPrefix = `{"checkpoint":`
	leavesPrefix     = `{"leaves":[`
	trailerPrefix    = `{"checkpoints":`
)

// leafBlock is how many leaf hashes stand on one line.
const leafBlock = 1024

// maxLine bounds a line of an export, its newline included.
const maxLine = MaxEntry + 1

// ErrExport means that what was given cannot be written as an export.
var ErrExport = errors.New("ledger: cannot export")

// WriteExport writes the whole record for [Verify]: a header, the entries exactly
// as they are stored, each checkpoint behind the last entry it covers, a trailer.
// The checkpoints may come in any order; one that covers more than there are
// entries is written all the same, for it is evidence.
func WriteExport(w io.Writer, entries iter.Seq2[[]byte, error], checkpoints ...[]byte) error {
	return export(w, entries, nil, checkpoints)
}

// WriteExportLeaves is [WriteExport] with the leaf hashes that the store kept, so
// that whoever verifies can name an entry that was edited without its hash.
func WriteExportLeaves(w io.Writer, entries iter.Seq2[[]byte, error], stored HashReader, checkpoints ...[]byte) error {
	return export(w, entries, stored, checkpoints)
}

func export(w io.Writer, entries iter.Seq2[[]byte, error], stored HashReader, checkpoints [][]byte) error {
	heads, err := bySize(checkpoints)
	if err != nil {
		return err
	}
	x := exporter{w: bufio.NewWriterSize(w, 64<<10), stored: stored, heads: heads}
	x.line(x.header())
	for len(x.heads) > 0 && x.heads[0].Size == 0 {
		x.checkpoint()
	}
	for entry, err := range entries {
		if err != nil {
			return fmt.Errorf("ledger: read entry %d for export: %w", x.size, err)
		}
		if len(entry) == 0 || len(entry) >= maxLine || bytes.IndexByte(entry, '\n') >= 0 {
			return fmt.Errorf("%w: entry %d is not one line of at most %d bytes", ErrExport, x.size, MaxEntry)
		}
		x.line(entry)
		x.size++
		if err := x.behind(); err != nil {
			return err
		}
	}
	return x.end(len(checkpoints))
}

// bySize reads the heads of checkpoints, unverified, and sorts them.
func bySize(checkpoints [][]byte) ([]Checkpoint, error) {
	heads := make([]Checkpoint, 0, len(checkpoints))
	for i, text := range checkpoints {
		c, _, err := readCheckpoint(text, nil)
		if err != nil {
			return nil, fmt.Errorf("%w: checkpoint %d of %d: %w", ErrExport, i+1, len(checkpoints), err)
		}
		heads = append(heads, c)
	}
	slices.SortStableFunc(heads, func(a, b Checkpoint) int { return cmp.Compare(a.Size, b.Size) })
	return heads, nil
}

// exporter writes lines; the first error of w stays in its buffer until the end.
type exporter struct {
	w      *bufio.Writer
	stored HashReader
	heads  []Checkpoint // still to be written
	size   int64        // entries written
	leaves int64        // entries whose leaf hash is written
}

func (x *exporter) header() []byte {
	if x.stored == nil {
		return []byte(headerPlain)
	}
	return []byte(headerLeaves)
}

func (x *exporter) line(b []byte) {
	_, _ = x.w.Write(b) // a bufio.Writer keeps its first error for Flush
	_ = x.w.WriteByte('\n')
}

// behind writes what stands behind the last entry.
func (x *exporter) behind() error {
	due := len(x.heads) > 0 && x.heads[0].Size == x.size
	if due || x.size-x.leaves == leafBlock {
		if err := x.leafLine(); err != nil {
			return err
		}
	}
	for len(x.heads) > 0 && x.heads[0].Size == x.size {
		x.checkpoint()
	}
	return nil
}

func (x *exporter) checkpoint() {
	x.line(checkpointLine(string(x.heads[0].Text)))
	x.heads = x.heads[1:]
}

func (x *exporter) leafLine() error {
	if x.stored == nil || x.leaves == x.size {
		return nil
	}
	positions := make([]int64, 0, x.size-x.leaves)
	for seq := x.leaves; seq < x.size; seq++ {
		positions = append(positions, Position(seq))
	}
	hashes, err := x.stored.ReadHashes(positions)
	if err != nil {
		return fmt.Errorf("ledger: read leaf hashes from %d for export: %w", x.leaves, err)
	}
	if len(hashes) != len(positions) {
		return fmt.Errorf("%w: %d hashes asked for, %d read", ErrTree, len(positions), len(hashes))
	}
	x.line(leavesLine(hashes))
	x.leaves = x.size
	return nil
}

func (x *exporter) end(checkpoints int) error {
	if err := x.leafLine(); err != nil {
		return err
	}
	for len(x.heads) > 0 {
		x.checkpoint()
	}
	x.line(trailer(checkpoints, x.size))
	if err := x.w.Flush(); err != nil {
		return fmt.Errorf("ledger: write the export: %w", err)
	}
	return nil
}

func checkpointLine(text string) []byte {
	return append(strictjson.AppendString([]byte(checkpointPrefix), text), '}')
}

func trailer(checkpoints int, entries int64) []byte {
	b := append([]byte(nil), trailerPrefix...)
	b = strconv.AppendInt(b, int64(checkpoints), 10)
	b = append(b, `,"entries":`...)
	b = strconv.AppendInt(b, entries, 10)
	return append(b, '}')
}
