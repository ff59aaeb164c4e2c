package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// pipe is an agent's end of a connection over stdio.
type pipe struct {
	t      *testing.T
	server *echoServer
	in     *io.PipeWriter
	out    *Lines
	reader *io.PipeReader
	ended  chan error
}

func newPipe(t *testing.T) *pipe {
	t.Helper()
	s := newEchoServer()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	p := &pipe{t: t, server: s, in: inW, out: NewLines(outR, 1<<20), reader: outR, ended: make(chan error, 1)}
	go func() {
		p.ended <- ServeStdio(t.Context(), inR, outW, s, Client{Principal: "agent-1", Session: "stdio-1"})
		_ = outW.Close()
	}()
	t.Cleanup(func() {
		_ = inW.Close()
		_ = outR.Close()
		<-p.ended
	})
	return p
}

func (p *pipe) send(lines ...string) {
	p.t.Helper()
	for _, l := range lines {
		if _, err := io.WriteString(p.in, l+"\n"); err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p *pipe) next() string {
	p.t.Helper()
	l, err := p.out.Next()
	if err != nil {
		p.t.Fatal(err)
	}
	return string(l)
}

// end closes the agent's end and returns what ServeStdio returned.
func (p *pipe) end() error {
	_ = p.in.Close()
	err := <-p.ended
	p.ended <- err
	return err
}

func TestStdioLegacy(t *testing.T) {
	p := newPipe(t)
	p.send(fmt.Sprintf(initializeBody, "2025-06-18"))
	if got := p.next(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18"`) {
		t.Fatalf("initialize: %s", got)
	}
	p.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	if got := <-p.server.noted; got != "notifications/initialized" {
		t.Errorf("noted %q", got)
	}
	p.send(call(1, "echo", `{"n":9007199254740993,"x":1.10}`))
	if got := p.next(); !strings.Contains(got, `{"n":9007199254740993,"x":1.10}`) {
		t.Errorf("the arguments came back as %s", got)
	}
	p.send(call(2, "progress", `{}`))
	for range 3 {
		if got := p.next(); !strings.Contains(got, `"progressToken":2`) {
			t.Errorf("progress: %s", got)
		}
	}
	if got := p.next(); !strings.Contains(got, `"id":2`) {
		t.Errorf("result: %s", got)
	}
	p.send(call(3, "ask", `{}`))
	if got := p.next(); !strings.Contains(got, `"id":"aye-1","method":"elicitation/create"`) {
		t.Fatalf("ask: %s", got)
	}
	// An answer may hold what no request may: it is on its way to a server.
	p.send(`{"jsonrpc":"2.0","id":"aye-1","result":{"a":1,"a":2}}`, `{"jsonrpc":"2.0","id":"aye-1","result":"second"}`)
	if got := p.next(); !strings.Contains(got, `\"a\":1,\"a\":2`) {
		t.Errorf("answer: %s", got)
	}
	push := <-p.server.pushers
	if err := push.Notify(t.Context(), "notifications/tools/list_changed", nil); err != nil {
		t.Error(err)
	}
	if got := p.next(); got != `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` {
		t.Errorf("push: %s", got)
	}
	if err := p.end(); err != nil {
		t.Errorf("end of input: %v", err)
	}
	if c := <-p.server.closed; c.Session != "stdio-1" || c.Version != V20250618 || c.Transport != "stdio" {
		t.Errorf("closed %+v", c)
	}
	if _, err := push.Ask(t.Context(), "roots/list", nil); !errors.Is(err, ErrNoSession) {
		t.Errorf("asking after the end: %v", err)
	}
}

func TestStdioModern(t *testing.T) {
	p := newPipe(t)
	body, _ := modern(1, "server/discover", "", "")
	p.send(body)
	if got := p.next(); !strings.Contains(got, `"supportedVersions"`) {
		t.Fatalf("discover: %s", got)
	}
	body, _ = modern(2, "tools/call", "echo", `"name":"echo","arguments":{"a":1}`)
	p.send(body)
	if got := p.next(); !strings.Contains(got, `"structuredContent":{"a":1}`) {
		t.Errorf("call: %s", got)
	}
	body, _ = modern(3, "tools/call", "ask", `"name":"ask"`)
	p.send(body)
	if got := p.next(); !strings.Contains(got, ErrNoAsk.Error()) {
		t.Errorf("a modern client was asked: %s", got)
	}
	p.send(strings.ReplaceAll(body, "2026-07-28", "2027-01-01"))
	if got := p.next(); !strings.Contains(got, `-32022`) || !strings.Contains(got, `"supported":["2026-07-28","2025-11-25"`) || !strings.Contains(got, `"requested":"2027-01-01"`) {
		t.Errorf("version: %s", got)
	}
	body, _ = modern(4, "ping", "", "")
	p.send(body)
	if got := p.next(); !strings.Contains(got, `-32601`) {
		t.Errorf("ping: %s", got)
	}
	p.send(`{"jsonrpc":"2.0","id":5,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`)
	if got := p.next(); !strings.Contains(got, `-32602`) || !strings.Contains(got, "clientCapabilities") {
		t.Errorf("capabilities: %s", got)
	}
}

// A probe that sends nothing, or nothing well-formed, leaves the server untouched.
func TestStdioNoSideEffects(t *testing.T) {
	p := newPipe(t)
	p.send(`not json`, `[]`, strings.Repeat("a", maxStdioMessage+1), call(1, "echo", `{}`), `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"echo"}}`)
	for _, want := range []string{"-32700", "-32600", "-32600", "-32600", "-32600"} {
		if got := p.next(); !strings.Contains(got, want) || !strings.Contains(got, "nothing ran") {
			t.Errorf("want %s, got %s", want, got)
		}
	}
	if err := p.end(); err != nil {
		t.Error(err)
	}
	if len(p.server.calls()) != 0 || len(p.server.closed) != 0 {
		t.Error("the server heard of it")
	}
}

func TestStdioCancel(t *testing.T) {
	p := newPipe(t)
	p.send(fmt.Sprintf(initializeBody, "2025-11-25"))
	p.next()
	p.send(call(1, "hold", `{}`), call(1, "echo", `{}`))
	if got := p.next(); !strings.Contains(got, "-32600") || !strings.Contains(got, "still being served") {
		t.Errorf("a duplicate id in flight: %s", got)
	}
	<-p.server.entered
	p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"1"}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"stop"}}`)
	if cause := <-p.server.causes; !errors.Is(cause, ErrCancelled) {
		t.Errorf("cause is %v", cause)
	}
	// No response to what was cancelled; a cancellation after the response is nothing.
	p.send(call(2, "echo", `{}`))
	if got := p.next(); !strings.Contains(got, `"id":2`) {
		t.Errorf("got %s", got)
	}
	p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`, call(2, "echo", `{}`))
	if got := p.next(); !strings.Contains(got, `"id":2`) {
		t.Errorf("got %s", got)
	}
	body, _ := modern(3, "tools/call", "hold", `"name":"hold"`)
	p.send(body)
	<-p.server.entered
	if err := p.end(); err != nil {
		t.Error(err)
	}
	if cause := <-p.server.causes; !errors.Is(cause, ErrDisconnected) {
		t.Errorf("cause is %v", cause)
	}
}

// MCP-24: one agent cannot have more than so many requests served at a time, and
// the cancellation of one still gets through.
func TestStdioBounded(t *testing.T) {
	p := newPipe(t)
	p.send(fmt.Sprintf(initializeBody, "2025-11-25"))
	p.next()
	for i := range maxStdioInflight {
		p.send(call(i, "hold", `{}`))
		<-p.server.entered
	}
	p.send(call(1000, "echo", `{}`))
	if got := p.next(); !strings.Contains(got, `"id":1000,"error"`) || !strings.Contains(got, "nothing ran") {
		t.Errorf("got %s", got)
	}
	p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0}}`)
	<-p.server.causes
	for {
		p.send(call(1001, "echo", `{}`))
		if got := p.next(); strings.Contains(got, `"id":1001,"result"`) {
			return
		}
	}
}

func TestStdioAgentStopsReading(t *testing.T) {
	p := newPipe(t)
	p.send(fmt.Sprintf(initializeBody, "2025-11-25"))
	p.next()
	_ = p.reader.Close()
	p.send(call(1, "echo", `{}`))
	err := <-p.ended
	p.ended <- err
	if !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("ended with %v", err)
	}
}

func TestStdioContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	in, out := io.Pipe()
	s := newEchoServer()
	ended := make(chan error, 1)
	go func() { ended <- ServeStdio(ctx, in, io.Discard, s, Client{}) }()
	if _, err := io.WriteString(out, fmt.Sprintf(initializeBody, "2025-11-25")+"\n"+call(1, "hold", "{}")+"\n"); err != nil {
		t.Fatal(err)
	}
	<-s.entered
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	_ = out.Close()
}

func TestStdioSDKClient(t *testing.T) {
	for _, v := range []string{"", "2025-11-25"} {
		t.Run("version "+v, func(t *testing.T) {
			s := newEchoServer()
			inR, inW := io.Pipe()
			outR, outW := io.Pipe()
			ended := make(chan error, 1)
			go func() { ended <- ServeStdio(t.Context(), inR, outW, s, Client{Session: "stdio"}) }()
			client := sdk.NewClient(&sdk.Implementation{Name: "t", Version: "1"}, &sdk.ClientOptions{
				ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
					return &sdk.ElicitResult{Action: "decline"}, nil
				},
			})
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			conn, err := client.Connect(ctx, &sdk.IOTransport{Reader: outR, Writer: inW}, &sdk.ClientSessionOptions{ProtocolVersion: v})
			if err != nil {
				t.Fatal(err)
			}
			if got, err := conn.CallTool(ctx, &sdk.CallToolParams{Name: "echo", Arguments: map[string]any{"a": "b"}}); err != nil || got.StructuredContent.(map[string]any)["a"] != "b" {
				t.Errorf("call: %+v, %v", got, err)
			}
			if v != "" {
				if got, err := conn.CallTool(ctx, &sdk.CallToolParams{Name: "ask"}); err != nil || !strings.Contains(got.Content[0].(*sdk.TextContent).Text, "decline") {
					t.Errorf("ask: %+v, %v", got, err)
				}
			}
			_ = conn.Close()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// A bug in serving one request is told to its agent and to whoever runs us, and
// ends nothing else.
func TestStdioPanic(t *testing.T) {
	p := newPipe(t)
	p.send(fmt.Sprintf(initializeBody, "2025-11-25"))
	p.next()
	p.send(call(1, "panic", `{}`))
	if got := p.next(); !strings.Contains(got, `"id":1,"error":{"code":-32603`) {
		t.Errorf("got %s", got)
	}
	p.send(call(2, "silent", `{}`))
	if got := p.next(); !strings.Contains(got, `"id":2,"error":{"code":-32603`) {
		t.Errorf("got %s", got)
	}
	p.send(call(3, "twice", `{}`), call(4, "echo", `{}`))
	got := p.next() + p.next()
	if !strings.Contains(got, "first") || !strings.Contains(got, `"id":4`) {
		t.Errorf("got %s", got)
	}
	if err := p.end(); err == nil || !strings.Contains(err.Error(), "a bug in the server") {
		t.Errorf("ended with %v", err)
	}
}
