package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/store"
)

var fact = ledger.Event{Kind: ledger.PauseSet, Subject: "all", Actor: ledger.Actor{Kind: ledger.System, ID: "ayegate"}}

func put(value string) store.Edit {
	return func([]byte, time.Time) ([]byte, ledger.Event, error) { return []byte(value), fact, nil }
}

var recordTests = []test{
	{name: "a record's life", run: func(s *scenario) {
		ctx := s.Context()
		_, err := s.Load(ctx, "pin", "a")
		s.wants(err, store.ErrNotFound)
		edit := func(wantOld []byte, value []byte) {
			s.Helper()
			s.must(s.Update(ctx, "pin", "a", func(old []byte, now time.Time) ([]byte, ledger.Event, error) {
				if !bytes.Equal(old, wantOld) || (old == nil) != (wantOld == nil) {
					s.Errorf("old is %q, want %q", old, wantOld)
				}
				if now.IsZero() {
					s.Error("no time")
				}
				return value, fact, nil
			}))
		}
		edit(nil, []byte("one"))
		s.forward(time.Minute)
		edit([]byte("one"), []byte("two\x00\xff"))
		r, err := s.Load(ctx, "pin", "a")
		s.must(err)
		if r.Kind != "pin" || r.ID != "a" || string(r.Value) != "two\x00\xff" || !r.Changed.Equal(s.Now()) {
			s.Fatalf("got %+v", r)
		}
		r.Value[0] = 'X' // the caller's own
		edit([]byte("two\x00\xff"), []byte{})
		edit([]byte{}, nil) // an empty value is not an absent one
		_, err = s.Load(ctx, "pin", "a")
		s.wants(err, store.ErrNotFound)
		edit(nil, nil)
	}},
	{name: "an edit without an event writes nothing", run: func(s *scenario) {
		mine := errors.New("mine")
		s.must(s.Update(s.Context(), "pin", "a", put("one")))
		s.unchanged(func() {
			err := s.Update(s.Context(), "pin", "a", func(old []byte, _ time.Time) ([]byte, ledger.Event, error) {
				old[0] = 'X'
				return old, fact, mine
			})
			if err != mine { //nolint:errorlint // it is returned as it is
				s.Fatalf("got %v", err)
			}
			s.must(s.Update(s.Context(), "pin", "a", func(old []byte, _ time.Time) ([]byte, ledger.Event, error) {
				old[0] = 'X'
				return nil, ledger.Event{}, nil
			}))
		})
		r, err := s.Load(s.Context(), "pin", "a")
		s.must(err)
		if string(r.Value) != "one" {
			s.Fatalf("got %q", r.Value)
		}
	}},
	{name: "records of a kind, by id", run: func(s *scenario) {
		ctx := s.Context()
		for _, id := range []string{"b", "", "a", "B", "é"} {
			s.must(s.Update(ctx, "pin", id, put("v"+id)))
		}
		s.must(s.Update(ctx, "pins", "z", put("other")))
		var got []string
		for r, err := range s.Records(ctx, "pin") {
			s.must(err)
			got = append(got, r.ID+"="+string(r.Value))
		}
		if want := []string{"=v", "B=vB", "a=va", "b=vb", "é=vé"}; !slices.Equal(got, want) {
			s.Fatalf("got %q, want %q", got, want)
		}
		for n := range 200 {
			s.must(s.Update(ctx, "many", fmt.Sprintf("%03d", n), put("v")))
		}
		n := 0
		for r, err := range s.Records(ctx, "many") {
			s.must(err)
			s.must(s.Update(ctx, "many", r.ID, func([]byte, time.Time) ([]byte, ledger.Event, error) { return nil, fact, nil }))
			n++
		}
		if n != 200 {
			s.Fatalf("read %d", n)
		}
	}},
}
