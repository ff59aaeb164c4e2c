package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

func printCalls(all []measured) {
	fmt.Println("one MCP tools/call that the policy allows; intent and outcome durable in ayegate and yardstick")
	fmt.Printf("  %-12s %8s %10s %9s %9s %10s %10s %9s %8s\n", "", "in flight", "calls/s", "p50 µs", "p99 µs", "of direct", "of yardst.", "CPU µs", "RSS MB")
	by := map[string]map[int]measured{}
	for _, m := range all {
		if by[m.Target] == nil {
			by[m.Target] = map[int]measured{}
		}
		by[m.Target][m.Workers] = m
	}
	for _, m := range all {
		direct, yard := by["direct"][m.Workers], by["yardstick"][m.Workers]
		note := ""
		if m.Failures > 0 {
			note = fmt.Sprintf("  %d FAILED", m.Failures)
		}
		fmt.Printf("  %-12s %8d %10.0f %9.0f %9.0f %10.2f %10.2f %9.0f %8.0f%s\n", m.Target, m.Workers, m.PerSec, m.P50, m.P99,
			m.PerSec/direct.PerSec, m.PerSec/yard.PerSec, m.CPU, m.RSS, note)
	}
	a, y := by["ayegate"], by["yardstick"]
	fmt.Printf("\n  added p50 at 1 in flight: ayegate %.0f µs, yardstick %.0f µs (ratio %.2f)   CPU per call: ratio %.2f\n\n",
		a[1].P50-by["direct"][1].P50, y[1].P50-by["direct"][1].P50, (a[1].P50-by["direct"][1].P50)/(y[1].P50-by["direct"][1].P50), a[16].CPU/y[16].CPU)
}

// micro is one Go benchmark.
type micro struct {
	Package string  `json:"package"`
	Name    string  `json:"name"`
	NsPerOp float64 `json:"nsPerOp"`
	MBs     float64 `json:"mbPerSecond,omitempty"`
	Allocs  float64 `json:"allocsPerOp"`
}

// micropackages are where benchmarks stand beside the code.
var micropackages = []string{"./internal/strictjson", "./internal/call", "./internal/policy", "./internal/ledger", "./internal/store/sqlite", "./internal/desk", "./internal/mcp", "./internal/gateway"}

var benchLine = regexp.MustCompile(`^Benchmark(\S+?)(?:-\d+)?\s+\d+\s+([\d.]+) ns/op(.*)$`)

func micros() ([]micro, error) {
	var out []micro
	for _, pkg := range micropackages {
		cmd := exec.Command("go", "test", "-run", "^$", "-bench", ".", "-benchmem", "-benchtime", "200ms", pkg)
		cmd.Stderr = os.Stderr
		text, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("benchmarks of %s: %w\n%s", pkg, err, text)
		}
		for line := range bytes.Lines(text) {
			m := benchLine.FindStringSubmatch(strings.TrimSpace(string(line)))
			if m == nil {
				continue
			}
			x := micro{Package: strings.TrimPrefix(pkg, "./internal/"), Name: m[1]}
			x.NsPerOp = number(m[2])
			f := strings.Fields(m[3])
			for i := 1; i < len(f); i += 2 {
				switch f[i] {
				case "MB/s":
					x.MBs = number(f[i-1])
				case "allocs/op":
					x.Allocs = number(f[i-1])
				}
			}
			out = append(out, x)
		}
	}
	return out, nil
}

func number(s string) float64 {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0
	}
	return v
}

func printMicros(all []micro) {
	fmt.Println("beside the code")
	for _, m := range all {
		extra := ""
		if m.MBs > 0 {
			extra = fmt.Sprintf("%8.0f MB/s", m.MBs)
		}
		fmt.Printf("  %-14s %-52s %12.0f ns/op %6.0f allocs %s\n", m.Package, m.Name, m.NsPerOp, m.Allocs, extra)
	}
}
