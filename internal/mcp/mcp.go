// Package mcp speaks the Model Context Protocol in bytes.
//
// It owns the envelope of a JSON-RPC message, framing (newline-delimited over
// stdio, streamable HTTP), both eras of the protocol towards agents and towards
// servers, identifiers and progress tokens on the wire, cancellation, streams
// and their resumption, header checks, and the era an exchange runs in.
//
// It does not own what a message means for a person or a policy: it knows no
// approval, no verdict, no name of a tool. Package gateway stands in the middle:
// it implements [Server] towards agents and drives an [Upstream] towards servers.
//
// Only the envelope is decoded. Params, arguments, results, errors and _meta
// stay the bytes that arrived, so an unknown field, an unknown method or a
// number that a double cannot hold passes through untouched. What must change
// on the way (an id, a progress token) is changed by splicing bytes.
//
// Eras. Revisions 2025-03-26, 2025-06-18 and 2025-11-25 are [Legacy]: a session
// starts with initialize and both sides may send requests. Revision 2026-07-28
// is [Modern]: each request stands alone, says its version and capabilities in
// _meta, and the server asks for input by ending the request with
// input_required. One endpoint serves both, chosen per request; the side towards
// a server chooses for itself.
package mcp

import (
	"context"
	"errors"
)

// Version is a protocol revision, a date.
type Version string

// The revisions this package speaks.
const (
	V20250326 Version = "2025-03-26"
	V20250618 Version = "2025-06-18"
	V20251125 Version = "2025-11-25"
	V20260728 Version = "2026-07-28"

	NewestLegacy = V20251125
	NewestModern = V20260728
)

// Versions lists what is supported, newest first.
var Versions = []Version{V20260728, V20251125, V20250618, V20250326}

// Era is one of the two ways of talking. The zero value is Legacy.
type Era uint8

// The eras.
const (
	Legacy Era = iota
	Modern
)

// Era returns the era a revision belongs to.
func (v Version) Era() Era {
	if v >= V20260728 {
		return Modern
	}
	return Legacy
}

// Supported reports whether v is one of [Versions].
func (v Version) Supported() bool {
	for _, s := range Versions {
		if s == v {
			return true
		}
	}
	return false
}

// JSON-RPC and MCP error codes used on the wire.
const (
	CodeParse             = -32700
	CodeInvalidRequest    = -32600
	CodeMethodNotFound    = -32601
	CodeInvalidParams     = -32602
	CodeInternal          = -32603
	CodeHeaderMismatch    = -32020 // modern: a header says something else than the body
	CodeMissingCapability = -32021 // modern: data.requiredCapabilities
	CodeVersion           = -32022 // modern: data.supported, data.requested
)

// Error is a JSON-RPC error as it goes over the wire. Raw, when set, is the
// whole error object exactly as a server sent it and wins over the other fields.
type Error struct {
	Code    int
	Message string
	Data    []byte // JSON, or nil
	Raw     []byte // JSON object, or nil
	Status  int    // HTTP status where the transport has one; 0 means the default for the code
}

func (e *Error) Error() string { return e.Message }

// Kind says what a [Message] is.
type Kind uint8

// Kinds of messages. The zero value is no message.
const (
	NoMessage Kind = iota
	Request
	Notification
	Response // result or error
)

// Message is one JSON-RPC message. All fields alias Raw.
type Message struct {
	Raw    []byte // the whole message
	ID     []byte // JSON string or integer; nil on a notification
	Method string
	Params []byte // JSON object, nil when absent
	Result []byte // nil when absent
	Error  []byte // nil when absent
}

// Kind classifies the message.
func (m Message) Kind() Kind {
	switch {
	case m.Method != "" && m.ID != nil:
		return Request
	case m.Method != "":
		return Notification
	case m.ID != nil || m.Error != nil:
		return Response
	}
	return NoMessage
}

// Client is the agent's side of an exchange, as far as the protocol knows it.
type Client struct {
	// Principal is the authenticated caller, opaque here. Sessions and streams
	// are bound to it: another principal's session id is unknown.
	Principal string
	// Session is the id this side minted at initialize (legacy HTTP), a fixed
	// id per connection over stdio, and empty for a modern request over HTTP.
	Session string
	// Server is the path element behind /mcp/, empty for the merged endpoint.
	Server string
	// Version is the negotiated or stated revision.
	Version Version
	// Info and Capabilities are the client's clientInfo and capabilities as sent
	// (JSON objects; nil when it sent none). They may tune time-outs, never policy.
	Info         []byte
	Capabilities []byte
	// Transport is "http" or "stdio".
	Transport string
}

// Exchange is one request of an agent that is being answered. Exactly one of
// Reply and Fail ends it; later calls return [ErrEnded].
type Exchange interface {
	Client() Client
	// Request is the message as received. The params are whole and untouched.
	Request() Message
	// Notify sends a notification on the stream that belongs to this request and
	// opens that stream when needed. params is a JSON object or nil.
	Notify(ctx context.Context, method string, params []byte) error
	// Ask sends a request to the agent on this request's stream and waits for its
	// response, which may carry an error. Modern clients cannot be asked: [ErrNoAsk].
	Ask(ctx context.Context, method string, params []byte) (Message, error)
	// Reply ends the exchange with a result, a JSON value sent byte for byte. A nil
	// error says that it is on its way; [ErrKept] that nobody reads now and it is
	// kept for an agent that resumes the stream; any other that nobody will get it.
	Reply(result []byte) error
	// Fail ends the exchange with an error. Its own error is that of Reply.
	Fail(e *Error) error
}

// Causes of a cancelled request context, for [context.Cause].
var (
	ErrCancelled    = errors.New("the agent cancelled the request")            // notifications/cancelled
	ErrDisconnected = errors.New("the agent closed the stream of the request") // a cancel in the modern era over HTTP, not in the legacy era
	ErrEnded        = errors.New("the exchange has ended")
	ErrKept         = errors.New("nobody reads the stream of the request; the answer is kept for whoever resumes it")
	ErrNoAsk        = errors.New("this client cannot be asked on this request")
	ErrNoSession    = errors.New("no such session")
	ErrShutdown     = errors.New("ayegate is shutting down")
)

// Pusher sends messages to one agent outside of any exchange: on the standing
// stream of a legacy session (GET) or over stdio.
type Pusher interface {
	Notify(ctx context.Context, method string, params []byte) error
	Ask(ctx context.Context, method string, params []byte) (Message, error)
}

// Server answers agents. Package gateway implements it; this package calls it,
// concurrently, once the envelope, the headers, the version and the session of a
// message have been checked.
type Server interface {
	// Initialize answers a legacy initialize request of a new session; c.Version
	// holds the revision that was negotiated, push stays usable until Close.
	Initialize(ctx context.Context, c Client, params []byte, push Pusher) (result []byte, err *Error)
	// Serve answers any other request (server/discover and modern requests
	// included) by ending x. ctx is cancelled when the agent cancels or, in the
	// modern era over HTTP, closes the stream; its cause is one of the errors above.
	// A legacy disconnect does not cancel ctx. An exchange that is not ended when
	// Serve returns, or panics, is failed with CodeInternal.
	Serve(ctx context.Context, x Exchange)
	// Notification takes a notification of an agent other than cancelled, progress
	// of an asked request included. The agent is not answered, and over stdio not
	// read from, until it returns.
	Notification(ctx context.Context, c Client, m Message)
	// Close says that a legacy session or a stdio connection is over.
	Close(c Client)
}

// Answers receives what a server sends while it works on one call.
type Answers interface {
	// Notification takes a notification that belongs to the call (its progress
	// carries the agent's own token again).
	Notification(m Message)
	// Ask takes a request that the server makes because of the call (sampling,
	// elicitation, roots) and returns the agent's result or error.
	Ask(ctx context.Context, m Message) (result []byte, err *Error)
}

// Upstream is a connection to one MCP server. It is safe for concurrent use.
type Upstream interface {
	// About describes the server as it introduced itself.
	About() About
	// Call sends a request and waits for its response. params is a JSON object
	// sent byte for byte except for _meta.progressToken, which is remapped, and the
	// members of _meta that the era itself demands. When ctx ends first, the server
	// is told (cancelled notification, or closing of the stream) and Sent says
	// whether the request may have reached it.
	Call(ctx context.Context, method string, params []byte, to Answers) (Message, error)
	// Notify sends a notification.
	Notify(ctx context.Context, method string, params []byte) error
	// Done is closed when the connection is over; Err says why.
	Done() <-chan struct{}
	Err() error
	Close() error
}

// About is what a server said of itself.
type About struct {
	Version      Version
	Capabilities []byte // JSON object
	Info         []byte // serverInfo
	Instructions string
	Raw          []byte // the whole initialize or discover result
}

// CallError says that no response to a call arrived.
type CallError struct {
	// Sent tells whether the request may have reached the server. False is a
	// promise: nothing was written.
	Sent bool
	Err  error
}

func (e *CallError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *CallError) Unwrap() error { return e.Err }
