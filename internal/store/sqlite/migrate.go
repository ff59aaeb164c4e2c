package sqlite

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/ayegate/ayegate/internal/ledger"
)

// The schema is a list of numbered steps. A step that was released is never
// edited; what is to change is another step. user_version holds the number of the
// last one that was taken.
//
//go:embed migrations
var migrations embed.FS

// applicationID is in the header of every database of ayegate: "ayeg".
const applicationID = 0x61796567

// ErrNewer says that the database was written by a newer ayegate: this one does
// not know what it would have to obey, and stays away.
var ErrNewer = errors.New("the database was written by a newer version of ayegate")

// ErrForeign says that the file is a database, but not one of ayegate.
var ErrForeign = errors.New("the database is not one of ayegate")

// oldestSQLite is free of the bug that could damage a database in WAL mode
// (sqlite.org/wal.html, "WAL-reset bug").
var oldestSQLite = [3]int{3, 51, 3}

func migrate(c *conn) error {
	if err := soundSQLite(c); err != nil {
		return err
	}
	steps, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return err
	}
	if _, err := ours(c, steps); err != nil {
		return err
	}
	if err := durable(c); err != nil {
		return err
	}
	if err := c.exec("BEGIN EXCLUSIVE"); err != nil {
		return err
	}
	if err := takeSteps(c, steps); err != nil {
		return errors.Join(err, c.exec("ROLLBACK"))
	}
	return c.exec("COMMIT")
}

// ours reports how many steps a database has taken, and refuses one that is not
// of this program's kind or age before anything in it is touched.
func ours(c *conn, steps []string) (taken int64, err error) {
	taken, err = c.number("PRAGMA user_version")
	if err != nil {
		return 0, err
	}
	id, err := c.number("PRAGMA application_id")
	if err != nil {
		return 0, err
	}
	tables, err := c.number("SELECT count(*) FROM sqlite_schema")
	if err != nil {
		return 0, err
	}
	switch {
	case id != applicationID && (id != 0 || taken != 0 || tables != 0):
		return 0, ErrForeign
	case taken > int64(len(steps)):
		return 0, fmt.Errorf("%w: it has schema %d, this one knows %d", ErrNewer, taken, len(steps))
	}
	return taken, nil
}

// durable turns on the write-ahead log and makes sure that a commit will be on
// disk when it returns. NORMAL would lose commits when the power fails.
func durable(c *conn) error {
	mode, err := c.text("PRAGMA journal_mode = WAL")
	if err != nil {
		return err
	}
	level, err := c.number("PRAGMA synchronous")
	if err != nil {
		return err
	}
	if mode != "wal" || level != 2 {
		return fmt.Errorf("commits would not be durable: journal mode %s, synchronous %d", mode, level)
	}
	return nil
}

func takeSteps(c *conn, steps []string) error {
	taken, err := ours(c, steps)
	if err != nil {
		return err
	}
	for _, name := range steps[taken:] {
		step, err := migrations.ReadFile(name)
		if err != nil {
			return err
		}
		if err := c.exec(string(step)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if taken == 0 {
		var empty ledger.Frontier
		root := empty.Root()
		if err := c.exec("INSERT INTO head (one, size, root, at) VALUES (1, 0, ?, 0)", root[:]); err != nil {
			return err
		}
	}
	return c.exec(fmt.Sprintf("PRAGMA user_version = %d", len(steps)))
}

func soundSQLite(c *conn) error {
	text, err := c.text("SELECT sqlite_version()")
	if err != nil {
		return err
	}
	var v [3]int
	if _, err := fmt.Sscanf(text, "%d.%d.%d", &v[0], &v[1], &v[2]); err != nil {
		return fmt.Errorf("SQLite of unknown version %q", text)
	}
	if cmp.Or(cmp.Compare(v[0], oldestSQLite[0]), cmp.Compare(v[1], oldestSQLite[1]), cmp.Compare(v[2], oldestSQLite[2])) < 0 {
		return fmt.Errorf("SQLite %s is linked, which can damage databases; 3.51.3 is the oldest that is sound", text)
	}
	return nil
}
