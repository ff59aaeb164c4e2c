package ledger

import (
	"bytes"
	"strconv"

	"github.com/ayegate/ayegate/internal/strictjson"
)

// cursor walks a document that strictjson has found to be canonical: there is one
// spelling of everything, so the shape can be compared as bytes. The first thing
// that does not fit makes it bad, and all that follows is empty.
type cursor struct {
	rest []byte
	bad  bool
}

// take moves over n bytes; a negative n is a misfit.
func (c *cursor) take(n int) []byte {
	if c.bad || n < 0 || n > len(c.rest) {
		c.bad, c.rest = true, nil
		return nil
	}
	b := c.rest[:n:n]
	c.rest = c.rest[n:]
	return b
}

func (c *cursor) literal(s string) {
	if string(c.take(len(s))) != s {
		c.bad = true
	}
}

// value moves over the next value and returns its bytes.
func (c *cursor) value() []byte { return c.take(valueEnd(c.rest)) }

func (c *cursor) text() string {
	s, ok := textOf(c.value())
	c.bad = c.bad || !ok
	return s
}

func (c *cursor) integer() int64 {
	n, err := strconv.ParseInt(string(c.value()), 10, 64)
	c.bad = c.bad || err != nil
	return n
}

func (c *cursor) object() []byte {
	v := c.value()
	c.bad = c.bad || len(v) == 0 || v[0] != '{'
	return v
}

// member moves over a member of an object from its opening brace on, and reports
// whether there was one.
func (c *cursor) member() (name, value []byte, ok bool) {
	if c.bad || len(c.rest) < 2 || c.rest[0] == '}' || c.rest[1] == '}' {
		return nil, nil, false
	}
	c.take(1) // the brace or the comma
	name = c.value()
	c.literal(":")
	value = c.value()
	return name, value, !c.bad
}

// valueEnd returns where the value at the start of b ends, -1 if nowhere.
func valueEnd(b []byte) int {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			n := textEnd(b[i:])
			if n < 0 {
				return -1
			}
			i += n - 1
		case '{', '[':
			depth++
			continue
		case '}', ']':
			if depth == 0 {
				return i // behind a number or a word
			}
			depth--
		case ',':
			if depth == 0 {
				return i
			}
			continue
		default:
			continue
		}
		if depth == 0 {
			return i + 1
		}
	}
	if depth > 0 {
		return -1
	}
	return len(b)
}

// textEnd returns where the string at the start of b ends, -1 if nowhere.
func textEnd(b []byte) int {
	if n := bytes.IndexByte(b[1:], '"'); n >= 0 && bytes.IndexByte(b[1:1+n], '\\') < 0 {
		return n + 2 // the usual case: nothing escaped
	}
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}

// textOf decodes a string value, and reports whether it is one.
func textOf(v []byte) (string, bool) {
	if len(v) < 2 || v[0] != '"' {
		return "", false
	}
	if bytes.IndexByte(v, '\\') < 0 {
		return string(v[1 : len(v)-1]), true
	}
	s, err := strictjson.String(v)
	return s, err == nil
}
