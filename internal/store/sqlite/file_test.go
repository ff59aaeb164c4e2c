package sqlite_test

import (
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/store"
	"github.com/ayegate/ayegate/internal/store/sqlite"
	"github.com/ayegate/ayegate/internal/store/storetest"
)

// at opens the database of a directory; closing it is the test's.
func at(t *testing.T, dir string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(dir, "ayegate.db"), Now: storetest.NewWall().Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func refuses(t *testing.T, dir string, want error) {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(dir, "ayegate.db"), Now: time.Now})
	if err == nil {
		s.Close()
	}
	if !errors.Is(err, want) {
		t.Fatalf("opening: %v, want %v", err, want)
	}
}

// meddle writes to a database behind the store's back.
func meddle(t *testing.T, dir string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "ayegate.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, q := range statements {
		if _, err := db.ExecContext(t.Context(), q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
}

// lives puts a few requests and entries into a store and closes it.
func lives(t *testing.T, dir string, n int) {
	t.Helper()
	s := at(t, dir)
	for i := range n {
		create(t, s, i)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func create(t *testing.T, s store.Store, n int) *approval.Request {
	t.Helper()
	r, es := opening(s, n)
	if err := s.Create(t.Context(), r, es); err != nil {
		t.Fatal(err)
	}
	return r
}

func opening(s store.Store, n int) (*approval.Request, []ledger.Event) {
	r, e := approval.Open(storetest.Opening(n), s.Now())
	return r, []ledger.Event{e}
}

// TestOneWriter: a second process is told who has the database; readers are
// welcome all the time.
func TestOneWriter(t *testing.T) {
	dir := t.TempDir()
	s := at(t, dir)
	create(t, s, 1)
	_, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(dir, "ayegate.db"), Now: time.Now})
	if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), fmt.Sprintf("in use by process %d", os.Getpid())) {
		t.Fatalf("the second owner is told %v", err)
	}
	read := func() {
		t.Helper()
		r, err := sqlite.OpenReader(t.Context(), filepath.Join(dir, "ayegate.db"))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if _, err := r.Get(t.Context(), storetest.ID(1)); err != nil {
			t.Fatal(err)
		}
		h, err := r.Head(t.Context())
		if err != nil || h.Size != 1 {
			t.Fatalf("head %v, %v", h, err)
		}
		c, err := r.Counts(t.Context())
		if err != nil || c.Pending != 1 || c.ByAgent["release-bot"] != 1 {
			t.Fatalf("counts %+v, %v", c, err)
		}
	}
	read()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	read()
	at(t, dir)
}

func TestFilesAreTheOwnersOnly(t *testing.T) { // OPS-09
	dir := t.TempDir()
	create(t, at(t, dir), 1)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) < 3 {
		t.Fatalf("only %d files", len(entries))
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s is %v", e.Name(), info.Mode())
		}
	}
}

func TestNamesAreTakenAsTheyAre(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a?b#c%41 d")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s := at(t, dir)
	create(t, s, 1)
	if _, err := os.Stat(filepath.Join(dir, "ayegate.db")); err != nil {
		t.Fatal(err)
	}
	if s.Name() != "sqlite:ayegate.db" {
		t.Fatal(s.Name())
	}
}

// TestUpgradeAndDowngrade is OPS-06: what a newer version wrote is left alone, and
// a state that this version does not know is acted on by nobody.
func TestUpgradeAndDowngrade(t *testing.T) {
	t.Run("newer schema", func(t *testing.T) {
		dir := t.TempDir()
		lives(t, dir, 1)
		meddle(t, dir, `PRAGMA user_version = 99`)
		refuses(t, dir, sqlite.ErrNewer)
		if _, err := sqlite.OpenReader(t.Context(), filepath.Join(dir, "ayegate.db")); !errors.Is(err, sqlite.ErrNewer) {
			t.Fatal(err)
		}
	})
	t.Run("unknown state", func(t *testing.T) {
		dir := t.TempDir()
		lives(t, dir, 2)
		meddle(t, dir, `PRAGMA ignore_check_constraints = 1`,
			`UPDATE requests SET state = 'authorized', form = CAST(replace(form, CAST('pending' AS BLOB), CAST('granted' AS BLOB)) AS BLOB) WHERE n = 1`)
		s := at(t, dir)
		refused(t, s, storetest.ID(0))
	})
	t.Run("state and form disagree", func(t *testing.T) {
		dir := t.TempDir()
		lives(t, dir, 2)
		meddle(t, dir, `UPDATE requests SET state = 'approved' WHERE n = 1`)
		refused(t, at(t, dir), storetest.ID(0))
	})
	t.Run("another call", func(t *testing.T) { // P5
		dir := t.TempDir()
		lives(t, dir, 2)
		meddle(t, dir, `UPDATE requests SET call = (SELECT call FROM requests WHERE n = 2) WHERE n = 1`)
		refused(t, at(t, dir), storetest.ID(0))
	})
}

func refused(t *testing.T, s store.Store, id approval.ID) {
	t.Helper()
	if _, err := s.Get(t.Context(), id); !errors.Is(err, store.ErrForm) {
		t.Fatalf("reading: %v", err)
	}
	_, err := s.Change(t.Context(), id, func(r *approval.Request, now time.Time) (ledger.Event, error) {
		t.Error("a move ran on it")
		return r.Expire(now)
	})
	if !errors.Is(err, store.ErrForm) {
		t.Fatalf("changing: %v", err)
	}
}

// TestForeignFiles: what is not ours is refused and not touched.
func TestForeignFiles(t *testing.T) {
	dir := t.TempDir()
	meddle(t, dir, `CREATE TABLE theirs (x)`)
	before := sum(t, dir)
	refuses(t, dir, sqlite.ErrForeign)
	if sum(t, dir) != before {
		t.Fatal("a foreign database was written to")
	}
	text := t.TempDir()
	if err := os.WriteFile(filepath.Join(text, "ayegate.db"), []byte(strings.Repeat("not a database ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	before = sum(t, text)
	if s, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(text, "ayegate.db"), Now: time.Now}); err == nil {
		s.Close()
		t.Fatal("a text file was opened")
	}
	if sum(t, text) != before {
		t.Fatal("a text file was written to")
	}
	if _, err := sqlite.OpenReader(t.Context(), filepath.Join(dir, "absent.db")); !errors.Is(err, store.ErrNotFound) {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "absent.db")); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal("reading made a file")
	}
}

func sum(t *testing.T, dir string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "ayegate.db"))
	if err != nil {
		t.Fatal(err)
	}
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// TestTampering edits the ledger in the file. A store whose tree does not fit is
// not opened; Check finds what lies deeper. AUD-01, AUD-02, AUD-07.
func TestTampering(t *testing.T) {
	atOpen := map[string]string{
		"an entry edited":            `UPDATE entries SET line = CAST(replace(line, 'release-bot', 'another-bot') AS BLOB) WHERE seq = 150`,
		"a hash edited":              `UPDATE entries SET hashes = CAST(zeroblob(32) || substr(hashes, 33) AS BLOB) WHERE seq = 159`,
		"the tail cut":               `DELETE FROM entries WHERE seq > 155`,
		"an entry removed":           `DELETE FROM entries WHERE seq = 120`,
		"an entry behind the head":   `INSERT INTO entries SELECT seq + 10, line, hashes FROM entries WHERE seq = 150`,
		"the root edited":            `UPDATE head SET root = zeroblob(32)`,
		"the head set back":          `UPDATE head SET size = 100`,
		"the head gone":              `DELETE FROM head`,
		"all entries gone":           `DELETE FROM entries`,
		"a root of the wrong length": `UPDATE head SET root = x'00'`,
	}
	for name, edit := range atOpen {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			lives(t, dir, 160)
			meddle(t, dir, edit)
			s, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(dir, "ayegate.db"), Now: time.Now})
			if err == nil {
				s.Close()
				t.Fatal("it opens")
			}
			t.Log(err)
		})
	}
	deep := map[string]string{
		"an old entry edited":  `UPDATE entries SET line = CAST(replace(line, 'release-bot', 'another-bot') AS BLOB) WHERE seq = 3`,
		"an old entry removed": `DELETE FROM entries WHERE seq = 3`,
		"an old hash edited":   `UPDATE entries SET hashes = CAST(zeroblob(32) || substr(hashes, 33) AS BLOB) WHERE seq = 4`,
		"a count edited":       `UPDATE counts SET n = n - 1`,
		"a request edited":     `UPDATE requests SET form = substr(form, 1, 40) WHERE n = 3`,
		"a request removed":    `DELETE FROM requests WHERE n = 3`,
	}
	for name, edit := range deep {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			lives(t, dir, 160)
			s := at(t, dir)
			if err := s.Check(t.Context()); err != nil {
				t.Fatalf("before: %v", err)
			}
			s.Close()
			meddle(t, dir, edit)
			err := at(t, dir).Check(t.Context())
			if err == nil {
				t.Fatal("Check finds nothing")
			}
			t.Log(err)
		})
	}
}

// TestMigrationsAreNeverEdited: databases out there have taken these steps.
func TestMigrationsAreNeverEdited(t *testing.T) {
	released := map[string]string{
		"0001_first.sql": "0a735d59929c1819553b033e7676467182a54a57f482c1726b62f7261adb0002",
	}
	steps, err := filepath.Glob("migrations/*.sql")
	if err != nil || len(steps) == 0 {
		t.Fatal(err)
	}
	for i, name := range steps {
		if want := fmt.Sprintf("%04d_", i+1); !strings.HasPrefix(filepath.Base(name), want) {
			t.Errorf("%s is not number %d", name, i+1)
		}
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		h := sha256.Sum256(src)
		if released[filepath.Base(name)] != hex.EncodeToString(h[:]) {
			t.Errorf("%s is not as it was released: %x", name, h)
		}
	}
}
