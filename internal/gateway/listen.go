package gateway

import (
	"context"
	"slices"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/desk"
	"github.com/ayegate/ayegate/internal/mcp"
)

// listener is a modern agent's open subscriptions/listen.
type listener struct {
	x      mcp.Exchange
	server string // endpoint
	id     []byte // of the request: it names the subscription
	kinds  map[string]bool
	uris   []string
}

// maxWatched bounds the resources of one subscription.
const maxWatched = 256

// serveListener serves subscriptions/listen: it says what it can announce, then
// announces until the agent closes the stream. Watching a resource reads it, so
// each URI is judged like resources/subscribe, and one that is not plainly
// allowed is left out of what is acknowledged (MCP-09).
func (e *exchange) serveListener(ctx context.Context) {
	l := &listener{x: e.x, server: e.client.Server, id: e.x.Request().ID, kinds: make(map[string]bool)}
	honoured := &object{}
	wanted := get(e.params, "notifications")
	for name, method := range map[string]string{
		"toolsListChanged": toolsChanged, "promptsListChanged": promptsChanged, "resourcesListChanged": resourcesChanged,
	} {
		if isTrue(wanted, name) {
			l.kinds[method] = true
			honoured.add(name, []byte("true"))
		}
	}
	var uris [][]byte
	for _, raw := range elements(get(wanted, "resourceSubscriptions")) {
		if uri := textAt(raw); uri != "" && len(l.uris) < maxWatched && !slices.Contains(l.uris, uri) && e.mayWatch(ctx, uri) {
			l.uris = append(l.uris, uri)
			uris = append(uris, raw)
		}
	}
	if uris != nil {
		honoured.add("resourceSubscriptions", list(uris))
	}
	e.party.addListener(l)
	defer e.party.removeListener(l)
	defer e.unwatch(l.uris)
	if e.client.Server != "" {
		if c, err := e.link(e.client.Server).acquire(ctx); err == nil {
			defer c.release()
		}
	}
	if e.x.Notify(ctx, acknowledged, l.named((&object{}).add("notifications", honoured.bytes()).bytes())) != nil {
		return
	}
	select {
	case <-ctx.Done():
	case <-e.g.ctx.Done():
	}
	e.reply(l.named([]byte(`{"resultType":"complete"}`)))
}

// named puts the subscription's name into params or a result.
func (l *listener) named(doc []byte) []byte {
	if doc == nil {
		doc = []byte("{}")
	}
	return set(doc, l.id, "_meta", mcp.MetaSubscription)
}

// mayWatch judges and makes the subscription to a resource.
func (e *exchange) mayWatch(ctx context.Context, uri string) bool {
	params := (&object{}).text("uri", uri).bytes()
	server := e.client.Server
	if server == "" {
		var problem *mcp.Error
		if server, problem = e.ownerOf(ctx, uri); problem != nil {
			return false
		}
	}
	a := &action{server: server, method: "resources/subscribe", params: params}
	var err error
	if a.call, err = call.New(server, methodPrefix+a.method, params); err != nil {
		return false
	}
	recorded := context.WithoutCancel(ctx)
	t, err := e.g.desk.Submit(recorded, desk.Ask{From: e.from, Call: a.call, Executor: approval.Gateway})
	if err != nil || t.Claim == "" {
		return false
	}
	u := &run{g: e.g, link: e.link(server), action: a, caps: e.client.Capabilities, ctx: e.g.ctx}
	_, res, err := e.g.desk.Execute(recorded, e.from, t, func(_ context.Context, c call.Call, claim string) (desk.Result, error) {
		return u.do(c, claim)
	})
	return err == nil && !res.IsError && res.Bytes != nil
}

// unwatch ends the subscriptions of a listener that has gone.
func (e *exchange) unwatch(uris []string) {
	for _, uri := range uris {
		server := e.client.Server
		if server == "" {
			server, _ = e.party.ownerOf(uri)
		}
		if server == "" {
			continue
		}
		l := e.link(server)
		c := l.open()
		if !l.forget(uri) || c == nil {
			continue
		}
		if c.about.Version.Era() == mcp.Modern {
			c.rewatch()
			continue
		}
		ctx, stop := context.WithTimeout(e.g.ctx, tellTime)
		_, _ = c.up.Call(ctx, "resources/unsubscribe", (&object{}).text("uri", uri).bytes(), nil)
		stop()
	}
}

func (p *party) addListener(l *listener) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listeners[l] = struct{}{}
}

func (p *party) removeListener(l *listener) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.listeners, l)
}

// tellListeners announces what a server said to those who asked for it.
func (p *party) tellListeners(ctx context.Context, server string, m mcp.Message) {
	p.mu.Lock()
	var to []*listener
	for l := range p.listeners {
		if (l.server == "" || l.server == server) && l.wants(m) {
			to = append(to, l)
		}
	}
	p.mu.Unlock()
	for _, l := range to {
		if err := l.x.Notify(ctx, m.Method, l.named(m.Params)); err != nil {
			p.g.log.Debug("a notification did not reach the agent", "server", server, "method", m.Method, "err", err)
		}
	}
}

func (l *listener) wants(m mcp.Message) bool {
	return l.kinds[m.Method] || m.Method == resourceUpdated && slices.Contains(l.uris, textAt(m.Params, "uri"))
}

// remember and forget count who watches a resource; forget reports that nobody
// does any more.
func (l *link) remember(uri string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.uris == nil {
		l.uris = make(map[string]int)
	}
	l.uris[uri]++
}

func (l *link) forget(uri string) (last bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.uris[uri]--; l.uris[uri] > 0 {
		return false
	}
	delete(l.uris, uri)
	return true
}

// remember notes what a legacy server has granted.
func (c *conn) remember(method string, params []byte) {
	switch method {
	case "resources/subscribe":
		c.l.remember(textAt(params, "uri"))
	case "resources/unsubscribe":
		c.l.forget(textAt(params, "uri"))
	}
}

// subscription serves a legacy agent's resources/subscribe towards a modern
// server, which knows only one standing subscription.
func (c *conn) subscription(method string, params []byte) (desk.Result, bool) {
	if c.about.Version.Era() == mcp.Legacy || method != "resources/subscribe" && method != "resources/unsubscribe" {
		return desk.Result{}, false
	}
	c.remember(method, params)
	c.rewatch()
	return desk.Result{Bytes: []byte("{}")}, true
}

// rewatch makes the subscription to a modern server anew.
func (c *conn) rewatch() {
	select {
	case c.watched <- struct{}{}:
	default:
	}
}
