package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/ayegate/ayegate/api"
)

func (w *world) approveCmd(g *globals) *cobra.Command {
	var yes bool
	var hash, typed, reason string
	c := &cobra.Command{
		Use: "approve ID", Short: "print the whole call, then let it run once", Args: cobra.ExactArgs(1),
		Long: `approve prints the whole call and asks. Without a terminal to ask on, R1 and R2
need --yes; R3 also needs --hash with at least the first four characters of the
hash that was read; R4 also needs --confirm with the text that the request names.
The decision is always about what was printed: when the request changes in
between, it is refused.`,
		ValidArgsFunction: w.completeIDs(g),
		RunE: w.about(g, func(ctx context.Context, c *api.Client, r *api.Request, rest []string) error {
			if err := waits(r); err != nil {
				return err
			}
			if hash == "" {
				render(w.err, r)
				fmt.Fprintln(w.err)
			}
			if err := w.sure(ctx, g, r, yes, hash, &typed); err != nil {
				return err
			}
			d := api.DecideRequest{Decision: api.Approve, Digest: r.Digest, Reason: reason}
			if typed != "" {
				d.Confirm = &api.Confirm{Typed: typed}
			}
			r, err := c.Decide(ctx, r.ApprovalID, d)
			if err != nil {
				return reached(err)
			}
			return w.approved(g, r)
		}),
	}
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	c.Flags().StringVar(&hash, "hash", "", "the beginning of the call's hash, as it was read")
	c.Flags().StringVar(&typed, "confirm", "", "what the request wants typed")
	c.Flags().StringVar(&reason, "reason", "", "why, for the record")
	return c
}

func (w *world) approved(g *globals, r *api.Request) error {
	if g.json {
		return w.object(view(r))
	}
	switch {
	case r.Status == api.StatusPending:
		fmt.Fprintf(w.out, "Your approval of %s is recorded. %d more needed.\n", r.Code, r.ApprovalsNeeded)
	case r.Status == api.StatusApproved && r.Waiting == 0:
		fmt.Fprintf(w.out, "Approved %s. It runs once, when the agent returns. Follow it: ayegate watch %s\n", r.Code, r.Code)
	default:
		fmt.Fprintf(w.out, "Approved %s. It runs once. Follow it: ayegate watch %s\n", r.Code, r.Code)
	}
	return nil
}

// sure makes certain that a person read what is about to run. On a terminal they
// are asked; elsewhere the flags have to say it.
func (w *world) sure(ctx context.Context, g *globals, r *api.Request, yes bool, hash string, typed *string) error {
	if err := sameHash(r, hash); err != nil {
		return err
	}
	asks := w.terminal() && !g.noInput
	if want := r.Confirm.Typed; want != "" && *typed == "" {
		if !asks {
			return needs("%s must be confirmed by typing what it names", "--confirm "+fmt.Sprintf("%q", want), r)
		}
		answer, err := w.askFor(ctx, fmt.Sprintf("To approve, type: %s\n> ", visible(want)))
		if err != nil {
			return err
		}
		*typed = answer
		return nil
	}
	switch {
	case asks && !yes:
		answer, err := w.askFor(ctx, "Approve once? Type yes: ")
		if err != nil {
			return err
		}
		if answer != "yes" {
			return &exit{code: exitNeedsPerson, err: errors.New("not approved; the request still waits")}
		}
	case asks:
	case r.RiskTier >= "R3" && (hash == "" || !yes):
		return needs("%s is %s risk: without a terminal it needs --yes and the hash that was read", "--yes and --hash with the beginning of the hash", r)
	case !yes:
		return needs("there is no terminal to ask on for %s", "--yes", r)
	}
	return nil
}

// sameHash reports whether what a person read is what waits. The beginning of a
// hash is enough where it says enough: at least four digits of it.
func sameHash(r *api.Request, hash string) error {
	if hash == "" {
		return nil
	}
	digits := strings.ToLower(strings.TrimPrefix(hash, "sha256:"))
	if len(digits) < 4 {
		return usage("--hash needs at least the first four characters of the hash, without the %q", "sha256:")
	}
	if !strings.HasPrefix(strings.TrimPrefix(r.ToolCallHash, "sha256:"), digits) {
		return &exit{
			code: exitOtherwise, err: fmt.Errorf("the call of %s does not have the hash %s: what you read is not what waits", r.Code, visible(hash)),
			hint: "read it again: ayegate show " + r.Code,
		}
	}
	return nil
}

func needs(format, flag string, r *api.Request) error {
	args := []any{r.Code}
	if strings.Count(format, "%s") == 2 {
		args = append(args, tierWords[r.RiskTier])
	}
	return &exit{code: exitNeedsPerson, err: fmt.Errorf(format, args...), hint: "read it with: ayegate show " + r.Code + ", then add " + flag}
}

// terminal reports whether a person can be asked.
func (w *world) terminal() bool {
	f, ok := w.in.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// askFor asks for a line. A read from a terminal cannot be called off, so whoever
// interrupts leaves it behind.
func (w *world) askFor(ctx context.Context, prompt string) (string, error) {
	fmt.Fprint(w.err, prompt)
	type answer struct {
		line string
		err  error
	}
	got := make(chan answer, 1)
	go func() {
		line, err := bufio.NewReader(w.in).ReadString('\n')
		got <- answer{line, err}
	}()
	select {
	case a := <-got:
		if a.err != nil && !errors.Is(a.err, io.EOF) {
			return "", a.err
		}
		return strings.TrimRight(a.line, "\r\n"), nil
	case <-ctx.Done():
		return "", fmt.Errorf("nothing was decided: %w", ctx.Err())
	}
}
