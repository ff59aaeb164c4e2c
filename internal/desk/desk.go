// Package desk is the one gate: the only package that changes a request.
//
// Every way in (MCP, HTTP API, later the SDK and plan steps) asks here with
// [Desk.Submit], every person decides here with [Desk.Decide], and every effect
// starts here with [Desk.Execute] or, where the asker runs it itself, with
// [Desk.Claim], [Desk.Redeem] and [Desk.Finish]. The desk looks at the stored
// state and takes the next step from there; it remembers nothing that a restart
// could lose, so a retry, a restart and a second asker need no code of their own.
//
// It owns: judging at submit and again at the claim, joining a repeated call to
// the request it repeats, the caps and loop breakers, pinned tool definitions,
// pauses, deadlines, recovery after a crash, and what an agent is told.
//
// It does not own the legal moves (approval), what a policy says (policy), how
// changes become durable (store), nor any transport.
//
// Order of writes. The intent is durable before the effect starts and the
// outcome is written after it, even if the asker is gone. A crash between the
// two leaves a claim without an outcome: recovery calls it unknown and a person
// looks. Nothing is ever run again by itself.
package desk

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/identity"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/policy"
	"github.com/ayegate/ayegate/internal/store"
)

// Config is what a desk needs. All fields without a default are required.
type Config struct {
	Store  store.Store
	Policy *policy.Policy
	Rand   io.Reader    // ids, short codes, salts, tokens
	Log    *slog.Logger // never sees arguments, results or secrets

	// PendingPerAgent bounds the requests of one agent that wait for people; 0
	// means 50. The flood of one agent must not bury the others (OPS-01).
	PendingPerAgent int
	// Replay is how long the result of an approved call waits for an asker that
	// went away; 0 means 10 minutes.
	Replay time.Duration
	// Sweep is how often deadlines are looked after; 0 means one second.
	Sweep time.Duration
	// Roots are the directories that ${workspace} stands for, by workspace.
	Roots map[string]string
}

// Desk dispatches. It is safe for concurrent use.
type Desk struct {
	cfg    Config
	store  store.Store
	log    *slog.Logger
	holder string // names this process in claims

	policy atomic.Pointer[policy.Policy]
	paused atomic.Bool

	inForce   gate       // what judging rests on: policy, pins, the kill switch
	random    sync.Mutex // guards cfg.Rand
	waiters   waiters
	onlookers waiters // people who look on; they do not make a call run
	twins     keyed   // one at a time per agent and call: two equal calls must find each other
	tallies   tallies
	places    places
	effects   effects
	pins      pins
	epoch     epoch
	sessions  sessions
	forgot    time.Time // when tallies were folded last; the sweeper's own
}

// New makes a desk over a store. Call [Desk.Recover] before the first request.
func New(cfg Config) (*Desk, error) {
	if cfg.Store == nil || cfg.Policy == nil || cfg.Rand == nil || cfg.Log == nil {
		return nil, errors.New("desk: store, policy, rand and log are required")
	}
	if cfg.PendingPerAgent == 0 {
		cfg.PendingPerAgent = 50
	}
	if cfg.Replay == 0 {
		cfg.Replay = 10 * time.Minute
	}
	if cfg.Sweep == 0 {
		cfg.Sweep = time.Second
	}
	d := &Desk{cfg: cfg, store: cfg.Store, log: cfg.Log, inForce: newGate()}
	d.policy.Store(cfg.Policy)
	d.pins.now = cfg.Store.Now
	id, err := d.newUUID()
	if err != nil {
		return nil, err
	}
	d.holder = id
	return d, nil
}

// Policy is the policy in force.
func (d *Desk) Policy() *policy.Policy { return d.policy.Load() }

// SetPolicy puts another policy in force: once it returned, no claim starts that
// was judged by the one before (POL-12). Requests that are open are judged again
// when somebody decides or claims.
func (d *Desk) SetPolicy(ctx context.Context, name string, p *policy.Policy) error {
	open, err := d.inForce.shut(ctx)
	if err != nil {
		return err
	}
	defer open()
	was := d.policy.Load().Revision()
	if was == p.Revision() {
		return nil
	}
	err = d.store.Append(ctx, ledger.Event{
		Kind: ledger.PolicyLoaded, Subject: name, Actor: system(),
		Data: []ledger.Field{ledger.String(ledger.FieldPolicy, p.Revision()), ledger.String(ledger.FieldWas, was)},
	})
	if err != nil {
		return err
	}
	d.policy.Store(p)
	return nil
}

// RejectPolicy records that a policy was not loaded and the old one stays.
func (d *Desk) RejectPolicy(ctx context.Context, name string, why error) error {
	return d.store.Append(ctx, ledger.Event{
		Kind: ledger.PolicyRejected, Subject: name, Actor: system(),
		Data: []ledger.Field{ledger.String(ledger.FieldCause, clip(why.Error(), 2000))},
	})
}

// Record appends an event that changes no request: sign-ins, refused
// credentials, keys, exports.
func (d *Desk) Record(ctx context.Context, e ledger.Event) error { return d.store.Append(ctx, e) }

// Get returns a request to a person.
func (d *Desk) Get(ctx context.Context, by identity.Human, id approval.ID) (*approval.Request, error) {
	if by.IsZero() {
		return nil, approval.ErrNoPerson
	}
	return d.store.Get(ctx, id)
}

// GetOwn returns a request to the agent that made it. Somebody else's and an
// absent one are the same: [store.ErrNotFound].
func (d *Desk) GetOwn(ctx context.Context, from identity.Agent, id approval.ID) (*approval.Request, error) {
	r, err := d.store.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	if !owns(from, r) {
		return nil, store.ErrNotFound
	}
	return r, nil
}

// FindOwn returns an agent's own request by its id or by its short code, in any
// case. Somebody else's and an absent one are the same: [store.ErrNotFound].
func (d *Desk) FindOwn(ctx context.Context, from identity.Agent, name string) (*approval.Request, error) {
	if len(name) == len("00000000-0000-0000-0000-000000000000") {
		return d.GetOwn(ctx, from, approval.ID(strings.ToLower(name)))
	}
	r, err := d.store.ByCode(ctx, strings.ToUpper(name))
	if err != nil {
		return nil, err
	}
	if !owns(from, r) {
		return nil, store.ErrNotFound
	}
	return r, nil
}

// owns reports whether a request is an agent's own. The credential is the
// principal: a session that ended does not take its requests along, or a client
// that was killed while it waited could never ask again.
func owns(from identity.Agent, r *approval.Request) bool {
	return !from.IsZero() && from.ID == r.From.ID && from.Workspace == r.From.Workspace && from.Device == r.From.Device
}

func (d *Desk) facts(from identity.Agent, t Tool) policy.Facts {
	return policy.Facts{
		Agent: from.ID, Owner: from.Owner, Session: from.Session, Workspace: from.Workspace,
		WorkspaceRoot: d.cfg.Roots[from.Workspace], Now: d.store.Now(), Hints: t.Hints, Known: t.Known,
	}
}

// change runs a move and wakes whoever waits for the request. When the store
// does not say whether it committed, the stored request is read again and
// returned with the error, so that callers can tell by what it shows; whoever
// waits is woken again later, for the change may still come.
func (d *Desk) change(ctx context.Context, id approval.ID, move store.Move, charges ...store.Charge) (*approval.Request, error) {
	r, err := d.store.Change(ctx, id, move, charges...)
	if errors.Is(err, store.ErrInDoubt) {
		d.waiters.doubt(id, d.store.Now())
		late, cancel := outlast(ctx)
		defer cancel()
		if again, readErr := d.store.Get(late, id); readErr == nil {
			r = again
		}
	}
	if err == nil || r != nil {
		d.waiters.wake(id)
		d.onlookers.wake(id)
	}
	return r, err
}

// certain takes the doubt out of a change that the request, read again, shows.
func certain(r *approval.Request, err error, made func(*approval.Request) bool) error {
	if errors.Is(err, store.ErrInDoubt) && r != nil && made(r) {
		return nil
	}
	return err
}

// patience is how long the desk goes on with what must be known or written after
// its caller gave up: a store that hangs must not keep goroutines for ever.
const patience = 5 * time.Second

func outlast(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), patience)
}

func system() ledger.Actor { return ledger.Actor{Kind: ledger.System, ID: "ayegate"} }

func agent(a identity.Agent) ledger.Actor { return ledger.Actor{Kind: ledger.Agent, ID: a.ID} }

func human(h identity.Human) ledger.Actor {
	return ledger.Actor{Kind: ledger.Human, ID: h.Subject(), Via: h.Strength.String()}
}

// clip bounds text that goes on the record.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n] + " …"
}

// Tool is what the desk knows of the tool behind a call.
type Tool struct {
	Definition call.Hash    // zero where the call is no tool call or the tool is not known
	Hints      policy.Hints // the server's claims
	Known      bool         // pinned and accepted
}
