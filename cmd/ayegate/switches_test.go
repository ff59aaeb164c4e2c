package main

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestNoSwitchOpensTheGate lists everything by which ayegate can be told to behave
// otherwise: flags and variables. None of them makes a call run that would wait, or
// a check pass that would fail; whoever adds one reads this first (OPS-04).
func TestNoSwitchOpensTheGate(t *testing.T) {
	t.Parallel()
	w := &world{env: func(string) (string, bool) { return "", false }}
	flags := map[string]bool{}
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) { flags[f.Name] = true })
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	root := w.root()
	root.InitDefaultVersionFlag()
	walk(root)
	want := []string{
		// every command: where things are, how to write, never to ask
		"config", "url", "json", "plain", "quiet", "no-input", "no-color", "version",
		"listen", "store", "verbose", "no-browser", "dir", // where to listen, keep and show
		"all", "held", "after", "follow", // what to list
		"yes", "hash", "confirm", "reason", "note", // a person's word; the server asks for it again
		"save",                             // where a token is kept
		"policy", "junit", "agent", "root", // what to explain or test, offline
		"workspace", "checkpoint", "key", // what to verify against, offline
	}
	compare(t, "flag", slices.Sorted(maps.Keys(flags)), want)

	variable := regexp.MustCompile(`"(AYEGATE_[A-Z_]+)"`)
	variables := map[string]bool{}
	err := filepath.WalkDir("../..", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := os.ReadFile(name)
		for _, m := range variable.FindAllSubmatch(text, -1) {
			variables[string(m[1])] = true
		}
		return err
	})
	must(t, err)
	compare(t, "variable", slices.Sorted(maps.Keys(variables)), []string{
		"AYEGATE_HOME", "AYEGATE_CONFIG", "AYEGATE_URL", // where things are
		"AYEGATE_TOKEN_FILE", "AYEGATE_AGENT_KEY", "AYEGATE_AGENT_KEY_FILE", // who this is
	})
}

func compare(t *testing.T, what string, have, want []string) {
	t.Helper()
	for _, name := range have {
		if !slices.Contains(want, name) {
			t.Errorf("the %s %s is not in the list: can it make a call run that would wait?", what, name)
		}
	}
	for _, name := range want {
		if !slices.Contains(have, name) {
			t.Errorf("the %s %s is in the list and is not there", what, name)
		}
	}
}
