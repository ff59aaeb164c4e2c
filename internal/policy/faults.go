package policy

import (
	"time"

	"github.com/ayegate/ayegate/internal/strictyaml"
)

// Fault is one thing wrong with a policy or test file.
type Fault = strictyaml.Fault

// Faults is everything wrong with a file. A file with a fault is not loaded at all.
type Faults = strictyaml.Faults

// reader reads a file of this package.
type reader struct{ strictyaml.Reader }

type node = strictyaml.Node

func (r *reader) fault(n node, format string, args ...any) { r.Fault(n, format, args...) }

// line returns where a node is.
func line(n node) int {
	var probe strictyaml.Reader
	probe.Fault(n, "here")
	return probe.Faults[0].Line
}

// isText and isTruth report what a node is, without a fault when it is not.

func isText(n node) bool {
	var probe strictyaml.Reader
	probe.Text(n)
	return len(probe.Faults) == 0
}

func isTruth(n node) bool {
	var probe strictyaml.Reader
	probe.Truth(n)
	return len(probe.Faults) == 0
}

// amount returns a number in millionths. A decimal is written as a text, so that
// it is read as it stands and not through a double.
func (r *reader) amount(n node) int64 {
	if !isText(n) {
		return million * r.Count(n, 0, maxAmount/million)
	}
	s := r.Text(n)
	v, ok := millionths(s)
	if !ok || v < 0 || v > maxAmount {
		r.fault(n, "%q is not an amount such as \"99.50\", with at most six decimals", s)
		return 0
	}
	return v
}

// maxAmount bounds an amount of a limit, in millionths: a million millions.
const maxAmount = 1_000_000_000_000 * million

func short(d time.Duration) string { return strictyaml.Short(d) }

func meant(got string, names []string) string { return strictyaml.Meant(got, names) }
