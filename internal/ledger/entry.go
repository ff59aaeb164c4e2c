package ledger

import (
	"errors"
	"time"
)

// ErrEntry means that a line is not an entry in its canonical form.
var ErrEntry = errors.New("ledger: not a canonical entry")

// Entry is a line of the record, read back.
type Entry struct {
	Seq     int64
	Time    time.Time // evidence only: the order is the sequence
	Kind    Kind
	Subject string
	Actor   Actor
	Data    Raw // a canonical JSON object
}

// ParseEntry reads a line and refuses any that is not, byte for byte, what
// [Event.Entry] writes for what the line says.
func ParseEntry(line []byte) (Entry, error) {
	return Entry{}, ErrEntry
}

// Text returns the string field name of the data, and whether there is one.
func (e Entry) Text(name string) (string, bool) { return "", false }
