package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ayegate/ayegate/api"
	"github.com/ayegate/ayegate/internal/config"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/web/credential"
)

func (w *world) keysCmd(g *globals) *cobra.Command {
	c := &cobra.Command{
		Use: "keys", Short: "make, list and revoke keys of agents and tokens of people",
		Long: `An agent asks with its key, a person decides with a token or a browser session;
neither can do what the other may. A key is printed once and kept only as a hash.
While ayegate runs, keys are made through it and that needs your token; otherwise
the store is opened directly.`,
		RunE: group,
	}
	c.AddCommand(w.keysAdd(g), w.keysList(g), w.keysRevoke(g))
	return c
}

func (w *world) keysAdd(g *globals) *cobra.Command {
	var save bool
	var note string
	c := &cobra.Command{
		Use: "add agent|human NAME", Short: "make a credential and print it once", Args: cobra.ExactArgs(2),
		Example: "  ayegate keys add agent release-bot\n  ayegate keys add human ana --save",
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] != "agent" && args[0] != "human" {
				return usage("%q is neither agent nor human", args[0])
			}
			text, err := w.addKey(cmd.Context(), g, args[0], args[1], note)
			if err != nil {
				return err
			}
			return w.hand(g, args[0], args[1], text, save)
		},
	}
	c.Flags().BoolVar(&save, "save", false, "write a person's token to your token file instead of printing it")
	c.Flags().StringVar(&note, "note", "", "what it is for")
	return c
}

// addKey makes a credential through the running server, or in the store when
// nothing runs.
func (w *world) addKey(ctx context.Context, g *globals, class, name, note string) (string, error) {
	if c, err := w.client(g); err == nil {
		k, err := c.AddKey(ctx, api.KeyRequest{Class: class, For: name, Note: note})
		if err == nil {
			return k.Credential, nil
		}
		var p *api.Problem
		if errors.As(err, &p) && !errors.Is(err, api.Unauthenticated) {
			return "", err
		}
	}
	var text string
	err := w.withCredentials(ctx, g, func(c *credential.Credentials) (err error) {
		by := ledger.Actor{Kind: ledger.System, ID: "ayegate", Via: "store"}
		_, text, err = c.Add(ctx, by, credential.Spec{Class: credential.Class(class), For: name, Note: note})
		return err
	})
	if errors.Is(err, credential.ErrHolder) {
		return "", &exit{code: exitNotFound, err: fmt.Errorf("the configuration names no %s %q", class, visible(name)), hint: "name them in ayegate.yaml, agents: [{id: " + name + "}] or people: [{id: " + name + "}]; where it names nobody there are the agent " + localAgent + " and the person " + localPerson}
	}
	return text, err
}

// withCredentials opens the store of the configuration for one change of its keys.
func (w *world) withCredentials(ctx context.Context, g *globals, do func(*credential.Credentials) error) error {
	cfg, dir, err := w.load(g.config)
	if err != nil {
		return err
	}
	p := &program{w: w, cfg: cfg, dir: dir, log: w.logger(false), stop: func() {}}
	if err := p.openStore(ctx); err != nil {
		var e *exit
		if errors.As(err, &e) {
			e.hint = "ayegate seems to be running: stop it for a moment, or use a token that you have (ayegate keys add human NAME --save, once, before it starts)"
		}
		return err
	}
	if p.sizeAtOpen > 0 {
		p.anchor = "" // whether the record is the promised one is for serve to judge, before a newer promise hides it
	}
	defer p.close(ctx)
	c, err := credential.New(p.store, w.rand, p.directory())
	if err != nil {
		return err
	}
	return do(c)
}

// hand gives the credential to the person, once.
func (w *world) hand(g *globals, class, name, text string, save bool) error {
	if save && class != "human" {
		return usage("--save keeps a person's token; an agent's key belongs into the agent's configuration")
	}
	if save {
		file, err := w.tokenFile()
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return err
		}
		if err := replaceFile(file, []byte(text+"\n")); err != nil {
			return err
		}
		if !g.quiet {
			fmt.Fprintf(w.err, "Saved to %s. Commands on this terminal now act as %s.\n"+
				"An agent that runs as the same user can read it too: where that matters, decide in the browser.\n", file, name)
		}
		return nil
	}
	if g.json {
		return w.object(map[string]string{"schema": "ayegate.key/v1", "class": class, "for": name, "credential": text})
	}
	fmt.Fprintln(w.out, text)
	if !g.quiet {
		fmt.Fprintln(w.err, "This is shown once. Send it as: Authorization: Bearer "+strings.SplitN(text, "_", 3)[0]+"_"+class+"_…")
	}
	return nil
}

func (w *world) keysList(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "ls", Short: "list credentials, without their secrets", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := w.client(g)
			if err != nil {
				return err
			}
			list, err := c.Keys(cmd.Context())
			if err != nil {
				return reached(err)
			}
			for _, k := range list.Keys {
				if g.json {
					if err := w.line(k); err != nil {
						return err
					}
					continue
				}
				fmt.Fprintf(w.out, "%s  %-5s  %s  made %s by %s  %s\n", k.ID, k.Class, oneLine(k.For), k.CreatedAt.Local().Format("2006-01-02 15:04"), oneLine(k.CreatedBy), oneLine(k.Note))
			}
			return nil
		},
	}
}

func (w *world) keysRevoke(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "revoke ID", Short: "end a credential at once", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := w.client(g)
			if err != nil {
				return err
			}
			if err := c.RevokeKey(cmd.Context(), args[0]); err != nil {
				return reached(err)
			}
			fmt.Fprintf(w.out, "Revoked %s. It is refused from now on.\n", visible(args[0]))
			return nil
		},
	}
}

// agentKeyFile is where the key of the local agent lies, for `ayegate mcp`: beside
// the store that knows it, so that two gateways do not overwrite each other's.
func (w *world) agentKeyFile(cfg config.Config, dir string) string {
	if name, ok := w.env("AYEGATE_AGENT_KEY_FILE"); ok && name != "" {
		return name
	}
	if kind, name, _ := strings.Cut(cfg.Store, ":"); kind == "sqlite" {
		return within(dir, name) + ".agent-key"
	}
	return ""
}

// localKey makes the key of the local agent once, where no agents are configured:
// then `ayegate mcp SERVER` works without further ado. The key can ask and never
// decide.
func (p *program) localKey(ctx context.Context) error {
	file := p.w.agentKeyFile(p.cfg, p.dir)
	if file == "" || len(p.cfg.Agents) > 0 {
		return nil
	}
	if text, err := os.ReadFile(file); err == nil {
		if _, _, err := p.creds.Agent(ctx, strings.TrimSpace(string(text))); err == nil {
			return nil
		}
	}
	_, text, err := p.creds.Add(ctx, credential.System(), credential.Spec{Class: credential.Agent, For: localAgent, Note: "ayegate mcp on this machine"})
	if err != nil {
		return err
	}
	return replaceFile(file, []byte(text+"\n"))
}
