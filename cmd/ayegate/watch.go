package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ayegate/ayegate/api"
)

func (w *world) watchCmd(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "watch [ID]", Short: "stream what happens; with an id, end when it is over", Args: cobra.MaximumNArgs(1),
		Long: `watch prints events as they are recorded. With an id it ends when that request
has ended, with the exit code that says how: 0 done, 1 failed or unknown, 3 denied,
4 expired, 6 cancelled.`,
		ValidArgsFunction: w.completeIDs(g),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := w.client(g)
			if err != nil {
				return err
			}
			if len(args) == 0 {
				return w.watchAll(cmd.Context(), g, c)
			}
			return w.watchOne(cmd.Context(), g, c, args[0])
		},
	}
}

func (w *world) watchAll(ctx context.Context, g *globals, c *api.Client) error {
	for e, err := range c.Events(ctx, api.FromNow) {
		if err != nil {
			return reached(err)
		}
		if err := w.event(g, e); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (w *world) event(g *globals, e api.Event) error {
	if g.json {
		return w.line(struct {
			Schema string `json:"schema"`
			api.Event
		}{"ayegate.event/v1", e})
	}
	name := e.Subject
	if e.Request != nil {
		name = e.Request.Code + " " + oneLine(e.Request.Server+"."+e.Request.Tool)
	}
	_, err := fmt.Fprintf(w.out, "%s  %-18s  %s  %s\n", clock(e.Time), e.Kind, name, e.Actor.ID)
	return err
}

// watchOne follows one request. It looks at the request itself after each event,
// so that nothing is missed between the first look and the first event.
func (w *world) watchOne(ctx context.Context, g *globals, c *api.Client, name string) error {
	r, err := w.find(ctx, c, name)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	woken := make(chan error, 1)
	go func() {
		for e, err := range c.Events(ctx, api.FromNow) {
			if err == nil && e.Subject != r.ApprovalID {
				continue
			}
			select {
			case woken <- err:
			case <-ctx.Done():
				return
			}
		}
	}()
	look := time.NewTicker(2 * time.Second) // an event can come before the stream stands
	defer look.Stop()
	for last := api.Status(""); ; {
		if r, err = c.Request(ctx, r.ApprovalID); err != nil {
			return reached(err)
		}
		if r.Status != last {
			last = r.Status
			if err := w.progress(g, r); err != nil {
				return err
			}
		}
		if ended(r.Status) {
			return statusExit(r)
		}
		select {
		case err := <-woken:
			if err != nil {
				return reached(err)
			}
		case <-look.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func ended(s api.Status) bool {
	switch s {
	case api.StatusPending, api.StatusApproved, api.StatusExecuting:
		return false
	default:
		return true
	}
}

func (w *world) progress(g *globals, r *api.Request) error {
	if !g.json {
		_, err := fmt.Fprintf(w.out, "%s  %s\n", r.Code, state(r))
		return err
	}
	out := map[string]any{"schema": "ayegate.event/v1", "id": r.Code, "approvalId": r.ApprovalID, "state": r.Status, "ran": ran(r.Status)}
	for _, d := range r.Decisions {
		if !d.Void {
			out["by"], out["reason"] = d.By, d.Reason
		}
	}
	return w.line(out)
}

// ran says whether the tool was reached, as far as anybody knows.
func ran(s api.Status) any {
	switch s {
	case api.StatusExecuted:
		return true
	case api.StatusUnknown, api.StatusExecuting, api.StatusFailed:
		return "unknown"
	default:
		return false
	}
}
