package desk_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/desk"
	"github.com/ayegate/ayegate/internal/ledger"
)

// MCP-10: a tool that goes back and forth is no longer let be when it is back: a
// person accepts it, also after a restart.
func TestFlapping(t *testing.T) {
	f := setup(t, rules)
	f.offer(t, "good")
	for round := range 2 {
		if pin := f.offer(t, "bad"); pin.Accepted {
			t.Fatal(round)
		}
		f.wall.Move(time.Minute)
		if pin := f.offer(t, "good"); pin.Accepted != (round == 0) {
			t.Fatalf("round %d: accepted %v", round, pin.Accepted)
		}
	}
	f.wall.Move(2 * time.Minute)
	again := over(t, f.store, rules)
	for _, d := range []*fixture{f, again} {
		if _, held := d.Tool("fs", "write_file"); !held {
			t.Fatal("not held")
		}
	}
	pin := f.offer(t, "good")
	_, err := f.Submit(t.Context(), toTool(t, pin, "a"))
	wants(t, err, desk.ErrHeldTool)
	if pin, err = f.Accept(t.Context(), ana, "fs", "write_file", pin.Definition); err != nil || !pin.Accepted {
		t.Fatal(err)
	}
	f.submit(t, toTool(t, pin, "a"))
	f.wall.Move(time.Hour)
	if f.offer(t, "bad").Accepted || !f.offer(t, "good").Accepted {
		t.Fatal("an old quarrel counts for ever")
	}
}

// MCP-15: what is held already and changes again is recorded once a minute. What a
// person accepts is what they saw, also when the store has not heard of it.
func TestHeldToolsChangeQuietly(t *testing.T) {
	f := setup(t, rules)
	f.offer(t, "v")
	for i := range 45 {
		if pin := f.offer(t, fmt.Sprint("v", i)); pin.Accepted {
			t.Fatal(i)
		}
		f.wall.Move(time.Second)
	}
	if n := len(f.recorded(t, ledger.DefinitionChanged)); n != 1 {
		t.Fatalf("%d events", n)
	}
	shown := f.Pins()[0]
	if shown.Accepted || string(shown.Raw) != string(tool("v44")) || string(shown.Before) != string(tool("v")) {
		t.Fatalf("people see %s", shown.Raw)
	}
	newest := f.offer(t, "v45")
	_, err := f.Accept(t.Context(), ana, "fs", "write_file", shown.Definition)
	wants(t, err, approval.ErrStale)
	if pin, err := f.Accept(t.Context(), ana, "fs", "write_file", newest.Definition); err != nil || !pin.Accepted {
		t.Fatalf("%+v %v", pin, err)
	}
	f.submit(t, toTool(t, newest, "a"))
	if next := over(t, f.store, rules).Pins()[0]; !next.Accepted || next.Definition != newest.Definition {
		t.Fatalf("%+v", next)
	}
}

// entries counts what the record has of definitions.
func (f *fixture) entries(t *testing.T) int {
	return len(f.recorded(t, ledger.DefinitionPinned, ledger.DefinitionChanged, ledger.DefinitionAccepted))
}

func offerMany(t *testing.T, f *fixture, from, to int, text string) {
	t.Helper()
	for i := from; i < to; i++ {
		name := fmt.Sprint("write_", i)
		if _, err := f.Offer(t.Context(), "fs", name, fmt.Appendf(nil, `{"name":%q,"description":%q}`, name, text)); err != nil {
			t.Fatal(err)
		}
	}
}

// MCP-15, P6 by exhaustion: a server that changes everything all the time costs the
// record some dozen entries, and none of its tools runs until it rests.
func TestStorm(t *testing.T) {
	f := setup(t, rules)
	const n = 200
	offerMany(t, f, 0, n, "v")
	quiet := f.offer(t, "quiet")
	approved := f.submit(t, toTool(t, quiet, "a"))
	f.approve(t, ana, approved.Request)
	before := f.entries(t)
	for round := range 30 {
		offerMany(t, f, 0, n, fmt.Sprint("v", round))
		f.wall.Move(time.Second)
	}
	if grew := f.entries(t) - before; grew > 60 {
		t.Fatalf("%d entries", grew)
	}
	if _, held := f.Tool("fs", "write_file"); !held {
		t.Fatal("a tool of a server in quarantine is passed on")
	}
	_, err := f.Submit(t.Context(), toTool(t, quiet, "b"))
	wants(t, err, desk.ErrHeldTool)
	_, _, err = f.Execute(t.Context(), bot, approved, f.do)
	wants(t, err, desk.ErrHeldTool)
	f.ran(t, 0)
	if pin, err := f.Offer(t.Context(), "git", "log", []byte(`{"name":"log"}`)); err != nil || !pin.Accepted {
		t.Fatal("another server is in quarantine", err)
	}
	f.wall.Move(time.Minute)
	offerMany(t, f, 0, n, "v29")
	if grew := f.entries(t) - before; grew > 60 {
		t.Fatalf("%d entries after it", grew)
	}
	if _, _, err = f.Execute(t.Context(), bot, approved, f.do); err != nil {
		t.Fatal(err)
	}
	f.ran(t, 1)
	for _, name := range []string{"write_0", "write_199"} {
		known, held := f.Tool("fs", name)
		if !held {
			t.Fatalf("%s is passed on", name)
		}
		if _, err := f.Accept(t.Context(), ana, "fs", name, known.Definition); err != nil {
			t.Fatal(err)
		}
		if _, held = f.Tool("fs", name); held {
			t.Fatalf("%s is held", name)
		}
	}
	// What was back in time needs nobody.
	offerMany(t, f, 150, 160, "v")
	if _, held := f.Tool("fs", "write_150"); !held {
		t.Fatal("it went back and forth thirty times")
	}
}

// A storm that ends where it began leaves no trace but itself.
func TestStormThatPasses(t *testing.T) {
	f := setup(t, rules)
	offerMany(t, f, 0, 120, "v")
	offerMany(t, f, 0, 120, "w")
	offerMany(t, f, 0, 120, "v")
	if _, held := f.Tool("fs", "write_7"); !held {
		t.Fatal("no quarantine")
	}
	f.wall.Move(time.Minute)
	offerMany(t, f, 0, 120, "v")
	for _, pin := range f.Pins() {
		if !pin.Accepted {
			t.Fatalf("%s is held", pin.Tool)
		}
	}
	if have, stored := f.Pins(), over(t, f.store, rules).Pins(); len(have) != len(stored) || !stored[3].Accepted || !stored[119].Accepted {
		t.Fatal("the store has something else")
	}
}

// MCP-14: the names of one server are bounded, over its whole life.
func TestTooManyTools(t *testing.T) {
	f := setup(t, rules)
	offerMany(t, f, 0, 2000, "v")
	_, err := f.Offer(t.Context(), "fs", "one_more", []byte(`{"name":"one_more"}`))
	wants(t, err, desk.ErrTooManyTools)
	if _, err = f.Offer(t.Context(), "git", "log", []byte(`{"name":"log"}`)); err != nil {
		t.Fatal(err)
	}
	again := over(t, f.store, rules)
	_, err = again.Offer(t.Context(), "fs", "one_more", []byte(`{"name":"one_more"}`))
	wants(t, err, desk.ErrTooManyTools)
}
