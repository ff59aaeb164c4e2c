package sqlite

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/store"
)

// page is how many requests one query of a list reads.
const page = 64

// List yields the requests a filter selects, page by page: requests that come,
// go or change meanwhile may or may not be in it, and none that stays is missed
// or told twice. (A deadline that is moved, in the order of deadlines, may be.)
func (r *Reader) List(ctx context.Context, f store.Filter) iter.Seq2[*approval.Request, error] {
	return func(yield func(*approval.Request, error) bool) {
		for left := f.Limit; f.Limit == 0 || left > 0; {
			size := page
			if f.Limit > 0 {
				size = min(page, left)
			}
			query, args := listQuery(f, size)
			found, err := r.rows(ctx, query, args...)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, k := range found {
				f.After = f.Order.Place(k.r)
				if !yield(k.r, nil) {
					return
				}
			}
			if len(found) < size {
				return
			}
			left -= size
		}
	}
}

// listQuery writes the query of one page. It names the index itself: the right
// one is known here, and a wrong guess of the planner would read everything.
func listQuery(f store.Filter, size int) (string, []any) {
	w := where(f)
	order := ` ORDER BY asked_at DESC, id DESC`
	if f.Order == store.DeadlineFirst {
		order = ` ORDER BY expires_at, id`
	}
	source := ``
	switch {
	case f.CallHash != call.Hash{}:
		source = ` INDEXED BY requests_call`
	case f.Order == store.NewestFirst && liveOnly(f.States):
		return w.perState(f.States, ` INDEXED BY requests_live`, order, size)
	case f.Order == store.NewestFirst:
		source = ` INDEXED BY requests_asked`
	case openOnly(f.States):
		source, order = ` INDEXED BY requests_due`, ` ORDER BY due_at, id`
		w.add(`due_at IS NOT NULL`)
	}
	w.in(`+state`, f.States)
	return `SELECT ` + rowColumns + ` FROM requests` + source + w.text() + order + ` LIMIT ?`, append(w.args, size)
}

func liveOnly(states []approval.State) bool {
	return len(states) > 0 && !slices.ContainsFunc(states, approval.State.Final)
}

// openOnly holds for states in which what is due is the deadline.
func openOnly(states []approval.State) bool {
	return len(states) > 0 && !slices.ContainsFunc(states, func(s approval.State) bool { return !s.Open() })
}

type conditions struct {
	terms []string
	args  []any
}

func (w *conditions) add(term string, args ...any) {
	w.terms, w.args = append(w.terms, term), append(w.args, args...)
}

func (w *conditions) text() string {
	if len(w.terms) == 0 {
		return ``
	}
	return ` WHERE ` + strings.Join(w.terms, ` AND `)
}

func (w *conditions) in(column string, states []approval.State) {
	if len(states) == 0 {
		return
	}
	args := make([]any, len(states))
	for i, s := range states {
		args[i] = string(s)
	}
	w.add(column+` IN (?`+strings.Repeat(`, ?`, len(args)-1)+`)`, args...)
}

// perState reads each state in order from its part of an index and merges: an IN
// would have SQLite sort all rows of all states.
func (w *conditions) perState(states []approval.State, source, order string, size int) (string, []any) {
	var parts []string
	var args []any
	for _, s := range slices.Compact(slices.Sorted(slices.Values(states))) {
		one := conditions{slices.Clone(w.terms), slices.Clone(w.args)}
		one.add(`state = ?`, string(s))
		one.add(`ended_at IS NULL`) // what the index is for
		parts = append(parts, `SELECT * FROM (SELECT `+rowColumns+`, asked_at, id FROM requests`+source+one.text()+order+` LIMIT ?)`)
		args = append(append(args, one.args...), size)
	}
	return `SELECT ` + rowColumns + ` FROM (` + strings.Join(parts, ` UNION ALL `) + `)` + order + ` LIMIT ?`, append(args, size)
}

// where holds all conditions but the states. A plus keeps a column from being
// looked up in an index.
func where(f store.Filter) *conditions {
	w := &conditions{}
	for _, c := range []struct{ column, value string }{
		{`+agent`, f.Agent}, {`session`, f.Session}, {`workspace`, f.Workspace}, {`server`, f.Server}, {`tool`, f.Tool},
	} {
		if c.value != "" {
			w.add(c.column+` = ?`, c.value)
		}
	}
	if (f.CallHash != call.Hash{}) {
		w.add(`call_tag = ?`, tag(f.CallHash))
	}
	if len(f.Tiers) > 0 {
		args := make([]any, len(f.Tiers))
		for i, t := range f.Tiers {
			args[i] = int64(t)
		}
		w.add(`tier IN (?`+strings.Repeat(`, ?`, len(args)-1)+`)`, args...)
	}
	if !f.Since.IsZero() {
		w.add(`asked_at >= ?`, store.Nanos(f.Since))
	}
	if !f.After.IsZero() {
		at, id := store.Nanos(f.After.At), string(f.After.ID)
		switch {
		case f.Order == store.NewestFirst:
			w.add(`asked_at <= ? AND (asked_at < ? OR id < ?)`, at, at, id)
		case openOnly(f.States) && f.CallHash == call.Hash{}:
			w.add(`due_at >= ? AND (due_at > ? OR id > ?)`, at, at, id)
		default:
			w.add(`expires_at >= ? AND (expires_at > ? OR id > ?)`, at, at, id)
		}
	}
	return w
}
