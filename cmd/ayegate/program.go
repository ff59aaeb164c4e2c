package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/ayegate/ayegate/internal/config"
	"github.com/ayegate/ayegate/internal/desk"
	"github.com/ayegate/ayegate/internal/gateway"
	"github.com/ayegate/ayegate/internal/identity"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/mcp"
	"github.com/ayegate/ayegate/internal/policy"
	"github.com/ayegate/ayegate/internal/store"
	"github.com/ayegate/ayegate/internal/store/memory"
	"github.com/ayegate/ayegate/internal/store/sqlite"
	"github.com/ayegate/ayegate/internal/web"
	"github.com/ayegate/ayegate/internal/web/credential"
)

// program is a running ayegate: everything wired, nothing listening yet. The
// commands serve, mcp and demo start it, and so do the tests.
type program struct {
	w        *world
	cfg      config.Config
	dir      string // relative paths of the configuration begin here
	log      *slog.Logger
	store    store.Store
	signer   *ledger.Signer
	desk     *desk.Desk
	creds    *credential.Credentials
	gateway  *gateway.Gateway
	endpoint *mcp.Endpoint
	web      *web.Web

	policyName string
	policySeen string // revision or content that was last judged
	policyGone int    // how often in a row it could not be read
	anchor     string // file of the last checkpoint, "" where there is none
	anchored   int64  // its size
	sizeAtOpen int64  // of the record when the store was opened
	stop       context.CancelFunc
	work       sync.WaitGroup
}

// localAgent and localPerson are who is there when the configuration names nobody.
const (
	localAgent  = "local"
	localPerson = "you"
)

// open wires a program. Nothing listens and nothing is started before it returns;
// what was executing when the last process died is unknown from here on.
func (w *world) open(ctx context.Context, cfg config.Config, dir string, log *slog.Logger) (_ *program, err error) {
	if err := cfg.Check(); err != nil {
		return nil, &exit{code: exitUsage, err: err, hint: "nothing was started"}
	}
	p := &program{w: w, cfg: cfg, dir: dir, log: log}
	ctx, p.stop = context.WithCancel(ctx)
	defer func() {
		if err != nil {
			p.close(ctx)
		}
	}()
	pol, err := p.readPolicy()
	if err != nil {
		return p, &exit{code: exitUsage, err: err, hint: "a policy with a fault is never loaded; nothing was started"}
	}
	if err := p.openStore(ctx); err != nil {
		return p, err
	}
	roots := make(map[string]string, len(cfg.Workspaces))
	for name, path := range cfg.Workspaces {
		roots[name] = within(dir, path)
	}
	p.desk, err = desk.New(desk.Config{
		Store: p.store, Policy: pol, Rand: w.rand, Log: log, PendingPerAgent: cfg.Limits.PendingPerAgent,
		Replay: cfg.Limits.ResultReplay, Roots: roots,
	})
	if err != nil {
		return p, err
	}
	if err := p.desk.Recover(ctx, version); err != nil {
		return p, fmt.Errorf("the store could not be brought up to date: %w", err)
	}
	if err := p.checkAnchor(ctx); err != nil {
		return p, err
	}
	p.writeAnchor(ctx) // from here on the record is promised to somebody
	if p.creds, err = credential.New(p.store, w.rand, p.directory()); err != nil {
		return p, err
	}
	if err := p.openEdges(ctx); err != nil {
		return p, err
	}
	p.background(ctx)
	return p, nil
}

func (p *program) openStore(ctx context.Context) error {
	kind, name, _ := strings.Cut(p.cfg.Store, ":")
	var err error
	if kind == "memory" {
		if p.store, err = memory.Open(memory.Config{Now: p.w.now}); err != nil {
			return err
		}
		p.signer, err = ledger.NewKey("ayegate.local/memory", p.w.rand)
		return err
	}
	path := within(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	s, err := sqlite.Open(ctx, sqlite.Config{Path: path, Now: p.w.now})
	if err != nil {
		return &exit{code: exitFailure, err: err, hint: "one process owns the store; is another ayegate running?"}
	}
	p.store, p.anchor = s, path+".checkpoint"
	if p.w.over != nil {
		p.store = p.w.over(s)
	}
	head, err := s.Head(ctx)
	if err != nil {
		return err
	}
	p.sizeAtOpen = head.Size
	p.signer, err = p.w.ledgerKey(path + ".key")
	return err
}

// ledgerKey reads the key that signs heads of the record, and makes it once. It
// lies beside the database, not in it: a copy of the database cannot sign.
func (w *world) ledgerKey(name string) (*ledger.Signer, error) {
	text, err := os.ReadFile(name)
	if err == nil {
		return ledger.ParseKey(strings.TrimSpace(string(text)))
	}
	if !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	id := make([]byte, 6)
	if _, err := w.rand.Read(id); err != nil {
		return nil, err
	}
	key, err := ledger.NewKey(fmt.Sprintf("ayegate.local/%x", id), w.rand)
	if err != nil {
		return nil, err
	}
	return key, os.WriteFile(name, []byte(key.Secret()+"\n"), 0o600)
}

// directory is who may ask and who may decide.
func (p *program) directory() credential.Directory {
	var d credential.Directory
	for _, h := range p.cfg.People {
		d.People = append(d.People, identity.Human{ID: h.ID, Name: h.Name, Groups: h.Groups})
	}
	if len(d.People) == 0 {
		d.People = []identity.Human{{ID: localPerson, Name: "You"}}
	}
	for _, a := range p.cfg.Agents {
		d.Agents = append(d.Agents, identity.Agent{ID: a.ID, Owner: a.Owner, Workspace: a.Workspace, Device: a.Device})
	}
	if len(d.Agents) == 0 {
		d.Agents = []identity.Agent{{ID: localAgent, Owner: "user:" + d.People[0].ID, Workspace: "default"}}
	}
	return d
}

func (p *program) openEdges(ctx context.Context) (err error) {
	servers := make(map[string]gateway.Server, len(p.cfg.Servers))
	for id, s := range p.cfg.Servers {
		servers[id] = gateway.Server{Target: p.target(id, s), IdempotencyMeta: s.IdempotencyMeta}
	}
	p.gateway, err = gateway.New(ctx, gateway.Config{
		Desk: p.desk, Servers: servers, Identify: p.identify, BaseURL: p.cfg.BaseURL(), Version: version,
		Hold: gateway.Hold{Default: p.cfg.Hold.Default, Clients: p.cfg.Hold.Clients},
		Now:  p.w.now, Rand: p.w.rand, Log: p.log,
	})
	if err != nil {
		return err
	}
	p.endpoint = mcp.NewEndpoint(ctx, mcp.EndpointConfig{
		Server: p.gateway, Authenticate: p.authenticate, AllowedHosts: p.cfg.AllowedHosts(), Bound: p.gateway.Bound,
		Limits: mcp.EndpointLimits{Body: p.cfg.Limits.MaxBody}, Now: p.w.now, Rand: p.w.rand, Log: p.log,
	})
	p.web, err = web.New(web.Config{
		Desk: p.desk, Store: p.store, Credentials: p.creds, Now: p.w.now, Rand: p.w.rand, Log: p.log,
		BaseURL: p.cfg.BaseURL(), AllowedHosts: p.cfg.AllowedHosts(), Executor: executor{p.gateway}, Signer: p.signer,
		MaxBody: p.cfg.Limits.MaxBody, Version: version,
	})
	return err
}

func (p *program) target(id string, s config.Server) mcp.Target {
	t := mcp.Target{Name: id, CallLimit: s.Timeout, Log: p.log}
	if s.URL != "" {
		t.URL, t.Header = s.URL, http.Header{}
		for name, v := range s.Headers {
			t.Header.Set(name, v)
		}
		return t
	}
	// A server starts in the configuration's folder, never in the one ayegate was
	// started in: that may be an agent's workspace, and its files would be the
	// server's settings (POL-17).
	t.Command = &mcp.Command{Path: s.Command, Args: s.Args, Dir: filepath.Join(p.dir, s.Dir), Environ: os.Environ()}
	if filepath.IsAbs(s.Dir) {
		t.Command.Dir = s.Dir
	}
	for name, v := range s.Env {
		t.Command.Env = append(t.Command.Env, name+"="+v)
	}
	return t
}

// principal is how the endpoint and the gateway speak of an agent: its id and,
// where its key is bound to one, the device.
func principal(a identity.Agent) string { return a.ID + "\x00" + a.Device }

func (p *program) authenticate(r *http.Request) (string, error) {
	text, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || len(r.Header.Values("Authorization")) != 1 {
		return "", errors.New("an agent key is needed: Authorization: Bearer aye_agent_…")
	}
	if class, _, ok := credential.ClassOf(text); ok && class != credential.Agent {
		return "", &mcp.AuthError{Status: http.StatusForbidden, Err: errors.New("wrong_credential_class: this path is for agents; people decide elsewhere")}
	}
	a, _, err := p.creds.Agent(r.Context(), text)
	if err != nil {
		return "", err
	}
	return principal(a), nil
}

func (p *program) identify(who string) (identity.Agent, error) {
	id, device, _ := strings.Cut(who, "\x00")
	a, ok := p.creds.AgentOf(id)
	if !ok {
		return identity.Agent{}, credential.ErrDisabled
	}
	a.Device = device
	return a, nil
}

// executor lets the JSON API perform calls through the gateway.
type executor struct{ *gateway.Gateway }

func (e executor) Tool(ctx context.Context, from identity.Agent, server, tool string, extra []byte) (desk.Do, desk.Tool, error) {
	do, known, err := e.Gateway.Tool(ctx, from, server, tool, extra)
	switch {
	case errors.Is(err, gateway.ErrNoServer):
		err = web.ErrNoServer
	case errors.Is(err, gateway.ErrNoTool):
		err = web.ErrNoTool
	}
	return do, known, err
}

// handler serves both planes.
func (p *program) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/mcp", p.endpoint)
	mux.Handle("/mcp/{server}", p.endpoint)
	p.web.Mount(mux)
	return mux
}

// background runs what goes on by itself until the program stops.
func (p *program) background(ctx context.Context) {
	p.work.Go(func() { p.desk.Run(ctx) })
	p.work.Go(func() {
		if err := p.web.Run(ctx); err != nil && ctx.Err() == nil {
			p.log.Error("metrics stopped", "err", err)
		}
	})
	p.work.Go(func() { p.every(ctx, time.Second, p.reloadPolicy) })
	p.work.Go(func() { p.every(ctx, 10*time.Second, p.writeAnchor) })
}

func (p *program) every(ctx context.Context, d time.Duration, do func(context.Context)) {
	tick := time.NewTicker(d)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			do(ctx)
		}
	}
}

// gcPercent lets the heap grow to three times what is in use. That takes a tenth
// off the processor time of a call and leaves a gateway with 64 calls in flight
// below 60 MB. There is no memory limit beside it: thousands of held calls would
// pass one, and the collector would then run all the time. GOGC in the
// environment wins.
const gcPercent = 200

// listen serves until ctx ends, then lets go of everybody and returns.
func (p *program) listen(ctx context.Context, l net.Listener) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	srv := &http.Server{
		Handler: p.handler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(p.log.Handler(), slog.LevelDebug),
	}
	if p.cfg.TLS.On() {
		cert, err := tls.LoadX509KeyPair(within(p.dir, p.cfg.TLS.Cert), within(p.dir, p.cfg.TLS.Key))
		if err != nil {
			return err
		}
		srv.TLSConfig = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
		l = tls.NewListener(l, srv.TLSConfig)
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	p.web.Close()
	if err := p.endpoint.Shutdown(grace); err != nil {
		p.log.Warn("agents were cut off", "err", err)
	}
	if err := srv.Shutdown(grace); err != nil {
		_ = srv.Close() // what is left has had its time
	}
	return nil
}

// close ends the program. What is being executed is recorded as far as it is
// known.
func (p *program) close(ctx context.Context) {
	if p.gateway != nil {
		p.gateway.Shutdown()
	}
	p.stop()
	p.work.Wait()
	if p.store == nil {
		return
	}
	p.writeAnchor(context.WithoutCancel(ctx))
	if err := p.store.Close(); err != nil {
		p.log.Error("the store did not close cleanly", "err", err)
	}
}

// readPolicy reads the configured policy, or the starter policy.
func (p *program) readPolicy() (*policy.Policy, error) {
	if p.cfg.Policy == "" {
		p.policyName = "starter policy"
		return policy.Parse(p.policyName, policy.Starter())
	}
	p.policyName = within(p.dir, p.cfg.Policy)
	src, err := os.ReadFile(p.policyName)
	if err != nil {
		return nil, err
	}
	p.policySeen = string(src)
	return policy.Parse(p.policyName, src)
}

// reloadPolicy puts a changed policy file in force, whole or not at all. A file
// with a fault is refused loudly, once, and the old policy stays.
func (p *program) reloadPolicy(ctx context.Context) {
	if p.cfg.Policy == "" {
		return
	}
	src, err := os.ReadFile(p.policyName)
	if err != nil {
		// A file that is gone for a moment is being replaced.
		if p.policyGone++; p.policyGone == 3 {
			p.log.Error("the policy cannot be read, the old one stays in force", "policy", p.policyName, "err", err)
		}
		return
	}
	p.policyGone = 0
	if string(src) == p.policySeen {
		return
	}
	p.policySeen = string(src)
	pol, err := policy.Parse(p.policyName, src)
	if err != nil {
		p.log.Error("the policy was NOT loaded, the old one stays in force", "policy", p.policyName, "err", err)
		if err := p.desk.RejectPolicy(ctx, p.policyName, err); err != nil {
			p.log.Error("that is not on record", "err", err)
		}
		return
	}
	if err := p.desk.SetPolicy(ctx, p.policyName, pol); err != nil {
		p.policySeen = "" // try again
		p.log.Error("the policy was NOT loaded: it could not be recorded", "err", err)
		return
	}
	p.log.Info("policy loaded", "policy", p.policyName, "revision", pol.Revision())
}
