package gateway

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ayegate/ayegate/internal/mcp"
)

// link is a party's connection to one server: opened when it is first used,
// closed when it was idle, opened again when it died. A connection that dies
// fails the calls in flight on it and nothing else.
type link struct {
	g      *Gateway
	p      *party
	server string
	era    mcp.Era // of the agent

	mu      sync.Mutex
	closed  bool
	conn    *conn          // nil when there is none
	opening *opening       // not nil while one is being opened
	level   []byte         // params of the last logging/setLevel, said again on a new connection
	uris    map[string]int // resources that the agent watches, by how often it asked to
	cursors map[[2]string]struct{}
}

// opening is one attempt to connect that several requests may wait for.
type opening struct {
	done chan struct{}
	err  error // set before done is closed
}

// conn is one open connection and what was learned on it.
type conn struct {
	l     *link
	up    mcp.Upstream
	about mcp.About

	used    sync.Mutex // guards what follows; taken after link.mu
	uses    int
	since   time.Time     // when the last use ended
	closing bool          // the last use ends the connection
	ended   bool          // it is being closed
	fresh   bool          // nobody has used it
	over    chan struct{} // closed by it

	catalog catalogs
	news    chan struct{} // holds a token when the server's tools changed
	watched chan struct{} // holds a token when the watched resources changed
}

var errClosed = errors.New("the session is over")

// acquire returns the open connection, opening it if there is none. The caller
// releases it.
func (l *link) acquire(ctx context.Context) (*conn, error) {
	for {
		c, o, err := l.now()
		if c != nil || err != nil {
			return c, err
		}
		select {
		case <-o.done:
			if o.err != nil {
				return nil, o.err
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// now returns the live connection, or the attempt to open one.
func (l *link) now() (*conn, *opening, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return nil, nil, errClosed
	case l.conn != nil && l.conn.alive():
		l.conn.use()
		return l.conn, nil, nil
	case l.opening == nil:
		l.opening = &opening{done: make(chan struct{})}
		o := l.opening
		if !l.g.spawn(func() { l.connect(o) }) {
			l.opening = nil
			return nil, nil, mcp.ErrShutdown
		}
	}
	return nil, l.opening, nil
}

// open returns the live connection if there is one; it need not be released.
func (l *link) open() *conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == nil || !l.conn.alive() {
		return nil
	}
	return l.conn
}

// connect opens a connection and looks after it until it is over.
func (l *link) connect(o *opening) {
	c := &conn{l: l, since: l.g.c.Now(), over: make(chan struct{}), news: make(chan struct{}, 1), watched: make(chan struct{}, 1)}
	var up mcp.Upstream
	leave, err := l.seat(c)
	if err == nil {
		defer leave()
		up, err = l.dial(c)
	}
	l.mu.Lock()
	l.opening = nil
	if err == nil && l.closed {
		err = errClosed
	}
	if err == nil {
		c.up, c.about = up, up.About()
		c.used.Lock()
		c.since, c.fresh = l.g.c.Now(), true
		c.used.Unlock()
		l.conn = c
		l.g.abouts.Store(l.server, c.about)
	}
	o.err = err
	close(o.done)
	l.mu.Unlock()
	if err != nil {
		l.g.log.Warn("no connection to a server", "server", l.server, "err", err)
		if up != nil {
			_ = up.Close()
		}
		return
	}
	c.restore()
	c.watch()
	l.mu.Lock()
	if l.conn == c {
		l.conn = nil
	}
	l.mu.Unlock()
	c.used.Lock()
	c.ended = true
	c.used.Unlock()
	_ = c.up.Close()
}

// dial prefers the agent's own era, so that nothing has to be translated, and
// takes what the server speaks otherwise.
func (l *link) dial(c *conn) (mcp.Upstream, error) {
	ctx, stop := context.WithTimeout(l.g.ctx, l.g.c.Limits.Opening)
	defer stop()
	t := l.g.c.Servers[l.server].Target
	t.Name, t.Log = l.server, l.g.log
	t.Stray, t.Schema = &stray{l: l, c: c}, c.catalog.schema
	t.Info, t.Capabilities = l.introduction()
	if t.Version != "" || l.era == mcp.Modern {
		return l.g.c.Dial(ctx, t)
	}
	_, client := l.p.pusher()
	t.Version = client.Version
	up, err := l.g.c.Dial(ctx, t)
	if err != nil && t.Version != "" && ctx.Err() == nil {
		t.Version = ""
		again, err2 := l.g.c.Dial(ctx, t)
		if err2 == nil {
			return again, nil
		}
		err = err2
	}
	return up, err
}

// bridged is what the gateway can carry for modern agents: each of their requests
// says for itself what the agent can do, and what it cannot is refused then.
const bridged = `{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}`

// introduction is how the server gets to know who calls: the agent itself where
// the connection is one session's, else the gateway.
func (l *link) introduction() (info, capabilities []byte) {
	if l.era == mcp.Modern {
		info = (&object{}).text("name", "ayegate").text("version", orVersion(l.g.c.Version)).bytes()
		return info, []byte(bridged)
	}
	_, client := l.p.pusher()
	return client.Info, client.Capabilities
}

func orVersion(v string) string {
	if v == "" {
		return "0"
	}
	return v
}

// close ends the connection for good: at once if nothing runs on it, else when the
// last call has ended. A session that ends does not undo a call that was sent.
func (l *link) close() {
	l.mu.Lock()
	l.closed = true
	c := l.conn
	l.mu.Unlock()
	if c == nil {
		return
	}
	c.used.Lock()
	defer c.used.Unlock()
	c.closing = true
	c.endUnused()
}

// endUnused ends a connection that is to be closed and that nothing runs on. The
// one who watches it closes it: ending a process takes its time.
func (c *conn) endUnused() {
	if c.closing && c.uses == 0 && !c.ended {
		c.ended = true
		close(c.over)
	}
}

func (c *conn) alive() bool {
	select {
	case <-c.up.Done():
		return false
	default:
		return true
	}
}

func (c *conn) use() {
	c.used.Lock()
	defer c.used.Unlock()
	c.uses++
	c.fresh = false
}

func (c *conn) release() {
	c.used.Lock()
	defer c.used.Unlock()
	c.uses--
	c.since = c.l.g.c.Now()
	c.endUnused()
	if c.uses == 0 {
		c.l.g.children.idle()
	}
}

// retire gives up a connection that nobody has used for long enough. Otherwise it
// returns when to look again.
func (c *conn) retire() (later time.Duration, done bool) {
	limit := c.idleLimit()
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	c.used.Lock()
	defer c.used.Unlock()
	if c.uses > 0 || len(c.l.uris) > 0 {
		return limit, false
	}
	if left := limit - c.l.g.c.Now().Sub(c.since); left > 0 {
		return left, false
	}
	if c.l.conn == c {
		c.l.conn = nil
	}
	c.ended = true
	return 0, true
}

// restore says again on a new connection what the agent had said on the one before.
func (c *conn) restore() {
	if c.about.Version.Era() == mcp.Modern {
		return // said in the subscription that watch opens
	}
	c.l.mu.Lock()
	level := c.l.level
	uris := make([]string, 0, len(c.l.uris))
	for uri := range c.l.uris {
		uris = append(uris, uri)
	}
	c.l.mu.Unlock()
	ctx, stop := context.WithTimeout(c.l.g.ctx, c.l.g.c.Limits.Opening)
	defer stop()
	if level != nil {
		_, _ = c.up.Call(ctx, "logging/setLevel", level, nil)
	}
	for _, uri := range uris {
		_, _ = c.up.Call(ctx, "resources/subscribe", (&object{}).text("uri", uri).bytes(), nil)
	}
}
