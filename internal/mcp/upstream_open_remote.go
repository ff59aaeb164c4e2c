package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
)

// remoteProbes is how many times the silence limit of stdio a server over HTTP
// may take to answer server/discover: it may have to be woken up.
const remoteProbes = 5

// openRemote finds out how to talk to a server over HTTP.
func openRemote(ctx context.Context, t Target) (*Remote, error) {
	at, err := t.endpoint()
	if err != nil {
		return nil, err
	}
	header, err := t.baseHeader()
	if err != nil {
		return nil, err
	}
	r := &Remote{lifetime: newLifetime(ctx), t: t, header: header}
	r.links, r.transport = t.connect()
	r.wire, r.cut = context.WithCancel(context.WithoutCancel(ctx))
	r.url.Store(at)
	if err := r.greet(ctx); err != nil {
		_ = r.Close()
		return nil, err
	}
	return r, nil
}

// greet tries the modern era first. What a server that does not know it answers
// is not defined, so anything that is not a modern refusal means legacy.
func (r *Remote) greet(ctx context.Context) error {
	if r.t.modern() {
		err := r.discover(ctx)
		if err == nil || !r.t.legacy() || ctx.Err() != nil || !meansLegacy(err) {
			return err
		}
		r.t.Log.Debug("server is not modern", "reason", err)
	}
	return r.initialize(ctx)
}

// meansLegacy reports whether a failed server/discover leaves hope for initialize.
func meansLegacy(err error) bool {
	var refusal *Error
	if errors.As(err, &refusal) {
		return refusal.Code != CodeHeaderMismatch && refusal.Code != CodeMissingCapability
	}
	var status *StatusError
	if errors.As(err, &status) {
		switch status.Status {
		case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired, http.StatusTooManyRequests,
			http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return false
		}
		return true
	}
	return errors.Is(err, errNotModern) || errors.Is(err, ErrUnreadable) ||
		errors.Is(err, errStreamEnded) || errors.Is(err, context.DeadlineExceeded)
}

func (r *Remote) discover(ctx context.Context) error {
	if r.t.legacy() {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, remoteProbes*r.t.Probe)
		defer stop()
	}
	m, err := r.call(ctx, newIntroduction(NewestModern, r.t), methodDiscover, nil, nil)
	if err != nil {
		return fmt.Errorf("server/discover: %w", err)
	}
	about, err := discovered(m)
	if err != nil {
		return err
	}
	r.terms.Store(&terms{about, newIntroduction(about.Version, r.t)})
	return nil
}

func (r *Remote) initialize(ctx context.Context) error {
	m, err := r.call(ctx, nil, methodInitialize, r.t.initializeParams(), nil)
	if err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	about, err := initialized(m)
	if err != nil {
		return err
	}
	if about.Version >= V20250618 {
		r.say(HeaderVersion, string(about.Version))
	}
	r.terms.Store(&terms{about: about})
	if err := r.Notify(ctx, methodInitialized, nil); err != nil {
		return fmt.Errorf("notifications/initialized: %w", err)
	}
	r.spawn(r.listen)
	return nil
}

// enter takes the session id out of the response to initialize.
func (r *Remote) enter(resp *http.Response) error {
	id := resp.Header.Get(HeaderSession)
	if id == "" {
		return nil
	}
	if len(id) > maxSessionID || !isHeaderText(id) {
		return fmt.Errorf("%w: its session id is not visible ASCII", ErrUnreadable)
	}
	r.session = id
	r.say(HeaderSession, id)
	return nil
}

// say adds a header to all requests to come. The map is replaced, because the
// transport may still be reading the one of the last request.
func (r *Remote) say(name, value string) {
	h := r.header.Clone()
	h.Set(name, value)
	r.header = h
}
