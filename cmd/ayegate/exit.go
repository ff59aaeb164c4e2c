package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ayegate/ayegate/api"
)

// Exit codes, as in wire.md.
const (
	exitDone        = 0
	exitFailure     = 1
	exitUsage       = 2
	exitDenied      = 3
	exitExpired     = 4
	exitNotFound    = 5
	exitOtherwise   = 6
	exitNotAllowed  = 7
	exitNeedsPerson = 8
	exitUnreachable = 9
	exitInterrupted = 130
)

// exit is an error that knows the code the command ends with.
type exit struct {
	code int
	err  error
	hint string // what to do next
}

func (e *exit) Error() string { return e.err.Error() }
func (e *exit) Unwrap() error { return e.err }

func usage(format string, args ...any) error {
	return &exit{code: exitUsage, err: fmt.Errorf(format, args...)}
}

// codes maps what the server says to how a command ends.
var codes = map[api.Code]int{
	api.NotFound:             exitNotFound,
	api.Unauthenticated:      exitNotAllowed,
	api.WrongCredentialClass: exitNotAllowed,
	api.Forbidden:            exitNotAllowed,
	api.NotEntitled:          exitNotAllowed,
	api.OwnAgent:             exitNotAllowed,
	api.ConfirmationRequired: exitNeedsPerson,
	api.DecidedOtherwise:     exitOtherwise,
	api.Stale:                exitOtherwise,
	api.NotPending:           exitOtherwise,
	api.Claimed:              exitOtherwise,
	api.PolicyChanged:        exitOtherwise,
	api.DefinitionChanged:    exitOtherwise,
	api.Expired:              exitExpired,
	api.BadRequest:           exitUsage,
}

// codeOf says how a command ends after an error.
func codeOf(ctx context.Context, err error) int {
	var e *exit
	var p *api.Problem
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &e):
		return e.code
	case errors.As(err, &p):
		if c, ok := codes[p.Code]; ok {
			return c
		}
		return exitFailure
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		return exitInterrupted
	case strings.HasPrefix(err.Error(), "unknown command"), strings.HasPrefix(err.Error(), "unknown flag"),
		strings.HasPrefix(err.Error(), "unknown shorthand"), strings.Contains(err.Error(), "arg(s)"):
		return exitUsage
	}
	return exitFailure
}

// tell writes an error to people: what happened, then what to do.
func (w *world) tell(err error) {
	if errors.Is(err, context.Canceled) {
		fmt.Fprintln(w.err, "ayegate: interrupted")
		return
	}
	fmt.Fprintln(w.err, "ayegate: "+visible(strings.TrimPrefix(err.Error(), "ayegate: ")))
	var e *exit
	switch {
	case errors.As(err, &e) && e.hint != "":
		fmt.Fprintln(w.err, "hint: "+e.hint)
	case errors.Is(err, api.Unauthenticated):
		fmt.Fprintln(w.err, "hint: your token is not known there; make one while ayegate is stopped: ayegate keys add human NAME --save")
	}
}
