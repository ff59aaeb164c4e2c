package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/ayegate/ayegate/internal/mcp"
	"github.com/ayegate/ayegate/internal/strictjson"
)

// agentMain is a real MCP client as a command:
//
//	agent [-key FILE] [-server ID | -stdio ID] [-together N] [-times N] TOOL [ARGS]
//	agent [...] -list
//
// It prints what the model would read. It ends with 0 when the tool answered, 3
// when the gateway or the tool said no, and 1 when there was no answer at all.
func agentMain() {
	key := flag.String("key", "", "file of the agent's key")
	server := flag.String("server", "", "one server under its own tool names, instead of all merged")
	stdio := flag.String("stdio", "", "start `ayegate mcp SERVER` and speak over its stdin and stdout")
	era := flag.String("era", string(mcp.NewestLegacy), "revision of MCP")
	together := flag.Int("together", 1, "make the call so often at once, each over a connection of its own")
	times := flag.Int("times", 1, "make the call so often, one after the other, over one connection")
	beside := flag.String("beside", "", "members of the params beside name, arguments and _meta")
	list := flag.Bool("list", false, "list the tools")
	flag.Parse()
	target := mcp.Target{
		Name: "ayegate", Version: mcp.Version(*era), CallLimit: time.Minute,
		Info: []byte(`{"name":"scripted-agent","version":"1"}`), Capabilities: []byte(`{}`),
	}
	if *stdio != "" {
		target.Command = &mcp.Command{Path: "ayegate", Args: []string{"mcp", *stdio}, Environ: os.Environ(), Stderr: os.Stderr}
		for _, name := range []string{"AYEGATE_HOME", "AYEGATE_URL", "AYEGATE_CONFIG", "AYEGATE_AGENT_KEY_FILE", "GORACE"} {
			if v := os.Getenv(name); v != "" {
				target.Command.Env = append(target.Command.Env, name+"="+v)
			}
		}
	} else {
		target.URL = strings.TrimSuffix(os.Getenv("AYEGATE_URL")+"/mcp/"+*server, "/")
		text, err := os.ReadFile(*key)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		target.Header = http.Header{"Authorization": {"Bearer " + strings.TrimSpace(string(text))}}
	}
	a := scripted{target: target, times: *times, beside: *beside}
	if *list {
		os.Exit(a.list())
	}
	tool, args := flag.Arg(0), flag.Arg(1)
	if args == "" {
		args = "{}"
	}
	codes := make([]int, *together)
	var all sync.WaitGroup
	for i := range codes {
		all.Go(func() { codes[i] = a.run(tool, args) })
	}
	all.Wait()
	worst := 0
	for _, c := range codes {
		if c != 0 {
			worst = c
		}
	}
	os.Exit(worst)
}

type scripted struct {
	target mcp.Target
	times  int
	beside string
	print  sync.Mutex
}

func (a *scripted) list() int {
	ctx := context.Background()
	up, err := mcp.Dial(ctx, a.target)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer up.Close()
	tools, err := mcp.ListAll(ctx, up, "tools/list", "tools")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for _, t := range tools {
		name, _ := strictjson.Get(t, "name")
		fmt.Println(strings.Trim(string(name), `"`))
	}
	return 0
}

func (a *scripted) run(tool, args string) int {
	ctx := context.Background()
	up, err := mcp.Dial(ctx, a.target)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer up.Close()
	code := 0
	for i := range a.times {
		params := fmt.Appendf(nil, `{"name":%s,"arguments":%s,"_meta":{"progressToken":%d}}`, strictjson.AppendString(nil, tool), args, i)
		if a.beside != "" {
			params = fmt.Appendf(params[:len(params)-1], ",%s}", a.beside)
		}
		m, err := up.Call(ctx, "tools/call", params, quiet{})
		text, isError := said(m, err)
		a.print.Lock()
		fmt.Println(text)
		a.print.Unlock()
		switch {
		case err != nil:
			return 1
		case isError:
			code = 3
		}
	}
	return code
}

// said is what the model reads of an answer.
func said(m mcp.Message, err error) (text string, isError bool) {
	if err != nil {
		return err.Error(), true
	}
	if m.Error != nil {
		return string(m.Error), true
	}
	var r struct {
		IsError bool `json:"isError"`
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	if err := json.Unmarshal(m.Result, &r); err != nil || len(r.Content) == 0 {
		return string(m.Result), true
	}
	return r.Content[0].Text, r.IsError
}

// quiet takes what the gateway sends while the agent waits, and answers nothing.
type quiet struct{}

func (quiet) Notification(mcp.Message) {}

func (quiet) Ask(context.Context, mcp.Message) ([]byte, *mcp.Error) {
	return nil, &mcp.Error{Code: mcp.CodeMethodNotFound, Message: "this agent answers no questions"}
}

// tamperMain changes a file as somebody does who has it in hands:
//
//	tamper flip FILE N     change one letter of line N
//	tamper drop FILE N     remove line N
//	tamper swap FILE N     swap line N with the next
//	tamper cut FILE N      keep the first N lines and the lines that are no entries
func tamperMain() {
	if err := tamper(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func tamper(how, file, at string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var n int
	if _, err := fmt.Sscan(at, &n); err != nil {
		return err
	}
	lines := strings.SplitAfter(string(text), "\n")
	if n < 1 || n >= len(lines) {
		return errors.New("no such line")
	}
	switch how {
	case "flip":
		i := strings.Index(lines[n-1], `"time":"`) + len(`"time":"`)
		b := []byte(lines[n-1])
		b[i] ^= 1 // another digit
		lines[n-1] = string(b)
	case "drop":
		lines = append(lines[:n-1], lines[n:]...)
	case "swap":
		lines[n-1], lines[n] = lines[n], lines[n-1]
	case "cut":
		lines = lines[:n]
	default:
		return errors.New("tamper how?")
	}
	return os.WriteFile(file, []byte(strings.Join(lines, "")), 0o600)
}
