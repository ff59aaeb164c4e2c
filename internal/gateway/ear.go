package gateway

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/mcp"
)

// ear is an exchange as the place where its agent hears of progress. What the
// gateway tells while the call waits and what the server tells while it runs are
// one sequence that only grows: the server's values are moved up by as much as
// was told before. Where nothing was told they stay byte for byte.
type ear struct {
	x     mcp.Exchange
	token []byte // progress token of the exchange, nil when it wants to hear nothing

	mu   sync.Mutex
	told int64 // the last value of our own
}

func newEar(e *exchange) *ear {
	h := &ear{x: e.x, token: mcp.ProgressToken(e.params)}
	if len(h.token) > 0 && h.token[0] != '"' && h.token[0] != '-' && (h.token[0] < '0' || h.token[0] > '9') {
		h.token = nil // neither text nor a number
	}
	return h
}

// tell says that the call waits, at once and then again and again, until ctx ends.
func (h *ear) tell(ctx context.Context, w *wait) {
	if h.token == nil {
		return
	}
	tick := time.NewTicker(w.g.c.Hold.Every)
	defer tick.Stop()
	for {
		h.mu.Lock()
		h.told++
		params := (&object{}).add("progressToken", h.token).add("progress", strconv.AppendInt(nil, h.told, 10)).
			text("message", w.waitingText()).bytes()
		h.mu.Unlock()
		if h.x.Notify(ctx, "notifications/progress", params) != nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// waitingText is what a person at the agent's side reads: the link first, because
// clients cut the rest.
func (w *wait) waitingText() string {
	text := ""
	if link := w.g.url(w.request); link != "" {
		text = link + " "
	}
	if w.request.State == approval.Executing {
		return text + "was approved and is running (request " + w.request.Code + ")"
	}
	return text + "waits for approval, request " + w.request.Code + ", " + left(w.request.ExpiresAt.Sub(w.g.c.Now())) + " left"
}

// pass hands on a server's notification about the call.
func (h *ear) pass(ctx context.Context, m mcp.Message) error {
	if m.Method != "notifications/progress" {
		return h.x.Notify(ctx, m.Method, m.Params)
	}
	if h.token == nil {
		return nil
	}
	params := m.Params
	if string(mcp.NotifiedToken(params)) != string(h.token) {
		params = set(params, h.token, "progressToken")
	}
	h.mu.Lock()
	by := h.told
	h.mu.Unlock()
	for _, name := range []string{"progress", "total"} {
		if v := get(params, name); v != nil && by > 0 {
			params = set(params, raised(v, by), name)
		}
	}
	return h.x.Notify(ctx, m.Method, params)
}

// raised adds to a JSON number; what is none stays.
func raised(value []byte, by int64) []byte {
	if n, err := strconv.ParseInt(string(value), 10, 64); err == nil && n < 1<<53 && n > -1<<53 {
		return strconv.AppendInt(nil, n+by, 10)
	}
	f, err := strconv.ParseFloat(string(value), 64)
	if err != nil {
		return value
	}
	return strconv.AppendFloat(nil, f+float64(by), 'f', -1, 64)
}
