package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ayegate/ayegate/internal/strictjson"
)

// ActorKind is the class of an actor. The zero value is none: an event without
// one is refused.
type ActorKind string

// Classes of actors.
const (
	Human  ActorKind = "human"  // may decide, never asks
	Agent  ActorKind = "agent"  // may ask, never decides
	System ActorKind = "system" // ayegate itself: deadlines, restarts, executions
)

// Actor is who did it, from a verified credential.
type Actor struct {
	Kind ActorKind
	ID   string // stable subject: "user:ana", "release-bot"; may be empty for System only
	Via  string // credential kind: "session", "token", "passkey", "key", "embedded"; may be empty
}

// Event is one fact to record. The zero value is no event.
type Event struct {
	Kind    Kind
	Subject string  // id of what it is about: a request, a key, "server.tool"
	Actor   Actor   // who did it
	Data    []Field // small facts, in any order; each name once
}

// IsZero reports whether there is no event: a move that changed nothing.
func (e Event) IsZero() bool {
	return e.Kind == "" && e.Subject == "" && e.Actor == Actor{} && len(e.Data) == 0
}

// Field is one fact of an event.
type Field struct {
	Name  string // lower-case letters, digits and underscores
	Value any    // string, int, int64, bool, []string or Raw
}

// Raw is a value in canonical JSON already.
type Raw []byte

// String is a field that holds text. Bytes that are not UTF-8 are recorded as
// U+FFFD: the words of a tool must never keep its outcome off the record.
func String(name, v string) Field { return Field{name, v} }

// Int is a field that holds an integer of at most 2^53-1 in size.
func Int(name string, v int64) Field { return Field{name, v} }

// Bool is a field that holds true or false.
func Bool(name string, v bool) Field { return Field{name, v} }

// Strings is a field that holds a list of texts, like [String].
func Strings(name string, v []string) Field { return Field{name, v} }

// ErrEvent means that an event cannot be recorded as it is: a mistake in the
// program, and a refusal of the change that the event belongs to.
var ErrEvent = errors.New("ledger: the event cannot be recorded")

// MaxEntry bounds the bytes of one entry.
const MaxEntry = 64 << 10

// Entry returns the canonical line of the event as number seq of the log: what is
// hashed, stored and exported. It has no newline, inside or at its end.
func (e Event) Entry(seq int64, at time.Time) ([]byte, error) {
	if err := e.check(seq, at); err != nil {
		return nil, err
	}
	b := make([]byte, 0, e.length())
	b = append(b, `{"actor":{"id":`...)
	b = strictjson.AppendString(b, e.Actor.ID)
	b = append(b, `,"kind":`...)
	b = strictjson.AppendString(b, string(e.Actor.Kind))
	b = append(b, `,"via":`...)
	b = strictjson.AppendString(b, e.Actor.Via)
	b = append(b, `},"data":`...)
	b, err := appendData(b, e.Data)
	if err != nil {
		return nil, err
	}
	b = append(b, `,"kind":`...)
	b = strictjson.AppendString(b, string(e.Kind))
	b = append(b, `,"seq":`...)
	b = strconv.AppendInt(b, seq, 10)
	b = append(b, `,"subject":`...)
	b = strictjson.AppendString(b, e.Subject)
	b = append(b, `,"time":"`...)
	b = at.UTC().AppendFormat(b, time.RFC3339Nano)
	b = append(b, `","v":1}`...)
	if len(b) > MaxEntry {
		return nil, fmt.Errorf("%w: %s of %d bytes, %d are the limit", ErrEvent, e.Kind, len(b), MaxEntry)
	}
	return b, nil
}

// length is about what the line will need, so that it is set aside once.
func (e Event) length() int {
	n := 192 + len(e.Subject) + len(e.Actor.ID)
	for _, f := range e.Data {
		n += len(f.Name) + 12
		switch v := f.Value.(type) {
		case string:
			n += len(v)
		case Raw:
			n += len(v)
		case []string:
			for _, s := range v {
				n += len(s) + 3
			}
		}
	}
	return n
}

// check refuses what would not read back as it was meant.
func (e Event) check(seq int64, at time.Time) error {
	switch {
	case !e.Kind.Known():
		return fmt.Errorf("%w: kind %q is not in the list", ErrEvent, e.Kind)
	case seq < 0 || seq > MaxSize:
		return fmt.Errorf("%w: number %d", ErrEvent, seq)
	case at.IsZero() || at.UTC().Year() < 1 || at.UTC().Year() > 9999:
		return fmt.Errorf("%w: %s without a time", ErrEvent, e.Kind)
	}
	return checkWho(e.Kind, e.Subject, e.Actor)
}

// checkWho holds for every entry, whoever wrote it.
func checkWho(k Kind, subject string, a Actor) error {
	switch {
	case a.Kind != Human && a.Kind != Agent && a.Kind != System:
		return fmt.Errorf("%w: %s by a %q, who is neither human nor agent nor system", ErrEvent, k, a.Kind)
	case a.ID == "" && a.Kind != System:
		return fmt.Errorf("%w: %s by a nameless %s", ErrEvent, k, a.Kind)
	case subject == "" && k.ofRequest():
		return fmt.Errorf("%w: %s of no request", ErrEvent, k)
	case !utf8.ValidString(subject) || !utf8.ValidString(a.ID) || !utf8.ValidString(a.Via):
		return fmt.Errorf("%w: %s with a name that is not UTF-8", ErrEvent, k)
	}
	return nil
}

func appendData(b []byte, data []Field) ([]byte, error) {
	byName := func(x, y Field) int { return strings.Compare(x.Name, y.Name) }
	if !slices.IsSortedFunc(data, byName) {
		var stack [24]Field // more than an event of ours has
		data = append(stack[:0], data...)
		slices.SortFunc(data, byName)
	}
	b = append(b, '{')
	for i, f := range data {
		if !plainName(f.Name) {
			return nil, fmt.Errorf("%w: field name %q", ErrEvent, f.Name)
		}
		if i > 0 {
			if data[i-1].Name == f.Name {
				return nil, fmt.Errorf("%w: field %s twice", ErrEvent, f.Name)
			}
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), f.Name...), '"', ':')
		var err error
		if b, err = appendValue(b, f); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

func appendValue(b []byte, f Field) ([]byte, error) {
	switch v := f.Value.(type) {
	case string:
		if v == "" && (f.Name == FieldCall || f.Name == FieldDigest) {
			return nil, fmt.Errorf("%w: no commitment in field %s", ErrEvent, f.Name)
		}
		return strictjson.AppendString(b, v), nil
	case bool:
		return strconv.AppendBool(b, v), nil
	case int:
		return appendInt(b, f.Name, int64(v))
	case int64:
		return appendInt(b, f.Name, v)
	case []string:
		b = append(b, '[')
		for i, s := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = strictjson.AppendString(b, s)
		}
		return append(b, ']'), nil
	case Raw:
		canon, err := strictjson.Canonical(nil, v, strictjson.Limits{})
		if err != nil || !bytes.Equal(canon, v) {
			return nil, fmt.Errorf("%w: field %s is not canonical JSON", ErrEvent, f.Name)
		}
		return append(b, v...), nil
	}
	return nil, fmt.Errorf("%w: field %s holds a %T", ErrEvent, f.Name, f.Value)
}

func appendInt(b []byte, name string, v int64) ([]byte, error) {
	if v > MaxSize || v < -MaxSize {
		return nil, fmt.Errorf("%w: field %s is %d, more than every reader holds exactly", ErrEvent, name, v)
	}
	return strconv.AppendInt(b, v, 10), nil
}

// plainName holds for names whose order as bytes is their canonical order.
func plainName(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return s != ""
}
