package main

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/ayegate/ayegate/internal/mcp"
)

// relay joins an agent on stdio to a running ayegate: what the agent says goes
// out over HTTP with the local agent's key, and what comes back is handed on
// byte for byte. It judges nothing; the gateway at the other end does.
type relay struct {
	url  string
	key  string
	mu   sync.Mutex
	open mcp.Client // who began the session with initialize
	push mcp.Pusher
	up   mcp.Upstream // of that session
	next mcp.Upstream // of modern requests, which need no session
}

func (r *relay) target(c mcp.Client, push mcp.Pusher) mcp.Target {
	return mcp.Target{
		Name: "ayegate", URL: r.url, Header: http.Header{"Authorization": {"Bearer " + r.key}}, Version: c.Version,
		Info: c.Info, Capabilities: c.Capabilities, Stray: stray{push}, CallLimit: maxCall,
	}
}

// Initialize opens the session at the gateway as the agent opens it here.
func (r *relay) Initialize(ctx context.Context, c mcp.Client, _ []byte, push mcp.Pusher) ([]byte, *mcp.Error) {
	up, err := mcp.Dial(ctx, r.target(c, push))
	if err != nil {
		return nil, unreachable(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.up, r.open, r.push = up, c, push
	return up.About().Raw, nil
}

// reopen begins the session anew after the gateway forgot it, because it was
// started again. The agent does not notice.
func (r *relay) reopen(ctx context.Context, old mcp.Upstream) (mcp.Upstream, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.up != old {
		return r.up, nil // another request was quicker
	}
	up, err := mcp.Dial(ctx, r.target(r.open, r.push))
	if err != nil {
		return nil, err
	}
	_ = old.Close() // it is over already
	r.up = up
	return up, nil
}

func unreachable(err error) *mcp.Error {
	return &mcp.Error{Code: mcp.CodeInternal, Message: "ayegate could not be reached, nothing ran: " + err.Error()}
}

// upstream returns the connection for a request of the agent's era.
func (r *relay) upstream(ctx context.Context, c mcp.Client) (mcp.Upstream, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.Version.Era() == mcp.Legacy {
		if r.up == nil {
			return nil, errors.New("the session has not begun: initialize comes first")
		}
		return r.up, nil
	}
	if r.next != nil {
		select {
		case <-r.next.Done():
		default:
			return r.next, nil
		}
	}
	up, err := mcp.Dial(ctx, r.target(c, nil))
	if err != nil {
		return nil, err
	}
	r.next = up
	return up, nil
}

// Serve hands one request on.
func (r *relay) Serve(ctx context.Context, x mcp.Exchange) {
	up, err := r.upstream(ctx, x.Client())
	if err != nil {
		_ = x.Fail(unreachable(err)) // the agent may be gone
		return
	}
	m := x.Request()
	answer, err := up.Call(ctx, m.Method, m.Params, answers{x})
	if errors.Is(err, mcp.ErrNoSession) { // refused before anything was done
		if up, err = r.reopen(ctx, up); err != nil {
			_ = x.Fail(unreachable(err))
			return
		}
		answer, err = up.Call(ctx, m.Method, m.Params, answers{x})
	}
	switch {
	case err != nil:
		_ = x.Fail(&mcp.Error{Code: mcp.CodeInternal, Message: "the connection to ayegate broke; look there before you repeat this: " + err.Error()})
	case answer.Error != nil:
		_ = x.Fail(&mcp.Error{Raw: answer.Error})
	default:
		_ = x.Reply(answer.Result)
	}
}

// Notification hands a notification on.
func (r *relay) Notification(ctx context.Context, c mcp.Client, m mcp.Message) {
	if m.Method == "notifications/initialized" {
		return // the dialled session has said so already
	}
	if up, err := r.upstream(ctx, c); err == nil {
		_ = up.Notify(ctx, m.Method, m.Params) // a lost notification has no asker to tell
	}
}

// Close ends the sessions at the gateway.
func (r *relay) Close(mcp.Client) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, up := range []mcp.Upstream{r.up, r.next} {
		if up != nil {
			_ = up.Close() // it ends with this process in any case
		}
	}
	r.up, r.next = nil, nil
}

// answers hands what the gateway sends during a call to the agent.
type answers struct{ x mcp.Exchange }

func (a answers) Notification(m mcp.Message) {
	_ = a.x.Notify(context.Background(), m.Method, m.Params) // the agent may be gone
}

func (a answers) Ask(ctx context.Context, m mcp.Message) ([]byte, *mcp.Error) {
	return outcome(a.x.Ask(ctx, m.Method, m.Params))
}

// stray hands on what belongs to no call.
type stray struct{ push mcp.Pusher }

func (s stray) Notification(m mcp.Message) {
	if s.push != nil {
		_ = s.push.Notify(context.Background(), m.Method, m.Params) // the agent may be gone
	}
}

func (s stray) Ask(ctx context.Context, m mcp.Message) ([]byte, *mcp.Error) {
	if s.push == nil {
		return nil, &mcp.Error{Code: mcp.CodeMethodNotFound, Message: "there is nobody to ask"}
	}
	return outcome(s.push.Ask(ctx, m.Method, m.Params))
}

func outcome(m mcp.Message, err error) ([]byte, *mcp.Error) {
	switch {
	case err != nil:
		return nil, &mcp.Error{Code: mcp.CodeMethodNotFound, Message: err.Error()}
	case m.Error != nil:
		return nil, &mcp.Error{Raw: m.Error}
	}
	return m.Result, nil
}
