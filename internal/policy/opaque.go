package policy

import (
	"errors"
	"unicode/utf8"

	"github.com/ayegate/ayegate/internal/strictjson"
)

// Bounds of what a person can be expected to inspect in one text.
const (
	maxText    = 64 << 10 // bytes of one text
	maxEncoded = 256      // characters in a row that read like base64 or hex
)

// inspection is what a look over the bytes of the arguments found.
type inspection struct {
	hidden bool // a character that a person could miss
	blob   bool // a text too long to read, or a run that reads like encoded data
}

// inspect looks once over canonical JSON, in which characters beyond ASCII stand
// as they are and controls as escapes.
func inspect(raw []byte) inspection {
	var found inspection
	start, run := -1, 0 // of the text, of the run in it
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		if encodes[c] {
			if run++; run == maxEncoded && start >= 0 {
				found.blob = true
			}
			continue
		}
		run = 0
		switch {
		case c == '"':
			if start < 0 {
				start = i
				continue
			}
			found.blob = found.blob || i-start-1 > maxText
			start = -1
		case c == '\\':
			i++
			found.hidden = found.hidden || raw[i] == 'u' || raw[i] == 'r' || raw[i] == 'b' || raw[i] == 'f'
		case c == 0x7f:
			found.hidden = true
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRune(raw[i:])
			found.hidden = found.hidden || IsHidden(r)
			i += n - 1
		}
	}
	return found
}

// encodes tells the bytes that base64, base64url and hex are made of. In a path
// or a word none of them repeats for long without a dot, a space or a colon.
var encodes = func() (set [256]bool) {
	for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_=") {
		set[c] = true
	}
	return set
}()

// uninspected reports whether the arguments hold a blob that the rule's condition
// does not read: the rule allowed the call by its name, not by what is in it.
func (e *evaluation) uninspected(x *expr) bool { return uninspected(x, e.args(), nil) }

func uninspected(x *expr, object []byte, path argPath) bool {
	return !members(object, func(name string, value []byte) bool {
		path := append(path[:len(path):len(path)], name)
		switch {
		case len(name) >= maxEncoded:
			return false // a name that is data
		case x.inspects(path):
			return true
		case value[0] == '{':
			return !uninspected(x, value, path)
		}
		return !inspect(value).blob
	})
}

// members calls visit for the members of a canonical object until it returns
// false, and reports whether all were visited.
func members(object []byte, visit func(name string, value []byte) bool) bool {
	err := strictjson.Members(object, strictjson.Limits{Bytes: len(object)}, func(name string, value []byte) error {
		if !visit(name, value) {
			return errStop
		}
		return nil
	})
	return err == nil
}

var errStop = errors.New("stop")
