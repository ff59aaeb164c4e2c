package desk

import (
	"context"
	"sync"
	"time"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/identity"
)

// waiters are those who wait for requests to change.
type waiters struct {
	mu     sync.Mutex
	by     map[approval.ID]map[chan struct{}]bool
	doubts map[approval.ID]time.Time // changes that may still come
}

// watch registers before the caller looks: whoever registers afterwards can miss
// the change that came in between, and the approved call is lost.
func (w *waiters) watch(id approval.ID) (changed <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.by == nil {
		w.by = make(map[approval.ID]map[chan struct{}]bool)
	}
	if w.by[id] == nil {
		w.by[id] = make(map[chan struct{}]bool)
	}
	w.by[id][c] = true
	return c, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.by[id], c)
		if len(w.by[id]) == 0 {
			delete(w.by, id)
		}
	}
}

func (w *waiters) wake(id approval.ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.by[id] {
		select {
		case c <- struct{}{}:
		default: // it has a wake-up it has not read
		}
	}
}

// doubt notes a change that may still be committed: see again.
func (w *waiters) doubt(id approval.ID, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.doubts == nil {
		w.doubts = make(map[approval.ID]time.Time)
	}
	w.doubts[id] = now
}

// again wakes those whose request may have changed without a word of it.
func (w *waiters) again(now time.Time) {
	w.mu.Lock()
	var ids []approval.ID
	for id, since := range w.doubts {
		ids = append(ids, id)
		if now.Sub(since) >= doubtFor {
			delete(w.doubts, id)
		}
	}
	w.mu.Unlock()
	for _, id := range ids {
		w.wake(id)
	}
}

func (w *waiters) count(id approval.ID) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.by[id])
}

// Await returns an agent's own request as soon as it no longer waits for people
// and is not being executed by somebody else, or when ctx ends, then with the
// state it has and the error of ctx.
func (d *Desk) Await(ctx context.Context, from identity.Agent, id approval.ID) (*approval.Request, error) {
	return d.await(ctx, from, id, func(s approval.State) bool { return s != approval.Pending && s != approval.Executing })
}

func (d *Desk) await(ctx context.Context, from identity.Agent, id approval.ID, done func(approval.State) bool) (*approval.Request, error) {
	changed, stop := d.waiters.watch(id)
	defer stop()
	for {
		r, err := d.look(ctx, from, id)
		if err != nil {
			return nil, err
		}
		if done(r.State) {
			return r, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return r, ctx.Err()
		}
	}
}

// Outcome waits for what comes of an approved call, for a person who wants to see
// it: until it has ended, or ctx has. Whoever looks on does not count as waiting.
func (d *Desk) Outcome(ctx context.Context, by identity.Human, id approval.ID) (*approval.Request, error) {
	changed, stop := d.onlookers.watch(id)
	defer stop()
	for {
		r, err := d.Get(ctx, by, id)
		if err != nil || r.State != approval.Approved && r.State != approval.Executing {
			return r, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return r, nil
		}
	}
}

// look reads a request also for an asker that gave up waiting.
func (d *Desk) look(ctx context.Context, from identity.Agent, id approval.ID) (*approval.Request, error) {
	ctx, cancel := outlast(ctx)
	defer cancel()
	return d.GetOwn(ctx, from, id)
}

// Waiting reports how many askers wait for a request right now. A person wants
// to know whether the call runs at once or when the agent returns.
func (d *Desk) Waiting(id approval.ID) int { return d.waiters.count(id) }

// keyed is a lock per key.
type keyed struct {
	mu   sync.Mutex
	held map[string]*keyedLock
}

type keyedLock struct {
	mu   sync.Mutex
	refs int
}

func (k *keyed) lock(key string) (unlock func()) {
	k.mu.Lock()
	if k.held == nil {
		k.held = make(map[string]*keyedLock)
	}
	l := k.held[key]
	if l == nil {
		l = &keyedLock{}
		k.held[key] = l
	}
	l.refs++
	k.mu.Unlock()
	l.mu.Lock()
	return func() {
		l.mu.Unlock()
		k.mu.Lock()
		defer k.mu.Unlock()
		if l.refs--; l.refs == 0 {
			delete(k.held, key)
		}
	}
}
