package gateway

import (
	"context"
	"errors"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/desk"
	"github.com/ayegate/ayegate/internal/mcp"
)

const (
	initialized  = "notifications/initialized"
	cancelled    = "notifications/cancelled"
	progressed   = "notifications/progress"
	rootsChanged = "notifications/roots/list_changed"
)

// Notification implements [mcp.Server]. The protocol's own announcements go on
// with what the specification names in them and nothing else; any other is judged
// like a call, and sent only where a rule allows it at once: nobody waits for the
// answer to a notification, so people cannot be asked (MCP-08, MCP-09).
func (g *Gateway) Notification(ctx context.Context, c mcp.Client, m mcp.Message) {
	p, err := g.partyOf(c)
	if err != nil || !g.serves(c.Server) {
		return
	}
	switch m.Method {
	case initialized: // each connection has said so for itself
		p.introduced()
	case cancelled: // package mcp has ended the exchange, and told the server
	case rootsChanged:
		p.each(c.Server, c.Version.Era(), func(l *link) { l.announce(ctx, m.Method, nil) })
	case progressed:
		p.mu.Lock()
		l := p.asks[mcp.IDKey(mcp.NotifiedToken(m.Params))]
		p.mu.Unlock()
		if l != nil {
			l.announce(ctx, m.Method, progress(m.Params))
		}
	default:
		g.notice(ctx, p, c, m)
	}
}

// progress is what the specification names in a progress notification, each
// member of its type.
func progress(params []byte) []byte {
	out := (&object{}).add("progressToken", get(params, "progressToken"))
	for _, name := range []string{"progress", "total"} {
		if v := get(params, name); v != nil && (v[0] == '-' || v[0] >= '0' && v[0] <= '9') {
			out.add(name, v)
		}
	}
	return out.text("message", textAt(params, "message")).bytes()
}

// announce sends a notification on the connection, if it is open.
func (l *link) announce(ctx context.Context, method string, params []byte) {
	c := l.open()
	if c == nil {
		return
	}
	if err := c.up.Notify(ctx, method, params); err != nil {
		l.g.log.Debug("a notification did not reach the server", "server", l.server, "method", method, "err", err)
	}
}

// errAllServers says that a notification names no server.
var errAllServers = errors.New("not known on the endpoint of all servers; use the endpoint of one")

// notice judges a notification and sends it where a rule allows that. What is
// dropped is on the record, and the operator's log says why.
func (g *Gateway) notice(ctx context.Context, p *party, c mcp.Client, m mcp.Message) {
	sent := make(chan error, 1)
	judge := func() { sent <- g.judged(ctx, p, c, m) }
	if !g.spawnIn(&g.runs, judge) {
		return
	}
	if err := <-sent; err != nil {
		g.log.Warn("a notification of an agent was dropped", "server", c.Server, "method", m.Method, "err", err)
	}
}

// judged sends a notification if a rule allows it now. What was judged is what is
// sent: the canonical params, without _meta.
func (g *Gateway) judged(ctx context.Context, p *party, c mcp.Client, m mcp.Message) error {
	if c.Server == "" {
		return errAllServers
	}
	from, err := g.agent(c)
	if err != nil {
		return err
	}
	if !p.enter() {
		return errors.New("too many requests of this agent are being answered at once")
	}
	defer p.leave()
	conn := p.link(c.Server, c.Version.Era()).open()
	if conn == nil {
		return errors.New("there is no connection to the server")
	}
	conn.use()
	defer conn.release()
	asked, err := call.New(c.Server, methodPrefix+m.Method, without(m.Params, "_meta"))
	if err != nil {
		return err
	}
	recorded := context.WithoutCancel(ctx)
	t, err := g.desk.SubmitNow(recorded, desk.Ask{From: from, Call: asked, Executor: approval.Gateway})
	if err != nil {
		return err
	}
	_, _, err = g.desk.Execute(recorded, from, t, func(_ context.Context, c call.Call, _ string) (desk.Result, error) {
		ctx, stop := context.WithTimeout(g.ctx, tellTime)
		defer stop()
		params := c.Args()
		if m.Params == nil {
			params = nil
		}
		if err := conn.up.Notify(ctx, m.Method, params); err != nil {
			return desk.Result{}, effectError(err, false)
		}
		return desk.Result{}, nil
	})
	return err
}
