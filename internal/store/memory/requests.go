package memory

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
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
	return s.write(ctx, func(now time.Time) error {
		if err := s.free(r); err != nil {
			return err
		}
		if err := s.record(es, now); err != nil {
			return err
		}
		s.requests[r.ID] = r
		if r.Key != "" {
			s.keys[[2]string{r.From.ID, r.Key}] = r.ID
		}
		if r.Code != "" {
			s.codes[r.Code] = append(s.codes[r.Code], r.ID)
		}
		s.counts.Add(r, 1)
		s.charge(charges, now)
		return nil
	})
}

// free reports what of a new request is taken.
func (s *Store) free(r *approval.Request) error {
	if s.requests[r.ID] != nil {
		return fmt.Errorf("request %s %w", r.ID, store.ErrExists)
	}
	if _, taken := s.keys[[2]string{r.From.ID, r.Key}]; taken {
		return fmt.Errorf("a request of %s with this key %w", r.From.ID, store.ErrExists)
	}
	if r.State.Open() && slices.ContainsFunc(s.codes[r.Code], func(id approval.ID) bool { return s.requests[id].State.Open() }) {
		return fmt.Errorf("%w: %s: an open request with it %w", store.ErrCode, r.Code, store.ErrExists)
	}
	return nil
}

// Change runs move on the current request and stores what it made of it.
func (s *Store) Change(ctx context.Context, id approval.ID, move store.Move, charges ...store.Charge) (*approval.Request, error) {
	var out *approval.Request
	err := s.write(ctx, func(now time.Time) error {
		was := s.requests[id]
		if was == nil {
			return missing(id)
		}
		is := store.Copy(was)
		e, err := move(is, now)
		if err != nil {
			return err
		}
		if e.IsZero() {
			out = store.Copy(was)
			return nil
		}
		if err := errors.Join(store.SameRequest(was, is), store.Admissible(is)); err != nil {
			return err
		}
		if err := s.record([]ledger.Event{e}, now); err != nil {
			return err
		}
		out = is // the caller's own, also when its move kept it
		is = store.Copy(is)
		s.requests[id] = is
		s.counts.Add(was, -1)
		s.counts.Add(is, 1)
		s.charge(charges, now)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func missing(id approval.ID) error { return fmt.Errorf("request %s: %w", id, store.ErrNotFound) }

// Get returns a request.
func (s *Store) Get(ctx context.Context, id approval.ID) (*approval.Request, error) {
	return s.find(ctx, func() *approval.Request { return s.requests[id] }, func() error { return missing(id) })
}

// ByKey finds the request an agent made under its idempotency key.
func (s *Store) ByKey(ctx context.Context, agent, key string) (*approval.Request, error) {
	return s.find(ctx, func() *approval.Request { return s.requests[s.keys[[2]string{agent, key}]] }, func() error {
		return fmt.Errorf("a request of %s with this key: %w", agent, store.ErrNotFound)
	})
}

// ByCode finds the open request of a short code, else the latest other one.
func (s *Store) ByCode(ctx context.Context, code string) (*approval.Request, error) {
	return s.find(ctx, func() *approval.Request {
		var best *approval.Request
		for _, id := range s.codes[code] {
			r := s.requests[id]
			if best == nil || r.State.Open() || !best.State.Open() && store.NewestFirst.Compare(store.NewestFirst.Place(r), store.NewestFirst.Place(best)) < 0 {
				best = r
			}
		}
		return best
	}, func() error { return fmt.Errorf("short code %s: %w", code, store.ErrNotFound) })
}

func (s *Store) find(ctx context.Context, look func() *approval.Request, none func() error) (*approval.Request, error) {
	var found *approval.Request
	if err := s.read(ctx, func() error { found = look(); return nil }); err != nil {
		return nil, err
	}
	if found == nil {
		return nil, none()
	}
	return store.Copy(found), nil
}

// List yields the requests a filter selects, as they were when it began.
func (s *Store) List(ctx context.Context, f store.Filter) iter.Seq2[*approval.Request, error] {
	return func(yield func(*approval.Request, error) bool) {
		var found []*approval.Request
		err := s.read(ctx, func() error {
			for _, r := range s.requests {
				if f.Match(r) && (f.After.IsZero() || f.Order.Compare(f.After, f.Order.Place(r)) < 0) {
					found = append(found, r)
				}
			}
			return nil
		})
		if err != nil {
			yield(nil, err)
			return
		}
		slices.SortFunc(found, func(a, b *approval.Request) int { return f.Order.Compare(f.Order.Place(a), f.Order.Place(b)) })
		if f.Limit > 0 && len(found) > f.Limit {
			found = found[:f.Limit]
		}
		for _, r := range found {
			if err := ctx.Err(); err != nil {
				yield(nil, err)
				return
			}
			if !yield(store.Copy(r), nil) {
				return
			}
		}
	}
}

// Counts tells what is open.
func (s *Store) Counts(ctx context.Context) (store.Counts, error) {
	var c store.Counts
	err := s.read(ctx, func() error { c = s.counts.Clone(); return nil })
	return c, err
}

// Due lists what time acts on at or before now, soonest first.
func (s *Store) Due(ctx context.Context, now time.Time, limit int) ([]approval.ID, error) {
	var due []store.Cursor
	err := s.read(ctx, func() error {
		for id, r := range s.requests {
			if at := store.DueAt(r); !at.IsZero() && !at.After(now) {
				due = append(due, store.Cursor{At: at, ID: id})
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(due, store.DeadlineFirst.Compare)
	var ids []approval.ID
	for _, c := range due {
		if limit > 0 && len(ids) == limit {
			break
		}
		ids = append(ids, c.ID)
	}
	return ids, nil
}

// EraseResults drops the payload of results that ended before t; hashes stay.
func (s *Store) EraseResults(ctx context.Context, before time.Time) (int, error) {
	n := 0
	err := s.write(ctx, func(time.Time) error {
		for id, r := range s.requests {
			if !r.State.Final() || !r.EndedAt.Before(before) || r.Execution.Result == nil {
				continue
			}
			r = store.Copy(r)
			r.Execution.Result = nil
			s.requests[id] = r
			n++
		}
		return nil
	})
	return n, err
}
