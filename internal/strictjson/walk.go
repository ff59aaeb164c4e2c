package strictjson

import (
	"bytes"
	"strconv"
	"unicode/utf8"
)

// The functions of this file read documents that have passed Check. Given others they find nothing, or nonsense, but stay within the bytes.

func skipSpace(doc []byte, i int) int {
	for i < len(doc) && (doc[i] == ' ' || doc[i] == '\n' || doc[i] == '\r' || doc[i] == '\t') {
		i++
	}
	return i
}

// skipString returns the end of the string whose opening quote is doc[i].
func skipString(doc []byte, i int) int {
	i++
	for i < len(doc) {
		i, _ = plain(doc, i)
		switch {
		case i == len(doc):
		case doc[i] == '"':
			return i + 1
		case doc[i] == '\\':
			i += 2
		default:
			i++
		}
	}
	return len(doc)
}

// skipValue returns the end of the value that starts at doc[i], i itself if none does.
func skipValue(doc []byte, i int) int {
	for depth := 0; i < len(doc); {
		switch c := doc[i]; {
		case c == '"':
			i = skipString(doc, i)
		case c == '{' || c == '[':
			depth++
			i++
		case depth == 0:
			for i < len(doc) && !endsToken(doc, i) {
				i++
			}
		case c == '}' || c == ']':
			depth--
			i++
		default:
			i++
		}
		if depth == 0 {
			break
		}
	}
	return i
}

// walker goes through the members of an object or the elements of an array.
type walker struct {
	doc    []byte
	last   int // end of the entry before, at first of the opening bracket
	count  int // entries so far
	object bool
}

// entry is a member or an element.
type entry struct {
	start   int    // of the member's name, of the element
	at, end int    // of the value
	name    []byte // as written, without the quotes
}

func walk(doc []byte, at int) (w walker, ok bool) {
	if at >= len(doc) || doc[at] != '{' && doc[at] != '[' {
		return w, false
	}
	return walker{doc: doc, last: at + 1, object: doc[at] == '{'}, true
}

func (w *walker) next() (e entry, ok bool) {
	i := skipSpace(w.doc, w.last)
	if w.count > 0 {
		if i >= len(w.doc) || w.doc[i] != ',' {
			return e, false
		}
		i = skipSpace(w.doc, i+1)
	}
	if i >= len(w.doc) || w.doc[i] == '}' || w.doc[i] == ']' {
		return e, false
	}
	e.start = i
	if w.object {
		end := skipString(w.doc, i)
		if end < i+2 {
			return e, false
		}
		e.name = w.doc[i+1 : end-1]
		if i = skipSpace(w.doc, end); i >= len(w.doc) || w.doc[i] != ':' {
			return e, false
		}
		i = skipSpace(w.doc, i+1)
	}
	e.at, e.end = i, skipValue(w.doc, i)
	w.last = e.end
	w.count++
	return e, e.end > e.at
}

// is tells whether the entry, the count-th one, is the one that the path's step names.
func (e *entry) is(step string, w *walker) bool {
	if w.object {
		return nameIs(e.name, step)
	}
	return string(strconv.AppendInt(make([]byte, 0, 20), int64(w.count-1), 10)) == step
}

// nameIs compares a name as written with a name.
func nameIs(raw []byte, name string) bool {
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			return string(raw) == name
		}
		r, n := unescape(raw, i)
		var buf [utf8.UTFMax]byte
		char := utf8.AppendRune(buf[:0], r)
		rest := i + len(char)
		if n == 0 || len(name) < rest || string(raw[:i]) != name[:i] || string(char) != name[i:rest] {
			return false
		}
		raw, name = raw[i+n:], name[rest:]
	}
}

// unquote returns what a string as written, without its quotes, stands for.
func unquote(raw []byte) string {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw)
	}
	text := make([]byte, 0, len(raw))
	for len(raw) > 0 {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			text = append(text, raw...)
			break
		}
		r, n := unescape(raw, i)
		text = utf8.AppendRune(append(text, raw[:i]...), r)
		raw = raw[i+max(n, 1):]
	}
	return string(text)
}

// Members checks src and, if it is a valid document and an object, calls visit for each member in the order of the document.
// name is decoded; value is exactly the bytes of src, sharing its memory. An error of visit ends the visit and is returned.
//
// Names are exact: who knows the names that may occur compares with ==, and who must also refuse lookalikes such as "Name" or
// "argumentſ" asks strings.EqualFold for the others.
func Members(src []byte, lim Limits, visit func(name string, value []byte) error) error {
	w, err := checked(src, lim, '{')
	if err != nil {
		return err
	}
	for e, ok := w.next(); ok; e, ok = w.next() {
		if err := visit(unquote(e.name), src[e.at:e.end:e.end]); err != nil {
			return err
		}
	}
	return nil
}

// Each is [Members] for an object within a document that has passed [Check]: it checks nothing again. Other values have no members.
func Each(doc []byte, visit func(name string, value []byte) error) error {
	w, ok := walk(doc, skipSpace(doc, 0))
	if !ok || !w.object {
		return nil
	}
	for e, ok := w.next(); ok; e, ok = w.next() {
		if err := visit(unquote(e.name), doc[e.at:e.end:e.end]); err != nil {
			return err
		}
	}
	return nil
}

// Elements is [Members] for an array; i counts from 0.
func Elements(src []byte, lim Limits, visit func(i int, value []byte) error) error {
	w, err := checked(src, lim, '[')
	if err != nil {
		return err
	}
	for e, ok := w.next(); ok; e, ok = w.next() {
		if err := visit(w.count-1, src[e.at:e.end:e.end]); err != nil {
			return err
		}
	}
	return nil
}

// checked checks src and opens it at its bracket.
func checked(src []byte, lim Limits, bracket byte) (walker, error) {
	if err := Check(src, lim); err != nil {
		return walker{}, err
	}
	at := skipSpace(src, 0)
	if src[at] != bracket {
		return walker{}, &Error{Code: WrongType, Offset: at, hint: "want " + kindOf(bracket) + ", not " + kindOf(src[at])}
	}
	w, _ := walk(src, at)
	return w, nil
}

// kindOf names the kind of value that starts with c.
func kindOf(c byte) string {
	switch c {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	default:
		return "a number"
	}
}

// Get returns the value at a path of member names, and indexes for arrays, in a document that has passed [Check]. The value shares
// doc's memory. An empty path is the document itself, without the space around it. Where a laxly checked document has a name twice,
// Get sees the first.
func Get(doc []byte, path ...string) (value []byte, ok bool) {
	at := skipSpace(doc, 0)
	if len(path) == 0 {
		end := skipValue(doc, at)
		return doc[at:end:end], end > at
	}
	var e entry
	for _, step := range path {
		w, ok := walk(doc, at)
		if !ok {
			return nil, false
		}
		if e, ok = w.find(step); !ok {
			return nil, false
		}
		at = e.at
	}
	return doc[e.at:e.end:e.end], true
}

// find goes on to the entry that step names.
func (w *walker) find(step string) (e entry, ok bool) {
	for e, ok = w.next(); ok; e, ok = w.next() {
		if e.is(step, w) {
			return e, true
		}
	}
	return e, false
}

// String returns the text of a JSON string, which is checked.
func String(value []byte) (string, error) {
	if err := scalar(value, '"'); err != nil {
		return "", err
	}
	at := skipSpace(value, 0)
	return unquote(value[at+1 : skipString(value, at)-1]), nil
}

// Int returns the value of a JSON number that is an integer within int64, however it is spelled: 10, 10.0 and 1e1 are the same.
func Int(value []byte) (int64, error) {
	if err := scalar(value, '0'); err != nil {
		return 0, err
	}
	i, ok := number(value).Int64()
	if !ok {
		return 0, &Error{Code: number(value).notInteger(), hint: "want an integer of 64 bits"}
	}
	return i, nil
}

// Bool returns the value of a JSON boolean.
func Bool(value []byte) (bool, error) {
	if err := scalar(value, 't'); err != nil {
		return false, err
	}
	return value[skipSpace(value, 0)] == 't', nil
}

// scalar checks value and that it is of the kind of values that start with c.
func scalar(value []byte, c byte) error {
	if err := Check(value, Limits{Bytes: max(len(value), 1)}); err != nil {
		return err
	}
	at := skipSpace(value, 0)
	if want, got := kindOf(c), kindOf(value[at]); want != got {
		return &Error{Code: WrongType, Offset: at, hint: "want " + want + ", not " + got}
	}
	return nil
}

// number returns the canonical form of a checked number.
func number(value []byte) Number {
	d, _, _ := readDecimal(value, skipSpace(value, 0))
	point, from, to := d.extent()
	return Number(d.append(nil, point, from, to))
}
