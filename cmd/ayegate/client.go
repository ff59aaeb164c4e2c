package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ayegate/ayegate/api"
)

// base is where ayegate runs, as far as this command line knows.
func (w *world) base(g *globals) (string, error) {
	if g.url != "" {
		return strings.TrimSuffix(g.url, "/"), nil
	}
	if u, ok := w.env("AYEGATE_URL"); ok && u != "" {
		return strings.TrimSuffix(u, "/"), nil
	}
	c, _, err := w.load(g.config)
	if err != nil {
		return "", err
	}
	return c.BaseURL(), nil
}

// client speaks to a running ayegate as the person of this terminal.
func (w *world) client(g *globals) (*api.Client, error) {
	base, err := w.base(g)
	if err != nil {
		return nil, err
	}
	token, err := w.token()
	if err != nil {
		return nil, err
	}
	return api.NewClient(base, token, nil)
}

// reached explains an error of a request that did not get through.
func reached(err error) error {
	var op *net.OpError
	var u *url.Error
	broke := errors.Is(err, io.ErrUnexpectedEOF) // in the middle of an answer
	if broke || errors.As(err, &op) || errors.As(err, &u) && !errors.Is(err, context.Canceled) {
		return &exit{code: exitUnreachable, err: err, hint: "is it running? start it with: ayegate serve"}
	}
	return err
}

// completeIDs offers the short codes of what waits, for shell completion.
func (w *world) completeIDs(g *globals) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		c, err := w.client(g)
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		list, err := c.Requests(cmd.Context(), api.RequestFilter{Status: []api.Status{api.StatusPending}, Limit: 50})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var out []string
		for _, r := range list.Requests {
			out = append(out, r.Code+"\t"+r.RiskTier+" "+oneLine(r.Server+"."+r.Tool))
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

// find reads a request by code, id, or a prefix of a code that only one open
// request has.
func (w *world) find(ctx context.Context, c *api.Client, name string) (*api.Request, error) {
	r, err := c.Request(ctx, strings.ToUpper(name))
	if errors.Is(err, api.NotFound) || errors.Is(err, api.BadRequest) {
		r, err = c.Request(ctx, strings.ToLower(name))
	}
	if err == nil || !errors.Is(err, api.NotFound) && !errors.Is(err, api.BadRequest) {
		return r, reached(err)
	}
	list, listErr := c.Requests(ctx, api.RequestFilter{Status: []api.Status{api.StatusPending}})
	if listErr != nil {
		return nil, reached(listErr)
	}
	var found *api.Request
	for i, x := range list.Requests {
		if !strings.HasPrefix(x.Code, strings.ToUpper(name)) {
			continue
		}
		if found != nil {
			return nil, usage("%q is the beginning of several requests; type more of it", name)
		}
		found = &list.Requests[i]
	}
	if found == nil {
		return nil, &exit{code: exitNotFound, err: errors.New("there is no request " + visible(name)), hint: "list what waits: ayegate pending"}
	}
	return found, nil
}

// about is a command on one request, which its first argument names.
func (w *world) about(g *globals, do func(ctx context.Context, c *api.Client, r *api.Request, rest []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := w.client(g)
		if err != nil {
			return err
		}
		r, err := w.find(cmd.Context(), c, args[0])
		if err != nil {
			return err
		}
		return do(cmd.Context(), c, r, args[1:])
	}
}
