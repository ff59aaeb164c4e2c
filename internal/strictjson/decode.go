package strictjson

import (
	"encoding"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Raw is a value left as it was written.
type Raw []byte

// Decode checks src and stores it in what into points to; Lax has no effect. A struct takes the members that its fields' json tags
// name, exactly; any other member is a fault ([UnknownMember]), and so is the absence of one with the option "required":
//
//	Path string `json:"path,required"`
//
// Other options are for encoding/json. A field without a tag takes no part, except that an embedded struct lends its fields.
// What is absent keeps its value in Go, so defaults can be set before.
//
// Nothing is converted, cut or rounded. A string goes into a string, a bool into a bool, a number into a [Number], into an integer
// type that holds it, or into a float64 if the float's shortest form is that number. A time.Duration is a Go duration string ("30s"),
// an encoding.TextUnmarshaler takes a string. Arrays fill slices, objects fill structs and maps with string keys; into an any
// goes what [Tree] returns. A [Raw], or another named slice of bytes, takes a copy of the bytes, of any kind. null is stored as
// nil in pointers, slices, maps and any, and fits nothing else.
//
// After an error the target is in an unspecified state.
func Decode(src []byte, lim Limits, into any) error {
	lim.Lax = false
	if err := Check(src, lim); err != nil {
		return err
	}
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return &Error{Code: BadTarget, hint: "want a pointer"}
	}
	at := skipSpace(src, 0)
	return decoder(src).value(at, skipValue(src, at), v.Elem()).done()
}

// decoder is a checked document.
type decoder []byte

func (d decoder) fault(at int, code Code, hint string) *Error {
	return &Error{Code: code, Offset: at, hint: hint}
}

// want returns the fault of a value that is not of the kind of those that start with c.
func (d decoder) want(at int, c byte) *Error {
	want, got := kindOf(c), kindOf(d[at])
	if want == got {
		return nil
	}
	return d.fault(at, WrongType, "want "+want+", not "+got)
}

func (d decoder) text(at, end int) string { return unquote(d[at+1 : end-1]) }

// value stores the value d[at:end] in v.
func (d decoder) value(at, end int, v reflect.Value) *Error {
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if err := d.want(at, '"'); err != nil {
			return err
		}
		if u.UnmarshalText([]byte(d.text(at, end))) != nil {
			return d.fault(at, BadValue, "want the text of a "+v.Type().String())
		}
		return nil
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Interface, reflect.Slice:
		if isRaw(v.Type()) {
			v.SetBytes(append([]byte(nil), d[at:end]...))
			return nil
		}
		if d[at] == 'n' {
			v.SetZero()
			return nil
		}
		return d.nilable(at, end, v)
	case reflect.Struct:
		if err := d.want(at, '{'); err != nil {
			return err
		}
		return d.structure(at, v)
	default:
		return d.scalar(at, end, v)
	}
}

func isRaw(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 && t.Name() != ""
}

// nilable stores a value other than null in a pointer, map, interface or slice.
func (d decoder) nilable(at, end int, v reflect.Value) *Error {
	t := v.Type()
	switch t.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(t.Elem()))
		}
		return d.value(at, end, v.Elem())
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			return d.fault(at, BadTarget, t.String())
		}
		if err := d.want(at, '{'); err != nil {
			return err
		}
		return d.mapping(at, v)
	case reflect.Interface:
		if t.NumMethod() > 0 {
			return d.fault(at, BadTarget, t.String())
		}
		v.Set(reflect.ValueOf(tree(d, at)))
		return nil
	default:
		if t.Elem().Kind() == reflect.Uint8 {
			return d.fault(at, BadTarget, t.String())
		}
		if err := d.want(at, '['); err != nil {
			return err
		}
		return d.slice(at, v)
	}
}

func (d decoder) slice(at int, v reflect.Value) *Error {
	v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	w, _ := walk(d, at)
	for e, ok := w.next(); ok; e, ok = w.next() {
		i := v.Len()
		v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
		if err := d.value(e.at, e.end, v.Index(i)); err != nil {
			return err.in(strconv.Itoa(i))
		}
	}
	return nil
}

func (d decoder) mapping(at int, v reflect.Value) *Error {
	t := v.Type()
	v.Set(reflect.MakeMap(t))
	w, _ := walk(d, at)
	for e, ok := w.next(); ok; e, ok = w.next() {
		name := unquote(e.name)
		elem := reflect.New(t.Elem()).Elem()
		if err := d.value(e.at, e.end, elem); err != nil {
			return err.in(name)
		}
		v.SetMapIndex(reflect.ValueOf(name).Convert(t.Key()), elem)
	}
	return nil
}

var (
	durationType = reflect.TypeFor[time.Duration]()
	numberType   = reflect.TypeFor[Number]()
)

// scalar stores a string, boolean or number.
func (d decoder) scalar(at, end int, v reflect.Value) *Error {
	kind := v.Kind()
	switch {
	case v.Type() == durationType:
		if err := d.want(at, '"'); err != nil {
			return err
		}
		span, err := time.ParseDuration(d.text(at, end))
		if err != nil {
			return d.fault(at, BadValue, "want a duration such as 90s or 1h30m")
		}
		v.SetInt(int64(span))
		return nil
	case kind == reflect.String && v.Type() != numberType:
		if err := d.want(at, '"'); err != nil {
			return err
		}
		v.SetString(d.text(at, end))
		return nil
	case kind == reflect.Bool:
		if err := d.want(at, 't'); err != nil {
			return err
		}
		v.SetBool(d[at] == 't')
		return nil
	case !v.CanInt() && !v.CanUint() && kind != reflect.Float64 && kind != reflect.String:
		return d.fault(at, BadTarget, v.Type().String())
	}
	if err := d.want(at, '0'); err != nil {
		return err
	}
	return d.number(at, number(d[at:]), v)
}

func (d decoder) number(at int, n Number, v reflect.Value) *Error {
	switch {
	case v.Type() == numberType:
		v.SetString(string(n))
	case v.CanInt():
		i, ok := n.Int64()
		if !ok || v.OverflowInt(i) {
			return d.fault(at, n.notInteger(), "want "+v.Kind().String())
		}
		v.SetInt(i)
	case v.CanUint():
		u, err := strconv.ParseUint(string(n), 10, 64)
		if err != nil || v.OverflowUint(u) {
			return d.fault(at, n.notInteger(), "want "+v.Kind().String())
		}
		v.SetUint(u)
	default:
		f := n.Float64()
		if number(strconv.AppendFloat(nil, f, 'e', -1, 64)) != n {
			return d.fault(at, NumberNotExact, "")
		}
		v.SetFloat(f)
	}
	return nil
}

// field is a struct field that a member may fill.
type field struct {
	name     string
	index    []int
	required bool
	seen     bool
}

func fields(t reflect.Type, outer []int) []field {
	var all []field
	for i := range t.NumField() {
		f := t.Field(i)
		index := slices.Concat(outer, []int{i})
		tag, tagged := f.Tag.Lookup("json")
		name, options, _ := strings.Cut(tag, ",")
		switch {
		case f.Anonymous && !tagged && f.Type.Kind() == reflect.Struct:
			all = append(all, fields(f.Type, index)...)
		case name != "" && name != "-" && f.IsExported():
			required := false
			for option := range strings.SplitSeq(options, ",") {
				required = required || option == "required"
			}
			all = append(all, field{name: name, index: index, required: required})
		}
	}
	return all
}

func (d decoder) structure(at int, v reflect.Value) *Error {
	known := fields(v.Type(), nil)
	w, _ := walk(d, at)
next:
	for e, ok := w.next(); ok; e, ok = w.next() {
		for i := range known {
			if f := &known[i]; nameIs(e.name, f.name) {
				f.seen = true
				if err := d.value(e.at, e.end, v.FieldByIndex(f.index)); err != nil {
					return err.in(f.name)
				}
				continue next
			}
		}
		name := unquote(e.name)
		hint := ""
		if near := nearest(name, known); near != "" {
			hint = "did you mean " + strconv.Quote(near) + "?"
		}
		return d.fault(e.start, UnknownMember, hint).in(name)
	}
	for _, f := range known {
		if f.required && !f.seen {
			return d.fault(at, MissingMember, "").in(f.name)
		}
	}
	return nil
}

// nearest returns the known name that was probably meant, or "".
func nearest(name string, known []field) string {
	const longest = 64 // of names worth comparing
	if len(name) > longest {
		return ""
	}
	best, least := "", len(name)/3+1
	for _, f := range known {
		if d := distance(strings.ToLower(name), strings.ToLower(f.name)); d <= least && (best == "" || d < least) {
			best, least = f.name, d
		}
	}
	return best
}

// distance is Levenshtein's: how many bytes to insert, delete or replace.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0]++
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
