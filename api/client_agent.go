package api

import (
	"context"
	"errors"
	"net/http"
	"net/url"
)

// Call asks for a call. The answer says what became of it so far. When the call
// was refused or ended without a result, the error is a [*Problem] and the Call
// that it carries is returned beside it.
func (c *Client) Call(ctx context.Context, r CallRequest) (*Call, error) {
	return c.call(ctx, exchange{method: http.MethodPost, path: []string{"v1", "calls"}, in: r})
}

// GetCall reads an own call, waiting up to wait while it waits for people or
// runs. It changes nothing: to make an approved call run, use [Client.Await].
func (c *Client) GetCall(ctx context.Context, id string, wait Duration) (*Call, error) {
	q := url.Values{}
	if wait > 0 {
		q.Set("wait", wait.String())
	}
	return c.call(ctx, exchange{method: http.MethodGet, path: []string{"v1", "calls", id}, query: q})
}

// Await goes on waiting for an own call and makes it run when it is approved and
// ayegate performs it.
func (c *Client) Await(ctx context.Context, id string, wait Duration) (*Call, error) {
	return c.call(ctx, exchange{method: http.MethodPost, path: []string{"v1", "calls", id, "await"}, in: AwaitRequest{Wait: wait}})
}

// Claim returns the token of an approved call that the caller performs, once.
func (c *Client) Claim(ctx context.Context, id string, r ClaimRequest) (*Token, error) {
	t := &Token{}
	return t, c.do(ctx, exchange{method: http.MethodPost, path: []string{"v1", "calls", id, "claim"}, in: r, out: t})
}

// Redeem spends a token. Only after it returned without an error may the effect
// start.
func (c *Client) Redeem(ctx context.Context, id string, r RedeemRequest) (*Call, error) {
	return c.call(ctx, exchange{method: http.MethodPost, path: []string{"v1", "calls", id, "redeem"}, in: r})
}

// Finish reports what a call came to that the caller performed.
func (c *Client) Finish(ctx context.Context, id string, r FinishRequest) (*Call, error) {
	return c.call(ctx, exchange{method: http.MethodPost, path: []string{"v1", "calls", id, "finish"}, in: r})
}

// Withdraw takes an own call back that has not started.
func (c *Client) Withdraw(ctx context.Context, id string) (*Call, error) {
	return c.call(ctx, exchange{method: http.MethodPost, path: []string{"v1", "calls", id, "cancel"}, in: CancelRequest{}})
}

func (c *Client) call(ctx context.Context, x exchange) (*Call, error) {
	out := &Call{}
	x.out = out
	err := c.do(ctx, x)
	if err == nil {
		return out, nil
	}
	var p *Problem
	if errors.As(err, &p) {
		return p.Call, err
	}
	return nil, err
}
