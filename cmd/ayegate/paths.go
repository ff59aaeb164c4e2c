package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ayegate/ayegate/internal/config"
)

// home is where a person's own files of ayegate lie: $AYEGATE_HOME, or
// ayegate below the user's configuration folder.
func (w *world) home() (string, error) {
	if dir, ok := w.env("AYEGATE_HOME"); ok && dir != "" {
		return dir, nil
	}
	base, ok := w.env("XDG_CONFIG_HOME")
	if !ok || base == "" {
		user, ok := w.env("HOME")
		if !ok || user == "" {
			return "", errors.New("neither AYEGATE_HOME nor HOME is set, so there is no place for ayegate's files")
		}
		base = filepath.Join(user, ".config")
	}
	return filepath.Join(base, "ayegate"), nil
}

// load reads the configuration that name says, or the one in home, or none. A
// file in the current folder is never read unasked: an agent's workspace must not
// be able to say what is asked about (POL-17).
func (w *world) load(name string) (c config.Config, dir string, err error) {
	if name == "" {
		name, _ = w.env("AYEGATE_CONFIG")
	}
	home, homeErr := w.home()
	if name == "" && homeErr == nil {
		name = filepath.Join(home, "ayegate.yaml")
		if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
			c := config.Default()
			return c, home, nil
		}
	}
	if name == "" {
		return c, "", homeErr
	}
	src, err := os.ReadFile(name)
	if err != nil {
		return c, "", &exit{
			code: exitUsage, err: err,
			hint: "name a configuration with --config, or run without one: ayegate serve then asks about everything",
		}
	}
	c, err = config.Parse(name, src, config.World{Env: w.env, File: os.ReadFile})
	if err != nil {
		return c, "", &exit{code: exitUsage, err: err, hint: "nothing was started"}
	}
	dir, err = filepath.Abs(filepath.Dir(name))
	return c, dir, err
}

// within makes a path of a configuration relative to where the file lies.
func within(dir, name string) string {
	if name == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(dir, name)
}

// tokenFile is where a person's own token lies, for commands that decide.
func (w *world) tokenFile() (string, error) {
	if name, ok := w.env("AYEGATE_TOKEN_FILE"); ok && name != "" {
		return name, nil
	}
	home, err := w.home()
	return filepath.Join(home, "token"), err
}

// token reads the person's token. A file that others can read is refused: the
// agent that runs beside it is one of the others.
func (w *world) token() (string, error) {
	name, err := w.tokenFile()
	if err != nil {
		return "", err
	}
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", &exit{
			code: exitNotAllowed, err: errors.New("you are not signed in on this terminal: there is no token at " + name),
			hint: "make one with: ayegate keys add human you --save",
		}
	}
	if err != nil {
		return "", err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return "", &exit{
			code: exitNotAllowed, err: errors.New("the token file " + name + " can be read by others"),
			hint: "chmod 600 " + name,
		}
	}
	text, err := os.ReadFile(name)
	return strings.TrimSpace(string(text)), err
}
