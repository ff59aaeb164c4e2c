package demo

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"

	_ "modernc.org/sqlite" // the toy table is a real one

	"github.com/ayegate/ayegate/internal/strictjson"
)

// newTable is a server with one SQL table, customers, and one tool that runs any
// statement: the kind of tool a policy should look into.
func newTable(ctx context.Context, dir string) (*toy, func() error, error) {
	db, err := OpenTable(ctx, dir)
	if err != nil {
		return nil, nil, err
	}
	t := table{db}
	return &toy{name: "table", tools: []tool{
		{
			name: "query", title: "Run SQL", description: "Runs one SQL statement on the demo database. There is a table customers(name, city).",
			schema: `{"type":"object","properties":{"sql":{"type":"string"}},"required":["sql"],"additionalProperties":false}`,
			run:    t.query,
		},
	}}, db.Close, nil
}

// OpenTable opens the demo database and fills it when it is new.
func OpenTable(ctx context.Context, dir string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", filepath.Join(dir, "customers.db")+"?_pragma=busy_timeout(5000)")
	if err != nil {
		return nil, err
	}
	var have int
	err = db.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_master WHERE name = 'filled'`).Scan(&have)
	if err == nil && have == 0 {
		_, err = db.ExecContext(ctx, `
			CREATE TABLE filled (yes);
			CREATE TABLE customers (name TEXT, city TEXT);
			INSERT INTO customers VALUES ('Acme', 'Lisbon'), ('Globex', 'Graz'), ('Initech', 'Austin'), ('Umbrella', 'Oslo')`)
	}
	if err != nil {
		_ = db.Close()
		return nil, err
	}
	return db, nil
}

// Customers counts the rows that are left; 0 also when the table is gone.
func Customers(ctx context.Context, dir string) (int, error) {
	db, err := OpenTable(ctx, dir)
	if err != nil {
		return 0, err
	}
	defer db.Close()
	var n int
	err = db.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_master WHERE name = 'customers'`).Scan(&n)
	if err != nil || n == 0 {
		return 0, err
	}
	return n, db.QueryRowContext(ctx, `SELECT count(*) FROM customers`).Scan(&n)
}

type table struct{ db *sql.DB }

func (t table) query(ctx context.Context, args []byte) (string, error) {
	var a struct {
		SQL string `json:"sql"`
	}
	if err := strictjson.Decode(args, strictjson.Limits{}, &a); err != nil {
		return "", err
	}
	rows, err := t.db.QueryContext(ctx, a.SQL)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	cols, err := rows.Columns()
	if err != nil {
		return "", err
	}
	var out strings.Builder
	fmt.Fprintln(&out, strings.Join(cols, "\t"))
	values := make([]any, len(cols))
	for i := range values {
		values[i] = new(sql.NullString)
	}
	for n := 0; rows.Next() && n < 100; n++ {
		if err := rows.Scan(values...); err != nil {
			return "", err
		}
		cells := make([]string, len(cols))
		for i, v := range values {
			cells[i] = v.(*sql.NullString).String
		}
		fmt.Fprintln(&out, strings.Join(cells, "\t"))
	}
	return out.String(), rows.Err()
}
