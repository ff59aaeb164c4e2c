package gateway

import (
	"context"
	"time"

	"github.com/ayegate/ayegate/internal/mcp"
)

// relistPause is the least time between two listings that a server's own
// announcements cause: a storm of them costs one listing a second (MCP-15).
const relistPause = time.Second

// watch looks after a connection until it is over: it lists the tools again when
// the server says that they changed, keeps the subscription to a modern server
// open, and closes what nobody uses.
func (c *conn) watch() {
	g := c.l.g
	idle := time.NewTimer(c.idleLimit())
	defer idle.Stop()
	stopListening := func() {}
	if c.about.Version.Era() == mcp.Modern {
		stopListening = c.listen()
	}
	defer func() { stopListening() }()
	pause := time.NewTimer(0)
	defer pause.Stop()
	quiet, news := true, false
	for {
		select {
		case <-c.up.Done():
			return
		case <-g.ctx.Done():
			return
		case <-c.over:
			return
		case <-pause.C:
			quiet = true
		case <-c.news:
			news = true
		case <-c.watched:
			stopListening()
			stopListening = c.listen()
		case <-idle.C:
			later, done := c.retire()
			if done {
				return
			}
			idle.Reset(later)
		}
		if news && quiet {
			c.relist()
			news, quiet = false, false
			pause.Reset(relistPause)
		}
	}
}

// relist pins what the server offers now, then tells the agent to look.
func (c *conn) relist() {
	ctx, stop := context.WithTimeout(c.l.g.ctx, c.l.g.c.Limits.Opening)
	defer stop()
	if _, err := c.tools(ctx, true); err != nil {
		c.l.g.log.Warn("the tools of a server cannot be listed", "server", c.l.server, "err", err)
	}
	c.l.p.notify(c.l.server, c.l.era, mcp.Message{Method: toolsChanged})
}

const (
	toolsChanged     = "notifications/tools/list_changed"
	promptsChanged   = "notifications/prompts/list_changed"
	resourcesChanged = "notifications/resources/list_changed"
	resourceUpdated  = "notifications/resources/updated"
	acknowledged     = "notifications/subscriptions/acknowledged"
	methodListen     = "subscriptions/listen"
)

// listen subscribes to what a modern server announces; stop ends that.
func (c *conn) listen() (stop func()) {
	filter := &object{}
	for _, kind := range []string{"tools", "prompts", "resources"} {
		if isTrue(c.about.Capabilities, kind, "listChanged") {
			filter.add(kind+"ListChanged", []byte("true"))
		}
	}
	c.l.mu.Lock()
	var uris [][]byte
	for uri := range c.l.uris {
		uris = append(uris, quoted(uri))
	}
	c.l.mu.Unlock()
	if uris != nil {
		filter.add("resourceSubscriptions", list(uris))
	}
	if filter.b == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(c.l.g.ctx)
	params := (&object{}).add("notifications", filter.bytes()).bytes()
	done := make(chan struct{})
	if !c.l.g.spawn(func() { defer close(done); c.subscribe(ctx, params) }) {
		cancel()
		return func() {}
	}
	return func() { cancel(); <-done }
}

// subscribe keeps a subscription open. A server that ends it, or whose stream
// breaks, is asked again, ever less often.
func (c *conn) subscribe(ctx context.Context, params []byte) {
	for wait := time.Second; ; wait = min(2*wait, time.Minute) {
		m, err := c.up.Call(ctx, methodListen, params, &stray{l: c.l, c: c})
		if err == nil && m.Error != nil {
			c.l.g.log.Info("a server takes no subscription", "server", c.l.server)
			return
		}
		again := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			again.Stop()
			return
		case <-c.up.Done():
			again.Stop()
			return
		case <-again.C:
		}
	}
}

// stray takes what a server sends outside of any call.
type stray struct {
	l *link
	c *conn
}

// Notification implements [mcp.Answers].
func (s *stray) Notification(m mcp.Message) {
	switch m.Method {
	case acknowledged, "notifications/cancelled":
	case toolsChanged:
		s.c.catalog.outdate()
		select {
		case s.c.news <- struct{}{}:
		default:
		}
	default:
		m.Params = without(m.Params, "_meta", mcp.MetaSubscription)
		s.l.p.notify(s.l.server, s.l.era, m)
	}
}

// Ask implements [mcp.Answers]: a request of a server that belongs to no call
// goes to the agent's session, if it has one and declared that it can answer.
func (s *stray) Ask(ctx context.Context, m mcp.Message) ([]byte, *mcp.Error) {
	push, client := s.l.p.pusher()
	if s.l.era == mcp.Modern || push == nil || !declares(client.Capabilities, m) {
		return nil, cannotBeAsked(m.Method)
	}
	defer s.l.p.expect(m.Params, s.l)()
	return answerOf(s.l.p.ask(ctx, m))
}

func cannotBeAsked(method string) *mcp.Error {
	return &mcp.Error{Code: mcp.CodeMethodNotFound, Message: method + ": this client cannot be asked"}
}

// answerOf is an agent's response as a server gets it.
func answerOf(m mcp.Message, err error) ([]byte, *mcp.Error) {
	switch {
	case err != nil:
		return nil, &mcp.Error{Code: mcp.CodeInternal, Message: "the client did not answer: " + err.Error()}
	case m.Error != nil:
		return nil, &mcp.Error{Raw: m.Error}
	}
	return m.Result, nil
}

// declares reports whether a client said that it can take a request of a server.
// What no capability stands for is left to the client to refuse.
func declares(capabilities []byte, m mcp.Message) bool {
	switch m.Method {
	case "sampling/createMessage":
		return has(capabilities, "sampling")
	case "roots/list":
		return has(capabilities, "roots")
	case "elicitation/create":
		if textAt(m.Params, "mode") == "url" {
			return has(capabilities, "elicitation", "url")
		}
		// An empty elicitation object is the form of before there were modes.
		return has(capabilities, "elicitation", "form") ||
			has(capabilities, "elicitation") && !has(capabilities, "elicitation", "url")
	}
	return true
}
