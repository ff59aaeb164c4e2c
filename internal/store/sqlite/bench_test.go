package sqlite_test

import (
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/uuid"

	"github.com/ayegate/ayegate/internal/store/storetest"
)

var million = flag.Bool("million", false, "measure with a million pending requests too")

func Benchmark(b *testing.B) {
	pending := []int{1_000, 100_000}
	if *million {
		pending = append(pending, 1_000_000)
	}
	storetest.Benchmark(b, open, pending...)
}

// BenchmarkBare is what SQLite itself can do with the same promises: one row of
// 600 bytes per change, one commit each or 64 changes per commit, in the order of
// the key and, as ids come, in none.
func BenchmarkBare(b *testing.B) {
	for _, together := range []int{1, 64} {
		for name, key := range map[string]func(n int) string{
			"in order": func(n int) string { return fmt.Sprintf("%036d", n) },
			"random":   func(int) string { return uuid.NewString() },
		} {
			b.Run(fmt.Sprintf("%s/%d callers", name, together), func(b *testing.B) {
				db, err := sql.Open("sqlite", "file:"+filepath.Join(b.TempDir(), "bare.db")+
					"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_txlock=immediate")
				if err != nil {
					b.Fatal(err)
				}
				defer db.Close()
				db.SetMaxOpenConns(1)
				if _, err := db.Exec(`CREATE TABLE bare (id TEXT PRIMARY KEY, state TEXT NOT NULL, body BLOB NOT NULL) STRICT, WITHOUT ROWID`); err != nil {
					b.Fatal(err)
				}
				body := make([]byte, 600)
				b.ResetTimer()
				for n := 0; n < b.N; {
					together := min(together, b.N-n)
					if err := insert(db, together, func(i int) string { return key(n + i) }, body); err != nil {
						b.Fatal(err)
					}
					n += together
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "/s")
			})
		}
	}
}

// insert commits rows together.
func insert(db *sql.DB, rows int, key func(i int) string, body []byte) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	in, err := tx.Prepare(`INSERT INTO bare VALUES (?, ?, ?)`)
	if err != nil {
		return errors.Join(err, tx.Rollback())
	}
	defer in.Close()
	for i := range rows {
		if _, err := in.Exec(key(i), "pending", body); err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	return tx.Commit()
}
