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

// Pin is a tool's definition as it was first seen or last accepted. A server
// that later offers another one for the same name voids what is open for the
// tool, and the tool is held until a person accepts the change: approvals are
// for the tool that people knew.
type Pin struct {
	Server, Tool string
	Definition   call.Hash // the one in force; while held, the offered one
	Accepted     bool
	Was          call.Hash // while held: the accepted one
	Raw          []byte    // the tool object as offered
	Before       []byte    // while held: the accepted tool object
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

// pins caches what is pinned; the store has the truth.
type pins struct {
	mu sync.RWMutex
	by map[[2]string]Pin
}

func (p *pins) get(server, tool string) (Pin, bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	pin, ok := p.by[[2]string{server, tool}]
	return pin, ok
}

func (p *pins) set(pin Pin) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.by == nil {
		p.by = make(map[[2]string]Pin)
	}
	p.by[[2]string{pin.Server, pin.Tool}] = pin
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
// definition is pinned; a different one is held and voids what is open.
func (d *Desk) Offer(ctx context.Context, server, tool string, raw []byte) (Pin, error) {
	def, err := call.DefinitionHash(raw)
	if err != nil {
		return Pin{}, err
	}
	if pin, ok := d.pins.get(server, tool); ok && pin.Definition == def {
		return pin, nil
	}
	pin, err := d.repin(ctx, server, tool, func(was Pin, known bool) (Pin, ledger.Event, error) {
		pin := was
		var e ledger.Event
		switch {
		case !known:
			pin = Pin{Server: server, Tool: tool, Definition: def, Accepted: true, Raw: raw}
			e = pinEvent(ledger.DefinitionPinned, pin, system())
		case was.Definition == def:
		case !was.Accepted && was.Was == def: // it changed back
			pin = Pin{Server: server, Tool: tool, Definition: def, Accepted: true, Raw: raw}
			e = pinEvent(ledger.DefinitionAccepted, pin, system())
		default:
			pin = Pin{Server: server, Tool: tool, Definition: def, Raw: raw, Was: was.Definition, Before: was.Raw}
			if !was.Accepted {
				pin.Was, pin.Before = was.Was, was.Before
			}
			e = pinEvent(ledger.DefinitionChanged, pin, system())
		}
		return pin, e, nil
	})
	if err != nil {
		return Pin{}, err
	}
	if !pin.Accepted {
		if _, err := d.void(ctx, approval.ByDefinition, store.Filter{Server: server, Tool: tool}, func(r *approval.Request) bool {
			return r.Definition != def
		}); err != nil {
			return pin, err
		}
	}
	return pin, nil
}

// Accept is a person's yes to a changed definition, the one they saw.
func (d *Desk) Accept(ctx context.Context, by identity.Human, server, tool string, seen call.Hash) (Pin, error) {
	if by.IsZero() {
		return Pin{}, approval.ErrNoPerson
	}
	return d.repin(ctx, server, tool, func(was Pin, known bool) (Pin, ledger.Event, error) {
		switch {
		case !known:
			return Pin{}, ledger.Event{}, store.ErrNotFound
		case was.Definition != seen:
			return Pin{}, ledger.Event{}, approval.ErrStale
		case was.Accepted:
			return was, ledger.Event{}, nil
		}
		pin := was
		pin.Accepted, pin.Before = true, nil
		e := pinEvent(ledger.DefinitionAccepted, pin, human(by))
		pin.Was = call.Hash{}
		return pin, e, nil
	})
}

// repin changes a pin, in the store and here, while no claim is being made: once
// it returned, nothing that was judged by the pin before starts.
func (d *Desk) repin(ctx context.Context, server, tool string, edit func(was Pin, known bool) (Pin, ledger.Event, error)) (Pin, error) {
	open, err := d.inForce.shut(ctx)
	if err != nil {
		return Pin{}, err
	}
	defer open()
	var pin Pin
	err = d.store.Update(ctx, kindPin, server+"."+tool, func(old []byte, _ time.Time) ([]byte, ledger.Event, error) {
		was, known, err := decodePin(old)
		if err != nil {
			return nil, ledger.Event{}, err
		}
		var e ledger.Event
		if pin, e, err = edit(was, known); err != nil || e.IsZero() {
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
