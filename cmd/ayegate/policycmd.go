package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/policy"
)

func (w *world) policyCmd(g *globals) *cobra.Command {
	c := &cobra.Command{
		Use: "policy", Short: "check, explain and test a policy",
		Long: "The policy says which calls run, which are refused and which wait for a person. Without a file the starter policy holds: everything asks.",
		RunE: group,
	}
	c.AddCommand(w.policyCheck(g), w.policyExplain(g), w.policyTest(g))
	return c
}

// policyFile reads the policy a command is about: the file named, or the one the
// configuration names, or the starter policy.
func (w *world) policyFile(g *globals, file string) (name string, src []byte, err error) {
	if file == "" {
		c, dir, err := w.load(g.config)
		if err != nil {
			return "", nil, err
		}
		if c.Policy == "" {
			return "starter policy", policy.Starter(), nil
		}
		file = within(dir, c.Policy)
	}
	src, err = os.ReadFile(file)
	if err != nil {
		return "", nil, &exit{code: exitUsage, err: err}
	}
	return file, src, nil
}

func (w *world) openPolicy(g *globals, file string) (*policy.Policy, error) {
	name, src, err := w.policyFile(g, file)
	if err != nil {
		return nil, err
	}
	return policy.Parse(name, src)
}

func (w *world) policyCheck(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "check [FILE]", Short: "say whether a policy loads, with every fault", Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			name, src, err := w.policyFile(g, first(args))
			if err != nil {
				return err
			}
			p, err := policy.Parse(name, src)
			var faults policy.Faults
			if errors.As(err, &faults) && g.json {
				lines := make([]string, len(faults))
				for i, f := range faults {
					lines[i] = f.String()
				}
				if err := w.object(map[string]any{"schema": "ayegate.policy.check/v1", "ok": false, "faults": lines}); err != nil {
					return err
				}
				return &exit{code: exitFailure, err: fmt.Errorf("%d faults", len(faults))}
			}
			if err != nil {
				return &exit{code: exitFailure, err: err, hint: "a policy with a fault is never loaded; the old one stays"}
			}
			notes := make([]string, 0, len(p.Notes()))
			for _, n := range p.Notes() {
				notes = append(notes, n.String())
			}
			if g.json {
				return w.object(map[string]any{"schema": "ayegate.policy.check/v1", "ok": true, "revision": p.Revision(), "notes": notes})
			}
			fmt.Fprintf(w.out, "%s loads. revision %s\n", name, p.Revision())
			for _, n := range notes {
				fmt.Fprintln(w.err, "note: "+n)
			}
			return nil
		},
	}
}

func (w *world) policyExplain(g *globals) *cobra.Command {
	var file, agent, workspace, root string
	c := &cobra.Command{
		Use: "explain SERVER.TOOL [ARGS]", Short: "say what would happen to a call, and why",
		Example: `  ayegate policy explain payments.refund '{"amount_usd": 900}'`, Args: cobra.RangeArgs(1, 2),
		RunE: func(_ *cobra.Command, args []string) error {
			p, err := w.openPolicy(g, file)
			if err != nil {
				return err
			}
			asked, err := callOf(args)
			if err != nil {
				return err
			}
			v := p.Judge(asked, policy.Facts{Agent: agent, Workspace: workspace, WorkspaceRoot: root, Now: w.now(), Known: true})
			if g.json {
				return w.object(verdictJSON(v))
			}
			return v.Explain(w.out)
		},
	}
	c.Flags().StringVar(&file, "policy", "", "the policy file, instead of the configured one")
	c.Flags().StringVar(&agent, "agent", "", "id of the agent that would ask")
	c.Flags().StringVar(&workspace, "workspace", "", "its workspace")
	c.Flags().StringVar(&root, "root", "", "the directory that ${workspace} stands for")
	return c
}

// callOf reads "server.tool" and arguments from a command line.
func callOf(args []string) (call.Call, error) {
	server, tool, ok := strings.Cut(args[0], ".")
	if !ok {
		return call.Call{}, usage("%q is not a tool: write server.tool, such as fs.write_file", args[0])
	}
	var raw []byte
	if len(args) > 1 {
		raw = []byte(args[1])
	}
	c, err := call.New(server, tool, raw)
	if err != nil {
		return c, &exit{code: exitUsage, err: fmt.Errorf("the call is not well formed: %w", err)}
	}
	return c, nil
}

func verdictJSON(v policy.Verdict) map[string]any {
	trace := make([]map[string]any, len(v.Trace))
	for i, s := range v.Trace {
		trace[i] = map[string]any{"phase": s.Phase, "id": s.ID, "hit": s.Hit, "note": s.Note}
	}
	return map[string]any{
		"schema": "ayegate.verdict/v1", "effect": v.Effect.String(), "riskTier": v.Tier.String(), "rule": v.Rule, "why": v.Why,
		"quorum": v.Quorum, "confirm": v.Confirm, "salient": v.Salient, "scopes": v.Scopes, "policy": v.Revision, "trace": trace,
		"approvers": v.Of.AnyOf, "ttl": v.TTL.String(),
	}
}

func (w *world) policyTest(g *globals) *cobra.Command {
	var file, junit string
	c := &cobra.Command{
		Use: "test TESTS...", Short: "run the test cases of a policy",
		Example: "  ayegate policy test --policy policy.yaml ayegate_test.yaml", Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			p, err := w.openPolicy(g, file)
			if err != nil {
				return err
			}
			var results []policy.Result
			for _, name := range args {
				src, err := os.ReadFile(name)
				if err != nil {
					return &exit{code: exitUsage, err: err}
				}
				cases, err := policy.ParseTests(name, src)
				if err != nil {
					return &exit{code: exitUsage, err: err}
				}
				results = append(results, p.Test(cases)...)
			}
			if junit != "" {
				if err := writeFile(junit, func(out io.Writer) error { return policy.WriteJUnit(out, results) }); err != nil {
					return err
				}
			}
			return w.testResults(g, results)
		},
	}
	c.Flags().StringVar(&file, "policy", "", "the policy file, instead of the configured one")
	c.Flags().StringVar(&junit, "junit", "", "also write the results as JUnit XML to this file")
	return c
}

func (w *world) testResults(g *globals, results []policy.Result) error {
	failed := 0
	for _, r := range results {
		if !r.OK() {
			failed++
		}
		if g.json {
			if err := w.line(map[string]any{"schema": "ayegate.policy.test/v1", "name": r.Case.Name, "ok": r.OK(), "faults": r.Faults}); err != nil {
				return err
			}
			continue
		}
		if r.OK() {
			fmt.Fprintf(w.out, "ok    %s\n", visible(r.Case.Name))
			continue
		}
		fmt.Fprintf(w.out, "FAIL  %s\n", visible(r.Case.Name))
		for _, f := range r.Faults {
			fmt.Fprintf(w.out, "      %s\n", visible(f))
		}
	}
	if !g.json {
		fmt.Fprintf(w.out, "%d cases, %d failed\n", len(results), failed)
	}
	if failed > 0 {
		return &exit{code: exitFailure, err: fmt.Errorf("%d of %d cases failed", failed, len(results))}
	}
	return nil
}

// writeFile writes a file in full or not at all visible as done.
func writeFile(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

func first(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// object writes one JSON object, indented for people who look at it.
func (w *world) object(v any) error {
	enc := json.NewEncoder(w.out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// line writes one JSON object on a line of its own (NDJSON).
func (w *world) line(v any) error {
	enc := json.NewEncoder(w.out)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
