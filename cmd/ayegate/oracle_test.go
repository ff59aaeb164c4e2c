package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/ayegate/ayegate/internal/mcp"
	"github.com/ayegate/ayegate/internal/strictjson"
)

// oracle is a real MCP server over stdio whose every effect is a line in a file,
// on disk before it answers: what stands there ran, as often as it stands there,
// and nothing else did. Each line is "claim n tool".
type oracle struct {
	log  *os.File
	text string // of the tools' descriptions
	kill string // "sent" or "acted": end the gateway when the call has come, or is done
	at   int    // at this call
	mu   sync.Mutex
	seen int
}

// tools of the oracle; the policy of the test says which of them ask.
var oracleTools = []string{"auto", "act", "pay"}

// oracleMain is the oracle as a program: oracle DIR. It holds a shared lock on
// DIR/alive as long as it lives, so that somebody who has the lock alone knows that
// nothing runs any more. DIR/kill says when to end the gateway, DIR/describe what the
// tools say of themselves.
func oracleMain() {
	flag.Parse()
	dir := flag.Arg(0)
	alive, err := os.OpenFile(filepath.Join(dir, "alive"), os.O_RDONLY, 0)
	if err == nil {
		err = syscall.Flock(int(alive.Fd()), syscall.LOCK_SH)
	}
	if err != nil {
		panic(err)
	}
	o := &oracle{}
	if o.log, err = os.OpenFile(filepath.Join(dir, "effects"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err != nil {
		panic(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "kill")); err == nil {
		_, _ = fmt.Sscan(string(text), &o.kill, &o.at)
	}
	o.text = "leaves a line"
	if text, err := os.ReadFile(filepath.Join(dir, "describe")); err == nil {
		o.text = strings.TrimSpace(string(text))
	}
	_ = mcp.ServeStdio(context.Background(), os.Stdin, os.Stdout, o, mcp.Client{Principal: "stdio", Transport: "stdio"})
}

func (o *oracle) Initialize(_ context.Context, c mcp.Client, _ []byte, _ mcp.Pusher) ([]byte, *mcp.Error) {
	return fmt.Appendf(nil, `{"protocolVersion":%q,"capabilities":{"tools":{}},"serverInfo":{"name":"oracle","version":"1"}}`, c.Version), nil
}

func (o *oracle) Serve(_ context.Context, x mcp.Exchange) {
	const complete = `"resultType":"complete"`
	switch x.Request().Method {
	case "server/discover":
		_ = x.Reply([]byte(`{` + complete + `,"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"oracle","version":"1"}}}`))
	case "tools/list":
		var all []string
		for _, name := range oracleTools {
			all = append(all, `{"name":"`+name+`","description":"`+o.text+`","inputSchema":{"type":"object","properties":{"n":{"type":"string"}},"required":["n"]}}`)
		}
		_ = x.Reply([]byte(`{` + complete + `,"ttlMs":0,"cacheScope":"private","tools":[` + strings.Join(all, ",") + `]}`))
	case "tools/call":
		o.act(x)
	default:
		_ = x.Fail(&mcp.Error{Code: mcp.CodeMethodNotFound, Message: "tools only"})
	}
}

// act leaves the line, and ends the gateway before or after it when told to.
func (o *oracle) act(x mcp.Exchange) {
	var p struct {
		Name      string `json:"name"`
		Arguments struct {
			N string `json:"n"`
		} `json:"arguments"`
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	if err := json.Unmarshal(x.Request().Params, &p); err != nil {
		panic(err)
	}
	claim := strings.Trim(string(p.Meta["dev.ayegate/claim"]), `"`)
	o.mu.Lock()
	o.seen++
	die := o.seen == o.at
	o.mu.Unlock()
	if die && o.kill == "sent" {
		_ = syscall.Kill(os.Getppid(), syscall.SIGKILL)
	}
	if _, err := fmt.Fprintf(o.log, "%s %s %s\n", orElse(claim, "-"), p.Arguments.N, p.Name); err != nil {
		panic(err)
	}
	if err := o.log.Sync(); err != nil {
		panic(err)
	}
	if die && o.kill == "acted" {
		_ = syscall.Kill(os.Getppid(), syscall.SIGKILL)
	}
	text := strictjson.AppendString(nil, "did "+p.Arguments.N)
	_ = x.Reply([]byte(`{"resultType":"complete","content":[{"type":"text","text":` + string(text) + `}]}`))
}

func (o *oracle) Notification(context.Context, mcp.Client, mcp.Message) {}

func (o *oracle) Close(mcp.Client) {}
