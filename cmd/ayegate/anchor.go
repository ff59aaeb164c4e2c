package main

import (
	"context"
	"errors"
	"os"

	"github.com/ayegate/ayegate/internal/ledger"
)

// The anchor is a signed checkpoint in a file beside the database. When the
// database no longer holds what the checkpoint promises, it was rolled back or
// replaced: approvals that were used could come back to life, so everything open
// is void (RACE-23, AUD-03). Whoever wants to detect somebody who changes both
// keeps a copy of the checkpoint elsewhere.

// checkAnchor compares the store with the last checkpoint.
func (p *program) checkAnchor(ctx context.Context) error {
	if p.anchor == "" {
		return nil
	}
	text, err := os.ReadFile(p.anchor)
	if errors.Is(err, os.ErrNotExist) {
		if p.sizeAtOpen == 0 {
			return nil // a new store
		}
		return p.voidOpen(ctx, "the checkpoint beside the database is missing", "promised", "unknown")
	}
	if err != nil {
		return err
	}
	was, err := ledger.ParseCheckpoint(text, p.signer.PublicKey())
	if err != nil {
		return &exit{code: exitFailure, err: errors.Join(errors.New("the checkpoint "+p.anchor+" cannot be trusted"), err), hint: "find out who changed it before you move it away"}
	}
	head, err := p.store.Head(ctx)
	if err != nil {
		return err
	}
	if head.Size >= was.Size {
		then, err := ledger.HeadOf(was.Size, p.store.Hashes(ctx))
		if err == nil && then.Root == was.Root {
			p.anchored = was.Size
			return nil
		}
	}
	return p.voidOpen(ctx, "the record is not the one of the last checkpoint", "promised", was.Size)
}

// voidOpen ends everything open, loudly: approvals that were used, and calls that
// were denied, must not come back to life with an older database.
func (p *program) voidOpen(ctx context.Context, why string, args ...any) error {
	n, err := p.desk.VoidAll(ctx, why)
	if err != nil {
		return err
	}
	p.log.Error("THE RECORD WAS ROLLED BACK OR REPLACED, or nobody can tell: "+why+". Everything open was voided.",
		append([]any{"checkpoint", p.anchor, "found", p.sizeAtOpen, "voided", n}, args...)...)
	return nil
}

// writeAnchor keeps the checkpoint up to date.
func (p *program) writeAnchor(ctx context.Context) {
	if p.anchor == "" || p.store == nil || p.signer == nil {
		return
	}
	head, err := p.store.Head(ctx)
	if err != nil || head.Size == p.anchored || head.Size == 0 {
		return
	}
	text, err := p.signer.Checkpoint(head, p.store.Now())
	if err == nil {
		err = replaceFile(p.anchor, text)
	}
	if err != nil {
		p.log.Error("the checkpoint could not be written", "file", p.anchor, "err", err)
		return
	}
	p.anchored = head.Size
}

// replaceFile puts new contents in the place of a file at once.
func replaceFile(name string, text []byte) error {
	next := name + ".new"
	f, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(next, name)
}
