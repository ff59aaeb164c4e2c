package mcp

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// lifetime is how long a connection to a server lives, together with the
// goroutines that end with it.
type lifetime struct {
	ctx context.Context // cancelled when the connection is over; its cause says why
	end context.CancelCauseFunc
	mu  sync.Mutex // orders spawn against finish
	wg  sync.WaitGroup

	replies atomic.Int32
}

// newLifetime returns a lifetime that does not end with ctx, which bounds only the opening.
func newLifetime(ctx context.Context) *lifetime {
	l := &lifetime{}
	l.ctx, l.end = context.WithCancelCause(context.WithoutCancel(ctx))
	return l
}

// Done is closed when the connection is over.
func (l *lifetime) Done() <-chan struct{} { return l.ctx.Done() }

// Err says why the connection is over, or nil while it lives.
func (l *lifetime) Err() error { return context.Cause(l.ctx) }

// finish ends the connection. The first cause stays.
func (l *lifetime) finish(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end(cause)
}

// spawn runs f unless the connection is over already.
func (l *lifetime) spawn(f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil {
		return false
	}
	l.wg.Go(f)
	return true
}

// reply runs f, which answers a request of the server, unless the connection is
// over or too many are being answered: a server that asks and never reads the
// answers must not fill our memory.
func (l *lifetime) reply(f func()) bool {
	if l.replies.Add(1) > maxReplies {
		l.replies.Add(-1)
		return false
	}
	ok := l.spawn(func() {
		defer l.replies.Add(-1)
		f()
	})
	if !ok {
		l.replies.Add(-1)
	}
	return ok
}

// Bounds of what waits between a server that talks and somebody who listens slowly.
const (
	maxQueued      = 256
	maxQueuedBytes = 4 << 20
	maxReplies     = 32 // requests of one server being answered at a time
)

// inbox holds notifications between the reader of a connection, which must never
// wait, and the one who takes them. What does not fit is dropped: notifications
// are news, and nothing depends on one (MCP-15, MCP-16).
type inbox struct {
	mu    sync.Mutex
	queue []Message
	bytes int
	wake  chan struct{} // holds one token while the queue is not empty
}

func newInbox() *inbox { return &inbox{wake: make(chan struct{}, 1)} }

// put reports whether there was room.
func (q *inbox) put(m Message) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.queue) > 0 && (len(q.queue) >= maxQueued || q.bytes+len(m.Raw) > maxQueuedBytes) {
		return false
	}
	q.queue = append(q.queue, m)
	q.bytes += len(m.Raw)
	select {
	case q.wake <- struct{}{}:
	default:
	}
	return true
}

// take empties the queue.
func (q *inbox) take() []Message {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := q.queue
	q.queue, q.bytes = nil, 0
	return all
}

// follow hands over what arrives until the connection ends.
func (q *inbox) follow(l *lifetime, to Answers) {
	for {
		select {
		case <-q.wake:
			for _, m := range q.take() {
				to.Notification(m)
			}
		case <-l.Done():
			return
		}
	}
}

// errWithdrawn is the cause of the context of a request that its server took back.
var errWithdrawn = errors.New("the server withdrew its request")

// serverAsks holds the requests of a server that are being answered, by id, so that
// the server can withdraw one.
type serverAsks struct {
	mu      sync.Mutex
	pending map[string]context.CancelCauseFunc
}

// answer asks to, and returns the response to send; nil when the server has
// withdrawn its request and expects none.
func (a *serverAsks) answer(ctx context.Context, m Message, to Answers) []byte {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	id := string(m.ID)
	if e := a.enter(id, end); e != nil {
		return NewError(m.ID, e)
	}
	defer a.leave(id)
	result, e := to.Ask(ctx, m)
	switch {
	case errors.Is(context.Cause(ctx), errWithdrawn):
		return nil
	case e != nil:
		return NewError(m.ID, e)
	}
	return NewResult(m.ID, result)
}

func (a *serverAsks) enter(id string, end context.CancelCauseFunc) *Error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, ok := a.pending[id]; ok {
		return &Error{Code: CodeInvalidRequest, Message: "this request id is in use"}
	}
	if a.pending == nil {
		a.pending = make(map[string]context.CancelCauseFunc)
	}
	a.pending[id] = end
	return nil
}

func (a *serverAsks) leave(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.pending, id)
}

// withdraw ends the answering of a request.
func (a *serverAsks) withdraw(id []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if end, ok := a.pending[string(id)]; ok {
		end(errWithdrawn)
	}
}

// nobody answers for a caller who passed no Answers.
type nobody struct{}

func (nobody) Notification(Message) {}

func (nobody) Ask(_ context.Context, m Message) ([]byte, *Error) {
	return nil, refuseAsk(m)
}

// refuseAsk is the answer to a request of a server that nobody can take.
func refuseAsk(m Message) *Error {
	return &Error{Code: CodeMethodNotFound, Message: m.Method + " cannot be asked here: no call it could belong to, or nobody to answer"}
}

func orNobody(to Answers) Answers {
	if to == nil {
		return nobody{}
	}
	return to
}
