package mcp

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Command is a program to start, as an argument vector: no shell ever sees it.
type Command struct {
	// Path is an absolute path, or a bare name that is looked up in PATH.
	Path string
	Args []string
	// Dir is the working directory; empty means our own.
	Dir string
	// Env is added to the few variables of Environ that a child inherits, "NAME=value".
	Env []string
	// AllowLoaderEnv admits variables in Env that make a program load foreign code
	// (LD_PRELOAD and the like). They are never inherited.
	AllowLoaderEnv bool
	// Environ is our own environment, as os.Environ returns it.
	Environ []string
	// Stderr receives what the program writes to its standard error, line by line,
	// each cut at 8 KiB. Nil discards it.
	Stderr io.Writer
}

// Variables of our own environment that a child gets to see.
var inherited = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ",
	"TMPDIR", "TMP", "TEMP", "SystemRoot", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "PATHEXT",
	"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "SSL_CERT_FILE", "SSL_CERT_DIR",
}

// Variables that make a loader, a shell or an interpreter run code of their
// own choice before the program itself.
var (
	loaderPrefixes = []string{"LD_", "DYLD_"}
	loaderNames    = []string{
		"GCONV_PATH", "GLIBC_TUNABLES", "BASH_ENV", "ENV", "NODE_OPTIONS", "PYTHONSTARTUP",
		"PERL5OPT", "RUBYOPT", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS",
	}
)

func loadsCode(name string) bool {
	for _, p := range loaderPrefixes {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return slices.Contains(loaderNames, name)
}

// Environment returns the child's whole environment.
func (c *Command) Environment() ([]string, error) {
	var env []string
	for _, kv := range c.Environ {
		if name, _, ok := strings.Cut(kv, "="); ok && slices.Contains(inherited, name) {
			env = append(env, kv)
		}
	}
	for _, kv := range c.Env {
		name, _, ok := strings.Cut(kv, "=")
		if !ok || name == "" || strings.ContainsRune(kv, 0) {
			return nil, fmt.Errorf("environment entry %q is not NAME=value", name)
		}
		if loadsCode(name) && !c.AllowLoaderEnv {
			return nil, fmt.Errorf("environment variable %s loads foreign code into the server; allow it explicitly to use it", name)
		}
		env = append(slices.DeleteFunc(env, func(old string) bool { return strings.HasPrefix(old, name+"=") }), kv)
	}
	return env, nil
}

// Resolve returns the absolute path of the program that would be started, for
// people to see before it runs and for the record. A relative path is refused:
// what it means depends on where the gateway happened to start.
func (c *Command) Resolve() (string, error) {
	switch {
	case c.Path == "" || strings.ContainsRune(c.Path, 0):
		return "", errors.New("the command is empty or not a path")
	case filepath.IsAbs(c.Path):
		return c.Path, executable(c.Path)
	case filepath.Base(c.Path) != c.Path || c.Path == "." || c.Path == "..":
		return "", fmt.Errorf("command %q is a relative path: give an absolute path or a bare name", c.Path)
	}
	env, err := c.Environment()
	if err != nil {
		return "", err
	}
	for _, kv := range env {
		list, ok := strings.CutPrefix(kv, "PATH=")
		if !ok {
			continue
		}
		for _, dir := range filepath.SplitList(list) {
			for _, name := range programNames(c.Path) {
				p := filepath.Join(dir, name)
				if filepath.IsAbs(dir) && executable(p) == nil {
					return p, nil
				}
			}
		}
	}
	return "", fmt.Errorf("command %q was not found in PATH", c.Path)
}

// process is a started program with its three pipes. The pipes are ours and
// not the exec package's, so that waiting for the program never cuts off what
// it wrote last.
type process struct {
	path   string
	cmd    *exec.Cmd
	stdin  *os.File
	stdout *os.File
	stderr *os.File
}

// start runs the program as the leader of a process group of its own.
func (c *Command) start() (_ *process, err error) {
	p := &process{}
	if p.path, err = c.Resolve(); err != nil {
		return nil, err
	}
	env, err := c.Environment()
	if err != nil {
		return nil, err
	}
	var theirs []*os.File
	pipe := func() (r, w *os.File) {
		if err == nil {
			r, w, err = os.Pipe()
		}
		return r, w
	}
	in, stdin := pipe()
	stdout, out := pipe()
	stderr, errw := pipe()
	theirs = []*os.File{in, out, errw}
	p.stdin, p.stdout, p.stderr = stdin, stdout, stderr
	defer func() {
		closeAll(theirs...)
		if err != nil {
			closeAll(stdin, stdout, stderr)
		}
	}()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", p.path, err)
	}
	p.cmd = &exec.Cmd{
		Path: p.path, Args: append([]string{p.path}, c.Args...), Env: env, Dir: c.Dir,
		Stdin: in, Stdout: out, Stderr: errw,
	}
	if p.cmd.Env == nil {
		p.cmd.Env = []string{} // nil would hand on our whole environment
	}
	ownGroup(p.cmd)
	if err = p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", p.path, err)
	}
	return p, nil
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}

// end asks the process to leave and makes it: stdin was closed before; after
// grace SIGTERM, after another grace SIGKILL, each to the whole group. It
// returns when exited is closed.
func (p *process) end(exited <-chan struct{}, grace time.Duration) {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	for _, signal := range []func(*os.Process){terminateGroup, killGroup} {
		select {
		case <-exited:
			return
		case <-timer.C:
			signal(p.cmd.Process)
			timer.Reset(grace)
		}
	}
	<-exited
}

// logWriter hands whole lines to w, each cut at max bytes. It never fails, so
// that a full disk does not block the program behind the pipe.
type logWriter struct {
	mu   sync.Mutex
	w    io.Writer
	max  int
	line []byte
}

func (l *logWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range b {
		switch {
		case c == '\n':
			l.flush()
		case len(l.line) < l.max:
			l.line = append(l.line, c)
		}
	}
	return len(b), nil
}

func (l *logWriter) flush() {
	if l.w != nil && len(l.line) > 0 {
		_, _ = l.w.Write(append(l.line, '\n'))
	}
	l.line = l.line[:0]
}
