package sqlite

import (
	"context"
	"sync"

	"github.com/ayegate/ayegate/internal/store"
)

// maxMemo bounds the records that are kept in memory; when there are more, all are
// forgotten. A larger value than maxMemoValue is never kept.
const (
	maxMemo      = 1024
	maxMemoValue = 4 << 10
)

// memo keeps records as they are committed: every request of an agent looks up
// its key, which would cost as much as recording the call.
//
// A reader puts in what it read unless records changed meanwhile, and while a
// transaction that changes some is being committed there is nothing in the memo
// of them: who was shown a change never sees the state before it again.
type memo struct {
	mu      sync.Mutex
	known   map[recordName]store.Record
	edits   uint64 // grows when a commit of changes begins and when it ends
	changes bool   // one is on its way
}

type recordName struct{ kind, id string }

// get returns a record, or what [memo.put] wants to know.
func (m *memo) get(name recordName) (r store.Record, edits uint64, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok = m.known[name]
	return r, m.edits, ok
}

// put keeps a record that was read after get had said how many edits there were.
func (m *memo) put(r store.Record, edits uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.changes || m.edits != edits || len(r.Value) > maxMemoValue {
		return
	}
	if m.known == nil || len(m.known) >= maxMemo {
		m.known = make(map[recordName]store.Record)
	}
	m.known[recordName{r.Kind, r.ID}] = r
}

// begin forgets records whose changes are about to be committed; end, when that is
// over, however it went, lets them be kept again.
func (m *memo) begin(names []recordName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range names {
		delete(m.known, name)
	}
	m.edits++
	m.changes = true
}

func (m *memo) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.edits++
	m.changes = false
}

// Load returns one record. One that was looked up lately is in memory.
func (s *Store) Load(ctx context.Context, kind, id string) (store.Record, error) {
	if ctx.Err() != nil || s.w.stopped() {
		return s.Reader.Load(ctx, kind, id)
	}
	r, edits, ok := s.w.memo.get(recordName{kind, id})
	if !ok {
		var err error
		if r, err = s.Reader.Load(ctx, kind, id); err != nil {
			return r, err
		}
		s.w.memo.put(r, edits)
	}
	r.Value = append([]byte{}, r.Value...) // the caller's own
	return r, nil
}
