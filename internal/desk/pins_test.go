package desk_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/desk"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/store"
)

func tool(title string) []byte {
	return fmt.Appendf(nil, `{"name":"write_file","title":%q,"annotations":{"readOnlyHint":false,"destructiveHint":1}}`, title)
}

func (f *fixture) offer(t *testing.T, title string) desk.Pin {
	t.Helper()
	pin, err := f.Offer(t.Context(), "fs", "write_file", tool(title))
	must(t, err)
	return pin
}

// toTool is a call to the tool as the asker knows it.
func toTool(t *testing.T, pin desk.Pin, path string) desk.Ask {
	a := write(t, path)
	a.Tool = desk.Tool{Definition: pin.Definition, Known: true}
	return a
}

// MCP-10: a definition that changes voids what is open, hides the tool until a
// person accepts exactly what they saw, and lets it be again when it changes back.
func TestRugPull(t *testing.T) {
	f := setup(t, rules)
	first := f.offer(t, "write")
	if again := f.offer(t, "write"); !first.Accepted || again.Definition != first.Definition {
		t.Fatalf("%+v", first)
	}
	waits, approved := f.submit(t, toTool(t, first, "a")), f.submit(t, toTool(t, first, "b"))
	f.approve(t, ana, approved.Request)
	changed := f.offer(t, "write everything")
	if changed.Accepted || changed.Was != first.Definition || string(changed.Before) != string(first.Raw) {
		t.Fatalf("%+v", changed)
	}
	for _, tk := range []*desk.Ticket{waits, approved} {
		if got := f.get(t, tk.Request.ID); got.State != approval.Cancelled || got.Cause != approval.ByDefinition {
			t.Fatalf("%s %s", got.State, got.Cause)
		}
		_, _, err := f.Execute(t.Context(), bot, tk, f.do)
		wants(t, err, approval.ErrEnded)
	}
	if _, held := f.Tool("fs", "write_file"); !held {
		t.Fatal("not held")
	}
	for _, pin := range []desk.Pin{first, changed} {
		_, err := f.Submit(t.Context(), toTool(t, pin, "a"))
		wants(t, err, desk.ErrHeldTool)
	}
	f.wall.Move(time.Minute)
	if third := f.offer(t, "write nothing"); third.Was != first.Definition {
		t.Fatal("the accepted definition is forgotten")
	}
	_, err := f.Accept(t.Context(), ana, "fs", "write_file", changed.Definition)
	wants(t, err, approval.ErrStale)
	if back := f.offer(t, "write"); !back.Accepted {
		t.Fatal("it changed back")
	}
	f.submit(t, toTool(t, first, "a"))
	changed = f.offer(t, "write everything")
	_, err = f.Accept(t.Context(), nobody, "fs", "write_file", changed.Definition)
	wants(t, err, approval.ErrNoPerson)
	_, err = f.Accept(t.Context(), ana, "fs", "none", changed.Definition)
	wants(t, err, store.ErrNotFound)
	for range 2 {
		if pin, err := f.Accept(t.Context(), ana, "fs", "write_file", changed.Definition); err != nil || !pin.Accepted || pin.Before != nil {
			t.Fatalf("%+v %v", pin, err)
		}
	}
	_, err = f.Submit(t.Context(), toTool(t, first, "c")) // listed before, called after
	wants(t, err, approval.ErrDefinition)
	f.submit(t, toTool(t, changed, "c"))
	next := over(t, f.store, rules)
	if pins := next.Pins(); len(pins) != 1 || !pins[0].Accepted || pins[0].Definition != changed.Definition {
		t.Fatalf("%+v", pins)
	}
	var kinds []ledger.Kind
	for _, e := range f.recorded(t, ledger.DefinitionPinned, ledger.DefinitionChanged, ledger.DefinitionAccepted) {
		kinds = append(kinds, e.Kind)
	}
	if got := fmt.Sprint(kinds); got != "[definition.pinned definition.changed definition.changed definition.accepted definition.changed definition.accepted]" {
		t.Error(got)
	}
	if _, err := f.Offer(t.Context(), "fs", "bad", []byte(`{"name":"bad","name":"worse"}`)); err == nil {
		t.Error("pinned a definition with two names")
	}
	if h, _ := next.Tool("fs", "write_file"); h.Hints.ReadOnly == nil || *h.Hints.ReadOnly || h.Hints.Destructive != nil {
		t.Errorf("%+v", h.Hints)
	}
}

// MCP-10 when everything happens at once: no claim for a definition comes after
// the event that it changed, and what a desk thinks is pinned is what is stored.
func TestRugPullUnderLoad(t *testing.T) {
	f := setup(t, "version: 1\nrules: [{id: all, tool: \"fs.*\", allow: {tier: R0}}]\n")
	first := f.offer(t, "v0")
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				known, held := f.Tool("fs", "write_file")
				a := write(t, fmt.Sprint(w, i))
				a.Tool = known
				if tk, err := f.Submit(t.Context(), a); err == nil && !held {
					_, _, _ = f.Execute(t.Context(), bot, tk, f.do)
				}
			}
		})
	}
	var offers sync.WaitGroup
	for i := range 24 { // each changes the tool twice at most
		offers.Go(func() {
			pin, err := f.Offer(t.Context(), "fs", "write_file", tool(fmt.Sprint("v", i%3)))
			if err != nil {
				t.Error(err)
			}
			_, _ = f.Accept(t.Context(), ana, "fs", "write_file", pin.Definition)
		})
	}
	offers.Wait()
	close(stop)
	wg.Wait()
	inForce, of := first.Definition.String(), make(map[string]string)
	for _, e := range f.recorded(t, ledger.DefinitionChanged, ledger.DefinitionAccepted, ledger.RequestAsked, ledger.RequestClaimed) {
		def, _ := e.Text(ledger.FieldDefinition)
		switch e.Kind {
		case ledger.DefinitionChanged:
			inForce = ""
		case ledger.DefinitionAccepted:
			inForce = def
		case ledger.RequestAsked:
			of[e.Subject] = def
		default:
			if of[e.Subject] != inForce {
				t.Fatalf("entry %d: claimed for %s while %q was in force", e.Seq, of[e.Subject], inForce)
			}
		}
	}
	stored := over(t, f.store, rules).Pins()
	if have := f.Pins(); have[0].Accepted != stored[0].Accepted || have[0].Accepted && have[0].Definition != stored[0].Definition {
		t.Fatalf("%v is not %v", have[0], stored[0])
	}
	if (call.Hash{}) == have(f) {
		t.Fatal("no pin")
	}
}

func have(f *fixture) call.Hash { return f.Pins()[0].Definition }
