// Command conformance runs the public MCP conformance suite twice per row, once
// against the Go SDK's fixture and once against ayegate in front of it with a
// policy that allows everything, and fails when a scenario that passes directly
// fails through ayegate.
//
//	go run ./internal/tools/conformance -ayegate bin/ayegate -suite .ci/node/node_modules/.bin/conformance
package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

const fixture = "github.com/modelcontextprotocol/go-sdk/conformance/everything-server"

// row is one line of the result: a revision and a way to the server.
type row struct {
	name     string
	revision string
	stdio    bool // ayegate starts the fixture instead of reaching it over HTTP
	modern   bool
}

var rows = []row{
	{name: "2025-11-25 over HTTP", revision: "2025-11-25"},
	{name: "2025-11-25 over stdio", revision: "2025-11-25", stdio: true},
	{name: "2026-07-28 over HTTP", revision: "2026-07-28", modern: true},
}

func main() {
	bin := flag.String("ayegate", "bin/ayegate", "the binary under test")
	suite := flag.String("suite", ".ci/node/node_modules/.bin/conformance", "the conformance suite")
	only := flag.String("only", "", "run rows whose name contains this")
	verbose := flag.Bool("v", false, "print the suite's own output where scenarios fail")
	flag.Parse()
	if err := run(*bin, *suite, *only, *verbose); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

func run(bin, suite, only string, verbose bool) error {
	dir, err := os.MkdirTemp("", "ayegate-conformance-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if bin, err = filepath.Abs(bin); err != nil {
		return err
	}
	if suite, err = filepath.Abs(suite); err != nil {
		return err
	}
	server := filepath.Join(dir, "everything-server")
	build := exec.Command("go", "build", "-o", server, fixture)
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("build the fixture: %w", err)
	}
	worse := 0
	for _, r := range rows {
		if !strings.Contains(r.name, only) {
			continue
		}
		n, err := r.run(dir, bin, suite, server, verbose)
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		worse += n
	}
	if worse > 0 {
		return fmt.Errorf("%d scenarios pass directly and fail through ayegate", worse)
	}
	return nil
}

func (r row) run(dir, bin, suite, server string, verbose bool) (worse int, err error) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	upstream := freePort()
	if err := start(ctx, io.Discard, server, "-http", upstream, fmt.Sprintf("-stateless=%t", r.modern)); err != nil {
		return 0, err
	}
	front, err := r.front(ctx, dir, bin, server, "http://"+upstream+"/")
	if err != nil {
		return 0, err
	}
	direct, _, err := scenarios(ctx, suite, dir, "http://"+upstream+"/", r.revision)
	if err != nil {
		return 0, fmt.Errorf("direct: %w", err)
	}
	through, output, err := scenarios(ctx, suite, dir, front, r.revision)
	if err != nil {
		return 0, fmt.Errorf("through ayegate: %w", err)
	}
	var bad []string
	for name, d := range direct {
		t, ran := through[name]
		switch {
		case d.failed == 0 && (t.failed > 0 || !ran):
			bad = append(bad, fmt.Sprintf("%s: direct %d/%d, through ayegate %d/%d", name, d.passed, d.failed, t.passed, t.failed))
		case t.passed < d.passed && t.failed <= d.failed:
			// A check that does not apply, such as one of SSE where the answer was JSON.
			fmt.Printf("   note: %s: %d of %d checks apply through ayegate\n", name, t.passed, d.passed)
		}
	}
	slices.Sort(bad)
	d, t := total(direct), total(through)
	fmt.Printf("%-24s direct %d passed, %d failed; through ayegate %d passed, %d failed; worse: %d of %d scenarios\n",
		r.name, d.passed, d.failed, t.passed, t.failed, len(bad), len(direct))
	for _, b := range bad {
		fmt.Println("   " + b)
	}
	if verbose && len(bad) > 0 {
		fmt.Println(output)
	}
	return len(bad), nil
}

// front starts ayegate and returns the endpoint that the suite talks to: a small
// proxy that adds the agent's key, which the suite cannot send, and changes
// nothing else.
func (r row) front(ctx context.Context, dir, bin, server, upstream string) (string, error) {
	home, err := os.MkdirTemp(dir, "home-")
	if err != nil {
		return "", err
	}
	listen, outside := freePort(), freePort()
	entry := fmt.Sprintf("{url: %q}", upstream)
	if r.stdio {
		entry = fmt.Sprintf("{command: %q}", server)
	}
	files := map[string]string{
		"ayegate.yaml": fmt.Sprintf("listen: %s\nhosts: [%q]\npolicy: policy.yaml\nservers: {everything: %s}\nagents: [{id: suite}]\n", listen, outside, entry),
		"policy.yaml":  "version: 1\nrules:\n  - {id: all, tool: \"*\", allow: {tier: R0}}\n",
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	cfg := filepath.Join(home, "ayegate.yaml")
	add := exec.Command(bin, "keys", "add", "agent", "suite", "--config", cfg, "-q")
	add.Env = append(os.Environ(), "AYEGATE_HOME="+home)
	add.Stderr = os.Stderr
	key, err := add.Output()
	if err != nil {
		return "", fmt.Errorf("make a key: %w", err)
	}
	os.Setenv("AYEGATE_HOME", home)
	if err := start(ctx, os.Stderr, bin, "serve", "--config", cfg); err != nil {
		return "", err
	}
	if err := listening(listen); err != nil {
		return "", err
	}
	target, err := url.Parse("http://" + listen)
	if err != nil {
		return "", err
	}
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(p *httputil.ProxyRequest) {
		p.SetURL(target)
		p.Out.Host = p.In.Host
		p.Out.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(key)))
	}}
	l, err := net.Listen("tcp", outside)
	if err != nil {
		return "", err
	}
	srv := &http.Server{Handler: proxy, ReadHeaderTimeout: time.Minute}
	go srv.Serve(l) //nolint:errcheck // ends with this process
	return "http://" + outside + "/mcp/everything", nil
}

type score struct{ passed, failed int }

func total(all map[string]score) (t score) {
	for _, s := range all {
		t.passed += s.passed
		t.failed += s.failed
	}
	return t
}

var line = regexp.MustCompile(`^[✓✗] ([a-z0-9-]+): (\d+) passed, (\d+) failed`)

// scenarios runs the suite once. Its exit code is not judged: a fixture that
// fails a scenario by itself is no fault of ayegate.
func scenarios(ctx context.Context, suite, dir, endpoint, revision string) (map[string]score, string, error) {
	out, err := os.MkdirTemp(dir, "out-")
	if err != nil {
		return nil, "", err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, suite, "server", "--url", endpoint, "--requirements", revision, "-o", out)
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(suite)+string(os.PathListSeparator)+os.Getenv("PATH"))
	var b bytes.Buffer
	cmd.Stdout, cmd.Stderr = &b, &b
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return nil, b.String(), err
	}
	found := map[string]score{}
	s := bufio.NewScanner(bytes.NewReader(b.Bytes()))
	for s.Scan() {
		m := line.FindStringSubmatch(s.Text())
		if m == nil {
			continue
		}
		var sc score
		fmt.Sscan(m[2], &sc.passed) //nolint:errcheck // digits, by the expression
		fmt.Sscan(m[3], &sc.failed) //nolint:errcheck // digits, by the expression
		found[m[1]] = sc
	}
	if len(found) == 0 {
		return nil, b.String(), fmt.Errorf("the suite told of no scenario:\n%s", b.String())
	}
	return found, b.String(), nil
}

func start(ctx context.Context, log io.Writer, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		return err
	}
	go cmd.Wait() //nolint:errcheck // killed at the end of the row
	if i := slices.Index(args, "-http"); i >= 0 {
		return listening(args[i+1])
	}
	return nil
}

func listening(addr string) error {
	for range 100 {
		c, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			return c.Close()
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("nothing listens at %s", addr)
}

func freePort() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer l.Close()
	return l.Addr().String()
}
