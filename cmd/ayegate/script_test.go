package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ayegate/ayegate/api"
)

// patience bounds what a script waits for. Nothing sleeps: what does not come
// within it is a failure.
const patience = 20 * time.Second

// TestScript runs testdata/script: every command and every promise as a person
// or a script meets them. The commands that only tests have:
//
//	serve [args]           start ayegate serve and wait until it listens; sets AYEGATE_URL
//	                       and SIGNIN; its messages are in serve.err, its data in serve.out
//	stop [-kill]           end it: SIGTERM, or SIGKILL
//	exits CODE cmd args    run a command that must end with this exit code
//	held [N]               wait for a new request that waits for people, and until it was
//	                       asked N times; sets CODE, ID, HASH and TYPED
//	asked N CODE           wait until a request was asked N times
//	reaches STATUS CODE    wait until a request has this status
//	logged PATTERN [FILE]  wait until a line of serve.err, or of FILE, matches
//	count N FILE PATTERN   how many lines of a file match
//	accept SERVER.TOOL     accept the definition that waits, as ayegate tools says it
//	revoke NOTE            revoke the key with this note
//	key VAR FILE           put the text of a file, without its newline, into VAR
func TestScript(t *testing.T) {
	t.Parallel()
	testscript.Run(t, scripts("testdata/script", ""))
}

// TestPeers runs testdata/peers: a server and a client of the MCP project, which
// scripts/setup-ci.sh installs, on both sides of ayegate.
func TestPeers(t *testing.T) {
	t.Parallel()
	programs, err := filepath.Abs("../../.ci/node/node_modules/.bin")
	if err == nil {
		_, err = os.Stat(filepath.Join(programs, "mcp-inspector"))
	}
	switch {
	case err != nil && os.Getenv("CI") == "true":
		t.Fatalf("the public server and client are not there; install them with: sh scripts/setup-ci.sh (%v)", err)
	case err != nil:
		t.Skip("the public server and client are not there; install them with: sh scripts/setup-ci.sh")
	}
	testscript.Run(t, scripts("testdata/peers", programs))
}

// scripts are the scripts of a folder, with more programs in reach.
func scripts(dir, programs string) testscript.Params {
	return testscript.Params{
		Dir: dir,
		Setup: func(e *testscript.Env) error {
			home := e.WorkDir + "/home"
			e.Setenv("HOME", home)
			e.Setenv("AYEGATE_HOME", home+"/ayegate")
			e.Setenv("NO_COLOR", "1")
			e.Setenv("GORACE", "atexit_sleep_ms=0")
			if programs != "" {
				e.Setenv("PATH", e.Getenv("PATH")+string(filepath.ListSeparator)+programs)
			}
			return os.MkdirAll(home, 0o700)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"serve": serveCommand, "stop": stopCommand, "exits": exitsCommand, "held": heldCommand,
			"reaches": reachesCommand, "logged": loggedCommand, "count": countCommand, "key": keyCommand,
			"asked": askedCommand, "accept": acceptCommand, "revoke": revokeCommand,
		},
	}
}

// background is the gateway that a script runs.
type background struct {
	cmd  *exec.Cmd
	done chan struct{}
	once sync.Once
}

func (b *background) end(sig os.Signal) {
	b.once.Do(func() { _ = b.cmd.Process.Signal(sig) })
	<-b.done
}

func serveCommand(ts *testscript.TestScript, _ bool, args []string) {
	b := &background{done: make(chan struct{})}
	c := exec.Command("ayegate", append([]string{"serve", "--json"}, args...)...)
	c.Dir = ts.MkAbs(".")
	c.Env = scriptEnv(ts)
	stderr, err := os.Create(ts.MkAbs("serve.err"))
	ts.Check(err)
	c.Stderr = stderr
	out, err := c.StdoutPipe()
	ts.Check(err)
	ts.Check(c.Start())
	b.cmd = c
	lines := bufio.NewReader(out)
	first, err := lines.ReadBytes('\n')
	go func() {
		_, _ = io.Copy(io.Discard, lines)
		_ = c.Wait()
		_ = stderr.Close()
		close(b.done)
	}()
	ts.Defer(func() { b.end(syscall.SIGKILL) })
	if err != nil {
		<-b.done
		text, _ := os.ReadFile(ts.MkAbs("serve.err"))
		ts.Fatalf("ayegate serve did not start: %s", text)
	}
	ts.Check(os.WriteFile(ts.MkAbs("serve.out"), first, 0o600))
	var said struct{ URL, SignIn string }
	ts.Check(json.Unmarshal(first, &said))
	ts.Setenv("AYEGATE_URL", said.URL)
	ts.Setenv("SIGNIN", said.SignIn)
	current.Store(ts, b)
}

// current has the gateway of each script.
var current sync.Map

func stopCommand(ts *testscript.TestScript, _ bool, args []string) {
	b, ok := current.LoadAndDelete(ts)
	if !ok {
		ts.Fatalf("nothing runs")
	}
	var sig os.Signal = syscall.SIGTERM
	if len(args) > 0 && args[0] == "-kill" {
		sig = syscall.SIGKILL
	}
	b.(*background).end(sig)
}

func scriptEnv(ts *testscript.TestScript) (env []string) {
	for _, name := range []string{"PATH", "HOME", "AYEGATE_HOME", "AYEGATE_TOKEN_FILE", "AYEGATE_AGENT_KEY_FILE", "NO_COLOR", "GORACE", "TMPDIR", "WORK"} {
		if v := ts.Getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	return append(env, "PWD="+ts.MkAbs("."))
}

func exitsCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE command args...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var ended *exec.ExitError
	switch {
	case errors.As(err, &ended):
		got = ended.ExitCode()
	case err != nil:
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("%s: exit code %d, want %d", strings.Join(args[1:], " "), got, want)
	}
}

// person is the client of whoever the script's token file belongs to.
func person(ts *testscript.TestScript) *api.Client {
	name := ts.Getenv("AYEGATE_TOKEN_FILE")
	if name == "" {
		name = ts.Getenv("AYEGATE_HOME") + "/token"
	}
	token, err := os.ReadFile(ts.MkAbs(name))
	ts.Check(err)
	c, err := api.NewClient(ts.Getenv("AYEGATE_URL"), strings.TrimSpace(string(token)), nil)
	ts.Check(err)
	return c
}

// await looks until look is satisfied.
func await(ts *testscript.TestScript, what string, look func(context.Context) bool) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !look(ctx) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			ts.Fatalf("%s did not come", what)
		}
	}
}

func heldCommand(ts *testscript.TestScript, _ bool, args []string) {
	c := person(ts)
	asks := 1
	if len(args) > 0 {
		n, err := strconv.Atoi(args[0])
		ts.Check(err)
		asks = n
	}
	seen := ts.Getenv("HELD_SEEN")
	await(ts, "a held request", func(ctx context.Context) bool {
		list, err := c.Requests(ctx, api.RequestFilter{Status: []api.Status{api.StatusPending}})
		ts.Check(err)
		for _, r := range list.Requests {
			if strings.Contains(seen, r.ApprovalID) || r.Asks < asks {
				continue
			}
			ts.Setenv("CODE", r.Code)
			ts.Setenv("ID", r.ApprovalID)
			ts.Setenv("HASH", strings.TrimPrefix(r.ToolCallHash, "sha256:"))
			ts.Setenv("TYPED", r.Confirm.Typed)
			ts.Setenv("HELD_SEEN", seen+" "+r.ApprovalID)
			return true
		}
		return false
	})
}

func reachesCommand(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: reaches STATUS CODE")
	}
	c := person(ts)
	await(ts, args[1]+" as "+args[0], func(ctx context.Context) bool {
		r, err := c.Request(ctx, args[1])
		ts.Check(err)
		return string(r.Status) == args[0]
	})
}

func acceptCommand(ts *testscript.TestScript, _ bool, args []string) {
	c := person(ts)
	list, err := c.Definitions(context.Background(), true)
	ts.Check(err)
	for _, d := range list.Definitions {
		if d.Server+"."+d.Tool == args[0] {
			ts.Check(ts.Exec("ayegate", "tools", "accept", args[0], d.Definition))
			return
		}
	}
	ts.Fatalf("%s does not wait for anybody", args[0])
}

func revokeCommand(ts *testscript.TestScript, _ bool, args []string) {
	list, err := person(ts).Keys(context.Background())
	ts.Check(err)
	for _, k := range list.Keys {
		if k.Note == args[0] {
			ts.Check(ts.Exec("ayegate", "keys", "revoke", k.ID))
			return
		}
	}
	ts.Fatalf("no key has the note %q", args[0])
}

func askedCommand(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: asked N CODE")
	}
	c := person(ts)
	await(ts, args[1]+" asked "+args[0]+" times", func(ctx context.Context) bool {
		r, err := c.Request(ctx, args[1])
		ts.Check(err)
		return strconv.Itoa(r.Asks) == args[0]
	})
}

func loggedCommand(ts *testscript.TestScript, _ bool, args []string) {
	file := "serve.err"
	if len(args) > 1 {
		file = args[1]
	}
	want, err := regexp.Compile(args[0])
	ts.Check(err)
	await(ts, fmt.Sprintf("%q in %s", args[0], file), func(context.Context) bool {
		text, err := os.ReadFile(ts.MkAbs(file))
		return err == nil && want.Match(text)
	})
}

func countCommand(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: count N FILE PATTERN")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	pattern, err := regexp.Compile(args[2])
	ts.Check(err)
	got := 0
	for line := range strings.Lines(ts.ReadFile(args[1])) {
		if pattern.MatchString(line) {
			got++
		}
	}
	if got != want {
		ts.Fatalf("%d lines of %s match %q, want %d", got, args[1], args[2], want)
	}
}

func keyCommand(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: key VAR FILE")
	}
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile(args[1])))
}
