package gateway

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/mcp"
)

// Agents and servers that are not ours, on both sides of a real endpoint.

type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

type askArgs struct {
	What string `json:"what"`
}

// sdkServer is a server of the Go SDK: legacy with sessions, modern without.
func sdkServer(t *testing.T, stateless bool, writes *atomic.Int32) string {
	t.Helper()
	s := sdk.NewServer(&sdk.Implementation{Name: "sdk", Version: "1"}, &sdk.ServerOptions{Instructions: "From the SDK."})
	sdk.AddTool(s, &sdk.Tool{Name: "echo"}, func(_ context.Context, _ *sdk.CallToolRequest, a askArgs) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "echo " + a.What}}}, nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "wipe"}, func(context.Context, *sdk.CallToolRequest, askArgs) (*sdk.CallToolResult, any, error) {
		return nil, nil, errors.New("wiped")
	})
	sdk.AddTool(s, &sdk.Tool{Name: "write"}, func(ctx context.Context, r *sdk.CallToolRequest, a askArgs) (*sdk.CallToolResult, any, error) {
		writes.Add(1)
		if token := r.Params.GetProgressToken(); token != nil && !stateless {
			_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: 1, Message: "writing"})
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "wrote " + a.What}}}, nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "ask"}, func(ctx context.Context, r *sdk.CallToolRequest, _ askArgs) (*sdk.CallToolResult, any, error) {
		if stateless {
			return nil, nil, nil
		}
		got, err := r.Session.Elicit(ctx, &sdk.ElicitParams{Message: "sure?", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{}}})
		if err != nil {
			return nil, nil, err
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "answer " + got.Action}}}, nil, nil
	})
	h := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, &sdk.StreamableHTTPOptions{Stateless: stateless}))
	t.Cleanup(h.Close)
	return h.URL
}

func textOf(t *testing.T, r *sdk.CallToolResult, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, c := range r.Content {
		if text, ok := c.(*sdk.TextContent); ok {
			all = append(all, text.Text)
		}
	}
	return strings.Join(all, "\n")
}

func TestSDK(t *testing.T) {
	for _, version := range []string{"", "2025-11-25", "2025-06-18", "2025-03-26"} {
		for server, stateless := range map[string]bool{"legacy": false, "modern": true} {
			t.Run("agent "+version+", "+server+" server", func(t *testing.T) {
				var writes atomic.Int32
				r := newRig(t, rigConfig{
					servers: map[string]Server{"fs": {Target: mcp.Target{URL: sdkServer(t, stateless, &writes)}}},
					hold:    Hold{Default: 300 * time.Millisecond},
				})
				url := r.wire(t)
				told := make(chan string, 100)
				client := sdk.NewClient(&sdk.Implementation{Name: "t", Version: "1"}, &sdk.ClientOptions{
					ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
						return &sdk.ElicitResult{Action: "accept", Content: map[string]any{}}, nil
					},
					ProgressNotificationHandler: func(_ context.Context, p *sdk.ProgressNotificationClientRequest) { told <- p.Params.Message },
				})
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				s, err := client.Connect(ctx, &sdk.StreamableClientTransport{
					Endpoint: url + "/mcp/fs", HTTPClient: &http.Client{Transport: bearer("bot")},
				}, &sdk.ClientSessionOptions{ProtocolVersion: version})
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = s.Close() }()
				tools, err := s.ListTools(ctx, nil)
				if err != nil || len(tools.Tools) != 6 {
					t.Fatalf("%v, %v", tools, err)
				}
				call := func(name string, args map[string]any) string {
					got, err := s.CallTool(ctx, &sdk.CallToolParams{Name: name, Arguments: args})
					return textOf(t, got, err)
				}
				if got := call("echo", map[string]any{"what": "x"}); got != "echo x" {
					t.Errorf("echo: %q", got)
				}
				if got := call("wipe", nil); !strings.HasPrefix(got, "TOOL_DENIED") {
					t.Errorf("wipe: %q", got)
				}
				if got, err := s.CallTool(ctx, &sdk.CallToolParams{Name: "Wipe"}); err == nil || !strings.Contains(err.Error(), "nothing ran") {
					t.Errorf("POL-07: a tool that is not listed: %v, %v", got, err)
				}
				if got := call("write", map[string]any{"what": "y"}); !strings.HasPrefix(got, "TOOL_BLOCKED_PENDING_APPROVAL") {
					t.Errorf("write: %q", got)
				}
				q := r.pending()
				go func() {
					for r.desk.Waiting(q.ID) == 0 {
						time.Sleep(time.Millisecond)
					}
					r.decide(q, true)
				}()
				if got := call("await_approval", map[string]any{"id": q.Code}); got != "wrote y" {
					t.Errorf("await_approval: %q", got)
				}
				if n := writes.Load(); n != 1 {
					t.Errorf("wrote %d times", n)
				}
				if stateless {
					return
				}
				if got := call("ask", map[string]any{"what": ""}); got != "answer accept" {
					t.Errorf("ask: %q", got)
				}
				held := &sdk.CallToolParams{Name: "write", Arguments: map[string]any{"what": "z"}, Meta: sdk.Meta{}}
				held.SetProgressToken("p")
				go func() {
					for {
						if q := r.pending(); q != nil && r.desk.Waiting(q.ID) > 0 {
							r.decide(q, true)
							return
						}
					}
				}()
				got, err := s.CallTool(ctx, held)
				if text := textOf(t, got, err); text != "wrote z" {
					t.Errorf("held: %q", text)
				}
				if first := <-told; !strings.HasPrefix(first, "https://aye.example/r/") {
					t.Errorf("told %q first", first)
				}
				if second := <-told; second != "writing" {
					t.Errorf("then told %q", second)
				}
			})
		}
	}
}

// A modern agent takes the invitation, comes back, and gets the result: with a
// client that is not ours, which follows input_required by itself.
func TestSDKMultiRoundTrip(t *testing.T) {
	var writes atomic.Int32
	r := newRig(t, rigConfig{
		servers: map[string]Server{"fs": {Target: mcp.Target{URL: sdkServer(t, false, &writes)}}},
		hold:    Hold{Default: 200 * time.Millisecond},
	})
	url := r.wire(t)
	links := make(chan string, 10)
	client := sdk.NewClient(&sdk.Implementation{Name: "t", Version: "1"}, &sdk.ClientOptions{
		Capabilities: &sdk.ClientCapabilities{Elicitation: &sdk.ElicitationCapabilities{URL: &sdk.URLElicitationCapabilities{}}},
		ElicitationHandler: func(_ context.Context, q *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			links <- q.Params.URL
			return &sdk.ElicitResult{Action: "accept"}, nil
		},
	})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	s, err := client.Connect(ctx, &sdk.StreamableClientTransport{
		Endpoint: url + "/mcp/fs", HTTPClient: &http.Client{Transport: bearer("bot")},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	call := func() string {
		got, err := s.CallTool(ctx, &sdk.CallToolParams{Name: "write", Arguments: map[string]any{"what": "y"}})
		return textOf(t, got, err)
	}
	// Nobody decides: after its rounds the client has the blocked result.
	if got := call(); !strings.HasPrefix(got, "TOOL_BLOCKED_PENDING_APPROVAL") {
		t.Errorf("%q", got)
	}
	q := r.pending()
	if link := <-links; link != "https://aye.example/r/"+q.Code {
		t.Errorf("invited to %s", link)
	}
	if q.Asks != 1 || writes.Load() != 0 {
		t.Errorf("asked %d times, wrote %d times", q.Asks, writes.Load())
	}
	go func() {
		for r.desk.Waiting(q.ID) == 0 {
			time.Sleep(time.Millisecond)
		}
		r.decide(q, true)
	}()
	if got := call(); got != "wrote y" || writes.Load() != 1 {
		t.Errorf("%q, wrote %d times", got, writes.Load())
	}
	if got := r.last(); got.State != approval.Executed {
		t.Errorf("%s", got.State)
	}
}
