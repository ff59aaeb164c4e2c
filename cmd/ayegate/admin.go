package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/ayegate/ayegate/api"
)

func (w *world) pauseCmd(g *globals) *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use: "pause", Short: "stop all agents now: nothing starts until you resume", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := w.client(g)
			if err != nil {
				return err
			}
			s, err := c.Pause(cmd.Context(), api.PauseRequest{Reason: reason})
			if err != nil {
				return reached(err)
			}
			if g.json {
				return w.object(s)
			}
			fmt.Fprintln(w.out, "All agents are paused. What was running runs on; nothing new starts. Go on with: ayegate resume")
			return nil
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "why, for the record")
	return c
}

func (w *world) resumeCmd(g *globals) *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use: "resume [AGENT/SESSION]", Short: "let agents go on: all, or one session that was paused", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := w.client(g)
			if err != nil {
				return err
			}
			s, err := c.Resume(cmd.Context(), api.PauseRequest{Session: first(args), Reason: reason})
			if err != nil {
				return reached(err)
			}
			if g.json {
				return w.object(s)
			}
			if s.AllPaused {
				fmt.Fprintln(w.out, "That session may go on as soon as all agents are resumed: ayegate resume")
				return nil
			}
			fmt.Fprintln(w.out, "Agents may go on.")
			for _, p := range s.Paused {
				fmt.Fprintf(w.out, "still paused after denials: %s   (ayegate resume %s)\n", oneLine(p), oneLine(p))
			}
			return nil
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "why, for the record")
	return c
}

// toolsCmd shows the pinned definitions of tools. A server that changes one holds
// it until a person accepts the change.
func (w *world) toolsCmd(g *globals) *cobra.Command {
	var held bool
	c := &cobra.Command{
		Use: "tools", Short: "list the tools that are pinned, and those whose definition changed", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := w.client(g)
			if err != nil {
				return err
			}
			list, err := c.Definitions(cmd.Context(), held)
			if err != nil {
				return reached(err)
			}
			for _, d := range list.Definitions {
				if err := w.definition(g, d); err != nil {
					return err
				}
			}
			return nil
		},
	}
	c.Flags().BoolVar(&held, "held", false, "only those that wait for you")
	c.AddCommand(w.toolsAccept(g))
	return c
}

func (w *world) definition(g *globals, d api.Definition) error {
	if g.json {
		return w.line(d)
	}
	mark := "accepted"
	if !d.Accepted {
		mark = "CHANGED"
	}
	if _, err := fmt.Fprintf(w.out, "%-8s  %s.%s  %s\n", mark, d.Server, oneLine(d.Tool), d.Definition); err != nil || d.Accepted {
		return err
	}
	_, err := fmt.Fprintf(w.out, "  was  %s\n  now  %s\n  Its calls are refused. Accept: ayegate tools accept %s.%s %s\n", visible(string(d.Before)), visible(string(d.Offered)),
		d.Server, oneLine(d.Tool), d.Definition)
	return err
}

func (w *world) toolsAccept(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "accept SERVER.TOOL HASH", Short: "say yes to a tool's changed definition, the one with this hash", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := w.client(g)
			if err != nil {
				return err
			}
			asked, err := callOf(args[:1])
			if err != nil {
				return err
			}
			d, err := c.Accept(cmd.Context(), api.AcceptRequest{Server: asked.Server(), Tool: asked.Tool(), Definition: args[1]})
			if err != nil {
				return reached(err)
			}
			return w.definition(g, *d)
		},
	}
}

func (w *world) versionCmd(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "print the version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			revision := ""
			if info, ok := debug.ReadBuildInfo(); ok {
				for _, s := range info.Settings {
					if s.Key == "vcs.revision" {
						revision = s.Value
					}
				}
			}
			if g.json {
				return w.object(map[string]string{"version": version, "revision": revision, "go": runtime.Version()})
			}
			fmt.Fprintf(w.out, "ayegate %s %s %s/%s %s\n", version, revision, runtime.GOOS, runtime.GOARCH, runtime.Version())
			return nil
		},
	}
}
