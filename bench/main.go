// Command bench measures what ayegate costs, in one run, side by side with the
// same call made directly, through a plain reverse proxy, and through a yardstick
// that does the least an approval gateway can do: parse, hash, and write an
// intent and an outcome durably around the call.
//
//	go run ./bench            # the table, about two minutes
//	go run ./bench -json out.json
//
// Figures of one run can be compared with each other and with nothing else:
// targets are measured in turns, round by round, on the same machine, and load
// generator, gateway and server share its cores. Ratios carry over, figures do not.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

func main() {
	role := flag.String("role", "", "internal: run as echo, proxy or floor")
	listen := flag.String("listen", "", "internal: address of a role")
	upstream := flag.String("upstream", "", "internal: upstream of a role")
	dir := flag.String("dir", "", "internal: folder of a role")
	slice := flag.Duration("slice", time.Second, "how long one target is measured at a time")
	rounds := flag.Int("rounds", 5, "how many turns each target gets; medians are printed")
	out := flag.String("json", "", "also write the figures to this file")
	binary := flag.String("ayegate", "", "the binary to measure instead of building one")
	held := flag.Int("held", 2000, "how many calls are held, approved and run")
	flag.Parse()
	if *role != "" {
		if err := serveRole(*role, *listen, *upstream, *dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if err := run(*slice, *rounds, *held, *out, *binary); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// report is what -json writes.
type report struct {
	Machine string            `json:"machine"`
	Go      string            `json:"go"`
	At      time.Time         `json:"at"`
	Calls   []measured        `json:"calls"`
	Held    map[string]string `json:"held"`
	Micro   []micro           `json:"micro"`
}

func run(slice time.Duration, rounds, held int, out, binary string) error {
	dir, err := os.MkdirTemp("", "ayegate-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if binary == "" {
		binary = filepath.Join(dir, "ayegate")
		build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", binary, "./cmd/ayegate")
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			return fmt.Errorf("build ayegate (run this from the repository): %w", err)
		}
	}
	if binary, err = filepath.Abs(binary); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	lab, err := newLab(ctx, dir, binary)
	if err != nil {
		return err
	}
	r := report{Machine: fmt.Sprintf("%d cores, %s/%s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH), Go: runtime.Version(), At: time.Now().UTC()}
	fmt.Printf("ayegate bench   %s   %s   %d rounds of %s, medians\n\n", r.Machine, r.Go, rounds, slice)
	r.Calls = lab.calls(slice, rounds)
	printCalls(r.Calls)
	if r.Held, err = lab.held(ctx, held); err != nil {
		return err
	}
	printHeld(r.Held)
	if r.Micro, err = micros(); err != nil {
		return err
	}
	printMicros(r.Micro)
	if out == "" {
		return nil
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(out, append(text, '\n'), 0o600)
}
