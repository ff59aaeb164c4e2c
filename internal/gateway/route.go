package gateway

import (
	"context"
	"strings"

	"github.com/ayegate/ayegate/internal/mcp"
)

// destination finds the server that a judged method is for, and the params with
// the names that server knows.
func (e *exchange) destination(ctx context.Context) (server string, params []byte, err *mcp.Error) {
	if e.client.Server != "" {
		return e.client.Server, e.params, nil
	}
	switch e.method {
	case "prompts/get":
		return e.unprefixed("name")
	case "resources/read", "resources/subscribe", "resources/unsubscribe":
		server, err = e.ownerOf(ctx, textAt(e.params, "uri"))
		return server, e.params, err
	case "completion/complete":
		if textAt(e.params, "ref", "type") == "ref/prompt" {
			return e.unprefixed("ref", "name")
		}
		server, err = e.ownerOf(ctx, textAt(e.params, "ref", "uri"))
		return server, e.params, err
	}
	return "", nil, noMethod(e.method, "not known on the endpoint of all servers; use the endpoint of one")
}

// unprefixed takes the server's id off the name at a path.
func (e *exchange) unprefixed(path ...string) (string, []byte, *mcp.Error) {
	joined := textAt(e.params, path...)
	server, name, ok := split(joined)
	if !ok || e.g.noSuch(server) {
		return "", nil, badParams("nothing named " + joined + " behind this gateway")
	}
	return server, set(e.params, quoted(name), path...), nil
}

// own remembers which servers listed which URIs or templates. An empty server
// stands for two that listed the same.
func (p *party) own(owner map[string]string, templates bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.owners == nil {
		p.owners = make(map[string]string)
	}
	for uri, server := range owner {
		p.owners[ownerKey(uri, templates)] = server
	}
}

func ownerKey(uri string, template bool) string {
	if template {
		return "t" + uri
	}
	return "u" + uri
}

// ownerOf finds the one server that has a resource. When the agent has listed
// nothing yet, the gateway does.
func (e *exchange) ownerOf(ctx context.Context, uri string) (string, *mcp.Error) {
	if uri == "" {
		return "", badParams("the params name no resource")
	}
	server, known := e.party.ownerOf(uri)
	if !known {
		e.learnOwners(ctx)
		server, known = e.party.ownerOf(uri)
	}
	switch {
	case !known:
		return "", badParams("no server lists " + uri + "; use the endpoint of its server")
	case server == "":
		return "", badParams("more than one server lists " + uri + "; use the endpoint of one")
	}
	return server, nil
}

func (p *party) ownerOf(uri string) (server string, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if server, known = p.owners[ownerKey(uri, false)]; known {
		return server, true
	}
	if server, known = p.owners[ownerKey(uri, true)]; known {
		return server, true // completion names the template itself
	}
	for key, s := range p.owners {
		template, ok := strings.CutPrefix(key, "t")
		if !ok || !matches(template, uri) {
			continue
		}
		if known && s != server {
			return "", true
		}
		server, known = s, true
	}
	return server, known
}

// learnOwners lists resources and templates of all servers.
func (e *exchange) learnOwners(ctx context.Context) {
	for method, spec := range listed {
		if spec.key == "name" {
			continue
		}
		lists := make([][][]byte, len(e.g.ids))
		gather(ctx, e.g.ids, func(ctx context.Context, i int, server string) error {
			c, err := e.link(server).acquire(ctx)
			if err != nil {
				return err
			}
			defer c.release()
			_, lists[i], err = pages(ctx, c.up, method, spec.member)
			return err
		})
		e.owned(e.g.ids, lists, spec.key)
	}
}

// matches reports whether a URI could be an expansion of a template (RFC 6570):
// its literal parts occur in order, the first at the beginning, the last at the
// end. Good enough to find whose it is; the server expands it.
func matches(template, uri string) bool {
	first := true
	for {
		literal, rest, open := strings.Cut(template, "{")
		if !open {
			if first {
				return uri == literal
			}
			return strings.HasSuffix(uri, literal)
		}
		at := strings.Index(uri, literal)
		if at < 0 || first && at != 0 {
			return false
		}
		uri = uri[at+len(literal):]
		_, after, closed := strings.Cut(rest, "}")
		if !closed {
			return false
		}
		template, first = after, false
	}
}
