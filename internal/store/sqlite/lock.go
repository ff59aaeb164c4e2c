package sqlite

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/ayegate/ayegate/internal/store"
)

// lock is the right to write to a database, for one process. The system takes it
// back when the process dies; the file stays.
type lock struct{ file *os.File }

// acquire takes the lock or says who has it.
func acquire(path string, now time.Time) (*lock, error) {
	f, err := openLocked(path)
	if err != nil {
		if owner := ownerOf(path); owner != "" {
			return nil, fmt.Errorf("%w: %s is in use by %s", store.ErrUnavailable, strings.TrimSuffix(path, ".lock"), owner)
		}
		return nil, fmt.Errorf("%w: lock %s: %w", store.ErrUnavailable, path, err)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "an unnamed host"
	}
	text := fmt.Sprintf("process %d on %s since %s\n", os.Getpid(), host, now.UTC().Format(time.RFC3339))
	err = f.Truncate(0)
	if err == nil {
		_, err = f.WriteAt([]byte(text), 0)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: lock %s: %w", store.ErrUnavailable, path, errors.Join(err, f.Close()))
	}
	return &lock{f}, nil
}

func (l *lock) release() error { return l.file.Close() }

func ownerOf(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 256))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
