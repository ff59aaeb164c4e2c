package mcp

import "sync"

// use counts what one principal, or all together, hold open at an [Endpoint].
type use struct {
	sessions  int // legacy sessions
	streams   int // HTTP exchanges that are being answered, standing streams included
	exchanges int // requests being served, also those whose agent has gone
}

func (u *use) add(v use) {
	u.sessions += v.sessions
	u.streams += v.streams
	u.exchanges += v.exchanges
}

func (u *use) sub(v use) { u.add(use{-v.sessions, -v.streams, -v.exchanges}) }

// within reports whether u may grow by v under max.
func (u *use) within(v, max use) bool {
	return (v.sessions == 0 || u.sessions+v.sessions <= max.sessions) &&
		(v.streams == 0 || u.streams+v.streams <= max.streams) &&
		(v.exchanges == 0 || u.exchanges+v.exchanges <= max.exchanges)
}

// quota keeps one principal from using up what all need (MCP-24).
type quota struct {
	each, all use // the limits
	mu        sync.Mutex
	total     use
	by        map[string]*use // only principals that hold something
	closed    bool
	running   sync.WaitGroup // exchanges, so that a shutdown can wait for them
}

// shut makes every later take fail.
func (q *quota) shut() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
}

// take reports whether the principal may hold v more, and counts it if so.
func (q *quota) take(principal string, v use) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	u := q.by[principal]
	if u == nil {
		u = &use{}
	}
	if q.closed || !u.within(v, q.each) || !q.total.within(v, q.all) {
		return false
	}
	if q.by == nil {
		q.by = make(map[string]*use)
	}
	q.by[principal] = u
	u.add(v)
	q.total.add(v)
	q.running.Add(v.exchanges)
	return true
}

// give returns what take counted.
func (q *quota) give(principal string, v use) {
	q.mu.Lock()
	defer q.mu.Unlock()
	u := q.by[principal]
	u.sub(v)
	q.total.sub(v)
	q.running.Add(-v.exchanges)
	if *u == (use{}) {
		delete(q.by, principal)
	}
}
