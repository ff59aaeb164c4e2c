package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/store"
)

// put makes a record hold a value; nil removes it.
func put(t *testing.T, s *Store, id string, value []byte) {
	t.Helper()
	err := s.Update(t.Context(), "credential", id, func([]byte, time.Time) ([]byte, ledger.Event, error) {
		return value, noted(id), nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func noted(subject string) ledger.Event {
	return ledger.Event{Kind: ledger.KeyAdded, Subject: subject, Actor: ledger.Actor{Kind: ledger.System, ID: "ayegate"}}
}

// A record that was looked up is in memory; after a change nobody sees the old
// one again, and what a caller does to a record that it was given stays there.
func TestRecordsInMemory(t *testing.T) {
	s := inside(t, nil)
	put(t, s, "k", []byte("one"))
	for range 2 {
		r, err := s.Load(t.Context(), "credential", "k")
		if err != nil || string(r.Value) != "one" {
			t.Fatalf("%s, %v", r.Value, err)
		}
		r.Value[0] = 'X'
	}
	if _, _, ok := s.w.memo.get(recordName{"credential", "k"}); !ok {
		t.Fatal("it was read from the database twice")
	}
	put(t, s, "k", []byte("two"))
	if r, err := s.Load(t.Context(), "credential", "k"); err != nil || string(r.Value) != "two" {
		t.Fatalf("after a change: %s, %v", r.Value, err)
	}
	put(t, s, "k", nil)
	if r, err := s.Load(t.Context(), "credential", "k"); !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("after it was removed: %s, %v", r.Value, err)
	}
	for i := range maxMemo + 1 {
		s.w.memo.put(store.Record{ID: fmt.Sprint(i)}, s.w.memo.edits)
	}
	s.w.memo.put(store.Record{ID: "large", Value: make([]byte, maxMemoValue+1)}, s.w.memo.edits)
	if n := len(s.w.memo.known); n != 1 {
		t.Fatalf("%d records are kept", n)
	}
}

// Whoever read a record while it changes puts nothing back: neither what was read
// before the commit began, nor anything while it goes on.
func TestRecordsReadMeanwhile(t *testing.T) {
	s := inside(t, nil)
	put(t, s, "k", []byte("one"))
	commit := s.w.commit
	name := recordName{"credential", "k"}
	_, before, _ := s.w.memo.get(name)
	old := store.Record{Kind: "credential", ID: "k", Value: []byte("one")}
	s.w.memo.put(old, before)
	s.w.commit = func() error {
		_, during, kept := s.w.memo.get(name)
		if kept {
			t.Error("the old record is in memory while the new one is being committed")
		}
		s.w.memo.put(old, before)
		s.w.memo.put(old, during)
		err := commit()
		s.w.memo.put(old, during)
		return err
	}
	put(t, s, "k", []byte("two"))
	_, _, kept := s.w.memo.get(name)
	s.w.memo.put(old, before)
	if _, _, again := s.w.memo.get(name); kept || again {
		t.Fatal("a slow reader put the old record back")
	}
}

// Followers get every entry once and in order, from memory or not, wherever they begin.
func TestFollowFromMemory(t *testing.T) {
	s := inside(t, nil)
	const n = maxTail + 300
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var all sync.WaitGroup
	follow := func(first int64) {
		all.Go(func() {
			next := first
			for line, err := range s.Follow(ctx, first) {
				if err != nil {
					t.Errorf("from %d: %v", first, err)
					return
				}
				e, err := ledger.ParseEntry(line)
				if err != nil || e.Seq != next {
					t.Errorf("from %d: entry %d instead of %d, %v", first, e.Seq, next, err)
					return
				}
				clear(line) // it is the follower's own
				if next++; next == n {
					return
				}
			}
		})
	}
	follow(0)
	for i := range n {
		if i == n/2 || i == n-10 {
			follow(0)
			follow(int64(i))
		}
		if err := s.Append(t.Context(), noted(fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	follow(0)
	follow(n - 1)
	all.Wait()
	if got := len(s.w.public.tail.lines); got != maxTail {
		t.Errorf("%d entries are in memory", got)
	}
	var big tail
	for range 100 {
		big.add([][]byte{bytes.Repeat([]byte("x"), ledger.MaxEntry)})
	}
	if big.bytes > maxTailBytes || len(big.lines) != maxTailBytes/ledger.MaxEntry {
		t.Errorf("%d bytes in %d entries", big.bytes, len(big.lines))
	}
}
