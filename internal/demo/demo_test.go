package demo_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ayegate/ayegate/internal/demo"
	"github.com/ayegate/ayegate/internal/policy"
)

// talk sends lines to a toy server and returns what it answered.
func talk(t *testing.T, kind, dir string, lines ...string) string {
	t.Helper()
	var out strings.Builder
	in := strings.NewReader(strings.Join(append([]string{
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
	}, lines...), "\n") + "\n")
	r, w := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		answers := 0
		buf := make([]byte, 64<<10)
		for answers < len(lines)+1 {
			n, err := r.Read(buf)
			out.Write(buf[:n])
			answers += strings.Count(string(buf[:n]), "\n")
			if err != nil {
				return
			}
		}
	}()
	hold, release := io.Pipe() // the input ends only when every answer has come
	go func() {
		io.Copy(release, in)
		<-done
		release.Close()
	}()
	if err := demo.Serve(context.Background(), kind, dir, hold, w); err != nil {
		t.Fatal(err)
	}
	w.Close()
	<-done
	return out.String()
}

func call(id, tool, args string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + args + `}}`
}

func TestFilesStayInTheirFolder(t *testing.T) {
	dir := t.TempDir()
	world := filepath.Join(dir, "files")
	if err := os.Mkdir(world, 0o700); err != nil {
		t.Fatal(err)
	}
	got := talk(t, "fs", world, call("1", "write_file", `{"path":"a.txt","content":"hi"}`))
	if text, err := os.ReadFile(filepath.Join(world, "a.txt")); err != nil || string(text) != "hi" {
		t.Fatal(got, err)
	}
	talk(t, "fs", world, call("1", "write_file", `{"path":"../out.txt","content":"hi"}`))
	if _, err := os.Stat(filepath.Join(dir, "out.txt")); err == nil {
		t.Error("a file was written outside of the folder")
	}
	if got := talk(t, "fs", world, call("1", "read_file", `{"path":"a.txt","extra":1}`)); !strings.Contains(got, `"isError":true`) {
		t.Error("unknown arguments are refused:", got)
	}
}

func TestBankCountsEveryTransfer(t *testing.T) {
	dir := t.TempDir()
	talk(t, "bank", dir, call("1", "transfer", `{"amount_usd":900,"to":"A"}`))
	got := talk(t, "bank", dir, call("1", "transfer", `{"amount_usd":4200,"to":"A"}`))
	if !strings.Contains(got, `"isError":true`) {
		t.Error("the account was overdrawn:", got)
	}
	paid, n, err := demo.Book(filepath.Join(dir, "bank.txt"))
	if err != nil || paid != 900 || n != 1 {
		t.Errorf("paid %d in %d transfers, %v", paid, n, err)
	}
}

func TestTableIsReal(t *testing.T) {
	dir := t.TempDir()
	if got := talk(t, "db", dir, call("1", "query", `{"sql":"SELECT count(*) FROM customers"}`)); !strings.Contains(got, `4`) {
		t.Error(got)
	}
	talk(t, "db", dir, call("1", "query", `{"sql":"DROP TABLE customers"}`))
	if n, err := demo.Customers(t.Context(), dir); err != nil || n != 0 {
		t.Errorf("%d customers are left, %v", n, err)
	}
}

func TestUnknownServerAndTool(t *testing.T) {
	if err := demo.Serve(t.Context(), "nope", t.TempDir(), strings.NewReader(""), io.Discard); err == nil {
		t.Error("there is no such server")
	}
	if got := talk(t, "bank", t.TempDir(), call("1", "nope", `{}`)); !strings.Contains(got, "no such tool") {
		t.Error(got)
	}
}

func TestThePolicyLoads(t *testing.T) {
	if _, err := policy.Parse("policy.yaml", demo.Policy); err != nil {
		t.Fatal(err)
	}
}
