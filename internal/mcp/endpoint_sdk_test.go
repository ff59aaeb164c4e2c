package mcp

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// bearer adds the credential that a test client lacks.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// A client that is not ours, over both eras: it lists, calls, hears progress and
// answers what it is asked.
func TestSDKClient(t *testing.T) {
	for _, v := range []string{"", "2025-11-25", "2025-06-18", "2025-03-26"} {
		t.Run("version "+v, func(t *testing.T) {
			e := newTestEndpoint(t, nil)
			progress := make(chan string, 10)
			client := sdk.NewClient(&sdk.Implementation{Name: "t", Version: "1"}, &sdk.ClientOptions{
				ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
					return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"why": "because"}}, nil
				},
				ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
					progress <- r.Params.Message
				},
			})
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			s, err := client.Connect(ctx, &sdk.StreamableClientTransport{
				Endpoint: e.http.URL + "/mcp", HTTPClient: &http.Client{Transport: bearer("agent-1")},
			}, &sdk.ClientSessionOptions{ProtocolVersion: v})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			tools, err := s.ListTools(ctx, nil)
			if err != nil || len(tools.Tools) != 1 {
				t.Fatalf("tools/list: %v, %v", tools, err)
			}
			params := &sdk.CallToolParams{Name: "progress", Meta: sdk.Meta{}}
			params.SetProgressToken("t-1")
			got, err := s.CallTool(ctx, params)
			if err != nil || len(got.Content) != 1 {
				t.Fatalf("tools/call: %v, %v", got, err)
			}
			if p := <-progress; p != "Held for approval" {
				t.Errorf("progress is %q", p)
			}
			if v == "" {
				return
			}
			got, err = s.CallTool(ctx, &sdk.CallToolParams{Name: "ask"})
			if err != nil || !strings.Contains(got.Content[0].(*sdk.TextContent).Text, "because") {
				t.Errorf("ask: %v, %v", got, err)
			}
		})
	}
}
