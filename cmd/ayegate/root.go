package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
)

// globals are the flags that every command has.
type globals struct {
	config  string
	url     string
	json    bool
	plain   bool
	quiet   bool
	noInput bool
	noColor bool
}

// run runs one command line and returns its exit code.
func (w *world) run(ctx context.Context, args []string) int {
	root := w.root()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil {
		w.tell(err)
	}
	return codeOf(ctx, err)
}

func (w *world) root() *cobra.Command {
	g := &globals{}
	root := &cobra.Command{
		Use:   "ayegate",
		Short: "No risky action of an AI agent runs without somebody's aye.",
		Long: `ayegate stands between AI agents and the tools they call. A policy lets a call
run, refuses it, or holds it until a person has seen exactly what will happen and
said yes. What runs is byte for byte what was shown, at most once, on a record
nobody can quietly change.

See it work, with nothing installed and nothing outside a temporary folder touched:

  ayegate demo`,
		SilenceErrors: true, SilenceUsage: true, SuggestionsMinimumDistance: 2,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: false},
		Version:           version,
	}
	root.SetIn(w.in)
	root.SetOut(w.out)
	root.SetErr(w.err)
	f := root.PersistentFlags()
	f.StringVar(&g.config, "config", "", "the configuration (default $AYEGATE_CONFIG, then ayegate.yaml in your configuration folder)")
	f.StringVar(&g.url, "url", "", "where ayegate runs (default $AYEGATE_URL, then the configuration)")
	f.BoolVar(&g.json, "json", false, "write JSON to stdout: one object, or one a line for streams")
	f.BoolVar(&g.plain, "plain", false, "write tab-separated fields without wrapping")
	f.BoolVarP(&g.quiet, "quiet", "q", false, "write no messages besides errors")
	f.BoolVar(&g.noInput, "no-input", false, "never ask; fail where an answer would be needed")
	f.BoolVar(&g.noColor, "no-color", false, "write no colours (also NO_COLOR)")
	root.AddCommand(
		w.demoCmd(g), w.serveCmd(g), w.mcpCmd(g),
		w.pendingCmd(g), w.showCmd(g), w.approveCmd(g), w.denyCmd(g), w.watchCmd(g),
		w.logCmd(g), w.policyCmd(g), w.keysCmd(g), w.toolsCmd(g), w.pauseCmd(g), w.resumeCmd(g), w.resolveCmd(g),
		w.doctorCmd(g), w.versionCmd(g), w.toyCmd(),
	)
	named(root)
	return root
}

// named makes a wrong number of arguments say what the command takes.
func named(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return usage("%s; usage: %s", err.Error(), c.UseLine())
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		named(sub)
	}
}

// group is a command that only holds others: without one of them it does nothing,
// and a mistyped one is never taken for something else.
func group(c *cobra.Command, args []string) error {
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	if len(args) == 0 {
		return usage("%s needs one of: %s", c.CommandPath(), strings.Join(names, ", "))
	}
	return usage("unknown command %q for %q; there are: %s", args[0], c.CommandPath(), strings.Join(names, ", "))
}
