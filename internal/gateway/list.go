package gateway

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ayegate/ayegate/internal/mcp"
	"github.com/ayegate/ayegate/internal/strictjson"
)

// listTools answers tools/list: every tool object byte for byte, on the merged
// endpoint with its name alone changed, without those that are held, and with our
// own two at the end. All pages become one, so that no cursor of a server is ours
// to keep.
func (e *exchange) listTools(ctx context.Context) {
	if has(e.params, "cursor") {
		e.fail(badParams("this list has one page, there is no cursor"))
		return
	}
	catalogs, err := e.catalogs(ctx)
	if err != nil {
		e.failList(err)
		return
	}
	var page []byte
	var items [][]byte
	for i, server := range e.g.behind(e.client.Server) {
		if catalogs[i] == nil {
			continue
		}
		if e.client.Server != "" {
			page = catalogs[i].page
		}
		for _, t := range catalogs[i].tools {
			if t.held {
				continue
			}
			raw := t.raw
			if e.client.Server == "" {
				raw = set(raw, quoted(join(server, t.name)), "name")
			}
			items = append(items, raw)
		}
	}
	items = append(items, e.companions()...)
	if page == nil {
		page = []byte("{}")
	}
	page = without(set(page, list(items), "tools"), "nextCursor")
	e.replyList(page)
}

// catalogs lists the tools of all servers behind the endpoint. On the merged one
// a server that cannot be reached is left out; on its own endpoint that is an error.
func (e *exchange) catalogs(ctx context.Context) ([]*catalog, error) {
	servers := e.g.behind(e.client.Server)
	all := make([]*catalog, len(servers))
	errs := gather(ctx, servers, func(ctx context.Context, i int, server string) (err error) {
		all[i], err = e.catalog(ctx, server)
		return err
	})
	if e.client.Server != "" {
		return all, errs[0]
	}
	for i, err := range errs {
		if err != nil {
			e.g.log.Warn("a server is missing from a merged list", "server", servers[i], "err", err)
		}
	}
	return all, nil
}

// catalog lists one server's tools afresh.
func (e *exchange) catalog(ctx context.Context, server string) (*catalog, error) {
	c, err := e.link(server).acquire(ctx)
	if err != nil {
		return nil, &notReached{server, err}
	}
	defer c.release()
	return c.tools(ctx, true)
}

// mergeTime is how long an answer of all servers waits for the slowest.
const mergeTime = 10 * time.Second

// gather runs f for all servers at once.
func gather(ctx context.Context, servers []string, f func(ctx context.Context, i int, server string) error) []error {
	errs := make([]error, len(servers))
	if len(servers) == 1 {
		errs[0] = f(ctx, 0, servers[0])
		return errs
	}
	ctx, stop := context.WithTimeout(ctx, mergeTime)
	defer stop()
	var wg sync.WaitGroup
	for i, server := range servers {
		wg.Go(func() { errs[i] = f(ctx, i, server) })
	}
	wg.Wait()
	return errs
}

// failList ends a list request with the server's own error, or with ours.
func (e *exchange) failList(err error) {
	var refused *mcp.Error
	if errors.As(err, &refused) {
		e.fail(refused)
		return
	}
	e.fail(&mcp.Error{Code: codeRefused, Message: err.Error() + "; nothing ran"})
}

// pass forwards a list request, cursor included. A bridge to the modern era adds
// what that era demands.
func (e *exchange) pass(ctx context.Context, server string) {
	l := e.link(server)
	if has(e.params, "cursor") && !l.gave(e.method, get(e.params, "cursor")) {
		e.fail(badParams("the server gave no such cursor here; list from the start"))
		return
	}
	c, err := l.acquire(ctx)
	if err != nil {
		e.failList(&notReached{server, err})
		return
	}
	defer c.release()
	m, err := c.up.Call(ctx, e.method, e.params, &relay{e: e, l: c.l})
	switch {
	case err != nil:
		e.failList(err)
	case m.Error != nil:
		e.fail(errorOf(m))
	default:
		l.give(e.method, m.Result)
		e.replyList(m.Result)
	}
}

// Members of the lists that are merged.
var listed = map[string]struct{ member, key string }{
	"prompts/list":             {"prompts", "name"},
	"resources/list":           {"resources", "uri"},
	"resources/templates/list": {"resourceTemplates", "uriTemplate"},
}

// merge answers a list request on the merged endpoint: prompts are named like
// tools, resources keep their URIs, and the party remembers whose they are.
func (e *exchange) merge(ctx context.Context) {
	if has(e.params, "cursor") {
		e.fail(badParams("this list has one page, there is no cursor"))
		return
	}
	spec := listed[e.method]
	servers := e.g.ids
	lists := make([][][]byte, len(servers))
	errs := gather(ctx, servers, func(ctx context.Context, i int, server string) error {
		c, err := e.link(server).acquire(ctx)
		if err != nil {
			return err
		}
		defer c.release()
		_, lists[i], err = pages(ctx, c.up, e.method, spec.member)
		return err
	})
	for i, err := range errs {
		if err != nil && !unknownMethod(err) {
			e.g.log.Warn("a server is missing from a merged list", "server", servers[i], "method", e.method, "err", err)
		}
	}
	var items [][]byte
	if spec.key == "name" {
		items = joined(servers, lists)
	} else {
		items = e.owned(servers, lists, spec.key)
	}
	e.replyList((&object{}).add(spec.member, list(items)).bytes())
}

// unknownMethod reports whether a server said that it has no such list.
func unknownMethod(err error) bool {
	var refused *mcp.Error
	return errors.As(err, &refused) && refused.Code == mcp.CodeMethodNotFound
}

func joined(servers []string, lists [][][]byte) (items [][]byte) {
	for i, server := range servers {
		for _, raw := range lists[i] {
			if name := textAt(raw, "name"); name != "" {
				items = append(items, set(raw, quoted(join(server, name)), "name"))
			}
		}
	}
	return items
}

// owned remembers which server listed a URI. One that two servers list means
// neither of them: it is left out and cannot be read here (MCP-12).
func (e *exchange) owned(servers []string, lists [][][]byte, key string) (items [][]byte) {
	type entry struct {
		uri string
		raw []byte
	}
	var all []entry
	owner := make(map[string]string)
	for i, server := range servers {
		for _, raw := range lists[i] {
			uri := textAt(raw, key)
			if uri == "" {
				continue
			}
			if other, ok := owner[uri]; ok && other != server {
				e.g.log.Warn("a resource is left out: two servers list it", "servers", []string{other, server})
				owner[uri] = ""
				continue
			}
			owner[uri] = server
			all = append(all, entry{uri, raw})
		}
	}
	e.party.own(owner, key == "uriTemplate")
	for _, x := range all {
		if owner[x.uri] != "" {
			items = append(items, x.raw)
		}
	}
	return items
}

// replyList ends a list request. Its own lists the gateway makes private and
// short-lived: they depend on who asks, and a change of the policy or of a pin must
// show at once (MCP-15).
func (e *exchange) replyList(result []byte) {
	if e.modern() {
		result = uncached(result)
		if e.method == "tools/list" || e.method == "server/discover" {
			result = set(result, []byte("0"), "ttlMs")
		}
	}
	e.reply(ours(result))
}

// uncached adds what the modern era demands of results that can be cached and a
// legacy server does not write. No result is public here: it came to an agent that
// was authenticated, through its own connection.
func uncached(result []byte) []byte {
	if !has(result, "ttlMs") {
		result = set(result, []byte("0"), "ttlMs")
	}
	if textAt(result, "cacheScope") != "private" {
		result = set(result, []byte(`"private"`), "cacheScope")
	}
	return result
}

// reply ends the exchange with a result.
func (e *exchange) reply(result []byte) {
	if err := e.x.Reply(e.dressed(result)); err != nil {
		e.g.log.Debug("an answer did not reach the agent", "method", e.method, "err", err)
	}
}

// dressed adds the resultType that the modern era demands and a legacy server
// does not write.
func (e *exchange) dressed(result []byte) []byte {
	if !e.modern() || !isObject(result) {
		return result
	}
	if e.method == "resources/read" {
		result = uncached(result)
	}
	if !has(result, "resultType") {
		result = set(result, []byte(`"complete"`), "resultType")
	}
	return result
}

func (e *exchange) fail(err *mcp.Error) {
	if gone := e.x.Fail(err); gone != nil {
		e.g.log.Debug("a refusal did not reach the agent", "method", e.method, "err", gone)
	}
}

// companions are our own two tools.
func (e *exchange) companions() [][]byte {
	return [][]byte{
		strictjson.Compact(nil, set([]byte(awaitTool), quoted(e.ownName(awaitName)), "name")),
		strictjson.Compact(nil, set([]byte(cancelTool), quoted(e.ownName(cancelName)), "name")),
	}
}
