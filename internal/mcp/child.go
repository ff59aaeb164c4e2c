package mcp

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
)

// Methods that this side uses by itself.
const (
	methodInitialize  = "initialize"
	methodInitialized = "notifications/initialized"
	methodDiscover    = "server/discover"
	methodListen      = "subscriptions/listen"
	methodProgress    = "notifications/progress"
	methodPing        = "ping"
	methodRoots       = "roots/list"
)

// Child is a connection to a server that runs as a process of ours and talks
// over its standard input and output.
//
// Nothing on that wire says which call a request of the server belongs to. It
// goes to the only call in flight; when several are, it is refused, and from
// then on calls that could ask run one after the other.
type Child struct {
	*lifetime
	t      Target
	proc   *process
	writes chan *outbound
	terms  atomic.Pointer[terms] // nil until agreed
	stray  *inbox
	asking serverAsks

	exited  chan struct{} // the process has been waited for
	drained chan struct{} // all that it wrote has been read

	lock    sync.Mutex // guards what follows
	last    uint64
	calls   map[uint64]*childCall
	running map[*childCall]struct{} // calls in flight that could ask
	serial  bool                    // the server asks: one such call at a time
	waiting []*childCall            // for their turn, in order
}

// outbound is a message on its way to the process.
type outbound struct {
	line []byte
	lost atomic.Bool // nothing of it was written, and nothing will be
}

// childCall is one call in flight.
type childCall struct {
	id     uint64
	ctx    context.Context // for the requests the server makes because of it
	to     Answers
	token  []byte        // the agent's progress token or nil
	news   *inbox        // notifications
	answer chan Message  // the response
	failed chan error    // why no response can be had
	turn   chan struct{} // closed when it may start
	asks   sync.WaitGroup
}

// About describes the server as it introduced itself.
func (c *Child) About() About {
	return c.terms.Load().aboutServer()
}

// Path is the absolute path of the program that runs.
func (c *Child) Path() string { return c.proc.path }

// Close ends the process: its input is closed, then it is asked to terminate,
// then killed, with all it started. Calls in flight fail. Close must not be
// called from within Answers.
func (c *Child) Close() error {
	c.finish(ErrUpstreamClosed)
	c.proc.end(c.exited, c.t.Grace)
	c.wg.Wait()
	return nil
}

// Call implements [Upstream].
func (c *Child) Call(ctx context.Context, method string, params []byte, to Answers) (Message, error) {
	return c.call(ctx, c.terms.Load().meta, method, params, to)
}

func (c *Child) call(ctx context.Context, meta *introduction, method string, params []byte, to Answers) (Message, error) {
	ctx, stop := c.t.within(ctx, method)
	defer stop()
	call, err := c.enter(ctx, method, to)
	if err != nil {
		return Message{}, unsent(err)
	}
	defer call.asks.Wait() // they use to, which is not ours after the return
	defer stop()
	defer c.leave(call)
	params, token, err := outgoing(params, meta, call.id)
	if err != nil {
		return Message{}, unsent(err)
	}
	id := strconv.AppendUint(nil, call.id, 10)
	out := &outbound{line: AppendLine(nil, NewRequest(id, method, params))}
	c.expect(call, token)
	if err := c.send(ctx, out); err != nil {
		return Message{}, unsent(err)
	}
	return c.await(ctx, call, out, method)
}

// await waits for the response and hands on the news that precede it.
func (c *Child) await(ctx context.Context, call *childCall, out *outbound, method string) (Message, error) {
	for {
		select {
		case <-call.news.wake:
			call.tell()
			continue
		case m := <-call.answer:
			call.tell()
			return m, nil
		case err := <-call.failed:
			return Message{}, sent(err)
		case <-ctx.Done():
		case <-c.Done():
		}
		select { // an answer that has come wins over whatever came with it
		case m := <-call.answer:
			call.tell()
			return m, nil
		default:
		}
		if err := c.Err(); err != nil {
			return Message{}, &CallError{Sent: !out.lost.Load(), Err: err}
		}
		if method != methodInitialize { // which must not be cancelled
			c.spawn(func() { c.cancel(call.id) })
		}
		return Message{}, sent(context.Cause(ctx))
	}
}

// tell hands over the notifications that have come.
func (call *childCall) tell() {
	for _, m := range call.news.take() {
		call.to.Notification(m)
	}
}

// cancel tells the server that nobody waits for a call any more.
func (c *Child) cancel(id uint64) {
	params := cancelledParams(strconv.AppendUint(nil, id, 10))
	_ = c.send(c.ctx, &outbound{line: AppendLine(nil, NewNotification(methodCancelled, params))})
}

// Notify implements [Upstream].
func (c *Child) Notify(ctx context.Context, method string, params []byte) error {
	if err := c.send(ctx, &outbound{line: AppendLine(nil, NewNotification(method, params))}); err != nil {
		return unsent(err)
	}
	return nil
}

// send hands a line to the writer. An error means that nothing was written.
func (c *Child) send(ctx context.Context, out *outbound) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	select {
	case c.writes <- out:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.Done():
		return c.Err()
	}
}

// asksNothing reports whether a server has no reason to ask something because
// of a request with this method.
func asksNothing(method string) bool {
	switch method {
	case methodPing, methodInitialize, methodDiscover, methodListen, "tools/list", "prompts/list",
		"resources/list", "resources/templates/list", "logging/setLevel", "completion/complete":
		return true
	}
	return false
}

// enter registers a call and waits for its turn when the server is one that asks.
func (c *Child) enter(ctx context.Context, method string, to Answers) (*childCall, error) {
	call := &childCall{
		ctx: ctx, to: orNobody(to), news: newInbox(),
		answer: make(chan Message, 1), failed: make(chan error, 1),
	}
	c.lock.Lock()
	c.last++
	call.id = c.last
	if asksNothing(method) {
		c.lock.Unlock()
		return call, nil
	}
	if !c.serial || len(c.running)+len(c.waiting) == 0 {
		c.running[call] = struct{}{}
		c.lock.Unlock()
		return call, nil
	}
	call.turn = make(chan struct{})
	c.waiting = append(c.waiting, call)
	c.lock.Unlock()
	select {
	case <-call.turn:
		return call, nil
	case <-ctx.Done():
		c.leave(call)
		return nil, context.Cause(ctx)
	case <-c.Done():
		c.leave(call)
		return nil, c.Err()
	}
}

// expect lets the reader find the call.
func (c *Child) expect(call *childCall, token []byte) {
	c.lock.Lock()
	defer c.lock.Unlock()
	call.token = token
	c.calls[call.id] = call
}

// leave forgets a call and lets the next one in line start.
func (c *Child) leave(call *childCall) {
	c.lock.Lock()
	defer c.lock.Unlock()
	delete(c.calls, call.id)
	delete(c.running, call)
	for i, w := range c.waiting {
		if w == call {
			c.waiting = append(c.waiting[:i:i], c.waiting[i+1:]...)
			break
		}
	}
	if len(c.running) == 0 && len(c.waiting) > 0 {
		next := c.waiting[0]
		c.waiting = c.waiting[1:]
		c.running[next] = struct{}{}
		close(next.turn)
	}
}
