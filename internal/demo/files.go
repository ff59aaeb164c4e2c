package demo

import (
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"github.com/ayegate/ayegate/internal/strictjson"
)

// newFiles is a server for the files of one folder. It opens them through
// os.Root, so no path leads out of it, whatever a policy let pass.
func newFiles(dir string) *toy {
	f := files{dir}
	return &toy{name: "files", tools: []tool{
		{
			name: "read_file", title: "Read a file", description: "Returns the text of a file of the demo folder.",
			schema:   `{"type":"object","properties":{"path":{"type":"string"}},"required":["path"],"additionalProperties":false}`,
			readOnly: true, run: f.read,
		},
		{
			name: "list_files", title: "List files", description: "Lists the files of the demo folder.",
			schema:   `{"type":"object","properties":{"path":{"type":"string"}},"additionalProperties":false}`,
			readOnly: true, run: f.list,
		},
		{
			name: "write_file", title: "Write a file", description: "Creates or replaces a file of the demo folder.",
			schema: `{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}},"required":["path","content"],"additionalProperties":false}`,
			run:    f.write,
		},
	}}
}

type files struct{ dir string }

func (f files) read(_ context.Context, args []byte) (string, error) {
	var a struct {
		Path string `json:"path"`
	}
	if err := strictjson.Decode(args, strictjson.Limits{}, &a); err != nil {
		return "", err
	}
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	file, err := root.Open(path.Clean(a.Path))
	if err != nil {
		return "", err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, 1<<20))
	return string(text), err
}

func (f files) list(context.Context, []byte) (string, error) {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return "", err
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, "\n"), nil
}

func (f files) write(_ context.Context, args []byte) (string, error) {
	var a struct {
		Path    string `json:"path"`
		Content string `json:"content"`
	}
	if err := strictjson.Decode(args, strictjson.Limits{}, &a); err != nil {
		return "", err
	}
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	file, err := root.Create(path.Clean(a.Path))
	if err != nil {
		return "", err
	}
	if _, err := file.WriteString(a.Content); err != nil {
		_ = file.Close()
		return "", err
	}
	return fmt.Sprintf("wrote %d bytes to %s", len(a.Content), a.Path), file.Close()
}
