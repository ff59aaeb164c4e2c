package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ayegate/ayegate/api"
)

func (w *world) pendingCmd(g *globals) *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use: "pending", Short: "list what waits for a person", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := w.client(g)
			if err != nil {
				return err
			}
			f := api.RequestFilter{Status: []api.Status{api.StatusPending, api.StatusUnknown}}
			if all {
				f.Status = nil
			}
			n := 0
			for {
				page, err := c.Requests(cmd.Context(), f)
				if err != nil {
					return reached(err)
				}
				for i := range page.Requests {
					n++
					if err := w.row(g, &page.Requests[i]); err != nil {
						return err
					}
				}
				if page.Cursor == "" {
					break
				}
				f.Cursor = page.Cursor
			}
			w.afterPending(g, n)
			return w.sayPaused(cmd.Context(), g, c)
		},
	}
	c.Flags().BoolVar(&all, "all", false, "also what has ended")
	return c
}

func (w *world) row(g *globals, r *api.Request) error {
	switch {
	case g.json:
		return w.line(view(r))
	case g.plain:
		_, err := fmt.Fprintf(w.out, "%s\t%s\t%s\t%s\t%s.%s\t%s\t%s\n", r.Code, r.RiskTier, r.Status, timeLeft(r), r.Server, oneLine(r.Tool),
			oneLine(r.ToolCallCanonical), r.Agent.ID)
		return err
	default:
		_, err := fmt.Fprintf(w.out, "%s  %s %-8s  %-10s  %s.%s  %s  %s  %s\n", r.Code, r.RiskTier, tierWords[r.RiskTier], timeLeft(r),
			r.Server, oneLine(r.Tool), preview(r, 60), r.Agent.ID, state(r))
		return err
	}
}

func (w *world) afterPending(g *globals, n int) {
	if g.quiet || g.json || g.plain {
		return
	}
	if n == 0 {
		fmt.Fprintln(w.err, "Nothing is waiting.")
		return
	}
	fmt.Fprintf(w.err, "%d listed. Read one: ayegate show CODE\n", n)
}

// sayPaused tells why nothing moves while the kill switch is on.
func (w *world) sayPaused(ctx context.Context, g *globals, c *api.Client) error {
	if g.quiet || g.json || g.plain {
		return nil
	}
	s, err := c.Sessions(ctx)
	if err != nil {
		return reached(err)
	}
	if s.AllPaused {
		fmt.Fprintln(w.err, "All agents are paused. Go on with: ayegate resume")
	}
	for _, p := range s.Paused {
		fmt.Fprintf(w.err, "Paused after denials: %s. Go on with: ayegate resume %s\n", oneLine(p), oneLine(p))
	}
	return nil
}

// view is a request as --json prints it.
func view(r *api.Request) any {
	return struct {
		Schema string `json:"schema"`
		*api.Request
	}{"ayegate.request/v1", r}
}

func (w *world) showCmd(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "show ID", Short: "print a request whole: the exact call first, then everything about it", Args: cobra.ExactArgs(1),
		ValidArgsFunction: w.completeIDs(g),
		RunE: w.about(g, func(ctx context.Context, c *api.Client, r *api.Request, rest []string) error {
			if g.json {
				return w.object(view(r))
			}
			render(w.out, r)
			if r.Status == api.StatusPending && !g.quiet {
				fmt.Fprintf(w.err, "\nDecide: ayegate approve %s   or: ayegate deny %s \"reason\"\n", r.Code, r.Code)
			}
			return nil
		}),
	}
}

func (w *world) denyCmd(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "deny ID [REASON]", Short: "say no; the agent reads the reason word for word", Args: cobra.RangeArgs(1, 2),
		Example:           `  ayegate deny M2DX "Do not delete build/. Run make release only."`,
		ValidArgsFunction: w.completeIDs(g),
		RunE: w.about(g, func(ctx context.Context, c *api.Client, r *api.Request, rest []string) error {
			if err := waits(r); err != nil {
				return err
			}
			reason := strings.Join(rest, " ")
			r, err := c.Decide(ctx, r.ApprovalID, api.DecideRequest{Decision: api.Deny, Digest: r.Digest, Reason: reason})
			if err != nil {
				return reached(err)
			}
			if g.json {
				return w.object(view(r))
			}
			fmt.Fprintf(w.out, "Denied %s. Nothing ran. %s reads your reason when it asks.\n", r.Code, r.Agent.ID)
			return nil
		}),
	}
}

func (w *world) resolveCmd(g *globals) *cobra.Command {
	var note string
	c := &cobra.Command{
		Use: "resolve ID succeeded|errored|not_sent", Short: "settle what became of a call whose outcome is unknown", Args: cobra.ExactArgs(2),
		ValidArgsFunction: w.completeIDs(g),
		RunE: w.about(g, func(ctx context.Context, c *api.Client, r *api.Request, rest []string) error {
			r, err := c.Resolve(ctx, r.ApprovalID, api.ResolveRequest{Outcome: api.Outcome(rest[0]), Note: note})
			if err != nil {
				return reached(err)
			}
			if g.json {
				return w.object(view(r))
			}
			fmt.Fprintf(w.out, "%s is on record as %s.\n", r.Code, rest[0])
			return nil
		}),
	}
	c.Flags().StringVar(&note, "note", "", "how it was found out")
	return c
}

// waits reports whether a request still waits for a decision.
func waits(r *api.Request) error {
	code := exitOtherwise
	switch r.Status {
	case api.StatusPending:
		return nil
	case api.StatusExpired:
		code = exitExpired
	default: // decided, or it has run
	}
	return &exit{code: code, err: fmt.Errorf("%s does not wait for a decision: it is %s", r.Code, state(r))}
}

// statusExit is the exit code that a request's end means to a script.
func statusExit(r *api.Request) error {
	name := r.Code + " " + state(r)
	switch r.Status {
	case api.StatusDenied:
		return &exit{code: exitDenied, err: errors.New(name + ". Nothing ran")}
	case api.StatusExpired:
		return &exit{code: exitExpired, err: errors.New(name + ". Nothing ran")}
	case api.StatusCancelled:
		return &exit{code: exitOtherwise, err: errors.New(name + ". Nothing ran")}
	case api.StatusFailed, api.StatusUnknown:
		return &exit{code: exitFailure, err: errors.New(name)}
	default:
		return nil
	}
}
