package strictjson

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"sync"
)

// The limits that a zero [Limits] stands for.
const (
	DefaultBytes = 1 << 20
	DefaultDepth = 64
	// DefaultNodes lets through every call that a person could judge (the largest real tool schemas have some thousand values),
	// keeps what a document can make us allocate to about 10 MB, and cuts a flood of small members after some milliseconds.
	DefaultNodes = 100_000
)

// Limits bound a document. For every number, zero or less means the default.
type Limits struct {
	Bytes int // length of the document, and of its canonical form; default 1 MiB
	Depth int // arrays and objects inside each other; default 64
	Nodes int // values: the document itself, members, elements; default 100,000

	// Lax checks what is below the top level only for JSON syntax (RFC 8259, which includes UTF-8), size and depth: duplicate names,
	// lone surrogates, NUL in names, numbers of any size and any number of values pass there. It is for the results of tools that
	// have already run and must be handed on unchanged, and has an effect on Check, Members and Elements only.
	Lax bool
}

func (l Limits) orDefaults() Limits {
	if l.Bytes <= 0 {
		l.Bytes = DefaultBytes
	}
	if l.Depth <= 0 {
		l.Depth = DefaultDepth
	}
	if l.Nodes <= 0 {
		l.Nodes = DefaultNodes
	}
	return l
}

// Check returns nil if src is one strictly valid document within the limits, else an [*Error].
func Check(src []byte, lim Limits) error {
	s := scan(src)
	defer s.end()
	s.laxBelow = lim.Lax
	return s.document(lim).done()
}

// Canonical appends the canonical form of src to dst. When src is not valid it returns dst as it was, and an [*Error]. Lax has no effect.
func Canonical(dst, src []byte, lim Limits) ([]byte, error) {
	s := scan(src)
	defer s.end()
	s.emit, s.out = true, dst
	if len(src) <= lim.orDefaults().Bytes {
		s.out = slices.Grow(dst, len(src)) // which is enough for almost all
	}
	err := s.document(lim)
	if err == nil && len(s.out)-len(dst) > lim.orDefaults().Bytes {
		s.pos = 0
		err = s.fault(TooLarge, "in canonical form")
	}
	if err != nil {
		return dst, err.done()
	}
	return s.out, nil
}

// IsCanonical reports whether src is its own canonical form. The error is that of [Canonical].
func IsCanonical(src []byte, lim Limits) (bool, error) {
	s := scan(src)
	defer s.end()
	s.emit, s.out = true, s.form
	err := s.document(lim)
	s.form = s.out[:0]
	if err != nil {
		return false, err.done()
	}
	return bytes.Equal(s.out, src), nil
}

// scan begins to read a document. Scanners are used again, with the memory that the documents before made them set aside.
func scan(src []byte) *scanner {
	s, _ := scanners.Get().(*scanner)
	if s == nil {
		s = &scanner{members: make([]member, 0, 16)}
	}
	s.src = src
	return s
}

var scanners sync.Pool

// What a scanner may keep: enough for most calls, too little for the flood of one document to stay with us.
const (
	keptMembers = 256
	keptBytes   = 16 << 10
)

// end gives a scanner back. It forgets the document.
func (s *scanner) end() {
	if cap(s.members) > keptMembers || cap(s.names) > keptBytes || cap(s.moved) > keptBytes || cap(s.form) > keptBytes {
		return
	}
	*s = scanner{members: s.members[:0], names: s.names[:0], moved: s.moved[:0], form: s.form[:0]}
	scanners.Put(s)
}

// scanner checks a document in one pass, by recursion bounded by the depth limit, and writes its canonical form on the way.
type scanner struct {
	src []byte
	pos int

	depth    int  // containers that may still be opened
	nodes    int  // values that may still come
	lax      bool // here, only syntax counts
	laxBelow bool // below the top level, only syntax counts

	emit bool
	out  []byte
	form []byte // memory for a form that nobody else needs

	// The members of all open objects, each object's in a row. An object that ends gives its part back.
	members []member
	names   []byte // the names among them that had escapes, decoded
	moved   []byte // where an object's members wait while they are put in order
}

// member is a member of an open object. It holds no pointers, so that moving many of them is cheap.
type member struct {
	key        uint64 // of the name: sortKey
	at         int    // where the name is in the document
	from, to   int    // the name without its quotes, in names if it had escapes, else in the document
	start, end int    // where the member is in out
	escaped    bool
}

// decoded returns the member's name.
func (s *scanner) decoded(m *member) []byte {
	if m.escaped {
		return s.names[m.from:m.to]
	}
	return s.src[m.from:m.to]
}

// compare orders members by name.
func (s *scanner) compare(a, b *member) int {
	if a.key != b.key {
		return cmp.Compare(a.key, b.key)
	}
	return compareUTF16(s.decoded(a), s.decoded(b))
}

func (s *scanner) fault(code Code, hint string) *Error {
	return &Error{Code: code, Offset: s.pos, hint: hint}
}

// peek returns the byte at s.pos, or 0, which is never part of a valid document, at the end.
func (s *scanner) peek() byte {
	if s.pos < len(s.src) {
		return s.src[s.pos]
	}
	return 0
}

func (s *scanner) space() {
	s.pos = skipSpace(s.src, s.pos)
}

func (s *scanner) document(lim Limits) *Error {
	lim = lim.orDefaults()
	s.depth, s.nodes = lim.Depth, lim.Nodes
	if len(s.src) > lim.Bytes {
		s.pos = lim.Bytes
		return s.fault(TooLarge, "")
	}
	for _, mark := range []string{"\xEF\xBB\xBF", "\xFE\xFF", "\xFF\xFE"} {
		if bytes.HasPrefix(s.src, []byte(mark)) {
			return s.fault(BOM, "")
		}
	}
	if err := s.value(); err != nil {
		return err
	}
	if s.space(); s.pos < len(s.src) {
		return s.fault(TrailingData, "")
	}
	return nil
}

func (s *scanner) value() *Error {
	s.space()
	if !s.lax {
		if s.nodes--; s.nodes < 0 {
			return s.fault(TooManyValues, "")
		}
	}
	switch c := s.peek(); c {
	case '{':
		return s.object()
	case '[':
		return s.array()
	case '"':
		return s.textValue()
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	default:
		if c == '-' || c-'0' <= 9 {
			return s.number()
		}
		return s.fault(Syntax, "want a value")
	}
}

func (s *scanner) textValue() *Error {
	if !s.emit {
		_, err := s.text(nil, skipText)
		return err
	}
	var err *Error
	s.out, err = s.text(append(s.out, '"'), canonText)
	s.put('"')
	return err
}

func (s *scanner) word(w string) *Error {
	end := s.pos + len(w)
	if end > len(s.src) || string(s.src[s.pos:end]) != w || !endsToken(s.src, end) {
		return s.fault(Syntax, "want a value")
	}
	s.put(s.src[s.pos:end]...)
	s.pos = end
	return nil
}

// put appends to the canonical form, if there is one to be written.
func (s *scanner) put(b ...byte) {
	if s.emit {
		s.out = append(s.out, b...)
	}
}

func (s *scanner) array() *Error {
	if s.depth--; s.depth < 0 {
		return s.fault(TooDeep, "")
	}
	s.put('[')
	s.pos++
	if s.space(); s.peek() != ']' {
		for i := 0; ; i++ {
			if err := s.below(); err != nil {
				return err.in(strconv.Itoa(i))
			}
			if s.space(); s.peek() == ']' {
				break
			}
			if s.peek() != ',' {
				return s.fault(Syntax, "want a comma or the end of the array")
			}
			s.put(',')
			s.pos++
		}
	}
	s.put(']')
	s.pos++
	s.depth++
	return nil
}

// below reads a member's or an element's value.
func (s *scanner) below() *Error {
	lax := s.lax
	s.lax = lax || s.laxBelow
	err := s.value()
	s.lax = lax
	return err
}

func (s *scanner) object() *Error {
	if s.depth--; s.depth < 0 {
		return s.fault(TooDeep, "")
	}
	members, names, start := len(s.members), len(s.names), len(s.out)
	ordered := true
	s.put('{')
	s.pos++
	if s.space(); s.peek() != '}' {
		for {
			rises, err := s.member(members)
			if err != nil {
				return err
			}
			ordered = ordered && rises
			if s.space(); s.peek() == '}' {
				break
			}
			if s.peek() != ',' {
				return s.fault(Syntax, "want a comma or the end of the object")
			}
			s.put(',')
			s.pos++
			s.space()
		}
	}
	if !ordered {
		if err := s.order(s.members[members:], start); err != nil {
			return err
		}
	}
	s.put('}')
	s.pos++
	s.members, s.names = s.members[:members], s.names[:names]
	s.depth++
	return nil
}

// member reads one member of the object whose members start at first. It tells whether its name comes after the one before it.
func (s *scanner) member(first int) (rises bool, err *Error) {
	if s.peek() != '"' {
		return false, s.fault(Syntax, "want a member name in quotes")
	}
	m := member{at: s.pos, start: len(s.out)}
	if err := s.name(&m); err != nil {
		return false, err
	}
	if s.space(); s.peek() != ':' {
		return false, s.fault(Syntax, "want a colon after a member name")
	}
	rises = true
	if !s.lax {
		m.key = sortKey(s.decoded(&m))
		if n := len(s.members); n > first {
			rises = s.compare(&s.members[n-1], &m) < 0
		}
		s.members = append(s.members, m)
	}
	s.put(':')
	s.pos++
	if err := s.below(); err != nil {
		return false, err.in(string(s.decoded(&m)))
	}
	if !s.lax {
		s.members[len(s.members)-1].end = len(s.out)
	}
	return rises, nil
}

// order sorts the members of an object, refuses duplicates, and puts what was written of the object, from start, in order.
func (s *scanner) order(members []member, start int) *Error {
	slices.SortFunc(members, func(a, b member) int {
		if c := s.compare(&a, &b); c != 0 {
			return c
		}
		return a.at - b.at
	})
	var again *member // of all second occurrences, the first
	for i := 1; i < len(members); i++ {
		if m := &members[i]; s.compare(&members[i-1], m) == 0 && (again == nil || m.at < again.at) {
			again = m
		}
	}
	if again != nil {
		s.pos = again.at
		return s.fault(DuplicateKey, "").in(string(s.decoded(again)))
	}
	if !s.emit {
		return nil
	}
	s.moved = append(s.moved[:0], s.out[start:]...)
	s.out = s.out[:start+1]
	for i, m := range members {
		if i > 0 {
			s.out = append(s.out, ',')
		}
		s.out = append(s.out, s.moved[m.start-start:m.end-start]...)
	}
	return nil
}
