package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/ayegate/ayegate/api"
	"github.com/ayegate/ayegate/internal/config"
	"github.com/ayegate/ayegate/internal/demo"
	"github.com/ayegate/ayegate/internal/mcp"
	"github.com/ayegate/ayegate/internal/web/credential"
)

func (w *world) demoCmd(g *globals) *cobra.Command {
	var listen string
	var noBrowser bool
	c := &cobra.Command{
		Use: "demo", Short: "see the whole product work in a temporary folder, in one minute", Args: cobra.NoArgs,
		Long: `demo starts, in one process and a temporary folder, a gateway, three real MCP
servers over stdio (files, a toy bank, a SQL table) and a scripted agent. The agent
reads, writes, pays and erases; you decide. Nothing outside the folder is touched,
no network is used, and everything is removed at the end. With --no-input a script
decides.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := os.MkdirTemp("", "ayegate-demo-")
			if err != nil {
				return err
			}
			defer os.RemoveAll(dir)
			return w.demo(cmd.Context(), g, dir, listen, noBrowser)
		},
	}
	c.Flags().StringVar(&listen, "listen", "127.0.0.1:7777", "address; a free port is taken when it is in use")
	c.Flags().BoolVar(&noBrowser, "no-browser", false, "do not open the pages in a browser")
	return c
}

// toyCmd is what the demo's gateway starts as its servers.
func (w *world) toyCmd() *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use: "demo-server KIND", Short: "one toy MCP server of the demo, over stdio", Args: cobra.ExactArgs(1), Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return demo.Serve(cmd.Context(), args[0], dir, w.in, w.out)
		},
	}
	c.Flags().StringVar(&dir, "dir", "", "its world")
	return c
}

// demoConfig is a configuration like anybody's, with toys behind it.
func demoConfig(dir, listen string) (config.Config, error) {
	self, err := os.Executable()
	if err != nil {
		return config.Config{}, err
	}
	cfg := config.Default()
	cfg.Listen = listen
	cfg.Policy = "policy.yaml"
	cfg.Agents = []config.Agent{{ID: "demo-agent", Owner: "user:" + localPerson, Workspace: "demo"}}
	cfg.People = []config.Person{{ID: localPerson, Name: "You"}}
	cfg.Workspaces = map[string]string{"demo": filepath.Join(dir, "files")}
	cfg.Hold.Default = 10 * time.Minute // the agent of the demo is patient
	cfg.Servers = map[string]config.Server{}
	for _, kind := range demo.Servers {
		world := dir
		if kind == "fs" {
			world = filepath.Join(dir, "files")
		}
		cfg.Servers[kind] = config.Server{Command: self, Args: []string{"demo-server", kind, "--dir", world}}
	}
	return cfg, os.WriteFile(filepath.Join(dir, "policy.yaml"), demo.Policy, 0o600)
}

func (w *world) demo(ctx context.Context, g *globals, dir, listen string, noBrowser bool) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	files := filepath.Join(dir, "files")
	if err := errors.Join(os.Mkdir(files, 0o700), os.WriteFile(filepath.Join(files, "notes.txt"), []byte(demo.Notes), 0o600)); err != nil {
		return err
	}
	l, err := bind(listen, true)
	if err != nil {
		return err
	}
	cfg, err := demoConfig(dir, l.Addr().String())
	if err != nil {
		return errors.Join(err, l.Close())
	}
	p, err := w.open(ctx, cfg, dir, slog.New(slog.NewTextHandler(w.err, &slog.HandlerOptions{Level: slog.LevelWarn})))
	if err != nil {
		return errors.Join(err, l.Close())
	}
	defer p.close(ctx)
	served := make(chan error, 1)
	serving, stopServing := context.WithCancel(ctx)
	go func() { served <- p.listen(serving, l) }()
	defer func() {
		stopServing()
		if err := <-served; err != nil {
			p.log.Error("the pages stopped", "err", err)
		}
	}()

	s, err := w.stage(ctx, g, p, dir)
	if err != nil {
		return err
	}
	defer s.agent.Close()
	s.welcome(l.Addr().String() != listen)
	if !noBrowser && !g.noInput && !g.json {
		s.openBrowser(ctx)
	}
	for i, step := range demo.Script {
		if err := s.play(ctx, i+1, step); err != nil {
			return err
		}
	}
	return s.finale(ctx)
}

// stage is what the demo plays on: an agent and a person, each with a credential
// of its own kind, and both come through the front door.
type stage struct {
	w       *world
	g       *globals
	p       *program
	dir     string
	agent   mcp.Upstream
	person  *api.Client
	link    string
	started time.Time
	keys    chan string // lines that the person types; nil when nobody is there

	calls, allowed, approved, denied int
}

func (w *world) stage(ctx context.Context, g *globals, p *program, dir string) (*stage, error) {
	_, key, err := p.creds.Add(ctx, credential.System(), credential.Spec{Class: credential.Agent, For: "demo-agent"})
	if err != nil {
		return nil, err
	}
	_, token, err := p.creds.Add(ctx, credential.System(), credential.Spec{Class: credential.Human, For: localPerson})
	if err != nil {
		return nil, err
	}
	s := &stage{w: w, g: g, p: p, dir: dir, started: w.now()}
	if s.link, err = p.web.NewSignInLink(ctx, localPerson); err != nil {
		return nil, err
	}
	if s.person, err = api.NewClient(p.cfg.BaseURL(), token, nil); err != nil {
		return nil, err
	}
	s.agent, err = mcp.Dial(ctx, mcp.Target{
		Name: "ayegate", URL: p.cfg.BaseURL() + "/mcp", Header: http.Header{"Authorization": {"Bearer " + key}},
		Version: mcp.NewestLegacy, Info: []byte(`{"name":"ayegate-demo-agent","version":"1"}`), Capabilities: []byte(`{}`), CallLimit: time.Hour,
	})
	if err != nil {
		return nil, fmt.Errorf("the agent of the demo could not connect: %w", err)
	}
	if !g.noInput {
		s.keys = w.lines()
	}
	return s, nil
}

func (s *stage) welcome(moved bool) {
	if s.g.json {
		return
	}
	out := s.w.out
	fmt.Fprintf(out, "ayegate %s demo   everything lives in %s and is removed at the end\n\n", version, s.dir)
	fmt.Fprintf(out, " gateway   %s\n", s.p.cfg.BaseURL())
	if moved {
		fmt.Fprintf(out, "           (port 7777 is taken, so this is another one)\n")
	}
	fmt.Fprintf(out, " servers   fs, bank, db (real MCP over stdio)\n")
	fmt.Fprintf(out, " agent     scripted client, MCP %s\n", mcp.NewestLegacy)
	if !s.g.noInput {
		fmt.Fprintf(out, " sign in   %s   (once)\n", s.link)
	}
	fmt.Fprintln(out)
}

// openBrowser opens the one-time link. Over SSH there is no browser here.
func (s *stage) openBrowser(ctx context.Context) {
	if _, ssh := s.w.env("SSH_CONNECTION"); ssh {
		fmt.Fprintf(s.w.out, " You are connected by SSH. To see the pages: ssh -L 7777:%s HOST, then open the link.\n\n", s.p.cfg.Listen)
		return
	}
	if !s.w.terminal() {
		return
	}
	opener := map[string][]string{"darwin": {"open"}, "windows": {"rundll32", "url.dll,FileProtocolHandler"}}[runtime.GOOS]
	if opener == nil {
		opener = []string{"xdg-open"}
	}
	path, err := exec.LookPath(opener[0])
	if err != nil {
		return
	}
	_ = exec.CommandContext(ctx, path, append(opener[1:], s.link)...).Start() // a link that did not open is printed above
}
