package web

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/ayegate/ayegate/api"
	"github.com/ayegate/ayegate/internal/identity"
	"github.com/ayegate/ayegate/internal/ledger"
	"github.com/ayegate/ayegate/internal/web/credential"
)

// identify verifies the credential that a plane takes. Any other class is
// refused, whatever its holder may do elsewhere (API-01).
func (w *Web) identify(p plane, x *exchange) error {
	switch p {
	case public:
		return nil
	case machines:
		return w.fromHere(x)
	case agents:
		a, k, err := w.agentOf(x.r)
		x.agent, x.key = a, k
		return err
	case humans, pages:
		return w.personOf(x)
	case nobody:
	}
	return newProblem(http.StatusNotFound, api.NotFound, "There is nothing at this address.")
}

// Agent verifies who calls with an agent key: for /mcp, which the wiring mounts
// beside these routes. An error is an [*api.Problem]; it was recorded where a
// credential was refused. Cookies are never looked at.
func (w *Web) Agent(r *http.Request) (identity.Agent, error) {
	a, _, err := w.agentOf(r)
	return a, err
}

func (w *Web) agentOf(r *http.Request) (identity.Agent, credential.Key, error) {
	text, err := bearer(r)
	if err != nil {
		return identity.Agent{}, credential.Key{}, err
	}
	if text == "" {
		if c, ok := w.cookieOf(r); ok {
			if _, err := w.creds.Session(r.Context(), c); err == nil {
				return identity.Agent{}, credential.Key{}, w.wrongClass(r, c)
			}
		}
		return identity.Agent{}, credential.Key{}, unauthenticated("An agent key is needed here: Authorization: Bearer aye_agent_…")
	}
	a, k, err := w.creds.Agent(r.Context(), text)
	switch {
	case err == nil:
		return a, k, nil
	case errors.Is(err, credential.ErrClass) && w.isPerson(r.Context(), text):
		return identity.Agent{}, credential.Key{}, w.wrongClass(r, text)
	}
	return identity.Agent{}, credential.Key{}, w.refused(r, "key", text, err)
}

func (w *Web) isPerson(ctx context.Context, text string) bool {
	if _, _, err := w.creds.Human(ctx, text); err == nil {
		return true
	}
	_, err := w.creds.Session(ctx, text)
	return err == nil
}

// personOf verifies a human token or, where none is sent, the session cookie.
func (w *Web) personOf(x *exchange) error {
	text, err := bearer(x.r)
	if err != nil {
		return err
	}
	if text == "" {
		return w.sessionOf(x)
	}
	h, k, err := w.creds.Human(x.r.Context(), text)
	switch {
	case err == nil:
		x.human, x.key = h, k
		return nil
	case errors.Is(err, credential.ErrClass):
		if _, _, err := w.creds.Agent(x.r.Context(), text); err == nil {
			return w.wrongClass(x.r, text)
		}
	}
	return w.refused(x.r, "token", text, err)
}

func (w *Web) sessionOf(x *exchange) error {
	cookie, ok := w.cookieOf(x.r)
	if !ok {
		return unauthenticated("A person must sign in for this, or send a human token.")
	}
	s, err := w.creds.Session(x.r.Context(), cookie)
	if err != nil {
		return w.refused(x.r, "session", cookie, err)
	}
	x.session, x.human = s, s.Human
	return nil
}

// bearer returns the text of a bearer credential, or "" where none is sent.
func bearer(r *http.Request) (string, error) {
	all := r.Header.Values("Authorization")
	if len(all) == 0 {
		return "", nil
	}
	scheme, text, ok := strings.Cut(all[0], " ")
	if len(all) > 1 || !ok || !strings.EqualFold(scheme, "Bearer") || text == "" {
		return "", unauthenticated("Send one header: Authorization: Bearer, and the credential.")
	}
	return strings.TrimSpace(text), nil
}

// cookieOf returns the session cookie. Two of one name are none: the second may
// have been planted (WEB-07).
func (w *Web) cookieOf(r *http.Request) (string, bool) {
	all := r.CookiesNamed(w.cookie)
	if len(all) != 1 {
		return "", false
	}
	return all[0].Value, true
}

func unauthenticated(detail string) *api.Problem {
	return newProblem(http.StatusUnauthorized, api.Unauthenticated, detail)
}

// wrongClass refuses a good credential on the other plane.
func (w *Web) wrongClass(r *http.Request, text string) error {
	if err := w.record(r, "class", text, "wrong_credential_class"); err != nil {
		return err
	}
	return newProblem(http.StatusForbidden, api.WrongCredentialClass,
		"Agents ask and people decide: a credential of the other class is of no use here. Nothing was done.")
}

// refused turns a credential that is not good away, and puts that on the record.
func (w *Web) refused(r *http.Request, method, text string, why error) error {
	var cause string
	switch {
	case errors.Is(why, credential.ErrExpired):
		cause = "expired"
	case errors.Is(why, credential.ErrDisabled):
		cause = "disabled"
	case errors.Is(why, credential.ErrUnknown), errors.Is(why, credential.ErrClass):
		cause = "unknown"
	default:
		return why // the store could not say: neither good nor bad
	}
	if err := w.record(r, method, text, cause); err != nil {
		return err
	}
	return unauthenticated("The credential is not good: it is unknown, has ended, or its holder is not configured any more. Nothing was done.")
}

// record puts a refused credential on the record (AUD-11), but lets nobody grow
// the record at will: the rest of a flood is turned away uncounted (API-09). A
// good credential from the same source still passes.
func (w *Web) record(r *http.Request, method, text, cause string) error {
	from := source(r)
	if !w.failures.note(from, w.cfg.Now()) {
		return newProblem(http.StatusTooManyRequests, api.TooManyAttempts, "Too many refused credentials from there. Wait a minute.")
	}
	_, id, ok := credential.ClassOf(text)
	if !ok {
		id = "unknown"
	}
	err := w.desk.Record(context.WithoutCancel(r.Context()), ledger.Event{
		Kind: ledger.AuthFailed, Subject: id, Actor: credential.System(),
		Data: []ledger.Field{ledger.String("method", method), ledger.String(ledger.FieldCause, cause), ledger.String("source", from)},
	})
	if err != nil {
		w.log.Error("a refused credential could not be recorded", "err", err)
	}
	return nil // it is refused all the same
}

// source is where a request comes from: the peer's address, for no header that
// a client writes is believed.
func source(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// failures counts refused credentials per source and minute.
type failures struct {
	mu    sync.Mutex
	since time.Time
	by    map[string]int
}

const (
	failuresPerMinute = 10
	failureSources    = 1024 // remembered at a time: beyond, sources share one count
)

// note reports whether one more failure of a source may be recorded.
func (f *failures) note(source string, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.by == nil || now.Sub(f.since) >= time.Minute || now.Before(f.since) {
		f.since, f.by = now, make(map[string]int)
	}
	if _, known := f.by[source]; !known && len(f.by) >= failureSources {
		source = "others"
	}
	f.by[source]++
	return f.by[source] <= failuresPerMinute
}

// fromHere lets machines on this host in, and people with a credential. A
// request that a proxy forwarded does not come from here.
func (w *Web) fromHere(x *exchange) error {
	addr, err := netip.ParseAddr(source(x.r))
	forwarded := x.r.Header.Get("Forwarded") != "" || x.r.Header.Get("X-Forwarded-For") != ""
	if err == nil && addr.Unmap().IsLoopback() && !forwarded {
		return nil
	}
	return w.personOf(x)
}
