package gateway

import (
	"strings"
	"time"

	"github.com/ayegate/ayegate/internal/mcp"
)

// Hold says how long a call that waits for people is held open before the agent
// is told to come back, and how often it hears of it meanwhile. What an agent
// says its name is tunes this and nothing else.
type Hold struct {
	Default time.Duration            // for clients that no table knows; 45 s
	Clients map[string]time.Duration // by clientInfo.name or the beginning of it; wins over the built-in table
	Every   time.Duration            // between two progress notifications; 10 s
}

func (h Hold) orDefaults() Hold {
	h.Default = orElse(h.Default, 45*time.Second)
	h.Every = orElse(h.Every, 10*time.Second)
	return h
}

// patience is how long clients wait for an answer, on the safe side of what was
// measured. A name stands for all names that begin with it.
var patience = map[string]struct{ http, stdio time.Duration }{
	"claude-code":           {270 * time.Second, 15 * time.Minute}, // progress resets its idle clock, not silence
	"codex-mcp-client":      {240 * time.Second, 240 * time.Second},
	"gemini-cli-mcp-client": {540 * time.Second, 540 * time.Second},
	"opencode":              {15 * time.Minute, 15 * time.Minute},
	"Visual Studio Code":    {15 * time.Minute, 15 * time.Minute},
	"openai-agents":         {4 * time.Second, 4 * time.Second},
}

// budget is how long to hold a call of this client. Without progress the agent
// hears nothing meanwhile, and almost every client gives up after a minute.
func (h Hold) budget(c mcp.Client, progress bool) time.Duration {
	name := textAt(c.Info, "name")
	d, ok := longest(h.Clients, name)
	if !ok {
		d = h.Default
		if p, known := longest(patience, name); known {
			d = p.http
			if c.Transport == "stdio" {
				d = p.stdio
			}
		}
	}
	if !progress {
		d = min(d, max(h.Default, 45*time.Second))
	}
	return d
}

// longest finds the entry whose key is the longest beginning of a name.
func longest[T any](table map[string]T, name string) (found T, ok bool) {
	best := -1
	for key, v := range table {
		if len(key) > best && key != "" && strings.HasPrefix(name, key) {
			found, ok, best = v, true, len(key)
		}
	}
	return found, ok
}
