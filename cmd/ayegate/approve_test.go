package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
)

// TestInterruptedPrompt: an interrupt at the question leaves it, and nothing was
// decided, though nobody pressed return.
func TestInterruptedPrompt(t *testing.T) {
	t.Parallel()
	in, _ := io.Pipe()
	var out bytes.Buffer
	w := &world{in: in, err: &out}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	line, err := w.askFor(ctx, "Approve once? ")
	if line != "" || !errors.Is(err, context.Canceled) || codeOf(ctx, err) != exitInterrupted {
		t.Errorf("got %q, %v, exit %d", line, err, codeOf(ctx, err))
	}
}
