package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/ayegate/ayegate/api"
	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/policy"
	"github.com/ayegate/ayegate/internal/store"
)

// machineRoutes is what machines watch.
func machineRoutes() []route {
	return []route{
		{
			method: http.MethodGet, pattern: "/healthz", plane: public, name: "healthz", media: "text/plain", unlisted: true,
			doc: "Answers 200 while the process serves.", serve: func(x *exchange) error { return x.text("ok\n") },
		},
		{
			method: http.MethodGet, pattern: "/readyz", plane: public, name: "readyz", media: "text/plain", unlisted: true,
			doc: "Answers 200 while the store can be read.", serve: (*exchange).ready,
		},
		{
			method: http.MethodGet, pattern: "/metrics", plane: machines, name: "metrics", media: "text/plain",
			doc: "Figures in the text format of Prometheus. No credential is needed on the server's own host.", serve: (*exchange).figures,
		},
		{
			method: http.MethodGet, pattern: "/openapi.json", plane: public, name: "openapi", media: "application/json",
			doc: "This description (OpenAPI 3.1).", serve: (*exchange).description,
		},
	}
}

func (x *exchange) text(s string) error {
	x.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	x.write([]byte(s))
	return nil
}

func (x *exchange) ready() error {
	if _, err := x.web.store.Head(x.r.Context()); err != nil {
		x.web.log.Warn("not ready", "err", err)
		return newProblem(http.StatusServiceUnavailable, api.Unavailable, "The store cannot be read.")
	}
	return x.text("ready\n")
}

func (x *exchange) figures() error {
	n, err := x.web.store.Counts(x.r.Context())
	if err != nil {
		return err
	}
	oldest, err := x.web.oldest(x.r.Context())
	if err != nil {
		return err
	}
	paused, err := x.web.desk.PausedSessions(x.r.Context())
	if err != nil {
		return err
	}
	var b strings.Builder
	family(&b, "ayegate_pending", "gauge", "Requests that wait for people.")
	for t := policy.R0; t <= policy.R4; t++ {
		fmt.Fprintf(&b, "ayegate_pending{tier=%q} %d\n", t.String(), n.ByTier[t.String()])
	}
	gauge(&b, "ayegate_oldest_pending_seconds", "Age of the request that has waited longest.", oldest)
	gauge(&b, "ayegate_executing", "Calls that were started and have no outcome yet.", float64(n.Executing))
	gauge(&b, "ayegate_in_doubt", "Calls whose outcome a person must settle.", float64(n.Unknown))
	gauge(&b, "ayegate_sessions_paused", "Sessions that wait for a person to resume them.", float64(len(paused)))
	gauge(&b, "ayegate_all_paused", "1 while all agents are paused.", truth(x.web.desk.Paused()))
	gauge(&b, "ayegate_ui_stream_clients", "Open streams of events.", float64(x.web.streams.held()))
	x.web.metrics.write(&b)
	x.w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	x.write([]byte(b.String()))
	return nil
}

func gauge(b *strings.Builder, name, help string, v float64) {
	family(b, name, "gauge", help)
	fmt.Fprintf(b, "%s %g\n", name, v)
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// oldest is how long the request that has waited longest has been waiting, in
// seconds. The number of requests that wait is bounded per agent, so looking at
// them all is cheap enough for a figure that is read every few seconds.
func (w *Web) oldest(ctx context.Context) (float64, error) {
	now := w.store.Now()
	age := 0.0
	for r, err := range w.store.List(ctx, store.Filter{States: []approval.State{approval.Pending}, Limit: 10_000}) {
		if err != nil {
			return 0, errors.Join(errors.New("waiting requests could not be read"), err)
		}
		age = max(age, now.Sub(r.AskedAt).Seconds())
	}
	return age, nil
}
