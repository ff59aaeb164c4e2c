package mcp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"time"
)

// V20241105 is accepted from a server that speaks nothing newer: its messages
// are those of 2025-03-26. It is never offered to an agent.
const V20241105 Version = "2024-11-05"

// Bounds of a connection to a server where its [Target] leaves them zero.
const (
	DefaultMaxMessage = 16 << 20         // bytes of one message of a server
	DefaultCallLimit  = 10 * time.Minute // one call, whatever the server reports meanwhile
	DefaultProbe      = 2 * time.Second  // silence after server/discover over stdio
	DefaultGrace      = 3 * time.Second  // each step of ending a process or a session
)

// Why a connection or a call ended, for [errors.Is].
var (
	// ErrUpstreamClosed says that Close was called.
	ErrUpstreamClosed = errors.New("the connection to the server was closed")
	// ErrCallLimit says that [Target.CallLimit] passed before the response came.
	ErrCallLimit = errors.New("the server did not answer within the time limit of a call")
	// ErrTooLarge says that a message of the server exceeds [Target.MaxMessage].
	ErrTooLarge = errors.New("the server's answer exceeds the size limit")
	// ErrUnreadable says that the server answered with something that is no
	// JSON-RPC response to the call.
	ErrUnreadable = errors.New("the server's answer cannot be read")
)

// Target says how to reach one MCP server and how to introduce ourselves.
// Exactly one of Command and URL is set.
type Target struct {
	Name string // in logs and errors

	// Command starts the server as a process and talks over its stdin and stdout.
	Command *Command

	// URL is the endpoint of a server over streamable HTTP: http or https, without
	// user information or fragment.
	URL string
	// Header is sent with every request to URL. It is the only source of
	// credentials: nothing of an agent's own headers ever reaches a server.
	Header http.Header
	// Proxy chooses a proxy for a request; nil means none, whatever the environment says.
	Proxy func(*http.Request) (*url.URL, error)
	// TLS is the client's side of https; nil means the system's roots.
	TLS *tls.Config
	// DialContext opens connections; nil means the network. A caller who wants
	// address ranges kept out puts the check here.
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error)

	// Info and Capabilities introduce us: clientInfo and client capabilities, JSON
	// objects. A modern request that carries its own keeps them.
	Info         []byte
	Capabilities []byte
	// Version pins the revision. Empty tries the modern era first and then asks for
	// the newest legacy revision.
	Version Version
	// Stray takes what the server sends outside of any call, in order of arrival
	// and possibly before Dial has returned. Nil drops notifications and refuses requests.
	Stray Answers
	// Schema returns a tool's inputSchema, from which the Mcp-Param-* headers of the
	// modern era follow. Nil, or a nil schema, sends none.
	Schema func(tool string) []byte

	MaxMessage int           // bytes of one message; 0 means DefaultMaxMessage
	CallLimit  time.Duration // absolute, progress does not extend it; 0 means DefaultCallLimit
	Probe      time.Duration // 0 means DefaultProbe
	Grace      time.Duration // 0 means DefaultGrace
	Log        *slog.Logger  // nil discards
}

// Dial connects to a server and negotiates era and revision. The connection
// outlives ctx, which bounds only the opening.
func Dial(ctx context.Context, t Target) (Upstream, error) {
	t, err := t.checked()
	if err != nil {
		return nil, fmt.Errorf("server %s: %w", t.Name, err)
	}
	var u Upstream
	if t.Command != nil {
		u, err = openChild(ctx, t)
	} else {
		u, err = openRemote(ctx, t)
	}
	if err != nil {
		return nil, fmt.Errorf("server %s: %w", t.Name, err)
	}
	return u, nil
}

// checked fills in defaults and refuses a target that says nothing or two things.
func (t Target) checked() (Target, error) {
	if (t.Command == nil) == (t.URL == "") {
		return t, errors.New("exactly one of a command and a URL is needed")
	}
	if t.Version != "" && !t.Version.Supported() && t.Version != V20241105 {
		return t, fmt.Errorf("revision %q is not supported", string(t.Version))
	}
	if t.Info == nil {
		t.Info = []byte(`{"name":"ayegate","version":"0"}`)
	}
	if t.Capabilities == nil {
		t.Capabilities = []byte(`{}`)
	}
	if t.Log == nil {
		t.Log = slog.New(slog.DiscardHandler)
	}
	t.Log = t.Log.With("server", t.Name)
	t.MaxMessage = orDefault(t.MaxMessage, DefaultMaxMessage)
	t.CallLimit = orDefault(t.CallLimit, DefaultCallLimit)
	t.Probe = orDefault(t.Probe, DefaultProbe)
	t.Grace = orDefault(t.Grace, DefaultGrace)
	return t, nil
}

func orDefault[T int | time.Duration](v, otherwise T) T {
	if v <= 0 {
		return otherwise
	}
	return v
}

// within bounds the time of a call, whatever the server reports meanwhile
// (MCP-16). A subscription is meant to stay open and is bounded by ctx alone.
func (t *Target) within(ctx context.Context, method string) (context.Context, context.CancelFunc) {
	if method == methodListen {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, t.CallLimit, ErrCallLimit)
}

// unsent is the error of a call of which nothing was written.
func unsent(err error) error { return &CallError{Sent: false, Err: err} }

// sent is the error of a call that may have reached the server.
func sent(err error) error { return &CallError{Sent: true, Err: err} }
