package mcp

import (
	"net/http"

	"github.com/ayegate/ayegate/internal/strictjson"
)

// modernClient reads who asks out of a modern request's _meta. The version it
// returns may be one that is not supported.
func modernClient(m Message) (c Client, e *Error) {
	version, ok := metaText(m.Params, MetaVersion)
	if !ok {
		return c, badMeta(MetaVersion, "must be a string")
	}
	c.Version = Version(version)
	c.Capabilities = Meta(m.Params, MetaCapabilities)
	if !isObject(c.Capabilities) {
		return c, badMeta(MetaCapabilities, "must be an object")
	}
	c.Info = Meta(m.Params, MetaClientInfo)
	if c.Info != nil && !isObject(c.Info) {
		return c, badMeta(MetaClientInfo, "must be an object")
	}
	return c, nil
}

func metaText(params []byte, name string) (string, bool) {
	v := Meta(params, name)
	if v == nil {
		return "", false
	}
	s, err := strictjson.String(v)
	return s, err == nil
}

func isObject(v []byte) bool { return len(v) > 0 && v[0] == '{' }

func badMeta(name, problem string) *Error {
	at := "/params/_meta/" + pointerToken(name)
	return &Error{
		Code:    CodeInvalidParams,
		Message: nothingRan("invalid params: " + at + " " + problem),
		Data:    append(strictjson.AppendString([]byte(`{"pointer":`), at), '}'),
	}
}

// unsupported says which revisions there are instead of v.
func unsupported(v Version) *Error {
	data := []byte(`{"supported":[`)
	for i, s := range Versions {
		if i > 0 {
			data = append(data, ',')
		}
		data = strictjson.AppendString(data, string(s))
	}
	data = append(data, `],"requested":`...)
	data = strictjson.AppendString(data, string(v))
	return &Error{
		Code:    CodeVersion,
		Message: nothingRan("unsupported protocol version"),
		Data:    append(data, '}'),
	}
}

// MissingCapability is the error for a modern request that needs a capability
// which it did not declare. required is the JSON object of what it must declare.
func MissingCapability(required []byte) *Error {
	data := append([]byte(`{"requiredCapabilities":`), required...)
	return &Error{
		Code:    CodeMissingCapability,
		Message: nothingRan("the request does not declare a capability that it needs"),
		Data:    append(data, '}'),
	}
}

// notInEra refuses the methods that exist in the other era only. What else is
// unknown is for the [Server] to say.
func notInEra(method string, era Era) *Error {
	removed := false
	switch method {
	case "initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "tasks/list", "tasks/result":
		removed = era == Modern
	case "server/discover", "subscriptions/listen", "tasks/update":
		removed = era == Legacy
	}
	if !removed {
		return nil
	}
	return &Error{Code: CodeMethodNotFound, Message: nothingRan("method not found in this protocol revision: " + method)}
}

// statusOf returns the HTTP status that goes with an error. In the legacy era an
// error is an answer like any other.
func statusOf(e *Error, era Era) int {
	if e.Status != 0 {
		return e.Status
	}
	if era == Legacy {
		return http.StatusOK
	}
	switch e.code() {
	case CodeMethodNotFound:
		return http.StatusNotFound
	case CodeParse, CodeInvalidRequest, CodeInvalidParams, CodeHeaderMismatch, CodeMissingCapability, CodeVersion:
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// code returns the code that goes over the wire.
func (e *Error) code() int {
	if e.Raw == nil {
		return e.Code
	}
	v, ok := get(e.Raw, "code")
	if !ok {
		return 0
	}
	n, err := strictjson.Int(v)
	if err != nil {
		return 0
	}
	return int(n)
}
