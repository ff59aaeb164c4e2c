package mcp

import (
	"context"
	"strconv"
	"sync"

	"github.com/ayegate/ayegate/internal/strictjson"
)

// maxAsks bounds the requests that wait for one agent at a time.
const maxAsks = 64

// asks are the requests that this side made of one agent and that it has not
// answered. Their ids are ours, so an agent cannot confuse two servers behind us
// and a server's own ids never reach an agent.
type asks struct {
	mu     sync.Mutex
	last   uint64
	open   map[string]chan Message // by IDKey
	closed bool
}

// ask sends a request with send and waits for its response. When ctx ends first,
// the agent is told that nobody waits any more.
func (a *asks) ask(ctx context.Context, method string, params []byte, send func(context.Context, eventKind, []byte) error) (Message, error) {
	id, answer, err := a.begin()
	if err != nil {
		return Message{}, err
	}
	defer a.end(id)
	if err := send(ctx, eventRequest, NewRequest(id, method, params)); err != nil {
		return Message{}, err
	}
	select {
	case m, ok := <-answer:
		if !ok {
			return Message{}, ErrNoSession
		}
		return m, nil
	case <-ctx.Done():
		_ = send(ctx, eventNotification, NewNotification(methodCancelled, cancelledParams(id)))
		return Message{}, context.Cause(ctx)
	}
}

func (a *asks) begin() (id []byte, answer chan Message, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil, nil, ErrNoSession
	}
	if len(a.open) >= maxAsks {
		return nil, nil, ErrNoAsk
	}
	a.last++
	id = strconv.AppendUint([]byte(`"aye-`), a.last, 10)
	id = append(id, '"')
	answer = make(chan Message, 1)
	if a.open == nil {
		a.open = make(map[string]chan Message)
	}
	a.open[IDKey(id)] = answer
	return id, answer, nil
}

func (a *asks) end(id []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.open, IDKey(id))
}

// answer hands a response to whoever waits for it. A response nobody waits for
// (late, or to an id never asked) is dropped; the first of two wins.
func (a *asks) answer(m Message) {
	if m.ID == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	key := IDKey(m.ID)
	if c, ok := a.open[key]; ok {
		delete(a.open, key)
		c <- m
	}
}

// close ends all waiting with [ErrNoSession].
func (a *asks) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	for key, c := range a.open {
		delete(a.open, key)
		close(c)
	}
}

const methodCancelled = "notifications/cancelled"

func cancelledParams(id []byte) []byte {
	b := append([]byte(`{"requestId":`), id...)
	return append(b, `,"reason":"no longer needed"}`...)
}

// cancelledID returns the id that the params of notifications/cancelled name.
func cancelledID(params []byte) []byte {
	id, ok := get(params, "requestId")
	if !ok || checkID(id) != nil {
		return nil
	}
	return id
}

// get reads a member of checked JSON.
func get(doc []byte, path ...string) ([]byte, bool) {
	if doc == nil {
		return nil, false
	}
	return strictjson.Get(doc, path...)
}
