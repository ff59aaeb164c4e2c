//go:build !unix

package mcp

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// Without process groups only the program itself can be ended.
func ownGroup(*exec.Cmd) {}

func terminateGroup(p *os.Process) { _ = p.Kill() }

func killGroup(p *os.Process) { _ = p.Kill() }

func programNames(name string) []string {
	if filepath.Ext(name) != "" {
		return []string{name}
	}
	return []string{name + ".exe"}
}

func executable(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return &fs.PathError{Op: "exec", Path: path, Err: errors.New("is a directory")}
	}
	return nil
}
