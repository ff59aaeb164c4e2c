package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ayegate/ayegate/api"
	"github.com/ayegate/ayegate/internal/ledger"
)

func (w *world) logCmd(g *globals) *cobra.Command {
	var follow bool
	var after int64
	c := &cobra.Command{
		Use: "log", Short: "read, follow, export and verify the record", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := w.client(g)
			if err != nil {
				return err
			}
			if follow {
				return w.followLog(cmd.Context(), g, c, after)
			}
			return w.readLog(cmd.Context(), g, c, after)
		},
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "wait for more")
	c.Flags().Int64Var(&after, "after", -1, "begin behind this entry")
	c.AddCommand(w.logExport(g), w.logCheckpoint(g), w.logVerify(g))
	return c
}

func (w *world) readLog(ctx context.Context, g *globals, c *api.Client, after int64) error {
	for {
		page, err := c.Audit(ctx, after, 500)
		if err != nil {
			return reached(err)
		}
		for _, line := range page.Entries {
			if err := w.entry(g, line); err != nil {
				return err
			}
		}
		if page.Last+1 >= page.Size || len(page.Entries) == 0 {
			return nil
		}
		after = page.Last
	}
}

// entry prints one entry: as it is stored, or as a row.
func (w *world) entry(g *globals, line []byte) error {
	if g.json {
		_, err := fmt.Fprintf(w.out, "%s\n", line)
		return err
	}
	e, err := ledger.ParseEntry(line)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w.out, "%6d  %s  %-18s  %s  %s\n", e.Seq, e.Time.Local().Format("2006-01-02 15:04:05"), e.Kind, oneLine(e.Actor.ID), oneLine(e.Subject))
	return err
}

func (w *world) followLog(ctx context.Context, g *globals, c *api.Client, after int64) error {
	for e, err := range c.Events(ctx, after) {
		if err != nil {
			return reached(err)
		}
		if err := w.event(g, e); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (w *world) logExport(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "export FILE", Short: "write the whole record to a file that verifies offline", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := w.client(g)
			if err != nil {
				return err
			}
			if args[0] == "-" {
				return reached(c.Export(cmd.Context(), w.out))
			}
			if err := writeFile(args[0], func(out io.Writer) error { return c.Export(cmd.Context(), out) }); err != nil {
				return reached(err)
			}
			if !g.quiet {
				fmt.Fprintf(w.err, "Wrote %s. Verify it anywhere: ayegate log verify %s\n", args[0], args[0])
			}
			return nil
		},
	}
}

func (w *world) logCheckpoint(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "checkpoint", Short: "print the signed head of the record, to keep somewhere else", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := w.client(g)
			if err != nil {
				return err
			}
			text, err := c.Checkpoint(cmd.Context())
			if err != nil {
				return reached(err)
			}
			_, err = w.out.Write(text)
			return err
		},
	}
}

func (w *world) logVerify(g *globals) *cobra.Command {
	var checkpoints, keys []string
	c := &cobra.Command{
		Use: "verify EXPORT", Short: "check an export offline and name the first bad entry", Args: cobra.ExactArgs(1),
		Long: `verify reads an export ("-" for standard input) and needs no server: it recomputes
the tree, checks every entry, the order within every request, and the checkpoints.
With a checkpoint that was kept elsewhere it also finds a record that was cut off,
rolled back or forked; without one it says so.`,
		RunE: func(_ *cobra.Command, args []string) error {
			opt := ledger.VerifyOptions{Keys: keys}
			for _, name := range checkpoints {
				text, err := os.ReadFile(name)
				if err != nil {
					return &exit{code: exitUsage, err: err}
				}
				opt.Trusted = append(opt.Trusted, text)
			}
			in := w.in
			if args[0] != "-" {
				f, err := os.Open(args[0])
				if err != nil {
					return &exit{code: exitUsage, err: err}
				}
				defer f.Close()
				in = f
			}
			report, err := ledger.Verify(in, opt)
			return w.report(g, report, err, len(opt.Trusted) > 0)
		},
	}
	c.Flags().StringArrayVar(&checkpoints, "checkpoint", nil, "a checkpoint that was kept elsewhere; may be repeated")
	c.Flags().StringArrayVar(&keys, "key", nil, "a verifier key of the log, had from elsewhere; may be repeated")
	return c
}

func (w *world) report(g *globals, r ledger.Report, err error, anchored bool) error {
	if err != nil && !errors.Is(err, ledger.ErrFaulty) {
		return err
	}
	if g.json {
		out := map[string]any{
			"schema": "ayegate.log.verify/v1", "ok": err == nil, "entries": r.Entries, "signed": r.Signed, "anchored": r.Anchored,
			"waiting": r.Waiting, "inDoubt": r.InDoubt, "faults": r.Faults,
		}
		if r.FirstBad != nil {
			out["firstBad"] = map[string]any{"seq": r.FirstBad.Seq, "what": r.FirstBad.What}
		}
		if e := w.object(out); e != nil {
			return e
		}
	} else {
		fmt.Fprintf(w.out, "%d entries, %d under a signed checkpoint, %d under a checkpoint of yours\n", r.Entries, r.Signed, r.Anchored)
		for _, f := range r.Findings {
			fmt.Fprintf(w.out, "  entry %d: %s\n", f.Seq, visible(f.What))
		}
	}
	if err != nil {
		what := "the record is not intact"
		if r.FirstBad != nil {
			what = fmt.Sprintf("the record is not intact; the first bad entry is %d: %s", r.FirstBad.Seq, r.FirstBad.What)
		}
		return &exit{code: exitFailure, err: errors.New(what)}
	}
	if !g.json {
		fmt.Fprintln(w.out, "Intact.")
		if !anchored && !g.quiet {
			fmt.Fprintln(w.err, strings.TrimSpace(`
Without a checkpoint that was kept elsewhere, a record that was cut off at its end
or rebuilt as a whole cannot be told from a true one. Keep one: ayegate log checkpoint`))
		}
	}
	return nil
}
