package gateway

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/desk"
)

// maxComebacks is how often an agent is told to come back before it gets the
// blocked result. Clients give up after a few rounds that ask for nothing: the
// most impatient one makes an error of the third.
const maxComebacks = 2

// invite ends a modern request with the link to the request's page and a state to
// come back with. An agent that came back was invited before.
func invite(_ context.Context, w *wait) outcome {
	if w.invited || w.request.State != approval.Pending {
		return passed
	}
	request := (&object{}).text("method", "elicitation/create").add("params", w.invitation()).bytes()
	return w.ask((&object{}).add("approval", request).bytes(), state{})
}

// comeAgain ends a modern request that was held as long as its client waits, with
// nothing but a state to come back with.
func comeAgain(_ context.Context, w *wait) outcome {
	if w.round >= maxComebacks {
		return passed
	}
	return w.ask([]byte("{}"), state{round: w.round + 1})
}

// ask ends the exchange with input_required. requests is there even when it is
// empty, because clients take a result without it for a complete one.
func (w *wait) ask(requests []byte, s state) outcome {
	s.request, s.call = w.request.ID, w.action.hash()
	sealed, err := w.seal(s)
	if err != nil {
		w.g.log.Error("no state could be sealed", "err", err)
		return passed
	}
	w.reply((&object{}).text("resultType", "input_required").add("inputRequests", requests).add("requestState", sealed).bytes())
	return ended
}

// comeBack takes a modern agent's request that carries our state. What the agent
// answers to an invitation is not read: it is no approval and no denial (MCP-05).
func (e *exchange) comeBack(ctx context.Context, a *action) {
	s, err := e.unseal(a.state)
	if err != nil || s.call != a.hash() {
		e.fail(badParams(errState.Error()))
		return
	}
	if s.run != "" {
		if u := e.g.unpark(s.run, e.party); u != nil {
			e.resume(ctx, u, a, s)
			return
		}
	}
	r, err := e.g.desk.GetOwn(ctx, e.from, s.request)
	if err != nil {
		e.refuseAs(a.name(), err)
		return
	}
	w := e.waitFor(a, &desk.Ticket{Request: r, Attached: true})
	w.round, w.invited = s.round, true
	if w.request.State.Final() && !w.request.Execution.PickedUp.IsZero() {
		w.say(desk.Told(w.request, e.g.c.Now(), w.next(w.request)), w.request)
		return
	}
	w.carry(ctx)
}

// park ends the exchange with what the server needs from the agent, and keeps the
// run for its next request. It reports false when there is no room or the run
// needs nothing after all: the wait goes on.
func (w *wait) park(u *run) bool {
	id, err := w.g.bytes(16)
	if err != nil {
		return false
	}
	name := hex.EncodeToString(id)
	if !w.g.keep(name, u, w.party) {
		u.stop(errNoInput)
		return false
	}
	u.listen(nil)
	w.ask(u.requests(), state{run: name, round: w.round})
	return true
}

// keep stores a run until its agent comes back, or for as long as the limit says.
func (g *Gateway) keep(name string, u *run, p *party) bool {
	p.mu.Lock()
	full := p.parked >= g.c.Limits.Parked
	if !full {
		p.parked++
	}
	p.mu.Unlock()
	if full {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.parked[name] = u
	u.expiry = time.AfterFunc(g.c.Limits.ParkedFor, func() { g.unpark(name, p) })
	return true
}

// unpark takes a run out; nil when it is not there, or is another agent's.
func (g *Gateway) unpark(name string, p *party) *run {
	g.mu.Lock()
	u := g.parked[name]
	if u == nil || u.link.p != p {
		g.mu.Unlock()
		return nil
	}
	delete(g.parked, name)
	u.expiry.Stop()
	g.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.parked--
	return u
}

// resume goes on with a parked run in the agent's new request.
func (e *exchange) resume(ctx context.Context, u *run, a *action, s state) {
	r, err := e.g.desk.GetOwn(ctx, e.from, s.request)
	if err != nil {
		e.refuseAs(a.name(), err)
		return
	}
	w := e.waitFor(a, &desk.Ticket{Request: r, Attached: true})
	w.round = s.round
	u.listen(w.ear)
	u.mu.Lock()
	u.caps = e.client.Capabilities
	u.mu.Unlock()
	u.take(a.answers)
	if u.open() {
		u.nudge()
	}
	w.follow(ctx, u)
}
