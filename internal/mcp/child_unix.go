//go:build unix

package mcp

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
)

// ownGroup makes the program the leader of a process group, so that signals
// reach what it starts as well (npx starts a shell that starts node).
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func terminateGroup(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGTERM) }

func killGroup(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }

func programNames(name string) []string { return []string{name} }

func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return &fs.PathError{Op: "exec", Path: path, Err: errors.New("is a directory")}
	case info.Mode()&0o111 == 0:
		return &fs.PathError{Op: "exec", Path: path, Err: fs.ErrPermission}
	}
	return nil
}
