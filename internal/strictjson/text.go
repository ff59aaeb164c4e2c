package strictjson

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// textMode is what becomes of a string's content while it is checked.
type textMode uint8

const (
	skipText   textMode = iota // nothing
	decodeText                 // appended as plain UTF-8
	canonText                  // appended as the inside of a canonical string
)

// text reads the string whose opening quote is at s.pos, leaves s.pos after the closing one, and appends the content to dst.
func (s *scanner) text(dst []byte, mode textMode) ([]byte, *Error) {
	src, p := s.src, s.pos+1
	for {
		q, high := plain(src, p)
		if high && !utf8.Valid(src[p:q]) {
			s.pos = p + firstInvalid(src[p:q])
			return dst, s.fault(BadUTF8, "")
		}
		if mode != skipText {
			dst = append(dst, src[p:q]...)
		}
		s.pos = q
		switch s.peek() {
		case '"':
			s.pos++
			return dst, nil
		case '\\':
		default:
			if q == len(src) {
				return dst, s.fault(Syntax, "string without an end")
			}
			return dst, s.fault(Syntax, "control character in a string, write it as an escape")
		}
		r, n := unescape(src, q)
		switch {
		case n == 0:
			return dst, s.fault(Syntax, "unknown escape")
		case utf16.IsSurrogate(r) && !s.lax:
			return dst, s.fault(LoneSurrogate, "")
		case mode == canonText:
			dst = appendRune(dst, r)
		case mode == decodeText:
			dst = utf8.AppendRune(dst, r)
		}
		p = q + n
	}
}

// name reads the member name at s.pos.
func (s *scanner) name(m *member) *Error {
	m.from = s.pos + 1
	if q, high := plain(s.src, m.from); q < len(s.src) && s.src[q] == '"' && !high {
		m.to, s.pos = q, q+1
		s.put(s.src[m.at:s.pos]...)
		return nil
	}
	if s.lax {
		_, err := s.text(nil, skipText)
		m.to = max(m.from, s.pos-1)
		return err
	}
	from := len(s.names)
	var err *Error
	if s.names, err = s.text(s.names, decodeText); err != nil {
		return err
	}
	m.from, m.to, m.escaped = from, len(s.names), true
	name := s.decoded(m)
	if bytes.IndexByte(name, 0) >= 0 {
		s.pos = m.at
		return s.fault(NULInName, "")
	}
	if s.emit {
		s.out = appendQuoted(s.out, name)
	}
	return nil
}

// A byte of each value, eight times over.
const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// plain finds the end of the run of characters that stand for themselves: the first quote, backslash or control character at or
// after i, or the end of src. high tells whether the run has bytes beyond ASCII. It looks at eight bytes at a time.
func plain(src []byte, i int) (end int, high bool) {
	var seen uint64
	for ; i+8 <= len(src); i += 8 {
		w := binary.LittleEndian.Uint64(src[i:])
		quote, slash := w^(ones*'"'), w^(ones*'\\')
		// A byte of these masks has its high bit set if it is zero in quote or slash, or below 0x20 in w. A borrow can set it
		// wrongly only above a byte where it is set rightly, so the lowest one is right.
		stop := ((quote-ones)&^quote | (slash-ones)&^slash | (w-ones*0x20)&^w) & highs
		if stop != 0 {
			n := bits.TrailingZeros64(stop) / 8
			seen |= w & (1<<(8*n) - 1)
			return i + n, seen&highs != 0
		}
		seen |= w
	}
	high = seen&highs != 0
	for ; i < len(src); i++ {
		c := src[i]
		if c < 0x20 || c == '"' || c == '\\' {
			break
		}
		high = high || c >= utf8.RuneSelf
	}
	return i, high
}

func firstInvalid(b []byte) int {
	i := 0
	for i < len(b) {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			break
		}
		i += n
	}
	return i
}

// unescape resolves the escape sequence at src[i], a backslash. n is its length, 0 when it is none. A surrogate that is not
// part of a pair is returned as it is.
func unescape(src []byte, i int) (r rune, n int) {
	if i+1 >= len(src) {
		return 0, 0
	}
	switch c := src[i+1]; c {
	case '"', '\\', '/':
		return rune(c), 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
	default:
		return 0, 0
	}
	r = hex4(src, i+2)
	if r < 0 {
		return 0, 0
	}
	if utf16.IsSurrogate(r) && i+7 < len(src) && src[i+6] == '\\' && src[i+7] == 'u' {
		if pair := utf16.DecodeRune(r, hex4(src, i+8)); pair != utf8.RuneError {
			return pair, 12
		}
	}
	return r, 6
}

// hex4 reads four hexadecimal digits, or returns -1.
func hex4(src []byte, i int) rune {
	if i+4 > len(src) {
		return -1
	}
	var r rune
	for _, c := range src[i : i+4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

// AppendString appends s as an RFC 8785 string, with its quotes: characters stand for themselves, except that quote, backslash
// and control characters are written with their shortest escape. What is not valid UTF-8 in s becomes U+FFFD, so that the result
// is always JSON; who hashes the result checks s first.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	i := 0
	for i < len(s) && s[i] >= 0x20 && s[i] < utf8.RuneSelf && s[i] != '"' && s[i] != '\\' {
		i++
	}
	dst = append(dst, s[:i]...)
	for _, r := range s[i:] {
		dst = appendRune(dst, r)
	}
	return append(dst, '"')
}

// appendQuoted is AppendString for bytes known to be valid UTF-8.
func appendQuoted(dst, s []byte) []byte {
	dst = append(dst, '"')
	for {
		n, _ := plain(s, 0)
		dst = append(dst, s[:n]...)
		if n == len(s) {
			return append(dst, '"')
		}
		dst = appendRune(dst, rune(s[n]))
		s = s[n+1:]
	}
}

// appendRune appends one character of a canonical string.
func appendRune(dst []byte, r rune) []byte {
	const hex = "0123456789abcdef"
	switch {
	case r == '"' || r == '\\':
		return append(dst, '\\', byte(r))
	case r >= 0x20:
		return utf8.AppendRune(dst, r)
	case r == '\b':
		return append(dst, `\b`...)
	case r == '\t':
		return append(dst, `\t`...)
	case r == '\n':
		return append(dst, `\n`...)
	case r == '\f':
		return append(dst, `\f`...)
	case r == '\r':
		return append(dst, `\r`...)
	default:
		return append(dst, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
	}
}

// compareUTF16 orders names the way RFC 8785 does, by UTF-16 code units.
func compareUTF16(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return int(rank(a[i])) - int(rank(b[i]))
		}
	}
	return len(a) - len(b)
}

// rank is the place of a byte of UTF-8 in the order of UTF-16 code units. The two orders differ in one thing: characters beyond U+FFFF
// (lead bytes F0 to F4), which UTF-16 writes as surrogates, come before U+E000 to U+FFFF (lead bytes EE and EF).
func rank(c byte) byte {
	switch {
	case c >= 0xF0:
		return c - 2
	case c >= 0xEE:
		return c + 6
	}
	return c
}

// sortKey packs the ranks of the first 8 bytes of a name, which has no NUL, so that most comparisons need not look at the name.
func sortKey(name []byte) uint64 {
	var first [8]byte
	copy(first[:], name)
	key := binary.BigEndian.Uint64(first[:])
	if key&highs != 0 {
		for i, c := range first {
			first[i] = rank(c)
		}
		key = binary.BigEndian.Uint64(first[:])
	}
	return key
}
