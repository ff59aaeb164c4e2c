package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/store"
)

// Create stores a new request with its events and charges.
func (s *Store) Create(ctx context.Context, r *approval.Request, es []ledger.Event, charges ...store.Charge) error {
	r, es = store.Copy(r), store.Events(es)
	if err := store.Admissible(r); err != nil {
		return err
	}
	if len(es) == 0 {
		return fmt.Errorf("%w: request %s without an event", store.ErrForm, r.ID)
	}
	form := store.Form(r)
	return s.w.do(ctx, func(b *batch) error {
		now := s.clock.Now()
		lines, err := b.entries(es, now)
		if err != nil {
			return err
		}
		n, err := b.insert(r, form)
		if isConstraint(err) {
			return b.whyNot(r, err)
		}
		if err != nil {
			return err
		}
		b.keep(kept{n, r, sizeOf(form)})
		b.count(nil, r)
		seq := b.edge.Size()
		b.record(lines)
		return b.charge(charges, seq, now)
	})
}

func (b *batch) insert(r *approval.Request, f store.Stored) (n int64, err error) {
	n = b.w.rows + 1
	err = b.exec(`INSERT INTO requests (n, id, code, agent, key, session, workspace, server, tool, tier, call_tag, state,
			asked_at, expires_at, ended_at, due_at, form, call, salt, result, result_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		n, string(r.ID), r.Code, r.From.ID, r.Key, r.From.Session, r.From.Workspace, r.Call.Server(), r.Call.Tool(),
		int64(r.Verdict.Tier), tag(r.Call.Hash()), string(r.State), store.Nanos(r.AskedAt), store.Nanos(r.ExpiresAt),
		optional(r.EndedAt), optional(store.DueAt(r)), f.Form, small(f.Call), f.Salt, small(f.Result), resultAt(r))
	if err != nil {
		return 0, err
	}
	b.w.rows = n // a row number that a given up transaction used is not used again
	return n, errors.Join(b.payload(2*n, f.Call), b.payload(2*n+1, f.Result))
}

// payload keeps apart what is too large for its row.
func (b *batch) payload(p int64, data []byte) error {
	if len(data) <= inline {
		return nil
	}
	return b.must(`INSERT INTO payloads (p, data) VALUES (?, ?) ON CONFLICT DO UPDATE SET data = excluded.data`, p, data)
}

// whyNot finds which rule of the schema a new request broke.
func (b *batch) whyNot(r *approval.Request, cause error) error {
	for _, rule := range []struct {
		query string
		args  []any
		err   error
	}{
		{`SELECT 1 FROM requests WHERE id = ?`, []any{string(r.ID)}, fmt.Errorf("request %s %w", r.ID, store.ErrExists)},
		{
			`SELECT 1 FROM requests WHERE agent = ? AND key = ? AND key <> ''`,
			[]any{r.From.ID, r.Key},
			fmt.Errorf("a request of %s with this key %w", r.From.ID, store.ErrExists),
		},
		{
			`SELECT 1 FROM requests WHERE code = ? AND code <> '' AND state IN ('pending', 'approved')`,
			[]any{r.Code},
			fmt.Errorf("%w: %s: an open request with it %w", store.ErrCode, r.Code, store.ErrExists),
		},
	} {
		found, err := b.w.conn.exists(rule.query, rule.args...)
		if err != nil {
			return fatal(err)
		}
		if found {
			return rule.err
		}
	}
	return fmt.Errorf("%w: %w", store.ErrForm, cause)
}

// Change runs move on the current request and stores what it made of it.
func (s *Store) Change(ctx context.Context, id approval.ID, move store.Move, charges ...store.Charge) (*approval.Request, error) {
	var out *approval.Request
	err := s.w.do(ctx, func(b *batch) error {
		out = nil
		was, err := b.load(id)
		if err != nil {
			return err
		}
		now := s.clock.Now()
		is := store.Copy(was.r)
		e, err := move(is, now)
		if err != nil {
			return err
		}
		if e.IsZero() {
			out = store.Copy(was.r)
			return nil
		}
		out = is // the caller's own, also when its move kept it
		is = store.Copy(is)
		if err := errors.Join(store.SameRequest(was.r, is), store.Admissible(is)); err != nil {
			return err
		}
		lines, err := b.entries([]ledger.Event{e}, now)
		if err != nil {
			return err
		}
		k, err := b.update(was, is)
		if isConstraint(err) {
			return fmt.Errorf("%w: %w", store.ErrForm, err)
		}
		if err != nil {
			return err
		}
		b.keep(k)
		b.count(was.r, is)
		seq := b.edge.Size()
		b.record(lines)
		return b.charge(charges, seq, now)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// update writes what a move changed. A call and a result that stayed as they were
// are not written again.
func (b *batch) update(was kept, r *approval.Request) (kept, error) {
	f := store.Form(r)
	set := `UPDATE requests SET state = ?, tier = ?, expires_at = ?, ended_at = ?, due_at = ?, form = ?, result_at = ?`
	args := append(make([]any, 0, 13), string(r.State), int64(r.Verdict.Tier), store.Nanos(r.ExpiresAt),
		optional(r.EndedAt), optional(store.DueAt(r)), f.Form, resultAt(r))
	result := !bytes.Equal(r.Execution.Result, was.r.Execution.Result)
	if result {
		set, args = set+`, result = ?`, append(args, small(f.Result))
	}
	amended := r.Call != was.r.Call || !bytes.Equal(r.Salt, was.r.Salt)
	if amended {
		set += `, server = ?, tool = ?, call_tag = ?, call = ?, salt = ?`
		args = append(args, r.Call.Server(), r.Call.Tool(), tag(r.Call.Hash()), small(f.Call), f.Salt)
	}
	if err := b.exec(set+` WHERE n = ?`, append(args, was.n)...); err != nil {
		return kept{}, err
	}
	if result {
		if err := b.replace(2*was.n+1, was.r.Execution.Result, f.Result); err != nil {
			return kept{}, err
		}
	}
	if amended {
		if err := b.replace(2*was.n, was.r.Call.Canonical(), f.Call); err != nil {
			return kept{}, err
		}
	}
	return kept{was.n, r, sizeOf(f)}, nil
}

// replace keeps another payload apart, or none any more.
func (b *batch) replace(p int64, was, is []byte) error {
	if len(was) > inline && len(is) <= inline {
		return b.must(`DELETE FROM payloads WHERE p = ?`, p)
	}
	return b.payload(p, is)
}

// EraseResults drops the payload of results that ended before t; hashes stay.
func (s *Store) EraseResults(ctx context.Context, before time.Time) (int, error) {
	total := 0
	for {
		var n int
		err := s.w.do(ctx, func(b *batch) (err error) {
			n, err = b.eraseResults(before)
			return err
		})
		total += n
		if err != nil || n < eraseAtOnce {
			return total, err
		}
	}
}

// eraseAtOnce bounds one transaction of erasing, so that others get their turn.
const eraseAtOnce = 100

func (b *batch) eraseResults(before time.Time) (int, error) {
	n := 0
	for ; n < eraseAtOnce; n++ { // the index tells the oldest each time
		var row [2]any
		err := b.w.conn.row(row[:], `SELECT n, id FROM requests WHERE result_at < ? LIMIT 1`, store.Nanos(before))
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return n, fatal(err)
		}
		at, _ := row[0].(int64)
		id, _ := row[1].(string)
		if err := errors.Join(
			b.must(`UPDATE requests SET result = NULL, result_at = NULL WHERE n = ?`, at),
			b.must(`DELETE FROM payloads WHERE p = ?`, 2*at+1),
		); err != nil {
			return n, err
		}
		b.forgetful(approval.ID(id))
	}
	return n, nil
}

// Forget folds the charges older than t of each key into one.
func (s *Store) Forget(ctx context.Context, before time.Time) error {
	return s.w.do(ctx, func(b *batch) error { return b.forget(store.Nanos(before)) })
}

// Update edits one record and takes the charges.
func (s *Store) Update(ctx context.Context, kind, id string, edit store.Edit, charges ...store.Charge) error {
	return s.w.do(ctx, func(b *batch) error {
		var row [1]any
		var old []byte
		switch err := b.w.conn.row(row[:], `SELECT value FROM records WHERE kind = ? AND id = ?`, kind, id); {
		case err == nil:
			old = append([]byte{}, blob(row[0])...) // an empty value is not an absent one
		case !errors.Is(err, io.EOF):
			return fatal(err)
		}
		now := s.clock.Now()
		value, e, err := edit(old, now)
		if err != nil || e.IsZero() {
			return err
		}
		lines, err := b.entries([]ledger.Event{e}, now)
		if err != nil {
			return err
		}
		b.records = append(b.records, recordName{kind, id})
		if value == nil {
			err = b.must(`DELETE FROM records WHERE kind = ? AND id = ?`, kind, id)
		} else {
			err = b.must(`INSERT INTO records (kind, id, value, changed) VALUES (?, ?, coalesce(?, x''), ?)
				ON CONFLICT DO UPDATE SET value = excluded.value, changed = excluded.changed`, kind, id, value, store.Nanos(now))
		}
		if err != nil {
			return err
		}
		seq := b.edge.Size()
		b.record(lines)
		return b.charge(charges, seq, now)
	})
}

// Append records events that change nothing else.
func (s *Store) Append(ctx context.Context, es ...ledger.Event) error {
	es = store.Events(es)
	return s.w.do(ctx, func(b *batch) error {
		lines, err := b.entries(es, s.clock.Now())
		if err != nil {
			return err
		}
		b.record(lines)
		return nil
	})
}
