package mcp

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func TestChildAsk(t *testing.T) {
	target := childTarget(t, "legacy")
	target.Stray = &listener{ask: func(_ context.Context, m Message) ([]byte, *Error) {
		return []byte(`{"by":"stray","method":"` + m.Method + `"}`), nil
	}}
	u := dial(t, target)

	t.Run("goes to the only call in flight", func(t *testing.T) {
		to := &listener{ask: func(_ context.Context, m Message) ([]byte, *Error) {
			if string(m.Params) != `{"n":1.10}` {
				t.Errorf("params %s", m.Params)
			}
			return []byte(`{"action":"accept","n":1.10}`), nil
		}}
		m := mustCall(t, u, tool("ask:elicitation/create"), to)
		if !strings.Contains(string(m.Result), `"result":{"action":"accept","n":1.10}`) {
			t.Errorf("the server got %s", m.Result)
		}
	})
	t.Run("an error goes back as it is", func(t *testing.T) {
		to := &listener{ask: func(context.Context, Message) ([]byte, *Error) {
			return nil, &Error{Raw: []byte(`{"code":-1,"message":"no","x":1.10}`)}
		}}
		m := mustCall(t, u, tool("ask:sampling/createMessage"), to)
		if !strings.Contains(string(m.Result), `"error":{"code":-1,"message":"no","x":1.10}`) {
			t.Errorf("the server got %s", m.Result)
		}
	})
	t.Run("nobody listens", func(t *testing.T) {
		m := mustCall(t, u, tool("ask:elicitation/create"), nil)
		if !strings.Contains(string(m.Result), `"code":-32601`) {
			t.Errorf("the server got %s", m.Result)
		}
	})
	t.Run("ping is answered at once", func(t *testing.T) {
		m := mustCall(t, u, tool("ask:ping"), nil)
		if !strings.Contains(string(m.Result), `"result":{}`) {
			t.Errorf("the server got %s", m.Result)
		}
	})
	t.Run("roots concern the session", func(t *testing.T) {
		m := mustCall(t, u, tool("ask:roots/list"), nil)
		if !strings.Contains(string(m.Result), `"by":"stray"`) {
			t.Errorf("the server got %s", m.Result)
		}
	})
	t.Run("withdrawn", func(t *testing.T) {
		asked := make(chan error, 1)
		to := &listener{ask: func(ctx context.Context, _ Message) ([]byte, *Error) {
			<-ctx.Done()
			asked <- context.Cause(ctx)
			return nil, nil
		}}
		mustCall(t, u, tool("ask-then-withdraw"), to)
		if err := <-asked; !errors.Is(err, errWithdrawn) && !errors.Is(err, context.Canceled) {
			t.Errorf("asking ended with %v", err)
		}
	})
}

// On a wire without associations a question during two calls could reach the
// wrong agent: it is refused, and calls then run one by one.
func TestChildAskSerialises(t *testing.T) {
	u := dial(t, childTarget(t, "legacy"))
	ctx, cancel := context.WithCancel(t.Context())
	hung := hang(ctx, u, &listener{ask: func(context.Context, Message) ([]byte, *Error) {
		t.Error("the other call was asked")
		return nil, nil
	}})
	never := &listener{ask: func(context.Context, Message) ([]byte, *Error) {
		t.Error("asked while two calls were in flight")
		return nil, nil
	}}
	m := mustCall(t, u, tool("ask:elicitation/create"), never)
	if !strings.Contains(string(m.Result), `"code":-32601`) {
		t.Fatalf("the server got %s", m.Result)
	}

	// Now it is known to ask: calls wait for their turn, lists do not.
	waiting, giveUp := context.WithCancel(t.Context())
	gaveUp := make(chan error, 1)
	go func() {
		_, err := u.Call(waiting, "tools/call", tool("echo"), nil)
		gaveUp <- err
	}()
	var running, most atomic.Int32
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			to := &listener{ask: func(context.Context, Message) ([]byte, *Error) {
				most.Store(max(most.Load(), running.Add(1)))
				defer running.Add(-1)
				return []byte(`{}`), nil
			}}
			m, err := u.Call(t.Context(), "tools/call", tool("ask:elicitation/create"), to)
			if err != nil || !strings.Contains(string(m.Result), `"result":{}`) {
				t.Errorf("got %s, %v", m.Result, err)
			}
		})
	}
	for u.(*Child).queued() < 5 {
		if _, err := ListAll(t.Context(), u, "tools/list", "tools"); err != nil {
			t.Fatal(err)
		}
	}
	giveUp()
	wantLost(t, <-gaveUp, false, context.Canceled)
	cancel()
	wantLost(t, <-hung, true, context.Canceled)
	wg.Wait()
	if most.Load() != 1 {
		t.Errorf("%d calls were asked at a time", most.Load())
	}
}

func (c *Child) queued() int {
	c.lock.Lock()
	defer c.lock.Unlock()
	return len(c.waiting)
}

func TestChildModernAsksNothing(t *testing.T) {
	u := dial(t, childTarget(t, "modern"))
	to := &listener{ask: func(context.Context, Message) ([]byte, *Error) {
		t.Error("a modern server's request was passed on")
		return nil, nil
	}}
	m := mustCall(t, u, tool("ask:elicitation/create"), to)
	if !strings.Contains(string(m.Result), `"code":-32601`) {
		t.Errorf("the server got %s", m.Result)
	}
}

func TestChildStray(t *testing.T) {
	stray := &listener{noted: make(chan Message, 16)}
	target := childTarget(t, "legacy early")
	target.Stray = stray
	u := dial(t, target)
	if err := u.Notify(t.Context(), "notifications/roots/list_changed", []byte(`{"n":1.10}`)); err != nil {
		t.Fatal(err)
	}
	note := <-stray.noted
	if !strings.Contains(string(note.Raw), `\"params\":{\"n\":1.10}`) {
		t.Errorf("got %s", note.Raw)
	}
	if note.Method != "notifications/message" {
		t.Errorf("what came before initialization was passed on: %s", stray.raw())
	}
}

func TestChildSubscription(t *testing.T) {
	target := childTarget(t, "modern")
	target.CallLimit = 1 // a subscription has no time limit
	u := dial(t, withoutLimit(target))
	u.(*Child).t.CallLimit = 1
	to := &listener{noted: make(chan Message, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := u.Call(ctx, methodListen, tool("listen"), to)
		ended <- err
	}()
	if m := <-to.noted; m.Method != "notifications/tools/list_changed" {
		t.Errorf("got %s", m.Raw)
	}
	cancel()
	wantLost(t, <-ended, true, context.Canceled)
}

func withoutLimit(t Target) Target { t.CallLimit = 0; return t }
