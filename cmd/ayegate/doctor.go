package main

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/ayegate/ayegate/internal/config"
	"github.com/ayegate/ayegate/internal/policy"
)

// finding is one thing the doctor looked at.
type finding struct {
	OK   bool   `json:"ok"`
	What string `json:"what"`
	Do   string `json:"do,omitempty"`
}

func (w *world) doctorCmd(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "doctor", Short: "look for what is wrong: configuration, policy, servers, clock, credentials", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, dir, err := w.load(g.config)
			if err != nil {
				return err
			}
			findings := append(w.checkFiles(cfg, dir), checkServers(cfg)...)
			findings = append(findings, w.checkRunning(cmd, g)...)
			sick := 0
			for _, f := range findings {
				if !f.OK {
					sick++
				}
				if g.json {
					if err := w.line(f); err != nil {
						return err
					}
					continue
				}
				mark := "ok   "
				if !f.OK {
					mark = "WRONG"
				}
				fmt.Fprintf(w.out, "%s  %s\n", mark, visible(f.What))
				if f.Do != "" {
					fmt.Fprintf(w.out, "       %s\n", visible(f.Do))
				}
			}
			if sick > 0 {
				return &exit{code: exitFailure, err: fmt.Errorf("%d things need attention", sick)}
			}
			return nil
		},
	}
}

func (w *world) checkFiles(cfg config.Config, dir string) []finding {
	out := []finding{{OK: true, What: "the configuration loads"}}
	if cfg.Policy == "" {
		out = append(out, finding{OK: true, What: "no policy file: the starter policy asks about everything"})
	} else if src, err := os.ReadFile(within(dir, cfg.Policy)); err != nil {
		out = append(out, finding{What: "the policy cannot be read: " + err.Error(), Do: "ayegate does not start without it"})
	} else if _, err := policy.Parse(cfg.Policy, src); err != nil {
		out = append(out, finding{What: "the policy does not load: " + err.Error(), Do: "a running ayegate keeps the old one"})
	} else {
		out = append(out, finding{OK: true, What: "the policy loads"})
	}
	if !cfg.Loopback() {
		out = append(out, finding{OK: cfg.TLS.On() || cfg.Proxy, What: "reachable from other machines at " + cfg.Listen})
	}
	name, err := w.tokenFile()
	if err == nil {
		_, err = w.token()
	}
	var e *exit
	switch {
	case err == nil:
		out = append(out, finding{OK: true, What: "this terminal has a person's token: " + name})
	case errors.As(err, &e):
		out = append(out, finding{What: err.Error(), Do: e.hint})
	default:
		out = append(out, finding{What: err.Error()})
	}
	return out
}

func checkServers(cfg config.Config) []finding {
	var out []finding
	for _, id := range slices.Sorted(maps.Keys(cfg.Servers)) {
		s := cfg.Servers[id]
		if s.Command == "" {
			continue
		}
		path, err := exec.LookPath(s.Command)
		if err != nil {
			out = append(out, finding{What: "server " + id + ": " + s.Command + " is not there", Do: "install it or write its full path"})
			continue
		}
		if abs, err := filepath.Abs(path); err == nil {
			path = abs
		}
		out = append(out, finding{OK: true, What: "server " + id + " starts " + path})
	}
	return out
}

func (w *world) checkRunning(cmd *cobra.Command, g *globals) []finding {
	base, err := w.base(g)
	if err != nil {
		return []finding{{What: err.Error()}}
	}
	req, err := http.NewRequestWithContext(cmd.Context(), http.MethodGet, base+"/readyz", nil)
	if err != nil {
		return []finding{{What: err.Error()}}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return []finding{{OK: true, What: "nothing runs at " + base, Do: "start it with: ayegate serve"}}
	}
	defer resp.Body.Close()
	out := []finding{{OK: resp.StatusCode == http.StatusOK, What: "runs at " + base + ", ready: " + resp.Status}}
	if at, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		skew := w.now().Sub(at).Abs()
		out = append(out, finding{OK: skew < 30*time.Second, What: fmt.Sprintf("its clock and this one differ by %s", skew.Round(time.Second))})
	}
	return append(out, w.checkPins(cmd, g)...)
}

// checkPins tells of tools whose definition changed: their calls are refused
// until somebody looks.
func (w *world) checkPins(cmd *cobra.Command, g *globals) []finding {
	c, err := w.client(g)
	if err != nil {
		return nil
	}
	list, err := c.Definitions(cmd.Context(), true)
	if err != nil {
		return []finding{{What: "your token is not accepted: " + err.Error()}}
	}
	var out []finding
	for _, d := range list.Definitions {
		out = append(out, finding{What: "the definition of " + d.Server + "." + d.Tool + " changed; its calls are refused", Do: "look at it: ayegate tools --held"})
	}
	return out
}
