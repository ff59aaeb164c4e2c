package strictjson

import (
	"math"
	"strconv"
	"strings"
)

const (
	maxPoint    = 309   // the decimal point's place in the largest doubles, 1.79e308
	minExponent = -9999 // the smallest exponent accepted in scientific notation
	plainDigits = 21    // ECMAScript writes that many digits before it turns to an exponent
	plainZeros  = 6     // and this many zeros after "0." less one
)

// decimal is a number as it was written: whole.frac * 10^exp. The digits alias the document.
type decimal struct {
	whole, frac []byte
	exp         int // saturated far beyond the length of any document
	neg         bool
}

// number reads the number at s.pos.
func (s *scanner) number() *Error {
	src, at := s.src, s.pos
	p := at
	if src[p] == '-' {
		p++
	}
	first := p
	for p < len(src) && src[p]-'0' <= 9 {
		p++
	}
	// Nearly every number is a short integer, and is its own canonical form.
	if n := p - first; n > 0 && n <= plainDigits && (src[first] != '0' || n == 1 && first == at) && endsToken(src, p) {
		s.pos = p
		if s.emit {
			s.out = append(s.out, src[at:p]...)
		}
		return nil
	}
	var d decimal
	var hint string
	if d, s.pos, hint = readDecimal(src, at); hint != "" {
		return s.fault(Syntax, hint)
	}
	if s.lax {
		return nil
	}
	point, from, to := d.extent()
	code := inRange(src[at:s.pos], point, from < to)
	if code != "" {
		s.pos = at
		return s.fault(code, "")
	}
	if s.emit {
		s.out = d.append(s.out, point, from, to)
	}
	return nil
}

// endsToken tells whether a number or literal may end before src[i].
func endsToken(src []byte, i int) bool {
	if i == len(src) {
		return true
	}
	switch src[i] {
	case ',', '}', ']', ' ', '\n', '\r', '\t':
		return true
	}
	return false
}

// readDecimal reads the number at src[i], which is a digit or a minus sign. hint says what is wrong at end, if anything.
func readDecimal(src []byte, i int) (d decimal, end int, hint string) {
	if src[i] == '-' {
		d.neg = true
		i++
	}
	d.whole = digits(src, i)
	i += len(d.whole)
	switch {
	case len(d.whole) == 0:
		return d, i, "want a digit"
	case d.whole[0] == '0' && len(d.whole) > 1:
		return d, i, "number with a leading zero"
	}
	if i < len(src) && src[i] == '.' {
		d.frac = digits(src, i+1)
		i += 1 + len(d.frac)
		if len(d.frac) == 0 {
			return d, i, "want a digit after the point"
		}
	}
	if i < len(src) && src[i]|0x20 == 'e' {
		i++
		minus := i < len(src) && src[i] == '-'
		if minus || i < len(src) && src[i] == '+' {
			i++
		}
		exp := digits(src, i)
		i += len(exp)
		if len(exp) == 0 {
			return d, i, "want a digit in the exponent"
		}
		d.exp = saturated(exp)
		if minus {
			d.exp = -d.exp
		}
	}
	if !endsToken(src, i) {
		return d, i, "number followed by something else"
	}
	return d, i, ""
}

// digits returns the run of digits at src[i].
func digits(src []byte, i int) []byte {
	end := i
	for end < len(src) && src[end]-'0' <= 9 {
		end++
	}
	return src[i:end]
}

// saturated reads an exponent. It stops counting far above every length that a document can have, so that no fraction, however
// long, brings the number back into range, and nothing overflows.
func saturated(digits []byte) int {
	const enough = math.MaxInt / 16
	n := 0
	for _, c := range digits {
		n = n*10 + int(c-'0')
		if n > enough {
			return enough
		}
	}
	return n
}

// extent finds the significant digits: those from to to of the digits of whole and frac taken together, none for zero.
// The number is 0.DIGITS * 10^point.
func (d *decimal) extent() (point, from, to int) {
	to = len(d.whole) + len(d.frac)
	for from < to && d.digit(from) == '0' {
		from++
	}
	for to > from && d.digit(to-1) == '0' {
		to--
	}
	return len(d.whole) - from + d.exp, from, to
}

func (d *decimal) digit(i int) byte {
	if i < len(d.whole) {
		return d.whole[i]
	}
	return d.frac[i-len(d.whole)]
}

// digits appends the digits from from to to, of whole and frac taken together.
func (d *decimal) digits(dst []byte, from, to int) []byte {
	if n := len(d.whole); from < n {
		dst = append(dst, d.whole[from:min(to, n)]...)
		from = n
	}
	if from < to {
		n := len(d.whole)
		dst = append(dst, d.frac[from-n:to-n]...)
	}
	return dst
}

// inRange returns the fault of a number that is too large for a double or too small for anybody.
func inRange(token []byte, point int, nonzero bool) Code {
	switch {
	case !nonzero || point > minExponent && point < maxPoint:
		return ""
	case point <= minExponent:
		return NumberUnderflow
	case point > maxPoint:
		return NumberOverflow
	}
	if _, err := strconv.ParseFloat(string(token), 64); err != nil {
		return NumberOverflow
	}
	return ""
}

// append appends the canonical form: ECMAScript's Number::toString, steps 6 to 10, with n for point and k for to - from.
func (d *decimal) append(dst []byte, point, from, to int) []byte {
	if from == to {
		return append(dst, '0')
	}
	if d.neg {
		dst = append(dst, '-')
	}
	count := to - from
	switch {
	case count <= point && point <= plainDigits:
		dst = d.digits(dst, from, to)
		return zeros(dst, point-count)
	case 0 < point && point <= plainDigits:
		dst = append(d.digits(dst, from, from+point), '.')
		return d.digits(dst, from+point, to)
	case -plainZeros < point && point <= 0:
		dst = zeros(append(dst, "0."...), -point)
		return d.digits(dst, from, to)
	}
	dst = d.digits(dst, from, from+1)
	if count > 1 {
		dst = d.digits(append(dst, '.'), from+1, to)
	}
	dst = append(dst, 'e')
	if point > 0 {
		dst = append(dst, '+')
	}
	return strconv.AppendInt(dst, int64(point-1), 10)
}

func zeros(dst []byte, n int) []byte {
	for range n {
		dst = append(dst, '0')
	}
	return dst
}

// Number is a number of a [Tree] with its exact decimal digits, in canonical form: two Numbers are equal as strings exactly when they are equal.
type Number string

// String returns the canonical form.
func (n Number) String() string { return string(n) }

// Int64 returns the number if it is an integer that an int64 holds.
func (n Number) Int64() (int64, bool) {
	i, err := strconv.ParseInt(string(n), 10, 64)
	return i, err == nil
}

// notInteger is the fault of a number that an integer type does not hold: too large, or not an integer at all.
func (n Number) notInteger() Code {
	if strings.Contains(string(n), "e-") || strings.Contains(string(n), ".") && !strings.Contains(string(n), "e+") {
		return WrongType
	}
	return NumberOverflow
}

// Float64 returns the nearest double, which may differ from the number.
func (n Number) Float64() float64 {
	f, _ := strconv.ParseFloat(string(n), 64) // in range, or it would not have been accepted
	return f
}
