package mcp

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// The Go SDK's conformance server, as a process and over HTTP in both eras.
func TestConformanceServer(t *testing.T) {
	program := filepath.Join(t.TempDir(), "everything")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program,
		"github.com/modelcontextprotocol/go-sdk/conformance/everything-server")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build of the conformance server: %v\n%s", err, out)
	}
	child := Target{Name: "everything", Command: &Command{Path: program, Environ: os.Environ()}}
	pinned := child
	pinned.Version = V20251125
	t.Run("stdio modern", func(t *testing.T) { everything(t, child, V20260728) })
	t.Run("stdio legacy", func(t *testing.T) { everything(t, pinned, V20251125) })
	t.Run("http legacy", func(t *testing.T) {
		everything(t, Target{Name: "everything", URL: serveEverything(t, program, "-stateless=false")}, V20251125)
	})
	t.Run("http modern", func(t *testing.T) {
		everything(t, Target{Name: "everything", URL: serveEverything(t, program, "-stateless=true")}, V20260728)
	})
}

// serveEverything starts the conformance server on a free port.
func serveEverything(t *testing.T, program, mode string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	cmd := exec.CommandContext(t.Context(), program, "-http", addr, mode)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for t.Context().Err() == nil {
		if c, err := net.Dial("tcp", addr); err == nil {
			_ = c.Close()
			return "http://" + addr + "/"
		}
		<-tick.C
	}
	t.Fatal("the conformance server did not start")
	return ""
}

// everything is what each of the four connections must be able to do.
func everything(t *testing.T, target Target, want Version) {
	leak := goleak.IgnoreCurrent()
	stray := &listener{noted: make(chan Message, 64)}
	target.Stray = stray
	target.Capabilities = []byte(`{"sampling":{},"elicitation":{"form":{},"url":{}},"roots":{}}`)
	schemas := map[string][]byte{}
	target.Schema = func(tool string) []byte { return schemas[tool] }
	u, err := Dial(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	defer goleak.VerifyNone(t, leak)
	defer u.Close()
	about := u.About()
	if about.Version != want || !strings.Contains(string(about.Info), "mcp-conformance-test-server") || about.Capabilities == nil {
		t.Fatalf("about %s: %s %s", about.Version, about.Info, about.Capabilities)
	}
	tools, err := ListAll(t.Context(), u, "tools/list", "tools")
	if err != nil || len(tools) < 20 {
		t.Fatalf("%d tools, %v", len(tools), err)
	}
	for _, raw := range tools {
		var tool struct {
			Name        string
			InputSchema json.RawMessage
		}
		if err := json.Unmarshal(raw, &tool); err != nil {
			t.Fatal(err)
		}
		schemas[tool.Name] = tool.InputSchema
	}
	call := func(t *testing.T, params string, to Answers, want string) {
		t.Helper()
		contains(t, params, mustCall(t, u, []byte(params), to).Raw, want)
	}
	t.Run("results", func(t *testing.T) {
		call(t, `{"name":"test_simple_text"}`, nil, `This is a simple text response for testing.`)
		call(t, `{"name":"test_multiple_content_types"}`, nil, `"type":"resource"`)
		call(t, `{"name":"test_error_handling"}`, nil, `"isError":true`)
		call(t, `{"name":"no such tool"}`, nil, `"error":{"code":-32602`)
		call(t, `{"name":"test_x_mcp_header","arguments":{"region":"zürich"}}`, nil, `region=zürich`)
		if m, err := u.Call(t.Context(), "no/such/method", []byte(`{}`), nil); want.Era() == Modern && (err != nil || !strings.Contains(string(m.Error), "-32601")) {
			t.Errorf("no/such/method: %s %v", m.Raw, err)
		}
	})
	t.Run("other methods", func(t *testing.T) {
		for method, c := range map[string][2]string{
			"resources/read":      {`{"uri":"test://static-text"}`, `"contents":[`},
			"prompts/get":         {`{"name":"test_simple_prompt"}`, `"messages":[`},
			"completion/complete": {`{"ref":{"type":"ref/prompt","name":"test_prompt_with_arguments"},"argument":{"name":"arg1","value":"a"}}`, `"completion":{`},
		} {
			m, err := u.Call(t.Context(), method, []byte(c[0]), nil)
			if err != nil {
				t.Errorf("%s: %v", method, err)
			}
			contains(t, method, m.Raw, c[1])
		}
	})
	t.Run("progress", func(t *testing.T) {
		var heard listener
		mustCall(t, u, []byte(`{"name":"test_tool_with_progress","_meta":{"progressToken":"agent's"}}`), &heard)
		got := heard.raw()
		if len(got) != 3 {
			t.Fatalf("heard %q", got)
		}
		for i, part := range []string{`"progress":0`, `"progress":50`, `"progress":100`} {
			contains(t, "progress", []byte(got[i]), part)
			contains(t, "token", []byte(got[i]), `"progressToken":"agent's"`)
		}
	})
	if want.Era() == Legacy {
		legacyEverything(t, u, stray)
	} else {
		modernEverything(t, u)
	}
}

func legacyEverything(t *testing.T, u Upstream, stray *listener) {
	t.Run("questions", func(t *testing.T) {
		asks := map[string]string{}
		to := &listener{ask: func(_ context.Context, m Message) ([]byte, *Error) {
			asks[m.Method] = string(m.Params)
			switch m.Method {
			case "elicitation/create":
				return []byte(`{"action":"accept","content":{"username":"ana"}}`), nil
			case "sampling/createMessage":
				return []byte(`{"role":"assistant","model":"m","content":{"type":"text","text":"forty-two"}}`), nil
			}
			return nil, refuseAsk(m)
		}}
		m := mustCall(t, u, []byte(`{"name":"test_elicitation","arguments":{"message":"who?"}}`), to)
		contains(t, "elicitation", m.Result, `action=accept, content=map[username:ana]`)
		m = mustCall(t, u, []byte(`{"name":"test_sampling","arguments":{"prompt":"why?"}}`), to)
		contains(t, "sampling", m.Result, `LLM response: forty-two`)
		contains(t, "asked", []byte(asks["elicitation/create"]), `"who?"`)
		m = mustCall(t, u, []byte(`{"name":"test_elicitation","arguments":{"message":"who?"}}`), nil)
		contains(t, "nobody to ask", m.Result, `"isError":true`)
	})
	t.Run("news that belong to no call", func(t *testing.T) {
		mustCall(t, u, []byte(`{"name":"test_trigger_tool_change"}`), nil)
		for m := range stray.noted {
			if m.Method == "notifications/tools/list_changed" {
				break
			}
		}
	})
	t.Run("cancel", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		_, err := u.Call(ctx, "tools/call", []byte(`{"name":"test_elicitation","arguments":{"message":"who?"}}`), &listener{
			ask: func(asked context.Context, _ Message) ([]byte, *Error) {
				cancel(ErrCancelled)
				<-asked.Done()
				return nil, &Error{Code: CodeInternal, Message: "cancelled"}
			},
		})
		wantLost(t, err, true, ErrCancelled)
		mustCall(t, u, []byte(`{"name":"test_simple_text"}`), nil)
	})
}

func modernEverything(t *testing.T, u Upstream) {
	t.Run("input required", func(t *testing.T) {
		m := mustCall(t, u, []byte(`{"name":"test_input_required_result_elicitation"}`), nil)
		contains(t, "first", m.Result, `"inputRequests":{"user_name":`)
		m = mustCall(t, u, []byte(`{"name":"test_input_required_result_elicitation","inputResponses":{"user_name":{"action":"accept","content":{"name":"Ana"}}}}`), nil)
		contains(t, "second", m.Result, `Hello, Ana!`)
	})
	t.Run("capabilities of the request win", func(t *testing.T) {
		m := mustCall(t, u, []byte(`{"name":"test_missing_capability"}`), nil)
		contains(t, "ours", m.Raw, `Client declared the sampling capability`)
		m = mustCall(t, u, []byte(`{"name":"test_missing_capability","_meta":{"io.modelcontextprotocol/clientCapabilities":{}}}`), nil)
		contains(t, "the request's", m.Raw, `"code":-32021`)
	})
	t.Run("subscription", func(t *testing.T) {
		to := &listener{noted: make(chan Message, 64)}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := u.Call(ctx, methodListen, []byte(`{"notifications":{"toolsListChanged":true}}`), to)
			ended <- err
		}()
		if m := <-to.noted; m.Method != "notifications/subscriptions/acknowledged" {
			t.Errorf("first came %s", m.Raw)
		}
		mustCall(t, u, []byte(`{"name":"test_trigger_tool_change"}`), nil)
		if m := <-to.noted; m.Method != "notifications/tools/list_changed" {
			t.Errorf("then came %s", m.Raw)
		}
		cancel()
		wantLost(t, <-ended, true, context.Canceled)
		mustCall(t, u, []byte(`{"name":"test_simple_text"}`), nil)
	})
}
