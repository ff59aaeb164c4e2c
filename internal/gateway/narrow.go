package gateway

import "github.com/ayegate/ayegate/internal/mcp"

// What passes without a judgement carries nothing but what the protocol itself
// gives a meaning to: a server could take any other member for an order, and
// neither a rule nor a person would have seen it (MCP-09).

// Members of the params that the specification names, by method, besides _meta.
var named = map[string][]string{
	"prompts/list":             {"cursor"},
	"resources/list":           {"cursor"},
	"resources/templates/list": {"cursor"},
	"logging/setLevel":         {"level"},
}

// metaLogLevel is how a modern agent asks for log messages.
const metaLogLevel = "io.modelcontextprotocol/logLevel"

// Members of _meta that the protocol itself names in requests.
var metaNamed = []string{
	"progressToken", mcp.MetaVersion, mcp.MetaCapabilities, mcp.MetaClientInfo, metaLogLevel,
	"traceparent", "tracestate", "baggage",
}

// The levels of logging/setLevel (RFC 5424).
var logLevels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// narrowed reduces the params of a request that is not judged to the members that
// the specification names for its method. Params that have no others come back as
// they are.
func narrowed(method string, params []byte) []byte {
	if params == nil {
		return nil
	}
	meta := get(params, "_meta")
	out := only(params, append([]string{"_meta"}, named[method]...)...)
	if less := only(meta, metaNamed...); len(less) != len(meta) {
		out = set(out, less, "_meta")
	}
	return out
}

// only is an object with the members of some names, in their order; doc itself
// when it has no others.
func only(doc []byte, names ...string) []byte {
	out, dropped := &object{}, false
	members(doc, func(name string, value []byte) {
		for _, n := range names {
			if n == name {
				out.add(name, value)
				return
			}
		}
		dropped = true
	})
	if !dropped {
		return doc
	}
	return out.bytes()
}

// maxCursors bounds the cursors of one connection that an agent may come back with.
const maxCursors = 1024

// give remembers the cursor of a result for the agent to come back with. A cursor
// is free text, so an agent's own would reach the server unjudged.
func (l *link) give(method string, result []byte) {
	raw := get(result, "nextCursor")
	if raw == nil || raw[0] != '"' {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.cursors) >= maxCursors || l.cursors == nil {
		l.cursors = make(map[[2]string]struct{})
	}
	l.cursors[[2]string{method, textAt(raw)}] = struct{}{}
}

// gave reports whether a cursor is one of the server's; a value that is no string is none.
func (l *link) gave(method string, cursor []byte) bool {
	if cursor[0] != '"' {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.cursors[[2]string{method, textAt(cursor)}]
	return ok
}
