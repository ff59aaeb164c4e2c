package strictjson

import "bytes"

const spliceDepth = 1024

// Splice returns a copy of doc, a document that has passed [Check], in which the value at path is replaced by value; every other byte
// stays as it is. A member that is absent is added at the end of its object, with the objects on the way to it. A nil value
// deletes the member or element, if it is there. Elements of arrays are named by their index and can be replaced and deleted, not added.
//
// value is checked for JSON syntax as laxly as what is below the top level under [Limits].Lax, and may be nested 1,024 deep; the space
// around it is dropped.
func Splice(doc, value []byte, path ...string) ([]byte, error) {
	if value != nil {
		if err := syntax(value); err != nil {
			return nil, err
		}
		value, _ = Get(value)
	}
	at := skipSpace(doc, 0)
	place := entry{start: at, at: at, end: skipValue(doc, at)}
	var w walker
	for i, step := range path {
		var ok bool
		if w, ok = walk(doc, place.at); !ok {
			return absent(doc, value, path[:i], place.at, WrongType, "want an object or an array")
		}
		before := w.last
		for place, ok = w.next(); ok && !place.is(step, &w); place, ok = w.next() {
			before = w.last
		}
		switch {
		case ok && value == nil && i == len(path)-1:
			return cut(doc, place, before, w.count == 1), nil
		case ok:
		case w.object && value != nil:
			return insert(doc, value, w.last, w.count > 0, path[i:]), nil
		default:
			return absent(doc, value, path[:i+1], w.last, MissingMember, "no such element")
		}
	}
	if value == nil {
		return nil, &Error{Code: BadValue, Offset: at, hint: "the document itself cannot be deleted"}
	}
	return replace(doc, place.at, place.end, value), nil
}

// syntax checks the syntax of a value of any size.
func syntax(value []byte) error {
	s := scan(value)
	defer s.end()
	s.lax = true
	return s.document(Limits{Bytes: max(len(value), 1), Depth: spliceDepth}).done()
}

// absent is the answer when there is nothing at path: fine if it was to be deleted.
func absent(doc, value []byte, path []string, at int, code Code, hint string) ([]byte, error) {
	if value == nil {
		return bytes.Clone(doc), nil
	}
	return nil, &Error{Code: code, Pointer: pointer(path), Offset: at, hint: hint}
}

// replace returns doc with doc[from:to] replaced.
func replace(doc []byte, from, to int, parts ...[]byte) []byte {
	size := from + len(doc) - to
	for _, p := range parts {
		size += len(p)
	}
	out := append(make([]byte, 0, size), doc[:from]...)
	for _, p := range parts {
		out = append(out, p...)
	}
	return append(out, doc[to:]...)
}

// cut returns doc without e and one of the commas beside it. before is the end of the entry before e.
func cut(doc []byte, e entry, before int, first bool) []byte {
	after := skipSpace(doc, e.end)
	switch {
	case after < len(doc) && doc[after] == ',':
		return replace(doc, e.start, skipSpace(doc, after+1))
	case first:
		return replace(doc, e.start, e.end)
	default:
		return replace(doc, before, e.end)
	}
}

// insert returns doc with the member path[0], which holds path[1] and so on down to value, put in at at.
func insert(doc, value []byte, at int, comma bool, path []string) []byte {
	var head []byte
	if comma {
		head = append(head, ',')
	}
	for i, step := range path {
		if i > 0 {
			head = append(head, '{')
		}
		head = append(AppendString(head, step), ':')
	}
	return replace(doc, at, at, head, value, bytes.Repeat([]byte{'}'}, len(path)-1))
}

// Compact appends src, a document that has passed [Check], without the space between its tokens. Every token stays byte for byte,
// so the result has no line break and can be framed by one.
func Compact(dst, src []byte) []byte {
	for i := 0; i < len(src); {
		switch src[i] {
		case ' ', '\n', '\r', '\t':
			i++
		case '"':
			end := skipString(src, i)
			dst = append(dst, src[i:end]...)
			i = end
		default:
			dst = append(dst, src[i])
			i++
		}
	}
	return dst
}
