package ledger

import (
	"os"
	"testing"
)

func publishedTable(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../../docs/ledger.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
