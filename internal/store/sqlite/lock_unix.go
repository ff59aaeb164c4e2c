//go:build unix

package sqlite

import (
	"os"
	"syscall"
)

// openLocked opens the file and locks it, or fails at once when another open
// file has the lock, in this process or in another.
func openLocked(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
