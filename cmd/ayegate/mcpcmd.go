package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/ayegate/ayegate/internal/mcp"
)

// maxCall bounds a call through the relay; the gateway has its own, shorter one.
const maxCall = 24 * time.Hour

func (w *world) mcpCmd(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "mcp SERVER", Short: "be one MCP server over stdio, for clients that start their servers", Args: cobra.MaximumNArgs(1),
		Long: `mcp speaks MCP over stdin and stdout as one configured server, under its own
tool names, so that an entry in a client's configuration keeps its name:

  "github": {"command": "ayegate", "args": ["mcp", "github"]}

Where ayegate runs already, it talks to that one with the key of the local agent
($AYEGATE_AGENT_KEY_FILE, or the .agent-key beside its store). Otherwise it
starts one in this process, with the pages at the configured address. Nothing is
opened before the client's first message. Without SERVER it is all servers merged.`,
		Example: "  claude mcp add files -- ayegate mcp fs",
		RunE: func(cmd *cobra.Command, args []string) error {
			s := &lazy{start: func(ctx context.Context) (mcp.Server, func(), error) { return w.stdioServer(ctx, g, first(args)) }}
			defer s.end()
			c := mcp.Client{Principal: principalOf(localAgent), Session: fmt.Sprintf("stdio-%d", os.Getpid()), Server: first(args)}
			err := mcp.ServeStdio(cmd.Context(), w.in, w.out, s, c)
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		},
	}
}

func principalOf(id string) string { return id + "\x00" }

// stdioServer is what answers the client: the running ayegate, or one of our own.
func (w *world) stdioServer(ctx context.Context, g *globals, server string) (mcp.Server, func(), error) {
	base, err := w.base(g)
	if err != nil {
		return nil, nil, err
	}
	if w.alive(ctx, base) {
		key, err := w.agentKey(g)
		if err != nil {
			return nil, nil, err
		}
		return &relay{url: strings.TrimSuffix(base+"/mcp/"+server, "/"), key: key}, func() {}, nil
	}
	return w.embedded(ctx, g)
}

// alive reports whether an ayegate answers at base.
func (w *world) alive(ctx context.Context, base string) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/healthz", nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

func (w *world) agentKey(g *globals) (string, error) {
	if key, ok := w.env("AYEGATE_AGENT_KEY"); ok && key != "" {
		return key, nil
	}
	cfg, dir, err := w.load(g.config)
	if err != nil {
		return "", err
	}
	name := w.agentKeyFile(cfg, dir)
	text, err := os.ReadFile(name)
	if err != nil {
		return "", &exit{code: exitNotAllowed, err: fmt.Errorf("ayegate runs, but there is no agent key at %q", name), hint: "make one with: ayegate keys add agent NAME, and name its file in AYEGATE_AGENT_KEY_FILE"}
	}
	return strings.TrimSpace(string(text)), nil
}

// embedded starts a whole ayegate in this process: stdin and stdout are the
// agent's, the pages are for the people.
func (w *world) embedded(ctx context.Context, g *globals) (mcp.Server, func(), error) {
	cfg, dir, err := w.load(g.config)
	if err != nil {
		return nil, nil, err
	}
	l, err := bind(cfg.Listen, true)
	if err != nil {
		return nil, nil, err
	}
	cfg.Listen = l.Addr().String()
	p, err := w.open(ctx, cfg, dir, w.logger(false))
	if err != nil {
		return nil, nil, errors.Join(err, l.Close())
	}
	if len(p.cfg.Agents) > 0 {
		p.close(ctx)
		return nil, nil, errors.Join(&exit{
			code: exitUsage, err: errors.New("the configuration names agents, so this client needs to say which one it is"),
			hint: "start ayegate serve, and name the agent's key file in AYEGATE_AGENT_KEY_FILE",
		}, l.Close())
	}
	file, err := p.leaveLink(ctx)
	if err != nil {
		p.close(ctx)
		return nil, nil, errors.Join(err, l.Close())
	}
	fmt.Fprintf(w.err, "ayegate %s runs inside this client; people decide at %s\nthe link to sign in once is in %s\n", version, cfg.BaseURL(), file)
	serving, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := p.listen(serving, l); err != nil {
			p.log.Error("the pages stopped", "err", err)
		}
	}()
	return p.gateway, func() {
		stop()
		<-done
		p.close(context.WithoutCancel(ctx))
	}, nil
}

// leaveLink puts a sign-in link where the person finds it. It never goes to
// stderr here: that belongs to the client, which is the agent's side, and whoever
// has the link is the person (API-01).
func (p *program) leaveLink(ctx context.Context) (file string, err error) {
	home, err := p.w.home()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(home, 0o700); err != nil {
		return "", err
	}
	link, err := p.web.NewSignInLink(ctx, p.directory().People[0].ID)
	if err != nil {
		return "", err
	}
	file = filepath.Join(home, "signin-link")
	return file, replaceFile(file, []byte(link+"\n"))
}

// lazy starts the server behind it with the first message: some clients start a
// server only to look whether it starts, and a second one at the same time.
type lazy struct {
	start func(context.Context) (mcp.Server, func(), error)

	mu   sync.Mutex
	s    mcp.Server
	stop func()
	err  error
}

func (l *lazy) server(ctx context.Context) (mcp.Server, *mcp.Error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.s == nil && l.err == nil {
		l.s, l.stop, l.err = l.start(context.WithoutCancel(ctx))
	}
	if l.err != nil {
		return nil, &mcp.Error{Code: mcp.CodeInternal, Message: "ayegate could not start, nothing ran: " + l.err.Error()}
	}
	return l.s, nil
}

func (l *lazy) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stop != nil {
		l.stop()
	}
}

func (l *lazy) Initialize(ctx context.Context, c mcp.Client, params []byte, push mcp.Pusher) ([]byte, *mcp.Error) {
	s, err := l.server(ctx)
	if err != nil {
		return nil, err
	}
	return s.Initialize(ctx, c, params, push)
}

func (l *lazy) Serve(ctx context.Context, x mcp.Exchange) {
	s, err := l.server(ctx)
	if err != nil {
		_ = x.Fail(err) // the client may be gone
		return
	}
	s.Serve(ctx, x)
}

func (l *lazy) Notification(ctx context.Context, c mcp.Client, m mcp.Message) {
	if s, err := l.server(ctx); err == nil {
		s.Notification(ctx, c, m)
	}
}

func (l *lazy) Close(c mcp.Client) {
	l.mu.Lock()
	s := l.s
	l.mu.Unlock()
	if s != nil {
		s.Close(c)
	}
}
