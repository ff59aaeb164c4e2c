package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ayegate/ayegate/api"
	"github.com/ayegate/ayegate/internal/mcp"
)

// told is what was acknowledged: it must be true for ever.
type told struct {
	mu       sync.Mutex
	decided  map[string]map[string]api.Verb // by request and person
	denied   map[string]bool                // requests somebody was told are denied, cancelled or expired
	executed map[string]bool                // requests whose result somebody has
	counted  struct{ approvals, denials, cancels int }
}

func newTold() *told {
	return &told{decided: map[string]map[string]api.Verb{}, denied: map[string]bool{}, executed: map[string]bool{}}
}

func (x *told) decision(id, who string, d api.Verb) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.decided[id] == nil {
		x.decided[id] = map[string]api.Verb{}
	}
	x.decided[id][who] = d
	if d == api.Deny {
		x.counted.denials++
	} else {
		x.counted.approvals++
	}
}

func (x *told) status(id string, s api.Status) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch s {
	case api.StatusDenied, api.StatusCancelled, api.StatusExpired:
		x.denied[id] = true
	case api.StatusExecuted:
		x.executed[id] = true
	default: // what has not ended promises nothing
	}
}

func (x *told) cancelled(id string) {
	x.status(id, api.StatusCancelled)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.counted.cancels++
}

// serial numbers calls over all stores: each is a call of its own.
var serial atomic.Int64

// asker is an agent that wants its calls to happen and asks again, after every
// crash, for those it has no answer to.
type asker struct {
	c    *crash
	how  string
	name string
	open []wish
}

// wish is a call an agent wants.
type wish struct {
	tool, n string
}

func (a *asker) run(ctx context.Context) {
	var up mcp.Upstream
	if a.how == "mcp" {
		var err error
		up, err = mcp.Dial(ctx, mcp.Target{
			Name: "ayegate", URL: a.c.url + "/mcp/o", Version: mcp.NewestLegacy, CallLimit: time.Minute,
			Header: http.Header{"Authorization": {"Bearer " + a.c.secret["mcp"]}},
		})
		if err != nil {
			return
		}
		defer up.Close()
	}
	for ctx.Err() == nil {
		if len(a.open) == 0 {
			n := serial.Add(1)
			a.open = append(a.open, wish{[]string{"act", "auto", "act", "pay", "act"}[n%5], fmt.Sprintf("%s-%d-%s", a.name, n, []string{"yes", "yes", "no", "race", "revoke", "withdraw", "never"}[n%7])})
		}
		w := a.open[0]
		done, err := a.ask(ctx, up, w)
		if err != nil {
			return // the gateway died: ask again next time
		}
		if done {
			a.open = a.open[1:]
		}
	}
}

func (a *asker) ask(ctx context.Context, up mcp.Upstream, w wish) (done bool, err error) {
	switch a.how {
	case "mcp":
		m, err := up.Call(ctx, "tools/call", fmt.Appendf(nil, `{"name":%q,"arguments":{"n":%q}}`, w.tool, w.n), quiet{})
		text, _ := said(m, err)
		return err == nil && !strings.Contains(text, "PENDING"), err
	case "own":
		return a.perform(ctx, w)
	}
	call, err := a.c.client("json").Call(ctx, api.CallRequest{Server: "o", Tool: w.tool, Args: fmt.Appendf(nil, `{"n":%q}`, w.n), Key: w.n, Wait: api.Duration(30 * time.Millisecond)})
	if err = refused(err); err != nil || call == nil {
		return err == nil, err
	}
	a.c.told.status(call.ApprovalID, call.Status)
	waiting := call.Status == api.StatusPending || call.Status == api.StatusApproved || call.Status == api.StatusExecuting
	if waiting && strings.HasSuffix(w.n, "withdraw") {
		call, err = a.c.client("json").Withdraw(ctx, call.ApprovalID)
		if err = refused(err); err == nil && call != nil && call.Status == api.StatusCancelled {
			a.c.told.cancelled(call.ApprovalID)
		}
	}
	// What nobody decides is let go: it expires by itself.
	return !waiting || strings.HasSuffix(w.n, "never"), err
}

// refused drops an error by which the gateway said no: that is an answer.
func refused(err error) error {
	var p *api.Problem
	if errors.As(err, &p) && p.Status < 500 {
		return nil
	}
	return err
}

// perform is an agent that acts by itself, with a token: it leaves its own line
// for the oracle between redeeming and finishing.
func (a *asker) perform(ctx context.Context, w wish) (bool, error) {
	cl := a.c.client("own")
	call, err := cl.Call(ctx, api.CallRequest{Server: "own", Tool: "act", Args: fmt.Appendf(nil, `{"n":%q}`, w.n), Key: w.n, Executor: api.ByCaller, Wait: api.Duration(30 * time.Millisecond)})
	if err = refused(err); err != nil || call == nil {
		return err == nil, err
	}
	a.c.told.status(call.ApprovalID, call.Status)
	if call.Status == api.StatusPending {
		return strings.HasSuffix(w.n, "never"), nil
	}
	token, err := cl.Claim(ctx, call.ApprovalID, api.ClaimRequest{})
	if err != nil {
		return true, refused(err)
	}
	if _, err := cl.Redeem(ctx, call.ApprovalID, api.RedeemRequest{Token: token.Token, ToolCallHash: token.ToolCallHash}); err != nil {
		return true, refused(err)
	}
	f, err := os.OpenFile(filepath.Join(a.c.dir, "effects"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	must(a.c.t, err)
	_, err = fmt.Fprintf(f, "own:%s %s act\n", call.ApprovalID, w.n)
	must(a.c.t, errors.Join(err, f.Close()))
	_, err = cl.Finish(ctx, call.ApprovalID, api.FinishRequest{Outcome: api.Succeeded})
	return true, refused(err)
}

// decider is a person who decides what waits, as the name of the call wants it.
type decider struct {
	c      *crash
	who    string
	random *rand.Rand
}

func (d *decider) run(ctx context.Context) {
	cl := d.c.client(d.who)
	look := time.NewTicker(3 * time.Millisecond)
	defer look.Stop()
	for ctx.Err() == nil {
		<-look.C
		list, err := cl.Requests(ctx, api.RequestFilter{Status: []api.Status{api.StatusPending}, Limit: 20})
		if err != nil {
			return
		}
		for i := range list.Requests {
			if d.decide(ctx, cl, &list.Requests[i]) != nil {
				return
			}
		}
	}
}

func (d *decider) decide(ctx context.Context, cl *api.Client, r *api.Request) error {
	want := api.Approve
	switch name := r.ToolCallCanonical; {
	case strings.Contains(name, "-never"), strings.Contains(name, "-withdraw") && d.random.IntN(4) > 0:
		return nil
	case strings.Contains(name, "-revoke"):
		after, err := cl.Revoke(ctx, r.ApprovalID)
		if err == nil && after.Status == api.StatusCancelled {
			d.c.told.cancelled(r.ApprovalID)
		}
		return refused(err)
	case strings.Contains(name, "-no"), strings.Contains(name, "-race") && d.who == "raj":
		want = api.Deny
	}
	after, err := cl.Decide(ctx, r.ApprovalID, api.DecideRequest{Decision: want, Digest: r.Digest})
	if err == nil {
		d.c.told.decision(r.ApprovalID, d.who, want)
		d.c.told.status(r.ApprovalID, after.Status)
	}
	return refused(err)
}
