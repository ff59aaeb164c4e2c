package config_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ayegate/ayegate/internal/config"
)

var world = config.World{
	Env: func(name string) (string, bool) {
		v, ok := map[string]string{"HOME": "/home/ana", "PAYMENTS_TOKEN": "s3cret"}[name]
		return v, ok
	},
	File: func(name string) ([]byte, error) {
		if name == "token" {
			return []byte("from-a-file\n"), nil
		}
		return nil, &os.PathError{Op: "open", Path: name, Err: os.ErrNotExist}
	},
}

const documented = `
listen: 127.0.0.1:7777
store: sqlite:ayegate.db            # or postgres://…, redis://…, memory: (tests and demos only)
servers:
  fs:       {command: npx, args: ["-y", "@modelcontextprotocol/server-filesystem", "${HOME}/work"]}
  payments: {url: "http://127.0.0.1:9000/mcp", headers: {Authorization: "Bearer ${PAYMENTS_TOKEN}"}}
policy: policy.yaml
people:
  - {id: ana, name: Ana, groups: [db-admins]}
  - {id: raj, name: Raj}
agents:
  - {id: release-bot, owner: "user:ana", workspace: shop}   # its key: ayegate keys add agent release-bot
signin: {local: true}
limits: {pending_per_agent: 50, max_body: 1MiB, result_replay: 10m}
hold: {default: 45s, clients: {claude-code: 270s}}
`

func TestDocumentedExample(t *testing.T) {
	c, err := config.Parse("ayegate.yaml", []byte(documented), world)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Servers["fs"].Args[2]; got != "/home/ana/work" {
		t.Errorf("args[2] = %q", got)
	}
	if got := c.Servers["payments"].Headers["Authorization"]; got != "Bearer s3cret" {
		t.Errorf("header = %q", got)
	}
	if c.Hold.Clients["claude-code"] != 270*time.Second || c.Limits.MaxBody != 1<<20 {
		t.Errorf("hold %v, max body %d", c.Hold, c.Limits.MaxBody)
	}
	if c.BaseURL() != "http://127.0.0.1:7777" || !c.Loopback() {
		t.Errorf("base URL %s, loopback %v", c.BaseURL(), c.Loopback())
	}
}

func TestFaults(t *testing.T) {
	for name, c := range map[string]struct{ src, want string }{
		"unknown key":               {"lisen: x", `did you mean "listen"?`},
		"wrong type":                {"servers: [a]", "must be a mapping"},
		"server id MCP-13":          {"servers: {gіthub: {command: x}}", "not a server id"},
		"upper case MCP-13":         {"servers: {GitHub: {command: x}}", "not a server id"},
		"underscore MCP-12":         {"servers: {a_b: {command: x}}", "not a server id"},
		"twice":                     {"servers: {a: {command: x}, a: {command: y}}", "written twice"},
		"command and url":           {"servers: {a: {command: x, url: 'http://h/'}}", "either a command or a url"},
		"user in url":               {"servers: {a: {url: 'http://u:p@h/'}}", "must start with"},
		"missing variable":          {"servers: {a: {command: '${NOPE}'}}", "the environment has no NOPE"},
		"missing file":              {"servers: {a: {url: 'http://h/', headers: {A: 'file:gone'}}}", "could not be read"},
		"public, no TLS API-10":     {"listen: 0.0.0.0:80\npeople: [{id: ana}]", "needs tls"},
		"public, nobody API-10":     {"listen: 0.0.0.0:80\nproxy: true", "needs people"},
		"public, no sign-in API-10": {"listen: 0.0.0.0:80\nproxy: true\nsignin: {local: false}\npeople: [{id: ana}]", "sign in"},
		"store":                     {"store: mysql://x", "is not a store"},
		"owner":                     {"people: [{id: ana}]\nagents: [{id: a, owner: 'user:bob'}]", "nobody in people"},
		"duplicate agent":           {"agents: [{id: a}, {id: a}]", "used twice"},
		"half a certificate":        {"tls: {cert: a.pem}", "belong together"},
		"empty":                     {"", "empty"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := config.Parse("ayegate.yaml", []byte(c.src), world)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			if !strings.Contains(err.Error(), "ayegate.yaml") {
				t.Errorf("the file is not named: %v", err)
			}
		})
	}
}

func TestSecretsStayOutOfErrors(t *testing.T) {
	_, err := config.Parse("c", []byte("servers: {a: {command: x, headers: {Authorization: 'Bearer ${PAYMENTS_TOKEN}'}}}"), world)
	if err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Fatalf("got %v", err)
	}
}

func TestFileValue(t *testing.T) {
	c, err := config.Parse("c", []byte("servers: {a: {url: 'http://h/', headers: {A: 'file:token'}}}"), world)
	if err != nil || c.Servers["a"].Headers["A"] != "from-a-file" {
		t.Fatalf("%v %v", c.Servers, errors.Unwrap(err))
	}
}

func TestCheckJudgesFlags(t *testing.T) {
	c := config.Default()
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*config.Config){
		"public API-10": func(c *config.Config) { c.Listen = "0.0.0.0:7777" },
		"no address":    func(c *config.Config) { c.Listen = "nonsense" },
		"no store":      func(c *config.Config) { c.Store = "foo:bar" },
		"no file":       func(c *config.Config) { c.Store = "sqlite:" },
	} {
		c := config.Default()
		change(&c)
		if c.Check() == nil {
			t.Errorf("%s: passed", name)
		}
	}
}
