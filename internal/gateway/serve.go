package gateway

import (
	"context"
	"slices"

	"github.com/ayegate/ayegate/api"
	"github.com/ayegate/ayegate/internal/desk"
	"github.com/ayegate/ayegate/internal/identity"
	"github.com/ayegate/ayegate/internal/mcp"
)

// exchange is one request of an agent that is being answered.
type exchange struct {
	g      *Gateway
	x      mcp.Exchange
	client mcp.Client
	party  *party
	from   identity.Agent
	method string
	params []byte
}

func (e *exchange) modern() bool { return e.client.Version.Era() == mcp.Modern }

// link is the agent's connection to a server behind this endpoint.
func (e *exchange) link(server string) *link { return e.party.link(server, e.client.Version.Era()) }

// Serve implements [mcp.Server].
func (g *Gateway) Serve(ctx context.Context, x mcp.Exchange) {
	c, m := x.Client(), x.Request()
	e := &exchange{g: g, x: x, client: c, method: m.Method, params: m.Params}
	if !g.serves(c.Server) {
		e.fail(noServer(c.Server))
		return
	}
	var err error
	if e.from, err = g.agent(c); err != nil {
		e.fail(&mcp.Error{Code: mcp.CodeInvalidRequest, Status: 403, Message: "unknown agent; nothing ran"})
		return
	}
	if e.party, err = g.partyOf(c); err != nil {
		e.fail(&mcp.Error{Code: mcp.CodeInternal, Message: err.Error() + "; nothing ran"})
		return
	}
	if !e.party.enter() {
		e.refuse(&desk.Refusal{Code: api.RateLimited, Detail: "too many requests of this agent are being answered at once"})
		return
	}
	defer e.party.leave()
	e.route(ctx)
}

// route sends a request where it belongs. Whatever is not named here is judged:
// a method that nobody foresaw is no way around the policy (MCP-09).
func (e *exchange) route(ctx context.Context) {
	switch e.method {
	case "ping":
		e.reply([]byte("{}"))
	case "server/discover":
		e.discover(ctx)
	case "tools/list":
		e.listTools(ctx)
	case "prompts/list", "resources/list", "resources/templates/list":
		e.params = narrowed(e.method, e.params)
		if e.client.Server == "" {
			e.merge(ctx)
			return
		}
		e.pass(ctx, e.client.Server)
	case "logging/setLevel":
		e.setLevel(ctx)
	case methodListen:
		e.serveListener(ctx)
	case "tools/call":
		e.callTool(ctx)
	default:
		e.callMethod(ctx)
	}
}

// setLevel passes the agent's log level on, now and to connections yet to open.
func (e *exchange) setLevel(ctx context.Context) {
	if !slices.Contains(logLevels, textAt(e.params, "level")) {
		e.fail(badParams("params.level must be a log level of the protocol"))
		return
	}
	e.params = narrowed(e.method, e.params)
	sent := 0
	var failed error
	e.eachLogger(func(l *link) {
		switch took, err := e.tellLevel(ctx, l); {
		case err != nil:
			failed = err
		case took:
			sent++
		}
	})
	switch {
	case sent > 0:
		e.reply([]byte("{}"))
	case failed != nil:
		e.failList(failed)
	default:
		e.fail(noMethod(e.method, "no server here takes a log level"))
	}
}

// tellLevel reports whether the server behind a connection takes log levels this way.
func (e *exchange) tellLevel(ctx context.Context, l *link) (bool, error) {
	c, err := l.acquire(ctx)
	if err != nil {
		return false, &notReached{l.server, err}
	}
	defer c.release()
	if c.about.Version.Era() == mcp.Modern {
		return false, nil
	}
	m, err := c.up.Call(ctx, e.method, e.params, nil)
	if err != nil {
		return false, err
	}
	if m.Error != nil {
		return false, errorOf(m)
	}
	l.mu.Lock()
	l.level = without(e.params, "_meta")
	l.mu.Unlock()
	return true, nil
}

// eachLogger visits the connections that a log level is for: the endpoint's own,
// or on the merged endpoint those of servers that are known to take one.
func (e *exchange) eachLogger(f func(*link)) {
	for _, server := range e.g.behind(e.client.Server) {
		if e.client.Server == "" {
			known, ok := e.g.abouts.Load(server)
			if !ok || !has(known.(mcp.About).Capabilities, "logging") {
				continue
			}
		}
		f(e.link(server))
	}
}

// callTool takes apart a tools/call: our own tools, or a server's.
func (e *exchange) callTool(ctx context.Context) {
	name := textAt(e.params, "name")
	if name == "" {
		e.fail(badParams("params.name must be the name of a tool"))
		return
	}
	if own := e.own(name); own != nil {
		own(ctx)
		return
	}
	server, tool := e.client.Server, name
	if server == "" {
		var ok bool
		if server, tool, ok = split(name); !ok || e.g.noSuch(server) {
			e.fail(badParams("no tool " + name + " behind this gateway"))
			return
		}
	}
	if why := unusable(tool); why != "" {
		e.fail(badParams("no tool " + name + ": " + why))
		return
	}
	a, err := newToolAction(server, tool, e)
	if err != nil {
		e.refuseAs(server+"."+tool, err)
		return
	}
	e.submit(ctx, a)
}

func (g *Gateway) noSuch(server string) bool {
	_, ok := g.c.Servers[server]
	return !ok
}

// callMethod judges any other request: its params are the arguments.
func (e *exchange) callMethod(ctx context.Context) {
	server, params, err := e.destination(ctx)
	if err != nil {
		e.fail(err)
		return
	}
	a, bad := newMethodAction(server, e.method, params, e)
	if bad != nil {
		e.refuse(bad)
		return
	}
	e.submit(ctx, a)
}
