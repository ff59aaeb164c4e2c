package policy

import (
	"math"
	"strconv"
	"strings"
)

// million is the scale of amounts: they are counted in millionths.
const million = 1_000_000

// decimal is the exact value ±0.DIGITS × 10^point of a number's text, without
// leading and trailing zeros; zero has no digits.
type decimal struct {
	negative bool
	digits   string
	point    int
}

func parseDecimal(s string) (decimal, bool) {
	var d decimal
	s, d.negative = strings.CutPrefix(s, "-")
	mantissa, exponent, exponential := strings.Cut(strings.Replace(s, "E", "e", 1), "e")
	if exponential {
		e, err := strconv.ParseInt(exponent, 10, 32)
		if err != nil {
			return d, false
		}
		d.point = int(e)
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	all := whole + fraction
	if all == "" || strings.Trim(all, "0123456789") != "" {
		return d, false
	}
	d.point += len(whole)
	d.digits = strings.TrimLeft(all, "0")
	d.point -= len(all) - len(d.digits)
	d.digits = strings.TrimRight(d.digits, "0")
	if d.digits == "" {
		d = decimal{}
	}
	return d, true
}

// millionths returns the number in millionths, rounded away from zero when it
// has more than six decimals; exact tells. ok is false beyond an int64.
func (d decimal) millionths() (v int64, exact, ok bool) {
	keep := d.point + 6 // digits of the result
	if keep > 19 {
		return 0, false, d.digits == ""
	}
	exact = len(d.digits) <= keep
	digits := d.digits
	switch {
	case d.digits == "":
		return 0, true, true
	case keep <= 0:
		digits = "0"
	case exact:
		digits += strings.Repeat("0", keep-len(digits))
	default:
		digits = digits[:keep]
	}
	v, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || !exact && v == math.MaxInt64 {
		return 0, false, false
	}
	if !exact {
		v++
	}
	if d.negative {
		v = -v
	}
	return v, exact, true
}

// millionths returns a number's text in millionths, if it has at most six decimals.
func millionths(s string) (int64, bool) {
	d, ok := parseDecimal(s)
	if !ok {
		return 0, false
	}
	v, exact, ok := d.millionths()
	return v, ok && exact
}

// double returns the double that a fraction's canonical text stands for, if the
// double stands for nothing else: its shortest digits are the number's own.
func double(s string) (float64, bool) {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || short15(s) {
		return f, err == nil
	}
	want, ok := parseDecimal(s)
	got, _ := parseDecimal(strconv.FormatFloat(f, 'e', -1, 64))
	return f, ok && got == want
}
