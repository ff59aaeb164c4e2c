// Package demo is the world of `ayegate demo`: three small MCP servers (files, a
// bank, a SQL table) that really change something, in one folder, and the script
// of an agent that uses them.
//
// The servers are ordinary MCP servers over stdio and know nothing of ayegate;
// the agent is an ordinary MCP client over HTTP and knows nothing of it either.
// What the demo shows is therefore what the product does. Nothing outside the
// folder is touched.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/ayegate/ayegate/internal/mcp"
	"github.com/ayegate/ayegate/internal/strictjson"
)

// Servers are the ids of the toy servers, the argument of [Serve].
var Servers = []string{"fs", "bank", "db"}

// tool is one tool of a toy server.
type tool struct {
	name, title, description string
	schema                   string // JSON
	readOnly                 bool
	run                      func(ctx context.Context, args []byte) (string, error)
}

// toy is an MCP server with fixed tools.
type toy struct {
	name  string
	tools []tool
}

// Serve speaks MCP over in and out as one of the toy servers, with dir as its
// whole world, until in ends.
func Serve(ctx context.Context, kind, dir string, in io.Reader, out io.Writer) error {
	var t *toy
	switch kind {
	case "fs":
		t = newFiles(dir)
	case "bank":
		t = newBank(dir)
	case "db":
		var err error
		var closeDB func() error
		if t, closeDB, err = newTable(ctx, dir); err != nil {
			return err
		}
		defer closeDB() //nolint:errcheck // the process ends with it
	default:
		return fmt.Errorf("no toy server %q; there are %v", kind, Servers)
	}
	return mcp.ServeStdio(ctx, in, out, t, mcp.Client{Principal: "stdio", Transport: "stdio"})
}

// Initialize answers the legacy handshake.
func (t *toy) Initialize(_ context.Context, c mcp.Client, _ []byte, _ mcp.Pusher) ([]byte, *mcp.Error) {
	b := append([]byte(`{"protocolVersion":`), strictjson.AppendString(nil, string(c.Version))...)
	b = append(b, `,"capabilities":{"tools":{}},"serverInfo":`...)
	return append(append(b, t.info()...), '}'), nil
}

func (t *toy) info() []byte {
	return append(strictjson.AppendString([]byte(`{"name":`), "ayegate-demo-"+t.name), `,"version":"1"}`...)
}

// Serve answers one request.
func (t *toy) Serve(ctx context.Context, x mcp.Exchange) {
	m := x.Request()
	var err error
	switch m.Method {
	case "ping":
		err = x.Reply([]byte(`{}`))
	case "server/discover":
		err = x.Reply(append(append([]byte(`{"resultType":"complete","supportedVersions":["2026-07-28","2025-11-25"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":`), t.info()...), `}}`...))
	case "tools/list":
		err = x.Reply(t.list(x.Client()))
	case "tools/call":
		t.call(ctx, x)
	default:
		err = x.Fail(&mcp.Error{Code: mcp.CodeMethodNotFound, Message: "this server has tools and nothing else"})
	}
	if err != nil && !errors.Is(err, mcp.ErrEnded) {
		return // the asker is gone
	}
}

// Notification ignores what needs no answer.
func (t *toy) Notification(context.Context, mcp.Client, mcp.Message) {}

// Close has nothing to release.
func (t *toy) Close(mcp.Client) {}

func (t *toy) list(c mcp.Client) []byte {
	b := []byte(`{"tools":[`)
	for i, tl := range t.tools {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"name":`...)
		b = strictjson.AppendString(b, tl.name)
		b = append(b, `,"title":`...)
		b = strictjson.AppendString(b, tl.title)
		b = append(b, `,"description":`...)
		b = strictjson.AppendString(b, tl.description)
		b = append(b, `,"inputSchema":`...)
		b = append(b, tl.schema...)
		if tl.readOnly {
			b = append(b, `,"annotations":{"readOnlyHint":true}`...)
		}
		b = append(b, '}')
	}
	b = append(b, ']')
	if c.Version.Era() == mcp.Modern {
		b = append(b, `,"resultType":"complete","ttlMs":0,"cacheScope":"private"`...)
	}
	return append(b, '}')
}

func (t *toy) call(ctx context.Context, x mcp.Exchange) {
	params := x.Request().Params
	name := ""
	if raw, ok := strictjson.Get(params, "name"); ok {
		name, _ = strictjson.String(raw) // a name that is no text is no tool
	}
	args, ok := strictjson.Get(params, "arguments")
	if !ok {
		args = []byte(`{}`)
	}
	for _, tl := range t.tools {
		if tl.name != name {
			continue
		}
		text, err := tl.run(ctx, args)
		if err != nil {
			text = err.Error()
		}
		_ = x.Reply(result(x.Client(), text, err != nil)) // the asker may be gone
		return
	}
	_ = x.Fail(&mcp.Error{Code: mcp.CodeInvalidParams, Message: "no such tool"})
}

func result(c mcp.Client, text string, isError bool) []byte {
	b := append([]byte(`{"content":[{"type":"text","text":`), strictjson.AppendString(nil, text)...)
	b = append(b, `}]`...)
	if isError {
		b = append(b, `,"isError":true`...)
	}
	if c.Version.Era() == mcp.Modern {
		b = append(b, `,"resultType":"complete"`...)
	}
	return append(b, '}')
}
