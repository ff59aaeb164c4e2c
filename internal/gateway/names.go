package gateway

import "strings"

const (
	// methodPrefix marks calls that are methods of the protocol and no tools: a
	// policy speaks of fs.mcp:resources/read.
	methodPrefix = "mcp:"
	// separator stands between a server's id and a tool's name on the merged
	// endpoint. An id has no underscore, so the first one ends it (MCP-12).
	separator = "__"
	// ownPrefix begins the names of our own tools where a server has their plain names.
	ownPrefix = reserved + separator
)

// join names a server's tool or prompt on the merged endpoint.
func join(server, name string) string { return server + separator + name }

// split takes such a name apart.
func split(joined string) (server, name string, ok bool) {
	server, name, ok = strings.Cut(joined, separator)
	return server, name, ok && server != "" && name != ""
}
