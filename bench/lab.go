package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// target is one way to the echo server.
type target struct {
	name    string
	url     string
	key     string
	session string
	pid     int // of the process in between; 0 where there is none
}

// lab is everything that runs beside the load.
type lab struct {
	targets []*target
	base    string // of ayegate
	agent   string
	human   string
}

const policyFile = `version: 1
approvers: {me: {any_of: ["user:you"]}}
rules:
  - {id: echo, tool: "*.echo", allow: {tier: R0}}
  - {id: pay, tool: "*.pay", ask: {of: me, tier: R1}}
`

func newLab(ctx context.Context, dir, binary string) (*lab, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	start := func(name string, args ...string) (int, error) {
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Stderr = os.Stderr
		cmd.Env = append(os.Environ(), "AYEGATE_HOME="+dir)
		if err := cmd.Start(); err != nil {
			return 0, err
		}
		go cmd.Wait() //nolint:errcheck // killed at the end
		return cmd.Process.Pid, nil
	}
	echoAt, proxyAt, floorAt, ayeAt := freePort(), freePort(), freePort(), freePort()
	if _, err := start(self, "-role", "echo", "-listen", echoAt); err != nil {
		return nil, err
	}
	proxy, err := start(self, "-role", "proxy", "-listen", proxyAt, "-upstream", "http://"+echoAt)
	if err != nil {
		return nil, err
	}
	floor, err := start(self, "-role", "floor", "-listen", floorAt, "-upstream", "http://"+echoAt+"/mcp", "-dir", dir)
	if err != nil {
		return nil, err
	}
	cfg := filepath.Join(dir, "ayegate.yaml")
	text := fmt.Sprintf("listen: %s\npolicy: policy.yaml\nservers: {echo: {url: \"http://%s/mcp\"}}\nagents: [{id: bench}]\nlimits: {pending_per_agent: 20000}\n", ayeAt, echoAt)
	if err := errors.Join(os.WriteFile(cfg, []byte(text), 0o600), os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte(policyFile), 0o600)); err != nil {
		return nil, err
	}
	l := &lab{base: "http://" + ayeAt}
	for class, name := range map[string]string{"agent": "bench", "human": "you"} {
		cmd := exec.CommandContext(ctx, binary, "keys", "add", class, name, "--config", cfg, "-q")
		cmd.Env = append(os.Environ(), "AYEGATE_HOME="+dir)
		cmd.Stderr = os.Stderr
		key, err := cmd.Output()
		if err != nil {
			return nil, err
		}
		if class == "agent" {
			l.agent = strings.TrimSpace(string(key))
		} else {
			l.human = strings.TrimSpace(string(key))
		}
	}
	gate, err := start(binary, "serve", "--config", cfg)
	if err != nil {
		return nil, err
	}
	for _, at := range []string{echoAt, proxyAt, floorAt, ayeAt} {
		if err := listening(at); err != nil {
			return nil, err
		}
	}
	l.targets = []*target{
		{name: "direct", url: "http://" + echoAt + "/mcp"},
		{name: "plain proxy", url: "http://" + proxyAt + "/mcp", pid: proxy},
		{name: "yardstick", url: "http://" + floorAt + "/mcp", pid: floor},
		{name: "ayegate", url: l.base + "/mcp/echo", key: l.agent, pid: gate},
	}
	for _, t := range l.targets {
		if err := t.handshake(); err != nil {
			return nil, fmt.Errorf("%s: %w", t.name, err)
		}
	}
	return l, nil
}

var client = &http.Client{Transport: transport(), Timeout: time.Minute}

func (t *target) post(body []byte) (*http.Response, error) {
	req, err := http.NewRequest(http.MethodPost, t.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if t.key != "" {
		req.Header.Set("Authorization", "Bearer "+t.key)
	}
	if t.session != "" {
		req.Header.Set("Mcp-Session-Id", t.session)
		req.Header.Set("MCP-Protocol-Version", "2025-11-25")
	}
	return client.Do(req)
}

func (t *target) handshake() error {
	resp, err := t.post([]byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s %w", resp.Status, text, err)
	}
	if t.key == "" {
		return nil
	}
	t.session = resp.Header.Get("Mcp-Session-Id")
	resp, err = t.post([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// measured is one target at one concurrency.
type measured struct {
	Target   string  `json:"target"`
	Workers  int     `json:"workers"`
	PerSec   float64 `json:"callsPerSecond"`
	P50      float64 `json:"p50us"`
	P99      float64 `json:"p99us"`
	CPU      float64 `json:"cpuUsPerCall"`
	RSS      float64 `json:"rssMB"`
	Failures int64   `json:"failures"`
}

// calls measures every target in turns and returns medians over the rounds.
func (l *lab) calls(slice time.Duration, rounds int) []measured {
	var out []measured
	for _, workers := range []int{1, 16, 64} {
		all := make([][]measured, len(l.targets))
		for round := range rounds + 1 {
			for i, t := range l.targets {
				m := t.measure(workers, slice)
				if round > 0 { // the first round warms up
					all[i] = append(all[i], m)
				}
			}
		}
		for i, t := range l.targets {
			m := measured{Target: t.name, Workers: workers}
			m.PerSec = median(all[i], func(m measured) float64 { return m.PerSec })
			m.P50 = median(all[i], func(m measured) float64 { return m.P50 })
			m.P99 = median(all[i], func(m measured) float64 { return m.P99 })
			m.CPU = median(all[i], func(m measured) float64 { return m.CPU })
			m.RSS = median(all[i], func(m measured) float64 { return m.RSS })
			for _, x := range all[i] {
				m.Failures += x.Failures
			}
			out = append(out, m)
		}
	}
	return out
}

func median(all []measured, of func(measured) float64) float64 {
	v := make([]float64, len(all))
	for i, m := range all {
		v[i] = of(m)
	}
	slices.Sort(v)
	if len(v) == 0 {
		return 0
	}
	return v[len(v)/2]
}

var callSeq atomic.Int64

// measure keeps workers busy for a while.
func (t *target) measure(workers int, d time.Duration) measured {
	before := cpu(t.pid)
	deadline := time.Now().Add(d)
	var wg sync.WaitGroup
	took := make([][]time.Duration, workers)
	var failures atomic.Int64
	started := time.Now()
	for i := range workers {
		wg.Go(func() {
			for time.Now().Before(deadline) {
				n := callSeq.Add(1)
				body := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"path":"/srv/data/reports/2026/q3.md","mode":"read","n":%d,"tags":["a","b","c"]}}}`, n, n)
				begin := time.Now()
				if !t.once(body) {
					failures.Add(1)
				}
				took[i] = append(took[i], time.Since(begin))
			}
		})
	}
	wg.Wait()
	elapsed := time.Since(started)
	all := slices.Concat(took...)
	slices.Sort(all)
	m := measured{PerSec: float64(len(all)) / elapsed.Seconds(), RSS: rss(t.pid), Failures: failures.Load()}
	if len(all) > 0 {
		m.P50 = micros64(all[len(all)/2])
		m.P99 = micros64(all[len(all)*99/100])
		m.CPU = (cpu(t.pid) - before).Seconds() * 1e6 / float64(len(all))
	}
	return m
}

func (t *target) once(body []byte) bool {
	resp, err := t.post(body)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return err == nil && resp.StatusCode == http.StatusOK && bytes.Contains(text, []byte(`"result"`)) && !bytes.Contains(text, []byte(`"isError":true`))
}

func micros64(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

// cpu is the processor time of a process so far; 0 where the system does not tell.
func cpu(pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil || pid == 0 {
		return 0
	}
	f := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	var ticks int64
	for _, s := range f[11:13] {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return 0
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond // USER_HZ is 100
}

func rss(pid int) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil || pid == 0 {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.ParseFloat(strings.Fields(v)[0], 64)
			if err != nil {
				return 0
			}
			return kb / 1024
		}
	}
	return 0
}

func listening(addr string) error {
	for range 100 {
		c, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			return c.Close()
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("nothing listens at %s", addr)
}

func freePort() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer l.Close()
	return l.Addr().String()
}
