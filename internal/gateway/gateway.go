// Package gateway stands between agents and MCP servers: MCP in, desk, MCP out.
//
// Towards agents it is an [mcp.Server], towards servers it drives [mcp.Upstream]
// connections. Every request that could have an effect, or could read something,
// becomes a call and goes through the desk: tools/call under the tool's own name,
// any other method, notifications too, under "mcp:" and the method's name (MCP-09).
// Only lists, pings and the protocol's own housekeeping pass without a judgement,
// and those carry nothing but what the specification names: of lists the cursor
// that the server gave, of logging/setLevel the level, of notifications/progress
// its token, numbers and message, of notifications/roots/list_changed nothing; of
// _meta the progress token, the members of the era and the trace context. A
// notification that no rule allows is recorded as denied and dropped.
//
// It owns: which connection a request of an agent goes out on, what an agent is
// shown of the servers behind (capabilities, lists, names on the merged endpoint),
// how an agent hears that its call waits for people, how its wait is carried on
// by each revision of the protocol, and the bridge between the protocol's eras.
//
// It does not own the decision, the record or the single run (desk), nor framing,
// identifiers and transports (mcp), nor who an agent is: that was authenticated
// before, and Config.Identify names the agent behind a principal.
//
// What reaches a server. The params of a request go out as they came, with these
// exceptions: the arguments are the canonical bytes that were judged, shown and
// hashed; on the merged endpoint a name loses its server's prefix; of methods
// other than tools/call all params but _meta are canonical, since all of them were
// judged; inputResponses and requestState are answers to the gateway and stay
// here; members of an agent's _meta under dev.ayegate/ are taken out, but for
// dev.ayegate/reason; and _meta["dev.ayegate/claim"] names the claim as an
// idempotency key where [Server.IdempotencyMeta] asks for it.
//
// Extras. A server may act on what comes beside the call, so people are shown
// that too. The extras of a request are the canonical form of its params without
// name, arguments, inputResponses and requestState (of methods other than
// tools/call: without all but _meta), and of _meta without what differs from one
// sending of a request to the next: progressToken, everything under
// io.modelcontextprotocol/, claudecode/toolUseId, callId, x-codex-turn-metadata,
// traceparent, tracestate, baggage and dev.ayegate/. Those are sent as they come
// and are not shown: no server should take an order from them. An empty _meta is
// none, and a request without extras has nil. A policy does not look at extras.
// An equal call with other extras is another request. What waited for people is
// sent with the extras of the request in their canonical form, the bytes that were
// shown, whichever exchange runs it.
//
// A tool that its server runs only as a task gets params.task, and the gateway
// waits for the task: it offers agents none.
//
// What reaches an agent. A result is handed on byte for byte, with these
// exceptions: members of its _meta under dev.ayegate/ are taken out, because that
// prefix is how the gateway itself speaks (MCP-18); a modern agent gets the
// resultType, ttlMs and cacheScope that a legacy server did not write, and no
// cacheScope but private; and where a person changed the call, the agent is told
// so before the result. A result's text is data: only _meta tells
// whether the gateway or the tool is speaking.
//
// What no agent can do here: decide. No method and no tool approves anything, an
// answer to an elicitation is never an approval (API-01, MCP-05, MCP-06).
package gateway

import (
	"context"
	"crypto/cipher"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/desk"
	"github.com/ayegate/ayegate/internal/identity"
	"github.com/ayegate/ayegate/internal/mcp"
)

// Config is what a gateway needs. Fields without a default are required.
type Config struct {
	Desk *desk.Desk
	// Servers are the servers behind, by id: a lower-case letter, then lower-case
	// letters, digits and hyphens, at most 32. "ayegate" is ours.
	Servers map[string]Server
	// Identify names the agent behind an authenticated principal. Its Session is
	// bound here: its key, or its connection over stdio.
	Identify func(principal string) (identity.Agent, error)
	// BaseURL is where people sign in, without a trailing slash; the page of a
	// request is BaseURL/r/CODE. Empty leaves links out.
	BaseURL string
	// Hold says how long calls are held open.
	Hold Hold
	// Version is ours, for serverInfo and clientInfo.
	Version string
	// Limits bound what one agent can make the gateway hold.
	Limits Limits

	Now  func() time.Time
	Rand io.Reader
	Log  *slog.Logger // never sees arguments, results or secrets
	// Dial opens connections to servers; nil means [mcp.Dial].
	Dial func(context.Context, mcp.Target) (mcp.Upstream, error)
}

// Server is one MCP server behind the gateway.
type Server struct {
	// Target says how to reach it. The gateway fills in Name, Info, Capabilities,
	// Stray and Schema, and Version where it is empty.
	Target mcp.Target
	// IdempotencyMeta adds _meta["dev.ayegate/claim"] to every request that is run:
	// the claim's id, the same for every attempt to run the same claim. Off by
	// default, because _meta then is no longer what the agent sent.
	IdempotencyMeta bool
}

// Limits bound what is held. Zero fields mean the defaults.
type Limits struct {
	InFlight  int           // requests of one session or principal being answered; 256
	Parked    int           // calls of one principal that wait for the agent's input between its requests; 16
	ParkedFor time.Duration // how long one waits; 10 minutes
	Opening   time.Duration // to connect to a server, or to list its tools; 30 s
	Idle      time.Duration // after which an unused connection to a server is closed; 1 hour
	ChildIdle time.Duration // the same for a server that runs as our child; 5 minutes
	Children  int           // processes of one server that run for one agent; 64
	Drain     time.Duration // how long Shutdown waits for calls that were sent; 5 s
}

func (l Limits) orDefaults() Limits {
	return Limits{
		InFlight:  orElse(l.InFlight, 256),
		Parked:    orElse(l.Parked, 16),
		ParkedFor: orElse(l.ParkedFor, 10*time.Minute),
		Opening:   orElse(l.Opening, 30*time.Second),
		Idle:      orElse(l.Idle, time.Hour),
		ChildIdle: orElse(l.ChildIdle, 5*time.Minute),
		Children:  orElse(l.Children, 64),
		Drain:     orElse(l.Drain, 5*time.Second),
	}
}

func orElse[T int | time.Duration](v, otherwise T) T {
	if v <= 0 {
		return otherwise
	}
	return v
}

// Gateway answers agents. It is safe for concurrent use.
type Gateway struct {
	c     Config
	desk  *desk.Desk
	log   *slog.Logger
	ids   []string // of the servers, sorted
	sealz cipher.AEAD
	ctx   context.Context // of everything that outlives a request; its cause says why it ended
	stop  context.CancelCauseFunc
	work  sync.WaitGroup
	runs  sync.WaitGroup // calls that may have been sent

	children children

	abouts sync.Map // server id to mcp.About: how it last introduced itself
	bound  sync.Map // [2]string{server, tool} to []mcp.ParamHeader

	random  sync.Mutex // guards c.Rand
	mu      sync.Mutex
	closed  bool
	parties map[partyKey]*party
	parked  map[string]*run // by id
}

var _ mcp.Server = (*Gateway)(nil)

// reserved is the server id that would make a server's tools look like ours.
const reserved = "ayegate"

// New makes a gateway. It lives until Shutdown, also beyond ctx: a call that was
// sent is given time to be answered.
func New(ctx context.Context, c Config) (*Gateway, error) {
	if c.Desk == nil || c.Identify == nil || c.Now == nil || c.Rand == nil || c.Log == nil {
		return nil, errors.New("gateway: desk, identify, now, rand and log are required")
	}
	for id := range c.Servers {
		// One grammar without underscores and without look-alikes: server__tool is
		// taken apart in one way only (MCP-12, MCP-13).
		if _, err := call.New(id, "x", nil); err != nil {
			return nil, fmt.Errorf("gateway: server %q: %w", id, err)
		}
		if id == reserved {
			return nil, fmt.Errorf("gateway: the server id %q is reserved", id)
		}
	}
	if c.Dial == nil {
		c.Dial = mcp.Dial
	}
	c.Limits, c.Hold = c.Limits.orDefaults(), c.Hold.orDefaults()
	c.BaseURL = strings.TrimSuffix(c.BaseURL, "/")
	g := &Gateway{
		c: c, desk: c.Desk, log: c.Log, ids: slices.Sorted(maps.Keys(c.Servers)),
		parties: make(map[partyKey]*party), parked: make(map[string]*run),
	}
	var err error
	if g.sealz, err = newSeal(c.Rand); err != nil {
		return nil, err
	}
	g.ctx, g.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	return g, nil
}

// Shutdown ends everything. What was sent is waited for as long as Limits.Drain
// says, then recorded as what is known of it; connections to servers are closed.
// It returns when all has ended.
func (g *Gateway) Shutdown() {
	g.mu.Lock()
	g.closed = true
	parties := slices.Collect(maps.Values(g.parties))
	for _, u := range g.parked {
		u.expiry.Stop()
	}
	g.mu.Unlock()
	drained := make(chan struct{})
	go func() {
		g.runs.Wait()
		close(drained)
	}()
	patience := time.NewTimer(g.c.Limits.Drain)
	defer patience.Stop()
	select {
	case <-drained:
	case <-patience.C:
	}
	g.stop(mcp.ErrShutdown)
	for _, p := range parties {
		p.close()
	}
	<-drained
	g.work.Wait()
}

// spawn runs f and lets Shutdown wait for it. It reports false after Shutdown.
func (g *Gateway) spawn(f func()) bool { return g.spawnIn(&g.work, f) }

func (g *Gateway) spawnIn(group *sync.WaitGroup, f func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	group.Go(f)
	return true
}

// serves reports whether an endpoint, named as in [mcp.Client.Server], exists.
func (g *Gateway) serves(server string) bool {
	_, ok := g.c.Servers[server]
	return ok || server == ""
}

// behind lists the servers behind an endpoint.
func (g *Gateway) behind(endpoint string) []string {
	if endpoint == "" {
		return g.ids
	}
	return []string{endpoint}
}

// agent names who asks. The session that limits, pauses and denials count by is
// bound to the credential: over HTTP it is the key's, over stdio the connection's.
// A session of the protocol is none: an agent could open a new one to leave behind
// what was counted against it (TOK-13).
func (g *Gateway) agent(c mcp.Client) (identity.Agent, error) {
	from, err := g.c.Identify(c.Principal)
	if err != nil || from.IsZero() {
		return identity.Agent{}, errors.Join(desk.ErrNoAgent, err)
	}
	switch {
	case c.Transport == "stdio" && c.Session != "":
		from.Session = c.Session
	case from.Device != "":
		from.Session = "key:" + from.ID + "/" + from.Device
	default:
		from.Session = "key:" + from.ID
	}
	return from, nil
}

func noServer(endpoint string) *mcp.Error {
	return &mcp.Error{Code: mcp.CodeInvalidRequest, Status: 404, Message: fmt.Sprintf("no server %q behind this gateway; nothing ran", endpoint)}
}

func noMethod(method, why string) *mcp.Error {
	return &mcp.Error{Code: mcp.CodeMethodNotFound, Message: method + ": " + why + "; nothing ran"}
}

func badParams(why string) *mcp.Error {
	return &mcp.Error{Code: mcp.CodeInvalidParams, Message: why + "; nothing ran"}
}
