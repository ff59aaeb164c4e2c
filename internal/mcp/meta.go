package mcp

import (
	"github.com/ayegate/ayegate/internal/strictjson"
)

// Members of params._meta that the protocol defines.
const (
	MetaVersion       = "io.modelcontextprotocol/protocolVersion"
	MetaCapabilities  = "io.modelcontextprotocol/clientCapabilities"
	MetaClientInfo    = "io.modelcontextprotocol/clientInfo"
	MetaSubscription  = "io.modelcontextprotocol/subscriptionId"
	metaProgressToken = "progressToken"
)

// Meta returns a member of params._meta, nil when there is none.
func Meta(params []byte, name string) []byte {
	v, _ := get(params, "_meta", name)
	return v
}

// ProgressToken returns the token under which the sender of a request wants to
// hear of progress, nil when it does not.
func ProgressToken(params []byte) []byte {
	return Meta(params, metaProgressToken)
}

// WithProgressToken returns the params of a request with another token (JSON) in
// _meta; nothing else changes. params may be nil.
func WithProgressToken(params, token []byte) ([]byte, error) {
	return WithMeta(params, metaProgressToken, token)
}

// WithMeta returns params with a member of _meta set to value (JSON); nothing
// else changes. params may be nil.
func WithMeta(params []byte, name string, value []byte) ([]byte, error) {
	if params == nil {
		params = []byte("{}")
	}
	return strictjson.Splice(params, value, "_meta", name)
}

// NotifiedToken returns the token that the params of notifications/progress name.
func NotifiedToken(params []byte) []byte {
	v, _ := get(params, metaProgressToken)
	return v
}

// WithNotifiedToken returns the params of notifications/progress with another
// token (JSON); nothing else changes.
func WithNotifiedToken(params, token []byte) ([]byte, error) {
	return strictjson.Splice(params, token, metaProgressToken)
}
