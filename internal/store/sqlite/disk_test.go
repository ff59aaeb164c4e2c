//go:build unix

package sqlite_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ayegate/ayegate/internal/store"
	"github.com/ayegate/ayegate/internal/store/storetest"
)

const diskDir = "STORETEST_DISK_DIR"

// TestDiskError lets the system refuse writing to the log in the middle of a
// commit (a limit on the size of files, in a process of its own): RACE-25 with an
// error that SQLite itself meets. What was acknowledged before is there.
func TestDiskError(t *testing.T) {
	if dir := os.Getenv(diskDir); dir != "" {
		writeUntilTheDiskFails(t, dir)
		return
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDiskError$", "-test.v")
	cmd.Env = append(os.Environ(), diskDir+"="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var acked int
	_, after, _ := strings.Cut(string(out), "acknowledged ")
	if _, err := fmt.Sscan(after, &acked); err != nil || acked < 10 {
		t.Fatalf("%d acknowledged, %v\n%s", acked, err, out)
	}
	s := at(t, dir)
	for n := range acked {
		if _, err := s.Get(t.Context(), storetest.ID(n)); err != nil {
			t.Fatalf("request %d was acknowledged: %v", n, err)
		}
	}
	storetest.Consistent(t, s)
}

func writeUntilTheDiskFails(t *testing.T, dir string) {
	signal.Ignore(syscall.SIGXFSZ)
	s := at(t, dir)
	for n := range 10 {
		create(t, s, n)
	}
	info, err := os.Stat(filepath.Join(dir, "ayegate.db-wal"))
	if err != nil {
		t.Fatal(err)
	}
	var whole syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &whole); err != nil {
		t.Fatal(err)
	}
	limit := whole
	limit.Cur = uint64(info.Size()) + 100_000
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	n := 10
	for err == nil {
		r, e := opening(s, n)
		if err = s.Create(t.Context(), r, e); err == nil {
			n++
		}
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &whole); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(err, store.ErrInDoubt) && !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("request %d is told %v", n, err)
	}
	r, e := opening(s, n+1)
	if again := s.Create(t.Context(), r, e); !errors.Is(again, store.ErrUnavailable) {
		t.Fatalf("after %v the next one is told %v", err, again)
	}
	if _, err := s.Get(t.Context(), storetest.ID(0)); err != nil {
		t.Fatalf("reading: %v", err)
	}
	fmt.Printf("after %d: %v\nacknowledged %d\n", n, err, n)
}
