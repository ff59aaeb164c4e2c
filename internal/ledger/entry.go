package ledger

import (
	"errors"
	"fmt"
	"time"

	"github.com/ayegate/ayegate/internal/strictjson"
)

// ErrEntry means that a line is not an entry in its canonical form.
var ErrEntry = errors.New("ledger: not an entry in canonical form")

// Entry is a line of the record, read back.
type Entry struct {
	Seq     int64
	Time    time.Time // evidence only: the order is the sequence
	Kind    Kind      // may be one that this version does not know
	Subject string
	Actor   Actor
	Data    Raw // a canonical JSON object, sharing the line's memory
}

// Text returns the string in a field of the data, and whether there is one.
func (e Entry) Text(name string) (string, bool) {
	if v, ok := strictjson.Get(e.Data, name); ok {
		s, err := strictjson.String(v)
		return s, err == nil
	}
	return "", false
}

// Int returns the integer in a field of the data, and whether there is one.
func (e Entry) Int(name string) (int64, bool) {
	if v, ok := strictjson.Get(e.Data, name); ok {
		n, err := strictjson.Int(v)
		return n, err == nil
	}
	return 0, false
}

// Bool reports whether a field of the data is true.
func (e Entry) Bool(name string) bool {
	v, ok := strictjson.Get(e.Data, name)
	return ok && string(v) == "true"
}

// entryLimits bound a line before anything is believed of it.
var entryLimits = strictjson.Limits{Bytes: MaxEntry, Depth: 16, Nodes: 10_000}

// ParseEntry reads a line. It refuses every line that is not, byte for byte, the
// one that [Event.Entry] writes for what the line says: a second spelling of an
// entry is a forgery or a fault. The errors wrap [ErrEntry].
func ParseEntry(line []byte) (Entry, error) {
	switch canonical, err := strictjson.IsCanonical(line, entryLimits); {
	case err != nil:
		return Entry{}, fmt.Errorf("%w: %w", ErrEntry, err)
	case !canonical:
		return Entry{}, fmt.Errorf("%w: valid JSON, but spelled another way", ErrEntry)
	}
	c := cursor{rest: line}
	var e Entry
	c.literal(`{"actor":{"id":`)
	e.Actor.ID = c.text()
	c.literal(`,"kind":`)
	e.Actor.Kind = ActorKind(c.text())
	c.literal(`,"via":`)
	e.Actor.Via = c.text()
	c.literal(`},"data":`)
	e.Data = c.object()
	c.literal(`,"kind":`)
	e.Kind = Kind(c.text())
	c.literal(`,"seq":`)
	e.Seq = c.integer()
	c.literal(`,"subject":`)
	e.Subject = c.text()
	c.literal(`,"time":`)
	stamp := c.text()
	c.literal(`,"v":1}`)
	if c.bad {
		return Entry{}, fmt.Errorf("%w: members are missing, unknown or of the wrong type", ErrEntry)
	}
	var err error
	if e.Time, err = parseTime(stamp); err != nil {
		return Entry{}, fmt.Errorf("%w: %w", ErrEntry, err)
	}
	return e, e.check()
}

// check refuses, in an entry whose bytes are right, what an event may not say.
func (e Entry) check() error {
	if !e.Kind.wellFormed() || e.Seq < 0 || e.Seq > MaxSize || e.Time.Year() < 1 {
		return fmt.Errorf("%w: kind %q, number %d, time %v", ErrEntry, e.Kind, e.Seq, e.Time)
	}
	if err := checkWho(e.Kind, e.Subject, e.Actor); err != nil {
		return fmt.Errorf("%w: %w", ErrEntry, err)
	}
	fields := cursor{rest: e.Data}
	for {
		name, _, ok := fields.member()
		if !ok {
			return nil
		}
		if !plainName(string(name[1 : len(name)-1])) {
			return fmt.Errorf("%w: field name %s", ErrEntry, name)
		}
	}
}
