package gateway

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// children are the processes that run behind the gateway. Every session of an
// agent has its own of each server, and sessions are cheap to open: what one agent
// can make run is bounded for each server (MCP-24, OPS-01). One that nobody uses
// makes room for another; its session starts it again when it needs it.
type children struct {
	mu    sync.Mutex
	by    map[childKey]map[*conn]struct{} // from before they start until they have ended
	moved chan struct{}                   // closed when one has ended, or has nothing to do
}

type childKey struct{ agent, server string }

// seatWait is how long a session waits for a place that is in use, and settling how
// long a new process is left to the request that it was started for.
const (
	seatWait = 10 * time.Second
	settling = time.Second
)

// seat takes a place for the process of a connection and waits a while for one that
// becomes free. Connections over the network need none. leave gives it back when
// the process has ended.
func (l *link) seat(c *conn) (leave func(), err error) {
	g := l.g
	if g.c.Servers[l.server].Target.Command == nil {
		return func() {}, nil
	}
	key := childKey{l.p.principal, l.server}
	if from, err := g.c.Identify(l.p.principal); err == nil {
		key.agent = from.ID
	}
	ctx, stop := context.WithTimeout(g.ctx, min(seatWait, g.c.Limits.Opening))
	defer stop()
	again := time.NewTicker(settling)
	defer again.Stop()
	for {
		moved, others := g.children.take(key, c, g.c.Limits.Children)
		if moved == nil {
			return func() { g.children.leave(key, c) }, nil
		}
		makeRoom(others)
		select {
		case <-moved:
		case <-again.C:
		case <-g.ctx.Done():
			return nil, context.Cause(g.ctx)
		case <-ctx.Done():
			return nil, fmt.Errorf("%d processes of this server run for this agent already, and all of them are in use; end sessions that are not needed", len(others))
		}
	}
}

// take takes a place, or returns the connections that have all of them, and what
// is closed when one of those has ended.
func (k *children) take(key childKey, c *conn, most int) (moved <-chan struct{}, others []*conn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.by == nil {
		k.by, k.moved = make(map[childKey]map[*conn]struct{}), make(chan struct{})
	}
	have := k.by[key]
	if len(have) >= most {
		for other := range have {
			others = append(others, other)
		}
		return k.moved, others
	}
	if have == nil {
		have = make(map[*conn]struct{})
		k.by[key] = have
	}
	have[c] = struct{}{}
	return nil, nil
}

func (k *children) leave(key childKey, c *conn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if delete(k.by[key], c); len(k.by[key]) == 0 {
		delete(k.by, key)
	}
	k.wake()
}

// idle tells those who wait for a place that a process has nothing to do.
func (k *children) idle() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.moved != nil {
		k.wake()
	}
}

// wake must be called with the lock held.
func (k *children) wake() {
	close(k.moved)
	k.moved = make(chan struct{})
}

// makeRoom ends the connection that was not used for longest, unless one is ending.
func makeRoom(all []*conn) {
	if slices.ContainsFunc(all, (*conn).ending) {
		return
	}
	slices.SortFunc(all, func(a, b *conn) int { return a.unused().Compare(b.unused()) })
	for _, c := range all {
		if c.evict() {
			return
		}
	}
}

func (c *conn) ending() bool {
	c.used.Lock()
	defer c.used.Unlock()
	return c.ended
}

func (c *conn) unused() (since time.Time) {
	c.used.Lock()
	defer c.used.Unlock()
	return c.since
}

// evict ends a connection that nothing runs on and that watches nothing.
func (c *conn) evict() bool {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	c.used.Lock()
	defer c.used.Unlock()
	if c.l.conn != c || c.uses > 0 || len(c.l.uris) > 0 || c.ended || c.fresh && c.l.g.c.Now().Sub(c.since) < settling {
		return false
	}
	c.l.conn = nil
	c.closing = true
	c.endUnused()
	return true
}

// idleLimit is how long a connection is kept that nobody uses.
func (c *conn) idleLimit() time.Duration {
	limits := c.l.g.c.Limits
	if c.l.g.c.Servers[c.l.server].Target.Command != nil {
		return min(limits.Idle, limits.ChildIdle)
	}
	return limits.Idle
}
