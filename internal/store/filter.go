package store

import (
	"cmp"
	"slices"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/call"
)

// Match reports whether the filter selects a request, wherever it continues and
// however many it wants.
func (f *Filter) Match(r *approval.Request) bool {
	return (len(f.States) == 0 || slices.Contains(f.States, r.State)) &&
		(f.CallHash == call.Hash{} || f.CallHash == r.Call.Hash()) &&
		(f.Agent == "" || f.Agent == r.From.ID) &&
		(f.Session == "" || f.Session == r.From.Session) &&
		(f.Workspace == "" || f.Workspace == r.From.Workspace) &&
		(f.Server == "" || f.Server == r.Call.Server()) &&
		(f.Tool == "" || f.Tool == r.Call.Tool()) &&
		(len(f.Tiers) == 0 || slices.Contains(f.Tiers, uint8(r.Verdict.Tier))) &&
		(f.Since.IsZero() || !r.AskedAt.Before(f.Since))
}

// IsZero reports whether the cursor is the beginning.
func (c Cursor) IsZero() bool { return c.ID == "" && c.At.IsZero() }

// Place is where a request stands in the order: the cursor that continues behind it.
func (o Order) Place(r *approval.Request) Cursor {
	if o == DeadlineFirst {
		return Cursor{At: r.ExpiresAt, ID: r.ID}
	}
	return Cursor{At: r.AskedAt, ID: r.ID}
}

// Compare orders two places: negative when a comes first.
func (o Order) Compare(a, b Cursor) int {
	c := cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID))
	if o == NewestFirst {
		return -c
	}
	return c
}
