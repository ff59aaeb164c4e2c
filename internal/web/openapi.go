package web

import (
	_ "embed"
)

// openapi is the description of the API. It is made from the route table, the
// types of package api and their comments by
//
//	go test ./internal/web -run OpenAPI -update
//
// and a test fails when it is not what they would make. See
// docs/decisions/0003-http-by-hand.md.
//
//go:embed openapi.json
var openapi []byte

func (x *exchange) description() error {
	x.w.Header().Set("Content-Type", "application/json")
	x.write(openapi)
	return nil
}
