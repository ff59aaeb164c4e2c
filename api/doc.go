// Package api is what programs outside ayegate rely on: the types of its HTTP
// API with the names they have on the wire, its stable error codes, and a
// [Client] for agents and for people. It depends on nothing but the standard
// library, so that an agent or a tool can import it without the server.
//
// Two planes never mix. An agent asks, with an agent key, under /v1/calls. A
// person decides, with a human token or a browser session, under everything
// else. A credential of the other class is refused with [WrongCredentialClass].
//
// The comment of each field is its documentation: the OpenAPI document that the
// server publishes at /openapi.json is generated from these types. A field
// of a request that is not omitted when empty must be present. Unknown fields in
// a request are refused; a client must pass over unknown fields in an answer,
// because fields are added.
//
// Times are RFC 3339 in UTC by the server's clock. Durations are written as Go
// writes them ("30s", "5m"). Hashes are "sha256:" and 64 hexadecimal digits.
//
// docs/http.md tells the same story with examples.
package api
