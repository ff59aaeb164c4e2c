package desk

import (
	"context"
	"strings"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/identity"
	"github.com/ayegate/ayegate/internal/store"
)

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
