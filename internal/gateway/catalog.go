package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/desk"
	"github.com/ayegate/ayegate/internal/mcp"
)

// catalog is what a server offered the last time its tools were listed.
type catalog struct {
	page    []byte // the first result of tools/list, as it came; nil when the server has none
	tools   []*tool
	by      map[string]*tool
	dropped map[string]string // names that are not passed on, and why
}

// tool is one tool of a server.
type tool struct {
	name string
	raw  []byte // the tool object, as it came
	hash call.Hash
	held bool // its definition changed and waits for a person
}

// catalogs holds the last catalog of a connection.
type catalogs struct {
	listing sync.Mutex // one listing at a time
	last    atomic.Pointer[catalog]
	old     atomic.Bool
}

func (c *catalogs) outdate() { c.old.Store(true) }

// schema is the inputSchema of a tool, for the headers of the modern era.
func (c *catalogs) schema(name string) []byte {
	last := c.last.Load()
	if last == nil || last.by[name] == nil {
		return nil
	}
	return get(last.by[name].raw, "inputSchema")
}

// tools returns the server's tools. A fresh listing asks the server, otherwise
// what it said last is good until it says that it changed. Each tool is offered to
// the desk, which pins it or holds it (MCP-10).
func (c *conn) tools(ctx context.Context, fresh bool) (*catalog, error) {
	if last := c.catalog.last.Load(); last != nil && !fresh && !c.catalog.old.Load() {
		return last, nil
	}
	c.catalog.listing.Lock()
	defer c.catalog.listing.Unlock()
	if last := c.catalog.last.Load(); last != nil && !fresh && !c.catalog.old.Load() {
		return last, nil
	}
	ctx, stop := context.WithTimeout(ctx, c.l.g.c.Limits.Opening)
	defer stop()
	c.catalog.old.Store(false)
	next, err := c.list(ctx)
	if err != nil {
		c.catalog.old.Store(true)
		return nil, err
	}
	c.catalog.last.Store(next)
	return next, nil
}

func (c *conn) list(ctx context.Context) (*catalog, error) {
	cat := &catalog{by: make(map[string]*tool), dropped: make(map[string]string)}
	first, items, err := pages(ctx, c.up, "tools/list", "tools")
	switch {
	case err == nil:
	case unknownMethod(err):
		return cat, nil
	default:
		return nil, err
	}
	cat.page = first
	for _, raw := range items {
		cat.add(raw)
	}
	for _, t := range cat.tools {
		if err := c.pin(ctx, cat, t); err != nil {
			return nil, err
		}
	}
	cat.sift()
	c.report(cat)
	return cat, nil
}

// maxReported bounds what one listing writes to the log.
const maxReported = 10

// report tells the operator of tools that are not passed on.
func (c *conn) report(cat *catalog) {
	told := 0
	for name, why := range cat.dropped {
		if told++; told > maxReported {
			c.l.g.log.Warn("more tools are not passed on", "server", c.l.server, "tools", len(cat.dropped)-maxReported)
			return
		}
		c.l.g.log.Warn("a tool is not passed on", "server", c.l.server, "tool", name, "why", why)
	}
}

// add takes a tool in. A name that means two tools means none (MCP-12).
func (c *catalog) add(raw []byte) {
	name := textAt(raw, "name")
	switch why := unusable(name); {
	case why != "":
		c.dropped[name] = why
	case c.by[name] != nil:
		c.dropped[name] = "the server lists it more than once"
	default:
		t := &tool{name: name, raw: raw}
		c.by[name] = t
		c.tools = append(c.tools, t)
	}
}

// unusable says why a tool cannot have this name here.
func unusable(name string) string {
	switch {
	case strings.HasPrefix(name, methodPrefix):
		return "names that begin with " + methodPrefix + " stand for methods of the protocol"
	case strings.HasPrefix(name, ownPrefix):
		return "names that begin with " + ownPrefix + " are the gateway's own"
	}
	if _, err := call.New("x", name, nil); err != nil {
		return err.Error()
	}
	return ""
}

// pin offers a tool to the desk. An error means that the store cannot keep pins;
// a tool that has no definition is dropped.
func (c *conn) pin(ctx context.Context, cat *catalog, t *tool) error {
	if _, twice := cat.dropped[t.name]; twice {
		return nil
	}
	if last := c.catalog.last.Load(); last != nil && last.by[t.name] != nil && bytes.Equal(last.by[t.name].raw, t.raw) {
		t.hash = last.by[t.name].hash // most lists are as they were: hash what is new
	}
	if t.hash.IsZero() {
		var err error
		if t.hash, err = call.DefinitionHash(t.raw); err != nil {
			cat.dropped[t.name] = "its definition cannot be read: " + err.Error()
			return nil
		}
	}
	known, held := c.l.g.desk.Tool(c.l.server, t.name)
	if held || known.Definition != t.hash {
		pin, err := c.l.g.desk.Offer(ctx, c.l.server, t.name, t.raw)
		if errors.Is(err, desk.ErrTooManyTools) {
			cat.dropped[t.name] = err.Error()
			return nil
		}
		if err != nil {
			return fmt.Errorf("the definition of %s could not be recorded: %w", t.name, err)
		}
		held = !pin.Accepted
	}
	t.held = held
	if schema := get(t.raw, "inputSchema"); bytes.Contains(schema, []byte("x-mcp-header")) {
		if headers, err := mcp.ParamHeaders(schema); err == nil {
			c.l.g.bound.Store([2]string{c.l.server, t.name}, headers)
		}
	}
	return nil
}

// sift forgets the tools that are not passed on.
func (c *catalog) sift() {
	kept := c.tools[:0]
	for _, t := range c.tools {
		if _, drop := c.dropped[t.name]; drop {
			delete(c.by, t.name)
			continue
		}
		kept = append(kept, t)
	}
	c.tools = kept
}

// Bound returns the headers of the modern era that repeat arguments of a tool, for
// the check of an [mcp.Endpoint].
func (g *Gateway) Bound(c mcp.Client, name string) []mcp.ParamHeader {
	server := c.Server
	if server == "" {
		var ok bool
		if server, name, ok = split(name); !ok {
			return nil
		}
	}
	v, _ := g.bound.Load([2]string{server, name})
	headers, _ := v.([]mcp.ParamHeader)
	return headers
}

// pages fetches all pages of a list and returns the first result and the elements
// of its named member, each exactly as sent. A list beyond the bounds of package
// mcp is an error and not a shorter list (MCP-14).
func pages(ctx context.Context, up mcp.Upstream, method, member string) (first []byte, items [][]byte, err error) {
	var params []byte
	size := 0
	seen := make(map[string]bool)
	for {
		m, err := up.Call(ctx, method, params, nil)
		if err != nil {
			return nil, nil, err
		}
		if m.Error != nil {
			return nil, nil, errorOf(m)
		}
		if !once(m.Result, func(string) {}) {
			// Another reader could take the other member, with tools that nobody pinned.
			return nil, nil, fmt.Errorf("%s: what the server lists can be read in two ways", method)
		}
		if first == nil {
			first = m.Result
		}
		for _, item := range elements(get(m.Result, member)) {
			size += len(item)
			if len(item) > mcp.MaxItemBytes || size > mcp.MaxListBytes || len(items) >= mcp.MaxListItems {
				return nil, nil, fmt.Errorf("%s: what the server lists is too large", method)
			}
			items = append(items, item)
		}
		cursor := get(m.Result, "nextCursor")
		if len(cursor) == 0 || cursor[0] != '"' {
			return first, items, nil
		}
		if seen[string(cursor)] {
			return nil, nil, fmt.Errorf("%s: the server's cursors go round in a circle", method)
		}
		seen[string(cursor)] = true
		params = (&object{}).add("cursor", cursor).bytes()
	}
}

// errorOf is a server's error as we hand it on: byte for byte.
func errorOf(m mcp.Message) *mcp.Error {
	e := &mcp.Error{Raw: m.Error, Message: textAt(m.Error, "message")}
	if code := get(m.Error, "code"); code != nil {
		e.Code = intOf(code)
	}
	return e
}
