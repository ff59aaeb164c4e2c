package gateway

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/ayegate/ayegate/internal/mcp"
)

const (
	// maxRounds is how often a server may ask for input within one call.
	maxRounds = 10
	// roundPause is how long a server that only says "come back" is left alone.
	roundPause = 500 * time.Millisecond
)

var errNoInput = errors.New("the agent did not come back with an answer in time")

// askLater turns a legacy server's request into input that a modern agent's
// request is ended with, and waits for the answer in a later one.
func (u *run) askLater(ctx context.Context, m mcp.Message) ([]byte, *mcp.Error) {
	u.mu.Lock()
	u.last++
	key := "aye-" + strconv.Itoa(u.last)
	u.mu.Unlock()
	request := (&object{}).text("method", m.Method).add("params", m.Params).bytes()
	answers, err := u.wait(ctx, map[string][]byte{key: request})
	if err != nil {
		return nil, &mcp.Error{Code: mcp.CodeInternal, Message: err.Error()}
	}
	return get(answers, key), nil
}

// wait puts a need up and waits until the agent has brought what it names.
func (u *run) wait(ctx context.Context, requests map[string][]byte) ([]byte, error) {
	n := &need{requests: requests, answers: make(chan []byte, 1)}
	u.mu.Lock()
	u.needs = append(u.needs, n)
	u.mu.Unlock()
	defer u.drop(n)
	u.nudge()
	patience := time.NewTimer(u.g.c.Limits.ParkedFor)
	defer patience.Stop()
	select {
	case answers := <-n.answers:
		return answers, nil
	case <-patience.C:
		return nil, errNoInput
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-u.ctx.Done():
		return nil, context.Cause(u.ctx)
	}
}

func (u *run) nudge() {
	select {
	case u.asked <- struct{}{}:
	default:
	}
}

func (u *run) drop(n *need) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for i, have := range u.needs {
		if have == n {
			u.needs = append(u.needs[:i], u.needs[i+1:]...)
			return
		}
	}
}

// open reports whether the run needs input now.
func (u *run) open() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.needs) > 0
}

// requests is everything the run needs now, as inputRequests.
func (u *run) requests() []byte {
	u.mu.Lock()
	defer u.mu.Unlock()
	o := &object{}
	for _, n := range u.needs {
		for key, r := range n.requests {
			o.add(key, r)
		}
	}
	return o.bytes()
}

// take hands the agent's answers to those who need them; a need that is not
// wholly answered stays open.
func (u *run) take(responses []byte) {
	u.mu.Lock()
	defer u.mu.Unlock()
	kept := u.needs[:0]
	for _, n := range u.needs {
		whole := true
		for key := range n.requests {
			whole = whole && isObject(get(responses, key))
		}
		if !whole {
			kept = append(kept, n)
			continue
		}
		n.answers <- responses
	}
	u.needs = kept
}

// supply answers a modern server's input_required and returns the params of the
// next round: the same, with the answers and the server's own state.
func (u *run) supply(params, result []byte, round int) ([]byte, error) {
	requests := get(result, "inputRequests")
	wanted := make(map[string][]byte)
	members(requests, func(key string, r []byte) { wanted[key] = r })
	var answers []byte
	var err error
	switch {
	case len(wanted) == 0:
		err = u.pause(round)
	case u.modern:
		answers, err = u.wait(u.ctx, wanted)
	default:
		answers, err = u.askNow(requests)
	}
	if err != nil {
		return nil, err
	}
	if params == nil {
		params = []byte("{}")
	}
	params = without(without(params, "inputResponses"), "requestState")
	if answers != nil {
		params = set(params, answers, "inputResponses")
	}
	if state := get(result, "requestState"); state != nil {
		params = set(params, state, "requestState")
	}
	return params, nil
}

// pause waits a little longer each round.
func (u *run) pause(round int) error {
	t := time.NewTimer(time.Duration(round+1) * roundPause)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-u.ctx.Done():
		return context.Cause(u.ctx)
	}
}

// askNow asks a legacy agent one by one what a modern server needs. A refusal
// cannot be put into an answer; of an elicitation it means cancel, else it ends
// the call.
func (u *run) askNow(requests []byte) ([]byte, error) {
	out := &object{}
	var failed error
	members(requests, func(key string, r []byte) {
		if failed != nil {
			return
		}
		m := mcp.Message{Method: textAt(r, "method"), Params: get(r, "params")}
		result, e := u.Ask(u.ctx, m)
		switch {
		case e == nil:
			out.add(key, result)
		case m.Method == "elicitation/create":
			out.add(key, []byte(`{"action":"cancel"}`))
		default:
			failed = errors.New(m.Method + " was refused")
		}
	})
	return out.bytes(), failed
}
