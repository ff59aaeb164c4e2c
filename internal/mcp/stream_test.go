package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
)

// Without a reader a stream keeps the newest notifications, and every request and
// reply.
func TestStreamWithoutReader(t *testing.T) {
	t.Parallel()
	s := newStream("1", 1)
	send := func(kind eventKind, text string) {
		if err := s.send(t.Context(), kind, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	send(eventRequest, "asked")
	for i := range 3 * maxLogEvents {
		send(eventNotification, fmt.Sprint(i))
	}
	if err := s.reply([]byte("reply"), 200); err != nil {
		t.Fatal(err)
	}
	if err := s.send(t.Context(), eventNotification, nil); !errors.Is(err, ErrEnded) {
		t.Errorf("sent after the end: %v", err)
	}
	r := newReader()
	s.attach(r, 0)
	events, more := s.take(r)
	if more || len(events) != maxLogEvents || string(events[0].message) != "asked" || string(events[len(events)-1].message) != "reply" {
		t.Errorf("%d events, first %s, more %t", len(events), events[0].message, more)
	}
	if got := string(events[len(events)-2].message); got != fmt.Sprint(3*maxLogEvents-1) {
		t.Errorf("the newest notification is %s", got)
	}
	s = newStream("1", 1)
	for range 10 {
		send(eventNotification, strings.Repeat("x", maxLogBytes/4))
	}
	if s.size() > maxLogBytes {
		t.Errorf("holds %d bytes", s.size())
	}
}

// MCP-24: with a reader that is behind, the sender waits: nothing is dropped and
// no more than a log is held.
func TestStreamWaitsForReader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, r := newStream("", 1), newReader()
		s.attach(r, 0)
		const total = 2*maxLogEvents + 10
		sent := 0
		go func() {
			for range total {
				if err := s.send(t.Context(), eventNotification, []byte("x")); err != nil {
					t.Error(err)
				}
				sent++
			}
		}()
		synctest.Wait()
		if sent != maxLogEvents+1 {
			t.Fatalf("%d sent to a reader that has read nothing", sent)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		go cancel(ErrCancelled)
		if err := s.send(ctx, eventNotification, nil); !errors.Is(err, ErrCancelled) {
			t.Errorf("waiting ended with %v", err)
		}
		got := 0
		for got < total {
			events, more := s.take(r)
			if !more {
				t.Fatal("the stream is over")
			}
			got += len(events)
			synctest.Wait()
		}
		s.detach(r)
	})
}

// A sender that waits for a reader learns that there is none any more.
func TestStreamCloseWakesSender(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, r := newStream("", 1), newReader()
		s.attach(r, 0)
		ended := make(chan error, 1)
		go func() {
			for {
				if err := s.send(t.Context(), eventNotification, nil); err != nil {
					ended <- err
					return
				}
			}
		}()
		synctest.Wait()
		s.close(ErrDisconnected)
		if err := <-ended; !errors.Is(err, ErrDisconnected) {
			t.Errorf("ended with %v", err)
		}
		if err := s.reply(nil, 200); !errors.Is(err, ErrDisconnected) {
			t.Errorf("replied: %v", err)
		}
	})
}

// A session keeps finished streams for agents that lost their connection, a few
// and the newest in any case.
func TestKeptStreams(t *testing.T) {
	t.Parallel()
	s := &session{}
	finished := func(size int) *stream {
		st := s.openStream(1)
		_ = st.reply(make([]byte, size), 200)
		s.keep(st)
		return st
	}
	open := s.openStream(1)
	s.keep(open)
	first := finished(10)
	for range maxKept + 5 {
		finished(10)
	}
	if s.stream(open.id) != open || s.stream(first.id) != nil || len(s.streams) > maxKept+1 {
		t.Errorf("%d streams kept", len(s.streams))
	}
	last := finished(2 * maxKeptBytes)
	if s.stream(last.id) != last || s.stream(open.id) != open || len(s.streams) != 2 {
		t.Errorf("%d streams kept beside a large one", len(s.streams))
	}
}

// MCP-24: the questions that wait for one agent are bounded, and the end of the
// session ends them.
func TestAsksBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var a asks
		var sent []string
		errs := make(chan error, maxAsks)
		send := func(_ context.Context, _ eventKind, b []byte) error {
			sent = append(sent, string(b))
			return nil
		}
		for range maxAsks {
			go func() {
				_, err := a.ask(t.Context(), "roots/list", nil, send)
				errs <- err
			}()
			synctest.Wait()
		}
		if _, err := a.ask(t.Context(), "roots/list", nil, send); !errors.Is(err, ErrNoAsk) {
			t.Errorf("one more: %v", err)
		}
		a.answer(Message{ID: []byte(`"\u0061ye-1"`), Result: []byte("{}")})
		if err := <-errs; err != nil {
			t.Errorf("an id in another spelling was not recognised: %v", err)
		}
		a.answer(Message{Error: []byte(`{}`)})
		a.close()
		for range maxAsks - 1 {
			if err := <-errs; !errors.Is(err, ErrNoSession) {
				t.Errorf("ended with %v", err)
			}
		}
		if len(sent) != maxAsks {
			t.Errorf("sent %d", len(sent))
		}
	})
}
