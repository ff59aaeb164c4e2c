package gateway

import (
	"bytes"

	"github.com/ayegate/ayegate/internal/strictjson"
)

// get reads a member of a document that package mcp has checked; nil when there is none.
func get(doc []byte, path ...string) []byte {
	if doc == nil {
		return nil
	}
	v, _ := strictjson.Get(doc, path...)
	return v
}

// has reports whether a member is there.
func has(doc []byte, path ...string) bool { return get(doc, path...) != nil }

// textAt reads a member that is a string; empty when it is none.
func textAt(doc []byte, path ...string) string {
	v := get(doc, path...)
	if v == nil || v[0] != '"' {
		return ""
	}
	s, err := strictjson.String(v)
	if err != nil {
		return ""
	}
	return s
}

// isTrue reports whether a member is the boolean true.
func isTrue(doc []byte, path ...string) bool { return string(get(doc, path...)) == "true" }

func isObject(doc []byte) bool { return len(doc) > 0 && doc[0] == '{' }

// lax are the limits for reading again what package mcp has checked.
func lax(doc []byte) strictjson.Limits {
	return strictjson.Limits{Bytes: max(len(doc), 1), Nodes: max(len(doc), 1), Depth: 1024, Lax: true}
}

// members visits the members of an object; other values have none.
func members(doc []byte, visit func(name string, value []byte)) {
	if !isObject(doc) {
		return
	}
	_ = strictjson.Members(doc, lax(doc), func(name string, value []byte) error {
		visit(name, value)
		return nil
	})
}

// once visits the names of an object's members and reports whether each is there
// only once. A value that is no object has none.
func once(doc []byte, visit func(name string)) bool {
	return !isObject(doc) || strictjson.Members(doc, lax(doc), func(name string, _ []byte) error {
		visit(name)
		return nil
	}) == nil
}

// elements returns the elements of an array; other values have none.
func elements(doc []byte) (all [][]byte) {
	if len(doc) == 0 || doc[0] != '[' {
		return nil
	}
	_ = strictjson.Elements(doc, lax(doc), func(_ int, value []byte) error {
		all = append(all, value)
		return nil
	})
	return all
}

// set returns doc with a member replaced or added, and delete doc without one. The
// documents are checked ones and the values our own or checked, so neither fails;
// if one did, the document stays as it was.
func set(doc, value []byte, path ...string) []byte {
	out, err := strictjson.Splice(doc, value, path...)
	if err != nil {
		return doc
	}
	return out
}

func without(doc []byte, path ...string) []byte {
	if !has(doc, path...) {
		return doc
	}
	return set(doc, nil, path...)
}

// quoted is a JSON string.
func quoted(s string) []byte { return strictjson.AppendString(nil, s) }

// list is a JSON array of values.
func list(values [][]byte) []byte {
	return append(append([]byte{'['}, bytes.Join(values, []byte{','})...), ']')
}

// object builds a JSON object member by member.
type object struct{ b []byte }

// add appends a member; a nil value is left out.
func (o *object) add(name string, value []byte) *object {
	if value == nil {
		return o
	}
	if o.b == nil {
		o.b = append(o.b, '{')
	} else {
		o.b = append(o.b, ',')
	}
	o.b = append(strictjson.AppendString(o.b, name), ':')
	o.b = append(o.b, value...)
	return o
}

func (o *object) text(name, value string) *object {
	if value == "" {
		return o
	}
	return o.add(name, quoted(value))
}

func (o *object) bytes() []byte {
	if o.b == nil {
		return []byte("{}")
	}
	return append(o.b, '}')
}

// some is the object, nil when it has no members.
func (o *object) some() []byte {
	if o.b == nil {
		return nil
	}
	return o.bytes()
}

// intOf reads an integer; 0 when it is none.
func intOf(value []byte) int {
	n, err := strictjson.Int(value)
	if err != nil {
		return 0
	}
	return int(n)
}
