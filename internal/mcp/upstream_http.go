package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ayegate/ayegate/internal/strictjson"
)

const (
	typeJSON   = "application/json"
	typeEvents = "text/event-stream"

	maxRedirects   = 3
	maxErrorBody   = 64 << 10
	maxSessionID   = 1024
	idleConns      = 256 // per server; the default of 2 would open a connection for most calls
	idleTimeout    = 90 * time.Second
	dialTimeout    = 10 * time.Second
	maxHeaderBytes = 64 << 10
)

// StatusError is an answer over HTTP that is no JSON-RPC response. With a status
// of 4xx the server says that it did not take the request.
type StatusError struct {
	Status int
	Text   string // the start of a plain-text body, for logs; the server's own words
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("the server answered with HTTP status %d %s", e.Status, http.StatusText(e.Status))
}

// Headers that this side sets, or that would change what a request means to the
// transport: with an idempotency key net/http sends a POST again by itself.
var ownHeaders = []string{
	"Accept", "Accept-Encoding", "Content-Type", "Content-Length", "Content-Encoding", "Transfer-Encoding",
	"Connection", "Host", "Te", "Trailer", "Upgrade", "Idempotency-Key", "X-Idempotency-Key",
	HeaderVersion, HeaderSession, HeaderMethod, HeaderName, HeaderLastEvent,
}

// baseHeader is what every request carries. It holds what the target says and
// nothing else: no agent's header can get here (MCP-19).
func (t *Target) baseHeader() (http.Header, error) {
	h := make(http.Header, len(t.Header)+6)
	for name, values := range t.Header {
		name = http.CanonicalHeaderKey(name)
		if slices.Contains(ownHeaders, name) || strings.HasPrefix(name, HeaderParamPrefix) || !isToken(name) {
			return nil, fmt.Errorf("header %q cannot be configured", name)
		}
		for _, v := range values {
			if strings.ContainsAny(v, "\r\n\x00") {
				return nil, fmt.Errorf("the value of header %s has a line break", name)
			}
		}
		h[name] = slices.Clone(values)
	}
	h.Set("Content-Type", typeJSON)
	h.Set("Accept", typeJSON+", "+typeEvents)
	h.Set("Accept-Encoding", "identity") // and so the transport asks for no compression either
	if h["User-Agent"] == nil {
		h.Set("User-Agent", "ayegate")
	}
	return h, nil
}

// endpoint reads the URL of a server.
func (t *Target) endpoint() (*url.URL, error) {
	u, err := url.Parse(t.URL)
	switch {
	case err != nil:
		return nil, errors.New("the URL cannot be read") // the parser's words would repeat a secret in it
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Opaque != "":
		return nil, errors.New("the URL must be http or https, with a host")
	case u.User != nil:
		return nil, errors.New("the URL must not hold credentials: put them into a header")
	case u.Fragment != "":
		return nil, errors.New("the URL must not have a fragment")
	}
	return u, nil
}

// links are the network connections to one server. The transport closes idle
// ones only; at the end none may stay.
type links struct {
	dial func(ctx context.Context, network, addr string) (net.Conn, error)

	mu     sync.Mutex
	open   map[*link]struct{}
	closed bool
}

type link struct {
	net.Conn
	all *links
}

func (l *links) dialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := l.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		_ = c.Close()
		return nil, ErrUpstreamClosed
	}
	k := &link{Conn: c, all: l}
	l.open[k] = struct{}{}
	return k, nil
}

func (k *link) Close() error {
	k.all.mu.Lock()
	delete(k.all.open, k)
	k.all.mu.Unlock()
	return k.Conn.Close()
}

func (l *links) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for k := range l.open {
		_ = k.Conn.Close()
	}
}

// connect returns connections of our own. The environment's proxies are not
// asked, and redirects are not the transport's business.
func (t *Target) connect() (*links, *http.Transport) {
	l := &links{dial: t.DialContext, open: make(map[*link]struct{})}
	if l.dial == nil {
		l.dial = (&net.Dialer{Timeout: dialTimeout}).DialContext
	}
	return l, &http.Transport{
		Proxy:                  t.Proxy,
		DialContext:            l.dialContext,
		TLSClientConfig:        t.TLS,
		TLSHandshakeTimeout:    dialTimeout,
		ForceAttemptHTTP2:      true,
		MaxIdleConnsPerHost:    idleConns,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
	}
}

// post sends one message. taken tells whether the transport had a connection to
// write it to: without one nothing can have been written.
func (r *Remote) post(ctx context.Context, h http.Header, message []byte) (resp *http.Response, taken bool, err error) {
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	at := r.url.Load()
	for range maxRedirects + 1 {
		req := r.request(ctx, http.MethodPost, at, h)
		req.ContentLength = int64(len(message))
		// The transport takes a new body only when it wrote nothing of the first one
		// to a connection that turned out to be dead.
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(message)), nil }
		req.Body, _ = req.GetBody()
		resp, err = r.transport.RoundTrip(req)
		if err != nil {
			return nil, connected.Load(), err
		}
		next, err := redirected(at, resp)
		if err != nil {
			return nil, true, err
		}
		if next == nil {
			return resp, true, checkEncoding(resp)
		}
		at = next
		r.url.Store(at)
	}
	return nil, true, errors.New("the server redirects without end")
}

// get opens a standing stream, or resumes one after the event named last.
func (r *Remote) get(ctx context.Context, last string) (*http.Response, error) {
	h := r.header.Clone()
	h.Del("Content-Type")
	h.Set("Accept", typeEvents)
	if last != "" {
		h.Set(HeaderLastEvent, last)
	}
	resp, err := r.transport.RoundTrip(r.request(ctx, http.MethodGet, r.url.Load(), h))
	if err != nil {
		return nil, err
	}
	return resp, checkEncoding(resp)
}

// request makes a request without the parsing that http.NewRequest does anew each time.
func (r *Remote) request(ctx context.Context, method string, at *url.URL, h http.Header) *http.Request {
	req := &http.Request{
		Method: method, URL: at, Host: at.Host, Header: h,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	return req.WithContext(ctx)
}

// redirected returns where a redirect within the same origin leads, nil when the
// response is none. Any other redirect is refused: it would carry the message
// and our credentials to somebody else, or drop the message on the way.
func redirected(at *url.URL, resp *http.Response) (*url.URL, error) {
	switch resp.StatusCode {
	case http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther:
		resp.Body.Close()
		return nil, fmt.Errorf("redirect refused: %w", &StatusError{Status: resp.StatusCode})
	default:
		return nil, nil
	}
	resp.Body.Close()
	next, err := at.Parse(resp.Header.Get("Location"))
	if err != nil || next.Scheme != at.Scheme || next.Host != at.Host || next.User != nil {
		return nil, fmt.Errorf("redirect to another origin refused: %w", &StatusError{Status: resp.StatusCode})
	}
	return next, nil
}

func checkEncoding(resp *http.Response) error {
	if e := resp.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		resp.Body.Close()
		return fmt.Errorf("%w: it is compressed, which nobody asked for", ErrUnreadable)
	}
	return nil
}

// shut ends a response whose body nobody wants, keeping the connection if the
// rest is short.
func shut(resp *http.Response) {
	_, _ = io.CopyN(io.Discard, resp.Body, 4<<10)
	_ = resp.Body.Close()
}

// contentType returns the media type of a response without its parameters.
func contentType(resp *http.Response) string {
	v := resp.Header.Get("Content-Type")
	if v == typeJSON || v == typeEvents {
		return v
	}
	kind, _, err := mime.ParseMediaType(v)
	if err != nil {
		return ""
	}
	return kind
}

// readAll reads a body of at most max bytes. What a server says of its length is
// not yet a reason to set memory aside.
func readAll(resp *http.Response, max int) ([]byte, error) {
	if resp.ContentLength > int64(max) {
		return nil, ErrTooLarge
	}
	var b bytes.Buffer
	b.Grow(int(min(resp.ContentLength, 64<<10)) + bytes.MinRead + 1)
	_, err := b.ReadFrom(io.LimitReader(resp.Body, int64(max)+1))
	if err == nil && b.Len() > max {
		err = ErrTooLarge
	}
	return b.Bytes(), err
}

// statusError reads the response with a status other than 2xx. When its body is a
// JSON-RPC error, that is the answer to the request: HTTP says to which.
func statusError(resp *http.Response) (Message, error) {
	text, err := readAll(resp, maxErrorBody)
	if err != nil {
		text = nil
	}
	e := &StatusError{Status: resp.StatusCode}
	if contentType(resp) == typeJSON {
		m, err := Parse(text, strictjson.Limits{Bytes: maxErrorBody, Lax: true})
		if err == nil && m.Kind() == Response && m.Error != nil {
			return m, e
		}
		if v, ok := looseError(text); ok {
			return Message{Raw: text, Error: v}, e
		}
	}
	e.Text = string(bytes.ToValidUTF8(text[:min(len(text), 200)], nil))
	return Message{}, e
}

// looseError finds the error in a response that says "id":null, as JSON-RPC
// wants it when the request could not be read.
func looseError(text []byte) ([]byte, bool) {
	if strictjson.Check(text, strictjson.Limits{Bytes: maxErrorBody, Lax: true}) != nil {
		return nil, false
	}
	id, _ := strictjson.Get(text, "id")
	v := object(text, "error")
	return v, v != nil && string(id) == "null"
}
