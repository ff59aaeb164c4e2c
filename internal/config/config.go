// Package config reads ayegate.yaml: where ayegate listens, what it fronts, who
// the people and the agents are. The comments on the fields of [Config] are the
// manual of the file.
//
// A file is read strictly: an unknown key, a value of the wrong type, an id used
// twice or a reference to somebody who is not in the file is a fault, and all
// faults are told at once. ${NAME} in a text stands for an environment variable,
// and a text that starts with "file:" stands for the contents of that file, so
// that secrets stay out of the configuration.
//
// The package reads what it is given and opens no file by itself. It does not
// start anything: that is the wiring's. There is one such file, named on the
// command line; nothing in a workspace can change it (POL-17).
package config

import (
	"net"
	"net/url"
	"time"
)

// Config is the whole configuration.
type Config struct {
	// Listen is the address of the one listener. Default 127.0.0.1:7777. Beyond
	// loopback it needs tls, or proxy, and a way to sign in.
	Listen string
	// URL is how people reach ayegate, for links. Default http://<listen>.
	URL string
	// TLS has the certificate and key files.
	TLS TLS
	// Proxy says that a reverse proxy in front terminates TLS.
	Proxy bool
	// Hosts are further names under which ayegate may be reached; those of listen
	// and url always may. Any other Host header is refused (MCP-07).
	Hosts []string
	// Store says where everything is remembered: "sqlite:ayegate.db", or "memory:"
	// for tests and demonstrations.
	Store string
	// Servers are the MCP servers that ayegate fronts, by id. An id is a lower-case
	// letter and at most 31 lower-case letters, digits and hyphens.
	Servers map[string]Server
	// Policy is the file of the policy. Without one the starter policy holds, which
	// asks about everything.
	Policy string
	// People may decide. Without any there is one, named "you".
	People []Person
	// Agents may ask. Each gets its key by `ayegate keys add agent ID`.
	Agents []Agent
	// Workspaces are directories that ${workspace} in a policy stands for, by the
	// name an agent's workspace has.
	Workspaces map[string]string
	// SignIn says how people sign in.
	SignIn SignIn
	// Limits bound what ayegate takes in.
	Limits Limits
	// Hold says how long a call is held open while people decide.
	Hold Hold
}

// TLS names the files of a certificate; both or neither.
type TLS struct{ Cert, Key string }

// On reports whether TLS is configured.
func (t TLS) On() bool { return t.Cert != "" }

// Server is an MCP server: a command that is started, or a URL.
type Server struct {
	// Command and Args start the server; never through a shell.
	Command string
	Args    []string
	// Env is added to a clean environment.
	Env map[string]string
	// Dir is the working directory.
	Dir string
	// URL is the streamable HTTP endpoint of a server that runs elsewhere.
	URL string
	// Headers are sent to it, e.g. its credential. An agent's own are never.
	Headers map[string]string
	// Timeout is the longest a call may take, whatever progress it reports.
	// Default 10 minutes.
	Timeout time.Duration
	// IdempotencyMeta sends the id of the claim as _meta["dev.ayegate/claim"], so
	// that a server which knows it can refuse to act twice. Off by default: then
	// what an agent sends in _meta reaches the server untouched.
	IdempotencyMeta bool
}

// Person may decide.
type Person struct {
	ID     string
	Name   string
	Groups []string
}

// Agent may ask.
type Agent struct {
	ID string
	// Owner is the subject of the person it works for, "user:ana".
	Owner string
	// Workspace is the name of the workspace it works in.
	Workspace string
	// Device binds its approval tokens to one device.
	Device string
}

// SignIn says how people sign in.
type SignIn struct {
	// Local prints a one-time link when serve starts. Default true on loopback.
	Local bool
}

// Limits bound what ayegate takes in.
type Limits struct {
	// PendingPerAgent is how many requests of one agent may wait. Default 50.
	PendingPerAgent int
	// MaxBody is the largest request body in bytes. Default 1 MiB.
	MaxBody int64
	// ResultReplay is how long the result of an approved call waits for an agent
	// that went away. Default 10 minutes.
	ResultReplay time.Duration
}

// Hold says how long a call is held open while people decide.
type Hold struct {
	// Default is for clients that no entry names: 45 s, below the common minute.
	Default time.Duration
	// Clients are by the name a client gives itself. That is unproven, so it tunes
	// waiting and nothing else.
	Clients map[string]time.Duration
}

// Default is the configuration without a file.
func Default() Config {
	return Config{
		Listen: "127.0.0.1:7777",
		Store:  "sqlite:ayegate.db",
		SignIn: SignIn{Local: true},
		Limits: Limits{PendingPerAgent: 50, MaxBody: 1 << 20, ResultReplay: 10 * time.Minute},
		Hold:   Hold{Default: 45 * time.Second},
	}
}

// Loopback reports whether the listener can be reached from this machine only.
func (c Config) Loopback() bool {
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// BaseURL is how people reach ayegate.
func (c Config) BaseURL() string {
	if c.URL != "" {
		return c.URL
	}
	scheme := "http"
	if c.TLS.On() {
		scheme = "https"
	}
	return scheme + "://" + c.Listen
}

// AllowedHosts lists the Host headers that are answered.
func (c Config) AllowedHosts() []string {
	_, port, _ := net.SplitHostPort(c.Listen)
	hosts := []string{c.Listen}
	if c.Loopback() {
		hosts = append(hosts, "localhost:"+port, "127.0.0.1:"+port, "[::1]:"+port)
	}
	if u, err := url.Parse(c.BaseURL()); err == nil {
		hosts = append(hosts, u.Host)
	}
	return append(hosts, c.Hosts...)
}
