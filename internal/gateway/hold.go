package gateway

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/desk"
	"github.com/ayegate/ayegate/internal/mcp"
)

// outcome is how far a carrier brought a waiting call.
type outcome uint8

const (
	passed outcome = iota // still waiting: the next carrier's turn
	moved                 // the request waits no longer
	ended                 // the exchange has ended
)

// carrier is one way of telling an agent that its call waits for people, and of
// waiting with it. All carriers are views of the same request.
type carrier func(ctx context.Context, w *wait) outcome

// ladder are the carriers for a client, best first. The last one always ends the
// exchange. What a client declares chooses the carrier and nothing else.
func (w *wait) ladder() []carrier {
	asks := has(w.client.Capabilities, "elicitation", "url") && w.g.c.BaseURL != ""
	switch {
	case w.modern() && !returns(w.action.method):
		return []carrier{hold, block}
	case w.modern() && asks:
		return []carrier{invite, hold, comeAgain, block}
	case w.modern():
		return []carrier{hold, comeAgain, block}
	case asks && w.client.Version == mcp.V20251125:
		return []carrier{holdAndElicit, block}
	}
	return []carrier{hold, block}
}

// returns reports whether a modern request of this method may be answered with
// input_required.
func returns(method string) bool {
	return method == "tools/call" || method == "prompts/get" || method == "resources/read"
}

// carry waits with the agent until its request no longer waits, or as long as the
// agent can.
func (w *wait) carry(ctx context.Context) { w.climb(ctx, w.ladder()) }

func (w *wait) climb(ctx context.Context, ladder []carrier) {
	if !w.waiting() {
		w.settle(ctx)
		return
	}
	for _, c := range ladder {
		switch c(ctx, w) {
		case passed:
		case moved:
			w.settle(ctx)
			return
		case ended:
			return
		}
	}
}

// waiting reports whether there is something to wait for: people, or another
// asker of the same request that is running it.
func (w *wait) waiting() bool {
	return w.request.State == approval.Pending || w.request.State == approval.Executing
}

var errBudget = errors.New("the call was held as long as the client waits")

// hold keeps the exchange open, with progress where the agent wants to hear of it.
func hold(ctx context.Context, w *wait) outcome {
	held, stop := context.WithTimeoutCause(ctx, w.budget, errBudget)
	defer stop()
	telling := make(chan struct{})
	go func() {
		defer close(telling)
		w.ear.tell(held, w)
	}()
	r, err := w.g.desk.Await(held, w.from, w.request.ID)
	over := held.Err() != nil
	stop()
	<-telling
	if err != nil && !over {
		w.refuseAs(w.action.name(), err)
		return ended
	}
	if r != nil {
		w.request = r
	}
	// An approval that comes in the moment the agent goes away does not start
	// anything: it runs when the agent returns.
	if cause := gone(ctx); cause != nil {
		w.abandoned(cause)
		return ended
	}
	if w.waiting() {
		return passed
	}
	return moved
}

// holdAndElicit holds and meanwhile offers the person at the agent's side to open
// the request's page. What the client answers is no decision, whatever it says:
// that side is the one that asks (MCP-05, MCP-06).
func holdAndElicit(ctx context.Context, w *wait) outcome {
	if w.invited || w.request.State != approval.Pending {
		return hold(ctx, w)
	}
	asking, stop := context.WithCancel(ctx)
	id := string(w.request.ID)
	params := set(w.invitation(), quoted(id), "elicitationId")
	var answered sync.WaitGroup
	answered.Go(func() {
		if _, err := w.x.Ask(asking, "elicitation/create", params); err != nil && asking.Err() == nil {
			w.g.log.Debug("the client took no elicitation", "request", id, "err", err)
		}
	})
	out := hold(ctx, w)
	stop()
	answered.Wait()
	if out == moved {
		_ = w.x.Notify(ctx, "notifications/elicitation/complete", (&object{}).text("elicitationId", id).bytes())
	}
	return out
}

// invitation asks to open the page of the request.
func (w *wait) invitation() []byte {
	return (&object{}).text("mode", "url").text("url", w.g.url(w.request)).
		text("message", w.action.name()+" needs a person's approval (request "+w.request.Code+"). Open the page to review it.").bytes()
}

// block ends the exchange: nothing has run, and how to go on waiting.
func block(_ context.Context, w *wait) outcome {
	w.say(desk.Told(w.request, w.g.c.Now(), w.next(w.request)), w.request)
	return ended
}

// url is the page of a request: its code and nothing that opens it by itself.
func (g *Gateway) url(r *approval.Request) string {
	if g.c.BaseURL == "" {
		return ""
	}
	return g.c.BaseURL + "/r/" + r.Code
}

// left is the time to the deadline as people read it.
func left(d time.Duration) string { return max(d, 0).Round(time.Second).String() }
