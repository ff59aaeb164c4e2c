package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// childTarget starts this test binary as a server that behaves as how says.
func childTarget(t *testing.T, how string) Target {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Target{
		Name: "peer",
		Command: &Command{
			Path: self, Environ: os.Environ(),
			Env: []string{peerVariable + "=" + how, "GORACE=atexit_sleep_ms=0"},
		},
		Probe: 100 * time.Millisecond,
		Grace: 5 * time.Second,
	}
}

// dial opens a connection that ends with the test, leaving no goroutine behind.
func dial(t *testing.T, target Target) Upstream {
	t.Helper()
	leak := goleak.IgnoreCurrent()
	u, err := Dial(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := u.Close(); err != nil {
			t.Error(err)
		}
		goleak.VerifyNone(t, leak)
	})
	return u
}

// listener is the gateway's side of a call.
type listener struct {
	mu    sync.Mutex
	notes []Message
	noted chan Message // receives every note when not nil
	ask   func(ctx context.Context, m Message) ([]byte, *Error)
}

func (l *listener) Notification(m Message) {
	l.mu.Lock()
	l.notes = append(l.notes, m)
	l.mu.Unlock()
	if l.noted != nil {
		l.noted <- m
	}
}

func (l *listener) Ask(ctx context.Context, m Message) ([]byte, *Error) {
	if l.ask == nil {
		return nil, &Error{Code: CodeInternal, Message: "nobody to ask"}
	}
	return l.ask(ctx, m)
}

func (l *listener) raw() (all []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.notes {
		all = append(all, string(m.Raw))
	}
	return all
}

// tool returns the params of a call.
func tool(name string) []byte { return []byte(`{"name":"` + name + `"}`) }

func mustCall(t *testing.T, u Upstream, params []byte, to Answers) Message {
	t.Helper()
	m, err := u.Call(t.Context(), "tools/call", params, to)
	if err != nil {
		t.Fatalf("call %s: %v", params, err)
	}
	return m
}

// hang starts a call that the server never answers, and returns when the server has it.
func hang(ctx context.Context, u Upstream, to *listener) (ended chan error) {
	to.noted, ended = make(chan Message, 1), make(chan error, 1)
	go func() {
		_, err := u.Call(ctx, "tools/call", []byte(`{"name":"hang","_meta":{"progressToken":1}}`), to)
		ended <- err
	}()
	<-to.noted
	return ended
}

// wantLost checks that a call failed without a response.
func wantLost(t *testing.T, err error, wasSent bool, cause error) {
	t.Helper()
	var lost *CallError
	switch {
	case !errors.As(err, &lost):
		t.Fatalf("got error %v, want a CallError", err)
	case lost.Sent != wasSent:
		t.Errorf("Sent = %v, want %v (%v)", lost.Sent, wasSent, err)
	case cause != nil && !errors.Is(err, cause):
		t.Errorf("got cause %v, want %v", err, cause)
	}
}

func TestChildNegotiation(t *testing.T) {
	for how, want := range map[string]Version{
		"legacy":       V20251125, // answers server/discover with an error
		"silent":       V20251125, // does not answer it
		"exits":        V20251125, // dies of it
		"early":        V20251125, // sends list_changed and ping before the initialize result
		"early silent": V20251125,
		"noisy":        V20251125, // prints text among its messages
		"old":          V20241105,
		"modern":       V20260728,
		"slow":         V20260728, // answers server/discover only after initialize came, which it refuses
	} {
		t.Run(how, func(t *testing.T) {
			u := dial(t, childTarget(t, how))
			if got := u.About().Version; got != want {
				t.Fatalf("version %s, want %s", got, want)
			}
			if m := mustCall(t, u, tool("echo"), nil); m.Result == nil {
				t.Fatalf("no result: %s", m.Raw)
			}
		})
	}
}

func TestChildPinned(t *testing.T) {
	pinned := func(how string, v Version) (Upstream, error) {
		target := childTarget(t, how)
		target.Version = v
		u, err := Dial(t.Context(), target)
		if u != nil {
			t.Cleanup(func() { u.Close() })
		}
		return u, err
	}
	t.Run("legacy is not probed", func(t *testing.T) {
		u, err := pinned("exits", V20250618)
		if err != nil {
			t.Fatal(err)
		}
		if want := `"protocolVersion":"2025-06-18"`; !bytes.Contains(u.About().Raw, []byte(want)) {
			t.Errorf("the server saw %s, want %s in it", u.About().Raw, want)
		}
	})
	t.Run("modern does not fall back", func(t *testing.T) {
		if _, err := pinned("legacy", V20260728); err == nil {
			t.Error("a legacy server was accepted")
		}
	})
	t.Run("unknown revision of the server", func(t *testing.T) {
		if _, err := pinned("alien", ""); err == nil || !strings.Contains(err.Error(), "1999-01-01") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("unknown revision of ours", func(t *testing.T) {
		if _, err := pinned("legacy", "2030-01-01"); err == nil {
			t.Error("accepted")
		}
	})
}

func TestChildIntroducesUs(t *testing.T) {
	target := childTarget(t, "legacy")
	target.Info = []byte(`{"name":"gw","v":1.10}`)
	target.Capabilities = []byte(`{"elicitation":{"url":{}},"x":9007199254740993}`)
	about := dial(t, target).About()
	want := `"saw":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{"url":{}},"x":9007199254740993},"clientInfo":{"name":"gw","v":1.10}}`
	if !strings.Contains(string(about.Raw), want) {
		t.Errorf("the server saw %s\nwant %s", about.Raw, want)
	}
	if about.Instructions != "be kind" || string(about.Info) != `{"name":"peer","n":1.10}` || string(about.Capabilities) != `{"tools":{"listChanged":true}}` {
		t.Errorf("about: %+v", about)
	}
}

// The rows of mcp.md, 5.3: what typed proxies lose.
var fidelityParams = []string{
	`{"name":"echo","arguments":{"big":12345678901234567890,"n":[1.10,1E3,-0.0,1e400],"z":1,"a":2,"html":"<x>&","esc":"\u003c\/\ud83d\ude00"}}`,
	`{"name":"echo","arguments":{},"task":{"ttl":60000},"x-vendor":{"b":1,"a":[]}}`,
	`{ "x" : 1 , "name":"echo" }`,
}

func TestChildFidelity(t *testing.T) {
	u := dial(t, childTarget(t, "legacy"))
	for _, params := range fidelityParams {
		m := mustCall(t, u, []byte(params), nil)
		var line struct{ Params json.RawMessage }
		if err := json.Unmarshal(m.Result, &line); err != nil {
			t.Fatal(err)
		}
		if string(line.Params) != params {
			t.Errorf("the server saw %s\nwant %s", line.Params, params)
		}
	}
	t.Run("newlines between tokens", func(t *testing.T) {
		m := mustCall(t, u, []byte("{\"name\":\n\"echo\",\r\n\t\"arguments\":{\"s\":\"a\\n b\"}}"), nil)
		if want := `"params":{"name":"echo","arguments":{"s":"a\n b"}}`; !strings.Contains(string(m.Result), want) {
			t.Errorf("the server saw %s", m.Result)
		}
	})
	t.Run("_meta", func(t *testing.T) {
		m := mustCall(t, u, []byte(`{"name":"echo","_meta":{"n":9007199254740993,"progressToken":"agent","z":1.10}}`), nil)
		if want := `"_meta":{"n":9007199254740993,"progressToken":`; !strings.Contains(string(m.Result), want) {
			t.Errorf("the server saw %s", m.Result)
		}
		if strings.Contains(string(m.Result), "agent") {
			t.Errorf("the agent's own token went to the server: %s", m.Result)
		}
	})
	t.Run("result", func(t *testing.T) {
		m := mustCall(t, u, tool("raw:strange"), nil)
		want := `{"content":[{"type":"hologram","z":1.10}],"isError":false,"structuredContent":{"b":9007199254740993,"a":1e3},"_meta":{"k":12345678901234567890}}`
		if string(m.Result) != want {
			t.Errorf("result %s\nwant   %s", m.Result, want)
		}
	})
	t.Run("error", func(t *testing.T) {
		m := mustCall(t, u, tool("raw:error"), nil)
		if want := `{"code":-32042,"message":"x","data":{"n":1.10},"odd":1}`; string(m.Error) != want {
			t.Errorf("error %s", m.Error)
		}
	})
}

func TestChildEraMembers(t *testing.T) {
	const own = `{"name":"echo","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","k":1,` +
		`"io.modelcontextprotocol/clientCapabilities":{"x":1.10},"io.modelcontextprotocol/clientInfo":{"name":"agent"}}}`
	seen := func(how, params string) string {
		u := dial(t, childTarget(t, how))
		var line struct{ Params json.RawMessage }
		if err := json.Unmarshal(mustCall(t, u, []byte(params), nil).Result, &line); err != nil {
			t.Fatal(err)
		}
		return string(line.Params)
	}
	if got, want := seen("legacy", own), `{"name":"echo","_meta":{"k":1}}`; got != want {
		t.Errorf("a legacy server saw %s, want %s", got, want)
	}
	if got := seen("modern", own); got != own {
		t.Errorf("a modern server saw %s, want %s", got, own)
	}
	want := `{"name":"echo","a":1.10,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"ayegate","version":"0"},"io.modelcontextprotocol/clientCapabilities":{}}}`
	if got := seen("modern", `{"name":"echo","a":1.10}`); got != want {
		t.Errorf("a modern server saw %s, want %s", got, want)
	}
}

func TestChildProgress(t *testing.T) {
	u := dial(t, childTarget(t, "legacy"))
	// Agents choose alike: all of these run at once under one token of theirs.
	var wg sync.WaitGroup
	upstream := make(chan string, 8)
	for range 8 {
		wg.Go(func() {
			var heard listener
			m, err := u.Call(t.Context(), "tools/call", []byte(`{"name":"progress","_meta":{"progressToken":"t\u0031"}}`), &heard)
			if err != nil {
				t.Error(err)
				return
			}
			want := []string{
				`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t\u0031","progress":1.0,"message":"one"}}`,
				`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":2,"progressToken":"t\u0031"}}`,
			}
			if got := heard.raw(); !slices.Equal(got, want) {
				t.Errorf("heard %q", got)
			}
			upstream <- string(m.Result)
		})
	}
	wg.Wait()
	close(upstream)
	seen := map[string]bool{}
	for token := range upstream {
		if seen[token] {
			t.Errorf("upstream token used twice: %s", token)
		}
		seen[token] = true
	}
	t.Run("without a token nothing is passed on", func(t *testing.T) {
		var heard listener
		mustCall(t, u, tool("raw:uninvited"), &heard)
		if got := heard.raw(); len(got) != 0 {
			t.Errorf("heard %q", got)
		}
	})
	t.Run("ambiguous notification is dropped", func(t *testing.T) {
		var heard listener
		mustCall(t, u, []byte(`{"name":"raw:dup-message","_meta":{"progressToken":1}}`), &heard)
		if got := heard.raw(); len(got) != 0 {
			t.Errorf("heard %q", got)
		}
	})
}

// MCP-16: progress without end neither fills memory, nor holds up the answer,
// nor other calls while an agent is slow to take it.
func TestChildFlood(t *testing.T) {
	u := dial(t, childTarget(t, "legacy"))
	slow := &listener{noted: make(chan Message)}
	ended := make(chan error, 1)
	go func() {
		_, err := u.Call(t.Context(), "tools/call", []byte(`{"name":"flood","_meta":{"progressToken":1}}`), slow)
		ended <- err
		close(slow.noted)
	}()
	<-slow.noted // and the agent looks away
	mustCall(t, u, tool("echo"), nil)
	for range slow.noted {
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if got := len(slow.raw()); got > 2*maxQueued+1 {
		t.Errorf("%d notifications were kept for a slow agent", got)
	}
	mustCall(t, u, tool("pings"), nil)
	mustCall(t, u, tool("echo"), nil)
}

// MCP-17: hostile and sloppy answers.
func TestChildStrangeAnswers(t *testing.T) {
	u := dial(t, childTarget(t, "legacy"))
	for name, want := range map[string]string{
		"twice":      `{"n":1}`,
		"wrong-id":   `{"n":1}`,
		"null-error": `{"n":1}`,
		"duplicates": `{"n":1,"n":2,"s":"\ud800","\u0000":1e999}`,
		"odd-id-ask": `{}`,
		"carriage":   `{}`,
	} {
		t.Run(name, func(t *testing.T) {
			if m := mustCall(t, u, tool("raw:"+name), nil); string(m.Result) != want {
				t.Errorf("result %s, want %s", m.Result, want)
			}
		})
	}
	for _, name := range []string{"broken", "breaks", "both"} {
		t.Run(name, func(t *testing.T) {
			_, err := u.Call(t.Context(), "tools/call", tool("raw:"+name), nil)
			wantLost(t, err, true, ErrUnreadable)
		})
	}
	mustCall(t, u, tool("echo"), nil)
}

func TestChildBatch(t *testing.T) {
	target := childTarget(t, "old")
	stray := &listener{noted: make(chan Message, 1)}
	target.Stray = stray
	if m := mustCall(t, dial(t, target), tool("raw:batch"), nil); string(m.Result) != `{"n":1}` {
		t.Errorf("result %s", m.Result)
	}
	<-stray.noted
	t.Run("not where there are none", func(t *testing.T) {
		target := childTarget(t, "legacy")
		target.CallLimit = 50 * time.Millisecond
		_, err := dial(t, target).Call(t.Context(), "tools/call", tool("raw:batch"), nil)
		wantLost(t, err, true, ErrCallLimit)
	})
}

// MCP-17: an answer over the size limit ends its call and no other.
func TestChildOversize(t *testing.T) {
	target := childTarget(t, "legacy")
	target.MaxMessage = 256 << 10
	u := dial(t, target)
	hanging, stop := context.WithCancel(t.Context())
	hung := hang(hanging, u, &listener{})
	for _, name := range []string{"big", "big-last"} {
		_, err := u.Call(t.Context(), "tools/call", tool(name), nil)
		wantLost(t, err, true, ErrTooLarge)
	}
	mustCall(t, u, tool("echo"), nil)
	stop()
	wantLost(t, <-hung, true, context.Canceled)
}

func TestChildCancel(t *testing.T) {
	target := childTarget(t, "legacy")
	stray := &listener{noted: make(chan Message, 16)}
	target.Stray = stray
	u := dial(t, target)

	ctx, cancel := context.WithCancelCause(t.Context())
	ended := hang(ctx, u, &listener{})
	id := u.(*Child).inFlight()[0]
	cancel(ErrCancelled)
	wantLost(t, <-ended, true, ErrCancelled)
	note := <-stray.noted
	if want := fmt.Sprintf(`"saw":{"requestId":%d,`, id); !strings.Contains(string(note.Raw), want) {
		t.Errorf("the server was told %s, want %s", note.Raw, want)
	}

	_, err := u.Call(ctx, "tools/call", tool("echo"), nil)
	wantLost(t, err, false, ErrCancelled)
}

func (c *Child) inFlight() (ids []uint64) {
	c.lock.Lock()
	defer c.lock.Unlock()
	for id := range c.calls {
		ids = append(ids, id)
	}
	return ids
}

// MCP-16: a server that never answers costs a bounded time.
func TestChildTimeLimit(t *testing.T) {
	target := childTarget(t, "legacy")
	target.CallLimit = 50 * time.Millisecond
	u := dial(t, target)
	_, err := u.Call(t.Context(), "tools/call", tool("hang"), nil)
	wantLost(t, err, true, ErrCallLimit)
}

func TestChildDeath(t *testing.T) {
	u := dial(t, childTarget(t, "legacy"))
	hung := hang(t.Context(), u, &listener{})
	_, err := u.Call(t.Context(), "tools/call", tool("die"), nil)
	wantLost(t, err, true, nil)
	wantLost(t, <-hung, true, nil)
	<-u.Done()
	if err := u.Err(); err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("Err() = %v", err)
	}
	_, err = u.Call(t.Context(), "tools/call", tool("echo"), nil)
	wantLost(t, err, false, nil)
	if err := u.Notify(t.Context(), "notifications/x", nil); err == nil {
		t.Error("a notification to a dead server succeeded")
	}
}

func TestChildLastWords(t *testing.T) {
	u := dial(t, childTarget(t, "legacy"))
	if m := mustCall(t, u, tool("answer-and-die"), nil); string(m.Result) != `{"done":true}` {
		t.Errorf("result %s", m.Result)
	}
	<-u.Done()
}

// A server that takes no input must not hold a call beyond its context.
func TestChildStopsReading(t *testing.T) {
	target := childTarget(t, "legacy stubborn")
	target.Grace = 50 * time.Millisecond
	u := dial(t, target)
	mustCall(t, u, tool("stop-reading"), nil)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { // more than a pipe holds
		_, err := u.Call(ctx, "tools/call", []byte(`{"name":"echo","fill":"`+strings.Repeat("x", 1<<20)+`"}`), nil)
		ended <- err
	}()
	for len(u.(*Child).inFlight()) == 0 {
		runtime.Gosched()
	}
	for { // until the writer is stuck
		soon, stop := context.WithTimeout(t.Context(), 10*time.Millisecond)
		_, err := u.Call(soon, "tools/call", tool("echo"), nil)
		stop()
		if lost, ok := errors.AsType[*CallError](err); !ok {
			t.Fatalf("got %v", err)
		} else if !lost.Sent {
			break
		}
	}
	cancel()
	wantLost(t, <-ended, true, context.Canceled)
}

func TestChildCloseEndsTheGroup(t *testing.T) {
	for _, how := range []string{"legacy", "legacy stubborn"} {
		t.Run(how, func(t *testing.T) {
			fifo := filepath.Join(t.TempDir(), "alive")
			if err := syscall.Mkfifo(fifo, 0o600); err != nil {
				t.Fatal(err)
			}
			target := childTarget(t, how)
			target.Grace = 100 * time.Millisecond
			u := dial(t, target)
			opened := make(chan *os.File, 1)
			go func() {
				f, err := os.Open(fifo)
				if err != nil {
					t.Error(err)
				}
				opened <- f
			}()
			mustCall(t, u, tool("offspring:"+fifo), nil)
			f := <-opened // the server's own child holds the other end
			defer f.Close()
			if err := u.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadAll(f); err != nil { // ends when nobody holds it any more
				t.Fatal(err)
			}
			if !errors.Is(u.Err(), ErrUpstreamClosed) {
				t.Errorf("Err() = %v", u.Err())
			}
			if u.(*Child).proc.cmd.ProcessState == nil {
				t.Error("the process was not waited for")
			}
		})
	}
}

func TestChildCloseFailsCalls(t *testing.T) {
	u := dial(t, childTarget(t, "legacy"))
	hung := hang(t.Context(), u, &listener{})
	_ = u.Close()
	wantLost(t, <-hung, true, ErrUpstreamClosed)
	_, err := u.Call(t.Context(), "tools/call", tool("echo"), nil)
	wantLost(t, err, false, ErrUpstreamClosed)
}

// MCP-22: nothing but the argument vector, nothing but the environment that was
// asked for.
func TestChildLaunch(t *testing.T) {
	t.Setenv("SECRET_TOKEN", "hunter2")
	t.Setenv("LD_PRELOAD", "")
	target := childTarget(t, "legacy")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	target.Command.Dir = dir
	target.Command.Args = []string{"; touch pwned", "$(touch pwned)", "`touch pwned`", "a b", "", "\n"}
	target.Command.Env = append(target.Command.Env, "WANTED=1", "HOME=/elsewhere")
	target.Command.Environ = append(os.Environ(), "LD_PRELOAD=/evil.so")
	u := dial(t, target)
	var got struct {
		Env, Args []string
		Dir       string
	}
	if err := json.Unmarshal(mustCall(t, u, tool("environment"), nil).Result, &got); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Args[1:], target.Command.Args) || got.Dir != dir {
		t.Errorf("started with %q in %q", got.Args, got.Dir)
	}
	if !filepath.IsAbs(u.(*Child).Path()) || got.Args[0] != u.(*Child).Path() {
		t.Errorf("path %q", u.(*Child).Path())
	}
	for _, kv := range got.Env {
		name, _, _ := strings.Cut(kv, "=")
		if name == "SECRET_TOKEN" || name == "LD_PRELOAD" {
			t.Errorf("the server inherited %s", kv)
		}
	}
	if !slices.Contains(got.Env, "WANTED=1") || !slices.Contains(got.Env, "HOME=/elsewhere") {
		t.Errorf("environment %q", got.Env)
	}
	if files, _ := os.ReadDir(dir); len(files) > 0 {
		t.Errorf("a shell ran: %v", files)
	}
}

// MCP-22
func TestCommandRefusals(t *testing.T) {
	bin := t.TempDir()
	for name, mode := range map[string]os.FileMode{"run": 0o755, "data": 0o644} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	path := []string{"PATH=.:" + "relative" + ":" + bin}
	t.Chdir(bin)
	for name, c := range map[string]Command{
		"empty":            {},
		"relative":         {Path: "./run"},
		"relative in PATH": {Path: "run", Environ: []string{"PATH=.:" + filepath.Base(bin)}},
		"parent":           {Path: "../" + filepath.Base(bin) + "/run"},
		"dots":             {Path: "..", Environ: path},
		"NUL":              {Path: "run\x00", Environ: path},
		"not executable":   {Path: "data", Environ: path},
		"directory":        {Path: bin},
		"absent":           {Path: "/does/not/exist"},
		"no PATH":          {Path: "run"},
		"shell words":      {Path: "run; rm -rf /", Environ: path},
		"preload":          {Path: "run", Environ: path, Env: []string{"LD_PRELOAD=/x.so"}},
		"dyld":             {Path: "run", Environ: path, Env: []string{"DYLD_INSERT_LIBRARIES=/x"}},
		"node options":     {Path: "run", Environ: path, Env: []string{"NODE_OPTIONS=--require /x"}},
		"bash":             {Path: "run", Environ: path, Env: []string{"BASH_ENV=/x"}},
		"nameless":         {Path: "run", Environ: path, Env: []string{"=x"}},
		"NUL in env":       {Path: "run", Environ: path, Env: []string{"A=b\x00LD_PRELOAD=/x"}},
	} {
		if got, err := c.Resolve(); err == nil {
			t.Errorf("%s: resolved to %s", name, got)
		}
		if _, err := Dial(t.Context(), Target{Command: &c}); err == nil {
			t.Errorf("%s: started", name)
		}
	}
	ok := Command{Path: "run", Environ: path, Env: []string{"LD_PRELOAD=/x.so"}, AllowLoaderEnv: true}
	if got, err := ok.Resolve(); err != nil || got != filepath.Join(bin, "run") {
		t.Errorf("got %q, %v", got, err)
	}
}

// MCP-22: no environment means none, and not ours.
func TestCommandWithoutEnvironment(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p, err := (&Command{Path: self, Args: []string{"-test.run=^$"}}).start()
	if err != nil {
		t.Fatal(err)
	}
	closeAll(p.stdin, p.stdout, p.stderr)
	_ = p.cmd.Wait()
	if p.cmd.Env == nil || len(p.cmd.Env) > 0 {
		t.Errorf("environment %q", p.cmd.Env)
	}
}

func TestChildStderr(t *testing.T) {
	var log lockedBuffer
	target := childTarget(t, "legacy noisy")
	target.Command.Stderr = &log
	u := dial(t, target)
	_ = u.Close()
	lines := strings.Split(strings.TrimRight(log.String(), "\n"), "\n")
	if len(lines) != 3 || lines[0] != "warming up" || len(lines[1]) != maxStderrLine || lines[2] != "last words" {
		t.Errorf("got %d lines: %.200q", len(lines), lines)
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
