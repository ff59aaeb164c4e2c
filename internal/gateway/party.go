package gateway

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ayegate/ayegate/internal/mcp"
)

// party is one agent's end: a legacy session or a connection over stdio, or, for
// modern requests over HTTP, which have neither, a principal. What it opens
// towards servers is its own: no agent hears what a server tells another.
type party struct {
	g         *Gateway
	principal string
	mu        sync.Mutex
	closed    bool
	inFlight  int
	parked    int
	client    mcp.Client    // as it introduced itself at initialize; zero for a principal
	push      mcp.Pusher    // nil until initialize
	ready     chan struct{} // closed when the agent's own handshake is over
	links     map[linkKey]*link
	owners    map[string]string // resource URIs and templates of the merged endpoint to their server
	listeners map[*listener]struct{}
	asks      map[string]*link // progress tokens of requests that servers made of the agent
}

// linkKey names a connection of a party. An agent that speaks both eras over one
// stdio connection has two: they declare different capabilities.
type linkKey struct {
	server string
	era    mcp.Era
}

// partyKey names a party: a session of a principal, or the principal itself.
type partyKey struct{ principal, session string }

// errNoSession says that a legacy session was never opened or is over.
var errNoSession = errors.New("there is no such session, or it is over")

// partyOf finds the party that a client belongs to. A modern request stands alone
// and makes its own, a legacy one needs the session that Initialize opened.
func (g *Gateway) partyOf(c mcp.Client) (*party, error) {
	return g.findParty(c, c.Version.Era() == mcp.Modern)
}

func (g *Gateway) findParty(c mcp.Client, create bool) (*party, error) {
	key := partyKey{c.Principal, c.Session}
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.parties[key]
	switch {
	case g.closed:
		return nil, mcp.ErrShutdown
	case p == nil && !create:
		return nil, errNoSession
	case p == nil:
		p = &party{
			g: g, principal: c.Principal, ready: make(chan struct{}),
			links: make(map[linkKey]*link), listeners: make(map[*listener]struct{}), asks: make(map[string]*link),
		}
		g.parties[key] = p
	}
	return p, nil
}

// Close implements [mcp.Server]: the session's connections end with it. Its
// requests do not: another session of the same agent may ask for them again.
func (g *Gateway) Close(c mcp.Client) {
	key := partyKey{c.Principal, c.Session}
	g.mu.Lock()
	p := g.parties[key]
	delete(g.parties, key)
	g.mu.Unlock()
	if p != nil {
		p.close()
	}
}

func (p *party) close() {
	p.mu.Lock()
	p.closed = true
	links := make([]*link, 0, len(p.links))
	for _, l := range p.links {
		links = append(links, l)
	}
	p.mu.Unlock()
	for _, l := range links {
		l.close()
	}
}

// enter counts a request in; false means that the agent has too many.
func (p *party) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inFlight >= p.g.c.Limits.InFlight {
		return false
	}
	p.inFlight++
	return true
}

func (p *party) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inFlight--
}

// link returns the party's connection to a server, which opens when it is used.
func (p *party) link(server string, era mcp.Era) *link {
	key := linkKey{server, era}
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.links[key]
	if l == nil {
		l = &link{g: p.g, p: p, server: server, era: era, closed: p.closed}
		p.links[key] = l
	}
	return l
}

// each calls f for the connections behind an endpoint that exist by now.
func (p *party) each(endpoint string, era mcp.Era, f func(*link)) {
	for _, server := range p.g.behind(endpoint) {
		p.mu.Lock()
		l := p.links[linkKey{server, era}]
		p.mu.Unlock()
		if l != nil {
			f(l)
		}
	}
}

// pusher returns the way to the agent outside of any exchange, nil without one.
func (p *party) pusher() (mcp.Pusher, mcp.Client) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.push, p.client
}

// tellTime bounds how long a message to a slow agent may hold up its server.
const tellTime = 10 * time.Second

// await waits until the agent can take what is not an answer: a server may speak
// before the agent has ended its own handshake. One that never says that it has is
// not waited for twice.
func (p *party) await() {
	patience := time.NewTimer(tellTime)
	defer patience.Stop()
	select {
	case <-p.ready:
	case <-p.g.ctx.Done():
	case <-patience.C:
		p.introduced()
	}
}

func (p *party) introduced() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.ready:
	default:
		close(p.ready)
	}
}

// notify sends the agent what a server says outside of any call.
func (p *party) notify(server string, era mcp.Era, m mcp.Message) {
	if era == mcp.Legacy {
		p.await()
	}
	ctx, stop := context.WithTimeout(p.g.ctx, tellTime)
	defer stop()
	if era == mcp.Modern {
		p.tellListeners(ctx, server, m)
		return
	}
	push, client := p.pusher()
	if push == nil || client.Server != "" && client.Server != server {
		return
	}
	if err := push.Notify(ctx, m.Method, m.Params); err != nil {
		p.g.log.Debug("a notification did not reach the agent", "server", server, "method", m.Method, "err", err)
	}
}

// ask sends the agent a request of a server that belongs to no call. An agent over
// HTTP can be asked once it has opened its standing stream: it is given a moment.
func (p *party) ask(ctx context.Context, m mcp.Message) (mcp.Message, error) {
	p.await()
	push, _ := p.pusher()
	patience, stop := context.WithTimeout(ctx, tellTime)
	defer stop()
	for {
		answer, err := push.Ask(ctx, m.Method, m.Params)
		if !errors.Is(err, mcp.ErrNoAsk) {
			return answer, err
		}
		again := time.NewTimer(tellTime / 50)
		select {
		case <-again.C:
		case <-patience.Done():
			again.Stop()
			return answer, err
		}
	}
}

// expect remembers whose request carries a progress token towards the agent.
func (p *party) expect(params []byte, l *link) (forget func()) {
	token := mcp.ProgressToken(params)
	if token == nil {
		return func() {}
	}
	key := mcp.IDKey(token)
	p.mu.Lock()
	p.asks[key] = l
	p.mu.Unlock()
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.asks[key] == l {
			delete(p.asks, key)
		}
	}
}
