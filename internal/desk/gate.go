package desk

import (
	"context"
	"fmt"
	"math"

	"golang.org/x/sync/semaphore"

	"github.com/ayegate/ayegate/internal/store"
)

// gate keeps what a judgement rests on still until its claim is committed. Calls
// pass through it side by side; a change of the policy, of a tool's definition or
// of the kill switch shuts it, waits for those inside, and only then takes
// effect. Without it a claim could follow the change that forbids it.
type gate struct{ s *semaphore.Weighted }

func newGate() gate { return gate{semaphore.NewWeighted(math.MaxInt64)} }

// pass lets one call in until out is called. Nobody may pass twice: a change that
// waits in between would hold up both.
func (g gate) pass(ctx context.Context) (out func(), err error) {
	return g.take(ctx, 1)
}

// shut waits until nobody is inside and keeps everybody out until open is called.
func (g gate) shut(ctx context.Context) (open func(), err error) {
	return g.take(ctx, math.MaxInt64)
}

func (g gate) take(ctx context.Context, n int64) (func(), error) {
	if err := g.s.Acquire(ctx, n); err != nil {
		return nil, fmt.Errorf("%w in time: %w", store.ErrUnavailable, err)
	}
	return func() { g.s.Release(n) }, nil
}
