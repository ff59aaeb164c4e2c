package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/identity"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/policy"
	"github.com/ayegate/ayegate/internal/store"
)

// batch is one transaction and what will be true in memory when it is committed.
type batch struct {
	w       *writer
	edge    ledger.Frontier
	touched map[approval.ID]kept
	erased  map[approval.ID]bool // the cache is wrong about them
	delta   map[countKey]int     // what is to be added to the counts
	records []recordName         // that change
	lines   [][]byte             // entries of the ledger
	rows    []any                // of theirs, to be written: number, line, hashes
	hashes  []ledger.Hash        // reused
	dirty   bool                 // something was written
	writing bool                 // the change that runs has begun to write
}

type countKey struct {
	state approval.State
	agent string
	tier  int64
}

func newBatch(w *writer) *batch { return &batch{w: w, edge: w.edge} }

// exec writes. A refusal by a constraint is about this change alone.
func (b *batch) exec(query string, args ...any) error {
	b.dirty, b.writing = true, true
	err := b.w.conn.exec(query, args...)
	if err == nil || isConstraint(err) {
		return err
	}
	return fatal(err)
}

// must is for statements that no change can be refused at.
func (b *batch) must(query string, args ...any) error { return fatal(b.exec(query, args...)) }

// entries makes the entries of a change, before anything of it is written.
func (b *batch) entries(es []ledger.Event, now time.Time) ([][]byte, error) {
	lines := make([][]byte, len(es))
	for i, e := range es {
		line, err := e.Entry(b.edge.Size()+int64(i), now)
		if err != nil {
			return nil, err
		}
		lines[i] = line
	}
	return lines, nil
}

// record appends entries to the ledger. They are written when the batch is sealed.
func (b *batch) record(lines [][]byte) {
	for _, line := range lines {
		seq := b.edge.Size()
		b.hashes = b.edge.AppendTo(b.hashes[:0], line)
		b.rows = append(b.rows, seq, line, flat(make([]byte, 0, len(b.hashes)*len(ledger.Hash{})), b.hashes))
	}
	b.lines = append(b.lines, lines...)
	if len(lines) > 0 {
		b.dirty, b.writing = true, true
	}
}

// atOnce is how many entries one statement writes where there are as many.
const atOnce = 16

var (
	insertEntry   = `INSERT INTO entries (seq, line, hashes) VALUES (?, ?, ?)`
	insertEntries = insertEntry + strings.Repeat(`, (?, ?, ?)`, atOnce-1)
)

// writeEntries writes what was recorded, in few statements.
func (b *batch) writeEntries() error {
	rows := b.rows
	for ; len(rows) >= 3*atOnce; rows = rows[3*atOnce:] {
		if err := b.must(insertEntries, rows[:3*atOnce]...); err != nil {
			return err
		}
	}
	for ; len(rows) > 0; rows = rows[3:] {
		if err := b.must(insertEntry, rows[:3]...); err != nil {
			return err
		}
	}
	return nil
}

func (b *batch) charge(charges []store.Charge, seq int64, now time.Time) error {
	at := store.Nanos(now)
	for _, c := range charges {
		var err error
		if c.Reset {
			err = b.must(`DELETE FROM charges WHERE key = ?`, c.Key)
		} else {
			err = b.must(`INSERT INTO charges (key, at, seq, amount) VALUES (?, ?, ?, ?)
				ON CONFLICT DO UPDATE SET amount = amount + excluded.amount`, c.Key, at, seq, c.Amount)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// load finds a request as the batch sees it.
func (b *batch) load(id approval.ID) (kept, error) {
	if k, ok := b.touched[id]; ok {
		return k, nil
	}
	if k, ok := b.w.cache.get(id); ok && !b.erased[id] {
		return k, nil
	}
	var row [rowWidth]any
	err := b.w.conn.row(row[:], `SELECT `+rowColumns+` FROM requests WHERE id = ?`, string(id))
	if errors.Is(err, io.EOF) {
		return kept{}, missing(id)
	}
	if err != nil {
		return kept{}, fatal(err)
	}
	return readRow(row, func(p int64) ([]byte, error) {
		var data [1]any
		err := b.w.conn.row(data[:], payloadQuery, p)
		blob, _ := data[0].([]byte)
		return blob, err
	})
}

func missing(id approval.ID) error { return fmt.Errorf("request %s: %w", id, store.ErrNotFound) }

// count moves a request from one count to another; was is nil for a new one.
func (b *batch) count(was, is *approval.Request) {
	if b.delta == nil {
		b.delta = make(map[countKey]int)
	}
	if was != nil && !was.State.Final() {
		b.delta[keyOf(was)]--
	}
	if !is.State.Final() {
		b.delta[keyOf(is)]++
	}
}

func (k countKey) addTo(c *store.Counts, n int) {
	c.Add(&approval.Request{
		State: k.state, From: identity.Agent{ID: k.agent}, Verdict: policy.Verdict{Tier: policy.RiskTier(k.tier)},
	}, n)
}

func keyOf(r *approval.Request) countKey {
	return countKey{r.State, r.From.ID, int64(r.Verdict.Tier)}
}

// forgetful marks a request whose row was changed behind the cache.
func (b *batch) forgetful(id approval.ID) {
	if b.erased == nil {
		b.erased = make(map[approval.ID]bool)
	}
	b.erased[id] = true
	delete(b.touched, id)
}

// keep remembers what a request will be.
func (b *batch) keep(k kept) {
	if b.touched == nil {
		b.touched = make(map[approval.ID]kept)
	}
	b.touched[k.r.ID] = k
}

// seal writes what is written once per transaction.
func (b *batch) seal() error {
	if err := b.writeEntries(); err != nil {
		return err
	}
	for k, n := range b.delta {
		var err error
		if n > 0 {
			err = b.must(`INSERT INTO counts (state, agent, tier, n) VALUES (?, ?, ?, ?)
				ON CONFLICT DO UPDATE SET n = n + excluded.n`, string(k.state), k.agent, k.tier, int64(n))
		} else if n < 0 {
			err = b.must(`UPDATE counts SET n = n + ? WHERE state = ? AND agent = ? AND tier = ?`, int64(n), string(k.state), k.agent, k.tier)
		}
		if err != nil {
			return err
		}
	}
	head := b.edge.Head()
	return b.must(`UPDATE head SET size = ?, root = ?, at = ?`, head.Size, head.Root[:], store.Nanos(b.w.clock.Now()))
}

// publish makes known what was committed, before anybody is told.
func (b *batch) publish() {
	w, p := b.w, &b.w.public
	grown := b.edge.Size() > w.edge.Size()
	w.edge = b.edge
	w.cache.change(b.touched, b.erased)
	p.mu.Lock()
	defer p.mu.Unlock()
	for k, n := range b.delta {
		k.addTo(&p.counts, n)
	}
	p.head = b.edge.Head()
	p.tail.add(b.lines)
	if grown {
		close(p.grown)
		p.grown = make(chan struct{})
	}
}

// tag is what a call hash is found by.
func tag(h call.Hash) int64 { return int64(binary.BigEndian.Uint64(h[:8])) }
