package ledger

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/vectors/ledger anew")

const (
	document = "../../docs/ledger.md"
	vectors  = "../../docs/vectors/ledger"
)

func publishedTable(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// published compares a vector with what is published.
func published(t *testing.T, name string, want []byte) {
	t.Helper()
	path := filepath.Join(vectors, name)
	if *update {
		if err := os.WriteFile(path, want, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what is published: a changed format needs a version of its own", path)
	}
}

// TestVectors holds the format to what is published, for other implementations
// and for the logs that exist.
func TestVectors(t *testing.T) {
	l := aDay(t)
	n := len(l.lines)
	last := l.sign(t, n)

	published(t, "keys.txt", fmt.Appendf(nil, "%s\n%s\n", testKey.Secret(), testKey.PublicKey()))
	published(t, "entries.jsonl", append(bytes.Join(l.lines, []byte("\n")), '\n'))
	published(t, "checkpoint.txt", last)
	if !strings.Contains(publishedTable(t), string(last)) {
		t.Errorf("%s shows another checkpoint than\n%s", document, last)
	}

	var roots, commitments, proofs bytes.Buffer
	for size := range n + 1 {
		fmt.Fprintln(&roots, size, b64(l.head(t, size).Root))
	}
	published(t, "roots.txt", roots.Bytes())

	for i := range 3 {
		value := LeafHash([]byte{byte(i)})
		salt := bytes.Repeat([]byte{byte(i)}, MinSalt*(i+1))
		fmt.Fprintln(&commitments, hex.EncodeToString(salt), hex.EncodeToString(value[:]), Commit(salt, value))
	}
	published(t, "commitments.txt", commitments.Bytes())

	inclusion, err := ProveInclusion(int64(n), 3, l)
	if err != nil {
		t.Fatal(err)
	}
	consistency, err := ProveConsistency(6, int64(n), l)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(&proofs, "inclusion", 3, n, inclusion)
	fmt.Fprintln(&proofs, "consistency", 6, n, consistency)
	published(t, "proofs.txt", proofs.Bytes())

	good := l.exportLeaves(t, l.sign(t, 6), last)
	published(t, "export.jsonl", good)
	_, line := edited(t, l)
	forged := new(testLog).add(t, of("r-forged", asked(), claimed(), finished())...)
	var faults bytes.Buffer
	for _, bad := range []struct {
		name   string
		export []byte
	}{
		{"cut.jsonl", smaller(l, 6).export(t, l.sign(t, 6))},
		{"edited.jsonl", bytes.Replace(good, l.lines[3], line, 1)},
		{"forged.jsonl", forged.export(t, forged.sign(t, 3))},
	} {
		published(t, bad.name, bad.export)
		r, err := verify(t, bad.export, VerifyOptions{Keys: []string{testKey.PublicKey()}, Trusted: [][]byte{last}})
		if !errors.Is(err, ErrFaulty) {
			t.Errorf("%s: %v", bad.name, err)
		}
		fmt.Fprintf(&faults, "%s: %v\n", bad.name, r.FirstBad)
	}
	published(t, "faults.txt", faults.Bytes())
}
