package gateway

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/desk"
	"github.com/ayegate/ayegate/internal/mcp"
)

// run is an action that is being executed. It does not depend on the exchange
// that started it: an agent that hangs up after the claim hears nothing more, but
// the call goes on, once, and its outcome is recorded (RACE-06). While a modern
// agent is asked for input the run outlives its exchange and waits for the next.
type run struct {
	g      *Gateway
	link   *link
	action *action
	modern bool
	ctx    context.Context // of the call to the server
	stop   context.CancelCauseFunc

	done chan struct{} // closed when the outcome is recorded; then r, res and err are set
	r    *approval.Request
	res  desk.Result
	err  error

	mu     sync.Mutex
	caps   []byte // what the agent declared
	ear    *ear   // who hears what the server says, nil while nobody does
	needs  []*need
	asked  chan struct{} // holds a token when needs grew
	last   int           // of the keys given out
	expiry *time.Timer   // of a parked run
}

// need is input that the server wants before it goes on: members of
// inputRequests, by key, and where the agent's answers go.
type need struct {
	requests map[string][]byte
	answers  chan []byte // takes inputResponses, an object, once
}

// execute runs the request and ends the exchange with what came of it.
func (w *wait) execute(ctx context.Context) {
	if err := w.fresh(ctx); err != nil {
		w.refuseAs(w.action.name(), err)
		return
	}
	a := w.action
	if w.ticket.Claim == "" {
		// This exchange is not the one that asked, or people looked in between: what
		// was shown is sent, not what comes now (TOK-02).
		a = a.as(w.request.Extra)
	}
	u := &run{
		g: w.g, link: w.link(w.action.server), action: a, caps: w.client.Capabilities, modern: w.modern(),
		done: make(chan struct{}), asked: make(chan struct{}, 1), ear: w.ear,
	}
	u.ctx, u.stop = context.WithCancelCause(w.g.ctx)
	// What the desk commits must not depend on the agent; the call itself may be
	// given up before it was sent.
	recorded := context.WithoutCancel(ctx)
	start := func() {
		roomy(0)
		defer close(u.done)
		defer u.stop(nil)
		u.r, u.res, u.err = w.g.desk.Execute(recorded, w.from, w.ticket, func(_ context.Context, c call.Call, claim string) (desk.Result, error) {
			if cause := gone(ctx); cause != nil {
				return desk.Result{}, errors.Join(desk.ErrNotSent, cause)
			}
			return u.do(c, claim)
		})
	}
	if !w.g.spawnIn(&w.g.runs, start) {
		u.err = mcp.ErrShutdown
		close(u.done)
	}
	w.follow(ctx, u)
}

// fresh looks again at the tool that people approved: its definition may have
// changed since, and the server need not have said so (MCP-10). What a rule allows
// is as good as the last listing, which the server's announcements renew.
func (w *wait) fresh(ctx context.Context) error {
	if w.ticket.Claim != "" || w.action.method != "tools/call" {
		return nil
	}
	c, err := w.link(w.action.server).acquire(ctx)
	if err != nil {
		return &notReached{w.action.server, err}
	}
	defer c.release()
	if _, err := c.tools(ctx, true); err != nil {
		return &notReached{w.action.server, err}
	}
	return nil
}

// follow waits for a run, or hands its wait over to the agent's next request.
func (w *wait) follow(ctx context.Context, u *run) {
	for {
		select {
		case <-u.done:
			w.finish(u)
			return
		case <-u.asked:
			if u.open() && w.park(u) {
				return
			}
		case <-ctx.Done():
			cause := context.Cause(ctx)
			if errors.Is(cause, mcp.ErrCancelled) {
				// Too late to stop it here: the server is told, the outcome recorded.
				u.stop(mcp.ErrCancelled)
				<-u.done
			} else {
				u.listen(nil)
			}
			w.fail(&mcp.Error{
				Code:    codeRefused,
				Message: cause.Error() + "; it was too late to stop the call (request " + w.request.Code + "), its outcome is on record",
			})
			return
		}
	}
}

// finish tells what a run came to.
func (w *wait) finish(u *run) {
	r := u.r
	switch {
	case u.err == nil:
	case r != nil && r.State != approval.Approved && r.State != approval.Executing && r.State != approval.Pending:
		// The claim was refused, and the request says why in its own state.
	default:
		w.refuseAs(w.action.name(), u.err)
		return
	}
	w.request = r
	w.deliver(r, u.res)
}

// do sends the call, once, and answers the server while it works. The bytes of an
// answer are never looked into, but for what a modern server says it still needs.
func (u *run) do(c call.Call, claim string) (desk.Result, error) {
	params, err := u.action.outgoing(c, claim, u.g.c.Servers[u.link.server].IdempotencyMeta)
	if err != nil {
		return desk.Result{}, errors.Join(desk.ErrNotSent, err)
	}
	conn, err := u.link.acquire(u.ctx)
	if err != nil {
		return desk.Result{}, errors.Join(desk.ErrNotSent, &notReached{u.link.server, err})
	}
	defer conn.release()
	if res, ok := conn.subscription(u.action.method, params); ok {
		return res, nil
	}
	for round := 0; ; round++ {
		m, err := u.send(conn, params)
		switch {
		case err != nil:
			return desk.Result{}, effectError(u.cause(err), round > 0)
		case m.Error != nil:
			return desk.Result{Bytes: m.Error, IsError: true}, nil
		case conn.about.Version.Era() == mcp.Legacy || textAt(m.Result, "resultType") != "input_required":
			conn.remember(u.action.method, params)
			return desk.Result{Bytes: m.Result, IsError: isTrue(m.Result, "isError")}, nil
		}
		if round == maxRounds {
			return desk.Result{Bytes: errorObject(codeRefused, "the server asked for input too often"), IsError: true}, nil
		}
		if params, err = u.supply(params, m.Result, round); err != nil {
			return desk.Result{Bytes: errorObject(codeRefused, "the server needs input that it did not get: "+err.Error()), IsError: true}, nil
		}
	}
}

// cause names the reason of a call that we ended ourselves.
func (u *run) cause(err error) error {
	if errors.Is(context.Cause(u.ctx), mcp.ErrCancelled) {
		return errors.Join(err, mcp.ErrCancelled)
	}
	return err
}

// listen makes another exchange the one that hears what the server says.
func (u *run) listen(h *ear) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ear = h
}

// Notification implements [mcp.Answers].
func (u *run) Notification(m mcp.Message) {
	u.mu.Lock()
	h := u.ear
	u.mu.Unlock()
	if h == nil {
		return
	}
	ctx, stop := context.WithTimeout(u.ctx, tellTime)
	defer stop()
	if err := h.pass(ctx, m); err != nil {
		u.g.log.Debug("a notification did not reach the agent", "server", u.link.server, "method", m.Method, "err", err)
	}
}

// Ask implements [mcp.Answers]: the agent is asked on the stream of its call, or,
// in the modern era, by ending its request with what is needed.
func (u *run) Ask(ctx context.Context, m mcp.Message) ([]byte, *mcp.Error) {
	u.mu.Lock()
	h, able := u.ear, declares(u.caps, m)
	u.mu.Unlock()
	switch {
	case !able:
		return nil, cannotBeAsked(m.Method)
	case u.modern:
		return u.askLater(ctx, m)
	case h == nil:
		return nil, cannotBeAsked(m.Method)
	}
	defer u.link.p.expect(m.Params, u.link)()
	return answerOf(h.x.Ask(ctx, m.Method, m.Params))
}

// roomy makes the stack of a new goroutine large at once: doubling it while the
// call is on its way copies it three times, with more frames each time.
//
//go:noinline
func roomy(i int) byte {
	var room [10 << 10]byte
	room[i] = 1
	return room[i>>1]
}
