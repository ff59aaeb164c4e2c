package config

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ayegate/ayegate/internal/strictyaml"
)

// World is what a file may refer to outside of itself.
type World struct {
	Env  func(name string) (string, bool)
	File func(name string) ([]byte, error) // for "file:" values
}

// idForm is the grammar of every id in the file. Ids of servers become part of
// tool names, so they have no underscore: then server__tool has one reading.
var idForm = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)

var workspaceForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

type parser struct {
	strictyaml.Reader
	world World
}

// Parse reads a configuration. The error is a strictyaml.Faults with everything
// that is wrong.
func Parse(name string, src []byte, w World) (Config, error) {
	p := &parser{Reader: strictyaml.Reader{File: name}, world: w}
	c := p.config(p.Document(src))
	if len(p.Faults) > 0 {
		return Config{}, p.Faults.InOrder()
	}
	return c, nil
}

func (p *parser) config(n strictyaml.Node) Config {
	c := Default()
	if !n.Present() {
		return c
	}
	f := p.Fields(n, "listen", "url", "tls", "proxy", "hosts", "store", "servers", "policy", "people", "agents",
		"workspaces", "signin", "limits", "hold")
	p.set(f["listen"], &c.Listen)
	p.set(f["url"], &c.URL)
	p.set(f["store"], &c.Store)
	p.set(f["policy"], &c.Policy)
	p.flag(f["proxy"], &c.Proxy)
	c.Hosts = p.list(f["hosts"])
	tls := p.Fields(f["tls"], "cert", "key")
	p.set(tls["cert"], &c.TLS.Cert)
	p.set(tls["key"], &c.TLS.Key)
	c.Servers = p.servers(f["servers"])
	c.People = p.people(f["people"])
	c.Agents = p.agents(f["agents"])
	c.Workspaces = p.texts(f["workspaces"])
	p.flag(p.Fields(f["signin"], "local")["local"], &c.SignIn.Local)
	p.limits(f["limits"], &c.Limits)
	p.hold(f["hold"], &c.Hold)
	p.judge(f, c)
	return c
}

// judge checks what only the whole file can tell.
func (p *parser) judge(f map[string]strictyaml.Node, c Config) {
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		p.Fault(f["listen"], "%q is not an address such as 127.0.0.1:7777", c.Listen)
		return
	}
	if c.URL != "" {
		if u, err := url.Parse(c.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" {
			p.Fault(f["url"], "%q is not a URL such as https://ayegate.example, without a path", c.URL)
		}
	}
	if (c.TLS.Cert == "") != (c.TLS.Key == "") {
		p.Fault(f["tls"], "cert and key belong together")
	}
	if err := c.remembers(); err != nil {
		p.Fault(f["store"], "%s", err.Error())
	}
	if err := c.exposed(); err != nil {
		p.Fault(f["listen"], "%s", err.Error())
	}
	for i, a := range c.Agents {
		id, isUser := strings.CutPrefix(a.Owner, "user:")
		if a.Owner != "" && (!isUser || len(c.People) > 0 && !slices.ContainsFunc(c.People, func(h Person) bool { return h.ID == id })) {
			p.Fault(f["agents"], "agent %q: owner %q is nobody in people; write user:ID", c.Agents[i].ID, a.Owner)
		}
	}
}

// Check judges a configuration whose listen address or store was changed after it
// was read, by a flag, as the file itself is judged.
func (c Config) Check() error {
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		return fmt.Errorf("%q is not an address such as 127.0.0.1:7777", c.Listen)
	}
	return errors.Join(c.remembers(), c.exposed())
}

// remembers refuses a store that there is none of.
func (c Config) remembers() error {
	kind, name, _ := strings.Cut(c.Store, ":")
	if kind == "memory" && name == "" || kind == "sqlite" && name != "" {
		return nil
	}
	return fmt.Errorf(`%q is not a store: "sqlite:ayegate.db", or "memory:" for tests`, c.Store)
}

// exposed refuses to be reachable from elsewhere without what that needs (API-10).
func (c Config) exposed() error {
	if c.Loopback() {
		return nil
	}
	switch {
	case !c.TLS.On() && !c.Proxy:
		return errors.New("listening beyond loopback needs tls, or proxy: true where a reverse proxy terminates TLS")
	case !c.SignIn.Local:
		return errors.New("listening beyond loopback needs a way for people to sign in")
	case len(c.People) == 0:
		return errors.New("listening beyond loopback needs people who may decide")
	}
	return nil
}

func (p *parser) servers(n strictyaml.Node) map[string]Server {
	if !n.Present() {
		return nil
	}
	out := make(map[string]Server)
	for _, m := range p.Members(n) {
		if !idForm.MatchString(m.Name) || m.Name == "ayegate" {
			p.Fault(m.Key, "%q is not a server id: a lower-case letter, then lower-case letters, digits and hyphens, at most 32; \"ayegate\" is taken", m.Name)
			continue
		}
		f := p.Fields(m.Value, "command", "args", "env", "dir", "url", "headers", "timeout", "idempotency_meta")
		s := Server{Args: p.list(f["args"]), Env: p.texts(f["env"]), Headers: p.texts(f["headers"])}
		p.set(f["command"], &s.Command)
		p.set(f["dir"], &s.Dir)
		p.set(f["url"], &s.URL)
		p.flag(f["idempotency_meta"], &s.IdempotencyMeta)
		s.Timeout = p.Length(f["timeout"], time.Second, 24*time.Hour)
		switch {
		case (s.Command == "") == (s.URL == ""):
			p.Fault(m.Key, "a server has either a command or a url")
		case s.URL != "" && !isHTTP(s.URL):
			p.Fault(f["url"], "must start with http:// or https://")
		case s.URL != "" && (len(s.Args) > 0 || len(s.Env) > 0 || s.Dir != ""):
			p.Fault(m.Key, "args, env and dir go with a command, not with a url")
		case s.Command != "" && len(s.Headers) > 0:
			p.Fault(m.Key, "headers go with a url, not with a command")
		}
		out[m.Name] = s
	}
	return out
}

func isHTTP(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Host != "" && u.User == nil && (u.Scheme == "http" || u.Scheme == "https")
}

func (p *parser) people(n strictyaml.Node) []Person {
	if !n.Present() {
		return nil
	}
	var out []Person
	for _, item := range p.Items(n) {
		f := p.Fields(item, "id", "name", "groups")
		h := Person{Groups: p.list(f["groups"])}
		p.set(f["id"], &h.ID)
		p.set(f["name"], &h.Name)
		if h.Name == "" {
			h.Name = h.ID
		}
		taken := slices.ContainsFunc(out, func(o Person) bool { return o.ID == h.ID })
		p.id(item, h.ID, taken)
		out = append(out, h)
	}
	return out
}

func (p *parser) agents(n strictyaml.Node) []Agent {
	if !n.Present() {
		return nil
	}
	var out []Agent
	for _, item := range p.Items(n) {
		f := p.Fields(item, "id", "owner", "workspace", "device")
		var a Agent
		p.set(f["id"], &a.ID)
		p.set(f["owner"], &a.Owner)
		p.set(f["workspace"], &a.Workspace)
		p.set(f["device"], &a.Device)
		if a.Workspace != "" && !workspaceForm.MatchString(a.Workspace) {
			p.Fault(f["workspace"], "%q is not a name: letters, digits, dots, hyphens and underscores", a.Workspace)
		}
		taken := slices.ContainsFunc(out, func(o Agent) bool { return o.ID == a.ID })
		p.id(item, a.ID, taken)
		out = append(out, a)
	}
	return out
}

func (p *parser) id(n strictyaml.Node, id string, taken bool) {
	switch {
	case !idForm.MatchString(id):
		p.Fault(n, "id %q: a lower-case letter, then lower-case letters, digits and hyphens, at most 32", id)
	case taken:
		p.Fault(n, "id %q is used twice", id)
	}
}

func (p *parser) limits(n strictyaml.Node, l *Limits) {
	f := p.Fields(n, "pending_per_agent", "max_body", "result_replay")
	if f["pending_per_agent"].Present() {
		l.PendingPerAgent = int(p.Count(f["pending_per_agent"], 1, 100_000))
	}
	if f["max_body"].Present() {
		l.MaxBody = p.Size(f["max_body"])
		if l.MaxBody > 64<<20 {
			p.Fault(f["max_body"], "at most 64MiB: a person must be able to look at a call")
		}
	}
	if f["result_replay"].Present() {
		l.ResultReplay = p.Length(f["result_replay"], time.Minute, 24*time.Hour)
	}
}

func (p *parser) hold(n strictyaml.Node, h *Hold) {
	f := p.Fields(n, "default", "clients")
	if f["default"].Present() {
		h.Default = p.Length(f["default"], time.Second, time.Hour)
	}
	if !f["clients"].Present() {
		return
	}
	h.Clients = make(map[string]time.Duration)
	for _, m := range p.Members(f["clients"]) {
		h.Clients[m.Name] = p.Length(m.Value, time.Second, time.Hour)
	}
}

// set reads a text, with what it refers to filled in.
func (p *parser) set(n strictyaml.Node, to *string) {
	if n.Present() {
		*to = p.fill(n, p.Text(n))
	}
}

func (p *parser) flag(n strictyaml.Node, to *bool) {
	if n.Present() {
		*to, _ = p.Truth(n)
	}
}

func (p *parser) list(n strictyaml.Node) []string {
	if !n.Present() {
		return nil
	}
	var out []string
	for _, item := range p.Items(n) {
		out = append(out, p.fill(item, p.Text(item)))
	}
	return out
}

func (p *parser) texts(n strictyaml.Node) map[string]string {
	if !n.Present() {
		return nil
	}
	out := make(map[string]string)
	for _, m := range p.Members(n) {
		out[m.Name] = p.fill(m.Value, p.Text(m.Value))
	}
	return out
}

var reference = regexp.MustCompile(`\$\{([^}]*)\}`)

// fill replaces ${NAME} and file: references. Faults name the reference and
// never a value: values may be secrets.
func (p *parser) fill(n strictyaml.Node, s string) string {
	if name, ok := strings.CutPrefix(s, "file:"); ok {
		text, err := p.world.File(name)
		if err != nil {
			p.Fault(n, "the file %q could not be read: %s", name, fault(err))
		}
		return strings.TrimRight(string(text), "\r\n")
	}
	return reference.ReplaceAllStringFunc(s, func(ref string) string {
		name := ref[2 : len(ref)-1]
		v, ok := p.world.Env(name)
		if !ok {
			p.Fault(n, "the environment has no %s; set it or write the value out", name)
		}
		return v
	})
}

func fault(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err.Error()
	}
	return fmt.Sprint(err)
}
