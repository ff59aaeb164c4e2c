package approval_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/policy"
)

// move is one row of the table that docs/states.md is made of: what a move does
// from each state where it is legal, and what it answers everywhere else.
type move struct {
	name, who string
	do        func(r *approval.Request, now time.Time) (ledger.Event, error)
	after     time.Duration // how long after the start of the request it comes
	legal     map[string]approval.State
	silent    []string // starts where the work is done already: no error, no event
	refused   map[string]error
	event     ledger.Kind
	says      string
}

// each gives every start that is named one value.
func each[V any](v V, names ...string) map[string]V {
	m := make(map[string]V)
	for _, n := range names {
		m[n] = v
	}
	return m
}

func with[V any](m map[string]V, v V, names ...string) map[string]V {
	for _, n := range names {
		m[n] = v
	}
	return m
}

const (
	pending, approved, byRule     = "pending", "approved", "approved by a rule"
	executing, minted, spent      = "executing", "executing, token not redeemed", "executing, token redeemed"
	executed, failed, unknown     = "executed", "failed", "unknown"
	denied, expired, cancelled    = "denied", "expired", "cancelled"
	minute                        = time.Minute
	person, agent, gateway, clock = "a person", "the agent", "ayegate", "the sweeper"
)

func rejudge(v policy.Verdict) func(*approval.Request, time.Time) (ledger.Event, error) {
	v.Revision = "sha256:p2"
	return func(r *approval.Request, now time.Time) (ledger.Event, error) { return r.Rejudge(v, now) }
}

var moves = []move{
	{
		name: "Decide", says: "deny", who: person, event: ledger.RequestDecided, legal: each(approval.Denied, pending),
		do:      func(r *approval.Request, now time.Time) (ledger.Event, error) { return r.Decide(no(raj, r), now) },
		refused: with(each(approval.ErrDecided, approved, byRule, executing, minted, spent, executed, failed, unknown, denied, cancelled), approval.ErrExpired, expired),
	},
	{
		name: "Decide", says: "enough people approve", who: person, event: ledger.RequestDecided, legal: each(approval.Approved, pending),
		do:      func(r *approval.Request, now time.Time) (ledger.Event, error) { return r.Decide(yes(raj, r), now) },
		refused: with(each(approval.ErrDecided, approved, byRule, executing, minted, spent, executed, failed, unknown, denied, cancelled), approval.ErrExpired, expired),
	},
	{
		name: "Amend", says: "another call: decisions void", who: person, event: ledger.RequestAmended, legal: each(approval.Pending, pending),
		do: func(r *approval.Request, now time.Time) (ledger.Event, error) {
			return r.Amend(raj, r.Digest, mustCall("pay", `{"amount":2}`), asks(), now)
		},
		refused: with(each(approval.ErrDecided, approved, byRule, executing, minted, spent, executed, failed, unknown, denied, cancelled), approval.ErrExpired, expired),
	},
	{
		name: "Rejudge", says: "a newer policy asks: decisions void", who: gateway, event: ledger.RequestRejudged,
		legal: each(approval.Pending, pending, approved, byRule), do: rejudge(asks()),
		refused: each(approval.ErrNotPending, executing, minted, spent, executed, failed, unknown, denied, expired, cancelled),
	},
	{
		name: "Rejudge", says: "a newer policy allows what a rule allowed", who: gateway, event: ledger.RequestRejudged,
		legal: with(each(approval.Pending, pending, approved), approval.Approved, byRule), do: rejudge(allows()),
		refused: each(approval.ErrNotPending, executing, minted, spent, executed, failed, unknown, denied, expired, cancelled),
	},
	{
		name: "Rejudge", says: "a newer policy denies", who: gateway, event: ledger.RequestDenied,
		legal: each(approval.Denied, pending, approved, byRule), do: rejudge(denies()),
		refused: each(approval.ErrNotPending, executing, minted, spent, executed, failed, unknown, denied, expired, cancelled),
	},
	{
		name: "Rejudge", says: "the same policy", who: gateway, silent: []string{pending, approved, byRule},
		do:      func(r *approval.Request, now time.Time) (ledger.Event, error) { return r.Rejudge(r.Verdict, now) },
		refused: each(approval.ErrNotPending, executing, minted, spent, executed, failed, unknown, denied, expired, cancelled),
	},
	{
		name: "Extend", says: "more time", who: person, event: ledger.RequestExtended, legal: each(approval.Pending, pending),
		do:      func(r *approval.Request, now time.Time) (ledger.Event, error) { return r.Extend(raj, now) },
		refused: each(approval.ErrNotPending, approved, byRule, executing, minted, spent, executed, failed, unknown, denied, expired, cancelled),
	},
	{
		name: "Attach", says: "asked for again", who: agent, event: ledger.RequestAttached,
		legal:   with(each(approval.Approved, approved, byRule), approval.Pending, pending),
		do:      func(r *approval.Request, _ time.Time) (ledger.Event, error) { return r.Attach("s2") },
		refused: each(approval.ErrEnded, executing, minted, spent, executed, failed, unknown, denied, expired, cancelled),
	},
	{
		name: "Cancel", says: "withdrawn, revoked or void", who: "the agent, a person or ayegate", event: ledger.RequestCancelled,
		legal: each(approval.Cancelled, pending, approved, byRule), silent: []string{cancelled},
		do: func(r *approval.Request, now time.Time) (ledger.Event, error) {
			return r.Cancel(ledger.Actor{Kind: ledger.Human, ID: "user:raj"}, approval.ByPerson, now)
		},
		refused: with(each(approval.ErrClaimed, executing, minted, spent, executed, failed, unknown), approval.ErrEnded, denied, expired),
	},
	{
		name: "Refuse", says: "the policy denies at the claim", who: gateway, event: ledger.RequestDenied,
		legal:   each(approval.Denied, pending, approved, byRule),
		do:      func(r *approval.Request, now time.Time) (ledger.Event, error) { return r.Refuse(denies(), now) },
		refused: each(approval.ErrEnded, executing, minted, spent, executed, failed, unknown, denied, expired, cancelled),
	},
	{
		name: "Expire", says: "the deadline passed", who: clock, after: 5 * minute, event: ledger.RequestExpired,
		legal: each(approval.Expired, pending, approved, byRule), silent: []string{expired},
		do:      func(r *approval.Request, now time.Time) (ledger.Event, error) { return r.Expire(now) },
		refused: each(approval.ErrEnded, executing, minted, spent, executed, failed, unknown, denied, cancelled),
	},
	{
		name: "Claim", says: "before the deadline, judged again", who: "ayegate, or the caller that executes", event: ledger.RequestClaimed,
		legal: each(approval.Executing, approved, byRule),
		do: func(r *approval.Request, now time.Time) (ledger.Event, error) {
			return r.Claim(claimOf(r, now), r.Verdict, pinned, now)
		},
		refused: with(with(with(each(approval.ErrClaimed, executing, minted, spent, executed, failed, unknown),
			approval.ErrNotApproved, pending), approval.ErrEnded, denied, cancelled), approval.ErrExpired, expired),
	},
	{
		name: "Redeem", says: "the effect may start", who: "the caller that executes", event: ledger.RequestRedeemed,
		legal: each(approval.Executing, minted),
		do:    func(r *approval.Request, now time.Time) (ledger.Event, error) { return r.Redeem(redemption(r), now) },
		refused: with(each(approval.ErrTokenUnknown, pending, approved, byRule, executing, executed, failed, denied, expired, cancelled),
			approval.ErrTokenUsed, spent, unknown),
	},
	{
		name: "Finish", says: "the tool answered", who: "the executor", event: ledger.RequestFinished,
		legal: each(approval.Executed, executing, spent, unknown),
		do: func(r *approval.Request, now time.Time) (ledger.Event, error) {
			return r.Finish("c1", approval.Execution{Outcome: approval.Succeeded, Hash: call.Hash{1}, Size: 2, Result: []byte("ok")}, now)
		},
		refused: each(approval.ErrNotClaimed, pending, approved, byRule, minted, executed, failed, denied, expired, cancelled),
	},
	{
		name: "Finish", says: "the tool answered with an error, or nothing was sent", who: "the executor", event: ledger.RequestFinished,
		legal: each(approval.Failed, executing, spent, unknown),
		do: func(r *approval.Request, now time.Time) (ledger.Event, error) {
			return r.Finish("c1", approval.Execution{Outcome: approval.NotSent, Error: "refused"}, now)
		},
		refused: each(approval.ErrNotClaimed, pending, approved, byRule, minted, executed, failed, denied, expired, cancelled),
	},
	{
		name: "Lose", says: "no answer will come", who: "recovery, or the sweeper", event: ledger.RequestLost,
		legal:   each(approval.Unknown, executing, spent),
		do:      func(r *approval.Request, now time.Time) (ledger.Event, error) { return r.Lose(approval.ByCrash, now) },
		refused: each(approval.ErrNotClaimed, pending, approved, byRule, minted, executed, failed, unknown, denied, expired, cancelled),
	},
	{
		name: "Lose", says: "the token ran out unredeemed", who: clock, after: 5 * minute, event: ledger.RequestExpired,
		legal: each(approval.Expired, minted),
		do: func(r *approval.Request, now time.Time) (ledger.Event, error) {
			if !r.Claimed.Redeemed.IsZero() {
				return ledger.Event{}, approval.ErrNotClaimed
			}
			return r.Lose(approval.ByTimeout, now)
		},
		refused: each(approval.ErrNotClaimed, pending, approved, byRule, executing, spent, executed, failed, unknown, denied, expired, cancelled),
	},
	{
		name: "Resolve", says: "somebody looked: it ran", who: person, event: ledger.RequestResolved, legal: each(approval.Executed, unknown),
		do: func(r *approval.Request, now time.Time) (ledger.Event, error) {
			return r.Resolve(raj, approval.Succeeded, "seen", now)
		},
		refused: each(approval.ErrNotUnknown, pending, approved, byRule, executing, minted, spent, executed, failed, denied, expired, cancelled),
	},
	{
		name: "Resolve", says: "somebody looked: it failed or never ran", who: person, event: ledger.RequestResolved, legal: each(approval.Failed, unknown),
		do: func(r *approval.Request, now time.Time) (ledger.Event, error) {
			return r.Resolve(raj, approval.NotSent, "", now)
		},
		refused: each(approval.ErrNotUnknown, pending, approved, byRule, executing, minted, spent, executed, failed, denied, expired, cancelled),
	},
	{
		name: "PickUp", says: "the asker has the outcome", who: agent, event: ledger.ResultPickedUp,
		legal: map[string]approval.State{
			executed: approval.Executed, failed: approval.Failed, denied: approval.Denied, expired: approval.Expired, cancelled: approval.Cancelled,
		},
		do:      func(r *approval.Request, now time.Time) (ledger.Event, error) { return r.PickUp(now) },
		refused: each(approval.ErrNotClaimed, pending, approved, byRule, executing, minted, spent, unknown),
	},
}

// TestMoves tries every move from every start. A legal one leads where the table
// says and records it; any other answers with the error of the table and leaves
// every field as it was.
func TestMoves(t *testing.T) {
	for _, m := range moves {
		for _, from := range begin {
			t.Run(m.name+" ("+m.says+") from "+from.name, func(t *testing.T) {
				r := from.make(t, epoch)
				was := r.Clone()
				e, err := m.do(r, epoch.Add(m.after))
				to, legal := m.legal[from.name]
				_, isRefused := m.refused[from.name]
				if silent := slices.Contains(m.silent, from.name); legal && (isRefused || silent) || !legal && isRefused == silent {
					t.Fatal("the table must say exactly one thing of this")
				}
				if !errors.Is(err, m.refused[from.name]) {
					t.Fatalf("error is %v, want %v", err, m.refused[from.name])
				}
				if !legal {
					if d := diff(was, r); d != "" || !e.IsZero() {
						t.Fatalf("it changed something, event %q\n%s", e.Kind, d)
					}
					return
				}
				if err != nil || r.State != to || e.Kind != m.event || e.Subject != string(r.ID) {
					t.Fatalf("%v: %s with %s, want %s with %s", err, r.State, e.Kind, to, m.event)
				}
				if r.State.Final() == r.EndedAt.IsZero() || r.State.Open() && r.State.Final() {
					t.Fatalf("%s, ended at %v", r.State, r.EndedAt)
				}
				if _, err := e.Entry(0, epoch); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

func diff(a, b *approval.Request) string {
	return cmp.Diff(a, b, cmpopts.EquateEmpty(), cmp.Comparer(func(a, b call.Call) bool { return a == b }))
}

// constants lists the constants of a type in a file, by value, with their comments.
func constants(t *testing.T, file, typ string) (values []string, says map[string]string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	must(t, err)
	says = make(map[string]string)
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			v, ok := s.(*ast.ValueSpec)
			if id, isIdent := v.Type.(*ast.Ident); !ok || !isIdent || id.Name != typ {
				continue
			}
			value, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
			must(t, err)
			text := v.Doc.Text()
			if text == "" {
				text = v.Comment.Text()
			}
			values = append(values, value)
			says[value] = strings.TrimSpace(strings.TrimPrefix(strings.Join(strings.Fields(text), " "), v.Names[0].Name+" "))
		}
	}
	return values, says
}

func TestListsMissNoConstant(t *testing.T) {
	var states, causes []string
	for _, s := range approval.States {
		states = append(states, string(s))
	}
	for _, c := range approval.Causes {
		causes = append(causes, string(c))
	}
	for _, c := range []struct {
		typ  string
		list []string
	}{{"State", states}, {"Cause", causes}} {
		declared, _ := constants(t, "state.go", c.typ)
		if !slices.Equal(declared, c.list) {
			t.Errorf("%s: declared %q, listed %q", c.typ, declared, c.list)
		}
	}
	for _, s := range approval.States {
		if !slices.ContainsFunc(begin, func(b struct {
			name string
			make func(testing.TB, time.Time) *approval.Request
		},
		) bool {
			return b.make(t, epoch).State == s
		}) {
			t.Errorf("no test starts from %s", s)
		}
	}
	if approval.State("").Open() || approval.State("").Final() || approval.State("done").Final() {
		t.Error("what is no state is open or final")
	}
}

const docs = "../../docs/states.md"

// TestDocsStates holds docs/states.md to the table and to the comments of the
// states. AYEGATE_WRITE_DOCS=1 writes it anew.
func TestDocsStates(t *testing.T) {
	want := statesDocument(t)
	if os.Getenv("AYEGATE_WRITE_DOCS") == "1" {
		must(t, os.WriteFile(docs, []byte(want), 0o644))
	}
	got, err := os.ReadFile(docs)
	must(t, err)
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Errorf("docs/states.md is not what the code does; AYEGATE_WRITE_DOCS=1 go test ./internal/approval writes it (-code +document):\n%s", d)
	}
}

func statesDocument(t *testing.T) string {
	var b strings.Builder
	b.WriteString("# States of a request\n\n<!-- Written by TestDocsStates of internal/approval from the table that its tests check the code against. -->\n\n")
	b.WriteString("Each change is one commit together with the event that records it. A move that is not in the table changes nothing and says why.\n\n")
	b.WriteString("```mermaid\nstateDiagram-v2\n    [*] --> pending: a rule asks\n    [*] --> approved: a rule allows\n    [*] --> denied: a rule denies\n")
	var rows []string
	for _, m := range moves {
		to := make(map[approval.State][]string) // where it leads, from where
		for _, from := range begin {
			next, ok := m.legal[from.name]
			if !ok {
				continue
			}
			was := string(from.make(t, epoch).State)
			if !slices.Contains(to[next], was) {
				to[next] = append(to[next], was)
			}
		}
		for _, next := range approval.States {
			for _, was := range to[next] {
				if was != string(next) {
					fmt.Fprintf(&b, "    %s --> %s: %s (%s)\n", was, next, m.name, m.says)
				}
			}
			if len(to[next]) > 0 {
				rows = append(rows, fmt.Sprintf("| `%s` | %s | %s | %s | %s | `%s` |\n", m.name, m.says, m.who, strings.Join(to[next], ", "), next, m.event))
			}
		}
	}
	for _, s := range approval.States {
		if s.Final() {
			fmt.Fprintf(&b, "    %s --> [*]\n", s)
		}
	}
	b.WriteString("```\n\n## Who acts next\n\n| state | |\n|---|---|\n")
	states, says := constants(t, "state.go", "State")
	for _, s := range states {
		fmt.Fprintf(&b, "| `%s` | %s |\n", s, says[s])
	}
	b.WriteString("\n## Moves\n\n| move | when | by | from | to | event |\n|---|---|---|---|---|---|\n" + strings.Join(rows, ""))
	b.WriteString("\n## Causes\n\nWhere the state alone does not say why:\n\n| cause | |\n|---|---|\n")
	causes, says := constants(t, "state.go", "Cause")
	for _, c := range causes {
		fmt.Fprintf(&b, "| `%s` | %s |\n", c, says[c])
	}
	return b.String()
}
