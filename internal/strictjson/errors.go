package strictjson

import (
	"slices"
	"strconv"
	"strings"
)

// Code names a fault. The strings are stable: they appear in logs, in answers to callers and in the published vectors.
// A Code is an error, so that errors.Is(err, strictjson.DuplicateKey) asks for the kind of fault.
type Code string

// The faults of a document.
const (
	Syntax          Code = "syntax"           // not JSON by RFC 8259
	DuplicateKey    Code = "duplicate_key"    // a member name occurs twice in one object
	BadUTF8         Code = "bad_utf8"         // a string is not valid UTF-8
	LoneSurrogate   Code = "lone_surrogate"   // an escape names half of a surrogate pair
	NULInName       Code = "nul_in_name"      // a member name contains U+0000
	NumberOverflow  Code = "number_overflow"  // beyond the largest double, or beyond the integer type asked for
	NumberUnderflow Code = "number_underflow" // closer to zero than 1e-9999, but not zero
	TooDeep         Code = "too_deep"         // nested deeper than Limits.Depth
	TooLarge        Code = "too_large"        // longer than Limits.Bytes, as sent or in canonical form
	TooManyValues   Code = "too_many_values"  // more values than Limits.Nodes
	TrailingData    Code = "trailing_data"    // something follows the document
	BOM             Code = "bom"              // starts with a byte order mark
)

// The faults of a valid document that is not the one asked for.
const (
	WrongType      Code = "wrong_type"       // another kind of value than asked for
	UnknownMember  Code = "unknown_member"   // a member that the target does not know
	MissingMember  Code = "missing_member"   // a required member or an array element is absent
	NumberNotExact Code = "number_not_exact" // the number would be rounded to fit the target
	BadValue       Code = "bad_value"        // the target's type refuses the text, such as a malformed duration
	BadTarget      Code = "bad_target"       // the Go value cannot be decoded into: a mistake of the program, not of the document
)

// Error returns the code itself.
func (c Code) Error() string { return string(c) }

// says is what a person reads about the code.
func (c Code) says() string {
	switch c {
	case DuplicateKey:
		return "member name given twice"
	case BadUTF8:
		return "not valid UTF-8"
	case LoneSurrogate:
		return "escape of half a surrogate pair"
	case NULInName:
		return "NUL in a member name"
	case NumberOverflow:
		return "number out of range"
	case NumberUnderflow:
		return "number too close to zero"
	case TooDeep:
		return "nested too deeply"
	case TooLarge:
		return "document too large"
	case TooManyValues:
		return "too many values"
	case TrailingData:
		return "data after the document"
	case BOM:
		return "starts with a byte order mark"
	case WrongType:
		return "wrong type"
	case UnknownMember:
		return "unknown member"
	case MissingMember:
		return "missing"
	case NumberNotExact:
		return "number would be rounded"
	case BadValue:
		return "value not understood"
	case BadTarget:
		return "cannot decode into this Go type"
	default:
		return "not JSON"
	}
}

// Error is a fault of a document and where it is. Of several faults in one document one is reported, always the same one.
type Error struct {
	Code    Code
	Pointer string // RFC 6901, to the faulty value; for a name that cannot be read, to its object; "" is the whole document
	Offset  int    // in bytes from the start of the document

	hint string   // in our own words, never the document's
	path []string // innermost first, until done
}

// Error says what is wrong and where. It never repeats a value of the document; names in the pointer are quoted as ASCII and cut.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Code.says())
	if e.hint != "" {
		b.WriteString(": ")
		b.WriteString(e.hint)
	}
	b.WriteString(" (")
	b.WriteString(string(e.Code))
	if e.Pointer != "" {
		const most = 160
		p := e.Pointer
		if len(p) > most {
			p = p[:most] + "..."
		}
		b.WriteString(" at ")
		b.WriteString(strconv.QuoteToASCII(p))
	}
	b.WriteString(", byte ")
	b.WriteString(strconv.Itoa(e.Offset))
	b.WriteByte(')')
	return b.String()
}

// Unwrap returns the code.
func (e *Error) Unwrap() error { return e.Code }

// in records, on the way out of a fault, the member that contains it.
func (e *Error) in(name string) *Error {
	e.path = append(e.path, name)
	return e
}

// done makes the pointer out of the path. It returns an interface so that a nil *Error becomes a nil error.
func (e *Error) done() error {
	if e == nil {
		return nil
	}
	slices.Reverse(e.path)
	e.Pointer = pointer(e.path)
	e.path = nil
	return e
}

func pointer(path []string) string {
	var b strings.Builder
	for _, step := range path {
		b.WriteByte('/')
		for i := range len(step) {
			switch step[i] {
			case '~':
				b.WriteString("~0")
			case '/':
				b.WriteString("~1")
			default:
				b.WriteByte(step[i])
			}
		}
	}
	return b.String()
}
