package policy

import (
	"strings"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/ayegate/ayegate/internal/strictjson"
)

// arguments are the arguments of a call as expressions read them: each is decoded
// when the first expression asks for it, so that a condition on a path does not
// pay for the file beside it.
type arguments struct {
	raw     []byte // canonical object
	decoded []argument
	all     map[string]any // once an expression wants them as a whole
}

type argument struct {
	name  string
	value any
}

// FindStringKey implements the engine's access to a member by a literal name.
func (a *arguments) FindStringKey(name string) (any, bool) {
	for i := range a.decoded {
		if a.decoded[i].name == name {
			return a.decoded[i].value, true
		}
	}
	raw, ok := strictjson.Get(a.raw, name)
	if !ok {
		return nil, false
	}
	value := decodeArgument(raw)
	a.decoded = append(a.decoded, argument{name, value})
	return value, true
}

func decodeArgument(raw []byte) any {
	value, err := strictjson.Tree(raw, strictjson.Limits{Bytes: len(raw)})
	if err != nil {
		return types.WrapErr(ownError("an argument it reads cannot be read"))
	}
	if !exact(value) {
		return types.WrapErr(ownError(inexactNumber))
	}
	return value
}

// decode makes the arguments available as a whole, which needs every number in
// them to be exact: maps and lists take what cannot be compared for equal.
func (a *arguments) decode() reason {
	if a.all != nil {
		return ""
	}
	tree, err := strictjson.Tree(a.raw, strictjson.Limits{Bytes: len(a.raw)})
	all, ok := tree.(map[string]any)
	switch {
	case err != nil || !ok:
		return "the arguments cannot be read"
	case !exact(all):
		return inexactNumber
	}
	a.all = all
	return ""
}

// exact reports whether every number in v has an exact counterpart in the engine.
func exact(v any) bool {
	switch v := v.(type) {
	case strictjson.Number:
		return short15(string(v)) || !types.IsError(number(v))
	case []any:
		for _, item := range v {
			if !exact(item) {
				return false
			}
		}
	case map[string]any:
		for _, item := range v {
			if !exact(item) {
				return false
			}
		}
	}
	return true
}

// short15 reports whether a number has so few digits, fifteen at most, that an
// int64 holds it or a double's shortest form is the number itself.
func short15(s string) bool { return len(s) <= 15 && strings.IndexByte(s, 'e') < 0 }

const inexactNumber reason = "an argument it reads holds a number that cannot be compared exactly"

// number is the CEL value of a JSON number: an int when it is one, a double when
// a double says exactly it, else an error. A rounded number would compare equal
// to its neighbour.
func number(n strictjson.Number) ref.Val {
	if i, ok := n.Int64(); ok {
		return types.Int(i)
	}
	if fraction(string(n)) {
		if f, ok := double(string(n)); ok {
			return types.Double(f)
		}
	}
	return types.WrapErr(ownError(inexactNumber))
}

// fraction reports whether a canonical number has a fraction: such numbers alone
// are written with a dot and without an exponent, or with a negative exponent.
func fraction(s string) bool {
	exponent := strings.IndexByte(s, 'e')
	if exponent < 0 {
		return strings.IndexByte(s, '.') >= 0
	}
	return s[exponent+1] == '-'
}
