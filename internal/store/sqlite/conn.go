package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	sqlite "modernc.org/sqlite"
)

// conn is the writer's connection. It speaks to the driver itself: the pool of
// database/sql would cost as much as the statements.
type conn struct {
	ctx   context.Context // never ends: a statement that was begun is finished
	c     driver.Conn
	stmts map[string]*statement
}

type statement struct {
	driver.Stmt
	args []driver.NamedValue // reused
}

// writeDSN is for the one connection that writes. Foreign databases in the same
// process, such as a backup in progress, are waited for, with a bound.
func writeDSN(path string, pages int64) string {
	q := url.Values{"_pragma": {
		"busy_timeout(5000)", "synchronous(FULL)", "foreign_keys(1)", "trusted_schema(0)", "secure_delete(FAST)",
		"journal_size_limit(67108864)", "wal_autocheckpoint(2000)", "cache_size(-4096)",
	}}
	if pages > 0 {
		q.Add("_pragma", fmt.Sprintf("max_page_count(%d)", pages))
	}
	return fileURI(path) + "?" + q.Encode()
}

func readDSN(path string) string {
	q := url.Values{"mode": {"ro"}, "_pragma": {"busy_timeout(5000)", "query_only(1)", "trusted_schema(0)", "cache_size(-1024)"}}
	return fileURI(path) + "?" + q.Encode()
}

// fileURI names a file to SQLite, whatever characters its name has.
func fileURI(path string) string {
	return "file:" + strings.NewReplacer("%", "%25", "?", "%3F", "#", "%23").Replace(path)
}

func connect(ctx context.Context, dsn string) (*conn, error) {
	c, err := (&sqlite.Driver{}).Open(dsn)
	if err != nil {
		return nil, err
	}
	return &conn{ctx: ctx, c: c, stmts: make(map[string]*statement)}, nil
}

func (c *conn) close() error {
	var errs []error
	for _, s := range c.stmts {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, c.c.Close())...)
}

// prepare returns the statement of a query, made when it is first used.
func (c *conn) prepare(query string, args []any) (*statement, error) {
	s := c.stmts[query]
	if s == nil {
		made, err := c.c.Prepare(query)
		if err != nil {
			return nil, err
		}
		s = &statement{Stmt: made}
		c.stmts[query] = s
	}
	s.args = s.args[:0]
	for i, v := range args {
		s.args = append(s.args, driver.NamedValue{Ordinal: i + 1, Value: v})
	}
	return s, nil
}

// exec runs a statement. Arguments are int64, string, []byte or nil.
func (c *conn) exec(query string, args ...any) error {
	s, err := c.prepare(query, args)
	if err != nil {
		return err
	}
	_, err = s.Stmt.(driver.StmtExecContext).ExecContext(c.ctx, s.args)
	return err
}

// row reads the first row into dest; io.EOF says that there is none.
func (c *conn) row(dest []any, query string, args ...any) error {
	s, err := c.prepare(query, args)
	if err != nil {
		return err
	}
	rows, err := s.Stmt.(driver.StmtQueryContext).QueryContext(c.ctx, s.args)
	if err != nil {
		return err
	}
	values := make([]driver.Value, len(dest))
	if err := errors.Join(rows.Next(values), rows.Close()); err != nil {
		return err
	}
	for i, v := range values {
		dest[i] = v
	}
	return nil
}

func (c *conn) number(query string, args ...any) (int64, error) {
	var dest [1]any
	if err := c.row(dest[:], query, args...); err != nil {
		return 0, err
	}
	n, ok := dest[0].(int64)
	if !ok {
		return 0, fmt.Errorf("%s is a %T", query, dest[0])
	}
	return n, nil
}

func (c *conn) text(query string, args ...any) (string, error) {
	var dest [1]any
	if err := c.row(dest[:], query, args...); err != nil {
		return "", err
	}
	s, ok := dest[0].(string)
	if !ok {
		return "", fmt.Errorf("%s is a %T", query, dest[0])
	}
	return s, nil
}

// exists reports whether a query has a row.
func (c *conn) exists(query string, args ...any) (bool, error) {
	_, err := c.number(query, args...)
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	return err == nil, err
}
