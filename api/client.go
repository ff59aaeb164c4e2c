package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
)

// Client speaks to one ayegate server with one credential, an agent's or a
// person's. Which methods it may use is the server's decision. It is safe for
// concurrent use.
//
// A method returns a [*Problem] when the server refused, so that
// errors.Is(err, api.Stale) asks why; every other error means that the server
// was not reached or did not speak this protocol, and whether a change took
// effect is then unknown: ask again.
type Client struct {
	base       *url.URL
	credential string
	http       *http.Client
}

// ErrAnswer means that something answered that does not speak this protocol.
var ErrAnswer = errors.New("api: not an answer of ayegate")

// maxAnswer bounds an answer that is read into memory.
const maxAnswer = 64 << 20

// NewClient makes a client of the server at base ("http://127.0.0.1:7777"). The
// credential is sent in the Authorization header of every request and nowhere
// else; redirects are not followed, so it never travels to another host. The
// transport is http.DefaultTransport when nil.
func NewClient(base, credential string, transport http.RoundTripper) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, fmt.Errorf("api: %q is not the address of a server: want http://host:port or https://host", base)
	}
	if strings.ContainsAny(credential, " \r\n\t") {
		return nil, errors.New("api: the credential holds white space")
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	return &Client{base: u, credential: credential, http: &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// exchange is one request and what its answer is read into.
type exchange struct {
	method string
	path   []string // joined by "/", each escaped
	query  url.Values
	in     any // JSON body; nil for none
	out    any // nil to drop the answer
}

func (c *Client) do(ctx context.Context, x exchange) error {
	resp, err := c.send(ctx, x, "application/json")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if x.out == nil {
		return nil
	}
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind != "application/json" {
		return fmt.Errorf("%w: content type %q", ErrAnswer, kind)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(x.out); err != nil {
		return fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	return nil
}

// send returns an answer with a 2xx status, whose body the caller closes.
func (c *Client) send(ctx context.Context, x exchange, accept string) (*http.Response, error) {
	u := *c.base
	u.RawPath = u.EscapedPath()
	for _, p := range x.path {
		u.Path += "/" + p
		u.RawPath += "/" + url.PathEscape(p)
	}
	u.RawQuery = x.query.Encode()
	var body io.Reader
	if x.in != nil {
		b, err := encode(x.in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, x.method, u.String(), body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", accept+", application/problem+json")
	if x.in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.credential != "" {
		req.Header.Set("Authorization", "Bearer "+c.credential)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 != 2 {
		defer resp.Body.Close()
		return nil, problemOf(resp)
	}
	return resp, nil
}

// encode writes a body without the escapes that encoding/json adds for HTML, so
// that raw arguments go out as they came in.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("api: write the request: %w", err)
	}
	return b.Bytes(), nil
}

func problemOf(resp *http.Response) error {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	p := &Problem{}
	if kind != "application/problem+json" || json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(p) != nil || p.Code == "" {
		return fmt.Errorf("%w: HTTP %s", ErrAnswer, resp.Status)
	}
	return p
}
