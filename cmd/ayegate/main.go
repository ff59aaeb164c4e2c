// Command ayegate is the approval gateway for AI agents: the server, the tools of
// the people who decide, and the demonstration, in one binary.
//
// The package is wiring. It reads flags and files, opens what the packages below
// need (store, policy, keys, clock, randomness, listeners) and joins them; what a
// call, a policy or an approval is stands elsewhere. [program] is the whole of a
// running gateway, and the tests start the same one.
package main

import (
	"context"
	"crypto/rand"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/ayegate/ayegate/internal/store"
)

// version is set when a release is built.
var version = "dev"

func main() { os.Exit(live()) }

// live runs the command line of this process in the world as it is.
func live() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	w := &world{
		in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.LookupEnv, now: time.Now, rand: rand.Reader,
	}
	return w.run(ctx, os.Args[1:])
}

// world is everything a command may touch of the outside.
type world struct {
	in       io.Reader
	out, err io.Writer
	env      func(string) (string, bool)
	now      func() time.Time
	rand     io.Reader
	// over puts a store over the one that was opened; nil outside of tests, which
	// die at chosen writes.
	over func(store.Store) store.Store
}
