package storetest_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/store"
	"github.com/ayegate/ayegate/internal/store/memory"
	"github.com/ayegate/ayegate/internal/store/storetest"
)

func inMemory(t testing.TB, env storetest.Env) store.Store {
	s, err := memory.Open(memory.Config{Now: env.Wall.Now})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestFaultyWithoutFaults holds the fake to the contract it is a fake of.
func TestFaultyWithoutFaults(t *testing.T) {
	storetest.Run(t, func(t testing.TB, env storetest.Env) store.Store {
		return storetest.NewFaulty(inMemory(t, env))
	}, storetest.Options{})
}

var fact = ledger.Event{Kind: ledger.PauseSet, Subject: "all", Actor: ledger.Actor{Kind: ledger.System}}

// script makes every kind of write once and returns the first error.
func script(ctx context.Context, s store.Store) error {
	r, asked, claimed := storetest.Running(1, s.Now())
	if err := s.Create(ctx, r, []ledger.Event{asked, claimed}, store.Charge{Key: "k", Amount: 1}); err != nil {
		return err
	}
	if _, err := s.Change(ctx, r.ID, func(*approval.Request, time.Time) (ledger.Event, error) { return ledger.Event{}, nil }); err != nil {
		return err
	}
	if _, err := s.Change(ctx, r.ID, storetest.Finish(r.Claimed.ID, []byte("result"))); err != nil {
		return err
	}
	err := s.Update(ctx, "pin", "x", func([]byte, time.Time) ([]byte, ledger.Event, error) { return []byte("v"), fact, nil })
	if err != nil {
		return err
	}
	if err := s.Append(ctx, fact); err != nil {
		return err
	}
	if _, err := s.EraseResults(ctx, s.Now().Add(time.Hour)); err != nil {
		return err
	}
	return s.Forget(ctx, s.Now())
}

// TestEveryFaultAtEveryWrite fails each write of a script in every way and looks
// at what is there and what the caller was told. T2.
func TestEveryFaultAtEveryWrite(t *testing.T) {
	want := []string{
		"Create request.asked request.claimed", "Change request.finished", "Update pause.set", "Append pause.set", "EraseResults", "Forget",
	}
	for _, fault := range storetest.Faults {
		for n := 1; n <= len(want)+1; n++ {
			synctest.Test(t, func(t *testing.T) { oneFault(t, fault, n, want) })
		}
	}
}

func oneFault(t *testing.T, fault storetest.Fault, n int, want []string) {
	f := storetest.NewFaulty(inMemory(t, storetest.Env{Wall: storetest.NewWall()}))
	defer f.Close()
	f.FailAt(n, fault)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	err := script(ctx, f)
	points := f.Points()
	if n > len(want) {
		if err != nil || !slices.Equal(points, want) {
			t.Fatalf("without a fault: %v at %q", err, points)
		}
		return
	}
	if !slices.Equal(points, want[:n]) {
		t.Fatalf("%s at %d: the writes were %q", fault, n, points)
	}
	told, written := store.ErrInDoubt, false
	switch fault {
	case storetest.NotWritten:
		told = store.ErrUnavailable
	case storetest.Unconfirmed, storetest.HungWritten, storetest.DiesAfter:
		written = true
	case storetest.Hung, storetest.DiesBefore:
	}
	if !errors.Is(err, told) {
		t.Fatalf("%s at %s: the caller is told %v", fault, want[n-1], err)
	}
	hung := fault == storetest.Hung || fault == storetest.HungWritten
	if hung != errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("%s at %s: %v", fault, want[n-1], err)
	}
	died := fault == storetest.DiesBefore || fault == storetest.DiesAfter
	if _, err := f.Counts(t.Context()); died != errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("%s: reading afterwards: %v", fault, err)
	}
	entries := []int64{0, 2, 3, 4, 5, 5, 5}[n-1]
	if written {
		entries = []int64{2, 3, 4, 5, 5, 5}[n-1]
	}
	h, err := f.Head(t.Context())
	if err != nil || h.Size != entries {
		t.Fatalf("%s at %s: %d entries, want %d: %v", fault, want[n-1], h.Size, entries, err)
	}
	storetest.Consistent(t, f.Store)
	f.FailAt(0, 0) // it is alive again
	if err := f.Append(t.Context(), fact); err != nil {
		t.Fatal(err)
	}
}
