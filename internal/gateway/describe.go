package gateway

import (
	"context"
	"errors"

	"github.com/ayegate/ayegate/internal/mcp"
)

// advice is what models read of held calls, before the server's own instructions.
const advice = "Some tools here need a person's approval. A call that waits for one answers " +
	"TOOL_BLOCKED_PENDING_APPROVAL with an id: nothing has run yet. Call await_approval with that id to get the " +
	"tool's own result once it is approved, and do other work meanwhile. A denial is a decision: do not look for another way to the same effect."

// tasksExtension is not offered: a task would run on after the call that was
// approved had ended.
const tasksExtension = "io.modelcontextprotocol/tasks"

const metaServerInfo = "io.modelcontextprotocol/serverInfo"

// Initialize implements [mcp.Server].
func (g *Gateway) Initialize(ctx context.Context, c mcp.Client, params []byte, push mcp.Pusher) ([]byte, *mcp.Error) {
	if !g.serves(c.Server) {
		return nil, noServer(c.Server)
	}
	if _, err := g.agent(c); err != nil {
		return nil, &mcp.Error{Code: mcp.CodeInvalidRequest, Status: 403, Message: "unknown agent; nothing ran"}
	}
	if c.Info == nil {
		c.Info = get(params, "clientInfo")
	}
	if c.Capabilities == nil {
		c.Capabilities = get(params, "capabilities")
	}
	p, err := g.findParty(c, true)
	if err != nil {
		return nil, &mcp.Error{Code: mcp.CodeInternal, Message: err.Error() + "; nothing ran"}
	}
	p.mu.Lock()
	p.client, p.push = c, push
	p.mu.Unlock()
	abouts, err := g.introductions(ctx, p, c)
	if err != nil {
		g.Close(c) // a session that was refused leaves nothing behind
		return nil, &mcp.Error{Code: codeRefused, Message: err.Error() + "; nothing ran"}
	}
	if c.Server == "" {
		return (&object{}).text("protocolVersion", string(c.Version)).add("capabilities", union(abouts)).
			add("serverInfo", g.ownInfo()).text("instructions", advice).bytes(), nil
	}
	about := abouts[0]
	result := about.Raw
	if about.Version.Era() == mcp.Modern {
		result = (&object{}).add("serverInfo", orOwn(about.Info, g)).bytes()
	}
	result = set(result, quoted(string(c.Version)), "protocolVersion")
	result = set(result, forLegacy(about), "capabilities")
	return set(result, quoted(instructions(about)), "instructions"), nil
}

// discover answers server/discover.
func (e *exchange) discover(ctx context.Context) {
	abouts, err := e.g.introductions(ctx, e.party, e.client)
	if err != nil {
		e.failList(err)
		return
	}
	versions := make([][]byte, 0, len(mcp.Versions))
	for _, v := range mcp.Versions {
		versions = append(versions, quoted(string(v)))
	}
	result, capabilities, info, text := []byte("{}"), union(abouts), e.g.ownInfo(), advice
	if e.client.Server != "" {
		about := abouts[0]
		capabilities, info, text = servable(about.Capabilities), orOwn(about.Info, e.g), instructions(about)
		if about.Version.Era() == mcp.Modern {
			result = about.Raw
		} else {
			capabilities = without(capabilities, "logging") // the eras set its level in different ways
		}
	}
	result = set(result, list(versions), "supportedVersions")
	result = set(result, capabilities, "capabilities")
	result = set(result, quoted(text), "instructions")
	result = set(result, info, "_meta", metaServerInfo)
	e.replyList(set(result, []byte("0"), "ttlMs"))
}

// introductions is how the servers behind an endpoint describe themselves. One
// server must be there; on the merged endpoint those count that are.
func (g *Gateway) introductions(ctx context.Context, p *party, c mcp.Client) ([]mcp.About, error) {
	servers := g.behind(c.Server)
	all := make([]mcp.About, len(servers))
	errs := gather(ctx, servers, func(ctx context.Context, i int, server string) error {
		if c.Server == "" { // any connection's word is good enough for a union
			if known, ok := g.abouts.Load(server); ok {
				all[i] = known.(mcp.About)
				return nil
			}
		}
		conn, err := p.link(server, c.Version.Era()).acquire(ctx)
		if err != nil {
			return &notReached{server, err}
		}
		defer conn.release()
		all[i] = conn.about
		return nil
	})
	if c.Server == "" {
		return all, nil
	}
	return all, errors.Join(errs...)
}

// instructions are a server's own behind our advice.
func instructions(a mcp.About) string {
	if a.Instructions == "" {
		return advice
	}
	return advice + "\n\n" + a.Instructions
}

// servable are a server's capabilities as far as they can be served through the
// gateway: all but tasks, and tools always, because our own are there.
func servable(capabilities []byte) []byte {
	if !isObject(capabilities) {
		capabilities = []byte("{}")
	}
	capabilities = without(capabilities, "tasks")
	capabilities = without(capabilities, "extensions", tasksExtension)
	if !has(capabilities, "tools") {
		capabilities = set(capabilities, []byte("{}"), "tools")
	}
	return capabilities
}

// forLegacy leaves out the log level, which a modern server takes with each
// request and a legacy agent sets once.
func forLegacy(a mcp.About) []byte {
	if a.Version.Era() == mcp.Modern {
		return without(servable(a.Capabilities), "logging")
	}
	return servable(a.Capabilities)
}

// union is what any of the servers can do.
func union(abouts []mcp.About) []byte {
	out := &object{}
	for _, name := range []string{"completions", "logging", "prompts", "resources", "tools"} {
		found, flags := name == "tools", &object{}
		for _, flag := range []string{"listChanged", "subscribe"} {
			for _, a := range abouts {
				if isTrue(a.Capabilities, name, flag) {
					flags.add(flag, []byte("true"))
					break
				}
			}
		}
		for _, a := range abouts {
			// Each era sets the log level in its own way.
			found = found || has(a.Capabilities, name) && (name != "logging" || a.Version.Era() == mcp.Legacy)
		}
		if found {
			out.add(name, flags.bytes())
		}
	}
	return out.bytes()
}

func (g *Gateway) ownInfo() []byte {
	return (&object{}).text("name", "ayegate").text("title", "ayegate").text("version", orVersion(g.c.Version)).bytes()
}

func orOwn(info []byte, g *Gateway) []byte {
	if info == nil {
		return g.ownInfo()
	}
	return info
}
