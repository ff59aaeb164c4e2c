package web

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/ayegate/ayegate/api"
	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/identity"
	"github.com/ayegate/ayegate/internal/store"
)

// uuid reports whether s is the id of a request, in its one spelling. Nothing
// else reaches the store: an encoded slash or a second spelling is no id
// (WEB-11).
func uuid(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
				return false
			}
		}
	}
	return true
}

// shortCode returns the short name that a person wrote, in its one spelling: in
// capitals, and with the letters that Crockford's alphabet leaves out read as
// what they are mistaken for. "" is none.
func shortCode(s string) string {
	if len(s) < 4 || len(s) > 8 {
		return ""
	}
	s = strings.NewReplacer("I", "1", "L", "1", "O", "0").Replace(strings.ToUpper(s))
	for i := range len(s) {
		c := s[i]
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') || c == 'U' {
			return ""
		}
	}
	return s
}

// noRequest is the one answer for a request that is absent, foreign, or cannot
// be: whoever asks learns nothing from it (API-03).
func noRequest() *api.Problem {
	return newProblem(http.StatusNotFound, api.NotFound, "There is no such request.")
}

// find returns a request by its id or short code.
func (w *Web) find(ctx context.Context, id string) (*approval.Request, error) {
	var r *approval.Request
	var err error
	switch code := shortCode(id); {
	case uuid(id):
		r, err = w.store.Get(ctx, approval.ID(id))
	case code != "":
		r, err = w.store.ByCode(ctx, code)
	default:
		return nil, noRequest()
	}
	if isAbsent(err) {
		return nil, noRequest()
	}
	return r, err
}

// own returns an agent's request, and the agent as it asked for it: a device
// that was only named with the call is the call's, and a key without a device
// speaks for it.
func (w *Web) own(ctx context.Context, from identity.Agent, id string) (*approval.Request, identity.Agent, error) {
	r, err := w.find(ctx, id)
	if err != nil {
		return nil, from, err
	}
	if from.Device == "" && r.From.ID == from.ID {
		from.Device = r.From.Device
	}
	r, err = w.desk.GetOwn(ctx, from, r.ID)
	if isAbsent(err) {
		return nil, from, noRequest()
	}
	return r, from, err
}

func isAbsent(err error) bool { return errors.Is(err, store.ErrNotFound) }
