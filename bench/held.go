package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ayegate/ayegate/api"
)

// held has calls held, approves each, and waits for its result: the whole life of
// an approval, over the HTTP API, with 64 in flight and one by one.
func (l *lab) held(ctx context.Context, n int) (map[string]string, error) {
	agent, err := api.NewClient(l.base, l.agent, transport())
	if err != nil {
		return nil, err
	}
	person, err := api.NewClient(l.base, l.human, transport())
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, workers := range []int{1, 64} {
		calls := n
		if workers == 1 {
			calls = min(n, 200)
		}
		resumed, elapsed, lost, err := cycle(ctx, agent, person, workers, calls)
		if err != nil {
			return nil, err
		}
		slices.Sort(resumed)
		key := fmt.Sprintf("%d in flight", workers)
		out[key] = fmt.Sprintf("%d calls, %.0f/s, approve→result p50 %s p99 %s, lost %d", calls, float64(calls)/elapsed.Seconds(),
			resumed[len(resumed)/2].Round(10*time.Microsecond), resumed[len(resumed)*99/100].Round(10*time.Microsecond), lost)
	}
	return out, nil
}

// cycle returns how long each result took after its approval.
func cycle(ctx context.Context, agent, person *api.Client, workers, calls int) ([]time.Duration, time.Duration, int, error) {
	jobs := make(chan int)
	var mu sync.Mutex
	var took []time.Duration
	var failed error
	lost := 0
	var wg sync.WaitGroup
	started := time.Now()
	for range workers {
		wg.Go(func() {
			for i := range jobs {
				d, ok, err := one(ctx, agent, person, i)
				mu.Lock()
				took = append(took, d)
				if !ok {
					lost++
				}
				failed = errors.Join(failed, err)
				mu.Unlock()
			}
		})
	}
	for i := range calls {
		jobs <- i
	}
	close(jobs)
	wg.Wait()
	return took, time.Since(started), lost, failed
}

func one(ctx context.Context, agent, person *api.Client, i int) (time.Duration, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	ask := api.CallRequest{Server: "echo", Tool: "pay", Args: json.RawMessage(fmt.Sprintf(`{"n":%d,"at":%d}`, i, time.Now().UnixNano()))}
	c, err := agent.Call(ctx, ask)
	if err != nil {
		return 0, false, err
	}
	r, err := person.Request(ctx, c.ApprovalID)
	if err != nil {
		return 0, false, err
	}
	got := make(chan *api.Call, 1)
	failed := make(chan error, 1)
	go func() {
		done, err := agent.Await(ctx, c.ApprovalID, api.Duration(30*time.Second))
		if err != nil {
			failed <- err
			return
		}
		got <- done
	}()
	begin := time.Now()
	if _, err := person.Decide(ctx, r.ApprovalID, api.DecideRequest{Decision: api.Approve, Digest: r.Digest}); err != nil {
		return 0, false, err
	}
	select {
	case done := <-got:
		return time.Since(begin), done.Status == api.StatusExecuted, nil
	case err := <-failed:
		return time.Since(begin), false, err
	}
}

func printHeld(h map[string]string) {
	fmt.Println("held → approved → run, over the HTTP API")
	for _, k := range []string{"1 in flight", "64 in flight"} {
		fmt.Printf("  %-14s %s\n", k, h[k])
	}
	fmt.Println()
}
