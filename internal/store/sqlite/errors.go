package sqlite

import (
	"errors"
	"fmt"

	sqlite "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/ayegate/ayegate/internal/store"
)

// fatalError ends a transaction, not only the change that met it.
type fatalError struct{ error }

func (e fatalError) Unwrap() error { return e.error }

// fatal marks an error of the database that is not about one change.
func fatal(err error) error {
	if err == nil {
		return nil
	}
	return fatalError{err}
}

// code is the primary result code of SQLite, 0 for other errors.
func code(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}

func isConstraint(err error) bool { return code(err) == sqlite3.SQLITE_CONSTRAINT }

// refused is for what failed before COMMIT was tried: nothing was written.
func (w *writer) refused(err error) error {
	w.judge(err)
	return fmt.Errorf("%w, nothing was changed: %w", store.ErrUnavailable, err)
}

// uncommitted is for a COMMIT that failed. A transaction that was locked out is
// still open and can be given up. Of one that failed on its way to the disk a
// crash may yet bring back the last page, and with it the whole: in doubt.
func (w *writer) uncommitted(err error) error {
	w.rollback()
	switch code(err) {
	case sqlite3.SQLITE_BUSY:
		return w.refused(err)
	case sqlite3.SQLITE_FULL:
	default:
		w.breakDown(err)
	}
	return fmt.Errorf("%w: %w", store.ErrInDoubt, err)
}

// judge tells errors that pass from those after which the file cannot be trusted.
func (w *writer) judge(err error) {
	switch code(err) {
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_MISUSE:
		w.breakDown(err)
	}
}

// breakDown ends the taking of changes for good.
func (w *writer) breakDown(err error) { w.broken.CompareAndSwap(nil, &err) }
