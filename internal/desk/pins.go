package desk

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/identity"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/policy"
	"github.com/ayegate/ayegate/internal/store"
	"github.com/ayegate/ayegate/internal/strictjson"
)

const kindPin = "pin"

// ErrTooManyTools says that a server offered more names than are pinned for one.
var ErrTooManyTools = errors.New("the server has offered too many different tools")

// Pin is a tool's definition as it was first seen or last accepted. A server
// that later offers another one for the same name voids what is open for the
// tool, and the tool is held until a person accepts the change: approvals are
// for the tool that people knew.
//
// A server that changes its mind all the time must not fill the record with that:
// what is held already is kept up to date here, and in the store once a minute.
type Pin struct {
	Server, Tool string
	Definition   call.Hash // the one in force; while held, the offered one
	Accepted     bool
	Was          call.Hash   // while held: the accepted one
	Raw          []byte      // the tool object as offered
	Before       []byte      // while held: the accepted tool object
	Changed      []time.Time // when it changed last, within an hour, the last few
	Recorded     time.Time   // of the last change that the store has

	behind bool // the store has an older one
}

// hints are what the server claims of the tool.
func (p Pin) hints() policy.Hints {
	flag := func(name string) *bool {
		raw, ok := strictjson.Get(p.Raw, "annotations", name)
		if !ok {
			return nil
		}
		b, err := strictjson.Bool(raw)
		if err != nil {
			return nil
		}
		return &b
	}
	return policy.Hints{
		ReadOnly: flag("readOnlyHint"), Destructive: flag("destructiveHint"),
		Idempotent: flag("idempotentHint"), OpenWorld: flag("openWorldHint"),
	}
}

// pins caches what is pinned; the store has the truth, but for changes of what is
// held, which it learns later.
type pins struct {
	change sync.Mutex // one change at a time, store and memory together
	mu     sync.RWMutex
	by     map[[2]string]Pin
	of     map[string]*unrest // by server
	now    func() time.Time
}

// known is a pin as it is.
func (p *pins) known(server, tool string) (Pin, bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	pin, ok := p.by[[2]string{server, tool}]
	return pin, ok
}

// get is a pin as it counts now: none is accepted while its server is in quarantine.
func (p *pins) get(server, tool string) (Pin, bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	pin, ok := p.by[[2]string{server, tool}]
	if u := p.of[server]; ok && u != nil && !u.until.IsZero() && p.now().Before(u.until) {
		pin.Accepted = false
	}
	return pin, ok
}

func (p *pins) set(pin Pin) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.by == nil {
		p.by = make(map[[2]string]Pin)
	}
	key := [2]string{pin.Server, pin.Tool}
	if _, ok := p.by[key]; !ok {
		p.server(pin.Server).tools++
	}
	p.by[key] = pin
}

// Tool tells what is known of a server's tool; held says that its definition
// changed and waits for a person.
func (d *Desk) Tool(server, tool string) (t Tool, held bool) {
	pin, ok := d.pins.get(server, tool)
	if !ok {
		return Tool{}, false
	}
	return Tool{Definition: pin.Definition, Hints: pin.hints(), Known: pin.Accepted}, !pin.Accepted
}

// Offer takes a tool as its server lists it now: an MCP tool object. The first
// definition is pinned; a different one is held and voids what is open. One that
// changes back is as it was, unless it did so again and again. [ErrTooManyTools]
// says that the tool is not pinned and must not be passed on.
func (d *Desk) Offer(ctx context.Context, server, tool string, raw []byte) (Pin, error) {
	def, err := call.DefinitionHash(raw)
	if err != nil {
		return Pin{}, err
	}
	if pin, ok := d.pins.known(server, tool); ok && pin.Definition == def && (pin.Accepted || pin.Was != def) {
		pin, _ = d.pins.get(server, tool)
		return pin, nil
	}
	was, pin, err := d.offer(ctx, server, tool, def, raw)
	if err != nil {
		return Pin{}, err
	}
	if !pin.Accepted && (was.Accepted || !pin.behind) {
		if _, err := d.void(ctx, approval.ByDefinition, store.Filter{Server: server, Tool: tool}, func(r *approval.Request) bool {
			return r.Definition != def
		}); err != nil {
			return pin, err
		}
	}
	pin, _ = d.pins.get(server, tool)
	return pin, nil
}

// offer pins what is offered and returns the pin before and after.
func (d *Desk) offer(ctx context.Context, server, tool string, def call.Hash, raw []byte) (was, pin Pin, err error) {
	d.pins.change.Lock()
	defer d.pins.change.Unlock()
	now := d.store.Now()
	was, known := d.pins.known(server, tool)
	calm, err := d.calm(ctx, server, known && was.Definition != def, now)
	if err != nil {
		return was, was, err
	}
	if known && !was.Accepted && !was.records(def, calm, now) {
		pin = was.next(def, raw, calm, now)
		pin.behind = was.behind || pin.Definition != was.Definition
		d.pins.set(pin) // held before and after: nothing rests on it
		return was, pin, nil
	}
	pin, err = d.repin(ctx, server, tool, func(was, stored Pin, known bool) (Pin, ledger.Event, error) {
		if !known {
			if d.pins.full(server) {
				return Pin{}, ledger.Event{}, ErrTooManyTools
			}
			pin := Pin{Server: server, Tool: tool, Definition: def, Accepted: true, Raw: raw}
			return pin, pinEvent(ledger.DefinitionPinned, pin, system()), nil
		}
		next := was.next(def, raw, calm, now)
		switch {
		case next.Accepted == stored.Accepted && next.Definition == stored.Definition:
			return next, ledger.Event{}, nil
		case next.Accepted:
			return next, pinEvent(ledger.DefinitionAccepted, next, system()), nil
		case !was.records(def, calm, now):
			next.behind = true
			return next, ledger.Event{}, nil
		}
		next.Recorded = now
		return next, pinEvent(ledger.DefinitionChanged, next, system()), nil
	})
	return was, pin, err
}

// Accept is a person's yes to a changed definition, the one they saw.
func (d *Desk) Accept(ctx context.Context, by identity.Human, server, tool string, seen call.Hash) (Pin, error) {
	if by.IsZero() {
		return Pin{}, approval.ErrNoPerson
	}
	d.pins.change.Lock()
	defer d.pins.change.Unlock()
	return d.repin(ctx, server, tool, func(was, _ Pin, known bool) (Pin, ledger.Event, error) {
		switch {
		case !known:
			return Pin{}, ledger.Event{}, store.ErrNotFound
		case was.Definition != seen:
			return Pin{}, ledger.Event{}, approval.ErrStale
		case was.Accepted:
			return was, ledger.Event{}, nil
		}
		pin := was
		pin.Accepted, pin.Before, pin.behind = true, nil, false
		e := pinEvent(ledger.DefinitionAccepted, pin, human(by))
		pin.Was = call.Hash{}
		return pin, e, nil
	})
}

// repin changes a pin, in the store and here, while no claim is being made: once
// it returned, nothing that was judged by the pin before starts. The caller holds
// the lock of changes. A change without an event is made here only.
func (d *Desk) repin(ctx context.Context, server, tool string, edit func(was, stored Pin, known bool) (Pin, ledger.Event, error)) (Pin, error) {
	open, err := d.inForce.shut(ctx)
	if err != nil {
		return Pin{}, err
	}
	defer open()
	var pin Pin
	err = d.store.Update(ctx, kindPin, server+"."+tool, func(old []byte, _ time.Time) ([]byte, ledger.Event, error) {
		stored, known, err := decodePin(old)
		if err != nil {
			return nil, ledger.Event{}, err
		}
		was := stored
		if here, ok := d.pins.known(server, tool); ok && here.behind {
			was, known = here, true
		}
		var e ledger.Event
		if pin, e, err = edit(was, stored, known); err != nil || e.IsZero() {
			return old, ledger.Event{}, err
		}
		value, err := encodePin(pin)
		return value, e, err
	})
	if err != nil {
		return Pin{}, err
	}
	d.pins.set(pin)
	return pin, nil
}

// Pins lists all pinned tools by name.
func (d *Desk) Pins() []Pin {
	d.pins.mu.RLock()
	defer d.pins.mu.RUnlock()
	out := make([]Pin, 0, len(d.pins.by))
	for _, p := range d.pins.by {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b Pin) int {
		return strings.Compare(a.Server+"\x00"+a.Tool, b.Server+"\x00"+b.Tool)
	})
	return out
}

func (d *Desk) loadPins(ctx context.Context) error {
	for r, err := range d.store.Records(ctx, kindPin) {
		if err != nil {
			return err
		}
		pin, _, err := decodePin(r.Value)
		if err != nil {
			return err
		}
		d.pins.set(pin)
	}
	return nil
}

func pinEvent(k ledger.Kind, p Pin, by ledger.Actor) ledger.Event {
	data := []ledger.Field{ledger.String(ledger.FieldDefinition, p.Definition.String())}
	if !p.Was.IsZero() {
		data = append(data, ledger.String(ledger.FieldWas, p.Was.String()))
	}
	return ledger.Event{Kind: k, Subject: p.Server + "." + p.Tool, Actor: by, Data: data}
}

// encodePin and decodePin are the stored form: our own bytes, so encoding/json
// may read them. Raw tool objects travel as byte strings and stay exact.
func encodePin(p Pin) ([]byte, error) { return json.Marshal(p) }

func decodePin(value []byte) (p Pin, known bool, err error) {
	if value == nil {
		return Pin{}, false, nil
	}
	if err := json.Unmarshal(value, &p); err != nil {
		return Pin{}, false, errors.Join(errors.New("a stored tool definition cannot be read"), err)
	}
	return p, true, nil
}
