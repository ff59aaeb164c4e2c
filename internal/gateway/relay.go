package gateway

import (
	"context"

	"github.com/ayegate/ayegate/internal/mcp"
)

// relay hands on what a server says while it answers a request that is not judged.
type relay struct {
	e *exchange
	l *link
}

// Notification implements [mcp.Answers].
func (r *relay) Notification(m mcp.Message) {
	ctx, stop := context.WithTimeout(r.e.g.ctx, tellTime)
	defer stop()
	if err := r.e.x.Notify(ctx, m.Method, m.Params); err != nil {
		r.e.g.log.Debug("a notification did not reach the agent", "server", r.l.server, "method", m.Method, "err", err)
	}
}

// Ask implements [mcp.Answers]: listing needs no input of anybody.
func (r *relay) Ask(_ context.Context, m mcp.Message) ([]byte, *mcp.Error) {
	return nil, cannotBeAsked(m.Method)
}
