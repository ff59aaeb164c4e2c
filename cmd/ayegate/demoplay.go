package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"strings"
	"time"

	"github.com/ayegate/ayegate/api"
	"github.com/ayegate/ayegate/internal/demo"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/mcp"
	"github.com/ayegate/ayegate/internal/strictjson"
)

// lines delivers what the person types. It has no end of its own: a read from a
// terminal cannot be called off.
func (w *world) lines() chan string {
	out := make(chan string)
	go func() {
		in := bufio.NewScanner(w.in)
		for in.Scan() {
			out <- strings.TrimSpace(in.Text())
		}
		close(out)
	}()
	return out
}

// answer is what the agent got for a call.
type answer struct {
	text    string
	isError bool
	err     error
}

// silent takes what the gateway sends while the agent waits.
type silent struct{}

func (silent) Notification(mcp.Message) {}

func (silent) Ask(context.Context, mcp.Message) ([]byte, *mcp.Error) {
	return nil, &mcp.Error{Code: mcp.CodeMethodNotFound, Message: "the agent of the demo answers no questions"}
}

// call makes a tool call as any MCP client would.
func (s *stage) call(ctx context.Context, step demo.Step, n int) answer {
	server, tool, _ := strings.Cut(step.Tool, ".")
	params := fmt.Appendf(nil, `{"name":%s,"arguments":%s,"_meta":{"progressToken":%d}}`,
		strictjson.AppendString(nil, server+"__"+tool), step.Args, n)
	m, err := s.agent.Call(ctx, "tools/call", params, silent{})
	if err != nil {
		return answer{err: err}
	}
	if m.Error != nil {
		return answer{err: errors.New(string(m.Error))}
	}
	a := answer{}
	if raw, ok := strictjson.Get(m.Result, "isError"); ok {
		if a.isError, err = strictjson.Bool(raw); err != nil {
			return answer{err: err}
		}
	}
	if raw, ok := strictjson.Get(m.Result, "content", "0", "text"); ok {
		a.text, err = strictjson.String(raw)
	}
	a.err = err
	return a
}

// play lets the agent make one call, and the person decide when it is held.
func (s *stage) play(ctx context.Context, n int, step demo.Step) error {
	s.calls++
	got := make(chan answer, 1)
	go func() { got <- s.call(ctx, step, n) }()
	look := time.NewTicker(30 * time.Millisecond)
	defer look.Stop()
	var held *api.Request
	for {
		select {
		case a := <-got:
			return s.told(ctx, n, step, held, a)
		case <-look.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		if held != nil {
			continue
		}
		list, err := s.person.Requests(ctx, api.RequestFilter{Status: []api.Status{api.StatusPending}})
		if err != nil {
			return reached(err)
		}
		if len(list.Requests) == 0 {
			continue
		}
		held = &list.Requests[0]
		a, err := s.decide(ctx, step, held, got)
		if err != nil {
			return err
		}
		if a != nil {
			return s.told(ctx, n, step, held, *a)
		}
	}
}

// decide has the script or the person decide. When the agent gets its answer
// first, because somebody decided on the page, that is returned.
func (s *stage) decide(ctx context.Context, step demo.Step, r *api.Request, got chan answer) (*answer, error) {
	if s.keys == nil {
		d := api.DecideRequest{Decision: api.Approve, Digest: r.Digest, Reason: step.Reason}
		if step.Deny {
			d.Decision = api.Deny
		}
		if r.Confirm.Typed != "" {
			d.Confirm = &api.Confirm{Typed: r.Confirm.Typed}
		}
		_, err := s.person.Decide(ctx, r.ApprovalID, d)
		return nil, err
	}
	out := s.w.out
	fmt.Fprintf(out, " %s  %-14s HELD  %s %s  waiting for you  %s\n", s.clock(), step.Tool, r.RiskTier, tierWords[r.RiskTier], r.Code)
	fmt.Fprintf(out, "        %s\n        %s\n", visible(r.HumanSummary), visible(r.ToolCallCanonical))
	for {
		fmt.Fprintf(out, "        The agent waits. Decide on the page, or here: [a] approve  [d] deny  [s] show all  [q] quit\n        > ")
		select {
		case a := <-got:
			fmt.Fprintln(out, "(decided on the page)")
			return &a, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		case key, ok := <-s.keys:
			if !ok || key == "q" {
				return nil, &exit{code: exitInterrupted, err: errors.New("left the demo; what was not approved did not run")}
			}
			done, err := s.key(ctx, key, r)
			if err != nil {
				return nil, err
			}
			if done {
				return nil, nil
			}
		}
	}
}

// key acts on one key of the person.
func (s *stage) key(ctx context.Context, key string, r *api.Request) (done bool, err error) {
	d := api.DecideRequest{Digest: r.Digest}
	switch key {
	case "a":
		d.Decision = api.Approve
		if want := r.Confirm.Typed; want != "" {
			typed := s.read("        To approve, type: " + visible(want) + "\n        > ")
			if typed != want {
				fmt.Fprintln(s.w.out, "        That is not it. Nothing was decided.")
				return false, nil
			}
			d.Confirm = &api.Confirm{Typed: typed}
		}
	case "d":
		d.Decision = api.Deny
		d.Reason = s.read("        Tell the agent why (it reads this word for word): ")
	case "s":
		render(s.w.out, r)
		return false, nil
	default:
		fmt.Fprintln(s.w.out, "        Type a, d, s or q, then Enter.")
		return false, nil
	}
	if _, err := s.person.Decide(ctx, r.ApprovalID, d); err != nil && !errors.Is(err, api.DecidedOtherwise) {
		return false, err
	}
	return true, nil
}

func (s *stage) read(prompt string) string {
	fmt.Fprint(s.w.out, prompt)
	return <-s.keys
}

func (s *stage) clock() string {
	d := s.w.now().Sub(s.started)
	return fmt.Sprintf("%02d:%02d", int(d.Minutes()), int(d.Seconds())%60)
}

// told prints what the agent got.
func (s *stage) told(ctx context.Context, n int, step demo.Step, held *api.Request, a answer) error {
	if a.err != nil {
		return fmt.Errorf("%s: %w", step.Tool, a.err)
	}
	out := map[string]any{"schema": "ayegate.demo/v1", "step": n, "tool": step.Tool, "args": json.RawMessage(step.Args), "told": a.text, "isError": a.isError}
	word := "allowed"
	if held == nil {
		s.allowed++
	} else {
		r, err := s.person.Request(ctx, held.ApprovalID)
		if err != nil {
			return reached(err)
		}
		switch r.Status {
		case api.StatusDenied:
			word = "denied"
			s.denied++
		case api.StatusExecuted, api.StatusFailed:
			word = "approved"
			s.approved++
		default:
			word = string(r.Status)
		}
		out["code"], out["riskTier"], out["rule"], out["toolCallHash"] = r.Code, r.RiskTier, r.Rule, r.ToolCallHash
	}
	out["status"] = word
	if s.g.json {
		return s.w.line(out)
	}
	fmt.Fprintf(s.w.out, " %s  %-14s %-9s %s\n", s.clock(), step.Tool, word, oneLine(preface(a.text)))
	return nil
}

// preface is the beginning of a text, for one row: the sentence behind a code.
func preface(s string) string {
	line, more, _ := strings.Cut(strings.TrimSpace(s), "\n")
	if strings.HasPrefix(line, "TOOL_") {
		line, more, _ = strings.Cut(more, "\n")
	}
	line = strings.ReplaceAll(line, "\t", "  ")
	if more != "" {
		line += " …"
	}
	return line
}

// finale counts what really happened, and checks the record.
func (s *stage) finale(ctx context.Context) error {
	paid, transfers, err := demo.Book(filepath.Join(s.dir, "bank.txt"))
	if err != nil {
		return err
	}
	customers, err := demo.Customers(ctx, s.dir)
	if err != nil {
		return err
	}
	report, err := s.verify(ctx)
	if err != nil {
		return err
	}
	if s.g.json {
		return s.w.line(map[string]any{
			"schema": "ayegate.demo.summary/v1", "calls": s.calls, "allowed": s.allowed, "approved": s.approved, "denied": s.denied,
			"effects": map[string]any{"transfers": transfers, "paidUsd": paid, "customers": customers},
			"ledger":  map[string]any{"entries": report.Entries, "intact": true},
		})
	}
	out := s.w.out
	fmt.Fprintf(out, "\n done. %d calls: %d allowed, %d approved, %d denied\n", s.calls, s.allowed, s.approved, s.denied)
	fmt.Fprintf(out, " what really happened: %d transfer of %d USD, %d customers still there\n", transfers, paid, customers)
	fmt.Fprintf(out, " the record: %d entries, intact\n\n", report.Entries)
	fmt.Fprintf(out, " Next, with your own MCP servers: write ayegate.yaml (see the README), then\n   ayegate serve\n")
	if s.keys != nil && s.w.terminal() {
		fmt.Fprintf(out, "\n The pages stay until you press Enter: %s\n", s.p.cfg.BaseURL())
		select {
		case <-s.keys:
		case <-ctx.Done():
		}
	}
	return nil
}

// verify checks the record as an auditor would, from an export.
func (s *stage) verify(ctx context.Context) (ledger.Report, error) {
	head, err := s.p.store.Head(ctx)
	if err != nil {
		return ledger.Report{}, err
	}
	cp, err := s.p.signer.Checkpoint(head, s.p.store.Now())
	if err != nil {
		return ledger.Report{}, err
	}
	var export bytes.Buffer
	if err := ledger.WriteExport(&export, until(s.p.store.Entries(ctx, 0), head.Size), cp); err != nil {
		return ledger.Report{}, err
	}
	return ledger.Verify(&export, ledger.VerifyOptions{Keys: []string{s.p.signer.PublicKey()}})
}

// until is the first n of a sequence: the record may have grown since its head
// was read.
func until(all iter.Seq2[[]byte, error], n int64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		left := n
		for line, err := range all {
			if left--; left < 0 || !yield(line, err) {
				return
			}
		}
	}
}
