package mcp

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"time"
	"unicode/utf8"
)

// Event is one server-sent event (HTML Standard, section 9.2.6).
type Event struct {
	Name  string        // "event" field; empty means "message"
	ID    string        // "id" field; empty when the event has none
	Data  []byte        // "data" lines joined by LF; empty on an event that only carries an id
	Retry time.Duration // "retry" field; 0 when absent
}

// ErrEventTooLarge says that an event was larger than the reader allows.
var ErrEventTooLarge = errors.New("a server-sent event is larger than the limit")

// AppendEvent appends e as it goes over the wire. Data is a JSON message or
// empty. Whatever e holds, the result is exactly one event: a line break in Data
// goes, and one in Name or ID takes the rest of that field with it.
func AppendEvent(dst []byte, e Event) []byte {
	if e.Name != "" {
		dst = append(dst, "event: "...)
		dst = append(dst, firstLine(e.Name)...)
		dst = append(dst, '\n')
	}
	if e.ID != "" {
		dst = append(dst, "id: "...)
		dst = append(dst, firstLine(e.ID)...)
		dst = append(dst, '\n')
	}
	if e.Retry > 0 {
		dst = append(dst, "retry: "...)
		dst = strconv.AppendInt(dst, e.Retry.Milliseconds(), 10)
		dst = append(dst, '\n')
	}
	dst = append(dst, "data: "...)
	dst = appendOneLine(dst, e.Data)
	return append(dst, '\n', '\n')
}

// keepAlive is a comment: it keeps proxies from closing an idle stream and is no
// event.
var keepAlive = []byte(": keep-alive\n\n")

func firstLine(s string) string {
	for i := range len(s) {
		if s[i] == '\n' || s[i] == '\r' || s[i] == 0 {
			return s[:i]
		}
	}
	return s
}

// Events reads server-sent events. It accepts what the standard accepts: LF, CR
// and CR LF as line ends, comments, a byte order mark, fields without a colon.
// An event that the stream ends in the middle of is dropped.
type Events struct {
	r      io.Reader
	max    int
	buf    []byte // buf[at:] is read and not yet consumed
	at     int
	skipLF bool // the last line ended in CR: an LF that follows belongs to it
	begun  bool
	err    error
}

// NewEvents returns a reader of events of at most max bytes each, with their field
// names and without comments. No line may be longer either.
func NewEvents(r io.Reader, max int) *Events {
	return &Events{r: r, max: max}
}

// Next returns the next event that carries data, an id, a name or a retry time,
// in memory of its own. It returns io.EOF at the end of the stream.
func (s *Events) Next() (Event, error) {
	var e Event
	var size int
	var begun, data bool
	for {
		line, err := s.line()
		switch {
		case err != nil:
			return Event{}, err
		case len(line) == 0 && begun:
			return e, nil
		case len(line) == 0 || line[0] == ':':
			continue
		}
		if size += len(line); size > s.max {
			return Event{}, ErrEventTooLarge
		}
		field, value := cutField(line)
		if field == "data" && data {
			e.Data = append(e.Data, '\n')
		}
		data = data || field == "data"
		begun = e.set(field, value) || begun
	}
}

// set takes the value of a field, and reports whether it means anything.
func (e *Event) set(field string, value []byte) bool {
	switch field {
	case "data":
		e.Data = append(e.Data, value...)
	case "event":
		e.Name = string(value)
	case "id":
		if bytes.IndexByte(value, 0) >= 0 {
			return false
		}
		e.ID = string(value)
	case "retry":
		ms, ok := digits(value)
		if !ok {
			return false
		}
		e.Retry = time.Duration(ms) * time.Millisecond
	default:
		return false
	}
	return true
}

func cutField(line []byte) (field string, value []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	if len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	return string(name), value
}

// digits reads a number of at most nine ASCII digits: a retry time of more than
// eleven days is no retry time.
func digits(b []byte) (int64, bool) {
	if len(b) == 0 || len(b) > 9 {
		return 0, false
	}
	var n int64
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

// line returns the next line without its end. It aliases the buffer and is valid
// until the next call.
func (s *Events) line() ([]byte, error) {
	scanned := 0
	for {
		if s.skipLF && s.at < len(s.buf) {
			s.skipLF = false
			if s.buf[s.at] == '\n' {
				s.at++
			}
		}
		rest := s.buf[s.at:]
		if i := bytes.IndexAny(rest[scanned:], "\r\n"); i >= 0 {
			i += scanned
			if i > s.max {
				return nil, ErrEventTooLarge
			}
			s.skipLF = rest[i] == '\r'
			s.at += i + 1
			return s.withoutMark(rest[:i]), nil
		}
		scanned = len(rest)
		if scanned > s.max {
			return nil, ErrEventTooLarge
		}
		if err := s.fill(); err != nil {
			return nil, err
		}
	}
}

// withoutMark takes a byte order mark off the first line of the stream.
func (s *Events) withoutMark(line []byte) []byte {
	if s.begun {
		return line
	}
	s.begun = true
	if r, n := utf8.DecodeRune(line); r == '\uFEFF' && n == 3 {
		return line[n:]
	}
	return line
}

// fill reads more, moving what is not consumed to the front first.
func (s *Events) fill() error {
	if s.err != nil {
		return s.err
	}
	if s.at > 0 {
		s.buf = append(s.buf[:0], s.buf[s.at:]...)
		s.at = 0
	}
	if cap(s.buf)-len(s.buf) < 1024 {
		s.buf = append(make([]byte, 0, max(4096, 2*cap(s.buf))), s.buf...)
	}
	for range maxEmptyReads {
		n, err := s.r.Read(s.buf[len(s.buf):cap(s.buf)])
		s.buf = s.buf[:len(s.buf)+n]
		s.err = err
		if n > 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
	s.err = io.ErrNoProgress
	return s.err
}

// maxEmptyReads is how often a reader may return nothing without an error.
const maxEmptyReads = 100
