package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/web/credential"
)

func (w *world) serveCmd(g *globals) *cobra.Command {
	var listen, storeName string
	var verbose bool
	c := &cobra.Command{
		Use: "serve", Short: "run the gateway and the pages", Args: cobra.NoArgs,
		Long: `serve runs the gateway: agents ask at /mcp and /v1/calls, people decide on the
pages. Without a configuration it starts on loopback with the starter policy, which
asks about everything, and says what to do next.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, dir, err := w.load(g.config)
			if err != nil {
				return err
			}
			if listen != "" {
				cfg.Listen = listen
			}
			if storeName != "" {
				cfg.Store = storeName
			}
			if err := cfg.Check(); err != nil {
				return &exit{code: exitUsage, err: err, hint: "nothing was started"}
			}
			l, err := bind(cfg.Listen, false)
			if err != nil {
				return err
			}
			cfg.Listen = l.Addr().String()
			p, err := w.open(cmd.Context(), cfg, dir, w.logger(verbose))
			if err != nil {
				return errors.Join(err, l.Close())
			}
			defer p.close(cmd.Context())
			if err := p.localKey(cmd.Context()); err != nil {
				return errors.Join(err, l.Close())
			}
			if err := p.greet(cmd.Context(), g); err != nil {
				return errors.Join(err, l.Close())
			}
			if !g.json && !g.quiet {
				p.work.Go(func() { p.announce(cmd.Context()) })
			}
			return p.listen(cmd.Context(), l)
		},
	}
	c.Flags().StringVar(&listen, "listen", "", "address, instead of the configured one")
	c.Flags().StringVar(&storeName, "store", "", "store, instead of the configured one: sqlite:FILE or memory:")
	c.Flags().BoolVarP(&verbose, "verbose", "v", false, "log more")
	return c
}

func (w *world) logger(verbose bool) *slog.Logger {
	level := slog.LevelInfo
	if verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(w.err, &slog.HandlerOptions{Level: level}))
}

// bind opens the listener. With another set, a port that is taken is no error:
// a free one serves as well.
func bind(addr string, another bool) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err == nil {
		return l, nil
	}
	if another && errors.Is(err, syscall.EADDRINUSE) {
		return net.Listen("tcp", "127.0.0.1:0")
	}
	return nil, &exit{code: exitFailure, err: err, hint: "choose another address with --listen, or see whether ayegate runs already: ayegate doctor"}
}

// announce prints a line for every call that begins to wait, until ctx ends.
func (p *program) announce(ctx context.Context) {
	head, err := p.store.Head(ctx)
	if err != nil {
		return
	}
	for line, err := range p.store.Follow(ctx, head.Size) {
		if err != nil {
			return
		}
		e, err := ledger.ParseEntry(line)
		if err != nil || e.Kind != ledger.RequestAsked {
			continue
		}
		r, err := p.store.Get(ctx, approval.ID(e.Subject))
		if err != nil || r.State != approval.Pending {
			continue
		}
		fmt.Fprintf(p.w.out, " waits    %s  %s %s  %s.%s   %s/r/%s\n", r.Code, r.Verdict.Tier, r.Verdict.Tier.Word(),
			r.Call.Server(), oneLine(r.Call.Tool()), p.cfg.BaseURL(), r.Code)
	}
}

// greet says what runs and what to do next.
func (p *program) greet(ctx context.Context, g *globals) error {
	who := p.directory().People[0]
	link := ""
	if p.cfg.SignIn.Local {
		var err error
		if link, err = p.web.NewSignInLink(ctx, who.ID); err != nil {
			return err
		}
	}
	names := slices.Sorted(maps.Keys(p.cfg.Servers))
	if g.json {
		return p.w.line(map[string]any{
			"schema": "ayegate.serve/v1", "url": p.cfg.BaseURL(), "signin": link, "store": p.store.Name(),
			"policy": p.desk.Policy().Revision(), "servers": names,
		})
	}
	out := p.w.out
	fmt.Fprintf(out, "ayegate %s   %s\n\n", version, p.cfg.BaseURL())
	fmt.Fprintf(out, " store    %s\n", p.store.Name())
	fmt.Fprintf(out, " policy   %s   %s\n", p.policyName, p.desk.Policy().Revision()[:19])
	if len(names) == 0 {
		fmt.Fprintf(out, " servers  none. Name your MCP servers in a configuration: ayegate serve --config ayegate.yaml\n")
	} else {
		fmt.Fprintf(out, " servers  %s   agents connect to %s/mcp/%s\n", strings.Join(names, ", "), p.cfg.BaseURL(), names[0])
	}
	if keys, err := p.creds.Keys(ctx); err == nil && !slices.ContainsFunc(keys, func(k credential.Key) bool { return k.Class == credential.Agent }) {
		fmt.Fprintf(out, " agents   none has a key. Stop, then: ayegate keys add agent %s\n", p.directory().Agents[0].ID)
	}
	if link != "" {
		fmt.Fprintf(out, " sign in  %s   (as %s, once, within 10 minutes)\n", link, who.ID)
	}
	fmt.Fprintln(out)
	return nil
}
