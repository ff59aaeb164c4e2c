package gateway

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/mcp"
	"github.com/ayegate/ayegate/internal/store"
)

// RACE-03, RACE-06, RACE-07: agents of both eras ask, hang up, cancel, withdraw and
// come back while people decide and the server is slow or breaks. Whatever happens
// together, every exchange ends, no approval runs twice, nothing runs that a person
// denied, withdrew or left to expire, and nothing stays running for ever.
func TestStorm(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { storm(t, rand.New(rand.NewPCG(seed, 7))) })
		})
	}
}

const stormCalls = 12

func storm(t *testing.T, dice *rand.Rand) {
	s := legacyServer()
	if dice.IntN(2) == 0 {
		s = modernServer()
	}
	slow := make([]time.Duration, stormCalls)
	for i := range slow {
		slow[i] = time.Duration(dice.IntN(20)) * time.Second
	}
	s.serve = func(ctx context.Context, _ *server, _ string, params []byte, _ mcp.Answers) (mcp.Message, error) {
		select {
		case <-time.After(slow[intOf(get(params, "arguments", "n"))]):
		case <-ctx.Done():
		}
		return result(`{"content":[]}`), nil
	}
	r := newRig(t, one(s))
	defer r.close()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go r.desk.Run(ctx)
	clients := []mcp.Client{agent("bot"), modernAgent("bot", `{}`), modernAgent("bot", `{"elicitation":{"url":{}}}`)}
	var all []*talk
	for range 400 {
		time.Sleep(time.Duration(dice.IntN(3000)) * time.Millisecond)
		switch dice.IntN(10) {
		case 0, 1, 2, 3, 4:
			x, cancel := r.start(clients[dice.IntN(len(clients))], "tools/call", fmt.Sprintf(`{"name":"write","arguments":{"n":%d}}`, dice.IntN(stormCalls)))
			all = append(all, x)
			if cause := []error{nil, nil, mcp.ErrCancelled, mcp.ErrDisconnected}[dice.IntN(4)]; cause != nil {
				time.AfterFunc(time.Duration(dice.IntN(40))*time.Second, func() { cancel(cause) })
			}
		case 5, 6, 7, 8:
			r.decideOne(dice)
		default:
			if dice.IntN(4) == 0 {
				s.kill()
			}
			if q := r.anyPending(dice); q != nil {
				all = append(all, r.say(clients[1], "tools/call", `{"name":"cancel_approval","arguments":{"id":"`+string(q.ID)+`"}}`))
			}
		}
	}
	sleep(30 * time.Minute)
	for i, x := range all {
		select {
		case <-x.done:
		default:
			t.Errorf("exchange %d has not ended", i)
		}
	}
	runs := make(map[string]int)
	for _, p := range s.sent("tools/call") {
		runs[string(get([]byte(p), "arguments"))]++
	}
	started := make(map[string]int)
	for _, q := range r.all() {
		switch {
		case q.State == approval.Executing, q.State.Open():
			t.Errorf("%s is still %s", q.Code, q.State)
		case !q.Claimed.At.IsZero() && q.Execution.Outcome != approval.NotSent:
			if len(q.Approvals()) == 0 {
				t.Errorf("%s ran without an approval", q.Code)
			}
			started[string(q.Call.Args())]++
		}
	}
	total := 0
	for args, n := range runs {
		total += n
		if n != started[args] {
			t.Errorf("%s was sent %d times for %d requests that ran", args, n, started[args])
		}
	}
	if total == 0 {
		t.Error("nothing ran at all")
	}
}

func (r *rig) anyPending(dice *rand.Rand) *approval.Request {
	var found []*approval.Request
	for q, err := range r.mem.List(context.Background(), store.Filter{States: []approval.State{approval.Pending}}) {
		if err != nil {
			r.t.Fatal(err)
		}
		found = append(found, q)
	}
	if len(found) == 0 {
		return nil
	}
	return found[dice.IntN(len(found))]
}

func (r *rig) decideOne(dice *rand.Rand) {
	if q := r.anyPending(dice); q != nil {
		// A decision may come too late for what happens at the same time.
		_, _ = r.desk.Decide(context.Background(), raj, q.ID, approval.Decision{Approve: dice.IntN(5) > 0, Digest: q.Digest, Reason: "dice"})
	}
}
