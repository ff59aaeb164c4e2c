package api

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
)

// RequestFilter selects requests; empty fields select all.
type RequestFilter struct {
	Status []Status
	Agent  string // id
	Server string // id
	Tool   string // "server.tool"
	Tier   []string
	Limit  int    // of one page; 0 leaves it to the server
	Cursor string // of the page before
}

func (f RequestFilter) query() url.Values {
	q := url.Values{}
	for _, s := range f.Status {
		q.Add("status", string(s))
	}
	for _, t := range f.Tier {
		q.Add("tier", t)
	}
	for name, v := range map[string]string{"agent": f.Agent, "server": f.Server, "tool": f.Tool, "cursor": f.Cursor} {
		if v != "" {
			q.Set(name, v)
		}
	}
	if f.Limit > 0 {
		q.Set("limit", strconv.Itoa(f.Limit))
	}
	return q
}

// Requests reads one page of requests: those that only wait, soonest deadline
// first, every other selection newest first.
func (c *Client) Requests(ctx context.Context, f RequestFilter) (*RequestList, error) {
	out := &RequestList{}
	return out, c.do(ctx, exchange{method: http.MethodGet, path: []string{"v1", "requests"}, query: f.query(), out: out})
}

// Request reads one request by its id or short code.
func (c *Client) Request(ctx context.Context, id string) (*Request, error) {
	out := &Request{}
	return out, c.do(ctx, exchange{method: http.MethodGet, path: []string{"v1", "requests", id}, out: out})
}

// Decide records a decision and returns the request after it. A decision about
// another version than the current one is [Stale]; the current one is then in
// the [*Problem].
func (c *Client) Decide(ctx context.Context, id string, d DecideRequest) (*Request, error) {
	return c.change(ctx, id, "decide", d)
}

// Extend moves the deadline by five minutes.
func (c *Client) Extend(ctx context.Context, id string) (*Request, error) {
	return c.change(ctx, id, "extend", ExtendRequest{})
}

// Revoke ends a request that has not started, also an approved one.
func (c *Client) Revoke(ctx context.Context, id string) (*Request, error) {
	return c.change(ctx, id, "cancel", CancelRequest{})
}

// Resolve settles an unknown outcome.
func (c *Client) Resolve(ctx context.Context, id string, r ResolveRequest) (*Request, error) {
	return c.change(ctx, id, "resolve", r)
}

func (c *Client) change(ctx context.Context, id, verb string, in any) (*Request, error) {
	out := &Request{}
	return out, c.do(ctx, exchange{method: http.MethodPost, path: []string{"v1", "requests", id, verb}, in: in, out: out})
}

// Me says who the credential is.
func (c *Client) Me(ctx context.Context) (*Me, error) {
	out := &Me{}
	return out, c.do(ctx, exchange{method: http.MethodGet, path: []string{"v1", "me"}, out: out})
}

// Pause stops all agents, or one session.
func (c *Client) Pause(ctx context.Context, r PauseRequest) (*Sessions, error) {
	out := &Sessions{}
	return out, c.do(ctx, exchange{method: http.MethodPost, path: []string{"v1", "pause"}, in: r, out: out})
}

// Resume lets all agents, or one session, go on.
func (c *Client) Resume(ctx context.Context, r PauseRequest) (*Sessions, error) {
	out := &Sessions{}
	return out, c.do(ctx, exchange{method: http.MethodPost, path: []string{"v1", "resume"}, in: r, out: out})
}

// Sessions tells what is paused.
func (c *Client) Sessions(ctx context.Context) (*Sessions, error) {
	out := &Sessions{}
	return out, c.do(ctx, exchange{method: http.MethodGet, path: []string{"v1", "sessions"}, out: out})
}

// Definitions lists the pinned tools, or only those that wait for a person.
func (c *Client) Definitions(ctx context.Context, heldOnly bool) (*Definitions, error) {
	q := url.Values{}
	if heldOnly {
		q.Set("held", "true")
	}
	out := &Definitions{}
	return out, c.do(ctx, exchange{method: http.MethodGet, path: []string{"v1", "definitions"}, query: q, out: out})
}

// Accept says yes to a changed definition, the one that was seen.
func (c *Client) Accept(ctx context.Context, r AcceptRequest) (*Definition, error) {
	out := &Definition{}
	return out, c.do(ctx, exchange{method: http.MethodPost, path: []string{"v1", "definitions", "accept"}, in: r, out: out})
}

// Explain asks what the policy says of a call, without making it.
func (c *Client) Explain(ctx context.Context, r ExplainRequest) (*Explanation, error) {
	out := &Explanation{}
	return out, c.do(ctx, exchange{method: http.MethodPost, path: []string{"v1", "policy", "explain"}, in: r, out: out})
}

// AddKey makes a credential; its secret is in the answer and nowhere else.
func (c *Client) AddKey(ctx context.Context, r KeyRequest) (*NewKey, error) {
	out := &NewKey{}
	return out, c.do(ctx, exchange{method: http.MethodPost, path: []string{"v1", "keys"}, in: r, out: out})
}

// Keys lists credentials.
func (c *Client) Keys(ctx context.Context) (*Keys, error) {
	out := &Keys{}
	return out, c.do(ctx, exchange{method: http.MethodGet, path: []string{"v1", "keys"}, out: out})
}

// RevokeKey ends a credential at once.
func (c *Client) RevokeKey(ctx context.Context, id string) error {
	return c.do(ctx, exchange{method: http.MethodDelete, path: []string{"v1", "keys", id}})
}

// Audit reads the record behind entry after, from its beginning with -1, at most
// limit entries.
func (c *Client) Audit(ctx context.Context, after int64, limit int) (*AuditPage, error) {
	q := url.Values{}
	if after >= 0 {
		q.Set("after", strconv.FormatInt(after, 10))
	}
	if limit > 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	out := &AuditPage{}
	return out, c.do(ctx, exchange{method: http.MethodGet, path: []string{"v1", "audit"}, query: q, out: out})
}

// Proof reads the proof that an entry is in the record.
func (c *Client) Proof(ctx context.Context, seq int64) (*Proof, error) {
	out := &Proof{}
	return out, c.do(ctx, exchange{method: http.MethodGet, path: []string{"v1", "audit", "proof", strconv.FormatInt(seq, 10)}, out: out})
}

// Checkpoint reads a signed head of the record, made now.
func (c *Client) Checkpoint(ctx context.Context) ([]byte, error) {
	resp, err := c.send(ctx, exchange{method: http.MethodGet, path: []string{"v1", "audit", "checkpoint"}}, "text/plain")
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(io.LimitReader(resp.Body, 1<<20))
}

// Export writes the whole record to w in the format of docs/ledger.md. An error
// means that what was written is not whole.
func (c *Client) Export(ctx context.Context, w io.Writer) error {
	resp, err := c.send(ctx, exchange{method: http.MethodPost, path: []string{"v1", "audit", "export"}, in: ExportRequest{}}, "application/x-ndjson")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(w, resp.Body); err != nil {
		return fmt.Errorf("api: the export broke off: %w", err)
	}
	return nil
}
