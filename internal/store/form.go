package store

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/identity"
	"github.com/ayegate/ayegate/internal/policy"
	"github.com/ayegate/ayegate/internal/strictjson"
)

// Stored is a request in the form that backends keep. The parts that came from
// outside are kept as they came, byte for byte, and can be erased one by one.
//
// The form is a version, then the fields of a request in a fixed order: strings
// and lists with their lengths, numbers as varints, times as [Nanos], hashes only
// where there is one. A version that this program does not know, a byte too many
// or a value that is in no list is refused with [ErrForm]: a newer program may
// have meant a restriction by it.
type Stored struct {
	Form   []byte // everything else
	Call   []byte // canonical bytes
	Salt   []byte // nil: none
	Result []byte // nil: none, erased or not kept
}

// formVersion is the one that is written; every version there was is read.
//
//	1  the first
//	2  ends with what is sent beside the call; a request of version 1 has nothing
const formVersion = 2

// Form makes the stored form. The request must be [Admissible].
func Form(r *approval.Request) Stored {
	w := writer(make([]byte, 0, 640))
	w = append(w, formVersion)
	w.request(r)
	return Stored{Form: w, Call: r.Call.Canonical(), Salt: r.Salt, Result: r.Execution.Result}
}

// Request reads the stored form back. The call is parsed and hashed again; one
// that is not what was stored is refused.
func (s Stored) Request() (*approval.Request, error) {
	if len(s.Form) == 0 || s.Form[0] < 1 || s.Form[0] > formVersion {
		return nil, fmt.Errorf("%w: stored by another version of ayegate", ErrForm)
	}
	r := &approval.Request{Salt: slices.Clone(s.Salt)}
	p := parser{rest: string(s.Form[1:])}
	want := p.request(r)
	if s.Form[0] >= 2 {
		p.extra(r)
	}
	r.Execution.Result = slices.Clone(s.Result)
	if p.bad || p.rest != "" {
		return nil, fmt.Errorf("%w: request %s is damaged", ErrForm, r.ID)
	}
	if err := Admissible(r); err != nil {
		return nil, err
	}
	if len(s.Call) > 0 {
		c, err := call.Parse(s.Call)
		if err != nil {
			return nil, fmt.Errorf("%w: request %s: %w", ErrForm, r.ID, err)
		}
		r.Call = c
	}
	if r.Call.Hash() != want {
		return nil, fmt.Errorf("%w: request %s holds another call than the one it was made for", ErrForm, r.ID)
	}
	return r, nil
}

type writer []byte

func (w *writer) text(ss ...string) {
	for _, s := range ss {
		*w = append(binary.AppendUvarint(*w, uint64(len(s))), s...)
	}
}

func (w *writer) texts(s []string) {
	w.number(int64(len(s)))
	w.text(s...)
}

func (w *writer) number(ns ...int64) {
	for _, n := range ns {
		*w = binary.AppendVarint(*w, n)
	}
}

func (w *writer) time(ts ...time.Time) {
	for _, t := range ts {
		*w = binary.BigEndian.AppendUint64(*w, uint64(Nanos(t)))
	}
}

func (w *writer) hash(hs ...call.Hash) {
	for _, h := range hs {
		w.flag(h != call.Hash{})
		if h != (call.Hash{}) {
			*w = append(*w, h[:]...)
		}
	}
}

func (w *writer) flag(b bool) {
	if b {
		*w = append(*w, 1)
	} else {
		*w = append(*w, 0)
	}
}

func (w *writer) request(r *approval.Request) {
	w.text(string(r.ID), r.Code, r.From.ID, r.From.Owner, r.From.Session, r.From.Workspace, r.From.Device,
		r.Run, r.Reason, r.Key, r.Distinct, r.Plan, string(r.Executor), string(r.State), string(r.Cause))
	w.hash(r.Call.Hash(), r.Definition, r.Digest)
	w.time(r.AskedAt, r.ExpiresAt, r.EndedAt)
	w.number(int64(r.Extended), int64(r.Asks))
	w.verdict(&r.Verdict)
	w.number(int64(len(r.Decisions)))
	for i := range r.Decisions {
		w.decision(&r.Decisions[i])
	}
	c, e := &r.Claimed, &r.Execution
	w.text(c.ID, c.Holder, c.TokenID, c.Device)
	w.hash(c.Secret)
	w.time(c.At, c.Until, c.Redeemed)
	w.text(string(e.Outcome), e.Error, e.By)
	w.hash(e.Hash)
	w.number(int64(e.Size))
	w.time(e.At, e.PickedUp)
	w.text(string(r.Extra))
}

func (w *writer) verdict(v *policy.Verdict) {
	w.number(int64(v.Effect), int64(v.Tier), int64(v.Quorum), int64(v.TTL), v.Output.Bytes)
	w.text(v.Rule, v.Why, v.Undo, v.Salient, v.Revision, v.Of.Name, v.Output.Limit)
	w.texts(v.Effects)
	w.texts(v.Of.AnyOf)
	w.texts(v.Of.Not)
	w.number(int64(len(v.Confirm)))
	for _, c := range v.Confirm {
		w.text(string(c))
	}
	w.texts(v.Scopes)
	w.flag(v.Pause)
	w.number(int64(len(v.Trace)))
	for _, s := range v.Trace {
		w.text(s.Phase, s.ID, s.Through, s.Note)
		w.flag(s.Hit)
	}
}

func (w *writer) decision(d *approval.Decision) {
	w.text(d.By.ID, d.By.Name, d.Reason, d.Typed)
	w.texts(d.By.Groups)
	w.number(int64(d.By.Strength))
	w.hash(d.Digest)
	w.time(d.At)
	w.flag(d.Approve)
	w.flag(d.Void)
}

// parser reads what writer wrote. After the first fault everything reads as zero
// and bad is set. Strings share the memory of the one they are cut from.
type parser struct {
	rest string
	bad  bool
}

func (p *parser) take(n int) string {
	if n < 0 || n > len(p.rest) {
		p.bad, p.rest, n = true, "", 0
	}
	s := p.rest[:n]
	p.rest = p.rest[n:]
	return s
}

func (p *parser) number() int64 {
	var raw uint64
	for shift := 0; shift < 64; shift += 7 {
		b := p.take(1)
		if p.bad {
			return 0
		}
		raw |= uint64(b[0]&0x7f) << shift
		if b[0] < 0x80 {
			return int64(raw>>1) ^ -int64(raw&1)
		}
	}
	p.bad = true
	return 0
}

// list reads how many elements follow, none of them shorter than one byte.
func (p *parser) list() int {
	n := p.number()
	if n < 0 || n > int64(len(p.rest)) {
		p.bad = true
		return 0
	}
	return int(n)
}

func (p *parser) size() int {
	n := 0
	for shift := 0; shift < 35; shift += 7 {
		b := p.take(1)
		if p.bad {
			return 0
		}
		n |= int(b[0]&0x7f) << shift
		if b[0] < 0x80 {
			return n
		}
	}
	p.bad = true
	return 0
}

func (p *parser) text(ss ...*string) {
	for _, s := range ss {
		*s = p.take(p.size())
	}
}

func (p *parser) texts() []string {
	n := p.list()
	if n == 0 {
		return nil
	}
	out := make([]string, n)
	for i := range out {
		p.text(&out[i])
	}
	return out
}

func (p *parser) time(ts ...*time.Time) {
	for _, t := range ts {
		var n uint64
		for _, b := range []byte(p.take(8)) {
			n = n<<8 | uint64(b)
		}
		*t = FromNanos(int64(n))
	}
}

func (p *parser) hash(hs ...*call.Hash) {
	for _, h := range hs {
		if p.flag() {
			copy(h[:], p.take(len(h)))
		}
	}
}

func (p *parser) flag() bool {
	switch p.take(1) {
	case "\x00":
		return false
	case "\x01":
		return true
	}
	p.bad = true
	return false
}

// small reads a number of one byte.
func (p *parser) small() uint8 {
	n := p.number()
	if n < 0 || n > math.MaxUint8 {
		p.bad = true
	}
	return uint8(n)
}

func (p *parser) request(r *approval.Request) (hash call.Hash) {
	p.text((*string)(&r.ID), &r.Code, &r.From.ID, &r.From.Owner, &r.From.Session, &r.From.Workspace, &r.From.Device,
		&r.Run, &r.Reason, &r.Key, &r.Distinct, &r.Plan, (*string)(&r.Executor), (*string)(&r.State), (*string)(&r.Cause))
	p.hash(&hash, &r.Definition, &r.Digest)
	p.time(&r.AskedAt, &r.ExpiresAt, &r.EndedAt)
	r.Extended, r.Asks = int(p.number()), int(p.number())
	p.verdict(&r.Verdict)
	if n := p.list(); n > 0 {
		r.Decisions = make([]approval.Decision, n)
		for i := range r.Decisions {
			p.decision(&r.Decisions[i])
		}
	}
	c, e := &r.Claimed, &r.Execution
	p.text(&c.ID, &c.Holder, &c.TokenID, &c.Device)
	p.hash(&c.Secret)
	p.time(&c.At, &c.Until, &c.Redeemed)
	p.text((*string)(&e.Outcome), &e.Error, &e.By)
	p.hash(&e.Hash)
	e.Size = int(p.number())
	p.time(&e.At, &e.PickedUp)
	return hash
}

// extra reads what is sent beside the call. It is a canonical object, like the call.
func (p *parser) extra(r *approval.Request) {
	s := p.take(p.size())
	if s == "" {
		return
	}
	r.Extra = []byte(s)
	if ok, err := strictjson.IsCanonical(r.Extra, strictjson.Limits{Bytes: len(s)}); err != nil || !ok || s[0] != '{' {
		p.bad = true
	}
}

func (p *parser) verdict(v *policy.Verdict) {
	v.Effect, v.Tier = policy.Effect(p.small()), policy.RiskTier(p.small())
	v.Quorum, v.TTL, v.Output.Bytes = int(p.number()), time.Duration(p.number()), p.number()
	p.text(&v.Rule, &v.Why, &v.Undo, &v.Salient, &v.Revision, &v.Of.Name, &v.Output.Limit)
	v.Effects, v.Of.AnyOf, v.Of.Not = p.texts(), p.texts(), p.texts()
	for _, c := range p.texts() {
		v.Confirm = append(v.Confirm, policy.Confirm(c))
	}
	v.Scopes, v.Pause = p.texts(), p.flag()
	if n := p.list(); n > 0 {
		v.Trace = make([]policy.Step, n)
		for i := range v.Trace {
			s := &v.Trace[i]
			p.text(&s.Phase, &s.ID, &s.Through, &s.Note)
			s.Hit = p.flag()
		}
	}
}

func (p *parser) decision(d *approval.Decision) {
	p.text(&d.By.ID, &d.By.Name, &d.Reason, &d.Typed)
	d.By.Groups = p.texts()
	d.By.Strength = identity.Strength(p.small())
	p.hash(&d.Digest)
	p.time(&d.At)
	d.Approve, d.Void = p.flag(), p.flag()
}
