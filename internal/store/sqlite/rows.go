package sqlite

import (
	"fmt"
	"time"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/store"
)

// inline is how many bytes of a call or a result live in their row. Larger ones
// live in payloads, so that a change of the row does not write them again.
const inline = 2 << 10

// What is read of a request, by readRow.
const (
	rowColumns   = `n, state, form, call, salt, result, result_at`
	rowWidth     = 7
	payloadQuery = `SELECT data FROM payloads WHERE p = ?`
)

// readRow makes a request of a row. payload reads what is kept apart.
func readRow(row [rowWidth]any, payload func(p int64) ([]byte, error)) (kept, error) {
	n, _ := row[0].(int64)
	state, _ := row[1].(string)
	s := store.Stored{Form: blob(row[2]), Call: blob(row[3]), Salt: blob(row[4]), Result: blob(row[5])}
	var err error
	if s.Call == nil {
		if s.Call, err = payload(2 * n); err != nil {
			return kept{}, fmt.Errorf("the call of row %d: %w", n, err)
		}
	}
	if s.Result == nil && row[6] != nil {
		if s.Result, err = payload(2*n + 1); err != nil {
			return kept{}, fmt.Errorf("the result of row %d: %w", n, err)
		}
	}
	r, err := s.Request()
	if err != nil {
		return kept{}, err
	}
	if string(r.State) != state {
		return kept{}, fmt.Errorf("%w: request %s is stored as %s and as %s", store.ErrForm, r.ID, state, r.State)
	}
	return kept{n: n, r: r, size: sizeOf(s)}, nil
}

func blob(v any) []byte {
	b, _ := v.([]byte)
	return b
}

func sizeOf(s store.Stored) int {
	return 1024 + 2*len(s.Form) + 2*len(s.Call) + len(s.Salt) + len(s.Result)
}

// optional is NULL for the zero time.
func optional(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return store.Nanos(t)
}

// small is a payload that lives in its row, NULL for one that does not.
func small(b []byte) any {
	if b == nil || len(b) > inline {
		return nil
	}
	return b
}

func resultAt(r *approval.Request) any {
	if r.Execution.Result == nil {
		return nil
	}
	return optional(r.EndedAt)
}
