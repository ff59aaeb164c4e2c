package gateway

import (
	"context"
	"errors"
	"strings"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/desk"
	"github.com/ayegate/ayegate/internal/identity"
	"github.com/ayegate/ayegate/internal/mcp"
)

// Errors of [Gateway.Tool].
var (
	ErrNoServer = errors.New("no such server is configured")
	ErrNoTool   = errors.New("the server offers no such tool")
)

// Tool says how a call is performed for an agent that does not speak MCP to us,
// and what is known of the tool. The server hears an ordinary MCP client that
// declares no capabilities: there is nobody whom it could ask. extra is what was
// asked for beside the call, and is sent with it; nil where the call is all.
func (g *Gateway) Tool(ctx context.Context, from identity.Agent, server, tool string, extra []byte) (desk.Do, desk.Tool, error) {
	if server == "" || !g.serves(server) {
		return nil, desk.Tool{}, ErrNoServer
	}
	p, err := g.partyOf(mcp.Client{Principal: from.ID + "\x00" + from.Device, Server: server, Version: mcp.NewestModern, Transport: "http"})
	if err != nil {
		return nil, desk.Tool{}, err
	}
	l := p.link(server, mcp.Modern)
	known, err := l.offers(ctx, tool)
	if err != nil {
		return nil, desk.Tool{}, err
	}
	do := func(ctx context.Context, c call.Call, claim string) (desk.Result, error) {
		u := &run{g: g, link: l, action: again(&approval.Request{Call: c, Extra: extra}, nil), asked: make(chan struct{}, 1)}
		u.ctx, u.stop = context.WithCancelCause(g.ctx)
		defer u.stop(nil)
		defer context.AfterFunc(ctx, func() { u.stop(context.Cause(ctx)) })()
		return u.do(c, claim)
	}
	return do, known, nil
}

// offers is what is known of a tool that the server offers now.
func (l *link) offers(ctx context.Context, name string) (desk.Tool, error) {
	if strings.HasPrefix(name, methodPrefix) {
		return desk.Tool{}, nil
	}
	c, err := l.acquire(ctx)
	if err != nil {
		return desk.Tool{}, &notReached{l.server, err}
	}
	defer c.release()
	cat, err := c.tools(ctx, false)
	if err != nil {
		return desk.Tool{}, &notReached{l.server, err}
	}
	if cat.by[name] == nil {
		return desk.Tool{}, ErrNoTool
	}
	known, held := l.g.desk.Tool(l.server, name)
	if held {
		return desk.Tool{}, desk.ErrHeldTool
	}
	return known, nil
}
