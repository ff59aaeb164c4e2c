package mcp

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/ayegate/ayegate/internal/strictjson"
)

// ParamHeader binds an argument of a tool to the header that repeats its value
// (2026-07-28, x-mcp-header in a tool's inputSchema).
type ParamHeader struct {
	Path []string // of member names, below arguments
	Name string   // of the header, with its prefix, in net/http's form
}

// ParamHeaders reads the bindings out of a tool's inputSchema, in the order of
// the schema. An error means that the revision forbids what the schema says, and
// that the tool must not be offered over HTTP.
func ParamHeaders(inputSchema []byte) ([]ParamHeader, error) {
	w := schemaWalk{}
	if err := w.schema(inputSchema, nil, true); err != nil {
		return nil, err
	}
	return w.found, nil
}

const headerKeyword = "x-mcp-header"

// schemaWalk visits every subschema. An annotation counts where a chain of
// properties leads to it, and is an error anywhere else.
type schemaWalk struct {
	found []ParamHeader
}

func (w *schemaWalk) schema(s []byte, path []string, reachable bool) error {
	var name, kind []byte
	err := strictjson.Members(s, strictjson.Limits{}, func(keyword string, v []byte) error {
		switch keyword {
		case headerKeyword:
			name = v
		case "type":
			kind = v
		case "properties":
			return w.schemas(v, path, reachable)
		case "patternProperties", "$defs", "definitions", "dependentSchemas":
			return w.schemas(v, nil, false)
		case "default", "const", "enum", "examples":
		default:
			return w.below(v)
		}
		return nil
	})
	if err != nil || name == nil {
		return err
	}
	return w.bind(name, kind, path, reachable)
}

// schemas visits an object whose members are schemas under names of their own.
func (w *schemaWalk) schemas(v []byte, path []string, reachable bool) error {
	if v[0] != '{' {
		return nil
	}
	return strictjson.Members(v, strictjson.Limits{}, func(name string, s []byte) error {
		if s[0] != '{' {
			return nil
		}
		return w.schema(s, append(slices.Clip(path), name), reachable)
	})
}

// below visits the schemas in the value of any other keyword.
func (w *schemaWalk) below(v []byte) error {
	switch v[0] {
	case '{':
		return w.schema(v, nil, false)
	case '[':
		return strictjson.Elements(v, strictjson.Limits{}, func(_ int, s []byte) error { return w.below(s) })
	}
	return nil
}

func (w *schemaWalk) bind(name, kind []byte, path []string, reachable bool) error {
	text, err := strictjson.String(name)
	at := "/" + strings.Join(path, "/")
	switch {
	case err != nil || !isToken(text):
		return fmt.Errorf("%s at %s is no header name", headerKeyword, at)
	case !reachable || len(path) == 0:
		return fmt.Errorf("%s %q stands where no chain of properties leads", headerKeyword, text)
	case string(kind) != `"string"` && string(kind) != `"integer"` && string(kind) != `"boolean"`:
		return fmt.Errorf("%s at %s needs the type string, integer or boolean", headerKeyword, at)
	}
	header := http.CanonicalHeaderKey(HeaderParamPrefix + text)
	for _, other := range w.found {
		if strings.EqualFold(other.Name, header) {
			return fmt.Errorf("%s %q is given twice", headerKeyword, text)
		}
	}
	w.found = append(w.found, ParamHeader{Path: path, Name: header})
	return nil
}

// isToken reports whether s is a token of RFC 9110, section 5.6.2.
func isToken(s string) bool {
	for i := range len(s) {
		if !isAlphanumeric(s[i]) && strings.IndexByte("!#$%&'*+-.^_`|~", s[i]) < 0 {
			return false
		}
	}
	return s != ""
}

func isAlphanumeric(c byte) bool {
	return 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9'
}

// maxSafe is the largest integer that every JSON reader keeps.
const maxSafe = 1<<53 - 1

// headerText returns the text by which a header repeats a value, and false for
// null and for what no header may repeat.
func headerText(v []byte) (string, bool) {
	switch v[0] {
	case '"':
		s, err := strictjson.String(v)
		return s, err == nil
	case 't', 'f':
		return string(v), true
	}
	n, err := strictjson.Int(v)
	if err != nil || n > maxSafe || n < -maxSafe {
		return "", false
	}
	return strconv.FormatInt(n, 10), true
}

// SetParamHeaders sets the headers that repeat arguments of a tools/call.
func SetParamHeaders(h http.Header, bound []ParamHeader, params []byte) {
	for _, b := range bound {
		if v, ok := b.value(params); ok {
			if text, ok := headerText(v); ok {
				h.Set(b.Name, EncodeHeader(text))
			}
		}
	}
}

// CheckParamHeaders compares the bound Mcp-Param-* headers of a tools/call with
// its arguments (MCP-01). Headers that no argument is bound to mean nothing.
func CheckParamHeaders(h http.Header, bound []ParamHeader, params []byte) *Error {
	for _, b := range bound {
		if e := b.check(h, params); e != nil {
			return e
		}
	}
	return nil
}

func (b ParamHeader) check(h http.Header, params []byte) *Error {
	v, ok := b.value(params)
	if !ok || v[0] == 'n' {
		if len(h[b.Name]) > 0 {
			return headerError(b.Name, "is there, and its argument is not")
		}
		return nil
	}
	value, err := oneHeader(h, b.Name)
	if err != nil {
		return headerError(b.Name, err.Error())
	}
	said, err := DecodeHeader(value)
	if err != nil {
		return headerError(b.Name, err.Error())
	}
	text, ok := headerText(v)
	if !ok || text != said && !sameInteger(v, said) {
		return headerError(b.Name, "says something else than /params/arguments/"+strings.Join(b.Path, "/"))
	}
	return nil
}

// sameInteger compares as numbers: a header may say 42.0 of 42.
func sameInteger(v []byte, said string) bool {
	if v[0] == '"' {
		return false
	}
	a, err := strictjson.Int(v)
	if err != nil {
		return false
	}
	b, err := strictjson.Int([]byte(said))
	return err == nil && a == b
}

func (b ParamHeader) value(params []byte) ([]byte, bool) {
	return get(params, append([]string{"arguments"}, b.Path...)...)
}
