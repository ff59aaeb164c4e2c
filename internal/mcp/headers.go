package mcp

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/ayegate/ayegate/internal/strictjson"
)

// Names of the headers of streamable HTTP, in the form net/http keeps them.
const (
	HeaderVersion     = "Mcp-Protocol-Version"
	HeaderSession     = "Mcp-Session-Id"
	HeaderMethod      = "Mcp-Method"
	HeaderName        = "Mcp-Name"
	HeaderParamPrefix = "Mcp-Param-"
	HeaderLastEvent   = "Last-Event-Id"
)

// EncodeHeader returns s as a header value (2026-07-28, streamable HTTP, "Value
// Encoding"): itself when it is printable ASCII that no one can misread, its
// Base64 between "=?base64?" and "?=" otherwise.
func EncodeHeader(s string) string {
	if isPlainHeader(s) {
		return s
	}
	return base64Prefix + base64.StdEncoding.EncodeToString([]byte(s)) + base64Suffix
}

// DecodeHeader returns the text that a header value stands for. It refuses what
// two readers could read in two ways: Base64 that is not in its only form, text
// that is not UTF-8, bytes that are not printable ASCII.
func DecodeHeader(v string) (string, error) {
	inner, ok := strings.CutPrefix(v, base64Prefix)
	if ok {
		inner, ok = strings.CutSuffix(inner, base64Suffix)
	}
	if !ok {
		if !isHeaderText(v) {
			return "", errors.New("is not printable ASCII")
		}
		return v, nil
	}
	text, err := strictBase64.DecodeString(inner)
	if err != nil || strings.ContainsAny(inner, "\r\n") {
		return "", errors.New("is not valid Base64")
	}
	if !utf8.Valid(text) {
		return "", errors.New("is Base64 of something that is not UTF-8")
	}
	return string(text), nil
}

const (
	base64Prefix = "=?base64?"
	base64Suffix = "?="
)

var strictBase64 = base64.StdEncoding.Strict()

// isPlainHeader reports whether s can be a header value as it is.
func isPlainHeader(s string) bool {
	if s == "" {
		return true
	}
	if strings.HasPrefix(s, base64Prefix) && strings.HasSuffix(s, base64Suffix) {
		return false
	}
	return s[0] != ' ' && s[len(s)-1] != ' ' && isHeaderText(s)
}

// isHeaderText reports whether s is visible ASCII and spaces. Tabs are legal in
// HTTP and refused here: no sender needs them, and proxies fold them.
func isHeaderText(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// nameMember says which member of params the header Mcp-Name repeats, for the
// methods that must send it.
func nameMember(method string) string {
	switch method {
	case "tools/call", "prompts/get":
		return "name"
	case "resources/read":
		return "uri"
	}
	return ""
}

// nameMembers are the members of params that Mcp-Name may repeat on any other
// method (tasks/get says its taskId there).
var nameMembers = []string{"name", "uri", "taskId"}

// SetHeaders sets the headers that a modern request of this method must carry.
// It returns an error when params lacks the member that Mcp-Name repeats.
func SetHeaders(h http.Header, v Version, method string, params []byte) error {
	h.Set(HeaderVersion, string(v))
	h.Set(HeaderMethod, method)
	member := nameMember(method)
	if member == "" && strings.HasPrefix(method, "tasks/") {
		member = "taskId"
	}
	if member == "" {
		return nil
	}
	name, err := textMember(params, member)
	if err != nil {
		return err
	}
	h.Set(HeaderName, EncodeHeader(name))
	return nil
}

// CheckHeaders compares Mcp-Method and Mcp-Name of a modern request with its
// body. Nothing is ever decided by a header; they are compared because whatever
// stands in front of us may have decided by them (MCP-01, MCP-02).
func CheckHeaders(h http.Header, m Message) *Error {
	method, err := oneHeader(h, HeaderMethod)
	if err != nil {
		return headerError(HeaderMethod, err.Error())
	}
	if method != m.Method {
		return headerError(HeaderMethod, fmt.Sprintf("is %q, the body's method is %q", method, m.Method))
	}
	return checkNameHeader(h, m)
}

func checkNameHeader(h http.Header, m Message) *Error {
	member := nameMember(m.Method)
	if member == "" && len(h[HeaderName]) == 0 {
		return nil
	}
	value, err := oneHeader(h, HeaderName)
	if err != nil {
		return headerError(HeaderName, err.Error())
	}
	name, err := DecodeHeader(value)
	if err != nil {
		return headerError(HeaderName, err.Error())
	}
	if member != "" {
		body, err := textMember(m.Params, member)
		if err != nil {
			return &Error{Code: CodeInvalidParams, Message: nothingRan(err.Error())}
		}
		if name != body {
			return headerError(HeaderName, fmt.Sprintf("is %q, the body says %q at /params/%s", name, body, member))
		}
		return nil
	}
	for _, member := range nameMembers {
		if body, err := textMember(m.Params, member); err == nil && body == name {
			return nil
		}
	}
	return headerError(HeaderName, fmt.Sprintf("is %q, and the body says no such thing", name))
}

// oneHeader returns the value of a header that must be there exactly once.
// http.Header.Get would take the first of two.
func oneHeader(h http.Header, name string) (string, error) {
	switch values := h[name]; len(values) {
	case 0:
		return "", errors.New("is missing")
	case 1:
		return values[0], nil
	default:
		return "", errors.New("is there more than once")
	}
}

func headerError(name, problem string) *Error {
	return &Error{
		Code:    CodeHeaderMismatch,
		Message: nothingRan("header mismatch: " + name + " " + problem),
		Data:    append(strictjson.AppendString([]byte(`{"header":`), name), '}'),
	}
}

// textMember returns a string member of params.
func textMember(params []byte, member string) (string, error) {
	v, ok := get(params, member)
	if !ok {
		return "", fmt.Errorf("/params/%s is missing", member)
	}
	s, err := strictjson.String(v)
	if err != nil {
		return "", fmt.Errorf("/params/%s must be a string", member)
	}
	return s, nil
}

// nothingRan ends a refusal with the sentence that callers need most.
func nothingRan(problem string) string {
	return problem + "; nothing ran"
}
