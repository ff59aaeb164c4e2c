package desk

import (
	"context"
	"time"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/ledger"
)

// Bounds on what a server that changes its tools all the time makes of the record,
// which only grows, and of the people who look at it (MCP-15).
const (
	maxPinned   = 2000        // names of one server; more are not passed on
	recordEvery = time.Minute // a change of a tool that is held already is recorded
	flapWithin  = time.Hour
	flaps       = 3 // changes within flapWithin before one more is not undone by changing back

	perMinute = 50 // changed definitions of one server; more are a storm
	perHour   = 300
	quietFor  = time.Minute // without a change, and a storm is over
)

// unrest is what a server does with its definitions.
//
// A storm of changes puts the whole server in quarantine: none of its tools is
// passed on or run, that is one event, and what changes meanwhile is held here
// without events of its own. The quarantine ends by itself when the server has
// been quiet for a minute. Then the tools that are as they were accepted are back,
// and each of the others waits for a person.
type unrest struct {
	tools        int // names that are pinned
	minute, hour window
	until        time.Time // end of the quarantine, zero before the first
}

// window counts what happened since it began.
type window struct {
	began time.Time
	n     int
}

func (w *window) count(now time.Time, length time.Duration) int {
	if now.Sub(w.began) >= length {
		w.began, w.n = now, 0
	}
	w.n++
	return w.n
}

// server must be called with the lock held.
func (p *pins) server(id string) *unrest {
	if p.of == nil {
		p.of = make(map[string]*unrest)
	}
	u := p.of[id]
	if u == nil {
		u = &unrest{}
		p.of[id] = u
	}
	return u
}

func (p *pins) full(server string) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	u := p.of[server]
	return u != nil && u.tools >= maxPinned
}

// stir counts a changed definition, when there is one, and reports whether the
// server is in quarantine and whether that begins now.
func (p *pins) stir(server string, changed bool, now time.Time) (storm, begins bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	u := p.server(server)
	storm = now.Before(u.until)
	if !changed {
		return storm, false
	}
	minute, hour := u.minute.count(now, time.Minute), u.hour.count(now, time.Hour)
	if begins = !storm && (minute > perMinute || hour > perHour); begins || storm {
		u.until = now.Add(quietFor)
		return true, begins
	}
	return false, false
}

// calm reports whether a server is not in quarantine, and puts it there when one
// change too many has come. The quarantine counts also when its record fails.
func (d *Desk) calm(ctx context.Context, server string, changed bool, now time.Time) (bool, error) {
	storm, begins := d.pins.stir(server, changed, now)
	if !begins {
		return !storm, nil
	}
	d.log.Warn("a server changes its tools too fast and is in quarantine", "server", server)
	open, err := d.inForce.shut(ctx) // those inside were judged before it
	if err != nil {
		return false, err
	}
	defer open()
	return false, d.store.Append(ctx, ledger.Event{
		Kind: ledger.DefinitionChanged, Subject: server, Actor: system(),
		Data: []ledger.Field{ledger.String(ledger.FieldCause, "too many definitions changed at once; none is passed on until they rest")},
	})
}

// next is the pin after another definition was offered, or the same one again.
func (p Pin) next(def call.Hash, raw []byte, calm bool, now time.Time) Pin {
	if p.Accepted && p.Definition == def {
		return p
	}
	next := p
	next.Definition, next.Raw, next.Accepted, next.behind = def, raw, false, false
	next.Changed = p.changes(def, now)
	if p.Accepted {
		next.Was, next.Before = p.Definition, p.Raw
	}
	if next.Was == def && p.returns(def, calm, now) {
		next.Accepted, next.Was, next.Before = true, call.Hash{}, nil
	}
	return next
}

// changes are the times at which the tool changed within the last hour, when def
// is offered now.
func (p Pin) changes(def call.Hash, now time.Time) (times []time.Time) {
	for _, t := range p.Changed {
		if now.Sub(t) < flapWithin {
			times = append(times, t)
		}
	}
	if p.Definition != def {
		times = append(times, now)
	}
	return times[max(0, len(times)-flaps-1):]
}

// returns reports whether a held tool that is offered as it was accepted is as it
// was: not in a storm, and not one that goes back and forth.
func (p Pin) returns(def call.Hash, calm bool, now time.Time) bool {
	return calm && !p.Accepted && p.Was == def && len(p.changes(def, now)) <= flaps
}

// records reports whether what is offered now goes to the store.
func (p Pin) records(def call.Hash, calm bool, now time.Time) bool {
	return calm && (p.Accepted || p.returns(def, calm, now) || p.Definition != def && now.Sub(p.Recorded) >= recordEvery)
}

// held reports whether the tool of a request is held although its definition is
// the one that was asked for.
func (d *Desk) held(r *approval.Request) bool {
	pin, ok := d.pins.get(r.Call.Server(), r.Call.Tool())
	return ok && !pin.Accepted && pin.Definition == r.Definition
}
